// Random bits, and bit patterns where operations differ.
#include <bit>

#include "fuzz/generator.h"
#include "kiln/ir/floats.h"

namespace kiln::fuzz {

using ir::Type;

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15ull;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::uint64_t interesting_bits(Random& r, Type t) {
  if (ir::is_bool(t)) return r.below(2);
  if (t == Type::F32) {
    static const std::vector<float> table{0.0f, -0.0f, 1.0f,   -1.0f, 0.5f,   2.0f,          3.0f,       -7.25f,
                                          0.1f, 1e10f, -1e20f, 3e9f,  1e-40f, 2147483648.0f, 16777217.0f};
    switch (r.below(8)) {
      case 0: return 0x7f800000u | (r.below(2) << 31);
      case 1: return 0x7fc00000u;
      case 2: return r.below(0x00800000u) | (r.below(2) << 31);  // subnormal
      case 3: return static_cast<std::uint32_t>(r.next());       // anything
      case 4: return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(r.below(200)) - 100) / 8.0f);
      default: return std::bit_cast<std::uint32_t>(r.pick(table));
    }
  }
  if (t == Type::F64) {
    static const std::vector<double> table{0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -7.25, 0.1, 1e10, -1e200, 9.3e18, 1e-310, 4294967296.0};
    switch (r.below(8)) {
      case 0: return 0x7ff0000000000000ull | (static_cast<std::uint64_t>(r.below(2)) << 63);
      case 1: return 0x7ff8000000000000ull;
      case 2: return r.next() & 0x800fffffffffffffull;
      case 3: return r.next();
      case 4: return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<int>(r.below(200)) - 100) / 8.0);
      default: return std::bit_cast<std::uint64_t>(r.pick(table));
    }
  }
  if (ir::is_narrow(t)) {
    const ir::NarrowFormat f = ir::narrow_format(t);
    const std::uint32_t sign = r.below(2) * f.sign(), fraction = 1u << f.fraction_bits;
    switch (r.below(8)) {
      case 0: return (f.infinity != 0 ? f.infinity : f.largest) | sign;
      case 1: return f.nan;
      case 2: return r.below(fraction) | sign;          // subnormal
      case 3: return r.next() & ir::value_mask(t);      // anything
      case 4: return (f.largest - r.below(40)) | sign;  // the largest
      case 5: return ir::round_narrow(t, 1) + r.below(2 * fraction) - fraction / 2;
      default: return ir::round_narrow(t, (static_cast<int>(r.below(200)) - 100) / 8.0);
    }
  }
  const unsigned w = ir::bit_width(t);
  const std::uint64_t mask = ir::value_mask(t);
  switch (r.below(8)) {
    case 0: return r.next() & mask;
    case 1: return std::uint64_t{1} << (w - 1);  // the signed minimum
    case 2: return mask >> 1;                    // the signed maximum
    case 3: return mask;                         // -1
    case 4: return (std::uint64_t{1} << r.below(w)) & mask;
    case 5: return (std::uint64_t{0} - r.below(40)) & mask;
    default: return r.below(40) & mask;
  }
}

}  // namespace kiln::fuzz
