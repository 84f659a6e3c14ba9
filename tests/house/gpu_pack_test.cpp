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
