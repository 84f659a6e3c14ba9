#include "simcuda/driver_ptx.h"

namespace kiln::simcuda::test {

std::string kernels_ptx(const std::string& target, const std::string& version) {
  return ".version " + version + "\n.target " + target + R"(
.address_size 64

.visible .global .align 4 .u32 counter = 5;
.visible .global .align 4 .b8 table[16] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0};

.visible .entry fill(.param .u64 fill_to, .param .u32 fill_value)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [fill_to];
  ld.param.u32 %r1, [fill_value];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  add.u32 %r1, %r1, %r5;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r1;
  ret;
}

.visible .entry add(.param .u64 add_to, .param .u64 add_from, .param .u32 add_n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [add_to];
  ld.param.u64 %rd2, [add_from];
  ld.param.u32 %r1, [add_n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r6, [%rd4];
  ld.global.u32 %r7, [%rd5];
  add.u32 %r8, %r6, %r7;
  st.global.u32 [%rd4], %r8;
DONE:
  ret;
}

.visible .entry poke(.param .u64 poke_at, .param .u32 poke_value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [poke_at];
  ld.param.u32 %r1, [poke_value];
  st.global.u32 [%rd1], %r1;
  ret;
}

.visible .entry none()
{
  ret;
}

.visible .entry wide(.param .u8 wide_a, .param .u64 wide_b, .param .u16 wide_c, .param .align 16 .b8 wide_d[24], .param .u32 wide_e,
                     .param .u64 wide_out)
{
  .reg .b16 %rs<2>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [wide_out];
  ld.param.u8 %rs1, [wide_a];
  cvt.u64.u16 %rd2, %rs1;
  st.global.u64 [%rd1], %rd2;
  ld.param.u64 %rd3, [wide_b];
  st.global.u64 [%rd1+8], %rd3;
  ld.param.u16 %rs1, [wide_c];
  cvt.u64.u16 %rd4, %rs1;
  st.global.u64 [%rd1+16], %rd4;
  ld.param.u64 %rd5, [wide_d];
  st.global.u64 [%rd1+24], %rd5;
  ld.param.u64 %rd6, [wide_d+8];
  st.global.u64 [%rd1+32], %rd6;
  ld.param.u64 %rd7, [wide_d+16];
  st.global.u64 [%rd1+40], %rd7;
  ld.param.u32 %r1, [wide_e];
  cvt.u64.u32 %rd8, %r1;
  st.global.u64 [%rd1+48], %rd8;
  ret;
}

.visible .entry fixed()
.reqntid 64, 2, 1
{
  ret;
}

.visible .entry at_most()
.maxntid 128, 1, 1
{
  ret;
}

.visible .entry shared(.param .u64 shared_out)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  .shared .align 4 .b8 room[40000];
  ld.param.u64 %rd1, [shared_out];
  mov.u32 %r1, 77;
  st.shared.u32 [room+39996], %r1;
  ld.shared.u32 %r1, [room+39996];
  st.global.u32 [%rd1], %r1;
  ret;
}

.visible .entry spin(.param .u64 spin_flag)
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [spin_flag];
AGAIN:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra AGAIN;
  ret;
}
)";
}

CUmodule load(const std::string& ptx) {
  CUmodule module = nullptr;
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const CUresult code = library().cuModuleLoadDataEx(&module, ptx.c_str(), 2, options, values);
  REQUIRE_MESSAGE(code == CUDA_SUCCESS, code << ": " << log);
  return module;
}

CUfunction get(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  KILN_OK(library().cuModuleGetFunction(&function, module, name));
  return function;
}

CUlaunchConfig config(unsigned grid, unsigned block, CUstream stream) {
  CUlaunchConfig c{};
  c.gridDimX = grid;
  c.gridDimY = c.gridDimZ = 1;
  c.blockDimX = block;
  c.blockDimY = c.blockDimZ = 1;
  c.hStream = stream;
  return c;
}

}  // namespace kiln::simcuda::test
