// f16 and bf16 against exact arithmetic: every value where there is one operand, random ones and the ties where there are more.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kiln/ir/eval.h"
#include "kiln/ir/floats.h"

using namespace kiln::ir;

namespace {

using Bits = std::uint64_t;
using Wide = __float128;  // 113 bits: holds every half, every product of two and every 64-bit integer exactly

constexpr Type kHalves[] = {Type::F16, Type::BF16};

struct Layout {
  int fraction, bias;
  Bits infinity;
};
Layout layout(Type t) { return t == Type::F16 ? Layout{10, 15, 0x7c00} : Layout{7, 127, 0x7f80}; }

bool is_nan_half(Type t, Bits h) { return (h & 0x7fff) > layout(t).infinity; }
bool is_finite_half(Type t, Bits h) { return (h & 0x7fff) < layout(t).infinity; }

// The value of a finite one; infinity counts as what would come next.
Wide value(Type t, Bits h) {
  const Layout f = layout(t);
  const int field = static_cast<int>((h & 0x7fff) >> f.fraction), rest = static_cast<int>(h & ((1u << f.fraction) - 1));
  const double v =
      field == 0 ? std::ldexp(rest, 1 - f.bias - f.fraction) : std::ldexp(rest + (1 << f.fraction), field - f.bias - f.fraction);
  return (h & 0x8000) != 0 ? -v : v;
}
double as_double(Type t, Bits h) {
  if (is_nan_half(t, h)) return std::numeric_limits<double>::quiet_NaN();
  if (!is_finite_half(t, h)) return (h & 0x8000) != 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const double magnitude = static_cast<double>(value(t, h & 0x7fff));
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

// The half nearest to p + c, both finite and not both 0, by comparing with the tie between two neighbours.
Bits nearest(Type t, Wide p, Wide c = 0) {
  if (p + c < 0) return 0x8000 | nearest(t, -p, -c);
  Bits low = 0, high = layout(t).infinity;
  while (high - low > 1) {
    const Bits middle = (low + high) / 2;
    (value(t, middle) <= p + c ? low : high) = middle;
  }
  const Wide tie = (value(t, low) + value(t, low + 1)) / 2;
  // The difference of the greater of the two to the tie is exact.
  const bool p_greater = (p < 0 ? -p : p) > (c < 0 ? -c : c);
  const Wide left = p_greater ? c : p, right = tie - (p_greater ? p : c);
  if (left == right) return low + (low & 1);
  return left > right ? low + 1 : low;
}

bool same(Type t, Bits a, Bits b) { return a == b || (is_nan_half(t, a) && is_nan_half(t, b)); }

Bits run(Opcode code, Type t, std::vector<Bits> in) { return evaluate(code, t, t, in).value(); }
Bits cast(Type to, Type from, Bits a) { return evaluate(Opcode::Cast, to, from, {{a}}).value(); }
Bits f(float v) { return std::bit_cast<std::uint32_t>(v); }
Bits d(double v) { return std::bit_cast<Bits>(v); }

// Ordinary, subnormal, near each other, special.
class Random {
 public:
  explicit Random(Bits seed) : state_(seed) {}
  Bits next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_;
  }
  Bits half(Type t) {
    const Bits r = next();
    const Bits one = Bits(layout(t).bias) << layout(t).fraction;
    switch (r >> 60 & 7) {
      case 0: return r & 0x80ff;                                                  // subnormal or nearly
      case 1: return (one + (r & 0x1ff)) | (r >> 16 & 0x8000);                    // a little above 1
      case 2: return (layout(t).infinity - 1 - (r & 0x3f)) | (r >> 16 & 0x8000);  // the largest
      default: return r & 0xffff;
    }
  }

 private:
  Bits state_;
};

}  // namespace

