// The examples of docs/language/kernels.md.
#include "docs/examples.h"
#include "kiln/ir/text.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_kernels {

// example: saxpy
KILN_KERNEL(saxpy, (In<f32> x, InOut<f32> y, Val<f32> a))
{
  require(x.size() >= y.size());  // checked by the host at launch, known to the prover
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i] + y[i]; }
}
// end

// example: declare
// blur.h
KILN_DECLARE_KERNEL(smooth, (In<f32> x, Out<f32> y));
// end

// example: define
// blur.cpp
KILN_KERNEL(smooth, (In<f32> x, Out<f32> y))
{
  require(x.size() >= y.size());
  auto i = global_id().x, n = y.size();
  If (i < n) { y[i] = (x[max(i, 1) - 1] + x[i] + x[min(i + 1, n - 1)]) / 3; }
}
// end

// example: scalars
KILN_KERNEL(scalars, (Out<f64> y, Val<u8> a, Val<i64> b, Val<f32> c, Val<bool> d))
{
  y[0] = cast<f64>(a) + cast<f64>(b) + cast<f64>(c);
  If (d) { y[0] = 0; }
}
// end

}  // namespace docs_kernels

TEST_CASE("docs/language: the first kernel") {
  check_example<f32>(docs_kernels::saxpy, for_num_elems(1000), {filled<f32>(1000, 1), filled<f32>(1000, 2), scalar<f32>(2)}, 1,
                     std::vector<f32>(1000, 4));
}

TEST_CASE("docs/language/kernels: launches") {
  using docs_kernels::scalars, docs_kernels::smooth;
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    // example: launches
    const auto x = Buffer<f32>::from_host(client, {3, 6, 9, 3}).value();
    auto y = Buffer<f32>::uninitialised(client, 4).value();
    const Stream stream = client.stream();
    smooth(for_num_elems(4), x, y);                      // blocks of 256; this thread's default stream on the device of x
    smooth(stream, {{1}, {4}}, x, y);                    // a stream; grid and block
    smooth.unchecked()(stream, for_num_elems(4), x, y);  // the author's word that nothing is out of range
    const Result<void> launched = smooth.checked()(stream, cover({4, 1}, {2, 1}), x, y);
    const std::vector<f32> smoothed = y.read().value();  // waits
    // end
    CHECK(launched.has_value());
    CHECK(smoothed == std::vector<f32>{4, 6, 6, 5});
    // example: scalar arguments
    auto z = Buffer<f64>::zeroed(client, 1).value();
    scalars({{1}, {1}}, z, 200, -3, 0.5, false);  // exact in u8 and in i64; 0.5 is rounded to an f32
    const f64 sum = z.read().value()[0];
    const Result<void> refused = scalars({{1}, {1}}, z, 300, 0, 0, false);
    // end
    CHECK(sum == 197.5);
    check_text("argument_value", refused.error().text());
  }
}

TEST_CASE("docs/language/kernels: the registry") {
  // example: registry
  std::string listed;
  for (const KernelEntry* kernel : Registry::instance().kernels()) {
    for (const ParamInfo& p : kernel->params()) listed += kernel->name() + ": " + p.type + " " + p.name + "\n";
  }
  const Result<const KernelEntry*> found = Registry::instance().find("smooth");  // the last part of a name, where only one kernel has it
  // end
  CHECK(listed.find("docs_kernels::smooth: In<f32> x\ndocs_kernels::smooth: Out<f32> y\n") != std::string::npos);
  REQUIRE(found.has_value());
  CHECK((*found)->name() == "docs_kernels::smooth");
  // example: entry
  const KernelEntry& entry = **found;
  const std::string where = entry.place();                 // "blur.cpp:12"
  const bool family = !entry.axes().empty();               // whether it has a config
  const std::vector<std::string> texts = entry.configs();  // "tile=8,unroll=2" ...; one that is empty without a config
  const auto variant = entry.variant(texts.front());       // recorded; its IR: variant.value()->recorded()
  // end
  CHECK(where.find("kernels_test.cpp:") != std::string::npos);
  CHECK_FALSE(family);
  CHECK(variant.value()->recorded().name == "docs_kernels::smooth");
}

TEST_CASE("docs/language/kernels: without a name, and as IR") {
  // example: local
  const auto doubled = local_kernel("doubled", [](InOut<u32> y) { y[global_id().x] *= 2; });
  const Result<ir::Kernel> kernel = doubled.record();
  const std::string text = ir::print(*kernel, false);
  // end
  CHECK(text.find("kernel \"doubled\"") != std::string::npos);
  // example: record
  const Result<ir::Kernel> same = record("doubled", [](InOut<u32> y) { y[global_id().x] *= 2; });
  // end
  CHECK(ir::print(*same, false) == text);
  check_example<u32>(doubled, {{1}, {3}}, {buffer<u32>({1, 2, 3})}, 0, {2, 4, 6});
}
