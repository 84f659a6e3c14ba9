// Arithmetic rounded to zero, down or up: the processor's rounding mode around the lanes. Compiled with -frounding-math.
#include <cfenv>
#include <cmath>

#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_float.h"
#include "simcuda/ptx_values.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

class RoundingMode {
 public:
  explicit RoundingMode(int mode) : before_(std::fegetround()) { std::fesetround(mode); }
  ~RoundingMode() { std::fesetround(before_); }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;

 private:
  int before_;
};

template <class T>
T value(u64 v) {
  if constexpr (sizeof(T) == 4) return f32(v);
  else return f64(v);
}

template <class T, char Kind, int Mode, bool Ftz, bool Sat>
void run(Warp& w, const Op& o, Mask m) {
  const u64 *a = w.in(o.a), *b = w.in(o.b), *c = w.in(o.c);
  u64* d = w.out(o.d);
  const RoundingMode mode(Mode);
  for (; m != 0; m &= m - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(m));
    const auto arg = [](u64 v) { return value<T>(Ftz ? flush32(v) : v); };
    const T x = arg(a[l]);
    T r = x;
    if constexpr (Kind == '+') r = x + arg(b[l]);
    else if constexpr (Kind == '-') r = x - arg(b[l]);
    else if constexpr (Kind == '*') r = x * arg(b[l]);
    else if constexpr (Kind == '/') r = x / arg(b[l]);
    else if constexpr (Kind == 'f') r = std::fma(x, arg(b[l]), arg(c[l]));
    else if constexpr (Kind == 'r') r = T{1} / x;
    else r = std::sqrt(x);
    if constexpr (Sat) r = saturate(r);
    const u64 bits = result(r);
    d[l] = Ftz ? flush32(bits) : bits;
  }
}

template <class T, char Kind, int Mode>
Execute modifiers(bool ftz, bool sat) {
  if constexpr (sizeof(T) == 8) return ftz || sat ? nullptr : &run<T, Kind, Mode, false, false>;
  else if (ftz) return sat ? &run<T, Kind, Mode, true, true> : &run<T, Kind, Mode, true, false>;
  else return sat ? &run<T, Kind, Mode, false, true> : &run<T, Kind, Mode, false, false>;
}

template <class T, char Kind>
Execute modes(Round round, bool ftz, bool sat) {
  switch (round) {
    case Round::Zero: return modifiers<T, Kind, FE_TOWARDZERO>(ftz, sat);
    case Round::Down: return modifiers<T, Kind, FE_DOWNWARD>(ftz, sat);
    case Round::Up: return modifiers<T, Kind, FE_UPWARD>(ftz, sat);
    default: return nullptr;
  }
}

template <class T>
Execute kinds(char op, Round round, bool ftz, bool sat) {
  switch (op) {
    case '+': return modes<T, '+'>(round, ftz, sat);
    case '-': return modes<T, '-'>(round, ftz, sat);
    case '*': return modes<T, '*'>(round, ftz, sat);
    case '/': return modes<T, '/'>(round, ftz, sat);
    case 'f': return modes<T, 'f'>(round, ftz, sat);
    case 'r': return modes<T, 'r'>(round, ftz, sat);
    case 's': return modes<T, 's'>(round, ftz, sat);
    default: return nullptr;
  }
}

}  // namespace

Execute rounded(char op, Type t, Round round, bool ftz, bool sat) {
  if (t == Type::F32) return kinds<float>(op, round, ftz, sat);
  if (t == Type::F64) return kinds<double>(op, round, ftz, sat);
  return nullptr;
}

}  // namespace kiln::simcuda::ptx
