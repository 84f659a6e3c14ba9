// kiln emit: the files it writes, all or nothing, the same bytes each time, on a machine with no GPU.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "cli/cli.h"

using namespace kiln::test;

namespace {

// One kernel of the given name that stores a constant; without places there is nothing to debug by.
std::string kernel_named(const std::string& name, bool places = true) {
  std::string quoted;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) >= 0x80) {
      static constexpr char digits[] = "0123456789abcdef";
      quoted += std::string("\\x") + digits[static_cast<unsigned char>(c) >> 4] + digits[c & 15];
    } else {
      quoted += c;
    }
  }
  std::string text = "kernel \"" + quoted + R"(" {
  file "named.cpp"
  loc @0:3
  buffer y : u32[*] out
  body {
    %i = global_id.x @0:4
    %n = size y @0:5
    %c = lt %i, %n @0:5
    if %c @0:5 {
      store y[%i], %i @0:6
    }
  }
}
)";
  if (places) return text;
  const std::string head = "  file \"named.cpp\"\n  loc @0:3\n";
  text.erase(text.find(head), head.size());
  for (std::size_t at = 0; (at = text.find(" @0:")) != std::string::npos;) text.erase(at, 5);
  return text;
}

}  // namespace

TEST_CASE("emit tells what is wrong with every kernel of a library, and writes nothing") {
  const TempFolder folder;
  const auto r = kiln_program(
      {"emit", KILN_BINARY_DIR "/lib/libkiln_test_cli_broken.so", "--arch", "sm_80", "--emit", "ptx", "-o", folder.file("out")});
  CHECK(r.status == 1);
  CAPTURE(r.err);
  for (const char* part : {"2 of 2 kernels cannot be made, so nothing is written", "cli_broken::leaves", "cli_broken::divergent",
                           "broken.cpp:9", "broken.cpp:15"})
    CHECK_MESSAGE(r.err.find(part) != std::string::npos, part);
  CHECK_FALSE(std::filesystem::exists(folder.file("out")));
  const auto one = kiln_program(
      {"emit", KILN_BINARY_DIR "/lib/libkiln_test_cli_broken.so", "leaves", "--arch", "sm_80", "--emit", "ptx", "-o", folder.file("out")});
  CHECK(one.status == 1);
  CHECK(one.err.find("kernels cannot be made") == std::string::npos);
}

TEST_CASE("emit writes each kind of file under symbol, architecture and extension") {
  TempFolder folder;
  const std::string out = folder.file("a/b");
  const auto result = kiln_program(
      {"emit", kSaxpy, "saxpy", "--arch", "sm_80,sm_90a,x86-64-v3", "--emit", "ptx,object,llvm,kir,json", "--block", "64", "-o", out});
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  CHECK(files_in(out) == std::vector<std::string>{"saxpy.json", "saxpy.kir", "saxpy.sm_80.ll", "saxpy.sm_80.ptx", "saxpy.sm_90a.ll",
                                                  "saxpy.sm_90a.ptx", "saxpy.x86-64-v3.ll", "saxpy.x86-64-v3.o"});
  CHECK(read_file(out + "/saxpy.sm_80.ptx").find(".target sm_80\n") != std::string::npos);
  CHECK(read_file(out + "/saxpy.sm_90a.ptx").find(".target sm_90a\n") != std::string::npos);
  CHECK(read_file(out + "/saxpy.x86-64-v3.o")
            .starts_with("\x7f"
                         "ELF"));
  CHECK(kiln_program({"list", out + "/saxpy.kir"}).status == 0);

  const auto json = nlohmann::json::parse(read_file(out + "/saxpy.json"));
  CHECK(json["kernel"] == "saxpy");
  CHECK(json["symbol"] == "saxpy");
  CHECK(json["checked"] == true);
  CHECK(json["targets"].size() == 3);
  CHECK(json["targets"][0]["file"] == "saxpy.sm_80.ptx");
  CHECK(json["requirement"]["min_sm"] == 75);
  CHECK(json["shared"]["static_bytes"] == 0);
  // x: pointer, extent; y: pointer, extent; a; the fault record.
  auto& fields = json["parameters"]["fields"];
  struct Field {
    const char *kind, *param;
    int offset, size;
  };
  const Field expected[] = {
      {"pointer", "x", 0, 8}, {"extent", "x", 8, 8}, {"pointer", "y", 16, 8}, {"extent", "y", 24, 8}, {"scalar", "a", 32, 4}};
  REQUIRE(fields.size() == 6);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(fields[i]["kind"] == expected[i].kind);
    CHECK(fields[i]["param"] == expected[i].param);
    CHECK(fields[i]["offset"] == expected[i].offset);
    CHECK(fields[i]["size"] == expected[i].size);
  }
  CHECK(fields[5]["kind"] == "fault");
  CHECK(fields[5]["offset"] == 40);
}

