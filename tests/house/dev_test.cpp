// ./dev test counts what happened, whatever the programs do. The programs here are scripts that behave badly.
#include <doctest/doctest.h>

#include <filesystem>

#include "support/process.h"

using kiln::test::ProcessResult;
using kiln::test::run_process;
using kiln::test::TempFolder;

namespace {

void add_program(const TempFolder& tree, const std::string& area, const std::string& script) {
  std::filesystem::create_directories(tree.file("bin"));
  const std::string path = tree.write("bin/kiln_test_" + area, "#!/bin/sh\n" + script);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

ProcessResult run_tests(const TempFolder& tree, const std::string& names = "") {
  return run_process({"bash", "-c",
                      "set -euo pipefail; source cmake/dev/setup.sh; source cmake/dev/tests.sh; passed=0; failed=0; run_tests '" +
                          tree.path() + "' " + names + "; finish"},
                     {"KILN_TEST_TIMEOUT=2"}, 60, KILN_SOURCE_DIR);
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1, end - (start == std::string::npos ? 0 : start + 1) + 1);
}

const char* kGood = "echo '[doctest] test cases:  3 |  3 passed | 0 failed | 1 skipped'\n";

}  // namespace

TEST_CASE("passed test cases are added up and the run ends with 0") {
  TempFolder tree;
  add_program(tree, "a", kGood);
  add_program(tree, "b", "echo '[doctest] test cases: 1200 | 1200 passed | 0 failed |'\n");
  const auto result = run_tests(tree);
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(last_line(result.out) == "1203 passed, 0 failed");
}

TEST_CASE("a program that fails, crashes, hangs, says nothing or runs nothing fails the run and is named") {
  struct Row {
    const char *what, *script, *last, *says;
  };
  const Row rows[] = {
      {"fails", "echo 'the report'; echo '[doctest] test cases: 3 | 2 passed | 1 failed | 0 skipped'; exit 1\n", "5 passed, 1 failed",
       "the report"},
      {"crashes after its summary", "echo '[doctest] test cases: 3 | 3 passed | 0 failed | 0 skipped'; kill -SEGV $$\n",
       "6 passed, 1 failed", "139"},
      {"crashes before its summary", "echo 'half a'; kill -SEGV $$\n", "3 passed, 1 failed", "without a summary"},
      {"hangs", "sleep 60\n", "3 passed, 1 failed", "did not end"},
      {"says nothing", "exit 0\n", "3 passed, 1 failed", "without a summary"},
      {"runs nothing", "echo '[doctest] test cases: 0 | 0 passed | 0 failed | 0 skipped'\n", "3 passed, 1 failed", "ran no test case"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    TempFolder tree;
    add_program(tree, "a_good", kGood);
    add_program(tree, "bad", row.script);
    const auto result = run_tests(tree);
    CAPTURE(result.out);
    CAPTURE(result.err);
    CHECK(result.status == 1);
    CHECK(last_line(result.out) == row.last);
    CHECK(result.out.find(row.says) != std::string::npos);
    CHECK(result.out.find("bad") != std::string::npos);
  }
}

TEST_CASE("no test at all is a failure") {
  TempFolder tree;
  std::filesystem::create_directories(tree.file("bin"));
  const auto result = run_tests(tree);
  CHECK(result.status == 1);
  CHECK(last_line(result.out) == "0 passed, 0 failed");
}

TEST_CASE("a name picks an area, or test cases of all areas") {
  TempFolder tree;
  add_program(tree, "a", kGood);
  add_program(tree, "b",
              "case \"$*\" in *'--test-case=*some words*'*) n=1;; *) n=9;; esac; echo \"[doctest] test cases: $n | $n passed | 0 failed | "
              "0 skipped\"\n");
  CHECK(last_line(run_tests(tree, "a").out) == "3 passed, 0 failed");
  CHECK(last_line(run_tests(tree, "b").out) == "9 passed, 0 failed");
  CHECK(last_line(run_tests(tree, "b 'some words'").out) == "1 passed, 0 failed");
  CHECK(last_line(run_tests(tree, "'some words'").out) == "4 passed, 0 failed");
}
