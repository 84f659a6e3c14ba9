#include "codegen/host_harness.h"

using namespace kiln;
using namespace kiln::host_test;

namespace {

const char* const kSaxpy = R"(
kernel "saxpy" {
  options checked=true contraction=true fast_math=false
  buffer x : f32[*] in
  buffer y : f32[*] inout
  scalar a : f32
  body {
    %i = global_id.x : u32
    %n = size y : u32
    %c = lt %i, %n : bool
    if %c {
      %a = param a
      %x = load x[%i]
      %y = load y[%i]
      %ax = mul %a, %x
      %s = add %ax, %y
      store y[%i], %s
    }
  }
}
)";

}  // namespace

TEST_CASE("saxpy on the CPU is right for full and partial warps, at every level") {
  for (const std::string& level : levels()) {
    for (const std::uint32_t block : {1u, 31u, 32u, 33u, 256u}) {
      CAPTURE(level);
      CAPTURE(block);
      const Kernel k(kSaxpy, {block, 1, 1}, level);
      const std::uint32_t n = 1000;
      std::vector<float> x(n), y(n + 40, -1.0f);
      for (std::uint32_t i = 0; i < n; ++i) x[i] = static_cast<float>(i), y[i] = 0.5f * static_cast<float>(i);
      const ir::FaultRecord fault = k.run({(n + block - 1) / block + 1, 1, 1}, {buffer(x), buffer(y, {n}), value(2.0f)});
      CHECK(fault.state == 0);
      for (std::uint32_t i = 0; i < n; ++i) REQUIRE(y[i] == 2.5f * static_cast<float>(i));
      for (std::uint32_t i = n; i < n + 40; ++i) REQUIRE(y[i] == -1.0f);
    }
  }
}

TEST_CASE("an access out of range on the CPU is reported once and its lane dropped") {
  for (const std::string& level : levels()) {
    CAPTURE(level);
    const Kernel k(kSaxpy, {64, 1, 1}, level);
    std::vector<float> x(100, 1.0f), y(200, 3.0f);
    const ir::FaultRecord fault = k.run({4, 1, 1}, {buffer(x), buffer(y), value(2.0f)});
    CHECK(fault.state == 2);
    CHECK(fault.kind == 1);
    CHECK(fault.index == 100);
    CHECK(fault.extent == 100);
    CHECK(fault.dimension == 0);
    CHECK(fault.thread[0] == 36);
    CHECK(fault.block[0] == 1);
    CHECK(k.prepared.sites.at(fault.site).memory == "x");
    for (std::size_t i = 0; i < 100; ++i) REQUIRE(y[i] == 5.0f);
    for (std::size_t i = 100; i < 200; ++i) REQUIRE(y[i] == 3.0f);  // 2 * 0 + y
    const ir::FaultRecord silent = k.run({4, 1, 1}, {buffer(x), buffer(y), value(2.0f)}, 0, false);
    CHECK(silent.state == 0);
  }
}
