// Measures the error of the math library in units in the last place: functions of one f32 on all arguments (or every n-th), the others on
// random ones, against libm in f64 and long double; the worst argument once more against MPFR where there is one. Evaluates the expanded IR
// itself, many arguments at a time.
//
//   math_ulp [FUNCTION...] [--type f32|f64] [--step N] [--samples N]
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "batch.h"
#include "true_value.h"

using namespace kiln::ir;
using kiln::bench::Batch;

namespace {

// The true value: for f32 arguments in f64, for f64 arguments in long double (64 bits on x86-64).
struct Function {
  const char* name;
  Opcode op;
  double (*narrow)(double, double);
  long double (*wide)(long double, long double);
};
template <class F>
constexpr Function function(const char* name, Opcode op, F) {
  return {name, op, [](double x, double y) { return F{}(x, y); }, [](long double x, long double y) { return F{}(x, y); }};
}
double power_of_ten(double x) { return exp10(x); }
long double power_of_ten(long double x) { return exp10l(x); }

#define KILN_ROW(NAME, OPCODE, VALUE) function(NAME, Opcode::OPCODE, [](auto x, [[maybe_unused]] auto y) { return VALUE; })
const Function kFunctions[] = {
    KILN_ROW("exp", Exp, std::exp(x)),
    KILN_ROW("exp2", Exp2, std::exp2(x)),
    KILN_ROW("exp10", Exp10, power_of_ten(x)),
    KILN_ROW("expm1", Expm1, std::expm1(x)),
    KILN_ROW("log", Log, std::log(x)),
    KILN_ROW("log2", Log2, std::log2(x)),
    KILN_ROW("log10", Log10, std::log10(x)),
    KILN_ROW("log1p", Log1p, std::log1p(x)),
    KILN_ROW("sin", Sin, std::sin(x)),
    KILN_ROW("cos", Cos, std::cos(x)),
    KILN_ROW("tan", Tan, std::tan(x)),
    KILN_ROW("asin", Asin, std::asin(x)),
    KILN_ROW("acos", Acos, std::acos(x)),
    KILN_ROW("atan", Atan, std::atan(x)),
    KILN_ROW("atan2", Atan2, std::atan2(x, y)),
    KILN_ROW("sinh", Sinh, std::sinh(x)),
    KILN_ROW("cosh", Cosh, std::cosh(x)),
    KILN_ROW("tanh", Tanh, std::tanh(x)),
    KILN_ROW("asinh", Asinh, std::asinh(x)),
    KILN_ROW("acosh", Acosh, std::acosh(x)),
    KILN_ROW("atanh", Atanh, std::atanh(x)),
    KILN_ROW("erf", Erf, std::erf(x)),
    KILN_ROW("erfc", Erfc, std::erfc(x)),
    KILN_ROW("cbrt", Cbrt, std::cbrt(x)),
    KILN_ROW("rsqrt", Rsqrt, 1 / std::sqrt(x)),
    KILN_ROW("hypot", Hypot, std::hypot(x, y)),
    KILN_ROW("rhypot", Rhypot, 1 / std::hypot(x, y)),
    KILN_ROW("pow", Pow, std::pow(x, y)),
    KILN_ROW("powi", PowI, std::pow(x, y)),
    KILN_ROW("rem", Rem, std::fmod(x, y)),
};
#undef KILN_ROW

bool takes_two(const Function& f) { return info(f.op).form != Form::Unary; }
bool integer_exponent(const Function& f) { return info(f.op).form == Form::IntegerPower; }

// Distance in units in the last place of an f32 near `exact`; infinity where one is a number and the other is not.
double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  if (std::fabs(exact) >= 0x1.ffffffp127) return std::isinf(got) && std::signbit(got) == std::signbit(exact) ? 0 : INFINITY;
  if (!std::isfinite(got)) return INFINITY;
  const int e = static_cast<int>(std::bit_cast<std::uint64_t>(exact) >> 52 & 0x7ff) - 1023;  // 2^e <= |exact|
  const int unit = std::max(e - 23, -149);
  return std::fabs(double{got} - exact) * std::bit_cast<double>(static_cast<std::uint64_t>(1023 - unit) << 52);
}

double ulps(double got, long double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  if (std::fabs(exact) >= 0x1.fffffffffffff8p1023L) return std::isinf(got) && std::signbit(got) == std::signbit(exact) ? 0 : INFINITY;
  if (!std::isfinite(got)) return INFINITY;
  const int unit = exact == 0 ? -1074 : std::max(std::ilogb(exact) - 52, -1074);
  return static_cast<double>(std::ldexp(std::fabs(got - exact), -unit));
}