TEST_CASE("unchecked code has no fault parameter") {
  TempFolder folder;
  REQUIRE(kiln_program({"emit", kSaxpy, "--mode", "unchecked", "--emit", "json", "-o", folder.path()}).status == 0);
  const auto json = nlohmann::json::parse(read_file(folder.file("saxpy.json")));
  CHECK(json["checked"] == false);
  CHECK(json["parameters"]["fields"].size() == 5);
}

TEST_CASE("the same emit makes the same bytes, whatever the folder") {
  TempFolder one, two;
  for (const TempFolder* folder : {&one, &two})
    REQUIRE(kiln_program({"emit", kSaxpy, "--arch", "sm_75,sm_120,x86-64,x86-64-v4", "--emit", "ptx,object,llvm,kir,json", "--block", "96",
                          "-o", folder->path()})
                .status == 0);
  REQUIRE(files_in(one.path()) == files_in(two.path()));
  CHECK(files_in(one.path()).size() == 10);
  for (const std::string& name : files_in(one.path())) {
    CAPTURE(name);
    CHECK((read_file(one.file(name)) == read_file(two.file(name))));
  }
}

TEST_CASE("emit that fails anywhere writes nothing and leaves what was there") {
  TempFolder folder;
  folder.write("input.kir", read_file(kSaxpy) + R"(
kernel "bad" {
  buffer x : f32[*] in
  body {
    %0 = const 0 : u32
    %v = const 1.0 : f32
    store x[%0], %v
  }
}
)");
  const std::string out = folder.file("out");
  CHECK(kiln_program({"emit", folder.file("input.kir"), "--arch", "sm_80", "--emit", "ptx,kir", "-o", out}).status == 1);
  CHECK(!std::filesystem::exists(out));

  // A folder that has the name of one of the files: found before or after the others were written, nothing stays.
  std::filesystem::create_directories(out + "/saxpy.kir");
  folder.write("out/saxpy.sm_80.ptx", "old");
  const auto result = kiln_program({"emit", kSaxpy, "--arch", "sm_80", "--emit", "ptx,kir,json", "-o", out});
  check_refused(result, 1, {"saxpy.kir", "folder"});
  CHECK(files_in(out) == std::vector<std::string>{"saxpy.kir", "saxpy.sm_80.ptx"});
  CHECK(read_file(out + "/saxpy.sm_80.ptx") == "old");

  check_refused(kiln_program({"emit", kSaxpy, "--emit", "kir", "-o", folder.write("file", "x") + "/below"}), 1, {"file"});
  check_refused(kiln_program({"emit", kSaxpy, "--emit", "kir", "-o", "/proc/nothing"}), 1, {"/proc/nothing"});
}

TEST_CASE("a cubin needs ptxas and says so when there is none") {
  TempFolder folder;
  const auto result =
      kiln_program({"emit", kSaxpy, "--arch", "sm_80", "--emit", "cubin,ptx", "-o", folder.file("out")}, {"PATH=/nonexistent"});
  check_refused(result, 1, {"cubin", "ptxas"});
  CHECK(files_in(folder.file("out")).empty());
}

// HD-CLI-1
TEST_CASE("the target line is what was asked for, and no driver is opened") {
  // A driver that says so on the standard error when it is opened.
  const std::vector<std::string> loud{"KILN_CUDA_LIBRARY=" KILN_BINARY_DIR "/lib/libkiln_simcuda.so", "KILN_SIMCUDA_FAULTS={"};
  REQUIRE(kiln_program({"devices"}, loud).err.find("KILN_SIMCUDA_FAULTS") != std::string::npos);
  for (const char* arch : {"sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120"}) {
    TempFolder folder;
    CAPTURE(arch);
    const auto result = kiln_program({"emit", kSaxpy, "--arch", arch, "--emit", "ptx", "-o", folder.path()}, loud);
    CAPTURE(result.err);
    REQUIRE(result.status == 0);
    CHECK(result.err == "");
    const std::string ptx = read_file(folder.file(std::string("saxpy.") + arch + ".ptx"));
    CHECK(ptx.find(std::string(".target ") + arch + "\n") != std::string::npos);
  }
  // sm_70, sm_91, banana: see the table of wrong command lines.
}

