// Damaged and absurd PTX: whatever the text is, loading it is an error or a module, never a crash, a hang or memory that nobody has; and
// whatever a kernel does with the odd instructions, the host is not harmed.
#include <chrono>

#include "simcuda/ptx_testing.h"

using namespace kiln::simcuda;
using namespace kiln::simcuda::testing;
namespace cuda = kiln::cuda;

namespace {

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t k = 0; k < times; ++k) all += text;
  return all;
}

std::string entry(const std::string& body, const std::string& before = "", const std::string& params = "", const std::string& bounds = "") {
  return header() + before + "\n.visible .entry k(" + params + ") " + bounds +
         "\n{\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .pred %p<4>;\n" + body + "\nret;\n}\n";
}

// Refused, and the log has these words.
void check_refused(const std::string& ptx, const std::string& words) {
  const LoadResult r = load_text(ptx);
  INFO(r.failure.log);
  CHECK(r.module == nullptr);
  CHECK(r.failure.code == cuda::CUDA_ERROR_INVALID_PTX);
  CHECK(r.failure.log.find(words) != std::string::npos);
}

// With a function, a table of branches, variables, vectors and calls in it: something of everything.
const std::string& sample() {
  static const std::string text = header() + R"(.file 1 "a.cpp"
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .b8 text[8] = {104, 105, 0};
.global .align 8 .u64 pointers[2] = {text, generic(text)+4};
.func (.param .b32 result) twice(.param .b32 x)
{
.reg .b32 %r<4>;
.local .align 4 .b8 kept[16];
ld.param.u32 %r1, [x];
st.local.u32 [kept+4], %r1;
add.s32 %r2, %r1, %r1;
st.param.b32 [result], %r2;
ret;
}
.visible .entry k(.param .u64 .ptr .global .align 4 out, .param .align 8 .b8 pair[16])
.maxntid 256, 1, 1
{
.reg .pred %p<4>;
.reg .b32 %r<8>;
.reg .b64 %rd<4>;
.shared .align 4 .b8 tile[128];
.loc 1 12 3
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra $done;
{
.param .b32 a; .param .b32 b;
st.param.b32 [a], %r1;
call.uni (b), twice, (a);
ld.param.b32 %r2, [b];
}
and.b32 %r3, %r1, 1;
$table: .branchtargets $even, $odd;
brx.idx %r3, $table;
$even: mov.u32 %r4, tile;
st.shared.v2.u32 [%r4], {%r2, 0x10};
bra $done;
$odd: atom.global.add.u32 %r5|%p2, [%rd1], 1;
$done:
ret;
}
)";
  return text;
}

}  // namespace

TEST_CASE("a text that is cut anywhere is refused or loads") {
  const std::string& text = sample();
  CHECK(load_text(text).failure.log.find("atom") != std::string::npos);
  for (std::size_t n = 0; n < text.size(); ++n) {
    const LoadResult r = load_text(text.substr(0, n));
    CHECK((r.module != nullptr || !r.failure.log.empty()));
  }
}

TEST_CASE("a function or variable with a long name that is declared before it is defined is found by its name") {
  const std::string name = "a_name_that_is_longer_than_what_a_string_holds_without_memory_of_its_own";
  const std::string text = header() + ".func " + name + "();\n.extern .global .u32 " + name + "_v;\n.global .u32 " + name + "_v = 3;\n" +
                           ".func " + name + "()\n{\nret;\n}\n" + repeated(".global .u32 x" + name + "1;\n", 1) +
                           ".visible .entry k(.param .u64 out)\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\ncall " + name +
                           ";\nld.param.u64 %rd1, [out];\nld.global.u32 %r1, [" + name + "_v];\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
  const LoadResult r = load_text(text);
  const Device<u32> out(std::vector<u32>{0});
  CHECK_FALSE(launch(r, "k", {}, Arguments().add(out.address())).violation.has_value());
  CHECK(out.get() == std::vector<u32>{3});
}

TEST_CASE("what is nested too deeply is refused, of whatever kind") {
  const std::size_t deep = 200'000;
  const char* words = "memory exhausted";
  check_refused(entry("mov.u32 %r1, " + repeated("(", deep) + "1" + repeated(")", deep) + ";"), words);
  check_refused(entry("mov.u32 %r1, " + repeated("-", deep) + "1;"), words);
  check_refused(entry("mov.u32 %r1, 1" + repeated("+(2", deep) + ";"), words);
  check_refused(entry("mov.b64 " + repeated("{", deep) + ";"), words);
  check_refused(entry("mov.b64 " + repeated("%r1|", deep) + "%r1;"), words);
  check_refused(entry(repeated("{", deep) + repeated("}", deep)), words);
  check_refused(entry(repeated(".extern ", deep) + ".shared .b8 x[];"), words);
  check_refused(entry("", ".global .b32 g[2] = " + repeated("{", deep) + ";"), words);
  CHECK(load_text(entry(repeated("{", 500) + "mov.u32 %r1, " + repeated("(", 400) + "1" + repeated(")", 400) + ";" + repeated("}", 500)))
            .module != nullptr);
}

