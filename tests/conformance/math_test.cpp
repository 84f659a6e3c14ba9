// The math functions: the same bits everywhere, near the true value, and exact at the edges.
#include <cmath>
#include <limits>

#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr f32 kInf = std::numeric_limits<f32>::infinity(), kNan = std::numeric_limits<f32>::quiet_NaN();

// Distance in representable values; huge where the kinds differ.
f64 ulps(f32 got, f64 exact) {
  if (std::isnan(got) || std::isnan(exact)) return std::isnan(got) && std::isnan(exact) ? 0 : 1e9;
  const auto nearest = static_cast<f32>(exact);
  if (got == nearest) return std::signbit(got) == std::signbit(nearest) || exact == 0 ? 0 : 1e9;
  if (std::isinf(got) || std::isinf(nearest)) return 1e9;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// All ways give the same bits, with loaded and with known operands, within `bound` ulp of `exact`.
template <const auto& rows, class F>
void check_near(const char* name, F, f64 bound) {
  CAPTURE(std::string(name));
  std::vector<f32> x, y;
  std::vector<f64> exact;
  for (const auto& row : rows) x.push_back(row.x), y.push_back(row.y), exact.push_back(row.exact);
  const auto loaded = kernel(name, [](In<f32> a, In<f32> b, Out<f32> out) {
    auto i = global_id().x;
    If (i < a.size()) { out[i] = F()(Val<f32>(a[i]), Val<f32>(b[i])); }
  });
  const auto known = kernel(name, [](In<f32>, In<f32>, Out<f32> out) {
    u32 i = 0;
    for (const auto& row : rows) out[i++] = F()(Val<f32>(row.x), Val<f32>(row.y));
  });
  std::vector<Arg> args{buffer(x), buffer(y), filled<f32>(x.size(), 99)};
  auto outcomes = run_everywhere(*loaded, {{1}, {45}}, args);
  for (Outcome& o : run_everywhere(*known, {{1}, {1}}, args)) outcomes.push_back(std::move(o));
  expect_success(outcomes);
  REQUIRE(!outcomes.empty());
  REQUIRE(!outcomes[0].bytes.empty());
  const auto first = from_bytes<f32>(outcomes[0].bytes[2]);
  expect(outcomes, 2, first);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK_MESSAGE(ulps(first[i], exact[i]) <= bound, "of " << x[i] << ", " << y[i] << ": " << first[i] << " instead of " << exact[i]);
  }
}

struct Row {
  f32 x, y = 0;
  f64 exact;
};
constexpr f64 kI = std::numeric_limits<f64>::infinity(), kN = std::numeric_limits<f64>::quiet_NaN();
constexpr f32 kHalfPi = 1.57079637f, kPi = 3.14159274f;

constexpr Row kSin[] = {{.x = 0, .exact = 0},
                        {.x = kHalfPi, .exact = 0.999999999999999},
                        {.x = kPi, .exact = -8.742277657347586e-08},
                        {.x = -kHalfPi, .exact = -0.999999999999999},
                        {.x = -0.0f, .exact = -0.0},
                        {.x = kInf, .exact = kN},
                        {.x = kNan, .exact = kN}};
constexpr Row kCos[] = {{.x = 0, .exact = 1},
                        {.x = kHalfPi, .exact = -4.371139000186241e-08},
                        {.x = kPi, .exact = -0.9999999999999962},
                        {.x = -kInf, .exact = kN}};
constexpr Row kTanh[] = {{.x = 0, .exact = 0},
                         {.x = 1, .exact = 0.7615941559557649},
                         {.x = -1, .exact = -0.7615941559557649},
                         {.x = 2, .exact = 0.9640275800758169},
                         {.x = -2, .exact = -0.9640275800758169},
                         {.x = 50, .exact = 1},
                         {.x = -50, .exact = -1},
                         {.x = 1000, .exact = 1},
                         {.x = -1000, .exact = -1},
                         {.x = kInf, .exact = 1},
                         {.x = kNan, .exact = kN},
                         {.x = -0.0f, .exact = -0.0}};
constexpr Row kPow[] = {
    {-2, 3, -8},   {-2, 2, 4},      {-2, 0.5f, kN},  {-1.5f, 1, -1.5}, {0, 0, 1},   {-0.0f, -1, -kI}, {kNan, 0, 1},
    {2, 3, 8},     {-3, 2, 9},      {2, -1, 0.5},    {81, 0.5f, 9},    {-1, 2, 1},  {1, kNan, 1},     {-1, kInf, 1},
    {2, kInf, kI}, {0.5f, kInf, 0}, {-kInf, 3, -kI}, {-0.0f, 3, -0.0}, {0, -1, kI}, {2, 128, kI},     {2, -149, 1.4012984643248171e-45},
    {2, -200, 0}};
constexpr Row kExp[] = {{.x = 0, .exact = 1},
                        {.x = 1, .exact = 2.718281828459045},
                        {.x = -1, .exact = 0.36787944117144233},
                        {.x = 1000, .exact = kI},
                        {.x = -1000, .exact = 0},
                        {.x = kInf, .exact = kI},
                        {.x = -kInf, .exact = 0},
                        {.x = kNan, .exact = kN}};