// HD-CLI-2
TEST_CASE("names that PTX cannot hold become distinct symbols and are found by their own name") {
  const std::string long_name(300, 'x');
  const std::vector<std::string> names{"scale.v1", "scale-v1", "scale v1",      "scale<float, 3>", "9lives",
                                       "\xce\xbb", long_name,  long_name + "y", "scale_v1"};
  std::string text = "kir 1\n";
  for (const std::string& name : names) text += kernel_named(name);
  TempFolder folder;
  const std::string source = folder.write("names.kir", text), out = folder.file("out");
  const auto result = kiln_program({"emit", source, "--arch", "sm_80", "--emit", "ptx,json", "-o", out});
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  std::set<std::string> symbols, kernels;
  for (const std::string& file : files_in(out)) {
    if (!file.ends_with(".json")) continue;
    const auto json = nlohmann::json::parse(read_file(out + "/" + file));
    const std::string symbol = json["symbol"];
    symbols.insert(symbol);
    kernels.insert(json["kernel"].get<std::string>());
    CHECK(symbol.size() <= 240);
    CHECK(symbol.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$") == std::string::npos);
    CHECK((symbol[0] < '0' || symbol[0] > '9'));
    const std::string ptx = read_file(out + "/" + symbol + ".sm_80.ptx");
    CHECK(ptx.find(".entry " + symbol) != std::string::npos);
  }
  CHECK(symbols.size() == names.size());
  CHECK(kernels == std::set<std::string>(names.begin(), names.end()));
  // The same without anything to debug by, and what the assembler says of either, where there is one.
  std::string bare = "kir 1\n";
  for (const std::string& name : names) bare += kernel_named(name, false);
  const std::string bare_source = folder.write("bare.kir", bare);
  const auto bare_result = kiln_program({"emit", bare_source, "--arch", "sm_80", "--emit", "ptx", "-o", folder.file("bare")});
  CAPTURE(bare_result.err);
  REQUIRE(bare_result.status == 0);
  CHECK(files_in(folder.file("bare")).size() == names.size());
  for (const std::string& symbol : symbols) {
    const std::string with = read_file(out + "/" + symbol + ".sm_80.ptx"),
                      without = read_file(folder.file("bare/" + symbol + ".sm_80.ptx"));
    CHECK(with.find(".loc") != std::string::npos);
    CHECK(without.find(".loc") == std::string::npos);
    CHECK(without.find(".entry " + symbol + "(") != std::string::npos);
  }
  if (run_process({"sh", "-c", "command -v ptxas"}).status == 0) {
    for (const std::string& from : {source, bare_source}) {
      const auto assembled = kiln_program({"emit", from, "--arch", "sm_80", "--emit", "cubin", "-o", folder.file("cubin")});
      CAPTURE(assembled.err);
      CHECK(assembled.status == 0);
    }
  }
  // Each runs by its original name.
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto run = kiln_program({"run", source, name, "--grid", "1", "--block", "4", "--arg", "out:u32:3"});
    CHECK(run.status == 0);
    CHECK(json_of(run)["outputs"][0]["values"] == nlohmann::json::array({0, 1, 2}));
  }
  // The original name is in the text of an error.
  check_refused(kiln_program({"emit", source, "scale<float, 3>", "--arch", "sm_80", "--emit", "object", "-o", out}), 2, {"--emit object"});
  check_refused(kiln_program({"emit", source, "scale<float, 3>", "--arch", "x86-64", "--emit", "object", "-o", out}), 2,
                {"scale<float, 3>"});
  // An empty name is refused.
  const std::string unnamed = folder.write("unnamed.kir", "kir 1\n" + kernel_named(""));
  CHECK(kiln_program({"emit", unnamed, "--arch", "sm_80", "--emit", "ptx", "-o", folder.file("none")}).status == 1);
  CHECK(files_in(folder.file("none")).empty());
}

TEST_CASE("ptxas, where there is one, assembles what emit writes") {
  TempFolder folder;
  const auto have = run_process({"sh", "-c", "command -v ptxas"});
  if (have.status != 0) return;
  const auto result = kiln_program({"emit", kSaxpy, "--arch", "sm_75,sm_80,sm_90,sm_120", "--emit", "cubin", "-o", folder.path()});
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(files_in(folder.path()).size() == 4);
  CHECK(read_file(folder.file("saxpy.sm_80.cubin"))
            .starts_with("\x7f"
                         "ELF"));
}

