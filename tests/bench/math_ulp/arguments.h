// Random arguments where functions do something: any bits, magnitudes of all sizes around 1, and the ranges that kernels use.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "functions.h"

namespace kiln::bench {

template <class T>
class Arguments {
 public:
  explicit Arguments(std::uint64_t seed) : random_(seed) {}

  // The i-th of a series.
  void next(const Function& f, std::size_t i, T& x, double& second) {
    T y = any();
    x = any();
    switch (i % 4) {
      case 0: break;
      case 1: x = spread(-40, 10.5), y = f.op == ir::Opcode::Rem ? x / static_cast<T>(uniform(1, 1e6)) : x * spread(-20, 20); break;
      case 2: x = static_cast<T>(uniform(-2, 2)), y = static_cast<T>(uniform(-2, 2)); break;
      default: x = static_cast<T>(uniform(-50, 50)), y = static_cast<T>(uniform(-50, 50));
    }
    if (f.op == ir::Opcode::Pow || f.op == ir::Opcode::PowI) power(i, x, y);
    second = y;
    if (!f.integer_exponent) return;
    const double n = std::clamp(double{y == y ? y : 0}, -2147483648.0, 2147483647.0);
    second = i % 4 == 0 ? static_cast<std::int32_t>(random_()) : static_cast<std::int32_t>(n);
  }

 private:
  double uniform(double lo, double hi) { return lo + (hi - lo) * (static_cast<double>(random_() >> 11) * 0x1p-53); }
  T any() {
    if constexpr (sizeof(T) == 4) return std::bit_cast<T>(static_cast<std::uint32_t>(random_()));
    else return std::bit_cast<T>(random_());
  }
  T spread(double lo, double hi) { return static_cast<T>(std::exp2(uniform(lo, hi)) * (random_() & 1 ? 1 : -1)); }
  void power(std::size_t i, T& x, T& y) {
    constexpr bool narrow = sizeof(T) == 4;
    switch (i % 4) {
      case 0: break;
      case 1: x = static_cast<T>(uniform(0, 10)), y = static_cast<T>(uniform(-40, 40)); break;
      case 2:
        x = static_cast<T>(1 + uniform(-1e-2, 1e-2)), y = static_cast<T>(narrow ? uniform(-9000, 9000) : uniform(-70000, 70000));
        break;
      default:  // any positive base, a result within range
        x = std::fabs(any());
        y = static_cast<T>(narrow ? uniform(-103, 88.7) / std::log(double{x}) : uniform(-745, 709.7) / std::log(double{x}));
    }
  }

  std::mt19937_64 random_;
};

}  // namespace kiln::bench
