#include "files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "command.h"

namespace kiln::cli {
namespace fs = std::filesystem;

std::string read_file(const std::string& path, std::uint64_t most) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail("no file '" + path + "'");
  if (fs::is_directory(status)) fail("'" + path + "' is a folder, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot read '" + path + "': " + std::strerror(errno));
  std::string bytes;
  char buffer[65536];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    bytes.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (bytes.size() > most) fail("'" + path + "' has more than " + std::to_string(most) + " bytes");
  }
  if (in.bad()) fail("cannot read '" + path + "': " + std::strerror(errno));
  return bytes;
}

namespace {

// Removes what was made, unless told that all went well.
class Undo {
 public:
  ~Undo() {
    if (kept_) return;
    std::error_code ignored;
    for (auto it = paths_.rbegin(); it != paths_.rend(); ++it) fs::remove(*it, ignored);
  }
  void add(fs::path path) { paths_.push_back(std::move(path)); }
  void keep() { kept_ = true; }

 private:
  std::vector<fs::path> paths_;
  bool kept_ = false;
};

void make_folder(const fs::path& folder, Undo& undo) {
  if (folder.empty() || fs::is_directory(folder)) return;
  make_folder(folder.parent_path(), undo);
  std::error_code error;
  if (fs::create_directory(folder, error)) undo.add(folder);
  if (!fs::is_directory(folder))
    fail("cannot make the folder '" + folder.string() + "': " + (error ? error.message() : "something else has that name"));
}

}  // namespace

void write_all(const std::string& folder_text, const std::vector<OutputFile>& files) {
  const fs::path folder = fs::path(folder_text).lexically_normal();
  Undo undo;
  make_folder(folder.has_filename() ? folder : folder.parent_path(), undo);
  std::vector<fs::path> temporary;
  for (const OutputFile& file : files) {
    if (fs::is_directory(folder / file.name)) fail("cannot write '" + (folder / file.name).string() + "': a folder has that name");
    temporary.push_back(folder / ("." + std::to_string(getpid()) + "-" + std::to_string(temporary.size()) + ".kiln-tmp"));
    undo.add(temporary.back());
    std::ofstream out(temporary.back(), std::ios::binary | std::ios::trunc);
    out.write(file.bytes.data(), static_cast<std::streamsize>(file.bytes.size()));
    out.close();
    if (!out) fail("cannot write into the folder '" + folder.string() + "': " + std::strerror(errno));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::error_code error;
    fs::rename(temporary[i], folder / files[i].name, error);
    if (error) fail("cannot write '" + (folder / files[i].name).string() + "': " + error.message());
    undo.add(folder / files[i].name);
  }
  undo.keep();
}

}  // namespace kiln::cli
