// Damaged .kir files through the program: an answer or a refusal, never a crash, never a file. (Every cut and many edits: tests/ir and
// tests/fuzz.)
#include <doctest/doctest.h>

#include <random>

#include "cli/cli.h"

using namespace kiln::test;

namespace {

void check_survives(const std::string& source, const std::string& out) {
  const auto result = kiln_program({"emit", source, "--arch", "sm_80", "--emit", "ptx,json", "-o", out});
  CAPTURE(result.err);
  CHECK((result.status == 0 || result.status == 1));
  CHECK((result.status == 0) == result.err.empty());
  if (result.status != 0) CHECK(result.err.starts_with("kiln: error: "));
  if (result.status != 0) CHECK(files_in(out).empty());
}

}  // namespace

TEST_CASE("a .kir file cut anywhere is refused or compiled") {
  TempFolder folder;
  const std::string text = read_file(kSaxpy);
  for (std::size_t length = 0; length < text.size(); length += 23) {
    CAPTURE(length);
    const std::string name = std::to_string(length);
    check_survives(folder.write("cut" + name + ".kir", text.substr(0, length)), folder.file("out" + name));
  }
}

TEST_CASE("a .kir file with random edits is refused or compiled") {
  TempFolder folder;
  const std::string text = read_file(kSaxpy);
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    std::string edited = text;
    for (int e = 0; e < 3; ++e) {
      const std::size_t at = random() % edited.size();
      switch (random() % 3) {
        case 0: edited[at] = static_cast<char>(random()); break;
        case 1: edited.erase(at, 1 + random() % 8); break;
        default: edited.insert(at, edited.substr(random() % edited.size(), 1 + random() % 20));
      }
    }
    check_survives(folder.write("edit" + std::to_string(i) + ".kir", edited), folder.file("out" + std::to_string(i)));
  }
}
