// kiln check: two devices, generated inputs, what differs.
#include <doctest/doctest.h>

#include <regex>

#include "cli/cli.h"

using namespace kiln::test;
using nlohmann::json;

namespace {

// Kernels as the tests of `check` need them, by name.
const char* const kKernels = R"kir(kir 1
kernel "nan_bits" {
  file "nan.cpp"
  buffer x : f32[*] in
  buffer y : u32[*] out
  body {
    %i = global_id.x : u32
    %n = size y : u32
    %m = size x : u32
    %same = eq %n, %m : bool
    require %same, "x.size() == y.size()"
    %c = lt %i, %n
    if %c {
      %v = load x[%i]
      %d = sub %v, %v : f32
      %b = bit_cast %d : u32
      store y[%i], %b
    }
  }
}
kernel "race" {
  file "race.cpp"
  buffer y : u32[*] out
  body {
    %i = global_id.x : u32 @0:3
    %z = const 0 : u32 @0:3
    store y[%z], %i @0:4
  }
}
kernel "endless" {
  file "endless.cpp"
  buffer y : u32[*] out
  body {
    while {
      %t = const true : bool
      yield %t
    } do {
    }
  }
}
kernel "impossible" {
  file "impossible.cpp"
  buffer y : u32[*] out
  body {
    %n = size y : u32
    %one = const 1 : u32
    %more = add %n, %one : u32
    %c = eq %n, %more : bool
    require %c, "y.size() == y.size() + 1" @0:5
  }
}
kernel "demanding" {
  file "demanding.cpp"
  buffer a : f32[*, *] in
  buffer b : f32[*, *] in
  buffer c : f32[*, *] out
  scalar n : u32
  body {
    %a1 = extent a.1 : u32
    %b0 = extent b.0 : u32
    %1 = eq %a1, %b0 : bool
    require %1, "a.extent(1) == b.extent(0)"
    %cs = size c : u32
    %four = const 4 : u32
    %n = param n : u32
    %fourn = mul %n, %four : u32
    %2 = eq %cs, %fourn : bool
    require %2, "c.size() == 4 * n"
    %sixteen = const 16 : u32
    %zero = const 0 : u32
    %rem = rem %a1, %sixteen : u32
    %3 = eq %rem, %zero : bool
    require %3, "a.extent(1) % 16 == 0"
    %bd = block_dim.x : u32
    %gd = grid_dim.x : u32
    %threads = mul %bd, %gd : u32
    %4 = ge %threads, %cs : bool
    require %4, "enough threads"
    %5 = gt %n, %four : bool
    require %5, "n > 4"
  }
}
kernel "wild" {
  file "wild.cpp"
  options checked=false contraction=true fast_math=false
  buffer x : u32[*] in
  buffer y : u32[*] inout
  body {
    %i = global_id.x : u32
    %v = load x[%i]
    %five = const 5 : u32
    %far = add %i, %five : u32
    store y[%far], %v
  }
}
)kir";

struct Kernels {
  TempFolder folder;
  std::string path = folder.write("kernels.kir", kKernels);
};

ProcessResult shell(const std::string& line) {
  return run_process({"/bin/sh", "-c", "kiln() { '" KILN_BINARY_DIR "/bin/kiln' \"$@\"; }; " + line},
                     {"KILN_ENV=off", "KILN_LOG", "KILN_CODEGEN"});
}

const std::string kSimulated = "KILN_CUDA_LIBRARY=" KILN_BINARY_DIR "/lib/libkiln_simcuda.so";

}  // namespace

TEST_CASE("kernels that are the same everywhere are said to be so, on the interpreter, on another level, on a GPU") {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--on", "cpu", "--against", "cpu:x86-64"}, {"--on", "interp"}, {"--against", "cuda"}}) {
    std::vector<std::string> argv{"check", kSaxpy, "saxpy", "--runs", "8", "--json"};
    argv.insert(argv.end(), more.begin(), more.end());
    const auto result =
        kiln_program(argv, {more.size() == 2 && more[1] == "cuda" ? kSimulated : "KILN_CUDA_LIBRARY=/nonexistent/libcuda.so.1"});
    CAPTURE(result.err);
    CAPTURE(result.out);
    CHECK(result.status == 0);
    const json said = json_of(result);
    CHECK(said["ok"] == true);
    REQUIRE(said["kernels"].size() == 1);
    CHECK(said["kernels"][0]["kernel"] == "saxpy");
    CHECK(said["kernels"][0]["compared"] == 8);
    CHECK(said["kernels"][0]["difference"] == nullptr);
    CHECK(said["devices"][0]["device"] != said["devices"][1]["device"]);
  }
  // Without a word about devices: a GPU, where there is one.
  const json with_gpu = json_of(kiln_program({"check", kSaxpy, "--runs", "1", "--json"}, {kSimulated}));
  CHECK(with_gpu["devices"][1]["device"] == "cuda");
  const json without = json_of(kiln_program({"check", kSaxpy, "--runs", "1", "--json"}, {"KILN_CUDA_LIBRARY=/nonexistent/libcuda.so.1"}));
  CHECK(without["devices"][1]["device"] == "interp");
}