TEST_CASE("each f16 and bf16 is the f32 and f64 that it says, and comes back") {
  for (const Type t : kHalves) {
    int wrong = 0;
    for (Bits h = 0; h < 0x10000; ++h) {
      const Bits as32 = cast(Type::F32, t, h), as64 = cast(Type::F64, t, h);
      if (is_nan_half(t, h)) {
        wrong += !is_nan(Type::F32, as32) || !is_nan(Type::F64, as64);
      } else {
        wrong += as64 != d(as_double(t, h)) || as32 != f(static_cast<float>(as_double(t, h)));
      }
      wrong += !same(t, cast(t, Type::F32, as32), h) || !same(t, cast(t, Type::F64, as64), h);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("f32 and f64 become halves rounded once: every tie between neighbours, and what is next to it") {
  for (const Type t : kHalves) {
    int wrong = 0;
    for (Bits h = 0; h < layout(t).infinity; ++h) {
      const double low = static_cast<double>(value(t, h)), tie = static_cast<double>((value(t, h) + value(t, h + 1)) / 2);
      const Bits even = h + (h & 1);
      for (const bool negative : {false, true}) {
        const Bits sign = negative ? 0x8000 : 0;
        const auto check64 = [&](double x, Bits wanted) { wrong += cast(t, Type::F64, d(negative ? -x : x)) != (wanted | sign); };
        check64(low, h);
        check64(tie, even);
        check64(std::nextafter(tie, 0), h);
        check64(std::nextafter(tie, std::numeric_limits<double>::infinity()), h + 1);
        check64(tie * (1 + 0x1p-29), h + 1);  // what f32 would take for the tie
        check64(tie * (1 - 0x1p-29), h);
        const float tie32 = static_cast<float>(tie);
        const auto check32 = [&](float x, Bits wanted) { wrong += cast(t, Type::F32, f(negative ? -x : x)) != (wanted | sign); };
        if (static_cast<double>(tie32) != tie) continue;  // a tie of the least bf16 is no f32
        check32(tie32, even);
        check32(std::nextafter(tie32, 0.0f), h);
        check32(std::nextafter(tie32, std::numeric_limits<float>::infinity()), h + 1);
      }
    }
    CHECK(wrong == 0);
    for (const double x : {1e300, 1e39, std::numeric_limits<double>::infinity()}) CHECK(cast(t, Type::F64, d(x)) == layout(t).infinity);
    CHECK(cast(t, Type::F64, d(1e-300)) == 0);
    CHECK(cast(t, Type::F64, d(-5e-324)) == 0x8000);
    CHECK(is_nan_half(t, cast(t, Type::F64, 0x7ff0000000000001)));
    CHECK(is_nan_half(t, cast(t, Type::F32, 0x7f800001)));
  }
  CHECK(cast(Type::F16, Type::F64, d(1 + 0x1p-11 + 0x1p-40)) == 0x3c01);
  CHECK(cast(Type::F16, Type::F64, d(1 + 0x1p-11 - 0x1p-40)) == 0x3c00);
  CHECK(cast(Type::BF16, Type::F64, d(1 + 0x1p-8 + 0x1p-50)) == 0x3f81);
}

TEST_CASE("integers become halves rounded once") {
  Random random(17);
  for (const Type t : kHalves) {
    int wrong = 0;
    for (const Type from : {Type::I8, Type::U8, Type::I16, Type::U16, Type::I32, Type::U32, Type::I64, Type::U64}) {
      const auto check = [&](Bits x) {
        x &= value_mask(from);
        const Wide exact = is_signed(from) ? Wide(sign_extend(from, x)) : Wide(x);
        wrong += cast(t, from, x) != nearest(t, exact);
      };
      for (Bits x = 0; x < 0x20000; ++x) check(x), check(0 - x);
      for (int i = 0; i < 20000; ++i) {
        // Around a tie: one of the halves' leading bits, one more, and then 0, 1 or all ones.
        const Bits tie = (Bits{1} << layout(t).fraction | random.next() >> (64 - layout(t).fraction)) << 1 | 1;
        const unsigned shift = random.next() % (63 - static_cast<unsigned>(layout(t).fraction));
        for (const Bits x : {tie << shift, (tie << shift) + 1, (tie << shift) - 1, random.next() >> (random.next() & 63)})
          check(x), check(0 - x);
      }
    }
    CHECK(wrong == 0);
    CHECK(cast(t, Type::Bool, 1) == nearest(t, 1));
    CHECK(cast(t, Type::Bool, 0) == 0);
  }
  CHECK(cast(Type::BF16, Type::U64, 0x8080000000000001) == 0x5f01);  // by way of f64 it would be a tie
  CHECK(cast(Type::F16, Type::I32, 65519) == 0x7bff);
  CHECK(cast(Type::F16, Type::I32, 65520) == 0x7c00);
}

TEST_CASE("each half becomes the integer towards zero, saturates, and NaN is 0") {
  for (const Type t : kHalves) {
    int wrong = 0;
    for (Bits h = 0; h < 0x10000; ++h) {
      const double x = as_double(t, h);
      for (const Type to : {Type::I8, Type::U8, Type::I16, Type::U16, Type::I32, Type::U32, Type::I64, Type::U64}) {
        const Wide top = is_signed(to) ? Wide(value_mask(to) >> 1) : Wide(value_mask(to)), bottom = is_signed(to) ? -top - 1 : Wide(0);
        Bits wanted = 0;
        if (x != x) wanted = 0;
        else if (x >= top) wanted = value_mask(to) >> (is_signed(to) ? 1 : 0);
        else if (x <= bottom) wanted = is_signed(to) ? (value_mask(to) >> 1) + 1 : 0;
        else wanted = (x < 0 ? 0 - static_cast<Bits>(-x) : static_cast<Bits>(x)) & value_mask(to);
        wrong += cast(to, t, h) != wanted;
      }
      wrong += cast(Type::Bool, t, h) != (x != 0 ? 1u : 0u);
      const Type other = t == Type::F16 ? Type::BF16 : Type::F16;
      if (is_nan_half(t, h)) wrong += !is_nan_half(other, cast(other, t, h));
      else if (!is_finite_half(t, h)) wrong += cast(other, t, h) != (layout(other).infinity | (h & 0x8000));
      else wrong += cast(other, t, h) != (nearest(other, value(t, h & 0x7fff)) | (h & 0x8000));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("operations on one half are exact or the exact result rounded once, for every value") {
  for (const Type t : kHalves) {
    int wrong = 0;
    for (Bits h = 0; h < 0x10000; ++h) {
      wrong += run(Opcode::Neg, t, {h}) != (h ^ 0x8000) || run(Opcode::Abs, t, {h}) != (h & 0x7fff);
      const double x = as_double(t, h);
      const struct {
        Opcode code;
        double result;
      } whole[] = {{Opcode::Floor, std::floor(x)},
                   {Opcode::Ceil, std::ceil(x)},
                   {Opcode::Trunc, std::trunc(x)},
                   {Opcode::RoundEven, std::nearbyint(x)}};
      for (const auto& row : whole) {
        const Bits got = run(row.code, t, {h});
        wrong += is_nan_half(t, h) ? !is_nan_half(t, got) : d(as_double(t, got)) != d(row.result);
      }
      const Bits root = run(Opcode::Sqrt, t, {h});
      if (is_nan_half(t, h) || x < 0) {
        wrong += !is_nan_half(t, root);
      } else if (x == 0 || !is_finite_half(t, h)) {
        wrong += root != h;
      } else {  // between the squares of the ties to both sides; no tie is a root
        const Wide below = (value(t, root - 1) + value(t, root)) / 2, above = (value(t, root) + value(t, root + 1)) / 2;
        wrong += !(below * below < value(t, h) && value(t, h) < above * above);
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("sums, products, quotients and fused multiply-adds of halves are the exact result rounded once") {
  Random random(29);
  for (const Type t : kHalves) {
    CAPTURE(name(t));
    int wrong = 0;
    const auto check = [&](Opcode code, std::vector<Bits> in, double special, Wide p, Wide c) {
      bool finite = true;
      for (const Bits h : in) finite = finite && is_finite_half(t, h);
      const Bits got = run(code, t, in);
      if (!finite || special != special || std::isinf(special)) {
        wrong += special != special ? !is_nan_half(t, got) : d(as_double(t, got)) != d(special);
      } else {
        const Bits zero = p + c == 0 && std::signbit(special) ? 0x8000 : 0;
        wrong += got != (nearest(t, p, c) | zero);
      }
    };
    for (int i = 0; i < 300000; ++i) {
      const Bits a = random.half(t), b = random.half(t), c = random.half(t);
      const double x = as_double(t, a), y = as_double(t, b), z = as_double(t, c);
      const Wide wx = value(t, a), wy = value(t, b), wz = value(t, c);
      check(Opcode::Add, {a, b}, x + y, wx, wy);
      check(Opcode::Sub, {a, b}, x - y, wx, -wy);
      check(Opcode::Mul, {a, b}, x * y, wx * wy, 0);
      if (wy != 0) check(Opcode::Div, {a, b}, x / y, wx / wy, 0);
      check(Opcode::Fma, {a, b, c}, x * y + z, wx * wy, wz);
      // The product is near a tie, and the addend decides.
      const Bits small = (c & 0x8000) | (random.next() & 0xff);
      check(Opcode::Fma, {a, b, small}, x * y + as_double(t, small), wx * wy, value(t, small));
    }
    CHECK(wrong == 0);
    CHECK(is_nan_half(t, run(Opcode::Div, t, {0, 0x8000})));
    CHECK(run(Opcode::Div, t, {nearest(t, 1), 0x8000}) == (layout(t).infinity | 0x8000));
  }
  // 1.0078125^2 + 2^-133: the product is a tie.
  CHECK(run(Opcode::Mul, Type::BF16, {0x3f90, 0x3f88}) == 0x3f99);          // 1.125 * 1.0625 = 1.1953125
  CHECK(run(Opcode::Fma, Type::BF16, {0x3f81, 0x3fc0, 0x0001}) == 0x3fc2);  // 1.01171875 * ... just above a tie
  CHECK(run(Opcode::Fma, Type::BF16, {0x3f81, 0x3fc0, 0x8001}) == 0x3fc1);  // just below it
  CHECK(run(Opcode::Mul, Type::BF16, {0x0003, 0x3f00}) == 0x0002);          // a subnormal tie
}

TEST_CASE("halves compare as numbers, min and max take the number over NaN and order the zeros") {
  Random random(31);
  for (const Type t : kHalves) {
    int wrong = 0;
    for (int i = 0; i < 100000; ++i) {
      const Bits a = random.half(t), b = i % 5 == 0 ? (i % 2 == 0 ? a : a ^ 0x8000) : random.half(t);
      const double x = as_double(t, a), y = as_double(t, b);
      const Bits in[] = {a, b};
      const struct {
        Opcode code;
        bool result;
      } orders[] = {{Opcode::Lt, x < y},  {Opcode::Le, x <= y}, {Opcode::Gt, x > y},
                    {Opcode::Ge, x >= y}, {Opcode::Eq, x == y}, {Opcode::Ne, x != y}};
      for (const auto& row : orders) wrong += evaluate(row.code, Type::Bool, t, in) != Bits{row.result};
      const bool nan_a = is_nan_half(t, a), nan_b = is_nan_half(t, b);
      const bool a_first = x < y || (x == y && (a & 0x8000) != 0);
      const Bits less = nan_a ? b : nan_b ? a : a_first ? a : b, more = nan_a ? b : nan_b ? a : a_first ? b : a;
      wrong += !same(t, run(Opcode::Min, t, {a, b}), less) || !same(t, run(Opcode::Max, t, {a, b}), more);
      wrong += !same(t, run(Opcode::MinNan, t, {a, b}), nan_a ? a : nan_b ? b : less);
      wrong += !same(t, run(Opcode::MaxNan, t, {a, b}), nan_a ? a : nan_b ? b : more);
      wrong += run(Opcode::CopySign, t, {a, b}) != ((a & 0x7fff) | (b & 0x8000));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("the identities of combinations of halves change nothing") {
  for (const Type t : kHalves) {
    for (const Combine how : {Combine::Add, Combine::Min, Combine::Max}) {
      int wrong = 0;
      for (Bits h = 0; h < 0x10000; ++h)
        wrong += !same(t, combine(how, t, h, identity(how, t)), h) || !same(t, combine(how, t, identity(how, t), h), h);
      CHECK(wrong == 0);
    }
  }
}
