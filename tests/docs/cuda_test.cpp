// The examples of docs/cuda.md, over the simulated driver, whichever devices were asked for.
#include "kiln/runtime/cuda.h"

#include "docs/examples.h"
#include "support/process.h"
#include "support/sim.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_cuda {

KILN_KERNEL(blur, (In<f32, 2> x, Out<f32, 2> y))
{
  require(x.extent(0) >= y.extent(0) && x.extent(1) >= y.extent(1));
  auto [c, r, z] = global_id();
  If (r < y.extent(0) && c < y.extent(1)) { y[r, c] = (x[r, max(c, 1) - 1] + x[r, c]) / 2; }
}

// scale(const f32* x, f32* y, f32 by, u32 n)
constexpr const char* kScale = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 scale_x, .param .u64 scale_y, .param .f32 scale_by, .param .u32 scale_n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [scale_x];
  ld.param.u64 %rd2, [scale_y];
  ld.param.f32 %f1, [scale_by];
  ld.param.u32 %r1, [scale_n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mul.wide.u32 %rd5, %r5, 4;
  add.s64 %rd6, %rd3, %rd5;
  add.s64 %rd7, %rd4, %rd5;
  ld.global.f32 %f2, [%rd6];
  mul.rn.f32 %f3, %f2, %f1;
  st.global.f32 [%rd7], %f3;
done:
  ret;
}
)";

}  // namespace docs_cuda

TEST_CASE("docs/cuda: beside other CUDA code") {
  using docs_cuda::blur;
  const Client client = sim_client(kSimH200);
  const TempFolder folder;
  const std::string scale_ptx = folder.write("scale.ptx", docs_cuda::kScale);
  const u32 n = 100;
  const auto x = Buffer<f32>::from_host(client, std::vector<f32>(n, 3)).value();
  auto y = Buffer<f32>::uninitialised(client, n).value();
  auto out = Buffer<f32, 2>::uninitialised(client, 6, 4).value();
  // The other code.
  const cuda::DriverEntries& call = sim_driver().call;
  const CurrentContext current(kSimH200);
  cuda::CUdeviceptr address = 0;
  cuda::CUstream custream = nullptr;
  REQUIRE(call.cuMemAlloc(&address, 6 * 4 * sizeof(f32)) == cuda::CUDA_SUCCESS);
  REQUIRE(call.cuStreamCreate(&custream, 0) == cuda::CUDA_SUCCESS);
  std::vector<f32> theirs_before(24, 2);
  REQUIRE(call.cuMemcpyHtoDAsync(address, theirs_before.data(), 24 * sizeof(f32), custream) == cuda::CUDA_SUCCESS);
  {
    // example: beside
    auto module = cuda::LoadedModule::from_file(client, scale_ptx).value();  // scale(const float* x, float* y, float by, unsigned n)
    const cuda::Param params[] = {cuda::Param::in(x), cuda::Param::out(y), cuda::Param::value(2.0f), cuda::Param::value(n)};
    module.launch(client.stream(), "scale", for_num_elems(n), params).value();

    Memory memory = cuda::adopt_memory(client, address, 6 * 4 * sizeof(f32)).value();  // of cuMemAlloc or cudaMalloc
    auto theirs = Buffer<f32, 2>::over(client, memory, {6, 4}).value();
    Stream stream = cuda::adopt_stream(client, custream).value();
    blur(stream, cover({4, 6}, {16, 16}), theirs, out);
    cuda::release_stream(stream).value();  // waits for its work
    // end
    CHECK(y.read().value() == std::vector<f32>(n, 6));
    CHECK(out.read().value() == std::vector<f32>(24, 2));
    CHECK(cuda::device_address(theirs.binding()) == address);
  }
  CHECK(client.sync().has_value());
  CHECK(call.cuStreamDestroy(custream) == cuda::CUDA_SUCCESS);
  CHECK(call.cuMemFree(address) == cuda::CUDA_SUCCESS);
}
