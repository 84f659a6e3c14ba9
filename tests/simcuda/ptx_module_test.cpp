// Modules: what is accepted and what is refused, with the driver's words; variables; entries.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "simcuda/ptx_testing.h"

using namespace kiln::simcuda;
using namespace kiln::simcuda::testing;
namespace cuda = kiln::cuda;

namespace {

const char* const kPtxas = "/usr/local/cuda/bin/ptxas";

// What the assembler of the toolkit says, when there is one: 0 accepted.
std::optional<int> assembled(const std::string& ptx, const std::string& arch) {
  if (access(kPtxas, X_OK) != 0) return std::nullopt;
  const std::string file = "/tmp/kiln_simcuda_" + std::to_string(getpid()) + ".ptx";
  std::ofstream(file) << ptx;
  const int rc = std::system((std::string(kPtxas) + " -arch=" + arch + " " + file + " -o /dev/null >/dev/null 2>&1").c_str());
  std::remove(file.c_str());
  return rc;
}

std::string kernel(const std::string& body) {
  return header() + R"(.visible .entry k(.param .u64 p, .param .f32 q)
{
.reg .pred %p<4>;
.reg .b16 %h<4>;
.reg .b32 %r<8>;
.reg .f32 %f<8>;
.reg .b64 %rd<8>;
.reg .f64 %fd<8>;
.reg .s32 %s<4>;
.reg .u32 %u<4>;
)" + body +
         "\nret;\n}\n";
}

struct Row {
  const char* body;
  const char* says;  // part of our log; null: accepted
};

constexpr Row kRows[] = {
    {"add.s32 %f1, %r1, %r2;", "Arguments mismatch for instruction 'add'"},
    {"add.s32 %r1, %s1, %u2;", nullptr},
    {"add.f32 %r1, %f1, %r2;", nullptr},
    {"add.s32 %rd1, %r1, %r2;", "Arguments mismatch for instruction 'add'"},
    {"add.s32 %r1, %r9, %r2;", "Unknown symbol '%r9'"},
    {"add.s32 %r1, %r2;", "Arguments mismatch for instruction 'add'"},
    {"add.s31 %r1, %r2, %r2;", "'add'"},
    {"addd.s32 %r1, %r2, %r2;", "Not a name of any known instruction: 'addd'"},
    {"add.foo.s32 %r1, %r2, %r2;", "'.foo'"},
    {"add.rn.s32 %r1, %r2, %r2;", "Illegal rounding modifier for instruction 'add'"},
    {"bra nowhere;", "Unknown symbol 'nowhere'"},
    {"a: bra a; a: ret;", "Duplicate definition of label 'a'"},
    {".reg .b32 %r1;", "Duplicate definition of variable '%r1'"},
    {"ld.global.u32 %r1, [%r2];", "32-bit address"},
    {"ld.global.u32 %r1, [%rd2];", nullptr},
    {"ld.param.u32 %r1, [zz];", "Unknown symbol 'zz'"},
    {"ld.global.f32 %r1, [%rd2];", nullptr},
    {"ld.global.u32 %f1, [%rd2];", "Arguments mismatch for instruction 'ld'"},
    {"ld.global.u32 %rd1, [%rd2];", nullptr},
    {"ld.global.u64 %r1, [%rd2];", "Arguments mismatch for instruction 'ld'"},
    {"st.global.u32 [%rd2], %rd1;", nullptr},
    {"st.global.u32 [%rd2], %f1;", "Arguments mismatch for instruction 'st'"},
    {"mov.u32 %f1, %r1;", "Arguments mismatch for instruction 'mov'"},
    {"mov.b32 %f1, %r1;", nullptr},
    {"mov.u32 %r1, zz;", "Unknown symbol 'zz'"},
    {"setp.lt.s32 %r1, %r1, %r2;", "Arguments mismatch for instruction 'setp'"},
    {"setp.lt.u32 %p1, %f1, %r2;", "Arguments mismatch for instruction 'setp'"},
    {"setp.ltu.s32 %p1, %r1, %r2;", "Mismatch between instruction type and comparison qualifier"},
    {"@%r1 bra a; a:", "Predicate expression expected"},
    {"call foo;", "Call to 'foo' requires call prototype"},
    {"add.s32 %r1, %r2, %tid.x;", "Special register argument not allowed for instruction 'add'"},
    {"add.s32 5, %r2, %r1;", "Result register required for instruction 'add'"},
    {"add.s32 %r1, 5, 6;", nullptr},
    {"add.f32 %f1, %f2, 1.0;", nullptr},
    {"add.f32 %f1, %f2, 1;", "Arguments mismatch for instruction 'add'"},
    {"add.s32 %r1, %r2, 0f3f800000;", "Arguments mismatch for instruction 'add'"},
    {"add.s32 %r1, %r2, 0x1ffffffff;", nullptr},
    {"shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;", nullptr},
    {"shfl.sync.down.b32 %f1|%p1, %f2, 1, 31, -1;", nullptr},
    {"cvt.f32.s32 %f1, %r1;", "Rounding modifier required for instruction 'cvt'"},
    {"cvt.rn.f32.s32 %f1, %rd1;", nullptr},
    {"cvt.rn.f32.s32 %r1, %r1;", nullptr},
    {"cvt.s32.f32 %r1, %f1;", "Rounding modifier required for instruction 'cvt'"},
    {"bar.sync 16;", "Barrier number '16' out of range, expected to be in range [0..15]"},
    {"div.f32 %f1, %f2, %f3;", "Rounding modifier or '.approx' modifier required for instruction 'div'"},
    {"sqrt.f32 %f1, %f2;", "Rounding modifier or '.approx' modifier required for instruction 'sqrt'"},
    {"mov.b64 %rd1, {%r1, %r2};", nullptr},
    {"mov.b64 %rd1, {%r1, %h2};", "Incompatible elements of vector expression"},
    {"ld.global.v2.u32 {%r1, %r2, %r3}, [%rd2];", "Argument vector size mismatch for instruction 'ld'"},
    {"ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd2];", "requires"},
    {"foo bar", "Parsing error near"},
    {"add.s32 %r1, %r2, %r3", "Parsing error near 'ret': syntax error"},
    {"mul.s32 %r1, %r2, %r3;", "Unexpected instruction types specified for 'mul'"},
    {"fma.f32 %f1, %f2, %f3, %f1;", "Rounding modifier required for instruction 'fma'"},
    {"atom.global.add.s64 %rd1, [%rd2], 1;", "for instruction 'atom'"},
    {"atom.global.add.u32 %r1, [%rd2], %f1;", "Arguments mismatch for instruction 'atom'"},
    {".shared .align 4 .b8 sm[100000]; mov.u32 %r1, sm;", "uses too much shared data"},
    {".shared .align 3 .b8 sm[10];", "Alignment must be a power of two"},
    {"selp.b32 %r1, %r2, %r3, %r4;", "Arguments mismatch for instruction 'selp'"},
    {"shl.b32 %r1, %r2, %rd1;", "Arguments mismatch for instruction 'shl'"},
    {"shl.s32 %r1, %r2, %r1;", "Unexpected instruction types specified for 'shl'"},
    {"and.s32 %r1, %r2, %r1;", "Unexpected instruction types specified for 'and'"},
    {"mad.lo.s32 %r1, %r2, %r1, %rd1;", "Arguments mismatch for instruction 'mad"},
    {"mul.wide.s32 %r1, %r2, %r1;", "Arguments mismatch for instruction 'mul"},
    {"min.f32 %f1, %f2;", "Arguments mismatch for instruction 'min'"},
    {"nop;", "Not a name of any known instruction: 'nop'"},
    {"trap; exit; brkpt;", nullptr},
    {"{ .reg .b32 %r1; mov.u32 %r1, 1; a: bra b; b: } { a: bra a; }", nullptr},
    {"{ a: } bra a;", "Unknown symbol 'a'"},
    {"mov.b16 %h1, 0x3c00; add.f16 %h1, %h1, %h2;", nullptr},
    {"mov.u64 %rd1, %clock64; mov.u32 %r1, %laneid;", nullptr},
    {"mov.u64 %rd1, %tid.x;", "Arguments mismatch for instruction 'mov'"},
    {"ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];", nullptr},
    {"st.volatile.global.v2.b64 [%rd1+-16], {%rd2, 7};", nullptr},
    {"ld.acquire.gpu.global.b32 %r1, [%rd1]; st.release.sys.b32 [%rd1], %r1;", nullptr},
    {"ld.acquire.global.b32 %r1, [%rd1];", "'ld'"},
    {"shfl.down.b32 %r1, %r2, 1, 31;", "'shfl'"},
    {"redux.sync.add.s32 %r1, %r2, -1;", nullptr},
    {"cvt.rn.s32.f32 %r1, %f1;", "'cvt'"},
    {"setp.eq.and.s32 %p1|%p2, %r1, 3, !%p3;", nullptr},
    {"mov.pred %p1, 1; and.pred %p2, %p1, %p3; @!%p2 ret;", nullptr},
    {"abs.u32 %r1, %r2;", "Unexpected instruction types specified for 'abs'"},
    {"add.cc.u16 %h1, %h2, %h3;", "'add'"},
    {"bra.uni %r1;", "'bra'"},
};

}  // namespace

