#include "functions.h"

#include <cmath>

#ifdef KILN_WITH_SLEEF
#include <sleef.h>
#endif

namespace kiln::bench {
namespace {

using ir::Opcode;

double power_of_ten(double x) { return ::exp10(x); }
long double power_of_ten(long double x) { return ::exp10l(x); }

template <class Second, class True, class Body>
constexpr Function row(const char* name, Opcode op, bool two, void (*many)(const double*, double*, std::size_t), True, Body) {
  Function f{};
  f.name = name;
  f.op = op;
  f.two = two;
  f.integer_exponent = !std::is_same_v<Second, void>;
  f.many = many;
  f.narrow = [](double x, double y) { return static_cast<double>(True{}(x, y)); };
  f.wide = [](long double x, long double y) { return static_cast<long double>(True{}(x, y)); };
  if constexpr (std::is_invocable_v<Body, Val<float>>) {
    f.kernel_f32 = [](std::size_t n, bool fast) -> std::unique_ptr<Evaluator<float>> {
      return std::make_unique<OfOne<float, Body>>(n, fast);
    };
    f.kernel_f64 = [](std::size_t n, bool fast) -> std::unique_ptr<Evaluator<double>> {
      return std::make_unique<OfOne<double, Body>>(n, fast);
    };
  } else {
    using First = std::conditional_t<std::is_same_v<Second, void>, float, Second>;
    using Other = std::conditional_t<std::is_same_v<Second, void>, double, Second>;
    f.kernel_f32 = [](std::size_t n, bool fast) -> std::unique_ptr<Evaluator<float>> {
      return std::make_unique<OfTwo<float, First, Body>>(n, fast);
    };
    f.kernel_f64 = [](std::size_t n, bool fast) -> std::unique_ptr<Evaluator<double>> {
      return std::make_unique<OfTwo<double, Other, Body>>(n, fast);
    };
  }
  return f;
}

#ifdef KILN_WITH_SLEEF
#ifdef __AVX512F__
#define KILN_SLEEF(NAME, U)                                                                                           \
  [](const double* x, double* exact, std::size_t n) {                                                                 \
    for (std::size_t i = 0; i < n; i += 8) _mm512_storeu_pd(exact + i, Sleef_##NAME##d8_##U(_mm512_loadu_pd(x + i))); \
  }
#else
#define KILN_SLEEF(NAME, U)                                                                                           \
  [](const double* x, double* exact, std::size_t n) {                                                                 \
    for (std::size_t i = 0; i < n; i += 4) _mm256_storeu_pd(exact + i, Sleef_##NAME##d4_##U(_mm256_loadu_pd(x + i))); \
  }
#endif
#else
#define KILN_SLEEF(NAME, U) nullptr
#endif

#define KILN_ONE(NAME, OPCODE, VALUE, MANY) \
  row<void>(#NAME, Opcode::OPCODE, false, MANY, [](auto x, auto) { return VALUE; }, [](auto x) { return kiln::NAME(x); })
#define KILN_TWO(NAME, OPCODE, VALUE, SECOND, BODY) \
  row<SECOND>(NAME, Opcode::OPCODE, true, nullptr, [](auto x, auto y) { return VALUE; }, [](auto x, auto y) { return BODY; })

void square_roots(const double* x, double* exact, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) exact[i] = 1 / std::sqrt(x[i]);
}

const Function kFunctions[] = {
    KILN_ONE(exp, Exp, std::exp(x), KILN_SLEEF(exp, u10)),
    KILN_ONE(exp2, Exp2, std::exp2(x), KILN_SLEEF(exp2, u10)),
    KILN_ONE(exp10, Exp10, power_of_ten(x), KILN_SLEEF(exp10, u10)),
    KILN_ONE(expm1, Expm1, std::expm1(x), KILN_SLEEF(expm1, u10)),
    KILN_ONE(log, Log, std::log(x), KILN_SLEEF(log, u10)),
    KILN_ONE(log2, Log2, std::log2(x), KILN_SLEEF(log2, u10)),
    KILN_ONE(log10, Log10, std::log10(x), KILN_SLEEF(log10, u10)),
    KILN_ONE(log1p, Log1p, std::log1p(x), KILN_SLEEF(log1p, u10)),
    KILN_ONE(sin, Sin, std::sin(x), KILN_SLEEF(sin, u10)),
    KILN_ONE(cos, Cos, std::cos(x), KILN_SLEEF(cos, u10)),
    KILN_ONE(tan, Tan, std::tan(x), KILN_SLEEF(tan, u10)),
    KILN_ONE(asin, Asin, std::asin(x), KILN_SLEEF(asin, u10)),
    KILN_ONE(acos, Acos, std::acos(x), KILN_SLEEF(acos, u10)),
    KILN_ONE(atan, Atan, std::atan(x), KILN_SLEEF(atan, u10)),
    KILN_TWO("atan2", Atan2, std::atan2(x, y), void, kiln::atan2(x, y)),
    KILN_ONE(sinh, Sinh, std::sinh(x), KILN_SLEEF(sinh, u10)),
    KILN_ONE(cosh, Cosh, std::cosh(x), KILN_SLEEF(cosh, u10)),
    KILN_ONE(tanh, Tanh, std::tanh(x), KILN_SLEEF(tanh, u10)),
    KILN_ONE(asinh, Asinh, std::asinh(x), KILN_SLEEF(asinh, u10)),
    KILN_ONE(acosh, Acosh, std::acosh(x), KILN_SLEEF(acosh, u10)),
    KILN_ONE(atanh, Atanh, std::atanh(x), KILN_SLEEF(atanh, u10)),
    KILN_ONE(erf, Erf, std::erf(x), KILN_SLEEF(erf, u10)),
    KILN_ONE(erfc, Erfc, std::erfc(x), KILN_SLEEF(erfc, u15)),
    KILN_ONE(cbrt, Cbrt, std::cbrt(x), KILN_SLEEF(cbrt, u10)),
    KILN_ONE(rsqrt, Rsqrt, 1 / std::sqrt(x), square_roots),
    KILN_TWO("hypot", Hypot, std::hypot(x, y), void, kiln::hypot(x, y)),
    KILN_TWO("rhypot", Rhypot, 1 / std::hypot(x, y), void, kiln::rhypot(x, y)),
    KILN_TWO("pow", Pow, std::pow(x, y), void, kiln::pow(x, y)),
    KILN_TWO("powi", PowI, std::pow(x, y), i32, kiln::powi(x, y)),
    KILN_TWO("rem", Rem, std::fmod(x, y), void, x % y),
};

}  // namespace

std::span<const Function> functions() { return kFunctions; }

bool with_sleef() {
#ifdef KILN_WITH_SLEEF
  return true;
#else
  return false;
#endif
}

}  // namespace kiln::bench
