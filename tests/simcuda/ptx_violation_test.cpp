// What a kernel does wrong: the code of a device, and where.
#include "simcuda/ptx_testing.h"

using namespace kiln::simcuda;
using namespace kiln::simcuda::testing;
namespace cuda = kiln::cuda;

namespace {

std::string kernel(const std::string& body, const std::string& declarations = "") {
  return header() + ".file 1 \"dir/saxpy.cpp\"\n" + declarations + R"(
.visible .entry k(.param .u64 out)
{
.reg .b64 %rd<10>;
.reg .b32 %r<16>, %t;
.reg .b16 %h<4>;
.reg .pred %p<8>;
.loc 1 7 3
ld.param.u64 %rd0, [out];
mov.u32 %t, %tid.x;
mul.wide.u32 %rd1, %t, 4;
add.u64 %rd1, %rd0, %rd1;
.loc 1 12 5
)" + body +
         "\nret;\n}\n";
}

Violation violation(const std::string& body, u32 threads = 64, Options options = {}, const std::string& declarations = "",
                    u32 dynamic = 0) {
  const LoadResult loaded = load_text(kernel(body, declarations));
  const Device<u32> out(std::vector<u32>(64, 0));
  const RunResult r = launch(loaded, "k", {{2, 1, 1}, {threads, 1, 1}, dynamic}, Arguments().add(out.address()), options);
  INFO(body);
  REQUIRE(r.violation.has_value());
  return *r.violation;
}

bool clean(const std::string& body, u32 threads = 64, Options options = {}, const std::string& declarations = "", u32 dynamic = 0) {
  const LoadResult loaded = load_text(kernel(body, declarations));
  const Device<u32> out(std::vector<u32>(64, 0));
  const RunResult r = launch(loaded, "k", {{1, 1, 1}, {threads, 1, 1}, dynamic}, Arguments().add(out.address()), options);
  if (r.violation) MESSAGE(r.violation->text());
  return !r.violation.has_value();
}

}  // namespace

TEST_CASE("a kernel that works across the blocks of a cluster is refused where a cluster has several, and runs where it has one") {
  for (const char* body : {"mapa.u64 %rd2, %rd1, 1;", "getctarank.u64 %r1, %rd1;", "barrier.cluster.arrive; barrier.cluster.wait;"}) {
    CAPTURE(body);
    const LoadResult loaded = load_text(kernel(body));
    REQUIRE(loaded.module != nullptr);
    const Device<u32> out(std::vector<u32>(64, 0));
    for (const u32 blocks : {1u, 2u}) {
      const Arguments arguments = Arguments().add(out.address());
      Launch l;
      l.module = loaded.module.get();
      l.grid = {4, 1, 1};
      l.block = {32, 1, 1};
      l.cluster = {blocks, 1, 1};
      l.params = arguments.data();
      const RunResult r = run(l, memory(), {});
      if (r.violation) MESSAGE(r.violation->text());
      CHECK(r.violation.has_value() == (blocks == 2));
      if (r.violation) CHECK(r.violation->code == cuda::CUDA_ERROR_NOT_SUPPORTED);
    }
  }
}

