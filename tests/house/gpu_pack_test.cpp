// What tests/gpu/pack.sh packs is what check.sh runs there: nothing missing on the machine with the GPU, nothing carried in vain, no file
// of device tests forgotten.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "support/process.h"

using namespace kiln::test;

namespace {

const std::string kFolder = KILN_SOURCE_DIR "/tests/gpu/";

std::set<std::string> listed(const std::string& variable) {
  const auto told = run_process({"bash", "-c", "source '" + kFolder + "contents.sh'; echo $" + variable});
  CHECK(told.status == 0);
  std::set<std::string> words;
  std::istringstream in(told.out);
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

// What a script says, without its comments.
std::string script(const std::string& name) {
  std::istringstream in(read_file(kFolder + name));
  std::string text;
  for (std::string line; std::getline(in, line);)
    if (const std::size_t first = line.find_first_not_of(" \t"); first == std::string::npos || line[first] != '#') text += line + "\n";
  return text;
}

std::set<std::string> found(const std::string& text, const std::string& pattern) {
  std::set<std::string> all;
  const std::regex expression(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) all.insert((*at)[1]);
  return all;
}

}  // namespace

TEST_CASE("the programs that are packed for a machine with a GPU are those that the check runs there, and they are built") {
  const std::set<std::string> packed = listed("kiln_programs"), samples = listed("kiln_samples");
  const std::string check = script("check.sh");
  std::set<std::string> run;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_BINARY_DIR "/bin")) {
    const std::string name = entry.path().filename().string();
    if (std::regex_search(check, std::regex("(^|[ =])" + name + "( |$|\n)", std::regex::multiline))) run.insert(name);
  }
  for (const std::string& sample : samples) run.insert("sample_" + sample);  // of a loop
  CHECK(check.find("for sample in $kiln_samples") != std::string::npos);
  for (const std::string& name : run) CHECK_MESSAGE(packed.contains(name), name);
  for (const std::string& name : packed) {
    CHECK_MESSAGE(run.contains(name), name);
    CHECK_MESSAGE(std::filesystem::exists(KILN_BINARY_DIR "/bin/" + name), name);
  }
  for (const std::string& name : listed("kiln_libraries")) {
    CHECK_MESSAGE(check.find("/lib/" + name) != std::string::npos, name);
    CHECK_MESSAGE(std::filesystem::exists(KILN_BINARY_DIR "/lib/" + name), name);
  }
  for (const std::string& name : found(check, "\\$root/lib/([a-z_/]+\\.so)")) CHECK_MESSAGE(listed("kiln_libraries").contains(name), name);
  for (const std::string& name : listed("kiln_data")) {
    CHECK_MESSAGE(check.find("$devices/" + name) != std::string::npos, name);
    CHECK_MESSAGE(std::filesystem::exists(KILN_SOURCE_DIR "/tests/simcuda/devices/" + name), name);
  }
}

TEST_CASE("the check on a GPU runs every file of conformance tests, and names none that is not there") {
  const std::string check = script("check.sh");
  const std::set<std::string> conformance = found(check, ":\\$c:([a-z_]+\\.cpp)"), runtime = found(check, ":\\$r:([a-z_]+\\.cpp)");
  std::set<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/conformance"))
    if (const std::string name = entry.path().filename().string(); name.ends_with("_test.cpp")) there.insert(name);
  CHECK(conformance == there);
  CHECK(!runtime.empty());
  for (const std::string& name : runtime) CHECK_MESSAGE(std::filesystem::exists(KILN_SOURCE_DIR "/tests/runtime/" + name), name);
}

