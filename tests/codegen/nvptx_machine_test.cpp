// The PTX machine notices what hardware may forgive: otherwise it could not judge.
#include "nvptx_run.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// What the machine says of hand-written PTX with one u32 buffer of `threads` elements.
std::string verdict(const std::string& body, std::uint32_t threads = 32) {
  const ir::Prepared prepared = as_written(kernel_text("options checked=false\nbuffer x : u32[*] inout\nbody {\n}"));
  const std::string ptx =
      ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(\n.param .u64 .ptr .global .align 4 k_param_0,\n.param .u64 "
      "k_param_1\n)\n{\n"
      ".reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\nld.param.b64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, "
      "%r1, 4;\n"
      "add.s64 %rd3, %rd1, %rd2;\n" +
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

TEST_CASE("the PTX machine runs what is right") {
  CHECK(verdict("st.global.b32 [%rd3], %r1;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nbar.sync 0;") == "");
  CHECK(verdict("setp.lt.u32 %p1, %r1, 5;\n@%p1 ret;\nbarrier.sync 0;\nvote.sync.ballot.b32 %r2, -1, 1;") != "");  // wrong operand order
  CHECK(verdict("setp.lt.u32 %p1, %r1, 5;\n@%p1 ret;\nbarrier.sync 0;\nsetp.eq.b32 %p2, 0, 0;\nvote.sync.ballot.b32 %r2, %p2, -1;") == "");
}

TEST_CASE("the PTX machine refuses accesses that are out, misaligned or of no buffer") {
  CHECK(has(verdict("st.global.b32 [%rd3+4], %r1;"), "bytes into 'x'"));
  CHECK(has(verdict("st.global.b32 [%rd3+2], %r1;"), "misaligned"));
  CHECK(has(verdict("mov.b64 %rd4, 64;\nld.global.b32 %r2, [%rd4];"), "no buffer"));
}

TEST_CASE("the PTX machine keeps the addresses of a space and generic ones apart") {
  const std::string local = ".local .align 4 .b8 d[16];\nmov.b64 %rd4, d;\ncvta.local.u64 %rd5, %rd4;\ncvta.to.local.u64 %rd6, %rd5;\n";
  CHECK(verdict(local + "st.local.b32 [%rd6+12], %r1;\nld.local.b32 %r2, [%rd4+12];") == "");
  CHECK(has(verdict(local + "st.local.b32 [%rd5], %r1;"), "out of range"));
  CHECK(has(verdict(local + "st.b32 [%rd5], %r1;"), "generic"));
}

TEST_CASE("the PTX machine refuses warp instructions whose lanes are not together") {
  const std::string half = "setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra $L1;\n";
  CHECK(has(verdict(half + "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\n$L1:\nbar.sync 0;"), "stuck"));
  CHECK(verdict(half + "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\n$L1:") == "");  // those that are gone are not waited for
  CHECK(verdict(half + "shfl.sync.bfly.b32 %r2, %r1, 1, 31, 65535;\n$L1:") == "");
  CHECK(has(verdict(half + "shfl.sync.bfly.b32 %r2, %r1, 16, 31, 65535;\n$L1:"), "not there"));
  CHECK(has(verdict("shfl.sync.bfly.b32 %r2, %r1, 1, 31, 65535;"), "not in its own mask"));
  CHECK(has(verdict("bar.warp.sync -1;", 16), "does not exist"));
  // The same instruction twice is not one place.
  CHECK(has(verdict("setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra $L1;\nbar.warp.sync -1;\nbra $L2;\n$L1:\nbar.warp.sync -1;\n$L2:"), "stuck"));
}

TEST_CASE("the PTX machine refuses aligned barriers in torn warps, loops without end, and fused arithmetic") {
  CHECK(has(verdict("setp.lt.u32 %p1, %r1, 5;\n@%p1 ret;\nbar.sync 0;"), "aligned"));
  CHECK(has(verdict("$L1:\nbra $L1;"), "too many steps"));
  CHECK(has(verdict("add.f32 %r2, %r1, %r1;"), ".rn"));
  CHECK(has(verdict("tanh.approx.f32 %r2, %r1;"), "does not know"));
}
