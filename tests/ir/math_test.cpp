// The math library: special values, and exactness where it is promised. Errors: math_accuracy_test.cpp; values that C, Annex F, lists for
// the other functions: math_edges_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kiln/ir/verify.h"
#include "math_accuracy.h"
#include "math_evaluator.h"

using namespace kiln::ir;
using namespace kiln::ir::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

float any_float(std::mt19937_64& random) { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); }

}  // namespace

TEST_CASE("sin and cos are right for arguments next to multiples of pi/2, small and huge") {
  // The f32 next to k pi/2 leave the smallest remainders there are; 16367173 x 2^72 is the worst of all.
  MathFunction sin(Opcode::Sin, Type::F32), cos(Opcode::Cos, Type::F32);
  double worst = 0;
  const auto check = [&](float x) { worst = std::max({worst, ulps(sin(x), std::sin(double{x})), ulps(cos(x), std::cos(double{x}))}); };
  for (int k = 1; k < 20000; ++k) {
    const auto x = static_cast<float>(k * 1.5707963267948966);
    for (const float y : {x, std::nextafter(x, 0.0f), std::nextafter(x, kInf)}) check(y);
  }
  for (const float x : {0x1.f37204p+95f, 16367173.0f * 0x1p72f, 65535.99f, 65536.0f, 65536.01f, kMax, 0x1p127f, 1e30f, 1e10f}) {
    check(x);
    check(-x);
  }
  CHECK(worst <= 1.0);
}

TEST_CASE("special values of the functions of one argument") {
  struct Row {
    Opcode op;
    float x, expected;
  };
  const Row rows[] = {
      {Opcode::Exp, 0, 1},
      {Opcode::Exp, -0.0f, 1},
      {Opcode::Exp, kInf, kInf},
      {Opcode::Exp, -kInf, 0},
      {Opcode::Exp, kNan, kNan},
      {Opcode::Exp, 88.8f, kInf},
      {Opcode::Exp, -104, 0},
      {Opcode::Exp, kMax, kInf},
      {Opcode::Exp, -kMax, 0},
      {Opcode::Exp, kTiny, 1},
      {Opcode::Exp, -103.9f, kTiny},
      {Opcode::Log, 1, 0},
      {Opcode::Log, 0, -kInf},
      {Opcode::Log, -0.0f, -kInf},
      {Opcode::Log, kInf, kInf},
      {Opcode::Log, -1, kNan},
      {Opcode::Log, -kInf, kNan},
      {Opcode::Log, kNan, kNan},
      {Opcode::Log, -kTiny, kNan},
      {Opcode::Sin, 0, 0},
      {Opcode::Sin, -0.0f, -0.0f},
      {Opcode::Sin, kInf, kNan},
      {Opcode::Sin, -kInf, kNan},
      {Opcode::Sin, kNan, kNan},
      {Opcode::Sin, kTiny, kTiny},
      {Opcode::Sin, -kTiny, -kTiny},
      {Opcode::Cos, 0, 1},
      {Opcode::Cos, -0.0f, 1},
      {Opcode::Cos, kInf, kNan},
      {Opcode::Cos, kNan, kNan},
      {Opcode::Cos, kTiny, 1},
      {Opcode::Tanh, 0, 0},
      {Opcode::Tanh, -0.0f, -0.0f},
      {Opcode::Tanh, kInf, 1},
      {Opcode::Tanh, -kInf, -1},
      {Opcode::Tanh, kNan, kNan},
      {Opcode::Tanh, 50, 1},
      {Opcode::Tanh, -50, -1},
      {Opcode::Tanh, 1000, 1},
      {Opcode::Tanh, -1000, -1},
      {Opcode::Tanh, kTiny, kTiny},
      {Opcode::Tanh, kMax, 1},
      {Opcode::Rsqrt, 1, 1},
      {Opcode::Rsqrt, 4, 0.5f},
      {Opcode::Rsqrt, 0, kInf},
      {Opcode::Rsqrt, -0.0f, -kInf},
      {Opcode::Rsqrt, kInf, 0},
      {Opcode::Rsqrt, -1, kNan},
      {Opcode::Rsqrt, kNan, kNan},
      {Opcode::Rsqrt, -kInf, kNan},
      {Opcode::Rsqrt, 0x1p-148f, 0x1p74f},
      {Opcode::Rsqrt, 0x1p126f, 0x1p-63f},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(info(row.op).mnemonic));
    CAPTURE(row.x);
    MathFunction f(row.op, Type::F32);
    const float got = f(row.x);
    CAPTURE(got);
    CHECK(same(got, row.expected));
  }
}

