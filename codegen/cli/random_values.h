// Values for launches that nobody gave values for. Pure functions of a seed, the same on every machine.
#pragma once
#include <cstdint>
#include <vector>

#include "kiln/ir/type.h"

namespace kiln::cli {

// splitmix64: the distributions of <random> differ between standard libraries, seeds must not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }  // 0 for n = 0
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  std::uint64_t state_;
};

// A bit pattern of the type, more often one where operations differ: zeros, ones, extremes, powers of two; of floats NaN, infinities,
// subnormals, neighbours of 1.
std::uint64_t special_value(Random& random, ir::Type type);
// Of integers one below `limit`; of floats a number of magnitude below it, seldom a whole one. `limit` is at least 1.
std::uint64_t limited_value(Random& random, ir::Type type, std::uint64_t limit);

// Contents of a buffer: `bytes` is a whole number of elements. Without a limit (0) the seed also decides what kind they are of: special
// values throughout, plain numbers, small whole numbers, or plain numbers with a special one here and there.
void fill_random(ir::Type type, std::vector<std::uint8_t>& bytes, std::uint64_t seed, std::uint64_t limit);

}  // namespace kiln::cli
