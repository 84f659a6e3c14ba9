// Reading a file whole; writing several files all or nothing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::cli {

// Throws Failed with the reason when the file is missing, a folder, unreadable, or over `most` bytes.
std::string read_file(const std::string& path, std::uint64_t most);

struct OutputFile {
  std::string name;  // within the folder
  std::string bytes;
};
// Writes every file under a temporary name in `folder` (made when missing) and renames them at the end. When anything fails, nothing is
// left behind and Failed says what. A file of the same name is replaced.
void write_all(const std::string& folder, const std::vector<OutputFile>& files);

}  // namespace kiln::cli
