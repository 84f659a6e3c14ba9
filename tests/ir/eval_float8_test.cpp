// e4m3 and e5m2 against their definition: what a conversion evaluates to, what it is expanded into, and the host's types.
#include <doctest/doctest.h>

#include <bit>
#include <span>

#include "kiln/ir/decimal.h"
#include "kiln/ir/eval.h"
#include "kiln/ir/floats.h"
#include "kiln/runtime/scalar.h"
#include "support/float8.h"

using namespace kiln::ir;
using kiln::test::float8_boundaries;
using kiln::test::float8_nearest;
using kiln::test::float8_value;

namespace {

using Bits = std::uint64_t;
constexpr Type kFloat8[] = {Type::E4M3, Type::E5M2}, kFloats[] = {Type::F16, Type::BF16, Type::F32, Type::F64};

Bits cast(Type to, Type from, Bits a) { return evaluate(Opcode::Cast, to, from, {{a}}).value(); }
Bits d(double v) { return std::bit_cast<Bits>(v); }

bool same(double a, double b) { return (a != a && b != b) || d(a) == d(b); }

}  // namespace

TEST_CASE("each code of e4m3 and e5m2 is the number that its format says") {
  for (const Type t : kFloat8) {
    for (unsigned code = 0; code < 256; ++code) {
      CAPTURE(code);
      CHECK(same(float_value(t, code), float8_value(t, code)));
      CHECK(is_nan(t, code) == std::isnan(float8_value(t, code)));
      for (const Type wide : kFloats) CHECK(same(float_value(wide, cast(wide, t, code)), float8_value(t, code)));
    }
  }
  CHECK(float8_value(Type::E4M3, 0x7e) == 448);
  CHECK(float8_value(Type::E4M3, 0x01) == 0x1p-9);
  CHECK(float8_value(Type::E5M2, 0x7b) == 57344);
  CHECK(float8_value(Type::E5M2, 0x01) == 0x1p-16);
}

TEST_CASE("a conversion to e4m3 or e5m2 evaluates to the nearest number, ties to even, saturating; NaN stays one") {
  for (const Type t : kFloat8) {
    CAPTURE(name(t));
    for (const double x : float8_boundaries<double>(t)) {
      CAPTURE(x);
      CHECK(cast(t, Type::F64, d(x)) == float8_nearest(t, x));
    }
    for (const float x : float8_boundaries<float>(t)) {
      CAPTURE(x);
      CHECK(cast(t, Type::F32, std::bit_cast<std::uint32_t>(x)) == float8_nearest(t, x));
    }
    for (const Type from : {Type::F16, Type::BF16}) {
      std::size_t wrong = 0;
      for (Bits h = 0; h < 0x10000; ++h) wrong += cast(t, from, h) != float8_nearest(t, float_value(from, h));
      CHECK(wrong == 0);
    }
    const Type other = t == Type::E4M3 ? Type::E5M2 : Type::E4M3;
    for (unsigned code = 0; code < 256; ++code) {
      CAPTURE(code);
      CHECK(cast(t, other, code) == float8_nearest(t, float8_value(other, code)));
      CHECK(cast(t, t, code) == code);
    }
  }
}

TEST_CASE("nothing but conversions from and to floats is evaluated of e4m3 and e5m2") {
  for (const Type t : kFloat8) {
    for (int i = 0; i < kOpcodeCount; ++i) {
      const auto code = static_cast<Opcode>(i);
      const Bits in[3] = {1, 2, 3};
      for (std::size_t n = 1; n <= 3; ++n) {
        const bool moved = (code == Opcode::Select && n == 3) || ((code == Opcode::BitCast || code == Opcode::Cast) && n == 1);
        CHECK_MESSAGE(evaluate(code, t, t, std::span(in).first(n)).has_value() == moved, info(code).mnemonic);
      }
    }
    for (const Type other : {Type::Bool, Type::I8, Type::U8, Type::I32, Type::U64}) {
      CHECK(!evaluate(Opcode::Cast, t, other, {{Bits{1}}}));
      CHECK(!evaluate(Opcode::Cast, other, t, {{Bits{1}}}));
    }
    CHECK(evaluate(Opcode::BitCast, Type::U8, t, {{Bits{0x9c}}}) == Bits{0x9c});
    CHECK(evaluate(Opcode::BitCast, t, Type::I8, {{Bits{0x9c}}}) == Bits{0x9c});
    CHECK(!evaluate(Opcode::BitCast, t, Type::U16, {{Bits{1}}}));
  }
}

TEST_CASE("decimals are read once rounded, and written as the shortest that is read as the value") {
  for (const Type t : kFloat8) {
    for (unsigned code = 0; code < 256; ++code) {
      const double v = float8_value(t, code);
      if (v - v != 0) continue;
      CAPTURE(code);
      CHECK(to_narrow(t, shortest_decimal(t, code)) == static_cast<std::uint16_t>(code));
    }
  }
  CHECK(shortest_decimal(Type::E4M3, 0x2d) == "0.4");  // 0.40625
  CHECK(shortest_decimal(Type::E4M3, 0x7e) == "4.5e+02");
  CHECK(shortest_decimal(Type::E5M2, 0xfc) == "-inf");
  CHECK(to_narrow(Type::E4M3, "464") == std::uint16_t{0x7e});  // the middle of 448 and 480, which is not there
  CHECK(!to_narrow(Type::E4M3, "464.000000000000000000000000001"));
  CHECK(to_narrow(Type::E4M3, "1.06250000000000000000000000001") == std::uint16_t{0x39});
  CHECK(to_narrow(Type::E4M3, "1.0625") == std::uint16_t{0x38});
  CHECK(!to_narrow(Type::E5M2, "-61440"));
}

TEST_CASE("a host number becomes an e4m3 or e5m2 once rounded, and that a float") {
  using kiln::e4m3, kiln::e5m2;
  static_assert(sizeof(e4m3) == 1 && sizeof(e5m2) == 1);
  static_assert(e4m3(0.4).bits() == 0x2d && e4m3(1000).bits() == 0x7e && e4m3(-1e300).bits() == 0xfe);
  static_assert(e5m2(57344).bits() == 0x7b && e5m2(1e9f).bits() == 0x7b && e5m2(kiln::f16(1.5)).bits() == 0x3e);
  static_assert(e4m3(e5m2(-2)).bits() == 0xc0 && e4m3() == e4m3::from_bits(0x80));
  // 1.0625 + 2^-30 is 1.0625, a tie, as a float: by way of which it would be 1.
  static_assert(e4m3(1.0625 + 0x1p-30).bits() == 0x39);
  // Ties between 16, 18 and 20.
  static_assert(e4m3(17).bits() == 0x58 && e4m3(19).bits() == 0x5a);
  for (unsigned code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    CHECK(same(static_cast<float>(e4m3::from_bits(byte)), float8_value(Type::E4M3, code)));
    CHECK(same(static_cast<float>(e5m2::from_bits(byte)), float8_value(Type::E5M2, code)));
  }
}
