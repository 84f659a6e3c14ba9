// Whatever a code generator, the assembler or a kernel's own code does to the process that it runs in is one failed kernel: named, with
// what happened and what to do; the other kernels are looked at all the same, and nothing is written.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "cli/cli.h"

using namespace kiln::test;

extern char** environ;

namespace {

const std::string kDeadly = "KILN_CODEGEN=" KILN_BINARY_DIR "/lib/libkiln_test_cli_deadly_codegen.so";
const std::string kDeadlyLibrary = KILN_BINARY_DIR "/lib/libkiln_test_cli_deadly.so";
const std::string kDeadOnOpen = KILN_BINARY_DIR "/lib/libkiln_test_cli_dead_on_open.so";

std::string kernels_named(const std::vector<std::string>& names) {
  std::string text = "kir 1\n";
  for (const std::string& name : names)
    text += "kernel \"" + name + "\" {\nbuffer y : u32[*] out\nbody {\n%i = global_id.x\nstore y[%i], %i\n}\n}\n";
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The line that the command ends with.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end + 1 - (begin == std::string::npos ? 0 : begin + 1));
}

struct Death {
  const char* kernel;
  std::vector<std::string> words;
  std::vector<std::string> options = {};
};
const std::vector<Death> kDeaths{
    {"crash", {"crashed with signal 11", "report"}},
    {"abort", {"crashed with signal 6", "the generator says why"}},
    {"exit", {"ended itself with exit code 0"}},
    {"hang", {"not done after 2 seconds", "--timeout"}, {"--timeout", "2"}},
    {"sleep", {"not done after 2 seconds", "--timeout"}, {"--timeout", "2"}},
    {"eat", {"memory", "512.0 MiB", "--memory"}, {"--memory", "512M"}},
    {"map", {}, {"--memory", "512M"}},  // how it ends is not ours to choose
    {"throw", {"thrown by the generator"}},
    {"throw_number", {"no exception of C++"}},
    {"refuse", {"refused by the generator"}},
};

}  // namespace

TEST_CASE("each way to die in the code generator is one failed kernel, named with the architecture and with what to do") {
  for (const Death& death : kDeaths) {
    for (const char* jobs : {"1", "3"}) {
      TempFolder folder;
      CAPTURE(death.kernel);
      CAPTURE(jobs);
      const std::string source = folder.write("k.kir", kernels_named({"a", death.kernel, "refuse2", "b"}));
      std::vector<std::string> words{"emit", source, "--arch", "sm_80", "--emit", "ptx,json", "-o", folder.file("out"), "--jobs", jobs};
      words.insert(words.end(), death.options.begin(), death.options.end());
      const auto result = kiln_program(words, {kDeadly});
      CAPTURE(result.err);
      CHECK(result.status == 1);
      CHECK(result.out == "");
      const std::string line = last_line(result.err);
      CHECK(line.starts_with("kiln: error: "));
      CHECK(has(line, std::string("kernel '") + death.kernel + "' for sm_80: "));
      for (const std::string& word : death.words) CHECK_MESSAGE(has(line, word), word);
      CHECK(!has(line, "kernel 'a'"));
      CHECK(!has(line, "kernel 'b'"));
      CHECK(files_in(folder.path()) == std::vector<std::string>{"k.kir"});
    }
  }
}

TEST_CASE("every kernel that dies is named, in order and in the same words however many work on them") {
  TempFolder folder;
  const std::string source = folder.write("k.kir", kernels_named({"a", "crash", "throw", "exit", "b", "abort", "refuse"}));
  std::string first;
  for (const char* jobs : {"1", "2", "5"}) {
    const auto result = kiln_program(
        {"emit", source, "--arch", "sm_75,sm_80,sm_90", "--emit", "ptx", "-o", folder.file("out"), "--jobs", jobs, "--json"}, {kDeadly});
    CHECK(result.status == 1);
    const std::string error = json_of(result)["error"];
    CAPTURE(error);
    CHECK(has(error, "5 of 7 kernels cannot be made, so nothing is written"));
    // Of one that dies the first architecture is told; of one that is refused each.
    CHECK(has(error, "'crash' for sm_75"));
    CHECK(!has(error, "'crash' for sm_80"));
    CHECK(has(error, "'refuse' for sm_75"));
    CHECK(has(error, "'refuse' for sm_90"));
    CHECK(error.find("'crash'") < error.find("'throw'"));
    CHECK(error.find("'throw'") < error.find("'exit'"));
    CHECK(error.find("'exit'") < error.find("'abort'"));
    if (first.empty()) first = error;
    CHECK(error == first);
  }
  CHECK(!std::filesystem::exists(folder.file("out")));
}

