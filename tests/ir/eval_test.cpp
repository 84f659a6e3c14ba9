#include "kiln/ir/eval.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace kiln::ir;

namespace {

using Bits = std::uint64_t;
Bits f(float v) { return std::bit_cast<std::uint32_t>(v); }
Bits d(double v) { return std::bit_cast<std::uint64_t>(v); }
Bits i(std::int32_t v) { return static_cast<std::uint32_t>(v); }
Bits l(std::int64_t v) { return static_cast<std::uint64_t>(v); }
constexpr Bits kNan = 0x7fc00000u, kNan64 = 0x7ff8000000000000u;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

// An operation whose operands have the result's type.
Bits run(Opcode code, Type type, std::vector<Bits> operands) {
  const auto r = evaluate(code, type, type, operands);
  REQUIRE(r.has_value());
  return *r;
}
Bits compare(Opcode code, Type type, Bits a, Bits b) {
  const Bits in[] = {a, b};
  return evaluate(code, Type::Bool, type, in).value();
}
Bits cast(Type to, Type from, Bits a) { return evaluate(Opcode::Cast, to, from, {{a}}).value(); }

}  // namespace

TEST_CASE("signed division truncates and the remainder has the sign of the dividend") {
  const int a[] = {-7, 7, -7, -1, -6, 6, -7}, b[] = {2, -2, -2, 2, 5, -5, 3};
  const int q[] = {-3, -3, 3, 0, -1, -1, -2}, r[] = {-1, 1, -1, -1, -1, 1, -1};
  for (int n = 0; n < 7; ++n) {
    CHECK(run(Opcode::Div, Type::I32, {i(a[n]), i(b[n])}) == i(q[n]));
    CHECK(run(Opcode::Rem, Type::I32, {i(a[n]), i(b[n])}) == i(r[n]));
    CHECK(run(Opcode::Div, Type::I64, {l(a[n]), l(b[n])}) == l(q[n]));
    CHECK(run(Opcode::Rem, Type::I64, {l(a[n]), l(b[n])}) == l(r[n]));
  }
}

TEST_CASE("division never traps") {
  const std::int32_t min32 = std::numeric_limits<std::int32_t>::min();
  const std::int64_t min64 = std::numeric_limits<std::int64_t>::min();
  CHECK(run(Opcode::Div, Type::I32, {i(5), 0}) == i(-1));
  CHECK(run(Opcode::Div, Type::U32, {5, 0}) == 0xffffffffu);
  CHECK(run(Opcode::Div, Type::I64, {l(-5), 0}) == l(-1));
  CHECK(run(Opcode::Div, Type::U64, {0, 0}) == ~Bits{0});
  CHECK(run(Opcode::Rem, Type::I32, {i(-5), 0}) == i(-5));
  CHECK(run(Opcode::Rem, Type::U64, {~Bits{0}, 0}) == ~Bits{0});
  CHECK(run(Opcode::Div, Type::I32, {i(min32), i(-1)}) == i(min32));
  CHECK(run(Opcode::Rem, Type::I32, {i(min32), i(-1)}) == 0);
  CHECK(run(Opcode::Div, Type::I64, {l(min64), l(-1)}) == l(min64));
  CHECK(run(Opcode::Rem, Type::I64, {l(min64), l(-1)}) == 0);
  CHECK(run(Opcode::Div, Type::U32, {0x80000000u, 0xffffffffu}) == 0);
  CHECK(run(Opcode::Rem, Type::U32, {0x80000000u, 0xffffffffu}) == 0x80000000u);
  CHECK(run(Opcode::Div, Type::U32, {0xfffffffau, 5}) == 858993458u);
}