TEST_CASE("loops nested deep compile: a legal kernel never runs out of the caller's stack") {
  TempFolder folder;
  std::string text =
      "kir 1\nkernel \"deep\" {\nbuffer y : u32[*] inout\nslot n : u32\nbody {\n%z = const 0 : u32\n%three = const 3 : u32\n";
  constexpr int kDepth = 76;
  for (int i = 0; i < kDepth; ++i)
    text += "while {\n%g" + std::to_string(i) + " = get n\n%c" + std::to_string(i) + " = lt %g" + std::to_string(i) + ", %three\nyield %c" +
            std::to_string(i) + "\n} do {\n";
  text += "set n, %three\nstore y[%z], %three\n";
  for (int i = 0; i < kDepth; ++i) text += "}\n";
  const std::string source = folder.write("deep.kir", text + "}\n}\n");
  const auto result = kiln_program({"emit", source, "--arch", "x86-64-v3", "--emit", "object", "--block", "32", "-o", folder.file("o")});
  CAPTURE(result.err);
  CHECK(result.status == 0);
}

TEST_CASE("an empty output folder, two kernels of one name and an output that cannot be written are errors") {
  TempFolder folder;
  const auto nowhere = kiln_program({"emit", kSaxpy, "--arch", "sm_80", "--emit", "ptx", "-o", ""});
  CHECK(nowhere.status == 2);
  CHECK(nowhere.err.find("--output") != std::string::npos);
  const std::string source = folder.write("twice.kir", "kir 1\n" + kernel_named("same") + kernel_named("same"));
  const auto twice = kiln_program({"emit", source, "--arch", "sm_80", "--emit", "ptx", "-o", folder.file("o")});
  CHECK(twice.status == 1);
  CHECK(twice.err.find("'same'") != std::string::npos);
  CHECK(kiln_program({"list", source}).status == 1);
  // A name that is no UTF-8 is told as well as JSON can.
  const std::string odd = folder.write("odd.kir", "kir 1\n" + kernel_named("odd\xff"));
  CHECK(kiln_program({"emit", odd, "--arch", "sm_80", "--emit", "ptx,json", "-o", folder.file("odd")}).status == 0);
}

TEST_CASE("emit that fails at its last file leaves the older files as they were") {
  TempFolder folder;
  const std::string long_name(200, 'x');
  const std::string source = folder.write("two.kir", "kir 1\n" + kernel_named("short") + kernel_named(long_name));
  // A folder so deep that the path of the second file, but not those of the first and the temporary ones, is longer than a path may be.
  std::string out = folder.path();
  while (out.size() < 3950) out += "/" + std::string(std::min<std::size_t>(200, 3950 - out.size()), 'd');
  REQUIRE(kiln_program({"emit", source, "short", "--emit", "kir", "-o", out}).status == 0);
  REQUIRE(files_in(out) == std::vector<std::string>{"short.kir"});
  const std::string target = out + "/short.kir", before = read_file(target);
  const auto result = kiln_program(
      {"emit",
       folder.write("two.kir", "kir 1\n" + kernel_named("short").replace(kernel_named("short").find("named.cpp"), 9, "other.cpp") +
                                   kernel_named(long_name)),
       "--emit", "kir", "-o", out});
  check_refused(result, 1, {long_name, "too long"});
  CHECK(files_in(out) == std::vector<std::string>{"short.kir"});
  CHECK((read_file(target) == before));
}

TEST_CASE("emit removes what a killed one left behind, unless another one is writing into the folder") {
  TempFolder folder;
  const std::string left = ".4711-0.kiln-tmp";
  const std::vector<std::string> others{".4711.kiln-tmp", ".a-1.kiln-tmp", "4711-0.kiln-tmp"};  // no names of ours
  for (const std::string& name : others) folder.write(name, "x");
  folder.write(left, "half");
  const std::vector<std::string> emit{"emit", kSaxpy, "--emit", "kir", "-o", folder.path()};
  const int other = open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(flock(other, LOCK_SH) == 0);
  CHECK(kiln_program(emit).status == 0);
  CHECK(std::filesystem::exists(folder.file(left)));
  close(other);
  CHECK(kiln_program(emit).status == 0);
  CHECK(!std::filesystem::exists(folder.file(left)));
  CHECK(files_in(folder.path()).size() == others.size() + 1);
}