TEST_CASE("wrong PTX is refused with the assembler's words and line, and right PTX is not; the toolkit's assembler agrees") {
  for (const Row& row : kRows) {
    INFO(std::string(row.body));
    const std::string ptx = kernel(row.body);
    const LoadResult r = load_text(ptx);
    INFO(r.failure.log);
    CHECK((r.module != nullptr) == (row.says == nullptr));
    if (row.says != nullptr) {
      CHECK(r.failure.code == cuda::CUDA_ERROR_INVALID_PTX);
      CHECK(r.failure.log.find(row.says) != std::string::npos);
      CHECK(r.failure.log.find("ptxas application ptx input, line ") == 0);
      CHECK(r.failure.log.find("ptxas fatal   : Ptx assembly aborted due to errors") != std::string::npos);
    }
    const std::optional<int> other = assembled(ptx, "sm_90");
    CHECK((other.value_or(row.says != nullptr ? 1 : 0) == 0) == (row.says == nullptr));
  }
}

TEST_CASE("every form of the instructions is accepted or refused as the toolkit's assembler does") {
  std::ifstream file(KILN_SIMCUDA_FOLDER "/ptx_rows.txt");
  REQUIRE(file.good());
  const std::string registers =
      "{\n.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %rd<8>; .reg .f64 %fd<8>; .reg .s32 %s<4>; .reg "
      ".u32 %u<4>; .reg .f16 %hf<4>; "
      ".reg .b128 %q<4>; .reg .f16x2 %hx<4>; .reg .u16 %us<4>;\n";
  const std::string top = header() + ".extern .shared .align 16 .b8 dyn[];\n";
  std::string all = top;  // of the accepted ones, for one run of the assembler
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.size() < 3 || line[0] == '#') continue;
    ++rows;
    INFO(line);
    const std::string ptx = top + ".visible .entry k(.param .u64 p, .param .f32 q)\n" + registers + line.substr(2) + "\nret;\n}\n";
    const LoadResult r = load_text(ptx);
    INFO(r.failure.log);
    CHECK((r.module != nullptr) == (line[0] == '+'));
    if (line[0] == '+') {
      all += ".visible .entry k" + std::to_string(rows) + "(.param .u64 p, .param .f32 q)\n" + registers + line.substr(2) + "\nret;\n}\n";
    } else {
      CHECK(assembled(ptx, "sm_90").value_or(1) != 0);
    }
  }
  CHECK(rows > 250);
  CHECK(assembled(all, "sm_90").value_or(0) == 0);
}