TEST_CASE("integers wrap") {
  CHECK(run(Opcode::Add, Type::I32, {i(2147483647), i(1)}) == i(std::numeric_limits<std::int32_t>::min()));
  CHECK(run(Opcode::Sub, Type::U32, {0, 1}) == 0xffffffffu);
  CHECK(run(Opcode::Mul, Type::I32, {0x10000, 0x10000}) == 0);
  CHECK(run(Opcode::Mul, Type::U64, {~Bits{0}, ~Bits{0}}) == 1);
  CHECK(run(Opcode::Neg, Type::I32, {0x80000000u}) == 0x80000000u);
  CHECK(run(Opcode::Neg, Type::U32, {1}) == 0xffffffffu);
  CHECK(run(Opcode::Abs, Type::I32, {0x80000000u}) == 0x80000000u);
  CHECK(run(Opcode::Abs, Type::I64, {l(-9)}) == 9);
  CHECK(run(Opcode::Abs, Type::U32, {0xffffffffu}) == 0xffffffffu);
  CHECK(run(Opcode::MulHi, Type::I32, {i(-1), i(1)}) == i(-1));
  CHECK(run(Opcode::MulHi, Type::U32, {0xffffffffu, 0xffffffffu}) == 0xfffffffeu);
  CHECK(run(Opcode::MulHi, Type::I64, {l(-1), l(-1)}) == 0);
  CHECK(run(Opcode::MulHi, Type::U64, {~Bits{0}, ~Bits{0}}) == ~Bits{0} - 1);
}

TEST_CASE("shift counts are unsigned and may pass the width") {
  CHECK(run(Opcode::Shl, Type::U32, {1, 31}) == 0x80000000u);
  CHECK(run(Opcode::Shl, Type::U32, {1, 32}) == 0);
  CHECK(run(Opcode::Shl, Type::I32, {1, i(-1)}) == 0);
  CHECK(run(Opcode::Shl, Type::U64, {1, 63}) == Bits{1} << 63);
  CHECK(run(Opcode::Shl, Type::U64, {1, 64}) == 0);
  CHECK(run(Opcode::Shl, Type::U64, {1, Bits{1} << 32}) == 0);
  CHECK(run(Opcode::Shr, Type::I32, {i(-8), 1}) == i(-4));
  CHECK(run(Opcode::Shr, Type::I32, {i(-8), 32}) == i(-1));
  CHECK(run(Opcode::Shr, Type::I32, {8, i(-1)}) == 0);
  CHECK(run(Opcode::Shr, Type::U32, {0xfffffff8u, 1}) == 0x7ffffffcu);
  CHECK(run(Opcode::Shr, Type::U32, {0xfffffff8u, 99}) == 0);
  CHECK(run(Opcode::Shr, Type::I64, {l(-8), 200}) == l(-1));
}

TEST_CASE("bit counts of zero give the width, also with 64 bits") {
  const Bits x[] = {0, 1, 0x8000000000000000u, 0x0000000100000000u, ~Bits{0}};
  const Bits clz[] = {64, 63, 0, 31, 0}, ctz[] = {64, 0, 63, 32, 0}, pop[] = {0, 1, 1, 1, 64};
  for (int n = 0; n < 5; ++n) {
    for (const Type t : {Type::U64, Type::I64}) {
      CHECK(run(Opcode::Clz, t, {x[n]}) == clz[n]);
      CHECK(run(Opcode::Ctz, t, {x[n]}) == ctz[n]);
      CHECK(run(Opcode::Popcount, t, {x[n]}) == pop[n]);
    }
  }
  const Bits y[] = {0, 1, 0x80000000u}, clz32[] = {32, 31, 0}, ctz32[] = {32, 0, 31}, pop32[] = {0, 1, 1};
  for (int n = 0; n < 3; ++n) {
    CHECK(run(Opcode::Clz, Type::U32, {y[n]}) == clz32[n]);
    CHECK(run(Opcode::Ctz, Type::I32, {y[n]}) == ctz32[n]);
    CHECK(run(Opcode::Popcount, Type::U32, {y[n]}) == pop32[n]);
  }
}