TEST_CASE("what a code generator prints or closes reaches neither the standard output nor the answers") {
  TempFolder folder;
  const std::string source = folder.write("k.kir", kernels_named({"talk", "b"}));
  const auto result =
      kiln_program({"emit", source, "--arch", "sm_80", "--emit", "ptx", "-o", folder.file("out"), "--json", "--jobs", "1"}, {kDeadly});
  CHECK(result.status == 0);
  CHECK(json_of(result)["files"].size() == 2);
  CHECK(has(result.err, "to the standard output\n"));
  CHECK(has(result.err, "to the standard error\n"));
  CHECK(read_file(folder.file("out/b.sm_80.ptx")) == "code of b for sm_80\n");

  const std::string closing = folder.write("c.kir", kernels_named({"close", "b"}));
  const auto closed = kiln_program({"emit", closing, "--arch", "sm_80", "--emit", "ptx", "-o", folder.file("closed")}, {kDeadly});
  CAPTURE(closed.err);
  CHECK(closed.status == 1);
  CHECK(has(last_line(closed.err), "kernel 'close' for sm_80"));
  CHECK(!std::filesystem::exists(folder.file("closed")));
}

TEST_CASE("a kernel whose definition crashes or never ends costs itself, a library that crashes when it is opened the command") {
  TempFolder folder;
  const auto crashed = kiln_program({"emit", kDeadlyLibrary, "--emit", "kir", "-o", folder.file("out"), "--timeout", "2", "--jobs", "2"});
  CAPTURE(crashed.err);
  CHECK(crashed.status == 1);
  const std::string line = last_line(crashed.err);
  CHECK(has(line, "2 of 3 kernels"));
  CHECK(has(line, "kernel 'cli_deadly::crashes': the process that was recording it crashed with signal 11"));
  CHECK(has(line, "code of the kernel library"));
  CHECK(has(line, "kernel 'cli_deadly::waits': the process that was recording it was not done after 2 seconds"));
  CHECK(!has(line, "fine"));
  CHECK(!std::filesystem::exists(folder.file("out")));
  CHECK(kiln_program({"emit", kDeadlyLibrary, "fine", "--emit", "kir", "-o", folder.file("fine")}).status == 0);

  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"emit", kDeadOnOpen, "--emit", "kir", "-o", folder.file("out")}, {"list", kDeadOnOpen}, {"show", kDeadOnOpen, "k"}}) {
    const auto dead = kiln_program(words);
    CAPTURE(dead.err);
    check_refused(dead, 1, {"libkiln_test_cli_dead_on_open.so", "opening the source", "signal 11"});
  }
}

TEST_CASE("show, run and env why survive what the code generator does, too, and say what they were at") {
  TempFolder folder;
  const std::string source = folder.write("k.kir", kernels_named({"crash", "exit", "hang", "eat", "a"}));
  const auto show = [&](const std::string& kernel, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"show", source, kernel, "--ptx", "--arch", "sm_80"});
    return kiln_program(more, {kDeadly});
  };
  CHECK(show("a").out == "code of a for sm_80\n");
  check_refused(show("crash"), 1, {"kernel 'crash'", "in the code generator", "signal 11", "--in-process"});
  check_refused(show("exit"), 1, {"kernel 'exit'", "exit code 0"});
  check_refused(show("hang", {"--timeout", "2"}), 1, {"kernel 'hang'", "not done after 2 seconds"});
  check_refused(show("eat", {"--memory", "512M"}), 1, {"memory", "--memory"});
  const auto json = show("crash", {"--json"});
  CHECK(json.status == 1);
  CHECK(has(json_of(json)["error"].get<std::string>(), "signal 11"));

  const auto run = [&](const std::string& kernel, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"run", source, kernel, "--grid", "1", "--block", "4", "--arg", "out:u32:4"});
    return kiln_program(more, {kDeadly});
  };
  check_refused(run("crash"), 1, {"run of kernel 'crash'", "signal 11"});
  check_refused(run("hang", {"--timeout", "2"}), 1, {"run of kernel 'hang'", "not done after 2 seconds"});
  // In this process it is as it is.
  CHECK(show("crash", {"--in-process"}).status == 128 + SIGSEGV);
}

