// kiln run: arguments in, outputs or a failure out.
#include <doctest/doctest.h>

#include "cli/cli.h"

using namespace kiln::test;
using nlohmann::json;

namespace {

ProcessResult run_saxpy(const std::vector<std::string>& args, const std::vector<std::string>& more = {}) {
  std::vector<std::string> argv{"run", kSaxpy, "saxpy", "--grid", "1", "--block", "32"};
  for (const std::string& a : args) argv.insert(argv.end(), {"--arg", a});
  argv.insert(argv.end(), more.begin(), more.end());
  return kiln_program(argv);
}

}  // namespace

TEST_CASE("a launch prints its outputs") {
  const auto result = run_saxpy({"in:f32:[1,2,3]", "inout:f32:[10,20,30]", "f32:2.5"});
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(json_of(result) ==
        json::parse(R"({"outputs": [{"arg": 1, "name": "y", "type": "f32", "values": [12.5, 25.0, 37.5]}], "failure": null})"));
}

TEST_CASE("values print as numbers, what JSON cannot hold as strings, and all as bits on request") {
  const std::vector<std::string> args{"in:f32:[0,inf,-inf,nan,1,0]", "inout:f32:[0.1,0,0,0,3e38,-0.0]", "f32:1"};
  auto result = json_of(run_saxpy(args));
  auto& values = result["outputs"][0]["values"];
  CHECK(values[0] == 0.1);
  CHECK(values[1] == "inf");
  CHECK(values[2] == "-inf");
  CHECK(values[3] == "nan");
  CHECK(values[4] == 3e38);
  auto bits = json_of(run_saxpy(args, {"--bits"}));
  CHECK(bits["outputs"][0]["values"][0] == "0x3dcccccd");
  CHECK(bits["outputs"][0]["values"][1] == "0x7f800000");
  CHECK(bits["outputs"][0]["values"][2] == "0xff800000");
}

TEST_CASE("f16 and bf16 are written and printed as the shortest decimals that are read as them") {
  TempFolder folder;
  const std::string kernel = folder.write("halves.kir", R"(kir 1
kernel "halves" {
  buffer x : f16[*] in
  buffer y : bf16[*] inout
  scalar a : f16
  body {
    %i = global_id.x : u32
    %n = extent y.0 : u32
    %c = lt %i, %n : bool
    if %c {
      %v = load x[%i]
      %a = param a : f16
      %p = mul %v, %a : f16
      %q = cast %p : bf16
      store y[%i], %q
    }
  }
}
)");
  const std::vector<std::string> args{"run",
                                      kernel,
                                      "halves",
                                      "--grid",
                                      "1",
                                      "--block",
                                      "32",
                                      "--arg",
                                      "in:f16:[0.1,1,5e-8,inf,-0.0,nan]",
                                      "--arg",
                                      "inout:bf16:[0.1,0,0,0,0,0]",
                                      "--arg",
                                      "f16:1"};
  const auto values = json_of(kiln_program(args))["outputs"][0]["values"];
  CHECK(values == json::parse(R"([0.1, 1.0, 5.96e-08, "inf", -0.0, "nan"])"));
  std::vector<std::string> as_bits = args;
  as_bits.push_back("--bits");
  CHECK(json_of(kiln_program(as_bits))["outputs"][0]["values"] ==
        json::parse(R"(["0x3dcd", "0x3f80", "0x3380", "0x7f80", "0x8000", "0x7fc0"])"));
}