constexpr Row kLog[] = {{.x = 1, .exact = 0},
                        {.x = 2.71828175f, .exact = 0.99999996963214},
                        {.x = 0, .exact = -kI},
                        {.x = -1, .exact = kN},
                        {.x = kInf, .exact = kI},
                        {.x = 0x1p-149f, .exact = -103.27892990343185},
                        {.x = 10, .exact = 2.302585092994046}};
constexpr Row kRsqrt[] = {{.x = 4, .exact = 0.5},
                          {.x = 0.25f, .exact = 2},
                          {.x = 2, .exact = 0.7071067811865476},
                          {.x = 0, .exact = kI},
                          {.x = -0.0f, .exact = -kI},
                          {.x = -1, .exact = kN},
                          {.x = kInf, .exact = 0},
                          {.x = 0x1p-149f, .exact = 2.671373890628154e22}};
// 1 / (1 + exp(-x)).
constexpr Row kLogistic[] = {
    {.x = 1000, .exact = 1}, {.x = -1000, .exact = 0}, {.x = 0, .exact = 0.5}, {.x = 1, .exact = 0.7310585786300049}};

// Results that are numbers of the type: nothing near them will do.
constexpr Row kPowExact[] = {{-2, 3, -8},  {-2, 2, 4}, {-2, 0.5f, kN}, {-1.5f, 1, -1.5}, {0, 0, 1},     {-0.0f, -1, -kI},
                             {kNan, 0, 1}, {2, 3, 8},  {-3, 2, 9},     {2, -1, 0.5},     {81, 0.5f, 9}, {-1, 2, 1}};
constexpr Row kTanhExact[] = {{.x = 0, .exact = 0},    {.x = 50, .exact = 1},     {.x = -50, .exact = -1},
                              {.x = 1000, .exact = 1}, {.x = -1000, .exact = -1}, {.x = -0.0f, .exact = -0.0}};
constexpr Row kLogisticExact[] = {{.x = 1000, .exact = 1}, {.x = -1000, .exact = 0}, {.x = 0, .exact = 0.5}};

struct Sin {
  auto operator()(const auto& x, const auto&) const { return sin(x); }
};
struct Cos {
  auto operator()(const auto& x, const auto&) const { return cos(x); }
};
struct Tanh {
  auto operator()(const auto& x, const auto&) const { return tanh(x); }
};
struct Exp {
  auto operator()(const auto& x, const auto&) const { return exp(x); }
};
struct Log {
  auto operator()(const auto& x, const auto&) const { return log(x); }
};
struct Pow {
  auto operator()(const auto& x, const auto& y) const { return pow(x, y); }
};
struct Rsqrt {
  auto operator()(const auto& x, const auto&) const { return rsqrt(x); }
};
struct Logistic {
  auto operator()(const auto& x, const auto&) const { return 1.0f / (1.0f + exp(-x)); }
};

}  // namespace

TEST_CASE("sin and cos are near the true value, at multiples of pi/2 too") {
  check_near<kSin>("sin", Sin(), 1);
  check_near<kCos>("cos", Cos(), 1);
}

TEST_CASE("tanh saturates at +-1 and never gives NaN for a number") {
  check_near<kTanh>("tanh", Tanh(), 1.5);
  check_near<kTanhExact>("tanh", Tanh(), 0);
}

TEST_CASE("pow follows C at its edges: negative bases, zeros, infinities, NaN") {
  check_near<kPow>("pow", Pow(), 1);
  check_near<kPowExact>("pow", Pow(), 0);
}

TEST_CASE("exp and log overflow to infinity, underflow to zero, and know their edges") {
  check_near<kExp>("exp", Exp(), 1);
  check_near<kLog>("log", Log(), 1);
}

TEST_CASE("rsqrt is correctly rounded") { check_near<kRsqrt>("rsqrt", Rsqrt(), 0.5); }

TEST_CASE("the logistic function built of exp gives 0 and 1 at its ends") {
  check_near<kLogistic>("logistic", Logistic(), 3);
  check_near<kLogisticExact>("logistic", Logistic(), 0);
}

TEST_CASE("an integer power with a negative exponent from memory ends, with the documented division by zero") {
  // base^e for e < 0 as 1 / base^|e|; 0^-1 is 1/0, which is all ones.
  const std::vector<i32> base{2, 2, -3, 1, -1, 0, 0, 5}, e{-1, 10, 3, -7, -3, 0, -1, 0};
  const auto k = kernel("ipow", [](In<i32> b, In<i32> exponent, Out<i32> out) {
    auto i = global_id().x;
    If (i < b.size()) {
      Var<i32> r = 1;
      for (auto n : range(abs(exponent[i]))) {
        (void)n;
        r *= b[i];
      }
      If (exponent[i] < 0) { r = 1 / r; }
      out[i] = r;
    }
  });
  check_run<i32>(*k, {{1}, {33}}, {buffer(base), buffer(e), filled<i32>(base.size(), 99)}, 2, {0, 1024, -27, 1, -1, 1, -1, 1});
}
