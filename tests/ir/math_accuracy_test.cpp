// The error of every math function on a sample, against libm in the next wider format. The bounds are those of docs/math.md; all f32 are
// measured by tests/bench/math_ulp.
#include "math_accuracy.h"

#include <doctest/doctest.h>

#include <random>

#include "math_evaluator.h"

using namespace kiln::ir;
using namespace kiln::ir::test;

namespace {

struct OfOne {
  Opcode op;
  double (*narrow)(double);
  long double (*wide)(long double);
  double bound32, bound64;  // documented
  double lo, hi;            // where half of the arguments are drawn from
};
struct OfTwo {
  Opcode op;
  double (*narrow)(double, double);
  long double (*wide)(long double, long double);
  double bound32, bound64;
};

#define KILN_ONE(OPCODE, VALUE, ...) \
  {Opcode::OPCODE, [](double x) -> double { return VALUE; }, [](long double x) -> long double { return VALUE; }, __VA_ARGS__}
#define KILN_TWO(OPCODE, VALUE, ...)                                                                                                      \
  {Opcode::OPCODE, [](double x, double y) -> double { return VALUE; }, [](long double x, long double y) -> long double { return VALUE; }, \
   __VA_ARGS__}
double ten_to(double x) { return exp10(x); }
long double ten_to(long double x) { return exp10l(x); }

const OfOne kOfOne[] = {
    KILN_ONE(Exp, std::exp(x), 1.0, 1.0, -104, 89),    KILN_ONE(Exp2, std::exp2(x), 1.0, 1.0, -150, 128),
    KILN_ONE(Exp10, ten_to(x), 1.5, 1.0, -46, 39),     KILN_ONE(Expm1, std::expm1(x), 1.0, 1.0, -20, 89),
    KILN_ONE(Log, std::log(x), 1.0, 1.0, 0, 4),        KILN_ONE(Log2, std::log2(x), 1.0, 1.0, 0, 4),
    KILN_ONE(Log10, std::log10(x), 1.5, 1.0, 0, 4),    KILN_ONE(Log1p, std::log1p(x), 1.0, 1.0, -1, 3),
    KILN_ONE(Sin, std::sin(x), 1.0, 1.0, -100, 100),   KILN_ONE(Cos, std::cos(x), 1.0, 1.0, -100, 100),
    KILN_ONE(Tan, std::tan(x), 1.5, 1.5, -100, 100),   KILN_ONE(Asin, std::asin(x), 1.5, 1.5, -1, 1),
    KILN_ONE(Acos, std::acos(x), 1.5, 1.5, -1, 1),     KILN_ONE(Atan, std::atan(x), 1.5, 1.5, -4, 4),
    KILN_ONE(Sinh, std::sinh(x), 2.0, 2.0, -10, 10),   KILN_ONE(Cosh, std::cosh(x), 1.5, 1.5, -10, 10),
    KILN_ONE(Tanh, std::tanh(x), 1.5, 1.5, -10, 10),   KILN_ONE(Asinh, std::asinh(x), 1.0, 1.0, -10, 10),
    KILN_ONE(Acosh, std::acosh(x), 1.0, 1.0, 1, 10),   KILN_ONE(Atanh, std::atanh(x), 1.0, 1.0, -1, 1),
    KILN_ONE(Erf, std::erf(x), 1.0, 1.0, -4, 4),       KILN_ONE(Erfc, std::erfc(x), 2.0, 2.0, -4, 10.1),
    KILN_ONE(Cbrt, std::cbrt(x), 1.0, 0.501, -10, 10), KILN_ONE(Rsqrt, 1 / std::sqrt(x), 0.5000001, 0.51, 0, 4),
};
const OfTwo kOfTwo[] = {
    KILN_TWO(Atan2, std::atan2(x, y), 2.0, 2.0),
    KILN_TWO(Hypot, std::hypot(x, y), 1.5, 1.5),
    KILN_TWO(Rhypot, 1 / std::hypot(x, y), 2.0, 2.0),
    KILN_TWO(Pow, std::pow(x, y), 1.0, 1.0),
};
#undef KILN_ONE
#undef KILN_TWO

template <class T>
class Sample {
 public:
  explicit Sample(std::uint64_t seed) : random_(seed) {}
  T any() {
    if constexpr (sizeof(T) == 4) return std::bit_cast<T>(static_cast<std::uint32_t>(random_()));
    else return std::bit_cast<T>(random_());
  }
  T near(double lo, double hi) { return static_cast<T>(std::uniform_real_distribution<double>(lo, hi)(random_)); }
  // Magnitudes of all sizes around 1.
  T spread(double lo, double hi) { return static_cast<T>(std::copysign(std::exp2(near(lo, hi)), near(-1, 1))); }
  std::uint64_t next() { return random_(); }