TEST_CASE("every kernel of a library is checked, and with @* every config of a family") {
  const auto result = kiln_program({"check", kKernelLibrary, "cli_test::scale", "repeat@*", "--runs", "3", "--against", "interp"});
  CAPTURE(result.out);
  CHECK(result.status == 0);
  CHECK(result.out.find("cli_test::scale: the same, 3 launches") != std::string::npos);
  for (const char* config : {"times=1,negate=false", "times=2,negate=true", "times=4,negate=false"})
    CHECK(result.out.find(std::string("cli_test::repeat@") + config + ": the same") != std::string::npos);
  CHECK(result.out.find("times=4,negate=true") == std::string::npos);  // its space refuses it
}

TEST_CASE("a difference is told with the smallest index, both values, and commands that repeat it") {
  const Kernels kernels;
  // What bits an arithmetic NaN has is left open, and the interpreter's are others than a processor's.
  const auto given = kiln_program({"check", kernels.path, "nan_bits", "--against", "interp", "--grid", "1", "--block", "32", "--arg",
                                   "in:f32:[1,2,inf,-inf]", "--arg", "out:u32:4", "--json"});
  CHECK(given.status == 1);
  const json d = json_of(given)["kernels"][0]["difference"];
  CAPTURE(d.dump());
  CHECK(d["kind"] == "value");
  CHECK(d["name"] == "y");
  CHECK(d["index"] == json::array({2}));
  CHECK(d["differing"] == 2);
  CHECK(d["elements"] == 4);
  CHECK(d["bits"] == json::array({"0xffc00000", "0x7fc00000"}));
  CHECK(d["values"] == json::array({4290772992u, 2143289344u}));
  CHECK(d["repeatable"] == json::array({true, true}));

  const auto drawn = kiln_program({"check", kernels.path, "nan_bits", "--against", "interp", "--seed", "3"});
  CHECK(drawn.status == 1);
  CHECK(drawn.out.find("nan_bits: differs") != std::string::npos);
  CHECK(drawn.out.find("(0xffc00000) on cpu, 2143289344 (0x7fc00000) on interp; ") != std::string::npos);
  std::vector<std::string> commands;
  const std::regex command("\n  (kiln [^\n]*)");
  for (std::sregex_iterator it(drawn.out.begin(), drawn.out.end(), command), end; it != end; ++it) commands.push_back((*it)[1]);
  REQUIRE(commands.size() == 3);
  const json on_cpu = json_of(shell(commands[0])), on_interp = json_of(shell(commands[1]));
  std::smatch told;
  REQUIRE(
      std::regex_search(drawn.out, told, std::regex("\n  y\\[([0-9]+)\\]: [0-9]+ \\((0x[0-9a-f]+)\\) on cpu, [0-9]+ \\((0x[0-9a-f]+)\\)")));
  const std::size_t index = std::stoul(told[1]);
  CHECK(on_cpu["outputs"][0]["values"][index] == told[2].str());
  CHECK(on_interp["outputs"][0]["values"][index] == told[3].str());
  for (std::size_t i = 0; i < index; ++i) CHECK(on_cpu["outputs"][0]["values"][i] == on_interp["outputs"][0]["values"][i]);
  const auto again = shell(commands[2]);
  CHECK(again.status == 1);
  CHECK(again.out.find(told.str()) != std::string::npos);
}

TEST_CASE("the same seed draws the same inputs, and another seed others") {
  const Kernels kernels;
  const auto with = [&](const char* seed) {
    return kiln_program({"check", kernels.path, "nan_bits", "--against", "interp", "--seed", seed}).out;
  };
  CHECK(with("5") == with("5"));
  CHECK(with("5") != with("6"));
}

TEST_CASE("a race, which gives no one result, is found by the interpreter and told by its line") {
  const Kernels kernels;
  const auto result = kiln_program({"check", kernels.path, "race", "--on", "cpu", "--against", "cpu:x86-64", "--json"});
  CHECK(result.status == 1);
  const json d = json_of(result)["kernels"][0]["difference"];
  CHECK(d["kind"] == "misuse");
  CHECK(d["text"].get<std::string>().find("race.cpp:4") != std::string::npos);
  CHECK(d["text"].get<std::string>().find("race") != std::string::npos);
  // As does a single launch there.
  const auto run = kiln_program({"run", kernels.path, "race", "--grid", "1", "--block", "2", "--arg", "out:u32:1", "--device", "interp"});
  CHECK(run.status == 1);
  CHECK(json_of(run)["misuse"][0].get<std::string>().find("race.cpp:4") != std::string::npos);
}

TEST_CASE("kernels that do not end, or that no launch fits, are said to be not checked, and the others are checked all the same") {
  const Kernels kernels;
  const auto result = kiln_program({"check", kernels.path, "endless", "impossible", "demanding", "wild", "--against", "interp", "--json"});
  CHECK(result.status == 1);
  const json all = json_of(result)["kernels"];
  REQUIRE(all.size() == 4);
  CHECK(all[0]["why"].get<std::string>().find("run for too long") != std::string::npos);
  CHECK(all[1]["why"].get<std::string>().find("require(y.size() == y.size() + 1) at impossible.cpp:5 stayed false") != std::string::npos);
  CHECK(all[2]["same"] == true);  // six requirements at once
  CHECK(all[2]["compared"] == 20);
  CHECK(all[3]["left_out"]["failed_alike"] > 0);  // unchecked: what would be out of range is not run
}