TEST_CASE("rsqrt is correctly rounded") {
  // Scaling by 4 scales the result by a half exactly, so all mantissas of two neighbouring exponents stand for all normal numbers; here a
  // sixteenth of them, all of them in tests/bench/math_ulp.cpp. Correct rounding of y: (y - ulp/2)^-2 > x > (y + ulp/2)^-2, exactly in
  // integers.
  MathFunction f(Opcode::Rsqrt, Type::F32);
  const auto nearest = [](float x, float y) {
    using Wide = unsigned __int128;
    const auto m = static_cast<Wide>(double{y} * 0x1p25);  // y in (1/2, 1]: exact, half a unit in its last place is 1
    const auto xm = static_cast<Wide>(double{x} * 0x1p23);
    const Wide one = Wide{1} << 73;  // 2^(23 + 2 * 25)
    return (y == 1.0f || xm * (m - 1) * (m - 1) < one) && xm * (m + 1) * (m + 1) > one;
  };
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < (1u << 24); i += 16 + (i >> 6) % 7) {
    const float x = std::bit_cast<float>(0x3f800000u + i);  // [1, 4)
    wrong += !nearest(x, f(x));
  }
  CHECK(wrong == 0);
  // The hardest ones: a step without its second-order term, and one with other rounding, got these wrong.
  for (const float x : {0x1.13e07p+1f, 0x1.7431c6p+1f}) CHECK(nearest(x, f(x)));
  CHECK_FALSE(nearest(0x1.13e07p+1f, 0x1.5cc0a8p-1f));
}

TEST_CASE("pow has the special values of C, Annex F") {
  struct Row {
    float x, y, expected;
  };
  const Row rows[] = {
      {-2, 3, -8},
      {-2, 2, 4},
      {-2, 0.5f, kNan},
      {-1.5f, 1, -1.5f},
      {0, 0, 1},
      {-0.0f, -1, -kInf},
      {kNan, 0, 1},
      {0, -1, kInf},
      {-0.0f, -3, -kInf},
      {0, -2, kInf},
      {-0.0f, -2, kInf},
      {-0.0f, -0.5f, kInf},
      {0, -kInf, kInf},
      {-0.0f, -kInf, kInf},
      {0, 3, 0},
      {-0.0f, 3, -0.0f},
      {-0.0f, 2, 0},
      {-0.0f, 2.5f, 0},
      {0, 0.5f, 0},
      {-0.0f, kInf, 0},
      {-1, kInf, 1},
      {-1, -kInf, 1},
      {1, kNan, 1},
      {1, kInf, 1},
      {1, -kInf, 1},
      {kNan, -0.0f, 1},
      {kInf, 0, 1},
      {-3, 0, 1},
      {-2.5f, 1.5f, kNan},
      {-kTiny, 0.5f, kNan},
      {-kMax, 0.25f, kNan},
      {-2.5f, kInf, kInf},
      {-0.5f, kInf, 0},
      {-0.5f, -kInf, kInf},
      {-2.5f, -kInf, 0},
      {0.5f, -kInf, kInf},
      {2, -kInf, 0},
      {0.5f, kInf, 0},
      {2, kInf, kInf},
      {-kInf, -3, -0.0f},
      {-kInf, -2, 0},
      {-kInf, -2.5f, 0},
      {-kInf, 3, -kInf},
      {-kInf, 2, kInf},
      {-kInf, 2.5f, kInf},
      {-kInf, kInf, kInf},
      {-kInf, -kInf, 0},
      {kInf, -3, 0},
      {kInf, 3, kInf},
      {kInf, 0.5f, kInf},
      {kInf, -kInf, 0},
      {kNan, 1, kNan},
      {kNan, kNan, kNan},
      {2, kNan, kNan},
      {0, kNan, kNan},
      {-1, kNan, kNan},
      {2, 128, kInf},
      {-2, 129, -kInf},
      {2, -150, 0},
      {2, -149, kTiny},
      {-2, -149, -kTiny},
      {2, 127, 0x1p127f},
      {kMax, kMax, kInf},
      {kTiny, kMax, 0},
      {kTiny, -1, kInf},
      {10, 2, 100},
      {10, 10, 1e10f},
      {3, 4, 81},
      {-1, 16777217.0f, 1},
      {-1, 16777215.0f, -1},
      {-1, 8388609.0f, -1},
      {-1, 1e30f, 1},
      {0x1.fffffep-1f, 1e30f, 0},
  };
  MathFunction f(Opcode::Pow, Type::F32);
  for (const Row& row : rows) {
    CAPTURE(row.x);
    CAPTURE(row.y);
    const float got = f(row.x, row.y);
    CAPTURE(got);
    CHECK(same(got, row.expected));
    CHECK(same(got, std::pow(row.x, row.y)));
  }
}

