// The project of docs/quick-start.md (tests/docs/quick_start, which the page shows), built outside of the tree as the page says.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "support/process.h"

using kiln::test::ProcessResult;
using kiln::test::read_file;
using kiln::test::run_process;
using kiln::test::TempFolder;

namespace {

const std::string kProject = KILN_SOURCE_DIR "/tests/docs/quick_start/";

void check_done(const ProcessResult& result) {
  CAPTURE(result.out);
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
}

}  // namespace

TEST_CASE("the quick start's project builds outside of the tree, and its programs print what the page shows") {
  const TempFolder folder;
  for (const char* file : {"first.cpp", "beyond.cpp", "CMakeLists.txt"}) std::filesystem::copy_file(kProject + file, folder.file(file));
  const std::string build = folder.file("out");
  check_done(run_process({"cmake", "-S", folder.path(), "-B", build, "-Dkiln_DIR=" KILN_BINARY_DIR,
                          "-DCMAKE_CXX_COMPILER=" KILN_CXX_COMPILER, "-DCMAKE_CXX_FLAGS=" KILN_CXX_FLAGS " -Wall -Wextra -Wshadow -Werror"},
                         {}, 300));
  check_done(run_process({"cmake", "--build", build}, {}, 300));
  for (const std::string name : {"first", "beyond"}) {
    CAPTURE(name);
    const ProcessResult result = run_process({build + "/" + name}, {"KILN_DEVICE=cpu", "KILN_CODEGEN", "LD_LIBRARY_PATH"});
    check_done(result);
    std::string out = result.out;
    if (const std::size_t at = out.find(folder.path() + "/"); at != std::string::npos) out.erase(at, folder.path().size() + 1);
    CHECK(out == read_file(kProject + name + ".txt"));
  }
  // The file of docs/configuration.md: its device is not here, so a variable names another.
  std::filesystem::copy_file(KILN_SOURCE_DIR "/tests/docs/files/kiln.json", folder.file("kiln.json"));
  const ProcessResult configured =
      run_process({build + "/first"},
                  {"KILN_DEVICE=cpu", "KILN_ENV=off", "KILN_CONFIG=" + folder.file("kiln.json"), "KILN_CODEGEN", "LD_LIBRARY_PATH"});
  check_done(configured);
  CHECK(read_file(folder.file("kiln.log")).find("compile info: kernel 'saxpy' compiled for ") != std::string::npos);
  CHECK_FALSE(
      run_process({build + "/first"}, {"KILN_DEVICE", "KILN_CONFIG=" + folder.file("kiln.json"), "KILN_CUDA_LIBRARY=/nowhere"}).status ==
      0);
}

#ifdef KILN_HAS_CLI
TEST_CASE("the commands that the README and the quick start show do what they say") {
  const TempFolder folder;
  std::filesystem::create_directory_symlink(KILN_BINARY_DIR, folder.file("build"));
  std::filesystem::create_directory_symlink(KILN_SOURCE_DIR "/samples", folder.file("samples"));
  std::size_t commands = 0;
  for (const char* page : {"/README.md", "/docs/quick-start.md"}) {
    std::istringstream in(read_file(std::string(KILN_SOURCE_DIR) + page));
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("    build/bin/kiln ")) continue;
      CAPTURE(line);
      const ProcessResult result =
          run_process({"bash", "-c", line}, {"KILN_DEVICE=cpu", "KILN_CODEGEN", "LD_LIBRARY_PATH"}, 60, folder.path());
      check_done(result);
      CHECK(!result.out.empty());
      ++commands;
    }
  }
  CHECK(commands == 5);
}
#endif