TEST_CASE("numbers beyond what they stand for are refused, not cut") {
  for (const char* n : {"4294967296", "4294967297", "18446744073709551615"}) {
    CAPTURE(n);
    const std::string number = n;
    check_refused(entry("", "", ".param .b8 q[" + number + "]"), "parameter");
    check_refused(entry(".shared .b8 s[" + number + "]; mov.u32 %r1, s;"), "uses too much shared data");
    check_refused(entry(".local .b8 l[" + number + "]; mov.u64 %rd1, l;"), "local data");
    check_refused(entry("", ".global .b8 g[" + number + "][" + number + "];"), "Constant overflow");
    check_refused(entry("", "", "", ".maxntid " + number), "Constant overflow");
    check_refused(entry("", "", "", ".reqntid 1, " + number), "Constant overflow");
    check_refused(entry(".reg .b32 %z<" + number + ">;"), "Constant overflow");
    check_refused(entry(".loc " + number + " 1 1"), "Constant overflow");
  }
  check_refused(entry("", "", "", ".maxntid 0"), "Positive non-zero value expected for maxntid");
  check_refused(entry("", "", "", ".reqntid 0, 1, 1"), "Positive non-zero value expected for reqntid");
  check_refused(entry("", ".global .b8 g[0];"), "Non-external variable 'g' has incomplete type");
  check_refused(entry("", ".global .b8 g[-1];"), "Parsing error near '-'");
  check_refused(entry("", ".global .align 1024 .b8 g[4];"), "Alignment 1024 is not known to the simulated driver");
  check_refused(entry("", ".global .align 9223372036854775808 .b8 g[4];"), "Alignment must be a power of two");
  check_refused(entry(".shared .align 2147483648 .b8 s[4]; mov.u32 %r1, s;"), "Alignment 2147483648 is not known");
  check_refused(".version 99999999999999999999999.0\n.target sm_90\n", "");
  const LoadResult big = load_text(entry("", ".global .b8 g[18446744073709551615];"));
  CHECK(big.failure.code == cuda::CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("parameters of an entry have the assembler's limit, which depends on the PTX version") {
  CHECK(load_text(entry("", "", ".param .b8 q[32764]")).module != nullptr);
  check_refused(entry("", "", ".param .b8 q[32765]"), "Entry function 'k' uses too much parameter space (0x7ffd bytes, 0x7ffc max).");
  const auto older = [](const char* bytes) {
    return load_text(".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .b8 q[" + std::string(bytes) + "])\n{\nret;\n}\n");
  };
  CHECK(older("4352").module != nullptr);
  CHECK(older("4353").failure.log.find("(0x1101 bytes, 0x1100 max)") != std::string::npos);
}

TEST_CASE("registers and variables that are declared and never used cost nothing") {
  const LoadResult r =
      load_text(entry(".reg .b32 %z<4000000000>; .reg .b128 %w<4000000000>; .reg .pred %q<4000000000>; mov.u32 %z3999999999, 1;",
                      ".global .b8 huge[60000000000] = {1, 2};"));
  INFO(r.failure.log);
  REQUIRE(r.module != nullptr);
  CHECK(entries(*r.module)[0].registers < 20);
  CHECK_FALSE(launch(r, "k", {{1, 1, 1}, {1024, 1, 1}}, {}).violation.has_value());
}

TEST_CASE("a fresh variable is zero, also where another had its bytes") {
  Memory small(std::uint64_t{4} << 20);
  for (int k = 0; k < 40; ++k) {
    const LoadResult r = load(header() + ".visible .global .b8 g[300000] = {1};\n", {90, 90}, small);
    REQUIRE(r.module != nullptr);
    const auto g = global(*r.module, "g").value();
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(small.range(g.address, g.bytes, Access::Read).host);
    REQUIRE(bytes != nullptr);
    CHECK(bytes[0] == 1);
    u32 sum = 0;
    for (std::size_t i = 1; i < 300000; ++i) sum += bytes[i];
    CHECK(sum == 0);
    std::memset(small.range(g.address, g.bytes, Access::Write).host, 7, g.bytes);
  }
}

TEST_CASE("functions that call each other many times are loaded in no time") {
  std::string text = header() + ".func f0()\n{\nret;\n}\n";
  for (int k = 1; k <= 64; ++k)
    text +=
        ".func f" + std::to_string(k) + "()\n{\n.local .b8 x[16];\n" + repeated("call f" + std::to_string(k - 1) + ";\n", 2) + "ret;\n}\n";
  const LoadResult r = load_text(text + ".visible .entry k()\n{\ncall f64;\nret;\n}\n");
  REQUIRE(r.module != nullptr);
  CHECK(entries(*r.module)[0].local_bytes == 64 * 16);
}

TEST_CASE("a chain of very many functions is refused or loads") {
  std::string text = header() + ".func f0()\n{\nret;\n}\n";
  for (int k = 1; k <= 20000; ++k) text += ".func f" + std::to_string(k) + "()\n{\ncall f" + std::to_string(k - 1) + ";\nret;\n}\n";
  const LoadResult r = load_text(text + ".visible .entry k()\n{\ncall f20000;\nret;\n}\n");
  CHECK((r.module != nullptr || !r.failure.log.empty()));
}

TEST_CASE("the last addresses that a number can name are out of range in every space") {
  for (const char* access : {"ld.global.u32 %r1, [%rd1];", "st.global.u32 [%rd1], %r1;", "ld.u32 %r1, [%rd1];",
                             "ld.global.u32 %r1, [%rd1+8];", "ld.shared.u32 %r1, [%rd1];", "ld.local.u32 %r1, [%rd1];",
                             "atom.global.add.u32 %r1, [%rd1], 1;", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+-12];"}) {
    CAPTURE(access);
    const LoadResult loaded = load_text(entry("ld.param.u64 %rd2, [out];\nld.global.u32 %r1, [%rd2];\nmov.u64 %rd1, -4;\n" +
                                                  std::string(access) + "\nmov.u64 %rd1, -16;\n" + access,
                                              "", ".param .u64 out"));
    INFO(loaded.failure.log);
    const Device<u32> out(std::vector<u32>(64, 0));
    const RunResult r = launch(loaded, "k", {}, Arguments().add(out.address()));
    REQUIRE(r.violation.has_value());
    CHECK(r.violation->code == cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  }
}

TEST_CASE("a stack pointer that is made up cannot leave the stack") {
  for (const char* value : {"-1", "-16", "-64", "0x7fffffffffffffff", "0x8000000000000000", "4096"}) {
    CAPTURE(value);
    const std::string body =
        "mov.u64 %rd1, " + std::string(value) + ";\nstackrestore.u64 %rd1;\nalloca.u64 %rd2, 16;\nst.local.u64 [%rd2], %rd1;\ncall f;\n";
    const std::string f = ".func f()\n{\n.local .b8 x[256];\n.reg .b32 %r<2>;\nmov.u32 %r1, 7;\nst.local.u32 [x], %r1;\nret;\n}\n";
    const LoadResult loaded = load_text(entry(body, f));
    INFO(loaded.failure.log);
    const RunResult r = launch(loaded, "k", {{1, 1, 1}, {32, 1, 1}}, {});
    REQUIRE(r.violation.has_value());
    CHECK(r.violation->code == cuda::CUDA_ERROR_HARDWARE_STACK_ERROR);
  }
}

TEST_CASE("a pointer to a function whose parameters have other sizes is no function of that kind") {
  const std::string f = R"(.func (.param .b32 result) f(.param .align 8 .b8 x[4096])
{
.reg .b32 %r<2>;
ld.param.u32 %r1, [x+4092];
st.param.b32 [result], %r1;
ret;
}
)";
  const LoadResult loaded = load_text(entry(R"(mov.u64 %rd1, f;
{
.param .b32 a; .param .b32 b;
st.param.b32 [a], 1;
kind: .callprototype (.param .b32 _) _ (.param .b32 _);
call (b), %rd1, (a), kind;
}
)",
                                            f));
  const RunResult r = launch(loaded, "k", {}, {});
  REQUIRE(r.violation.has_value());
  CHECK(r.violation->code == cuda::CUDA_ERROR_INVALID_PC);
}

TEST_CASE("printf takes what a device's printf knows and prints the rest as it stands") {
  const auto printed = [](const std::string& format) {
    std::string bytes;
    for (const char c : format) bytes += std::to_string(static_cast<int>(static_cast<unsigned char>(c))) + ", ";
    const LoadResult loaded = load_text(entry(R"(.local .align 8 .b8 depot[32];
mov.u64 %rd3, depot;
mov.u64 %rd4, 41;
st.local.u64 [depot], %rd4;
st.local.u64 [depot+8], %rd4;
st.local.u64 [depot+16], %rd4;
cvta.local.u64 %rd1, %rd3;
mov.u64 %rd2, text;
cvta.global.u64 %rd2, %rd2;
{
.param .b64 a; .param .b64 b; .param .b32 c;
st.param.b64 [a], %rd2;
st.param.b64 [b], %rd1;
call.uni (c), vprintf, (a, b);
}
)",
                                              ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n.global .b8 text[" +
                                                  std::to_string(format.size() + 1) + "] = {" + bytes + "0};\n"));
    const RunResult r = launch(loaded, "k", {}, {});
    if (r.violation) MESSAGE(r.violation->text());
    return r.printed;
  };
  CHECK(printed("%d|%5d|%-5d|%05d|%+d") == "41|    0|41   |00000|+41");
  CHECK(printed("%n %d") == "%n 41");
  CHECK(printed("%S %d") == "%S 41");
  CHECK(printed("%5$d %d") == "%5$d 41");
  CHECK(printed("%y %d %") == "%y 41 %");
  CHECK(printed("%100000d|").size() > 100);
  CHECK(printed("%ld|%lld|%hhd") == "41|41|41");
}
