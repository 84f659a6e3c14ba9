// Zeros, infinities, NaN and exact values of the math functions in both formats, as C, Annex F, says. For pow: math_test.cpp.
#include <doctest/doctest.h>

#include <limits>

#include "math_accuracy.h"
#include "math_evaluator.h"

using namespace kiln::ir;
using namespace kiln::ir::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;

// Numbers that stand for those of the format that is tested.
constexpr double kTiny = -12345.5, kMinusTiny = -12345.25, kMost = -12345.125;
template <class T>
T number(double v) {
  using Limits = std::numeric_limits<T>;
  return v == kTiny ? Limits::denorm_min() : v == kMinusTiny ? -Limits::denorm_min() : v == kMost ? Limits::max() : static_cast<T>(v);
}

struct OfOne {
  Opcode op;
  double x, expected;
};
constexpr OfOne kOfOne[] = {
    {Opcode::Exp, -0.0, 1},
    {Opcode::Exp, -kInf, 0},
    {Opcode::Exp, kMost, kInf},
    {Opcode::Exp, kTiny, 1},
    {Opcode::Exp2, 0, 1},
    {Opcode::Exp2, -0.0, 1},
    {Opcode::Exp2, 10, 1024},
    {Opcode::Exp2, -1, 0.5},
    {Opcode::Exp2, -126, 0x1p-126},
    {Opcode::Exp2, kInf, kInf},
    {Opcode::Exp2, -kInf, 0},
    {Opcode::Exp2, kNan, kNan},
    {Opcode::Exp2, kMost, kInf},
    {Opcode::Exp2, 1024, kInf},
    {Opcode::Exp2, -1075, 0},
    {Opcode::Exp10, 0, 1},
    {Opcode::Exp10, 1, 10},
    {Opcode::Exp10, 2, 100},
    {Opcode::Exp10, 3, 1000},
    {Opcode::Exp10, 5, 100000},
    {Opcode::Exp10, kInf, kInf},
    {Opcode::Exp10, -kInf, 0},
    {Opcode::Exp10, kNan, kNan},
    {Opcode::Exp10, 309, kInf},
    {Opcode::Exp10, -324, 0},
    {Opcode::Exp10, kMost, kInf},
    {Opcode::Expm1, 0, 0},
    {Opcode::Expm1, -0.0, -0.0},
    {Opcode::Expm1, kInf, kInf},
    {Opcode::Expm1, -kInf, -1},
    {Opcode::Expm1, kNan, kNan},
    {Opcode::Expm1, kTiny, kTiny},
    {Opcode::Expm1, kMinusTiny, kMinusTiny},
    {Opcode::Expm1, -100, -1},
    {Opcode::Expm1, kMost, kInf},
    {Opcode::Log, 1, 0},
    {Opcode::Log, -0.0, -kInf},
    {Opcode::Log, kMinusTiny, kNan},
    {Opcode::Log2, 1, 0},
    {Opcode::Log2, 8, 3},
    {Opcode::Log2, 0.5, -1},
    {Opcode::Log2, 0x1p-126, -126},
    {Opcode::Log2, 0x1p-149, -149},
    {Opcode::Log2, 0, -kInf},
    {Opcode::Log2, -0.0, -kInf},
    {Opcode::Log2, -1, kNan},
    {Opcode::Log2, kInf, kInf},
    {Opcode::Log2, -kInf, kNan},
    {Opcode::Log2, kNan, kNan},
    {Opcode::Log10, 1, 0},
    {Opcode::Log10, 10, 1},
    {Opcode::Log10, 100, 2},
    {Opcode::Log10, 1000, 3},
    {Opcode::Log10, 1e10, 10},
    {Opcode::Log10, 0, -kInf},
    {Opcode::Log10, -2, kNan},
    {Opcode::Log10, kInf, kInf},
    {Opcode::Log10, kNan, kNan},
    {Opcode::Log1p, 0, 0},
    {Opcode::Log1p, -0.0, -0.0},
    {Opcode::Log1p, kTiny, kTiny},
    {Opcode::Log1p, kMinusTiny, kMinusTiny},
    {Opcode::Log1p, -1, -kInf},
    {Opcode::Log1p, -1.5, kNan},
    {Opcode::Log1p, -kInf, kNan},
    {Opcode::Log1p, kInf, kInf},
    {Opcode::Log1p, kNan, kNan},
    {Opcode::Sin, -0.0, -0.0},
    {Opcode::Sin, kInf, kNan},
    {Opcode::Sin, kMinusTiny, kMinusTiny},
    {Opcode::Cos, kMinusTiny, 1},
    {Opcode::Cos, kInf, kNan},
    {Opcode::Cos, kNan, kNan},
    {Opcode::Tan, 0, 0},
    {Opcode::Tan, -0.0, -0.0},
    {Opcode::Tan, kTiny, kTiny},
    {Opcode::Tan, kMinusTiny, kMinusTiny},
    {Opcode::Tan, kInf, kNan},
    {Opcode::Tan, -kInf, kNan},
    {Opcode::Tan, kNan, kNan},
    {Opcode::Asin, 0, 0},
    {Opcode::Asin, -0.0, -0.0},
    {Opcode::Asin, kTiny, kTiny},
    {Opcode::Asin, 1, kPi / 2},
    {Opcode::Asin, -1, -kPi / 2},
    {Opcode::Asin, 1.5, kNan},
    {Opcode::Asin, -kInf, kNan},
    {Opcode::Asin, kNan, kNan},
    {Opcode::Acos, 1, 0},
    {Opcode::Acos, -1, kPi},
    {Opcode::Acos, 0, kPi / 2},
    {Opcode::Acos, kMinusTiny, kPi / 2},
    {Opcode::Acos, 1.5, kNan},
    {Opcode::Acos, -1.5, kNan},
    {Opcode::Acos, kInf, kNan},
    {Opcode::Acos, kNan, kNan},
    {Opcode::Atan, 0, 0},
    {Opcode::Atan, -0.0, -0.0},
    {Opcode::Atan, kTiny, kTiny},
    {Opcode::Atan, 1, kPi / 4},
    {Opcode::Atan, kInf, kPi / 2},
    {Opcode::Atan, -kInf, -kPi / 2},
    {Opcode::Atan, kMost, kPi / 2},
    {Opcode::Atan, kNan, kNan},
    {Opcode::Sinh, 0, 0},
    {Opcode::Sinh, -0.0, -0.0},
    {Opcode::Sinh, kTiny, kTiny},
    {Opcode::Sinh, kInf, kInf},
    {Opcode::Sinh, -kInf, -kInf},
    {Opcode::Sinh, -1000, -kInf},
    {Opcode::Sinh, kNan, kNan},
    {Opcode::Cosh, 0, 1},
    {Opcode::Cosh, -0.0, 1},
    {Opcode::Cosh, kTiny, 1},
    {Opcode::Cosh, kInf, kInf},
    {Opcode::Cosh, -kInf, kInf},
    {Opcode::Cosh, -1000, kInf},
    {Opcode::Cosh, kNan, kNan},
    {Opcode::Tanh, -0.0, -0.0},
    {Opcode::Tanh, kMinusTiny, kMinusTiny},
    {Opcode::Tanh, kInf, 1},
    {Opcode::Tanh, -50, -1},
    {Opcode::Tanh, kNan, kNan},
    {Opcode::Asinh, 0, 0},
    {Opcode::Asinh, -0.0, -0.0},
    {Opcode::Asinh, kTiny, kTiny},
    {Opcode::Asinh, kInf, kInf},
    {Opcode::Asinh, -kInf, -kInf},
    {Opcode::Asinh, kNan, kNan},
    {Opcode::Acosh, 1, 0},
    {Opcode::Acosh, 0.5, kNan},
    {Opcode::Acosh, -1, kNan},
    {Opcode::Acosh, -kInf, kNan},
    {Opcode::Acosh, kInf, kInf},
    {Opcode::Acosh, kNan, kNan},
    {Opcode::Atanh, 0, 0},
    {Opcode::Atanh, -0.0, -0.0},
    {Opcode::Atanh, kTiny, kTiny},
    {Opcode::Atanh, 1, kInf},
    {Opcode::Atanh, -1, -kInf},
    {Opcode::Atanh, 2, kNan},
    {Opcode::Atanh, -kInf, kNan},
    {Opcode::Atanh, kNan, kNan},
    {Opcode::Erf, 0, 0},
    {Opcode::Erf, -0.0, -0.0},
    {Opcode::Erf, kTiny, kTiny},
    {Opcode::Erf, kInf, 1},
    {Opcode::Erf, -kInf, -1},
    {Opcode::Erf, 7, 1},
    {Opcode::Erf, kNan, kNan},
    {Opcode::Erfc, 0, 1},
    {Opcode::Erfc, -0.0, 1},
    {Opcode::Erfc, kTiny, 1},
    {Opcode::Erfc, kInf, 0},
    {Opcode::Erfc, -kInf, 2},
    {Opcode::Erfc, 30, 0},
    {Opcode::Erfc, -30, 2},
    {Opcode::Erfc, kNan, kNan},
    {Opcode::Cbrt, 0, 0},
    {Opcode::Cbrt, -0.0, -0.0},
    {Opcode::Cbrt, 8, 2},
    {Opcode::Cbrt, 27, 3},
    {Opcode::Cbrt, -64, -4},
    {Opcode::Cbrt, 0x1p-147, 0x1p-49},
    {Opcode::Cbrt, 0x1p126, 0x1p42},
    {Opcode::Cbrt, kInf, kInf},
    {Opcode::Cbrt, -kInf, -kInf},
    {Opcode::Cbrt, kNan, kNan},
    {Opcode::Rsqrt, 4, 0.5},
    {Opcode::Rsqrt, -0.0, -kInf},
    {Opcode::Rsqrt, kInf, 0},
    {Opcode::Rsqrt, -1, kNan},
};