TEST_CASE("bool operations give 0 or 1") {
  for (const Bits a : {0, 1}) {
    for (const Bits b : {0, 1}) {
      CHECK(run(Opcode::And, Type::Bool, {a, b}) == (a & b));
      CHECK(run(Opcode::Or, Type::Bool, {a, b}) == (a | b));
      CHECK(run(Opcode::Xor, Type::Bool, {a, b}) == (a ^ b));
      CHECK(compare(Opcode::Eq, Type::Bool, a, b) == (a == b));
      CHECK(compare(Opcode::Ne, Type::Bool, a, b) == (a != b));
    }
    CHECK(run(Opcode::Not, Type::Bool, {a}) == 1 - a);
  }
  CHECK(run(Opcode::Not, Type::U32, {1}) == 0xfffffffeu);
}

TEST_CASE("min and max: the number wins over NaN in both orders and -0 is below +0") {
  const Bits a[] = {f(1), kNan, f(1), kNan}, b[] = {f(2), f(2), kNan, kNan};
  const Bits max[] = {f(2), f(2), f(1), kNan}, max_nan[] = {f(2), kNan, kNan, kNan};
  for (int n = 0; n < 4; ++n) {
    CHECK(run(Opcode::Max, Type::F32, {a[n], b[n]}) == max[n]);
    CHECK(run(Opcode::Max, Type::F32, {b[n], a[n]}) == max[n]);
    CHECK(run(Opcode::MaxNan, Type::F32, {a[n], b[n]}) == max_nan[n]);
    CHECK(run(Opcode::MaxNan, Type::F32, {b[n], a[n]}) == max_nan[n]);
  }
  CHECK(run(Opcode::Min, Type::F64, {kNan64, d(3)}) == d(3));
  CHECK(run(Opcode::MinNan, Type::F64, {d(3), 0xfff0000000000001u}) == kNan64);
  for (const Opcode code : {Opcode::Min, Opcode::MinNan}) {
    CHECK(run(code, Type::F32, {f(-0.0f), f(0.0f)}) == f(-0.0f));
    CHECK(run(code, Type::F32, {f(0.0f), f(-0.0f)}) == f(-0.0f));
  }
  for (const Opcode code : {Opcode::Max, Opcode::MaxNan}) {
    CHECK(run(code, Type::F64, {d(-0.0), d(0.0)}) == d(0.0));
    CHECK(run(code, Type::F64, {d(0.0), d(-0.0)}) == d(0.0));
  }
  CHECK(run(Opcode::Min, Type::I32, {i(-1), 1}) == i(-1));
  CHECK(run(Opcode::Min, Type::U32, {0xffffffffu, 1}) == 1);
}

TEST_CASE("float arithmetic is IEEE with canonical NaN and subnormals kept") {
  CHECK(run(Opcode::Add, Type::F32, {0xffc00001u, f(1)}) == kNan);
  CHECK(run(Opcode::Sub, Type::F32, {f(kInf), f(kInf)}) == kNan);
  CHECK(run(Opcode::Div, Type::F32, {f(0), f(0)}) == kNan);
  CHECK(run(Opcode::Div, Type::F32, {f(1), f(-0.0f)}) == f(-kInf));
  CHECK(run(Opcode::Mul, Type::F32, {f(kTiny), f(1)}) == f(kTiny));
  CHECK(run(Opcode::Add, Type::F64, {1, 1}) == 2);
  CHECK(run(Opcode::Sqrt, Type::F32, {f(-1)}) == kNan);
  CHECK(run(Opcode::Sqrt, Type::F32, {f(-0.0f)}) == f(-0.0f));
  CHECK(run(Opcode::Sqrt, Type::F64, {d(2)}) == 0x3ff6a09e667f3bcdu);
  const float q = 1 + std::ldexp(1.0f, -12);
  CHECK(run(Opcode::Fma, Type::F32, {f(q), f(q), f(-(q * q))}) == f(std::ldexp(1.0f, -24)));
  // Rounding twice, to f64 and then to f32, would give the even neighbour.
  CHECK(run(Opcode::Fma, Type::F32, {0x3f800001u, 0x3f800001u, f(std::ldexp(1.0f, -70))}) == 0x3f800002u);
}

