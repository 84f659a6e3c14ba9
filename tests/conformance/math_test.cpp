// The math functions: the same bits everywhere, near the true value, and exact at the edges.
#include <algorithm>
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

namespace {

// Every function of one argument and of two, of the same arguments: one kernel.
template <class T, class F>
void each_function(F f) {
  const auto of_one = [&](auto function, auto value) { f([=](const Val<T>& x, const Val<T>&) { return function(x); }, value); };
#define KILN_ONE(NAME, VALUE) of_one([](const Val<T>& v) { return NAME(v); }, [](auto x, auto) { return VALUE; })
#define KILN_TWO(NAME, VALUE) f([](const Val<T>& v, const Val<T>& u) { return NAME(v, u); }, [](auto x, auto y) { return VALUE; })
  KILN_ONE(exp, std::exp(x));
  KILN_ONE(exp2, std::exp2(x));
  KILN_ONE(exp10, std::pow(decltype(x)(10), x));
  KILN_ONE(expm1, std::expm1(x));
  KILN_ONE(log, std::log(x));
  KILN_ONE(log2, std::log2(x));
  KILN_ONE(log10, std::log10(x));
  KILN_ONE(log1p, std::log1p(x));
  KILN_ONE(sin, std::sin(x));
  KILN_ONE(cos, std::cos(x));
  KILN_ONE(tan, std::tan(x));
  KILN_ONE(asin, std::asin(x));
  KILN_ONE(acos, std::acos(x));
  KILN_ONE(atan, std::atan(x));
  KILN_ONE(sinh, std::sinh(x));
  KILN_ONE(cosh, std::cosh(x));
  KILN_ONE(tanh, std::tanh(x));
  KILN_ONE(asinh, std::asinh(x));
  KILN_ONE(acosh, std::acosh(x));
  KILN_ONE(atanh, std::atanh(x));
  KILN_ONE(erf, std::erf(x));
  KILN_ONE(erfc, std::erfc(x));
  KILN_ONE(cbrt, std::cbrt(x));
  KILN_ONE(rsqrt, 1 / std::sqrt(x));
  KILN_TWO(atan2, std::atan2(x, y));
  KILN_TWO(hypot, std::hypot(x, y));
  KILN_TWO(rhypot, 1 / std::hypot(x, y));
  KILN_TWO(pow, std::pow(x, y));
  f([](const Val<T>& v, const Val<T>& u) { return powi(v, cast<i32>(u)); },
    [](auto x, auto y) { return std::pow(x, y == y ? std::clamp(std::trunc(y), decltype(y)(-0x1p31), decltype(y)(0x1p31 - 1)) : 0); });
#undef KILN_ONE
#undef KILN_TWO
}

// In units in the last place of T at the true value; huge where the kinds differ.
template <class T, class Wide>
f64 distance(T got, Wide exact) {
  const auto nearest = static_cast<T>(exact);
  if (got == nearest || (std::isnan(got) && std::isnan(nearest)))
    return std::signbit(got) == std::signbit(nearest) || std::isnan(got) ? 0 : 1e9;
  if (!std::isfinite(got) || !std::isfinite(nearest)) return 1e9;
  const T next = std::nextafter(nearest, got);
  return static_cast<f64>(std::fabs(got - exact) / std::fabs(static_cast<Wide>(next) - nearest));
}

template <class T, class Wide, bool Fast = false>
void check_all(const char* name) {
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN(),
              tiny = std::numeric_limits<T>::denorm_min(), most = std::numeric_limits<T>::max();
  struct Point {
    f64 x, y;
  };
  constexpr Point points[] = {{0, 0},      {-0.0, 1},     {1, 2},         {-1, 3},          {0.5, -1},       {-0.5, 0.5},   {0.1, -2},
                              {0.75, 7},   {0.999, 1e30}, {-0.3, -1e30},  {2, 0.3},         {3, -0.0},       {10.5, 1e-30}, {-7, 2},
                              {1.001, -3}, {1e-4, 11},    {0, 1},         {1e-9, 5},        {100, -4},       {-80, 1},      {1e5, 0},
                              {-1e9, 1.5}, {1e30, -1},    {5.5, -0.25},   {0.2, 8},         {30.1, 1},       {88.9, 1},     {-104, -1},
                              {1e10, 40},  {3, -200},     {0.7853982, 1}, {1.0471976, 0.3}, {-0.7853982, 2}, {3, 4},        {0, 5},
                              {5, 0},      {0.3, 0.4},    {1, 0},         {-1, 0},          {1, 1},          {-1, -1},      {-2, 3},
                              {81, 0.5},   {2, -1},       {-3, 2},        {1.5707964, 1},   {10, -0.5},      {-2, -2},      {-10, 10}};
  std::vector<T> x, y;
  for (const Point& p : points) x.push_back(static_cast<T>(p.x)), y.push_back(static_cast<T>(p.y));
  for (const T special : {inf, -inf, nan, tiny, -tiny, most, -most}) {
    for (const T other : {T{2}, T{-3}, T{0}, special}) x.push_back(special), y.push_back(other), x.push_back(other), y.push_back(special);
  }
  std::size_t functions = 2;
  each_function<T>([&](auto, auto) { ++functions; });
  const auto k = kernel(name, [](In<T> a, In<T> b, Out<T, 2> out) {
    options({.fast_math = Fast});
    auto i = global_id().x;
    If (i < a.size()) {
      const Val<T> v = a[i], u = b[i];
      u32 row = 0;
      each_function<T>([&](auto function, auto) { out[row++, i] = function(v, u); });
      out[row++, i] = v / u;
      out[row++, i] = u / v + sqrt(v);
    }
  });
  // Without fused multiply-adds of the processor an f64 one is a call a lane: too much code for all functions at once. Each alone is in
  // ops_test.
  const bool levels = sizeof(T) == 4;
  const std::vector<Arg> args{buffer(x), buffer(y), buffer(std::vector<T>(functions * x.size(), 99), {functions, x.size()})};
  const auto outcomes = run_everywhere(*k, {{1}, {128}}, args, {.unchecked = false, .ptx = Ptx::Sm90, .levels = levels});
  expect_success(outcomes);
  REQUIRE(!outcomes.empty());
  REQUIRE(!outcomes[0].bytes.empty());
  const auto first = from_bytes<T>(outcomes[0].bytes[2]);
  expect(outcomes, 2, first);
  if (Fast) return;  // how near they are: tests/ir/math_fast_test.cpp
  std::size_t row = 0;
  each_function<T>([&](auto, auto value) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const T got = first[row * x.size() + i];
      const Wide exact = value(static_cast<Wide>(x[i]), static_cast<Wide>(y[i]));
      CHECK_MESSAGE(distance(got, exact) <= 2,
                    "function " << row << " of " << x[i] << ", " << y[i] << ": " << got << " instead of " << exact);
    }
    ++row;
  });
}

}  // namespace

TEST_CASE("every math function of f32 gives the same bits everywhere, near the true value") { check_all<f32, f64>("functions_f32"); }
TEST_CASE("every math function of f64 gives the same bits everywhere, near the true value") {
  check_all<f64, long double>("functions_f64");
}
TEST_CASE("every math function gives the same bits everywhere with fast_math too, and so do quotients") {
  check_all<f32, f64, true>("fast_functions_f32");
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
