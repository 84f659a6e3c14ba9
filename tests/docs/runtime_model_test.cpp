// The example of docs/runtime-model.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_runtime_model {

// example: kernels
KILN_KERNEL(following, (In<f32> x, Out<f32> y))
{
  auto i = global_id().x;
  y[i] = x[i + 1];  // out of range in the last thread
}

KILN_KERNEL(tripled, (In<f32> x, Out<f32> y))
{
  auto i = global_id().x;
  y[i] = 3 * x[i];
}
// end

}  // namespace docs_runtime_model

TEST_CASE("docs/runtime-model: when a failure is known, and whose it is") {
  using docs_runtime_model::following, docs_runtime_model::tripled;
  for (const Client& c : devices()) {
    CAPTURE(c.properties().name);
    const auto x = Buffer<f32>::from_host(c, {1, 2, 3, 4}).value();
    auto y = Buffer<f32>::zeroed(c, 4).value(), z = Buffer<f32>::zeroed(c, 4).value();
    // example: moments
    const Result<void> refused = following({{1}, {0}}, x, y);   // an error: a block has threads. Nothing ran
    const Result<void> enqueued = following({{1}, {4}}, x, y);  // none: nobody knows yet
    const Result<void> waited = c.sync(y);                      // an error: the work on y is over, and its bytes carry the failure
    const Result<void> skipped = tripled({{1}, {4}}, y, z);     // an error: it needs y, so it does not run, and z carries the failure
    const Result<void> good = tripled({{1}, {4}}, x, z);        // none: z is an Out, so it is whole again
    const std::vector<f32> values = z.read().value();           // 3 6 9 12
    // end
    CHECK(refused.error().rule() == "ZeroDimension");
    CHECK(enqueued.has_value());
    CHECK_FALSE(waited.has_value());
    REQUIRE_FALSE(skipped.has_value());
    CHECK(skipped.error().code() == ErrorCode::Skipped);
    CHECK(good.has_value());
    CHECK(values == std::vector<f32>{3, 6, 9, 12});
  }
}