TEST_CASE("neg, abs, copysign, select and bit_cast move bits") {
  CHECK(run(Opcode::Neg, Type::F32, {0x7f800001u}) == 0xff800001u);
  CHECK(run(Opcode::Neg, Type::F32, {0}) == 0x80000000u);
  CHECK(run(Opcode::Abs, Type::F64, {0xfff0000000000001u}) == 0x7ff0000000000001u);
  CHECK(run(Opcode::CopySign, Type::F32, {0x7f800001u, f(-1)}) == 0xff800001u);
  CHECK(run(Opcode::CopySign, Type::F64, {d(-2), d(0)}) == d(2));
  CHECK(run(Opcode::Select, Type::F32, {1, 0x7f800001u, 0}) == 0x7f800001u);
  CHECK(run(Opcode::Select, Type::F32, {0, 0x7f800001u, 5}) == 5);
  CHECK(evaluate(Opcode::BitCast, Type::F32, Type::U32, {{0x7f800001u}}) == 0x7f800001u);
  CHECK(evaluate(Opcode::BitCast, Type::I64, Type::F64, {{d(-2)}}) == d(-2));
  CHECK_FALSE(evaluate(Opcode::BitCast, Type::I64, Type::F32, {{0}}).has_value());
}

TEST_CASE("rounding to whole numbers") {
  const struct {
    float x, floor, ceil, trunc, even;
  } table[] = {{0.5f, 0, 1, 0, 0},
               {1.5f, 1, 2, 1, 2},
               {2.5f, 2, 3, 2, 2},
               {-0.5f, -1, -0.0f, -0.0f, -0.0f},
               {-1.5f, -2, -1, -1, -2},
               {8388609.0f, 8388609.0f, 8388609.0f, 8388609.0f, 8388609.0f},
               {-0.0f, -0.0f, -0.0f, -0.0f, -0.0f},
               {kInf, kInf, kInf, kInf, kInf}};
  for (const auto& row : table) {
    CHECK(run(Opcode::Floor, Type::F32, {f(row.x)}) == f(row.floor));
    CHECK(run(Opcode::Ceil, Type::F32, {f(row.x)}) == f(row.ceil));
    CHECK(run(Opcode::Trunc, Type::F32, {f(row.x)}) == f(row.trunc));
    CHECK(run(Opcode::RoundEven, Type::F32, {f(row.x)}) == f(row.even));
    CHECK(run(Opcode::RoundEven, Type::F64, {d(row.x)}) == d(row.even));
  }
  CHECK(run(Opcode::Floor, Type::F32, {0xff800001u}) == kNan);
}

TEST_CASE("comparisons with NaN are false, except ne") {
  for (const Bits other : {f(1), kNan}) {
    CHECK(compare(Opcode::Ne, Type::F32, kNan, other) == 1);
    for (const Opcode code : {Opcode::Eq, Opcode::Lt, Opcode::Le, Opcode::Gt, Opcode::Ge}) {
      CHECK(compare(code, Type::F32, kNan, other) == 0);
      CHECK(compare(code, Type::F32, other, kNan) == 0);
    }
  }
  CHECK(compare(Opcode::Eq, Type::F64, d(0.0), d(-0.0)) == 1);
  CHECK(compare(Opcode::Lt, Type::I32, i(-1), 1) == 1);
  CHECK(compare(Opcode::Lt, Type::U32, 0xffffffffu, 1) == 0);
  CHECK(compare(Opcode::Ge, Type::I64, l(-1), 1) == 0);
  CHECK(compare(Opcode::Ge, Type::U64, l(-1), 1) == 1);
}

