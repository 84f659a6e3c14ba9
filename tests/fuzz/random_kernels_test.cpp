#include <doctest/doctest.h>

#include <cstdio>

#include "fuzz/runner.h"
#include "kiln/ir/text.h"

using namespace kiln;

namespace {

void run(std::uint64_t first, std::uint64_t count, const std::function<fuzz::CheckOptions(std::uint64_t)>& how, const fuzz::Shape& base = {}) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    fuzz::Shape shape = base;
    shape.statements = 10 + static_cast<std::uint32_t>(seed % 5) * 12;
    const fuzz::Case c = fuzz::generate(seed, shape);
    const auto wrong = fuzz::check(c, how(seed));
    const std::string text = wrong ? *wrong : "";
    CHECK_MESSAGE(!wrong, "seed ", seed, ": ", text, "; make it small with: kiln_fuzz ", seed, " 1 --reduce");
  }
}

}  // namespace

TEST_CASE("random kernels give the same bits on the interpreter and on every level of host code") {
  const auto levels = fuzz::host_levels();
  run(1, 2000, [&](std::uint64_t seed) {
    fuzz::CheckOptions o;
    o.levels = {seed % 3 == 0 ? levels[seed % levels.size()] : levels.back()};
    o.unchecked = seed % 4 == 0;
    return o;
  });
}

TEST_CASE("the PTX of random kernels gives the interpreter's bits, for old and new GPUs") {
  run(100000, 150, [&](std::uint64_t) {
    fuzz::CheckOptions o;
    o.ptx = true;
    return o;
  });
}

TEST_CASE("the same seed gives the same kernel") {
  for (std::uint64_t seed : {1, 7, 99}) CHECK(ir::print(fuzz::generate(seed).kernel) == ir::print(fuzz::generate(seed).kernel));
}