struct Figures {
  double worst = 0, x = 0, y = 0, got = 0;
  std::uint64_t count = 0, wrong = 0;  // wrong: not the correctly rounded result
  void add(double u, bool rounded, double at_x, double at_y, double result) {
    ++count;
    wrong += !rounded;
    if (!(u <= worst)) worst = u, x = at_x, y = at_y, got = result;
  }
  void merge(const Figures& o) {
    count += o.count;
    wrong += o.wrong;
    if (o.worst > worst) worst = o.worst, x = o.x, y = o.y, got = o.got;
  }
};

bool same(double a, double b) { return (a != a && b != b) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

template <class T>
T value(std::uint64_t bits) {
  if constexpr (sizeof(T) == 4) return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
  else return std::bit_cast<T>(bits);
}
std::uint64_t bits_of(float v) { return std::bit_cast<std::uint32_t>(v); }
std::uint64_t bits_of(double v) { return std::bit_cast<std::uint64_t>(v); }

template <class T>
void judge(const Function& f, const Batch& b, std::size_t n, Figures& into) {
  for (std::size_t i = 0; i < n; ++i) {
    const T x = value<T>(b.x()[i]), got = value<T>(b.result()[i]);
    const auto y = integer_exponent(f) ? static_cast<double>(static_cast<std::int32_t>(b.y()[i])) : double{value<T>(b.y()[i])};
    if constexpr (sizeof(T) == 4) {
      const double exact = f.narrow(x, y);
      into.add(ulps(got, exact), same(got, static_cast<float>(exact)), x, y, got);
    } else {
      const long double exact = f.wide(x, y);
      into.add(ulps(got, exact), same(got, static_cast<double>(exact)), x, y, got);
    }
  }
}

Figures all_arguments(const Function& f, std::uint64_t step, unsigned part, unsigned parts) {
  Batch batch(f.op, Type::F32);
  Figures figures;
  const std::uint64_t end = 1ull << 32;
  std::size_t n = 0;
  for (std::uint64_t i = part * step; i < end; i += parts * step) {
    batch.x()[n] = i;
    batch.y()[n++] = 0;
    if (n == Batch::kLanes || i + parts * step >= end) {
      batch.run();
      judge<float>(f, batch, n, figures);
      n = 0;
    }
  }
  return figures;
}

// Arguments where functions do something: any bits, magnitudes of all sizes around 1, and the ranges that kernels use.
template <class T>
class Arguments {
 public:
  explicit Arguments(std::uint64_t seed) : random_(seed) {}

  void next(const Function& f, std::size_t i, std::uint64_t& x_bits, std::uint64_t& y_bits) {
    T x = any(), y = any();
    switch (i % 4) {
      case 0: break;
      case 1: x = spread(-40, 10.5), y = f.op == Opcode::Rem ? x / static_cast<T>(uniform(1, 1e6)) : x * spread(-20, 20); break;
      case 2: x = static_cast<T>(uniform(-2, 2)), y = static_cast<T>(uniform(-2, 2)); break;
      default: x = static_cast<T>(uniform(-50, 50)), y = static_cast<T>(uniform(-50, 50));
    }
    if (f.op == Opcode::Pow || f.op == Opcode::PowI) power(i, x, y);
    x_bits = bits_of(x);
    y_bits = bits_of(y);
    if (!integer_exponent(f)) return;
    const double n = std::clamp(double{y == y ? y : 0}, -2147483648.0, 2147483647.0);
    y_bits = static_cast<std::uint32_t>(i % 4 == 0 ? static_cast<std::int32_t>(random_()) : static_cast<std::int32_t>(n));
  }

 private:
  double uniform(double lo, double hi) { return lo + (hi - lo) * (static_cast<double>(random_() >> 11) * 0x1p-53); }
  T any() { return value<T>(random_()); }
  T spread(double lo, double hi) { return static_cast<T>(std::exp2(uniform(lo, hi)) * (random_() & 1 ? 1 : -1)); }
  void power(std::size_t i, T& x, T& y) {
    constexpr bool narrow = sizeof(T) == 4;
    switch (i % 4) {
      case 0: break;
      case 1: x = static_cast<T>(uniform(0, 10)), y = static_cast<T>(uniform(-40, 40)); break;
      case 2:
        x = static_cast<T>(1 + uniform(-1e-2, 1e-2)), y = static_cast<T>(narrow ? uniform(-9000, 9000) : uniform(-70000, 70000));
        break;
      default:  // any positive base, a result within range
        x = std::fabs(any());
        y = static_cast<T>(narrow ? uniform(-103, 88.7) / std::log(double{x}) : uniform(-745, 709.7) / std::log(double{x}));
    }
  }

  std::mt19937_64 random_;
};

template <class T>
Figures random_arguments(const Function& f, std::uint64_t samples, unsigned part, unsigned parts) {
  Batch batch(f.op, sizeof(T) == 4 ? Type::F32 : Type::F64);
  Figures figures;
  Arguments<T> arguments(17 + part);
  for (std::uint64_t done = 0; done < samples / parts; done += Batch::kLanes) {
    for (std::size_t i = 0; i < Batch::kLanes; ++i) arguments.next(f, i, batch.x()[i], batch.y()[i]);
    batch.run();
    judge<T>(f, batch, Batch::kLanes, figures);
  }
  return figures;
}

// Whether y is the f32 nearest to 1/sqrt(x), in integers, for x in [1, 4): y is in (1/2, 1].
bool nearest_rsqrt(float x, float y) {
  using Wide = unsigned __int128;
  const auto m = static_cast<Wide>(double{y} * 0x1p25),
             xm = static_cast<Wide>(double{x} * 0x1p23);  // half a unit in the last place of y is 1
  const Wide one = Wide{1} << 73;
  return (y == 1 || xm * (m - 1) * (m - 1) < one) && xm * (m + 1) * (m + 1) > one;
}

void prove_rsqrt() {
  Batch batch(Opcode::Rsqrt, Type::F32);
  std::uint64_t wrong = 0;
  for (std::uint32_t i = 0; i < (1u << 24); i += Batch::kLanes) {
    for (std::uint32_t j = 0; j < Batch::kLanes; ++j) batch.x()[j] = 0x3f800000u + i + j;
    batch.run();
    for (std::uint32_t j = 0; j < Batch::kLanes; ++j) {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(batch.x()[j])),
                  y = std::bit_cast<float>(static_cast<std::uint32_t>(batch.result()[j]));
      wrong += !nearest_rsqrt(x, y);
    }
  }
  std::printf("rsqrt on all mantissas of two exponents: %llu not correctly rounded\n", static_cast<unsigned long long>(wrong));
}