TEST_CASE("an access outside of an allocation is an illegal address, with line, source, block and thread") {
  const Violation v = violation("mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 0; @%p0 ret;\nst.global.u32 [%rd1+4], %t;");
  CHECK(v.code == cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(v.ptx_line == 19);
  CHECK(v.source == "dir/saxpy.cpp:12");
  CHECK(v.block == std::array<u32, 3>{1, 0, 0});
  CHECK(v.thread == std::array<u32, 3>{63, 0, 0});
  CHECK(v.text().find("writes 4 bytes") != std::string::npos);
  CHECK(v.text().find("just behind the end of an allocation of 256 bytes") != std::string::npos);
  CHECK(violation("ld.global.u32 %r1, [%rd1+-4];").code == cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(violation("mov.u64 %rd2, 0; ld.u32 %r1, [%rd2];").code == cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("misaligned, freed and never-written memory") {
  const Violation m = violation("ld.global.u32 %r1, [%rd1+2];");
  CHECK(m.code == cuda::CUDA_ERROR_MISALIGNED_ADDRESS);
  CHECK(m.what.find("no multiple of 4") != std::string::npos);
  CHECK(violation("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+4];").code == cuda::CUDA_ERROR_MISALIGNED_ADDRESS);

  const LoadResult loaded = load_text(kernel("ld.global.u32 %r1, [%rd1];"));
  u64 gone = 0;
  {
    const Device<u32> freed(std::vector<u32>(64, 0));
    gone = freed.address();
  }
  const RunResult after = launch(loaded, "k", {}, Arguments().add(gone));
  REQUIRE(after.violation.has_value());
  CHECK(after.violation->code == cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(after.violation->what.find("freed") != std::string::npos);

  const Device<u32> fresh(std::size_t{64});
  const RunResult unwritten = launch(loaded, "k", {}, Arguments().add(fresh.address()));
  REQUIRE(unwritten.violation.has_value());
  CHECK(unwritten.violation->code == cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(unwritten.violation->what.find("never-written") != std::string::npos);
  Options lenient;
  lenient.unwritten_is_fault = false;
  const RunResult noted = launch(loaded, "k", {{1, 1, 1}, {64, 1, 1}}, Arguments().add(fresh.address()), lenient);
  CHECK_FALSE(noted.violation.has_value());
  CHECK(noted.notes.size() == 1);
}

TEST_CASE("shared memory: its bounds are those of the launch, and it begins unwritten") {
  const std::string dynamic = ".extern .shared .align 16 .b8 dyn[];\n";
  const std::string body =
      "mul.lo.u32 %r1, %t, 4; mov.u32 %r2, dyn; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %t; ld.shared.u32 %r3, [%r2];";
  CHECK(clean(body, 64, {}, dynamic, 256));
  const Violation v = violation(body, 64, {}, dynamic, 252);
  CHECK(v.code == cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(v.what.find("252 bytes of shared memory (0 static, 252 dynamic)") != std::string::npos);
  CHECK(v.thread[0] == 63);
  CHECK(violation("ld.shared.u32 %r1, [s];", 1, {}, ".shared .u32 s;\n").what.find("never-written") != std::string::npos);
  // An exchange reads what nobody wrote only where somebody looks at it.
  CHECK(clean("atom.shared.exch.b32 %r1, [s], 5; ld.shared.u32 %r2, [s];", 1, {}, ".shared .u32 s;\n"));
  CHECK(violation("atom.shared.exch.b32 %r1, [s], 5; add.u32 %r2, %r1, 1;", 1, {}, ".shared .u32 s;\n").what.find("never-written") !=
        std::string::npos);
  CHECK(violation("atom.shared.add.u32 %r1, [s], 5;", 1, {}, ".shared .u32 s;\n").what.find("never-written") != std::string::npos);
  // The same through generic addresses.
  CHECK(clean("mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; st.u32 [%rd2], 5; ld.shared.u32 %r1, [s];", 1, {}, ".shared .u32 s;\n"));
  CHECK(violation("mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; st.u32 [%rd2+4], 5;", 1, {}, ".shared .u32 s;\n").code ==
        cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(violation(".local .align 4 .b8 l[16]; mov.u64 %rd2, l; st.local.u32 [%rd2+16], 5;", 1).code == cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  // A generic address is none of a space.
  const std::string local = ".local .align 4 .b8 l[16]; mov.u64 %rd2, l; cvta.local.u64 %rd3, %rd2; cvta.to.local.u64 %rd4, %rd3;\n";
  CHECK(clean(local + "st.local.u32 [%rd4+12], %t; ld.local.u32 %r2, [%rd2+12]; ld.u32 %r2, [%rd3+12];"));
  CHECK(violation(local + "st.local.u32 [%rd3], %t;").what.find("which is a generic address") != std::string::npos);
  CHECK(violation("mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; st.shared.u32 [%rd2], 5;", 1, {}, ".shared .u32 s;\n")
            .what.find("which is a generic address") != std::string::npos);
}

TEST_CASE("races on shared memory are found, with both lines; what barriers, warps' syncs, atomics and fences order is none") {
  const std::string s = ".shared .align 4 .b8 buffer[512];\n";
  const std::string mine = "mul.lo.u32 %r1, %t, 4; mov.u32 %r2, buffer; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %t;\n";
  const std::string neighbour = "xor.b32 %r3, %t, 1; mad.lo.u32 %r3, %r3, 4, 0; mov.u32 %r4, buffer; add.u32 %r4, %r4, %r3;\n";
  const std::string far = "xor.b32 %r3, %t, 32; mul.lo.u32 %r3, %r3, 4; mov.u32 %r4, buffer; add.u32 %r4, %r4, %r3;\n";
  const Violation v = violation(mine + neighbour + "ld.shared.u32 %r5, [%r4];", 64, {}, s);
  CHECK(v.what.find("race on shared memory: reads 4 bytes") != std::string::npos);
  CHECK(v.what.find("write by thread 1 of the block at PTX line 19") != std::string::npos);
  CHECK(v.ptx_line == 21);
  CHECK(violation(mine + far + "st.shared.u32 [%r4], 5;", 64, {}, s).what.find("race") != std::string::npos);
  CHECK(violation("st.shared.u32 [buffer], %t;", 2, {}, s).what.find("race") != std::string::npos);
  CHECK(violation(mine + "bar.sync 0; st.shared.u32 [%r2], 1; bar.warp.sync -1;" + far + "ld.shared.u32 %r5, [%r4];", 64, {}, s)
            .what.find("race") != std::string::npos);
  // Read, then written by another one.
  CHECK(violation(mine + "bar.sync 0;" + neighbour + "ld.shared.u32 %r5, [%r4]; st.shared.u32 [%r2], 3;", 64, {}, s).what.find("race") !=
        std::string::npos);
  CHECK(violation("setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u32 [buffer], 0; bar.sync 0; atom.shared.add.u32 %r1, [buffer], 1; ld.shared.u32 "
                  "%r1, [buffer];",
                  64, {}, s)
            .what.find("race") != std::string::npos);
  Options off;
  off.shared_races = false;
  CHECK(clean(mine + neighbour + "ld.shared.u32 %r5, [%r4];", 32, off, s));

  CHECK(clean(mine + "bar.sync 0;" + far + "ld.shared.u32 %r5, [%r4];", 64, {}, s));
  // What a thread did before it exited, a barrier orders that does not wait for it any more.
  const std::string half = "setp.ge.u32 %p0, %t, 32; @%p0 ret; ", odd = "and.b32 %r7, %t, 1; setp.eq.u32 %p0, %r7, 1; @%p0 ret; ";
  for (const Order order : {Order::Forward, Order::Reverse}) {
    Options o;
    o.order = order;
    CHECK(clean(mine + half + "bar.sync 0;" + far + "ld.shared.u32 %r5, [%r4];", 64, o, s));
    CHECK(clean(mine + odd + "barrier.sync 0;" + neighbour + "ld.shared.u32 %r5, [%r4];", 64, o, s));
  }
  Options reverse;
  reverse.order = Order::Reverse;
  CHECK(violation(mine + half + far + "ld.shared.u32 %r5, [%r4];", 64, reverse, s).what.find("race") != std::string::npos);
  CHECK(clean(mine + "bar.warp.sync -1;" + neighbour + "ld.shared.u32 %r5, [%r4];", 64, {}, s));
  CHECK(clean(mine + "shfl.sync.idx.b32 %r7, %t, 0, 31, -1;" + neighbour + "ld.shared.u32 %r5, [%r4];", 64, {}, s));
  CHECK(
      clean("setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u32 [buffer], 0; bar.sync 0; atom.shared.add.u32 %r1, [buffer], 1; bar.sync 0; "
            "ld.shared.u32 %r1, [buffer];",
            64, {}, s));
  CHECK(clean("mov.u32 %r2, buffer; add.u32 %r2, %r2, %t; mov.u16 %h1, 5; st.shared.u8 [%r2], %h1;", 64, {}, s));
  CHECK(clean(mine + "bar.sync 0;" + neighbour + "ld.shared.u32 %r5, [%r4]; bar.sync 0; st.shared.u32 [%r4], %r5;", 64, {}, s));
  CHECK(clean(mine + "bar.sync 3, 64;" + far + "ld.shared.u32 %r5, [%r4];", 64, {}, s));
}

TEST_CASE("races on global memory are found when asked for") {
  Options races;
  races.global_races = true;
  races.workers = 1;
  const Violation v = violation("st.global.u32 [%rd0], %t;", 32, races);
  CHECK(v.what.find("race on global memory: writes 4 bytes") != std::string::npos);
  CHECK(violation("st.global.u32 [%rd1], %t;", 32, races).what.find("of block 0") != std::string::npos);  // two blocks write the same
  CHECK(clean("st.global.u32 [%rd1], %t;", 32, races));
  CHECK(clean("atom.global.add.u32 %r1, [%rd0], %t;", 32, races));
  CHECK(
      clean("st.global.u32 [%rd1], %t; bar.sync 0; xor.b32 %r1, %t, 32; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd0; ld.global.u32 "
            "%r2, [%rd2];",
            64, races));
}

TEST_CASE("trap, a bad branch, a stack that overflows, a failed assertion") {
  CHECK(violation("trap;").code == cuda::CUDA_ERROR_LAUNCH_FAILED);
  CHECK(violation("setp.eq.u32 %p0, %t, 5; @%p0 trap;").thread[0] == 5);
  CHECK(violation("brkpt;").code == cuda::CUDA_ERROR_LAUNCH_FAILED);
  CHECK(violation("tab: .branchtargets A, B; mov.u32 %r1, 2; brx.idx %r1, tab; A: B:").code == cuda::CUDA_ERROR_INVALID_PC);
  const std::string recursive = R"(
.func f(.param .b32 n);
.func f(.param .b32 n)
{
.reg .b32 %r<4>;
ld.param.u32 %r1, [n];
add.u32 %r1, %r1, 1;
{
.param .b32 param0;
st.param.b32 [param0], %r1;
call.uni f, (param0);
}
ret;
}
)";
  const Violation deep = violation("{ .param .b32 param0; st.param.b32 [param0], 1; call.uni f, (param0); }", 32, {}, recursive);
  CHECK(deep.code == cuda::CUDA_ERROR_HARDWARE_STACK_ERROR);
  CHECK(deep.what.find("stack overflow") != std::string::npos);
}