TEST_CASE("pow stays within its documented error") {
  MathFunction f(Opcode::Pow, Type::F32);
  std::mt19937_64 random(3);
  std::uniform_real_distribution<float> base(0, 4), exponent(-20, 20), small(-1e-3f, 1e-3f);
  double worst = 0;
  float at_x = 0, at_y = 0;
  for (int i = 0; i < 60000; ++i) {
    float x, y;
    switch (i % 4) {
      case 0: x = any_float(random), y = any_float(random); break;
      case 1: x = base(random), y = exponent(random); break;
      case 2: x = 1 + small(random), y = exponent(random) * 3000; break;
      default: x = -base(random), y = std::floor(exponent(random)); break;
    }
    const double error = ulps(f(x, y), std::pow(double{x}, double{y}));
    if (error > worst) {
      worst = error;
      at_x = x;
      at_y = y;
    }
  }
  CAPTURE(at_x);
  CAPTURE(at_y);
  CHECK(worst <= 1.0);
}

TEST_CASE("the remainder of f32 is exact") {
  MathFunction f(Opcode::Rem, Type::F32);
  const float special[] = {0,    -0.0f, 1,    -1,    3,    kTiny, -kTiny, 0x1p-126f,      0x1.fffffcp-127f,
                           kMax, -kMax, kInf, -kInf, kNan, 5.5f,  1e30f,  0x1.fffffep23f, 7 * kTiny};
  for (const float x : special) {
    for (const float y : special) {
      CAPTURE(x);
      CAPTURE(y);
      CHECK(same(f(x, y), std::fmod(x, y)));
    }
  }
  std::mt19937_64 random(11);
  std::uniform_real_distribution<float> near(-1000, 1000);
  std::size_t wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    float x, y;
    switch (i % 4) {
      case 0: x = any_float(random), y = any_float(random); break;
      case 1: x = near(random), y = near(random); break;
      case 2: y = any_float(random), x = y * static_cast<float>(random() % 4096); break;  // exact multiples and their neighbours
      default:
        x = any_float(random), y = std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x01000000));
        break;  // small and subnormal
    }
    wrong += !same(f(x, y), std::fmod(x, y));
  }
  CHECK(wrong == 0);
}

TEST_CASE("the remainder of f64 is exact") {
  MathFunction f(Opcode::Rem, Type::F64);
  constexpr double inf = std::numeric_limits<double>::infinity(), tiny = std::numeric_limits<double>::denorm_min(),
                   max = std::numeric_limits<double>::max();
  const double special[] = {0,    -0.0, 1,    -1,           3,   tiny,  -tiny,   0x1p-1022, 0x1.ffffffffffffep-1023, max,
                            -max, inf,  -inf, std::nan(""), 5.5, 1e300, 7 * tiny};
  for (const double x : special) {
    for (const double y : special) {
      CAPTURE(x);
      CAPTURE(y);
      CHECK(same(f(x, y), std::fmod(x, y)));
    }
  }
  std::mt19937_64 random(12);
  std::uniform_real_distribution<double> near(-1000, 1000);
  std::size_t wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    double x, y;
    switch (i % 3) {
      case 0: x = std::bit_cast<double>(random()), y = std::bit_cast<double>(random()); break;
      case 1: x = near(random), y = near(random); break;
      default: y = std::bit_cast<double>(random()), x = y * static_cast<double>(random() % 4096); break;
    }
    wrong += !same(f(x, y), std::fmod(x, y));
  }
  CHECK(wrong == 0);
}

TEST_CASE("expansions verify, leave no math function, and are straight-line where that is promised") {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto op = static_cast<Opcode>(i);
    if (!is_math_function(op) && op != Opcode::Rem) continue;
    for (const Type type : {Type::F32, Type::F64}) {
      CAPTURE(std::string(info(op).mnemonic));
      const MathFunction f(op, type);
      CHECK(to_string(verify(f.kernel())) == "");
      bool straight = true;
      for (const Op& o : f.kernel().ops) {
        CHECK_FALSE(is_math_function(o.code));
        CHECK_FALSE((o.code == Opcode::Rem && is_float(o.type)));
        straight = straight && o.regions.empty();
      }
      const bool promised = op != Opcode::Sin && op != Opcode::Cos && op != Opcode::Tan && op != Opcode::Rem;
      CHECK(straight == promised);
    }
  }
}

TEST_CASE("constant arguments fold to the same bits as computed ones") {
  MathFunction f(Opcode::Exp, Type::F32);
  Kernel k;
  k.name = "k";
  Builder b(k);
  const std::uint32_t x = b.buffer("x", Type::F32, 1, Access::InOut);
  const ValueId i = b.const_u32(0);
  b.store(x, {i}, b.unary(Opcode::Exp, b.const_f32(1.25f)));
  const Prepared p = prepare(k);
  REQUIRE(p.kernel.ops.size() == 3);
  CHECK(p.kernel.ops[1].imm == std::bit_cast<std::uint32_t>(f(1.25f)));
}
