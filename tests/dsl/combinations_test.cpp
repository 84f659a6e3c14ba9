// What C++ lets through, on every type: the verifier takes it too, or says at its line what would be needed.
#include <string>

#include "dsl/recording.h"
#include "kiln/ir/passes.h"
#include "kiln/ir/verify.h"

using namespace kiln;

namespace {

template <class F>
std::string findings(F body) {
  const Result<ir::Kernel> k = record("k", body);
  if (!k.has_value()) return k.error().text();
  const ir::Diagnostics found = ir::verify(*k);
  if (found.empty()) ir::prepare(*k);  // throws where the passes make something that is not valid
  return ir::to_string(found);
}

template <class T>
std::string moves() {
  return findings([](In<T> x, InOut<T> y, Out<T> z, In<T, 2, Strided> w, Val<T> s, Val<bool> c) {
    Shared<T> shared(32);
    DynamicShared<T> dynamic;
    Local<T, 4> local;
    Var<T> v, u = s;
    v = x[0];
    shared[0] = v;
    dynamic[1] = shared[0];
    local[2] = dynamic[1];
    y[3] = local[2];
    z[4] = y[3];
    z[5] = select(c, w[0, 1], u);
    If (c) { v = s; }
    z[6] = v;
    if constexpr (!std::same_as<T, bool>) z[7] = 1;
  });
}

template <class To, class From>
void convert(Out<To> y, const Val<From>& x) {
  if constexpr (!(IsFloat8<From> && std::integral<To>) && !(IsFloat8<To> && std::integral<From>)) y[0] = cast<To>(x);
  if constexpr (!std::same_as<To, bool> && !std::same_as<From, bool> && sizeof(To) == sizeof(From)) y[1] = bit_cast<To>(x);
}

template <class T>
std::string conversions() {
  return findings([](In<T> x, Out<bool> b, Out<i8> s8, Out<u8> u8_, Out<i16> s16, Out<u16> u16_, Out<i32> s32, Out<u32> u32_, Out<i64> s64,
                     Out<u64> u64_, Out<f16> h, Out<bf16> g, Out<f32> f, Out<f64> d, Out<e4m3> e4, Out<e5m2> e5) {
    Val<T> v = x[0];
    convert(b, v), convert(s8, v), convert(u8_, v), convert(s16, v), convert(u16_, v), convert(s32, v), convert(u32_, v), convert(s64, v);
    convert(u64_, v), convert(h, v), convert(g, v), convert(f, v), convert(d, v), convert(e4, v), convert(e5, v);
  });
}

template <class T>
std::string computes() {
  return findings([](In<T> x, InOut<T> y, InOut<bool> b, Val<u32> n) {
    Val<T> v = x[0], w = x[1];
    b[0] = v == w;
    b[1] = v != w;
    y[0] = warp::shfl_idx(v, n);
    y[1] = warp::shfl_up(v, n);
    y[2] = warp::shfl_down(v, n);
    y[3] = warp::shfl_xor(v, n);
    y[4] = block_uniform(v);
    check(b[0], "{} is not {}", v, w);
    if constexpr (std::integral<T>) {
      y[5] = (v & w) | (v ^ w);
      y[6] = warp::and_(v);
      y[7] = warp::inclusive_or_(v);
      y[8] = warp::exclusive_xor_(v);
    }
    if constexpr (std::same_as<T, bool>) {
      y[9] = (v & w) | barrier_any(!v);
      y[10] = barrier_all(v) & warp::any(v);
      y[11] = warp::all(w) ^ (barrier_count(v) > warp::ballot(w));
    }
  });
}

template <class T>
std::string numbers() {
  return findings([](In<T> x, InOut<T> y, InOut<bool> b) {
    Val<T> v = x[0], w = x[1];
    Var<T> u = v;
    u += w, u -= w, u *= w, u /= w, u %= w;
    y[0] = v + w - v * w / (v % w) + -v + abs(w) + min(v, w) + max(w, 1) + clamp(v, 0, w) + mod_floor(v, w) + u;
    b[0] = (v < w) ^ (v <= w) ^ (v > w) ^ (v >= w);
    y[1] = warp::sum(v) + warp::min(v) + warp::max(v);
    y[2] = warp::inclusive_sum(v) + warp::inclusive_min(v) + warp::inclusive_max(v);
    y[3] = warp::exclusive_sum(v) + warp::exclusive_min(v) + warp::exclusive_max(v);
    if constexpr (!IsHalf<T>) y[4] = warp::product(v) + warp::inclusive_product(v) + warp::exclusive_product(v);
    if constexpr (sizeof(T) >= 4) {
      Shared<T> s(2);
      y[5] = y.atomic_add(0, v) + y.atomic_min(1, v) + y.atomic_max(2, v) + y.atomic_exchange(3, v);
      y[6] = s.atomic_add(0, v) + s.atomic_min(1, v) + s.atomic_max(0, v) + s.atomic_exchange(1, v);
    }
  });
}

template <class T>
std::string integers() {
  return findings([](In<T> x, InOut<T> y, In<f32> f, Out<f32> g) {
    Val<T> v = x[0], w = x[1];
    Var<T> u = v;
    ++u, u--, u &= v, u |= w, u ^= v, u <<= 1, u >>= 1;
    y[v] = ~v + (v << w) + (v >> w) + clz(v) + ctz(v) + popcount(v) + mul_hi(v, w) + add_sat(v, w) + sub_sat(v, w) + u;
    y[0] = rotate_left(v, w) + rotate_right(v, w) + reverse_bits(v) + byte_swap(v) + find_first_set(v) + funnel_left(v, w, v) +
           funnel_right(v, w, v);
    if constexpr (sizeof(T) == 4) y[1] = dp4a(v, w, v);
    for (auto i : range(v, w, T{2})) { g[i] = f[i]; }
    Switch (v) {
      Case (3) { g[0] = 1; }
      Default { g[0] = 2; }
    }
    if constexpr (sizeof(T) >= 4) {
      Shared<T> s(2);
      y[2] = y.atomic_sub(0, v) + y.atomic_and(1, v) + y.atomic_or(2, v) + y.atomic_xor(3, v) + y.atomic_cas(4, v, w);
      y[3] = s.atomic_sub(0, v) + s.atomic_and(1, v) + s.atomic_or(0, v) + s.atomic_xor(1, v) + s.atomic_cas(0, v, w);
    }
  });
}

template <class T>
std::string floats() {
  return findings([](In<T> x, Out<T> y, Out<bool> b, Val<i32> n) {
    Val<T> v = x[0], w = x[1];
    y[0] = min_nan(v, w) + max_nan(v, w) + copysign(v, w) + sqrt(v) + floor(v) + ceil(v) + trunc(v) + round_even(v) + round_away(v);
    y[1] = fma(v, w, v) + recip(v) + degrees(v) + radians(v) + exp(v) + exp2(v) + exp10(v) + expm1(v) + log(v) + log2(v) + log10(v);
    y[2] = log1p(v) + pow(v, w) + powi(v, n) + sin(v) + cos(v) + tan(v) + asin(v) + acos(v) + atan(v) + atan2(v, w) + sinh(v) + cosh(v);
    y[3] = tanh(v) + asinh(v) + acosh(v) + atanh(v) + erf(v) + erfc(v) + rsqrt(v) + cbrt(v) + hypot(v, w) + rhypot(v, w);
    b[0] = is_nan(v) ^ is_inf(v) ^ is_finite(w);
  });
}

// The only operations that C++ lets through and the verifier does not: which memory an array is does not show in its type's atomics.
template <class T>
std::string local_atomics(unsigned& line) {
  static unsigned here;
  const std::string s = findings([](InOut<T> y) {
    Local<T, 4> local;
    local[0] = y[0];
    here = __LINE__ + 1;
    y[0] = local.atomic_add(0, y[1]);
  });
  line = here;
  return s;
}

template <class T>
void check_type() {
  CAPTURE(ir::name(ir_type<T>));
  CHECK(moves<T>() == "");
  CHECK(conversions<T>() == "");
  if constexpr (!IsFloat8<T>) CHECK(computes<T>() == "");
  if constexpr (Number<T>) CHECK(numbers<T>() == "");
  if constexpr (Integer<T>) CHECK(integers<T>() == "");
  if constexpr (Floating<T>) CHECK(floats<T>() == "");
  if constexpr (Number<T> && sizeof(T) >= 4) {
    unsigned line = 0;
    const std::string refused = local_atomics<T>(line);
    HAS(refused, "combinations_test.cpp:" + std::to_string(line) + ": kernel 'k': atomic_add of 'Local<");
    HAS(refused, "atomics work on buffers and shared memory, not on a thread's own");
  }
}

}  // namespace

TEST_CASE("what C++ lets through is valid on every type, or refused at its line with what would be needed") {
  check_type<bool>();
  check_type<i8>();
  check_type<u8>();
  check_type<i16>();
  check_type<u16>();
  check_type<i32>();
  check_type<u32>();
  check_type<i64>();
  check_type<u64>();
  check_type<f16>();
  check_type<bf16>();
  check_type<f32>();
  check_type<f64>();
  check_type<e4m3>();
  check_type<e5m2>();
}
