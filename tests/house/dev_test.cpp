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

TEST_CASE("tests are run on the CPU and on the simulated GPUs unless other devices are named") {
  for (const auto& [options, devices] :
       {std::pair<std::string, std::string>{"", "cpu,sim"}, {"--devices cpu", "cpu"}, {"--devices=sim,cuda", "sim,cuda"}}) {
    CAPTURE(options);
    TempFolder tree;
    add_program(tree, "a", "test \"$KILN_TEST_DEVICES\" = '" + devices + "' && " + kGood);
    const auto result = run_process({"bash", "-c",
                                     "set -euo pipefail; source cmake/dev/setup.sh; source cmake/dev/tests.sh; setup_packages() { :; }; "
                                     "build_tree() { :; }; run_extras() { :; }; test_command '" +
                                         tree.path() + "' " + options},
                                    {"KILN_TEST_TIMEOUT=20", "KILN_TEST_DEVICES=other"}, 60, KILN_SOURCE_DIR);
    CAPTURE(result.out);
    CAPTURE(result.err);
    CHECK(last_line(result.out) == "3 passed, 0 failed");
  }
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

TEST_CASE("set-up installs what is missing, says so, and nothing the second time") {
  TempFolder folder;
  std::filesystem::create_directories(folder.file("stub"));
  const auto stub = [&](const std::string& name, const std::string& script) {
    std::filesystem::permissions(folder.write("stub/" + name, "#!/bin/sh\n" + script), std::filesystem::perms::owner_all);
  };
  // ccache and ninja-build are missing until they are installed.
  stub("dpkg-query", "for name; do :; done\ncase \"$name\" in ccache|ninja-build) [ -e '" + folder.file("done") +
                         "' ] && echo installed || echo not-installed;; *) echo installed;; esac\n");
  stub("apt-get", "echo \"$@\" >>'" + folder.file("calls") + "'\ncase \"$1\" in install) touch '" + folder.file("done") + "';; esac\n");
  stub("id", "echo 0\n");
  const auto setup = [&] {
    return run_process(
        {"bash", "-c", "set -euo pipefail; PATH='" + folder.file("stub") + "':$PATH; source cmake/dev/setup.sh; setup_packages build"},
        {"LLVM_DIR"}, 60, KILN_SOURCE_DIR);
  };
  const auto first = setup();
  CAPTURE(first.err);
  CHECK(first.status == 0);
  CHECK(first.out == "dev: installing ninja-build ccache\n");
  const std::string calls = kiln::test::read_file(folder.file("calls"));
  CHECK(calls.starts_with("update\n"));
  CHECK(calls.find("install -y") != std::string::npos);
  CHECK(calls.find(" ninja-build ccache\n") != std::string::npos);
  CHECK(calls.find("clang-format") == std::string::npos);  // only ./dev format wants it
  const auto second = setup();
  CHECK(second.status == 0);
  CHECK(second.out == "");
  CHECK(kiln::test::read_file(folder.file("calls")) == calls);
}

TEST_CASE("a site of the documentation is made whole, or the one that is there stays") {
  TempFolder folder;
  std::filesystem::create_directories(folder.file("stub"));
  // Writes the folder behind --site-dir; fails where a file 'broken' is there.
  const std::string stub =
      folder.write("stub/mkdocs",
                   "#!/bin/sh\nwhile [ \"$1\" != --site-dir ]; do shift; done\nmkdir -p \"$2\"\ncp words \"$2/index.html\"\n"
                   "[ ! -e broken ] || { echo 'a broken link' >&2; exit 1; }\n");
  std::filesystem::permissions(stub, std::filesystem::perms::owner_all);
  const auto make = [&](const std::string& words) {
    folder.write("words", words);
    return run_process(
        {"bash", "-c",
         "set -euo pipefail; PATH='" + folder.file("stub") + "':$PATH; source " KILN_SOURCE_DIR "/cmake/dev/setup.sh; make_site"},
        {}, 60, folder.path());
  };
  const auto first = make("first");
  CAPTURE(first.err);
  CHECK(first.status == 0);
  CHECK(first.out == "dev: the site is build/site/index.html\n");
  make("second");
  CHECK(kiln::test::read_file(folder.file("build/site/index.html")) == "second");
  folder.write("broken", "");
  const auto third = make("third");
  CHECK(third.status == 1);
  CHECK(third.err == "a broken link\ndev: no site was made\n");
  CHECK(kiln::test::read_file(folder.file("build/site/index.html")) == "second");
  CHECK_FALSE(std::filesystem::exists(folder.file("build/site.new")));
}

TEST_CASE("set-up without root and without sudo says what to install") {
  TempFolder folder;
  std::filesystem::create_directories(folder.file("stub"));
  for (const char* name : {"dpkg-query", "id"})
    std::filesystem::permissions(
        folder.write(std::string("stub/") + name, std::string(name) == "id" ? "#!/bin/sh\necho 1000\n" : "#!/bin/sh\nexit 1\n"),
        std::filesystem::perms::owner_all);
  const auto result = run_process({"bash", "-c",
                                   "set -uo pipefail; PATH='" + folder.file("stub") +
                                       "':$PATH; source cmake/dev/setup.sh; command() { [ \"$2\" != sudo ]; }; setup_packages build"},
                                  {"LLVM_DIR"}, 60, KILN_SOURCE_DIR);
  CHECK(result.status == 1);
  CHECK(result.err.find("ninja-build") != std::string::npos);
  CHECK(result.err.find("needs root") != std::string::npos);
}