TEST_CASE("minimum and maximum of three operands are of f32, from sm_100 and PTX 8.8 on") {
  struct Three {
    const char* body;
    unsigned arch, version;
    const char* says;  // null: accepted
  };
  for (const Three& row : {Three{"min.f32 %f1, %f2, %f3, %f4;", 100, 88, nullptr},
                           {"max.ftz.NaN.abs.f32 %f1, %f2, 0f3f800000, %f4;", 121, 90, nullptr},
                           {"min.f32 %f1, %f2, %f3, %f4;", 100, 87, "'min.f32 with 3 input operands' requires PTX ISA .version 8.8"},
                           {"max.f32 %f1, %f2, %f3, %f4;", 90, 88, "'max.f32 with 3 input operands' requires .target sm_100"},
                           {"min.xorsign.abs.f32 %f1, %f2, %f3, %f4;", 100, 88, "'min'"},
                           {"min.abs.f32 %f1, %f2, %f3;", 100, 88, "'min'"},
                           {"min.f64 %fd1, %fd2, %fd3, %fd4;", 100, 88, "Arguments mismatch for instruction 'min'"},
                           {"min.s32 %r1, %r2, %r3, %r4;", 100, 88, "Arguments mismatch for instruction 'min'"}}) {
    const std::string ptx = header(row.arch, row.version) +
                            ".visible .entry k()\n{\n.reg .b32 %r<8>; .reg .f32 %f<8>; .reg .f64 %fd<8>;\n" + row.body + "\nret;\n}\n";
    INFO(ptx);
    const LoadResult r = load(ptx, {row.arch, 90}, memory());
    INFO(r.failure.log);
    CHECK((r.module != nullptr) == (row.says == nullptr));
    if (row.says != nullptr) CHECK(r.failure.log.find(row.says) != std::string::npos);
    const std::optional<int> other = assembled(ptx, "sm_" + std::to_string(row.arch));
    CHECK((other.value_or(row.says != nullptr ? 1 : 0) == 0) == (row.says == nullptr));
  }
}