struct OfTwo {
  Opcode op;
  double x, y, expected;
};
constexpr OfTwo kOfTwo[] = {
    {Opcode::Atan2, 0, 1, 0},
    {Opcode::Atan2, -0.0, 1, -0.0},
    {Opcode::Atan2, 0, 0, 0},
    {Opcode::Atan2, -0.0, 0, -0.0},
    {Opcode::Atan2, 0, -0.0, kPi},
    {Opcode::Atan2, -0.0, -0.0, -kPi},
    {Opcode::Atan2, 0, -1, kPi},
    {Opcode::Atan2, -0.0, -1, -kPi},
    {Opcode::Atan2, 1, 0, kPi / 2},
    {Opcode::Atan2, -1, 0, -kPi / 2},
    {Opcode::Atan2, 1, -0.0, kPi / 2},
    {Opcode::Atan2, 1, 1, kPi / 4},
    {Opcode::Atan2, 1, -1, 3 * kPi / 4},
    {Opcode::Atan2, -1, -1, -3 * kPi / 4},
    {Opcode::Atan2, 1, kInf, 0},
    {Opcode::Atan2, -1, kInf, -0.0},
    {Opcode::Atan2, 1, -kInf, kPi},
    {Opcode::Atan2, -1, -kInf, -kPi},
    {Opcode::Atan2, kInf, 1, kPi / 2},
    {Opcode::Atan2, -kInf, -1, -kPi / 2},
    {Opcode::Atan2, kInf, kInf, kPi / 4},
    {Opcode::Atan2, -kInf, kInf, -kPi / 4},
    {Opcode::Atan2, kInf, -kInf, 3 * kPi / 4},
    {Opcode::Atan2, -kInf, -kInf, -3 * kPi / 4},
    {Opcode::Atan2, kTiny, 1, kTiny},
    {Opcode::Atan2, kTiny, kMost, 0},
    {Opcode::Atan2, kMost, kTiny, kPi / 2},
    {Opcode::Atan2, kTiny, kTiny, kPi / 4},
    {Opcode::Atan2, kNan, 1, kNan},
    {Opcode::Atan2, 1, kNan, kNan},
    {Opcode::Hypot, 3, 4, 5},
    {Opcode::Hypot, -3, -4, 5},
    {Opcode::Hypot, 0, 0, 0},
    {Opcode::Hypot, -0.0, -0.0, 0},
    {Opcode::Hypot, -2, 0, 2},
    {Opcode::Hypot, kTiny, 0, kTiny},
    {Opcode::Hypot, kMost, 0, kMost},
    {Opcode::Hypot, kMost, kMost, kInf},
    {Opcode::Hypot, kInf, kNan, kInf},
    {Opcode::Hypot, kNan, -kInf, kInf},
    {Opcode::Hypot, 1, kNan, kNan},
    {Opcode::Hypot, kNan, 1, kNan},
    {Opcode::Rhypot, 0, 2, 0.5},
    {Opcode::Rhypot, 0, 0, kInf},
    {Opcode::Rhypot, -0.0, 0, kInf},
    {Opcode::Rhypot, kTiny, 0, kInf},
    {Opcode::Rhypot, -kInf, kNan, 0},
    {Opcode::Rhypot, kNan, kInf, 0},
    {Opcode::Rhypot, kNan, 1, kNan},
    {Opcode::Pow, -0.0, -1, -kInf},
    {Opcode::Pow, kNan, 0, 1},
    {Opcode::Pow, 1, kNan, 1},
    {Opcode::Pow, -1, kInf, 1},
    {Opcode::Pow, -2.5, 1.5, kNan},
    {Opcode::Pow, -2, 3, -8},
    {Opcode::Pow, 0.5, -kInf, kInf},
    {Opcode::Pow, 10, 10, 1e10},
    {Opcode::Pow, kMost, kMost, kInf},
    {Opcode::Pow, kTiny, -1, kInf},
    {Opcode::Pow, -kInf, -3, -0.0},
};