TEST_CASE("parts of the inputs may be given, and what does not fit is refused") {
  const Kernels kernels;
  const auto some = kiln_program({"check", kSaxpy, "saxpy", "--against", "interp", "--block", "64", "--arg", "in:f32:iota:100", "--arg",
                                  "_", "--arg", "f32:nan", "--runs", "4"});
  CAPTURE(some.err);
  CHECK(some.status == 0);
  CHECK(some.out.find("the same, 4 launches") != std::string::npos);
  const auto all = kiln_program({"check", kSaxpy, "saxpy", "--against", "interp", "--grid", "1", "--block", "32", "--arg", "in:f32:[1]",
                                 "--arg", "inout:f32:[2]", "--arg", "f32:3"});
  CHECK(all.out.find("the same, 1 launch\n") != std::string::npos);  // nothing is left to draw
  check_refused(kiln_program({"check", kSaxpy, "saxpy", "--arg", "_", "--arg", "_"}), 2, {"2 --arg were given", "takes 3"});
  check_refused(kiln_program({"check", kSaxpy, "saxpy", "--runs", "0"}), 2, {"--runs '0'", "1 to 1000000"});
  check_refused(kiln_program({"check", kSaxpy, "saxpy", "--seed", "x"}), 2, {"--seed 'x'"});
  check_refused(kiln_program({"check", kSaxpy, "saxpi"}), 2, {"'saxpi'", "did you mean 'saxpy'"});
  check_refused(kiln_program({"check", kSaxpy, "saxpy", "--on", "abacus"}), 1, {"'abacus'"});
  // Without a code generator there is nothing to compare; it is said once.
  const auto without = kiln_program({"check", kSaxpy, "saxpy", "--against", "interp"}, {"KILN_CODEGEN=/nonexistent/libkiln_codegen.so"});
  CHECK(without.status == 1);
  CHECK(without.out.find("saxpy: not checked: cpu: ") != std::string::npos);
  CHECK(without.out.find("/nonexistent/libkiln_codegen.so") != std::string::npos);
}

TEST_CASE("random contents are the same for the same seed, and below a limit where there is one") {
  const auto values = [](const std::string& contents) {
    return json_of(kiln_program({"run", kSaxpy, "saxpy", "--grid", "1", "--block", "32", "--arg", "in:f32:zero:50", "--arg",
                                 "inout:f32:50:" + contents, "--arg", "f32:0", "--device", "interp", "--bits"}))["outputs"][0]["values"];
  };
  CHECK(values("random:7") == values("random:7"));
  CHECK(values("random:7") != values("random:8"));
  CHECK(values("random:7:8") != values("random:7"));
  for (const auto& [wrong, word] : {std::pair<const char*, const char*>{"inout:f32:random", "extents are missing"},
                                    {"inout:f32:4:random", "a seed is missing"},
                                    {"inout:f32:4:random:x", "the seed 'x'"},
                                    {"inout:f32:4:random:1:0", "the limit is 0"},
                                    {"inout:f32:4:random:1:2:3", "left over"}})
    check_refused(
        kiln_program({"run", kSaxpy, "saxpy", "--grid", "1", "--block", "1", "--arg", "in:f32:[1]", "--arg", wrong, "--arg", "f32:1"}), 2,
        {word});
}

TEST_CASE("the interpreter is a device of run: the same outputs, and a failure with its place") {
  const std::vector<std::string> launch{
      "run",   kSaxpy,   "saxpy", "--grid", "1", "--block", "32", "--arg", "in:f32:[1,2,3]", "--arg", "inout:f32:[10,20,30]",
      "--arg", "f32:2.5"};
  std::vector<std::string> interpreted = launch;
  interpreted.insert(interpreted.end(), {"--device", "interp"});
  json there = json_of(kiln_program(interpreted));
  CHECK(there["misuse"] == json::array());
  there.erase("misuse");
  CHECK(there == json_of(kiln_program(launch)));
  TempFolder folder;
  const std::string path = folder.write("out.kir", R"(kir 1
kernel "beyond" {
  file "beyond.cpp"
  buffer y : u32[*] out
  body {
    %i = global_id.x : u32 @0:3
    store y[%i], %i @0:4
  }
}
)");
  const auto failed = kiln_program({"run", path, "beyond", "--grid", "1", "--block", "2", "--arg", "out:u32:1", "--device", "interp"});
  CHECK(failed.status == 1);
  const json failure = json_of(failed)["failure"];
  CHECK(failure["code"] == "Bounds");
  CHECK(failure["place"] == "beyond.cpp:4");
  CHECK(failure["bounds"]["index"] == 1);
  CHECK(failure["bounds"]["extent"] == 1);
  CHECK(failure["bounds"]["thread"] == json::array({1, 0, 0}));
}
