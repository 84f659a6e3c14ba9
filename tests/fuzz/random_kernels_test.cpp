#include <doctest/doctest.h>

#include "fuzz/runner.h"
#include "kiln/ir/text.h"

using namespace kiln;

namespace {

void run(std::uint64_t first, std::uint64_t count, const std::function<void(fuzz::CheckOptions&)>& adjust) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const fuzz::Case c = fuzz::generate(seed, fuzz::shape_in_turn(seed));
    fuzz::CheckOptions options = fuzz::options_in_turn(seed);
    adjust(options);
    const auto wrong = fuzz::check(c, options);
    const std::string text = wrong ? *wrong : "";
    CHECK_MESSAGE(!wrong, "seed ", seed, ": ", text, "; make it small with: ./dev fuzz 1 ", seed, options.sim ? " --sim 1" : "",
                  options.ptx ? " --ptx 1" : "");
  }
}

}  // namespace

// Seeds of their own, so that long runs from seed 1 see other kernels.
TEST_CASE("random kernels give the same bits on the interpreter, on every level of host code and on simulated CUDA devices") {
  run(1'000'000'000, 2000, [](fuzz::CheckOptions& o) { o.sim = true; });
}

TEST_CASE("the PTX of random kernels is executed for old and new GPUs without a driver, and assembled") {
  run(2'000'000'000, 200, [](fuzz::CheckOptions& o) {
    o.levels.clear();
    o.ptx = true;
  });
}

TEST_CASE("the same seed gives the same kernel") {
  for (std::uint64_t seed : {1, 7, 99}) CHECK(ir::print(fuzz::generate(seed).kernel) == ir::print(fuzz::generate(seed).kernel));
}