TEST_CASE("an entry has 4352 bytes of parameters at most, from PTX 8.1 on 32764") {
  struct Size {
    unsigned version, bytes;
    bool fits;
  };
  for (const Size& row : {Size{78, 4352, true}, {80, 4353, false}, {81, 4353, true}, {81, 32764, true}, {90, 32765, false}}) {
    CAPTURE(row.version);
    CAPTURE(row.bytes);
    const std::string ptx = header(90, row.version) + ".visible .entry k(.param .align 4 .b8 a[4], .param .b8 p[" +
                            std::to_string(row.bytes - 4) + "])\n{\nret;\n}\n";
    const LoadResult r = load_text(ptx);
    INFO(r.failure.log);
    CHECK((r.module != nullptr) == row.fits);
    if (!row.fits) CHECK(r.failure.log.find("Entry function 'k' uses too much parameter space") != std::string::npos);
    CHECK((assembled(ptx, "sm_90").value_or(row.fits ? 0 : 1) == 0) == row.fits);
  }
}

TEST_CASE("the line of an error is that of its instruction") {
  const LoadResult r = load_text(kernel("add.s32 %r1, %r2, %r3;\n\n// a comment\n/* and\nanother */\nadd.s32 %r1, %f1, %r2;"));
  CHECK(r.failure.log.find("ptxas application ptx input, line 19; error   : Arguments mismatch") == 0);
}

