#include <doctest/doctest.h>

#include <kiln/kiln.h>

#include "kiln/ir/text.h"
#include "kiln/ir/verify.h"

using namespace kiln;

namespace probe {
KILN_KERNEL(saxpy, (In<f32> x, InOut<f32> y, Val<f32> a)) {
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i] + y[i]; }
}
}  // namespace probe

TEST_CASE("the first program records") {
  auto k = probe::saxpy.record();
  REQUIRE_MESSAGE(k.has_value(), k.error().text());
  CHECK(ir::to_string(ir::verify(*k)) == "");
}
