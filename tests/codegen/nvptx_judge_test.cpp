// run_ptx notices what hardware may forgive: otherwise it could not judge. What the engine itself finds is tested in tests/simcuda.
#include "nvptx_run.h"
#include "support/inexact_float.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// What run_ptx says of hand-written PTX with one u32 buffer of `threads` elements.
std::string verdict(const std::string& body, std::uint32_t threads = 32, const std::string& parameters = ",\n.param .u64 k_param_1") {
  const ir::Prepared prepared = as_written(kernel_text("options checked=false\nbuffer x : u32[*] inout\nbody {\n}"));
  const std::string ptx =
      ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(\n.param .u64 .ptr .global .align 4 k_param_0" + parameters +
      "\n)\n{\n"
      ".reg .pred %p<9>;\n.reg .f32 %f<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\nld.param.b64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nmov.b32 %f1, %r1;\n" +
      body + "\nret;\n}\n";
  std::vector<std::uint8_t> x(threads * 4);
  interp::Launch launch;
  launch.block[0] = threads;
  launch.args.push_back({.is_buffer = true, .bytes = &x, .byte_offset = 0, .extents = {threads}, .strides = {}, .bits = 0});
  launch.step_limit = 1'000'000;
  const interp::Outcome outcome = run_ptx(ptx, prepared, launch);
  return outcome.misuse.empty() ? "" : outcome.misuse.front();
}

}  // namespace

TEST_CASE("run_ptx has nothing to say of what is right, and names what it cannot load or call") {
  CHECK(verdict("st.global.b32 [%rd3], %r1;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nbar.sync 0;") == "");
  CHECK(verdict("setp.lt.u32 %p1, %r1, 5;\n@%p1 ret;\nbarrier.sync 0;\nsetp.eq.b32 %p2, 0, 0;\nvote.sync.ballot.b32 %r2, %p2, -1;") == "");
  CHECK(has(verdict("bogus.u32 %r2, %r1;"), "bogus"));
  CHECK(has(verdict("", 32, ""), "another number of parameters"));
  CHECK(has(verdict("", 32, ",\n.param .u32 k_param_1"), "another size than in the layout"));
}

TEST_CASE("whatever the engine finds, a note too, is misuse") {
  CHECK(has(verdict("st.global.b32 [%rd3+4], %r1;"), "just behind the end of an allocation of 128 bytes"));
  CHECK(has(verdict("st.global.b32 [%rd3+2], %r1;"), "misaligned"));
  CHECK(has(verdict("mov.b64 %rd4, 64;\nld.global.b32 %r2, [%rd4];"), "no address of this device"));
  CHECK(has(verdict("st.global.b32 [%rd1], %r1;"), "race on global memory"));
  CHECK(has(verdict(".shared .align 4 .b32 s;\nld.shared.b32 %r2, [s];"), "never-written"));
  CHECK(has(verdict("$L1:\nbra $L1;"), "limit"));
  const std::string half = "setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra $L1;\n";
  CHECK(verdict(half + "shfl.sync.bfly.b32 %r2, %r1, 1, 31, 65535;\n$L1:") == "");
  CHECK(has(verdict(half + "shfl.sync.bfly.b32 %r2, %r1, 16, 31, 65535;\n$L1:"), "takes no part"));
}

TEST_CASE("a float operation whose bits PTX leaves open is misuse, whatever it gives here") {
  for (const char* open : {"add.f32 %f2, %f1, %f1;", "mul.f32 %f2, %f1, %f1;", "sub.f32 %f2, %f1, %f1;"}) CHECK(has(verdict(open), ".rn"));
  CHECK(has(verdict("setp.lt.u32 %p1, %r1, 5;\n@%p1 add.f32 %f2, %f1, %f1;"), ".rn"));
  CHECK(has(verdict("tanh.approx.f32 %f2, %f1;"), "approximation"));
  CHECK(has(verdict("add.rn.ftz.f32 %f2, %f1, %f1;"), "flushed"));
  for (const char* said : {"add.rn.f32 %f2, %f1, %f1;", "fma.rn.f32 %f2, %f1, %f1, %f1;", "add.s32 %r2, %r1, %r1;"})
    CHECK(verdict(said) == "");
  CHECK(inexact_float("\n\tmul.f64 \t%fd1, %fd2, %fd3;\n").value_or("").starts_with("PTX line 2: mul.f64"));
}