TEST_CASE("e4m3 and e5m2 are written and printed as the shortest decimals that are read as them") {
  TempFolder folder;
  const std::string kernel = folder.write("narrow.kir", R"(kir 1
kernel "narrow" {
  buffer x : e4m3[*] in
  buffer y : e5m2[*] inout
  scalar a : e4m3
  body {
    %i = global_id.x : u32
    %n = extent y.0 : u32
    %c = lt %i, %n : bool
    if %c {
      %v = load x[%i]
      %w = cast %v : f32
      %a = param a : e4m3
      %b = cast %a : f32
      %p = mul %w, %b : f32
      %q = cast %p : e5m2
      store y[%i], %q
    }
  }
}
)");
  const std::vector<std::string> args{"run",
                                      kernel,
                                      "narrow",
                                      "--grid",
                                      "1",
                                      "--block",
                                      "32",
                                      "--arg",
                                      "in:e4m3:[0.4,-448,0x1p-9,nan,-0.0]",
                                      "--arg",
                                      "inout:e5m2:[inf,0,0,0,0]",
                                      "--arg",
                                      "e4m3:2"};
  const auto run = json_of(kiln_program(args));
  CHECK(run["outputs"][0]["type"] == "e5m2");
  CHECK(run["outputs"][0]["values"] == json::parse(R"([0.8, -900.0, 0.004, "nan", -0.0])"));
  std::vector<std::string> as_bits = args;
  as_bits.push_back("--bits");
  as_bits[8] = "in:e4m3:iota:5";
  CHECK(json_of(kiln_program(as_bits))["outputs"][0]["values"] == json::parse(R"(["0x00", "0x40", "0x44", "0x46", "0x48"])"));
  for (const char* wrong : {"in:e4m3:[inf]", "in:e4m3:[464.1]", "in:e4m3:[x]"}) {
    as_bits[8] = wrong;
    const auto refused = kiln_program(as_bits);
    CHECK(refused.status == 2);
    CHECK(refused.err.find("is no value of type e4m3") != std::string::npos);
  }
}

