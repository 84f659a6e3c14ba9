// kiln emit for many kernels, variants and architectures: which words mean which variants, the same bytes for any number of jobs, the
// manifest of all, the bar on a terminal.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "cli/cli.h"

using namespace kiln::test;
using nlohmann::json;

extern char** environ;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::set<std::string> kernels_of(const std::vector<std::string>& words) {
  const TempFolder folder;
  std::vector<std::string> all{"emit", kKernelLibrary};
  all.insert(all.end(), words.begin(), words.end());
  for (const char* word : {"--emit", "json", "--json", "-o"}) all.emplace_back(word);
  all.push_back(folder.file("out"));
  const auto result = kiln_program(all);
  CAPTURE(result.err);
  CHECK(result.status == 0);
  std::set<std::string> names;
  const json document = json_of(result);
  for (const json& k : document["kernels"]) names.insert(k["kernel"].get<std::string>());
  return names;
}

// Everything in a folder, by name.
std::map<std::string, std::string> bytes_of(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const std::string& name : files_in(folder)) all[name] = read_file(folder + "/" + name);
  return all;
}

// Runs the program with its standard error on a terminal; what it shows there.
std::string shown_on_a_terminal(const std::vector<std::string>& arguments, const char* term) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  char name[128];
  REQUIRE(ptsname_r(terminal, name, sizeof name) == 0);
  std::vector<std::string> words{"env", std::string("TERM=") + term, "KILN_ENV=off", KILN_BINARY_DIR "/bin/kiln"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, name, O_RDWR | O_NOCTTY, 0);
  pid_t child = 0;
  REQUIRE(posix_spawnp(&child, "env", &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  std::string text;
  char buffer[4096];
  while (true) {  // the end of the other side is an error here
    pollfd wait{terminal, POLLIN, 0};
    if (poll(&wait, 1, 60'000) <= 0) break;
    const ssize_t n = read(terminal, buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return text;
}

}  // namespace

TEST_CASE("words with patterns choose kernels and configs of a family's space") {
  using Names = std::set<std::string>;
  const std::string scale = "cli_test::scale", repeat = "cli_test::repeat";
  const auto config = [&](const char* text) { return repeat + "@" + text; };
  const std::string one = config("negate=false,times=1"), two = config("negate=false,times=2"), four = config("negate=false,times=4");
  const std::string minus_one = config("negate=true,times=1"), minus_two = config("negate=true,times=2");
  // How a config is written is the family's; here only which ones are chosen.
  const auto normal = [](const Names& names) {
    Names all;
    for (std::string name : names) {
      const bool negate = has(name, "negate=true");
      const std::size_t times = name.find("times=");
      all.insert(times == std::string::npos
                     ? name
                     : name.substr(0, name.find('@')) + "@negate=" + (negate ? "true" : "false") + "," + name.substr(times, 7));
    }
    return all;
  };
  CHECK(normal(kernels_of({"repeat@*"})) == Names{one, two, four, minus_one, minus_two});
  CHECK(normal(kernels_of({"repeat@times=*"})) == Names{one, two, four});
  CHECK(normal(kernels_of({"repeat@negate=true,*"})) == Names{minus_one, minus_two});
  CHECK(normal(kernels_of({"repeat@times=1,negate=*"})) == Names{one, minus_one});
  CHECK(normal(kernels_of({"*@*"})) == Names{scale, one, two, four, minus_one, minus_two});
  CHECK(normal(kernels_of({"sc?le"})) == Names{scale});
  CHECK(normal(kernels_of({"cli_test::*"})) == Names{scale, two});
  CHECK(normal(kernels_of({"*ale@*"})) == Names{scale});
  CHECK(normal(kernels_of({"repeat", "repeat@*", "repeat@times=2"})) == Names{one, two, four, minus_one, minus_two});

  const TempFolder folder;
  struct Row {
    const char* word;
    std::vector<std::string> parts;
  };
  for (const Row& row : {Row{"nothing*", {"nothing*", "cli_test::scale"}}, Row{"repeat@tims=*", {"'tims'", "times"}},
                         Row{"scale@times=*", {"scale", "has no config"}}, Row{"repeat@times=7,*", {"repeat@times=7,*"}}})
    check_refused(kiln_program({"emit", kKernelLibrary, row.word, "--emit", "json", "-o", folder.file("out")}), 2, row.parts);
  CHECK(files_in(folder.path()).empty());
}

TEST_CASE("in a .kir file a pattern is held against whole names, and a kernel that is called so comes first") {
  const TempFolder folder;
  std::string text = "kir 1\n";
  for (const char* name : {"f@tile=8", "f@tile=16", "g", "f*"})
    text += std::string("kernel \"") + name + "\" {\nbuffer y : u32[*] out\nbody {\n%i = global_id.x\nstore y[%i], %i\n}\n}\n";
  const std::string source = folder.write("k.kir", text);
  const auto count = [&](const char* word) {
    const auto result =
        kiln_program({"emit", source, word, "--emit", "kir", "--json", "-o", folder.file(std::string("out-") + word[0] + word[1])});
    CAPTURE(result.err);
    return json_of(result)["kernels"].size();
  };
  CHECK(count("f@*") == 2);
  CHECK(count("f*") == 1);
  CHECK(count("?") == 1);
  CHECK(count("*") == 4);
}

TEST_CASE("the bytes do not depend on the number of jobs, on the process or on the folder") {
  const TempFolder folder;
  std::map<std::string, std::string> first;
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"--jobs", "1"}, {"--jobs", "4"}, {"--jobs", "7"}, {}, {"--in-process"}}) {
    const std::string out = folder.file("out" + std::to_string(first.size()) + (how.empty() ? "" : how.back()));
    std::vector<std::string> words{
        "emit",    kKernelLibrary, "*@*", "--arch", "sm_75,sm_90a,x86-64-v3", "--emit", "ptx,llvm,object,kir,json,manifest",
        "--block", "64",           "-o",  out};
    words.insert(words.end(), how.begin(), how.end());
    const auto result = kiln_program(words);
    CAPTURE(result.err);
    REQUIRE(result.status == 0);
    const auto bytes = bytes_of(out);
    CHECK(bytes.size() == 6 * (2 * 2 + 2 + 2) + 1);
    if (first.empty()) first = bytes;
    CHECK((bytes == first));
    // The files are told in the same order, too.
    std::string told;
    for (const char c : result.out) told += c;
    for (std::size_t at = 0; (at = told.find(out)) != std::string::npos;) told.erase(at, out.size());
    static std::string first_told;
    if (first_told.empty()) first_told = told;
    CHECK(told == first_told);
  }
}

TEST_CASE("the manifest of an emission names every file with its size and what sha256sum says, every kernel and what made them") {
  const TempFolder folder;
  const std::string out = folder.file("out");
  const auto result =
      kiln_program({"emit", kKernelLibrary, "repeat@*", "--arch", "sm_80,sm_90", "--emit", "ptx,json,manifest", "-o", out, "--json"});
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  const json manifest = json::parse(read_file(out + "/kiln-manifest.json"));
  CHECK(manifest["format"] == 1);
  CHECK(manifest["archs"] == json::array({"sm_80", "sm_90"}));
  CHECK(manifest["kernels"].size() == 5);
  CHECK(manifest["ptxas"].is_null());
  CHECK(!manifest["kiln"].get<std::string>().empty());
  CHECK(!manifest["build"].get<std::string>().empty());
  CHECK(!manifest["llvm"].get<std::string>().empty());
  REQUIRE(manifest["files"].size() == 15);
  std::string sums;
  for (const json& f : manifest["files"]) {
    const std::string name = f["file"];
    CHECK(f["bytes"] == read_file(out + "/" + name).size());
    sums += f["sha256"].get<std::string>() + "  " + name + "\n";
    CHECK(has(f["kernel"].get<std::string>(), "cli_test::repeat@"));
    CHECK(f["arch"].is_null() == (f["kind"] == "json"));
  }
  const auto checked = run_process({"sha256sum", "-c", "--quiet", folder.write("sums", sums)}, {}, 60, out);
  CAPTURE(checked.out);
  CHECK(checked.status == 0);
  CHECK(files_in(out).size() == 16);
  // The same in what --json prints.
  const json printed = json_of(result);
  CHECK(printed["folder"] == out);
  CHECK(printed["files"].size() == 16);
  CHECK(printed["kernels"] == manifest["kernels"]);
  CHECK(printed["files"][0] == manifest["files"][0]);
}

TEST_CASE("a bar shows the progress on a terminal, and nowhere else") {
  const TempFolder folder;
  const std::vector<std::string> emit{"emit", kKernelLibrary, "*@*", "--arch", "sm_80,sm_90", "--emit", "ptx", "-o", folder.file("out")};
  const std::string shown = shown_on_a_terminal(emit, "xterm");
  CHECK(has(shown, "12/12"));
  CHECK(has(shown, "[####"));
  CHECK(shown.ends_with("\r\x1b[K"));  // and it is gone at the end
  CHECK(shown_on_a_terminal(emit, "dumb").empty());
  std::vector<std::string> json_words = emit;
  json_words.emplace_back("--json");
  CHECK(shown_on_a_terminal(json_words, "xterm").empty());
  CHECK(kiln_program(emit).err.empty());
}

TEST_CASE("--explain tells what forced architecture and PTX version, what newer instructions are used for, and sizes") {
  const TempFolder folder;
  const std::string source = folder.write("r.kir", R"(kir 1
kernel "r" {
  file "r.cpp"
  buffer x : u32[*] inout
  shared s : u32[8]
  body {
    %i = thread_id.x @0:3
    %v = load x[%i] @0:4
    %s = warp_reduce.add %v @0:5
    %z = const 0 : u32
    store s[%z], %s @0:6
    store x[%i], %s @0:6
  }
}
)");
  const auto result = kiln_program({"emit", source, "--arch", "sm_75,sm_90a,x86-64-v3", "--block", "32", "--explain", "--json"},
                                   {"PATH=/usr/bin:/bin"});  // without ptxas
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  const json all = json_of(result)["explanations"];
  REQUIRE(all.size() == 3);
  CHECK(json_of(result)["files"].empty());
  CHECK(all[0]["arch"] == "sm_75");
  CHECK(all[0]["lowest_arch"] == "sm_75");
  CHECK(all[0]["ptx_version"] == "6.3");
  CHECK(all[0]["instructions"].empty());
  CHECK(all[1]["ptx_version"] == "8.0");
  CHECK(has(all[1]["ptx_version_reason"], "sm_90a"));
  CHECK(all[1]["instructions"] ==
        json::array({{{"operation", "warp_reduce.add u32"}, {"place", "r.cpp:5"}, {"instruction", "redux.sync"}, {"since", "sm_80"}}}));
  CHECK(all[1]["parameter_bytes"] == 24);  // pointer, extent, fault record
  CHECK(all[1]["static_shared_bytes"] == 32);
  CHECK(all[1]["ptxas"].is_null());
  CHECK(has(all[1]["ptxas_missing"], "PATH"));
  CHECK(all[2]["arch"] == "x86-64-v3");
  CHECK(all[2]["lowest_arch"] == "x86-64");
  CHECK(all[2]["ptx_version"].is_null());

  const auto text = kiln_program({"emit", source, "--arch", "sm_90", "--explain", "--emit", "ptx", "-o", folder.file("out")});
  CHECK(text.status == 0);
  for (const char* part :
       {"r for sm_90", "lowest", "sm_75", "PTX version", "7.8", "redux.sync, there since sm_80", "r.cpp:5", "32 bytes static"})
    CHECK_MESSAGE(has(text.out, part), part);
  CHECK(files_in(folder.file("out")) == std::vector<std::string>{"r.sm_90.ptx"});
  check_refused(kiln_program({"emit", source, "--explain"}), 2, {"--explain needs --arch"});
}

TEST_CASE("--explain has registers, spills and the constants of ptxas where there is one") {
  if (run_process({"sh", "-c", "command -v ptxas"}).status != 0) return;
  const auto result = kiln_program({"emit", kSaxpy, "--arch", "sm_80", "--explain", "--json"});
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  const json ptxas = json_of(result)["explanations"][0]["ptxas"];
  CHECK(ptxas["registers"].get<int>() > 3);
  CHECK(ptxas["spill_store_bytes"] == 0);
  CHECK(ptxas["constant_bytes"].get<int>() >= 352);
  CHECK(!ptxas["version"].get<std::string>().empty());
  CHECK(has(kiln_program({"emit", kSaxpy, "--arch", "sm_80", "--explain"}).out, " of a thread (ptxas "));
}

TEST_CASE("wrong numbers of jobs, seconds and bytes are refused with the option's name") {
  const TempFolder folder;
  const auto refused = [&](const std::vector<std::string>& more, const std::vector<std::string>& words) {
    std::vector<std::string> all{"emit", kSaxpy, "--emit", "kir", "-o", folder.file("out")};
    all.insert(all.end(), more.begin(), more.end());
    check_refused(kiln_program(all), 2, words);
  };
  refused({"--jobs", "0"}, {"--jobs '0'"});
  refused({"--jobs", "many"}, {"--jobs 'many'"});
  refused({"--jobs", "2000"}, {"--jobs '2000'", "1024"});
  refused({"--timeout", "soon"}, {"--timeout 'soon'"});
  refused({"--memory", "1T"}, {"--memory '1T'"});
  refused({"--memory", "1M"}, {"--memory '1M'", "256M"});
  check_refused(kiln_program({"show", kSaxpy, "saxpy", "--timeout", "-1"}), 2, {"--timeout"});
  CHECK(!std::filesystem::exists(folder.file("out")));
}
