// The passes alone on random kernels: what they may conclude, and that they come to an end. What they keep is runner.cpp's: as recorded
// against prepared.
#include <doctest/doctest.h>

#include "fuzz/generator.h"
#include "kiln/ir/passes.h"
#include "kiln/ir/text.h"

using namespace kiln;
using namespace kiln::ir;

TEST_CASE("accesses of random kernels are proven in good part, and tested in good part") {
  std::size_t proven = 0, accesses = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Prepared p = prepare(fuzz::generate(seed).kernel, {PrepareOptions::Mode::Checked});
    for (const Op& op : p.kernel.ops) {
      accesses += is_access(op.code);
      proven += is_access(op.code) && op.bounds == Bounds::Proven;
    }
  }
  CAPTURE(proven);
  CAPTURE(accesses);
  CHECK(proven * 8 > accesses);
  CHECK((accesses - proven) * 8 > accesses);
}

TEST_CASE("each pass leaves alone what it has made") {
  for (std::uint64_t seed = 5000; seed < 5300; ++seed) {
    CAPTURE(seed);
    Kernel k = fuzz::generate(seed).kernel;
    for (const auto pass : {contract, fold_and_simplify, eliminate_common, eliminate_dead, expand_math, expand_halves, fold_and_simplify,
                            eliminate_common, eliminate_dead}) {
      pass(k);
      Kernel again = k;
      pass(again);
      compact(again);
      Kernel once = k;
      compact(once);
      CHECK(print(again) == print(once));
    }
  }
}
