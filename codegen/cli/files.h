// Reading a file whole; writing several files all or nothing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::cli {

// Throws Failed with the reason when the file is missing, a folder, unreadable, or over `most` bytes; no more than that is read.
std::string read_file(const std::string& path, std::uint64_t most);
// The first `most` bytes, or all where there are fewer.
std::string read_start(const std::string& path, std::uint64_t most);

struct OutputFile {
  std::string name;  // within the folder
  std::string bytes;
  bool keep_equal = false;  // a file that has these bytes already is left alone, and so older than what it was made from
};
// Writes every file under a temporary name in `folder`, to the disk, and renames them at the end. When anything fails, or SIGINT, SIGTERM
// or SIGHUP comes, nothing is left behind, older files of the same names are what they were, and Failed says what. Temporary files that a
// killed process left in the folder are removed, unless another one is writing there. A folder that is not there yet is made beside its
// place and gets its name in one step: there, even a process that is killed leaves all of it or none.
void write_all(const std::string& folder, const std::vector<OutputFile>& files);

}  // namespace kiln::cli