struct Power {
  double x;
  std::int32_t n;
  double expected;
};
constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min(), kLargest = std::numeric_limits<std::int32_t>::max();
constexpr Power kPowers[] = {
    {5, 0, 1},        {kNan, 0, 1},      {kInf, 0, 1},    {0, 0, 1},           {-2, 3, -8},         {-2, 2, 4},
    {2, 10, 1024},    {10, 2, 100},      {0.5, -3, 8},    {0, -1, kInf},       {-0.0, -1, -kInf},   {-0.0, -2, kInf},
    {-0.0, 3, -0.0},  {-0.0, 2, 0},      {0, 3, 0},       {kInf, -3, 0},       {-kInf, -3, -0.0},   {-kInf, 3, -kInf},
    {-kInf, 2, kInf}, {kNan, 2, kNan},   {-1, kLeast, 1}, {-1, kLargest, -1},  {-1, 16777217, -1},  {1, kLargest, 1},
    {2, 2000, kInf},  {-2, 2001, -kInf}, {2, -2000, 0},   {0.5, kLeast, kInf}, {2, -126, 0x1p-126}, {2, kLargest, kInf},
};

template <class T>
void hold(Type type) {
  for (const OfOne& row : kOfOne) {
    CAPTURE(std::string(info(row.op).mnemonic));
    const T x = number<T>(row.x), got = MathFunction(row.op, type)(x);
    CAPTURE(x);
    CAPTURE(got);
    CHECK(same(got, number<T>(row.expected)));
  }
  for (const OfTwo& row : kOfTwo) {
    CAPTURE(std::string(info(row.op).mnemonic));
    const T x = number<T>(row.x), y = number<T>(row.y), got = MathFunction(row.op, type)(x, y);
    CAPTURE(x);
    CAPTURE(y);
    CAPTURE(got);
    CHECK(same(got, number<T>(row.expected)));
  }
  MathFunction power(Opcode::PowI, type);
  for (const Power& row : kPowers) {
    const T x = number<T>(row.x), got = power(x, row.n);
    CAPTURE(x);
    CAPTURE(row.n);
    CAPTURE(got);
    CHECK(same(got, number<T>(row.expected)));
  }
}

}  // namespace

TEST_CASE("functions of f32 have the special values of C, Annex F") { hold<float>(Type::F32); }
TEST_CASE("functions of f64 have the special values of C, Annex F") { hold<double>(Type::F64); }

TEST_CASE("results below the smallest normal number are rounded once") {
  MathFunction exp(Opcode::Exp, Type::F64), exp2(Opcode::Exp2, Type::F64), pow(Opcode::Pow, Type::F64), narrow(Opcode::Exp2, Type::F32);
  CHECK(same(exp2(-1074.0), std::numeric_limits<double>::denorm_min()));
  CHECK(same(exp2(-1030.0), 0x1p-1030));
  CHECK(same(exp(-745.0), std::numeric_limits<double>::denorm_min()));
  CHECK(same(exp(-746.0), 0.0));
  CHECK(same(exp(709.8), kInf));
  CHECK(same(pow(2.0, -1074.0), std::numeric_limits<double>::denorm_min()));
  CHECK(same(narrow(-149.0f), 0x1p-149f));
  CHECK(same(narrow(-140.0f), 0x1p-140f));
}