 private:
  std::mt19937_64 random_;
};

template <class T>
struct Worst {
  double error = 0;
  T x = 0, y = 0;
  void add(double e, T at_x, T at_y = 0) {
    if (e > error) error = e, x = at_x, y = at_y;
  }
};

// The wider value, as the format's oracle gives it.
template <class T, class Row, class... Arguments>
auto exact(const Row& row, Arguments... a) {
  if constexpr (sizeof(T) == 4) return row.narrow(static_cast<double>(a)...);
  else return row.wide(static_cast<long double>(a)...);
}

template <class T>
void hold_one(Type type, int count) {
  for (const OfOne& row : kOfOne) {
    CAPTURE(std::string(info(row.op).mnemonic));
    MathFunction f(row.op, type);
    Sample<T> sample(7);
    Worst<T> worst;
    for (int i = 0; i < count; ++i) {
      const T x = i % 4 == 0 ? sample.any() : i % 4 == 1 ? sample.spread(-30, 7) : sample.near(row.lo, row.hi);
      worst.add(ulps(f(x), exact<T>(row, x)), x);
    }
    CAPTURE(worst.x);
    CHECK(worst.error <= (sizeof(T) == 4 ? row.bound32 : row.bound64));
    CHECK(worst.error > 0.4);  // the comparison measures something
  }
}

template <class T>
void hold_two(Type type, int count) {
  for (const OfTwo& row : kOfTwo) {
    CAPTURE(std::string(info(row.op).mnemonic));
    MathFunction f(row.op, type);
    Sample<T> sample(3);
    Worst<T> worst;
    for (int i = 0; i < count; ++i) {
      T x = sample.any(), y = sample.any();
      if (row.op == Opcode::Pow && i % 4 == 2) x = 1 + sample.near(-1e-3, 1e-3), y = sample.near(-60000, 60000);
      else if (row.op == Opcode::Pow && i % 4 == 3) x = sample.near(-4, 0), y = std::floor(sample.near(-20, 20));
      else if (i % 4 != 0) x = sample.spread(-10, 10), y = x * sample.spread(-12, 12);
      worst.add(ulps(f(x, y), exact<T>(row, x, y)), x, y);
    }
    CAPTURE(worst.x);
    CAPTURE(worst.y);
    CHECK(worst.error <= (sizeof(T) == 4 ? row.bound32 : row.bound64));
    CHECK(worst.error > 0.4);
  }
}

template <class T>
void hold_powi(Type type, int count) {
  MathFunction f(Opcode::PowI, type);
  Sample<T> sample(5);
  Worst<T> worst;
  for (int i = 0; i < count; ++i) {
    auto n = static_cast<std::int32_t>(sample.next() >> (32 + sample.next() % 32));
    if (i % 2) n = -n;
    const double reach = sizeof(T) == 4 ? 85 : 700;  // of the logarithm of the result
    T x = sample.any();
    if (i % 4 != 0 && n != 0) x = static_cast<T>(std::copysign(std::exp(sample.near(-reach, reach) / n), sample.near(-1, 1)));
    if constexpr (sizeof(T) == 4) worst.add(ulps(f(x, n), std::pow(double{x}, double(n))), x, static_cast<T>(n));
    else worst.add(ulps(f(x, n), std::pow(static_cast<long double>(x), static_cast<long double>(n))), x, static_cast<T>(n));
  }
  CAPTURE(worst.x);
  CAPTURE(worst.y);
  CHECK(worst.error <= 1.0);
  CHECK(worst.error > 0.4);
}

}  // namespace

TEST_CASE("functions of one f32 stay within their documented error") { hold_one<float>(Type::F32, 12000); }
TEST_CASE("functions of one f64 stay within their documented error") { hold_one<double>(Type::F64, 6000); }
TEST_CASE("functions of two f32 stay within their documented error") { hold_two<float>(Type::F32, 20000); }
TEST_CASE("functions of two f64 stay within their documented error") { hold_two<double>(Type::F64, 8000); }
TEST_CASE("powi stays within its documented error, for exponents that no f32 holds too") {
  hold_powi<float>(Type::F32, 20000);
  hold_powi<double>(Type::F64, 8000);
}

TEST_CASE("sin, cos and tan of f64 are right next to multiples of pi/2, small and huge") {
  MathFunction sin(Opcode::Sin, Type::F64), cos(Opcode::Cos, Type::F64), tan(Opcode::Tan, Type::F64);
  double worst = 0;
  const auto check = [&](double x) {
    const long double wide = x;
    worst = std::max({worst, ulps(sin(x), std::sin(wide)), ulps(cos(x), std::cos(wide)), ulps(tan(x), std::tan(wide))});
  };
  for (int k = 1; k < 3000; ++k) {
    const double x = std::ldexp(k * 1.5707963267948966, k % 5 == 0 ? k % 26 : 0);
    for (const double y : {x, std::nextafter(x, 0.0), std::nextafter(x, 1e300)}) check(y);
  }
  // 6381956970095103 x 2^797 is the f64 nearest to a multiple of pi/2.
  for (const double x :
       {6381956970095103 * 0x1p797, 67108863.5, 67108864.0, 67108864.5, 0x1.fffffffffffffp1023, 0x1p1023, 1e300, 1e22, 1e10}) {
    check(x);
    check(-x);
  }
  Sample<double> sample(9);
  for (int i = 0; i < 2000; ++i) check(std::ldexp(sample.near(1, 2), static_cast<int>(sample.next() % 1024)));
  CHECK(worst <= 1.5);
}
