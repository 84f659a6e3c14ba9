// Random kernels: terminating, race-free, over every operation of the table, with a launch and its data. Same seed, same kernel, on every
// machine.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/ir/kernel.h"

namespace kiln::fuzz {

// A small counter-based generator of our own: std::mt19937's distributions differ between standard libraries, seeds must not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull) {}
  std::uint64_t next();  // 64 random bits (splitmix64)
  std::uint32_t below(std::uint32_t n) { return n == 0 ? 0 : static_cast<std::uint32_t>((next() >> 32) % n); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& v) {
    return v[below(static_cast<std::uint32_t>(v.size()))];
  }

 private:
  std::uint64_t state_;
};

// A buffer argument of the launch: contents before, its extents, and for a strided one its strides in elements.
struct BufferData {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> extents, strides{};
};
// One value per parameter in signature order: buffers use `data`, scalars `bits`.
struct ArgData {
  bool is_buffer = false;
  BufferData data;
  std::optional<std::size_t> shares;  // in place: the argument whose memory this is; `data.bytes` is empty then
  bool owns() const { return is_buffer && !shares; }
  std::uint64_t bits = 0;
};
struct Case {
  ir::Kernel kernel;
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1};
  std::uint32_t shared_bytes = 0;  // dynamic
  std::vector<ArgData> args;
  bool may_fault = false;  // some access may be out of range: only for checked kernels
};

struct Shape {
  std::uint32_t statements = 40;  // budget, roughly the number of statements
  std::uint32_t depth = 4;        // of nested control flow
  bool barriers = true, warp_ops = true, atomics = true, math = true, faults = true;
};

// Deterministic in (seed, shape).
Case generate(std::uint64_t seed, const Shape& shape = {});

// A bit pattern of the type, weighted towards the values where operations differ: 0, 1, -1, extremes, powers of two, NaN, infinities,
// subnormals.
std::uint64_t interesting_bits(Random& random, ir::Type type);

}  // namespace kiln::fuzz