TEST_CASE("a reader that goes away ends a command as it ends any other program") {
  TempFolder folder;
  const std::string script =
      "{ " KILN_BINARY_DIR "/bin/kiln list " + kSaxpy + " --json; echo $? >" + folder.file("status") + "; } | { exec 0<&-; sleep 2; }";
  const auto result = run_process({"bash", "-c", script}, {"KILN_ENV=off"});
  CHECK(result.err == "");
  CHECK(read_file(folder.file("status")) == std::to_string(128 + SIGPIPE) + "\n");
}

TEST_CASE("the limits are about compiling: a kernel that runs has what time and memory its user gives it") {
  TempFolder folder;
  // 600 MiB of buffer are more than --memory leaves for the compiler.
  const auto result = kiln_program({"run", kSaxpy, "saxpy", "--grid", "0", "--block", "32", "--arg", "in:f32:zero:1", "--arg",
                                    "inout:f32:zero:1", "--arg", "f32:2", "--memory", "1G"});
  CAPTURE(result.err);
  CHECK(result.status == 0);
  const auto large = kiln_program({"run", kSaxpy, "saxpy", "--grid", "1", "--block", "32", "--arg", "in:f32:zero:100000000", "--arg",
                                   "inout:f32:[1,2,3]", "--arg", "f32:2", "--memory", "1G", "--mode", "unchecked"});
  CAPTURE(large.err);
  CHECK(large.status == 0);
}

TEST_CASE("ptxas that crashes, hangs or lies is one failed kernel, and what hangs ends with the command") {
  TempFolder folder;
  const auto with = [&](const std::string& script) {
    folder.write("ptxas", "#!/bin/sh\n" + script + "\n");
    chmod(folder.file("ptxas").c_str(), 0700);
    return kiln_program({"emit", kSaxpy, "--arch", "sm_80", "--emit", "cubin", "-o", folder.file("out"), "--timeout", "3"},
                        {"PATH=" + folder.path() + ":/usr/bin:/bin"});
  };
  check_refused(with("kill -SEGV $$"), 1, {"ptxas crashed", "sm_80", "signal 11"});
  check_refused(with("echo 'ptxas fatal   : no good' >&2; exit 255"), 1, {"ptxas refused", "no good"});
  check_refused(with("exit 0"), 1, {"ptxas wrote nothing"});
  check_refused(with("echo $$ > '" + folder.path() + "/pid'; exec sleep 1000"), 1, {"kernel 'saxpy' for sm_80", "in ptxas", "--timeout"});
  const int pid = std::stoi(read_file(folder.file("pid")));
  for (int i = 0; i < 100 && kill(pid, 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(kill(pid, 0) != 0);
  CHECK(!std::filesystem::exists(folder.file("out")));
}

TEST_CASE("workers end with the command that is killed") {
  TempFolder folder;
  const std::string source = folder.write("k.kir", kernels_named({"hang"})), out = folder.file("out");
  std::vector<std::string> words{KILN_BINARY_DIR "/bin/kiln", "emit", source, "--arch", "sm_80", "--emit", "ptx", "-o", out};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  setenv("KILN_CODEGEN", KILN_BINARY_DIR "/lib/libkiln_test_cli_deadly_codegen.so", 1);
  pid_t parent = 0;
  REQUIRE(posix_spawn(&parent, argv[0], nullptr, nullptr, argv.data(), environ) == 0);
  unsetenv("KILN_CODEGEN");
  const std::string children = "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children";
  int worker = 0;
  for (int i = 0; i < 200 && worker == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (const std::string text = read_file(children); !text.empty()) worker = std::stoi(text);
  }
  REQUIRE(worker > 0);
  kill(parent, SIGKILL);
  int status = 0;
  waitpid(parent, &status, 0);
  // Gone, or what is left of it waits for its new parent.
  const auto lives = [&] {
    const std::string stat = "/proc/" + std::to_string(worker) + "/stat";
    return std::filesystem::exists(stat) && !has(read_file(stat), ") Z ");
  };
  for (int i = 0; i < 100 && lives(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(!lives());
  CHECK(!std::filesystem::exists(out));
}
