#include "package/package.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

namespace kiln::test {
namespace fs = std::filesystem;
namespace {

const std::string kFolder = KILN_BINARY_DIR "/package-test";

}  // namespace

bool says(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

void check_done(const ProcessResult& result) {
  CAPTURE(result.out);
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
}

const std::string& installed() {
  static const std::string prefix = [] {
    const std::string folder = kFolder + "/prefix";
    fs::remove_all(folder);
    check_done(run_process({"cmake", "--install", KILN_BINARY_DIR, "--prefix", folder}, {}, 300));
    return folder;
  }();
  return prefix;
}

bool has_program(const std::string& name) { return run_process({"sh", "-c", "command -v " + name}).status == 0; }

const std::vector<std::string>& linkers() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> all;
    const TempFolder folder;
    const std::string source = folder.write("a.cpp", "int main() {}\n");
    for (const char* name : {"bfd", "gold", "lld"})
      if (run_process({KILN_CXX_COMPILER, std::string("-fuse-ld=") + name, source, "-o", folder.file("a")}).status == 0)
        all.push_back(name);
    return all;
  }();
  return found;
}

Project::Project(const std::string& name, std::string generator) : folder_(kFolder + "/" + name), generator_(std::move(generator)) {
  fs::remove_all(folder_);
  fs::create_directories(kFolder);
  fs::copy(KILN_SOURCE_DIR "/tests/package/project", folder_, fs::copy_options::recursive);
}
Project::~Project() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

ProcessResult Project::configure(const std::vector<std::string>& options, const std::vector<std::string>& environment) const {
  std::string all;
  for (const std::string& linker : linkers()) all += (all.empty() ? "" : ";") + linker;
  std::vector<std::string> words{"cmake",
                                 "-S",
                                 folder_,
                                 "-B",
                                 folder_ + "/out",
                                 "-G",
                                 generator_,
                                 "-DCMAKE_PREFIX_PATH=" + installed(),
                                 "-DCMAKE_CXX_COMPILER=" KILN_CXX_COMPILER,
                                 "-DCMAKE_CXX_FLAGS=" KILN_CXX_FLAGS " -Wall -Wextra -Wshadow -Werror",
                                 "-DCMAKE_BUILD_TYPE=",
                                 "-DLINKERS=" + all};
  if (has_program("ccache")) words.push_back("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache");
  words.insert(words.end(), options.begin(), options.end());
  return run_process(words, environment, 300);
}

ProcessResult Project::build(const std::string& target, const std::vector<std::string>& environment) const {
  return run_process({"cmake", "--build", folder_ + "/out", "--target", target, "--parallel", "2"}, environment, 600);
}

ProcessResult Project::run(const std::string& program, const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment) const {
  std::vector<std::string> words{program.starts_with("/") ? program : built(program)},
      around{"KILN_DEVICE=cpu", "KILN_CODEGEN=/nowhere/libkiln_codegen.so", "KILN_ENV=off", "KILN_CONFIG", "LD_LIBRARY_PATH"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  around.insert(around.end(), environment.begin(), environment.end());
  return run_process(words, around);
}

void Project::edit(const std::string& name, const std::string& from, const std::string& to) const {
  std::string text = read_file(file(name));
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(from, at + 1) == std::string::npos);
  text.replace(at, from.size(), to);
  std::ofstream(file(name), std::ios::binary) << text;
}

}  // namespace kiln::test