TEST_CASE("the check ends with 3 where there is no GPU, with the reason and the file tried, and runs nothing more") {
  TempFolder folder;
  const auto result = run_process({"bash", kFolder + "check.sh", folder.file("out")}, {"KILN_CHECK_LIBRARY=/nowhere/libcuda.so.1"});
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.status == 3);
  CHECK(result.out.find("/nowhere/libcuda.so.1") != std::string::npos);
  CHECK(result.out.find("no usable GPU") != std::string::npos);
  CHECK(result.out.find("sample_") == std::string::npos);
  CHECK(read_file(folder.file("out/summary.txt")) == result.out);
}

TEST_CASE("a step of the check that fails, hangs, crashes or loses the device is named, and the steps after it run") {
  TempFolder pack;
  for (const char* file : {"check.sh", "contents.sh"}) pack.write(file, read_file(kFolder + file));
  std::filesystem::create_directories(pack.file("bin"));
  const auto program = [&](const std::string& name, const std::string& text) {
    std::filesystem::permissions(pack.write("bin/" + name, "#!/bin/bash\n" + text), std::filesystem::perms::owner_all);
  };
  for (const std::string& name : listed("kiln_programs")) program(name, "exit 0\n");
  program("kiln_gpu_measure", "if [ $1 = device ]; then echo 'cuda:0: a GPU of cardboard'; fi\n");
  const std::string good = "echo '[doctest] test cases:  2 |  2 passed | 0 failed | 1 skipped'\n";
  program("kiln_test_runtime", good);
  program("kiln_test_dsl", "exit 0\n");
  program("sample_scan", "exec sleep 1000\n");
  program("sample_stencil", "echo 'what it says'; exit 4\n");
  program("sample_histogram", "kill -SEGV $$\n");
  program("kiln_test_conformance", R"(
good='[doctest] test cases:  2 |  2 passed | 0 failed | 1 skipped'
case "$*" in
  *--list-test-cases*) printf '[doctest] listing\nthe first, good\nthe second\n===\n';;
  *--test-case=*first*) echo "$good";;
  *--test-case=*) exit 1;;
  *memory_test*)
    echo 'TEST CASE:  the second'
    echo 'x.cpp:1: ERROR: CHECK( it ) is NOT correct!'
    echo '  logged: it is lost to this process since its first failure'
    echo '[doctest] test cases:  2 |  1 passed | 1 failed | 1 skipped'
    exit 1;;
  *) echo "$good";;
esac
)");
  const auto result = run_process({"bash", pack.file("check.sh"), pack.file("out")}, {"KILN_CHECK_STEP_SECONDS=1", "KILN_CHECK_LIBRARY"});
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.status == 1);
  // Without the times.
  const std::string said = std::regex_replace(result.out, std::regex(", [0-9]+ s"), "");
  for (const char* line :
       {"sample_reduce: ok", "sample_scan: no end within its time", "sample_stencil: status 4\n    what it says",
        "sample_histogram: ended by signal 11", "sample_matmul: ok", "launches: ok", "warp: ok; 2 passed, 0 failed",
        "memory_table: status 1; 1 passed, 1 failed\n    failed: the second\n    alone: status 1: the second (memory_table/2.log)\n"
        "    alone: 2 cases run by themselves\n    | x.cpp:1: ERROR: CHECK( it ) is NOT correct!",
        "dsl_launch: status 1; no test ran", "answers: ok", "demo: ok", "operations: ok; 2 passed, 0 failed", "something failed"})
    CHECK_MESSAGE(said.find(std::string("\n") + line) != std::string::npos, line);
  CHECK(result.out.find("the first") == std::string::npos);
  // Everything well: 0.
  for (const char* name : {"sample_scan", "sample_stencil", "sample_histogram"}) program(name, "exit 0\n");
  for (const char* name : {"kiln_test_conformance", "kiln_test_dsl"}) program(name, good);
  const auto well = run_process({"bash", pack.file("check.sh"), pack.file("out")}, {"KILN_CHECK_LIBRARY"});
  CAPTURE(well.out);
  CHECK(well.status == 0);
  CHECK(well.out.find("\nall went well in ") != std::string::npos);
}
