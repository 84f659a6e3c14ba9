#include "random_values.h"

#include <algorithm>

#include "kiln/ir/floats.h"
#include "values.h"

namespace kiln::cli {

using ir::Type;

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15ull;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

namespace {

// How many of a float's bits are its fraction, and the pattern of infinity (0: the type has none).
struct Layout {
  unsigned fraction = 0;
  std::uint64_t infinity = 0, nan = 0, largest = 0;
};
Layout layout_of(Type type) {
  if (type == Type::F32) return {23, 0x7f800000u, 0x7fc00000u, 0x7f7fffffu};
  if (type == Type::F64) return {52, 0x7ff0000000000000ull, 0x7ff8000000000000ull, 0x7fefffffffffffffull};
  const ir::NarrowFormat f = ir::narrow_format(type);
  return {static_cast<unsigned>(f.fraction_bits), f.infinity, f.nan, f.largest};
}

std::uint64_t special_float(Random& random, Type type) {
  static const std::vector<double> numbers{0.0, 1.0, 0.5, 2.0, 3.0, 7.25, 0.1, 1e10, 3e9, 16777217.0, 2147483648.0, 4294967296.0, 1e-5};
  const Layout f = layout_of(type);
  const std::uint64_t sign = random.below(2) << (ir::bit_width(type) - 1), step = std::uint64_t{1} << f.fraction;
  switch (random.below(10)) {
    case 0: return (f.infinity != 0 ? f.infinity : f.largest) | sign;
    case 1: return f.nan;
    case 2: return random.below(step) | sign;             // subnormal, or zero
    case 3: return random.next() & ir::value_mask(type);  // anything
    case 4: return (f.largest - random.below(4)) | sign;
    case 5: return (ir::float_bits(type, 1.0) + random.below(8) - 4) & ir::value_mask(type);
    case 6: return sign;
    default: {
      const std::uint64_t bits = ir::float_bits(type, random.pick(numbers));
      return bits | sign;
    }
  }
}

std::uint64_t special_integer(Random& random, Type type) {
  const unsigned width = ir::bit_width(type);
  const std::uint64_t mask = ir::value_mask(type);
  switch (random.below(8)) {
    case 0: return random.next() & mask;
    case 1: return std::uint64_t{1} << (width - 1);  // the least of a signed type
    case 2: return mask >> 1;                        // its largest
    case 3: return mask;                             // -1, or the largest
    case 4: return (std::uint64_t{1} << random.below(width)) & mask;
    case 5: return (std::uint64_t{0} - random.below(40)) & mask;
    default: return random.below(40) & mask;
  }
}

}  // namespace

std::uint64_t special_value(Random& random, Type type) {
  if (ir::is_bool(type)) return random.below(2);
  return ir::is_real(type) ? special_float(random, type) : special_integer(random, type);
}

std::uint64_t limited_value(Random& random, Type type, std::uint64_t limit) {
  if (ir::is_bool(type)) return random.below(2);
  if (!ir::is_real(type)) {
    const std::uint64_t most = ir::is_signed(type) ? ir::value_mask(type) >> 1 : ir::value_mask(type);
    return random.below(std::min(limit - 1, most) + 1);
  }
  const double whole = static_cast<double>(random.below(std::min<std::uint64_t>(limit, std::uint64_t{1} << 40)));
  const double value = whole + static_cast<double>(random.below(1024)) / 1024.0;
  return ir::float_bits(type, random.chance(50) ? -value : value);
}

void fill_random(Type type, std::vector<std::uint8_t>& bytes, std::uint64_t seed, std::uint64_t limit) {
  Random random(seed);
  enum : std::uint64_t { Special, Plain, Whole, Sprinkled };
  const std::uint64_t kind = random.below(4);
  const unsigned size = byte_size(type);
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    std::uint64_t bits = 0;
    if (limit != 0) bits = limited_value(random, type, limit);
    else if (kind == Special || (kind == Sprinkled && random.below(32) == 0)) bits = special_value(random, type);
    else if (kind == Whole && ir::is_real(type)) bits = ir::float_bits(type, static_cast<double>(random.below(17)) - 8);
    else bits = limited_value(random, type, 100);
    store_bits(type, bytes.data() + at, bits);
  }
}

}  // namespace kiln::cli
