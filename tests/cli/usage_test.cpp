// Wrong command lines and wrong sources: one line that names the thing, exit 1 or 2, nothing written.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "cli/cli.h"

using namespace kiln::test;

TEST_CASE("a wrong command line ends with 2 and one line that names the word") {
  TempFolder folder;
  const std::string out = folder.file("out");
  struct Row {
    std::vector<std::string> arguments, words;
  };
  const Row rows[] = {
      {{"frobnicate"}, {"'frobnicate'", "list"}},
      {{"lisst", kSaxpy}, {"'lisst'", "did you mean 'list'"}},
      {{"list"}, {"SOURCE"}},
      {{"list", kSaxpy, "extra"}, {"'extra'"}},
      {{"list", kSaxpy, "--jsn"}, {"'--jsn'", "did you mean '--json'"}},
      {{"show", kSaxpy}, {"KERNEL"}},
      {{"show", kSaxpy, "saxpi"}, {"kernel 'saxpi'", "did you mean 'saxpy'"}},
      {{"show", kSaxpy, ""}, {"empty kernel name", "saxpy"}},
      {{"show", kSaxpy, "saxpy", "--ir", "--ptx"}, {"--ir", "one of them"}},
      {{"show", kSaxpy, "saxpy", "--mode", "chekced"}, {"'chekced'", "did you mean 'checked'"}},
      {{"emit", kSaxpy, "--arch", "sm_80", "-o", out}, {"--emit"}},
      {{"emit", kSaxpy, "--arch", "sm_80", "--emit", "ptx"}, {"--output"}},
      {{"emit", kSaxpy, "--arch", "sm_80", "--emit", "ptxx", "-o", out}, {"'ptxx'", "did you mean 'ptx'", "cubin"}},
      {{"emit", kSaxpy, "nosuch", "--arch", "sm_80", "--emit", "ptx", "-o", out}, {"kernel 'nosuch'", "saxpy"}},
      {{"emit", kSaxpy, "--arch", "banana", "--emit", "ptx", "-o", out}, {"'banana'", "sm_75", "sm_121", "x86-64-v3"}},
      {{"emit", kSaxpy, "--arch", "sm_91", "--emit", "ptx", "-o", out}, {"'sm_91'", "did you mean", "sm_90"}},
      {{"emit", kSaxpy, "--arch", "sm_70", "--emit", "ptx", "-o", out}, {"'sm_70'", "sm_75"}},
      {{"emit", kSaxpy, "--arch", "sm_80,banana", "--emit", "ptx", "-o", out}, {"'banana'"}},
      {{"emit", kSaxpy, "--emit", "ptx", "-o", out}, {"--emit ptx", "--arch"}},
      {{"emit", kSaxpy, "--arch", "x86-64-v3", "--emit", "ptx", "-o", out}, {"--emit ptx", "GPU"}},
      {{"emit", kSaxpy, "--arch", "sm_80", "--emit", "object", "-o", out}, {"--emit object", "x86-64-v3"}},
      {{"emit", kSaxpy, "--arch", "sm_80,x86-64-v3", "--emit", "ptx", "-o", out}, {"CPU levels"}},
      {{"emit", kSaxpy, "--arch", "x86-64-v3", "--emit", "object", "-o", out}, {"--block", "saxpy"}},
      {{"emit", kSaxpy, "--arch", "sm_80", "--emit", "ptx", "--block", "64,64,64", "-o", out}, {"64,64,64", "1024"}},
      {{"emit", kSaxpy, "--arch", "sm_80", "--emit", "ptx", "--block", "64,x", "-o", out}, {"--block '64,x'"}},
      {{"emit", kSaxpy, "--arch", "sm_80", "--emit", "ptx", "--mode", "fast", "-o", out}, {"--mode", "unchecked"}},
      {{"run", kSaxpy, "saxpy", "--block", "32"}, {"--grid"}},
      {{"run", kSaxpy, "saxpy", "--grid", "1"}, {"--block"}},
      {{"run", kSaxpy, "saxpy", "--grid", "-1", "--block", "32"}, {"--grid '-1'"}},
      {{"run", kSaxpy, "saxpy", "--grid", "1,1,1,1", "--block", "32"}, {"--grid '1,1,1,1'"}},
      {{"run", kSaxpy, "saxpy", "--grid", "4294967296", "--block", "32"}, {"--grid"}},
      {{"run", kSaxpy, "saxpy", "--grid", "1", "--block", "32", "--shared", "-1"}, {"--shared '-1'", "0 to 4294967295"}},
      {{"run", kSaxpy, "saxpy", "--grid", "1", "--block", "32", "--shared", "4k"}, {"--shared '4k'", "whole number"}},
      {{"show", kSaxpy, "saxpy", "--mode", "x"}, {"'x'; there are"}},
      {{"emit", kSaxpy, "--arch", "sm_80", "--emit", "k", "-o", out}, {"'k'; there are"}},
      {{"show", kSaxpy, "saxpy", "--mode", "unchecked1"}, {"did you mean 'unchecked' or 'checked'?"}},
      {{"run", kSaxpy, "saxpy", "--grid", "1", "--block", "32", "--arg", "in:f32:[1]"}, {"1 argument was given", "takes 3", "In<f32> x"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words[0]);
    check_refused(kiln_program(row.arguments), 2, row.words);
  }
  CHECK(files_in(folder.path()).empty());
}

TEST_CASE("a source that is no regular file is refused, not waited for") {
  TempFolder folder;
  for (const char* name : {"pipe", "pipe.kir"}) {
    REQUIRE(mkfifo(folder.file(name).c_str(), 0600) == 0);
    check_refused(kiln_program({"list", folder.file(name)}), 1, {name, "no regular file"});
  }
  check_refused(kiln_program({"list", "/dev/zero"}), 1, {"/dev/zero", "no regular file"});
}

TEST_CASE("a source that holds no kernels ends with 1 and one line that says why") {
  TempFolder folder;
  const std::string text = folder.write("text.so", "this is no library\n"), nothing = folder.write("nothing.so", "");
  const std::string empty = folder.write("empty.kir", ""), header = folder.write("header.kir", "kir 1\n");
  const std::string truncated = folder.write("truncated.kir", read_file(kSaxpy).substr(0, 200));
  const std::string elf = folder.write("elf.so",
                                       "\x7f"
                                       "ELF" +
                                           std::string(100, '\0'));
  struct Row {
    std::string source;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {folder.file("missing.so"), {"missing.so", "no file"}},
      {folder.file("missing.kir"), {"missing.kir", "no file"}},
      {folder.path(), {folder.path(), "folder"}},
      {text, {"text.so", "no library"}},
      {nothing, {"nothing.so", "no library"}},
      {elf, {"elf.so", "no library"}},
      {kEmptyLibrary, {"libkiln_test_cli_empty.so", "no kernels"}},
      {empty, {"empty.kir"}},
      {header, {"header.kir", "no kernel"}},
      {truncated, {"truncated.kir", "line"}},
  };
  for (const Row& row : rows) {
    for (const std::vector<std::string>& command : {std::vector<std::string>{"list", row.source},
                                                    {"show", row.source, "k"},
                                                    {"emit", row.source, "--arch", "sm_80", "--emit", "ptx", "-o", folder.file("out")},
                                                    {"run", row.source, "k", "--grid", "1", "--block", "1"}}) {
      CAPTURE(row.source);
      CAPTURE(command[0]);
      check_refused(kiln_program(command), 1, row.words);
    }
  }
  CHECK(files_in(folder.file("out")).empty());
}

TEST_CASE("a refusal under --json is a document too") {
  const auto result = kiln_program({"show", kSaxpy, "saxpi", "--json"});
  CHECK(result.status == 2);
  auto json = json_of(result);
  CHECK(json["exit"] == 2);
  CHECK(json["error"].get<std::string>().find("saxpi") != std::string::npos);
}

TEST_CASE("the word help is the option, and without a command there is the help, and 2") {
  CHECK(kiln_program({"help"}).out == kiln_program({"--help"}).out);
  CHECK(kiln_program({"help"}).status == 0);
  CHECK(kiln_program({"help", "run"}).out == kiln_program({"run", "--help"}).out);
  CHECK(kiln_program({"help", "run"}).out.find("--grid") != std::string::npos);
  CHECK(kiln_program({"help", "run"}).status == 0);
  CHECK(kiln_program({"help", "env", "clear"}).out == kiln_program({"env", "clear", "--help"}).out);
  check_refused(kiln_program({"help", "rnu"}), 2, {"'rnu'", "did you mean 'run'"});
  const auto nothing = kiln_program({});
  CHECK(nothing.status == 2);
  CHECK(nothing.out == "");
  CHECK(nothing.err.find("doctor") != std::string::npos);
  CHECK(nothing.err.ends_with("kiln: error: a command is missing; 'kiln --help' lists them\n"));
}

TEST_CASE("help and version end with 0") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"}, {"emit", "--help"}, {"--version"}}) {
    const auto result = kiln_program(arguments);
    CHECK(result.status == 0);
    CHECK(result.out != "");
    CHECK(result.err == "");
  }
}