TEST_CASE("contents come from lists, files and iota, with one or more extents") {
  TempFolder folder;
  const std::string two("\x00\x00\x80\x3f\x00\x00\x00\x40", 8);  // 1.0f, 2.0f
  const std::string file = folder.write("two.bin", two);
  struct Row {
    std::string in, inout;
    std::vector<double> values;
  };
  const Row rows[] = {
      {"in:f32:@" + file, "inout:f32:[0,0]", {1, 2}},
      {"in:f32:2:@" + file, "inout:f32:2:zero", {1, 2}},
      {"in:f32:iota:4", "inout:f32:4:iota", {0, 2, 4, 6}},
      {"in:f32:4:[1, 2 ,3,4]", "inout:f32:zero:4", {1, 2, 3, 4}},
      {"in:f32:[]", "inout:f32:[]", {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.in);
    const auto result = run_saxpy({row.in, row.inout, "f32:1"});
    CAPTURE(result.err);
    CHECK(result.status == 0);
    CHECK(json_of(result)["outputs"][0]["values"].get<std::vector<double>>() == row.values);
  }
}

TEST_CASE("a device fills a buffer of given extents, though it has more bytes") {
  const auto result = run_saxpy({"in:f32:3:@/dev/zero", "inout:f32:[1,2,3]", "f32:1"});
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(json_of(result)["outputs"][0]["values"].get<std::vector<double>>() == std::vector<double>{1, 2, 3});
}

TEST_CASE("a wrong argument is refused with the argument in the text") {
  TempFolder folder;
  const std::string odd = folder.write("odd.bin", "12345");
  struct Row {
    std::vector<std::string> args, words;
    int exit = 2;
  };
  const Row rows[] = {
      {{"in:f32:[1", "inout:f32:[1]", "f32:1"}, {"in:f32:[1", "']'"}},
      {{"in:f32:[1,]", "inout:f32:[1]", "f32:1"}, {"comma"}},
      {{"in:f32:[1,x]", "inout:f32:[1]", "f32:1"}, {"'x'", "f32"}},
      {{"in:f32:[1e99]", "inout:f32:[1]", "f32:1"}, {"1e99", "range"}},
      {{"in:f33:[1]", "inout:f32:[1]", "f32:1"}, {"'f33'", "no type"}},
      {{"in:f16:[1]", "inout:f32:[1]", "f32:1"}, {"f16"}},
      {{"in:f16:[65520]", "inout:f32:[1]", "f32:1"}, {"65520", "f16", "range"}},
      {{"in:f32", "inout:f32:[1]", "f32:1"}, {"'in:f32'", "missing"}},
      {{"in", "inout:f32:[1]", "f32:1"}, {"'in'", "missing"}},
      {{"", "inout:f32:[1]", "f32:1"}, {"argument ''"}},
      {{"inn:f32:[1]", "inout:f32:[1]", "f32:1"}, {"'inn:f32:[1]'"}},
      {{"in:f32:2x:[1]", "inout:f32:[1]", "f32:1"}, {"'2x'"}},
      {{"in:f32:2x2x2x2x2:zero", "inout:f32:[1]", "f32:1"}, {"at most 4"}},
      {{"in:f32:99999999999999999999:zero", "inout:f32:[1]", "f32:1"}, {"too large"}},
      {{"in:f32:4294967296x4294967296:zero", "inout:f32:[1]", "f32:1"}, {"8 GiB"}},
      {{"in:f32:3:[1,2]", "inout:f32:[1]", "f32:1"}, {"2 values", "need 3"}},
      {{"in:f32:3", "inout:f32:[1]", "f32:1"}, {"contents are missing"}},
      {{"in:f32:iota", "inout:f32:[1]", "f32:1"}, {"extents are missing"}},
      {{"in:f32:iota:4:5", "inout:f32:[1]", "f32:1"}, {"left over"}},
      {{"in:f32:[1]", "inout:f32:[1]", "f32:"}, {"value is missing"}},
      {{"in:f32:[1]", "inout:f32:[1]", "f32:one"}, {"'one'"}},
      {{"in:f32:[1]", "inout:f32:[1]", "i32:1"}, {"'a'", "its type is f32"}},
      {{"in:f32:[1]", "inout:f32:[1]", "in:f32:[1]"}, {"'a'", "scalar"}},
      {{"f32:1", "inout:f32:[1]", "f32:1"}, {"'x'", "buffer"}},
      {{"in:i32:[1]", "inout:f32:[1]", "f32:1"}, {"'x'", "its type is f32"}},
      {{"in:f32:[1]", "out:f32:1", "f32:1"}, {"'y'", "inout"}},
      {{"in:f32:1x1:[1]", "inout:f32:[1]", "f32:1"}, {"'x'", "1 extents, not 2"}},
      {{"in:f32:[1]", "inout:f32:[1]"}, {"2 arguments", "takes 3"}},
      {{"in:f32:@" + folder.file("missing"), "inout:f32:[1]", "f32:1"}, {"missing", "no file"}, 1},
      {{"in:f32:@" + odd, "inout:f32:[1]", "f32:1"}, {"5 bytes", "whole number"}},
      {{"in:f32:1:@" + odd, "inout:f32:[1]", "f32:1"}, {"5 bytes", "need 4"}},
      {{"in:f32:@/dev/zero", "inout:f32:[1]", "f32:1"}, {"/dev/zero", "give extents"}},
      {{"in:f32:[1]", "inout:f32:[1]", "f32:-0xinf"}, {"'-0xinf'", "no value"}},
      {{"in:f32:[1]", "inout:f32:[1]", "f32:0xnan"}, {"'0xnan'", "no value"}},
      {{"in:f32:[1]", "inout:f32:[1]", "f32:0x-1"}, {"'0x-1'", "no value"}},
      {{"in:f32:[1]", "inout:f32:[1]", "f32:0x"}, {"'0x'", "no value"}},
      {{"in:f32:[1]", "inout:f32:[1]", "f32:1e39"}, {"'1e39'", "range"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.args[0]);
    check_refused(run_saxpy(row.args), row.exit, row.words);
  }
}

TEST_CASE("integers are read exactly and out of range is refused") {
  TempFolder folder;
  const std::string path = folder.write("copy.kir", R"(kir 1
kernel "copy32" {
  buffer x : i32[*] in
  buffer y : i32[*] out
  body {
    %i = global_id.x
    %n = size y
    %c = lt %i, %n
    if %c {
      %v = load x[%i]
      store y[%i], %v
    }
  }
}
kernel "copy64" {
  buffer x : u64[*] in
  buffer y : u64[*] out
  body {
    %i = global_id.x
    %n = size y
    %c = lt %i, %n
    if %c {
      %v = load x[%i]
      store y[%i], %v
    }
  }
}
)");
  const auto run = [&](const char* kernel, const std::string& in, const std::string& out) {
    return kiln_program({"run", path, kernel, "--grid", "1", "--block", "32", "--arg", in, "--arg", out});
  };
  CHECK(json_of(run("copy32", "in:i32:[-2147483648,2147483647,-0x10]", "out:i32:3"))["outputs"][0]["values"] ==
        json::array({-2147483648, 2147483647, -16}));
  CHECK(json_of(run("copy64", "in:u64:[18446744073709551615,0xff]", "out:u64:2"))["outputs"][0]["values"] ==
        json::array({18446744073709551615u, 255}));
  check_refused(run("copy32", "in:i32:[2147483648]", "out:i32:1"), 2, {"2147483648", "range"});
  check_refused(run("copy64", "in:u64:[-1]", "out:u64:1"), 2, {"-1", "range"});
  check_refused(run("copy64", "in:u64:[1.5]", "out:u64:1"), 2, {"1.5"});
  check_refused(run("copy64", "in:u64:[18446744073709551616]", "out:u64:1"), 2, {"range"});
}

TEST_CASE("a float that is too small rounds as in C, in decimal and in hexadecimal") {
  const auto result = run_saxpy({"in:f32:[1e-46,-1e-46,1e-45,-0x1p-200,0x1.8p1]", "inout:f32:5:zero", "f32:1"}, {"--bits"});
  CAPTURE(result.err);
  // Nothing is added to a zero that has no sign, so all that is too small ends as 0.
  CHECK(json_of(result)["outputs"][0]["values"] == json::array({"0x00000000", "0x00000000", "0x00000001", "0x00000000", "0x40400000"}));
}

TEST_CASE("a failure in a kernel file that names no places is at its line of that file") {
  TempFolder folder;
  const std::string path = folder.write("wild.kir", R"(kir 1
kernel "wild" {
  buffer x : f32[*] in
  buffer y : f32[*] out
  body {
    %i = global_id.x
    # nobody looks at it

    %v = load x[%i]
    store y[%i], %v
  }
}
)");
  auto failure = json_of(
      kiln_program({"run", path, "wild", "--grid", "1", "--block", "4", "--arg", "in:f32:[1,2,3]", "--arg", "out:f32:4"}))["failure"];
  CHECK(failure["place"] == path + ":9");
  CHECK(failure["bounds"]["place"] == path + ":9");
  CHECK(kiln_program({"list", path}).out.find(path + ":2") != std::string::npos);
  CHECK(kiln_program({"show", path, "wild"}).out.find(path + ":2") != std::string::npos);
  // The text itself stays as it is written.
  CHECK(kiln_program({"show", path, "wild", "--ir"}).out.find("file") == std::string::npos);
}

TEST_CASE("a failed launch prints the failure with its fields and ends with 1") {
  TempFolder folder;
  const std::string path = folder.write("wild.kir", R"(kir 1
kernel "wild" {
  file "wild.cpp"
  buffer x : f32[*] in
  buffer y : f32[*] out
  body {
    %i = global_id.x
    %v = load x[%i] @0:7
    %n = size y
    %c = lt %i, %n
    if %c {
      store y[%i], %v
    }
  }
}
)");
  const auto result = kiln_program({"run", path, "wild", "--grid", "1", "--block", "4", "--arg", "in:f32:[1,2,3]", "--arg", "out:f32:4"});
  CHECK(result.status == 1);
  auto failure = json_of(result)["failure"];
  CHECK(json_of(result)["outputs"].empty());
  CHECK(failure["code"] == "Bounds");
  CHECK(failure["kernel"] == "wild");
  CHECK(failure["place"] == "wild.cpp:7");
  CHECK(failure["bounds"]["memory"] == "x");
  CHECK(failure["bounds"]["operation"] == "load");
  CHECK(failure["bounds"]["index"] == 3);
  CHECK(failure["bounds"]["extent"] == 3);
  CHECK(failure["bounds"]["thread"] == json::array({3, 0, 0}));
  CHECK(failure["bounds"]["block"] == json::array({0, 0, 0}));
  CHECK(failure["check"] == nullptr);
  CHECK(failure["requested"] == nullptr);  // index and extent are among the bounds
  CHECK(failure["limit"] == nullptr);
  CHECK(failure["text"].get<std::string>().find("wild.cpp:7") != std::string::npos);

  const auto zero = kiln_program({"run", path, "wild", "--grid", "1", "--block", "0", "--arg", "in:f32:[1]", "--arg", "out:f32:1"});
  CHECK(zero.status == 1);
  CHECK(json_of(zero)["failure"]["code"] == "Validation");
  CHECK(json_of(zero)["failure"]["rule"] == "ZeroDimension");

  const auto require = kiln_program(
      {"run", kSaxpy, "saxpy", "--grid", "1", "--block", "32", "--arg", "in:f32:[1]", "--arg", "inout:f32:[1,2]", "--arg", "f32:1"});
  CHECK(require.status == 1);
  CHECK(json_of(require)["failure"]["code"] == "Validation");
  CHECK(json_of(require)["failure"]["text"].get<std::string>().find("x.size() >= y.size()") != std::string::npos);
}

TEST_CASE("a kernel that does not record or is not valid fails as a launch does: the failure as JSON, and 1") {
  struct Row {
    const char *kernel, *rule;
  };
  for (const Row& row : {Row{"leaves", "Recording"}, Row{"divergent", "InvalidKernel"}}) {
    CAPTURE(row.kernel);
    const auto result = kiln_program(
        {"run", KILN_BINARY_DIR "/lib/libkiln_test_cli_broken.so", row.kernel, "--grid", "1", "--block", "4", "--arg", "out:f32:4"});
    CHECK(result.status == 1);
    REQUIRE(!result.out.empty());
    const auto failure = json_of(result)["failure"];
    CHECK(json_of(result)["outputs"].empty());
    CHECK(failure["rule"] == row.rule);
    CHECK(failure["kernel"].get<std::string>().find(row.kernel) != std::string::npos);
    CHECK(failure["place"].get<std::string>().find("broken.cpp:") != std::string::npos);
  }
  const auto show = kiln_program({"show", KILN_BINARY_DIR "/lib/libkiln_test_cli_broken.so", "leaves"});
  CHECK(show.status == 1);
  CHECK(show.err.find("leaves") != std::string::npos);
}

TEST_CASE("a misspelt option of run is named though its value is one word too many") {
  const auto result = kiln_program({"run", kSaxpy, "saxpy", "--gird", "2", "--block", "4"});
  CHECK(result.status == 2);
  CHECK(result.err.find("--gird") != std::string::npos);
  CHECK(result.err.find("--grid") != std::string::npos);
}

TEST_CASE("an empty grid succeeds and does nothing") {
  const auto result = kiln_program(
      {"run", kSaxpy, "saxpy", "--grid", "0", "--block", "32", "--arg", "in:f32:[1]", "--arg", "inout:f32:[5]", "--arg", "f32:1"});
  CHECK(result.status == 0);
  CHECK(json_of(result)["outputs"][0]["values"] == json::array({5.0}));
}

TEST_CASE("a device that does not exist is refused with the list") {
  const auto result = run_saxpy({"in:f32:[1]", "inout:f32:[1]", "f32:1"}, {"--device", "abacus"});
  CHECK(result.status == 1);
  CHECK(result.err.find("abacus") != std::string::npos);
  CHECK(result.err.find("cpu") != std::string::npos);
}

TEST_CASE("checked and unchecked code give the same outputs") {
  for (const char* mode : {"checked", "unchecked"}) {
    auto result = json_of(run_saxpy({"in:f32:iota:40", "inout:f32:40:iota", "f32:3"}, {"--mode", mode}));
    CHECK(result["outputs"][0]["values"][31] == 124.0);
    CHECK(result["outputs"][0]["values"][32] == 32.0);  // one block of 32
  }
}

TEST_CASE("lines that a kernel logs are on stderr, with --json in the document; what does not fit is told; a trap is a failure") {
  TempFolder folder;
  const std::string kernel = folder.write("says.kir", R"(kir 1
kernel "says" {
  file "says.cpp"
  buffer y : u32[*] inout
  body {
    %i = global_id.x
    %v = load y[%i]
    log_text %i, %v, "y[{}] = {:x}" @0:7
    %nine = const 9 : u32
    %bad = eq %v, %nine
    if %bad {
      trap "nine" @0:9
      return
    }
  }
}
)");
  // On one worker: the lines of several blocks come in any order.
  const auto run = [&](const std::string& y, const std::vector<std::string>& more, std::vector<std::string> environment = {}) {
    environment.push_back("KILN_CPU_WORKERS=1");
    std::vector<std::string> argv{"run", kernel, "says", "--grid", "2", "--block", "1", "--arg", "inout:u32:" + y};
    argv.insert(argv.end(), more.begin(), more.end());
    return kiln_program(argv, environment);
  };
  const auto plain = run("[3,255]", {});
  CHECK(plain.status == 0);
  CHECK(plain.err == "y[0] = 3\ny[1] = ff\n");
  CHECK(!json_of(plain).contains("log"));
  const auto in_json = run("[3,255]", {"--json"});
  CHECK(in_json.err == "");
  CHECK(json_of(in_json)["log"] == json::parse(R"([
    {"text": "y[0] = 3", "place": "says.cpp:7", "block": [0, 0, 0], "thread": [0, 0, 0]},
    {"text": "y[1] = ff", "place": "says.cpp:7", "block": [1, 0, 0], "thread": [0, 0, 0]}])"));
  const auto small = run("[3,255]", {"--json"}, {"KILN_LOG_BYTES=128"});  // one record
  CHECK(json_of(small)["log"].size() == 2);
  CHECK(json_of(small)["log"][1]["missing"] == 1);
  CHECK(json_of(small)["log"][1]["text"] ==
        "1 line of log by kernel 'says' was dropped: the log of a launch has 128 bytes; raise KILN_LOG_BYTES, or call the "
        "client's log_bytes()");
  const auto wrong = run("[3,255]", {}, {"KILN_LOG_BYTES=much"});
  CHECK(wrong.status == 1);
  CHECK(wrong.err.find("the variable KILN_LOG_BYTES is 'much', and it takes a number from 0 to ") != std::string::npos);
  const auto trapped = run("[3,9]", {"--json"});
  CHECK(trapped.status == 1);
  const json document = json_of(trapped);
  CHECK(document["log"].size() == 2);
  CHECK(document["failure"]["code"] == "Trapped");
  CHECK(document["failure"]["place"] == "says.cpp:9");
  CHECK(document["failure"]["kernel"] == "says");
  CHECK(document["failure"]["message"] == "trap: nine, in thread (0, 0, 0) of block (1, 0, 0)");
  CHECK(document["failure"]["bounds"] == nullptr);
  CHECK(document["failure"]["check"] ==
        json::parse(R"({"operation": "trap", "place": "says.cpp:9", "thread": [0, 0, 0], "block": [1, 0, 0]})"));
}

TEST_CASE("a check that fails in a kernel that writes nothing is told by a warning, since no read can give it") {
  TempFolder folder;
  const std::string kernel = folder.write("silent.kir", R"(kir 1
kernel "silent" {
  file "silent.cpp"
  buffer y : u32[*] in
  body {
    %i = global_id.x
    %v = load y[%i]
    %n = const 7 : u32
    %c = lt %v, %n
    check %c, %v, "value {}" @0:9
  }
}
)");
  const auto run = [&](const std::string& y) {
    return kiln_program({"run", kernel, "silent", "--grid", "1", "--block", "2", "--arg", "in:u32:" + y});
  };
  CHECK(run("[3,6]").err == "");
  const std::string told = run("[3,200]").err;
  CHECK(told.find("a launch failed that writes nothing, so that no read will tell: check failed: value 200") != std::string::npos);
  CHECK(told.find("silent.cpp:9") != std::string::npos);
}

TEST_CASE("a check that fails has no index and no extent in its failure, but who failed it and where") {
  TempFolder folder;
  const std::string kernel = folder.write("checks.kir", R"(kir 1
kernel "checks" {
  file "checks.cpp"
  buffer y : u32[*] inout
  body {
    %i = global_id.x
    %v = load y[%i]
    %n = const 7 : u32
    %c = lt %v, %n
    check %c, %v, %n, "value {} of {}" @0:9
    store y[%i], %n
  }
}
)");
  const auto result = kiln_program({"run", kernel, "checks", "--grid", "1", "--block", "2", "--arg", "inout:u32:[3,200]"});
  CHECK(result.status == 1);
  const json failure = json_of(result)["failure"];
  CHECK(failure["code"] == "CheckFailed");
  CHECK(failure["bounds"] == nullptr);
  CHECK(failure["check"] == json::parse(R"({"operation": "check", "place": "checks.cpp:9", "thread": [1, 0, 0], "block": [0, 0, 0]})"));
  CHECK(failure["message"] == "check failed: value 200 of 7, in thread (1, 0, 0) of block (0, 0, 0)");
}
