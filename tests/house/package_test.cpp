// A CMake project outside the tree: the README's first program with the README's CMakeLists.txt, against the build tree and an installed
// tree.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "support/process.h"

using kiln::test::ProcessResult;
using kiln::test::run_process;
using kiln::test::TempFolder;

namespace {

// The indented block of the README whose first line is `first`, without the indentation, up to the next line that is not indented.
std::string readme_block(const std::string& first) {
  std::istringstream text(kiln::test::read_file(KILN_SOURCE_DIR "/README.md"));
  std::string block;
  for (std::string line; std::getline(text, line);) {
    if (block.empty() && line != "    " + first) continue;
    if (!line.empty() && !line.starts_with("    ")) break;
    block += (line.empty() ? "" : line.substr(4)) + "\n";
  }
  return block;
}

void check_done(const ProcessResult& result) {
  CAPTURE(result.out);
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
}

// Configures and builds the README's project in `folder` with `how` to find Kiln, and runs it.
void build_and_run(const TempFolder& folder, const std::string& how) {
  const std::string program = readme_block("#include <kiln/kiln.h>"), lists = readme_block("cmake_minimum_required(VERSION 3.25)");
  REQUIRE(program.find("int main()") != std::string::npos);
  REQUIRE(lists.find("find_package(kiln REQUIRED)") != std::string::npos);
  folder.write("first.cpp", program);
  folder.write("CMakeLists.txt", lists);
  const std::string build = folder.file("out");
  check_done(run_process({"cmake", "-S", folder.path(), "-B", build, "-G", "Ninja", how, "-DCMAKE_CXX_COMPILER=" KILN_CXX_COMPILER,
                          "-DCMAKE_CXX_FLAGS=" KILN_CXX_FLAGS " -Wall -Wextra -Wshadow -Werror"},
                         {}, 300));
  check_done(run_process({"cmake", "--build", build}, {}, 300));
  check_done(run_process({build + "/first"}, {"KILN_DEVICE=cpu", "KILN_CODEGEN", "LD_LIBRARY_PATH"}));
}

}  // namespace

TEST_CASE("the README's first program builds and runs against the build tree") {
  TempFolder folder;
  build_and_run(folder, "-Dkiln_DIR=" KILN_BINARY_DIR);
}

TEST_CASE("the README's first program builds and runs against an installed tree, and the installed command line works") {
  TempFolder installed, folder;
  check_done(run_process({"cmake", "--install", KILN_BINARY_DIR, "--prefix", installed.path()}, {}, 300));
  build_and_run(folder, "-DCMAKE_PREFIX_PATH=" + installed.path());
  const auto doctor = run_process({installed.file("bin/kiln"), "doctor"}, {"KILN_CODEGEN", "LD_LIBRARY_PATH"});
  check_done(doctor);
  CHECK(doctor.out.find(installed.path()) != std::string::npos);  // its own code generator, not the build tree's
}
