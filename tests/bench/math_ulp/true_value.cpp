#include "true_value.h"

#ifdef KILN_WITH_MPFR
#include <mpfr.h>

#include <algorithm>
#include <cmath>

namespace kiln::bench {
namespace {

using ir::Opcode;

class Number {
 public:
  Number() { mpfr_init2(v_, 400); }
  explicit Number(double v) : Number() { mpfr_set_d(v_, v, MPFR_RNDN); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  ~Number() { mpfr_clear(v_); }
  mpfr_ptr get() { return v_; }

 private:
  mpfr_t v_;
};

bool compute(Opcode op, mpfr_ptr r, mpfr_ptr x, mpfr_ptr y) {
  using OfOne = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  using OfTwo = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);
  const auto one = [&](OfOne f) { return f(r, x, MPFR_RNDN), true; };
  const auto two = [&](OfTwo f) { return f(r, x, y, MPFR_RNDN), true; };
  switch (op) {
    case Opcode::Exp: return one(mpfr_exp);
    case Opcode::Exp2: return one(mpfr_exp2);
    case Opcode::Exp10: return one(mpfr_exp10);
    case Opcode::Expm1: return one(mpfr_expm1);
    case Opcode::Log: return one(mpfr_log);
    case Opcode::Log2: return one(mpfr_log2);
    case Opcode::Log10: return one(mpfr_log10);
    case Opcode::Log1p: return one(mpfr_log1p);
    case Opcode::Sin: return one(mpfr_sin);
    case Opcode::Cos: return one(mpfr_cos);
    case Opcode::Tan: return one(mpfr_tan);
    case Opcode::Asin: return one(mpfr_asin);
    case Opcode::Acos: return one(mpfr_acos);
    case Opcode::Atan: return one(mpfr_atan);
    case Opcode::Atan2: return two(mpfr_atan2);
    case Opcode::Sinh: return one(mpfr_sinh);
    case Opcode::Cosh: return one(mpfr_cosh);
    case Opcode::Tanh: return one(mpfr_tanh);
    case Opcode::Asinh: return one(mpfr_asinh);
    case Opcode::Acosh: return one(mpfr_acosh);
    case Opcode::Atanh: return one(mpfr_atanh);
    case Opcode::Erf: return one(mpfr_erf);
    case Opcode::Erfc: return one(mpfr_erfc);
    case Opcode::Cbrt: return one(mpfr_cbrt);
    case Opcode::Rsqrt: return one(mpfr_rec_sqrt);
    case Opcode::Hypot: return two(mpfr_hypot);
    case Opcode::Rhypot: return two(mpfr_hypot), mpfr_ui_div(r, 1, r, MPFR_RNDN), true;
    case Opcode::Pow:
    case Opcode::PowI: return two(mpfr_pow);
    case Opcode::Rem: return two(mpfr_fmod);
    default: return false;
  }
}

}  // namespace

std::optional<double> exact_error(Opcode op, ir::Type type, double x, double y, double got) {
  Number nx(x), ny(y), exact, difference(got);
  if (!std::isfinite(got) || !compute(op, exact.get(), nx.get(), ny.get()) || !mpfr_number_p(exact.get())) return std::nullopt;
  const long digits = type == ir::Type::F32 ? 24 : 53, least = type == ir::Type::F32 ? -149 : -1074;
  const long unit = mpfr_zero_p(exact.get()) ? least : std::max<long>(mpfr_get_exp(exact.get()) - digits, least);
  mpfr_sub(difference.get(), difference.get(), exact.get(), MPFR_RNDN);
  mpfr_mul_2si(difference.get(), difference.get(), -unit, MPFR_RNDN);
  return std::fabs(mpfr_get_d(difference.get(), MPFR_RNDN));
}

}  // namespace kiln::bench
#else
namespace kiln::bench {
std::optional<double> exact_error(ir::Opcode, ir::Type, double, double, double) { return std::nullopt; }
}  // namespace kiln::bench
#endif