TEST_CASE("float to integer saturates and NaN gives 0") {
  const float x[] = {NAN, kInf, -kInf, 3e9f, -3e9f, 2147483520.0f, -0.9f, 1.9f};
  const std::int32_t as_i32[] = {
      0, 2147483647, std::numeric_limits<std::int32_t>::min(), 2147483647, std::numeric_limits<std::int32_t>::min(), 2147483520, 0, 1};
  for (int n = 0; n < 8; ++n) {
    CHECK(cast(Type::I32, Type::F32, f(x[n])) == i(as_i32[n]));
    CHECK(cast(Type::I32, Type::F64, d(x[n])) == i(as_i32[n]));
  }
  const float y[] = {NAN, -1, 5e9f, 4294967040.0f};
  const Bits as_u32[] = {0, 0, 4294967295u, 4294967040u};
  for (int n = 0; n < 4; ++n) CHECK(cast(Type::U32, Type::F32, f(y[n])) == as_u32[n]);
  CHECK(cast(Type::I32, Type::F64, d(2147483647.9)) == i(2147483647));
  CHECK(cast(Type::I32, Type::F64, d(-2147483648.9)) == 0x80000000u);
  CHECK(cast(Type::U32, Type::F64, d(4294967295.5)) == 0xffffffffu);
  CHECK(cast(Type::U32, Type::F64, d(-0.5)) == 0);
  CHECK(cast(Type::I64, Type::F32, f(9.3e18f)) == l(std::numeric_limits<std::int64_t>::max()));
  CHECK(cast(Type::I64, Type::F64, d(-9.3e18)) == l(std::numeric_limits<std::int64_t>::min()));
  CHECK(cast(Type::U64, Type::F32, f(kInf)) == ~Bits{0});
  CHECK(cast(Type::U64, Type::F64, d(18446744073709549568.0)) == 18446744073709549568u);
  CHECK(cast(Type::U64, Type::F64, d(-5)) == 0);
}

TEST_CASE("integer to float rounds to nearest even, once") {
  CHECK(cast(Type::F32, Type::I32, i(16777217)) == f(16777216.0f));
  CHECK(cast(Type::F32, Type::U32, 0xffffffffu) == f(4294967296.0f));
  CHECK(cast(Type::F32, Type::I64, l(-1)) == f(-1));
  CHECK(cast(Type::F64, Type::U64, ~Bits{0}) == d(18446744073709551616.0));
  CHECK(cast(Type::F64, Type::I32, i(-7)) == d(-7));
  // Just above half way between two floats: by way of f64 it would be a tie and round down.
  CHECK(cast(Type::F32, Type::U64, 0x8000008000000001u) == 0x5f000001u);
  CHECK(cast(Type::F32, Type::U64, 0x8000008000000000u) == 0x5f000000u);
  CHECK(cast(Type::F32, Type::I64, 0x4000004000000001u) == 0x5e800001u);
}

TEST_CASE("other conversions") {
  CHECK(cast(Type::I64, Type::I32, i(-1)) == l(-1));
  CHECK(cast(Type::U64, Type::I32, i(-1)) == l(-1));
  CHECK(cast(Type::I64, Type::U32, 0xffffffffu) == 0xffffffffu);
  CHECK(cast(Type::I32, Type::U64, 0x1ffffffffu) == i(-1));
  CHECK(cast(Type::Bool, Type::I32, 256) == 1);
  CHECK(cast(Type::Bool, Type::U64, Bits{1} << 32) == 1);
  CHECK(cast(Type::Bool, Type::F32, f(-0.0f)) == 0);
  CHECK(cast(Type::Bool, Type::F32, kNan) == 1);
  CHECK(cast(Type::Bool, Type::F64, 1) == 1);
  CHECK(cast(Type::F32, Type::Bool, 1) == f(1));
  CHECK(cast(Type::I64, Type::Bool, 1) == 1);
  CHECK(cast(Type::F32, Type::F64, d(1e300)) == f(kInf));
  CHECK(cast(Type::F32, Type::F64, 0xfff0000000000001u) == kNan);
  CHECK(cast(Type::F64, Type::F32, f(kTiny)) == d(std::ldexp(1.0, -149)));
}

