// The functions of f32 in kernels with fast_math: their bounds, what they are at the ends, and that the option means division too.
#include <limits>
#include <random>

#include "kiln/ir/text.h"
#include "math_accuracy.h"
#include "math_evaluator.h"
#include "math_fast_bounds.h"

using namespace kiln::ir;
using namespace kiln::ir::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

double exact(Opcode op, double x, double y) {
  switch (op) {
    case Opcode::Exp: return std::exp(x);
    case Opcode::Exp2: return std::exp2(x);
    case Opcode::Exp10: return exp10(x);
    case Opcode::Log: return std::log(x);
    case Opcode::Log2: return std::log2(x);
    case Opcode::Log10: return std::log10(x);
    case Opcode::Sin: return std::sin(x);
    case Opcode::Cos: return std::cos(x);
    case Opcode::Tan: return std::tan(x);
    case Opcode::Tanh: return std::tanh(x);
    case Opcode::Rsqrt: return 1 / std::sqrt(x);
    default: return std::pow(x, y);
  }
}

std::size_t operations(const MathFunction& f) {
  std::size_t n = 0;
  walk(f.kernel(), 0, [&](OpId) { ++n; });
  return n;
}

}  // namespace

TEST_CASE("functions of f32 with fast_math stay within their documented error, and are shorter") {
  std::mt19937 random(5);
  for (const FastBound& row : kFastBounds) {
    CAPTURE(std::string(info(row.op).mnemonic));
    MathFunction fast(row.op, Type::F32, true), exactly(row.op, Type::F32);
    CHECK(operations(fast) < operations(exactly));
    double worst = 0, at = 0;
    int judged = 0;
    for (int i = 0; i < 40000; ++i) {
      const double lo = std::max(row.least, -100.0), hi = std::min(row.most, 100.0);
      float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (i % 2 == 0) x = static_cast<float>(std::uniform_real_distribution<double>(lo, hi)(random));
      if (row.op == Opcode::PowI) {
        const auto n = static_cast<std::int32_t>(random() % 21) - 10;
        const double v = exact(row.op, x, n);
        if (!holds_for(row, x, v)) continue;
        if (const double e = ulps(fast(x, n), v); e > worst) worst = e, at = x;
      } else {
        const float y = row.op == Opcode::Pow ? static_cast<float>(std::uniform_real_distribution<double>(-40, 40)(random)) : 0;
        const double v = exact(row.op, x, y);
        if (!holds_for(row, x, v)) continue;
        const float got = fast(x, y);
        const double e = row.measure == Measure::Ulps ? ulps(got, v) : std::fabs(got - v);
        if (!(e <= worst)) worst = e, at = x;
      }
      ++judged;
    }
    CAPTURE(at);
    CHECK(judged > 5000);
    CHECK(worst <= row.bound);
    CHECK(worst > row.bound / 20);  // the bound says something
  }
}

TEST_CASE("functions of f32 with fast_math at zeros, infinities, NaN and beyond their range") {
  struct Row {
    Opcode op;
    float x, expected;
  };
  const Row rows[] = {{Opcode::Exp, 0, 1},         {Opcode::Exp, kInf, kInf},
                      {Opcode::Exp, -kInf, 0},     {Opcode::Exp, kNan, kNan},
                      {Opcode::Exp, 89, kInf},     {Opcode::Exp, -88, 0},
                      {Opcode::Exp2, 10, 1024},    {Opcode::Exp2, -kInf, 0},
                      {Opcode::Exp2, kInf, kInf},  {Opcode::Exp10, kInf, kInf},
                      {Opcode::Exp10, -39, 0},     {Opcode::Log, 0, -kInf},
                      {Opcode::Log, -0.0f, -kInf}, {Opcode::Log, 0x1p-149f, -kInf},
                      {Opcode::Log, -1, kNan},     {Opcode::Log, kInf, kInf},
                      {Opcode::Log, kNan, kNan},   {Opcode::Log, 1, 0},
                      {Opcode::Log2, 8, 3},        {Opcode::Log2, -kInf, kNan},
                      {Opcode::Log10, 0, -kInf},   {Opcode::Sin, 0, 0},
                      {Opcode::Sin, kInf, kNan},   {Opcode::Cos, 0, 1},
                      {Opcode::Cos, kNan, kNan},   {Opcode::Tan, 0, 0},
                      {Opcode::Tan, -kInf, kNan},  {Opcode::Tanh, kInf, 1},
                      {Opcode::Tanh, -kInf, -1},   {Opcode::Tanh, kNan, kNan},
                      {Opcode::Tanh, 0, 0},        {Opcode::Rsqrt, 4, 0.5f},
                      {Opcode::Rsqrt, 0, kInf},    {Opcode::Rsqrt, kInf, 0},
                      {Opcode::Rsqrt, -1, kNan}};
  for (const Row& r : rows) {
    CAPTURE(std::string(info(r.op).mnemonic));
    CAPTURE(r.x);
    MathFunction f(r.op, Type::F32, true);
    const float got = f(r.x);
    CHECK((same(got, r.expected) || (got == 0 && r.expected == 0)));
  }
  MathFunction pow(Opcode::Pow, Type::F32, true), powi(Opcode::PowI, Type::F32, true);
  CHECK(pow(0.0f, 2.0f) == 0);
  CHECK(pow(0.0f, -2.0f) == kInf);
  CHECK(same(pow(-2.0f, 2.0f), kNan));
  CHECK(powi(-2.0f, 3) == doctest::Approx(-8));
  CHECK(powi(-2.0f, -2) == doctest::Approx(0.25));
  CHECK(powi(0.0f, 0) == 1);
  CHECK(powi(kNan, 0) == 1);
}

TEST_CASE("with fast_math a quotient of f32 is a product with the reciprocal, before anything is folded") {
  const std::string body = R"(
    scalar a : f32
    scalar b : f32
    scalar w : f64
    buffer y : f32[*] out
    buffer z : f64[*] out
    body {
      %i = thread_id.x
      %a = param a
      %b = param b
      %w = param w
      %q = div %a, %b
      %c = const 0x41200000 : f32
      %d = const 0x40400000 : f32
      %p = div %c, %d
      %s = add %q, %p
      store y[%i], %s
      %v = div %w, %w
      store z[%i], %v
    }
  })";
  const auto prepared = [&](const char* options) {
    Kernel k = parse_kernel(std::string("kir 1\nkernel \"k\" {\n  options contraction=true ") + options + body);
    contract(k);
    Kernel once = k;
    contract(once);
    CHECK(print(once) == print(k));
    eliminate_dead(k);
    return print(k);
  };
  const std::string exact = prepared("fast_math=false"), fast = prepared("fast_math=true");
  const auto count = [](const std::string& text, const char* what) {
    int n = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  CHECK(count(exact, "div ") == 3);
  CHECK(count(exact, "fma ") == 0);
  CHECK(count(fast, "div ") == 3);  // two reciprocals, and that of f64
  CHECK(count(fast, "mul ") == 1);
  CHECK(count(fast, "fma ") == 1);  // the other product goes into the sum
}