struct Request {
  std::uint64_t step = 1, samples = 100'000'000;
  bool narrow = true, wide = true;
  std::vector<std::string> names;
};

bool parse(int argc, char** argv, Request& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if ((a == "--step" || a == "--samples") && i + 1 < argc) {
      (a == "--step" ? o.step : o.samples) = std::strtoull(argv[++i], nullptr, 10);
    } else if (a == "--type" && i + 1 < argc) {
      const std::string t = argv[++i];
      if (t != "f32" && t != "f64") return false;
      (t == "f32" ? o.wide : o.narrow) = false;
    } else if (std::any_of(std::begin(kFunctions), std::end(kFunctions), [&](const Function& f) { return a == f.name; })) {
      o.names.push_back(a);
    } else {
      return false;
    }
  }
  return o.step != 0 && o.samples != 0;
}

template <class T>
void measure(const Function& f, const Request& o) {
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  const bool all_of_it = sizeof(T) == 4 && !takes_two(f);
  std::vector<Figures> results(parts);
  std::vector<std::thread> threads;
  for (unsigned p = 0; p < parts; ++p) {
    threads.emplace_back(
        [&, p] { results[p] = all_of_it ? all_arguments(f, o.step, p, parts) : random_arguments<T>(f, o.samples, p, parts); });
  }
  for (std::thread& t : threads) t.join();
  Figures all;
  for (const Figures& r : results) all.merge(r);
  const auto judged = kiln::bench::exact_error(f.op, sizeof(T) == 4 ? Type::F32 : Type::F64, all.x, all.y, all.got);
  std::printf("%-6s %s %14llu %10.4f %10.4f %21.4f%%   %.17g", f.name, sizeof(T) == 4 ? "f32" : "f64",
              static_cast<unsigned long long>(all.count), all.worst, judged.value_or(std::nan("")),
              100.0 * static_cast<double>(all.wrong) / static_cast<double>(all.count), all.x);
  std::printf(takes_two(f) ? ", %.17g\n" : "\n", all.y);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Request o;
  if (!parse(argc, argv, o)) {
    std::fprintf(stderr, "usage: math_ulp [FUNCTION...] [--type f32|f64] [--step N] [--samples N], both above 0; functions:");
    for (const Function& f : kFunctions) std::fprintf(stderr, " %s", f.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::printf("%-6s %s %14s %10s %10s %22s   at\n", "", "   ", "arguments", "worst ulp", "by MPFR", "not correctly rounded");
  for (const Function& f : kFunctions) {
    if (!o.names.empty() && std::find(o.names.begin(), o.names.end(), f.name) == o.names.end()) continue;
    if (o.narrow) measure<float>(f, o);
    if (o.wide) measure<double>(f, o);
  }
  if (o.narrow && (o.names.empty() || std::find(o.names.begin(), o.names.end(), "rsqrt") != o.names.end())) prove_rsqrt();
  return 0;
}