TEST_CASE("a newer PTX version is 222, a newer target 209, both named with what the driver offers") {
  const std::string body = "\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
  const LoadResult newer = load(".version 9.9\n.target sm_90" + body, {90, 88}, memory());
  CHECK(newer.failure.code == cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  CHECK(newer.failure.log.find("9.9") != std::string::npos);
  CHECK(newer.failure.log.find("8.8") != std::string::npos);
  const LoadResult arch = load(".version 9.0\n.target sm_120" + body, {90, 90}, memory());
  CHECK(arch.failure.code == cuda::CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(arch.failure.log.find("sm_120") != std::string::npos);
  CHECK(arch.failure.log.find("sm_90") != std::string::npos);
  CHECK(load(".version 8.0\n.target sm_90a" + body, {90, 90}, memory()).module != nullptr);
  CHECK(load(".version 8.0\n.target sm_90a" + body, {100, 90}, memory()).failure.code == cuda::CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(load(".version 6.3\n.target sm_75" + body, {90, 90}, memory()).module != nullptr);
  CHECK(load(".version 7.0\n.target sm_90" + body, {90, 90}, memory()).failure.code == cuda::CUDA_ERROR_INVALID_PTX);
  CHECK(load("\x7f"
             "ELF\x02\x01",
             {90, 90}, memory())
            .failure.code == cuda::CUDA_ERROR_INVALID_IMAGE);
  CHECK(load("", {90, 90}, memory()).failure.code == cuda::CUDA_ERROR_INVALID_IMAGE);
  CHECK(load("hello", {90, 90}, memory()).failure.code == cuda::CUDA_ERROR_INVALID_PTX);
  CHECK(load(header() + ".visible .entry k()\n{\nret;\n", {90, 90}, memory()).failure.code == cuda::CUDA_ERROR_INVALID_PTX);
}

TEST_CASE("an entry is described as its text declares it") {
  const LoadResult r = load_text(header() + R"(
.shared .align 16 .b8 tile[100];
.extern .shared .align 16 .b8 dynamic[];
.visible .entry first(.param .u32 a, .param .align 8 .b8 b[12], .param .u16 c, .param .u64 .ptr .global .align 16 d)
.reqntid 32, 4
.minnctapersm 2
{
.reg .b32 %r<4>;
.local .align 8 .b8 __local_depot0[24];
mov.u32 %r1, tile;
mov.u32 %r2, dynamic;
ret;
}
.visible .entry second()
.maxntid 256, 1, 1
.reqnctapercluster 2, 1, 1
{
ret;
}
)");
  REQUIRE(r.module != nullptr);
  const auto& list = entries(*r.module);
  REQUIRE(list.size() == 2);
  CHECK(list[0].name == "first");
  REQUIRE(list[0].params.size() == 4);
  CHECK(list[0].params[1].offset == 8);
  CHECK(list[0].params[1].size == 12);
  CHECK(list[0].params[2].offset == 20);
  CHECK(list[0].params[3].offset == 24);
  CHECK(list[0].params[3].size == 8);
  CHECK(list[0].param_bytes == 32);
  CHECK(list[0].static_shared == 100);
  CHECK(list[0].local_bytes == 32);
  CHECK(list[0].reqntid == std::array<std::uint32_t, 3>{32, 4, 1});
  CHECK(list[1].static_shared == 0);
  CHECK(list[1].maxntid == std::array<std::uint32_t, 3>{256, 1, 1});
  CHECK(list[1].reqnctapercluster == std::array<std::uint32_t, 3>{2, 1, 1});
}

TEST_CASE("variables are initialised, with addresses of others, and freed with the module") {
  const u64 before = memory().free_bytes();
  {
    const LoadResult r = load_text(header() + R"(
.visible .global .align 4 .u32 numbers[4] = {1, 0x10, -1};
.visible .global .align 8 .u64 pointer = generic(numbers)+4;
.visible .global .align 8 .b8 mixed[16] = {0xFF(numbers), 0xFF00(numbers), 0xFF0000(numbers), 0xFF000000(numbers), 0xFF00000000(numbers), 0xFF0000000000(numbers), 0xFF000000000000(numbers), 0xFF00000000000000(numbers), 7};
.visible .const .align 4 .f32 factors[2][2] = {{1.5, 0f40000000}, {-2.0, 3}};
.visible .global .f64 wide = 0d3FF8000000000000;
.visible .entry k(.param .u64 out)
{
.reg .b64 %rd<4>;
.reg .b32 %r<4>;
ld.param.u64 %rd0, [out];
ld.global.u64 %rd1, [pointer];
ld.u32 %r0, [%rd1];
st.global.u32 [%rd0], %r0;
ld.const.b32 %r1, [factors+8];
st.global.u32 [%rd0+4], %r1;
ret;
}
)");
    INFO(r.failure.log);
    REQUIRE(r.module != nullptr);
    const auto numbers = global(*r.module, "numbers");
    REQUIRE(numbers.has_value());
    CHECK(numbers->bytes == 16);
    CHECK_FALSE(global(*r.module, "nothing").has_value());
    u64 bytes = 0;
    std::memcpy(&bytes, memory().access(global(*r.module, "mixed")->address, 8, Access::Read).host, 8);
    CHECK(bytes == numbers->address);
    const Device<u32> out(std::vector<u32>{0, 0});
    const RunResult result = launch(r, "k", {}, Arguments().add(out.address()));
    CHECK_FALSE(result.violation.has_value());
    CHECK(out.get() == std::vector<u32>{0x10, 0xc0000000});
  }
  CHECK(memory().free_bytes() == before);
}