TEST_CASE("8-bit operations give the low bits of what whole numbers give, for every pair of operands") {
  for (const Type t : {Type::I8, Type::U8}) {
    const bool is_signed = t == Type::I8;
    const auto number = [&](int bits) { return is_signed ? static_cast<int>(static_cast<std::int8_t>(bits)) : bits; };
    int wrong = 0;
    for (int x = 0; x < 256; ++x) {
      for (int y = 0; y < 256; ++y) {
        const int a = number(x), b = number(y);
        const int quotient = b == 0 ? -1 : a / b, remainder = b == 0 ? a : a % b;
        const int left = y >= 8 ? 0 : a * (1 << y), right = y >= 8 ? (a < 0 ? -1 : 0) : a >> y;
        const struct {
          Opcode code;
          int result;
        } rows[] = {{Opcode::Add, a + b},        {Opcode::Sub, a - b}, {Opcode::Mul, a * b},          {Opcode::Div, quotient},
                    {Opcode::Rem, remainder},    {Opcode::Shl, left},  {Opcode::Shr, right},          {Opcode::And, a & b},
                    {Opcode::Or, a | b},         {Opcode::Xor, a ^ b}, {Opcode::MulHi, (a * b) >> 8}, {Opcode::Min, a < b ? a : b},
                    {Opcode::Max, a < b ? b : a}};
        for (const auto& row : rows) {
          const Bits in[] = {static_cast<Bits>(x), static_cast<Bits>(y)};
          wrong += evaluate(row.code, t, t, in) != (static_cast<Bits>(row.result) & 0xff);
        }
        const struct {
          Opcode code;
          bool result;
        } orders[] = {{Opcode::Lt, a < b},  {Opcode::Le, a <= b}, {Opcode::Gt, a > b},
                      {Opcode::Ge, a >= b}, {Opcode::Eq, a == b}, {Opcode::Ne, a != b}};
        for (const auto& row : orders) wrong += compare(row.code, t, static_cast<Bits>(x), static_cast<Bits>(y)) != row.result;
      }
      const int a = number(x);
      int leading = 0, trailing = 0;
      while (leading < 8 && (x >> (7 - leading) & 1) == 0) ++leading;
      while (trailing < 8 && (x >> trailing & 1) == 0) ++trailing;
      const auto one = [&](Opcode code, int result) {
        wrong += run(code, t, {static_cast<Bits>(x)}) != (static_cast<Bits>(result) & 0xff);
      };
      one(Opcode::Neg, -a);
      one(Opcode::Abs, a < 0 ? -a : a);
      one(Opcode::Not, ~a);
      one(Opcode::Clz, leading);
      one(Opcode::Ctz, trailing);
      one(Opcode::Popcount, __builtin_popcount(static_cast<unsigned>(x)));
      for (const Type to : {Type::I8, Type::U8, Type::I16, Type::U16, Type::I32, Type::I64})
        wrong += cast(to, t, static_cast<Bits>(x)) != (static_cast<Bits>(static_cast<std::int64_t>(a)) & value_mask(to));
      wrong += cast(Type::F32, t, static_cast<Bits>(x)) != f(static_cast<float>(a));
      wrong += cast(t, Type::F64, d(a + 0.75)) != (a == 127 && is_signed ? 127u : static_cast<Bits>(a < 0 ? a + 1 : a) & 0xff);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("floats saturate into 8 and 16 bits") {
  const float x[] = {300, -200, 127.9f, -128.9f, -129, 70000, -40000, 255.5f, kInf, -kInf};
  const int as_i8[] = {127, -128, 127, -128, -128, 127, -128, 127, 127, -128}, as_u8[] = {255, 0, 127, 0, 0, 255, 0, 255, 255, 0};
  const int as_i16[] = {300, -200, 127, -128, -129, 32767, -32768, 255, 32767, -32768},
            as_u16[] = {300, 0, 127, 0, 0, 65535, 0, 255, 65535, 0};
  for (int n = 0; n < 10; ++n) {
    CHECK(cast(Type::I8, Type::F32, f(x[n])) == (static_cast<Bits>(as_i8[n]) & 0xff));
    CHECK(cast(Type::U8, Type::F32, f(x[n])) == static_cast<Bits>(as_u8[n]));
    CHECK(cast(Type::I16, Type::F32, f(x[n])) == (static_cast<Bits>(as_i16[n]) & 0xffff));
    CHECK(cast(Type::U16, Type::F32, f(x[n])) == static_cast<Bits>(as_u16[n]));
  }
  for (const Type t : {Type::I8, Type::U8, Type::I16, Type::U16}) CHECK(cast(t, Type::F32, kNan) == 0);
}

TEST_CASE("what has no definition here gives nothing") {
  const Bits in[] = {1, 1};
  CHECK_FALSE(evaluate(Opcode::Rem, Type::F32, Type::F32, in).has_value());
  CHECK_FALSE(evaluate(Opcode::Pow, Type::F32, Type::F32, in).has_value());
  CHECK_FALSE(evaluate(Opcode::Exp, Type::F32, Type::F32, {{1}}).has_value());
  CHECK_FALSE(evaluate(Opcode::Rsqrt, Type::F32, Type::F32, {{1}}).has_value());
  CHECK_FALSE(evaluate(Opcode::Exp, Type::F16, Type::F16, {{1}}).has_value());
  CHECK_FALSE(evaluate(Opcode::Add, Type::Bool, Type::Bool, in).has_value());
  CHECK_FALSE(evaluate(Opcode::Add, Type::U32, Type::U32, {{1}}).has_value());
  CHECK_FALSE(evaluate(Opcode::Cast, Type::Void, Type::I32, {{1}}).has_value());
  CHECK_FALSE(evaluate(Opcode::BlockUniform, Type::I32, Type::I32, {{1}}).has_value());
  CHECK_FALSE(evaluate(Opcode::ThreadId, Type::U32, Type::U32, {}).has_value());
  CHECK_FALSE(evaluate(Opcode::Sqrt, Type::U32, Type::U32, {{1}}).has_value());
}

TEST_CASE("an identity leaves every value as it is") {
  const struct {
    Type type;
    std::vector<Combine> how;
    std::vector<Bits> values;
  } table[] = {
      {Type::Bool, {Combine::And, Combine::Or, Combine::Xor}, {0, 1}},
      {Type::I32,
       {Combine::Add, Combine::Mul, Combine::Min, Combine::Max, Combine::And, Combine::Or, Combine::Xor},
       {0, 1, 0x7fffffffu, 0x80000000u, 0xffffffffu}},
      {Type::U32,
       {Combine::Add, Combine::Mul, Combine::Min, Combine::Max, Combine::And, Combine::Or, Combine::Xor},
       {0, 1, 0x7fffffffu, 0x80000000u, 0xffffffffu}},
      {Type::I64,
       {Combine::Add, Combine::Mul, Combine::Min, Combine::Max, Combine::And, Combine::Or, Combine::Xor},
       {0, 1, ~Bits{0} >> 1, Bits{1} << 63, ~Bits{0}}},
      {Type::U64,
       {Combine::Add, Combine::Mul, Combine::Min, Combine::Max, Combine::And, Combine::Or, Combine::Xor},
       {0, 1, ~Bits{0} >> 1, Bits{1} << 63, ~Bits{0}}},
      {Type::F32, {Combine::Add, Combine::Mul, Combine::Min, Combine::Max}, {f(0), f(-0.0f), f(kInf), f(-kInf), f(kTiny), kNan}},
      {Type::F64, {Combine::Add, Combine::Mul, Combine::Min, Combine::Max}, {d(0), d(-0.0), d(kInf), 1, kNan64}},
  };
  for (const auto& row : table) {
    for (const Combine how : row.how) {
      for (const Bits v : row.values) {
        CAPTURE(name(row.type));
        CAPTURE(name(how));
        CAPTURE(v);
        CHECK(combine(how, row.type, v, identity(how, row.type)) == v);
        CHECK(combine(how, row.type, identity(how, row.type), v) == v);
      }
    }
  }
  CHECK(combine(Combine::Add, Type::F32, f(1), f(2)) == f(3));
  CHECK(combine(Combine::Min, Type::F32, f(1), kNan) == f(1));
}
