// Functions composed of operations: the same everywhere, and what docs/language/meaning.md says of them.
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> e;
  const auto add = [&](auto... values) { (e.push_back(static_cast<T>(values)), ...); };
  if constexpr (std::floating_point<T>) {
    add(0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.3, -0.3, 3, -3, 7, -7, 5.25, 1e30, -1e30, 1e9, -1e9, 1e-9);
    const T tiny = Limits::denorm_min(), infinite = Limits::infinity();
    add(infinite, -infinite, Limits::quiet_NaN(), tiny, -tiny, Limits::max(), Limits::lowest());
    const T below_half = std::nextafter(T{0.5}, T{0});
    add(below_half, -below_half);
  } else if constexpr (IsHalf<T>) {
    const f32 infinite = std::numeric_limits<f32>::infinity();
    add(0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.3, -0.3, 3, -3, 7, -7, 5.25, 1000, -60000, 1e-5, infinite, -infinite,
        std::numeric_limits<f32>::quiet_NaN());
    for (const u16 bits : {0x0001, 0x8001, 0x7bff, 0x37ff, 0xb7ff, 0x3eff}) e.push_back(T::from_bits(bits));
  } else {
    add(0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 31, 32, 33, 50, 63, 64, 100, 255, -1, -3, -7, -30);
    add(Limits::max(), Limits::min(), Limits::max() - 1, Limits::min() + 1, Limits::max() - 10);
    add(0x9e3779b97f4a7c15u, 0x0123456789abcdefu, 0x80f0ff7fu, 0x7f80017fu);
  }
  return e;
}

// All pairs of edges; the third operand is one of them too.
template <class T>
struct Operands {
  std::vector<T> x, y, z;
  Operands() {
    const std::vector<T> e = edges<T>();
    for (std::size_t i = 0; i < e.size(); ++i) {
      for (std::size_t j = 0; j < e.size(); ++j) x.push_back(e[i]), y.push_back(e[j]), z.push_back(e[(3 * i + 5 * j + 1) % e.size()]);
    }
  }
};

#define KILN_RECORDED(VALUE) \
  []([[maybe_unused]] const auto& x, [[maybe_unused]] const auto& y, [[maybe_unused]] const auto& z) { return VALUE; }

template <class T>
T floor_modulo(T x, T y, T) {
  if constexpr (std::floating_point<T>) {
    const T r = std::fmod(x, y);
    if (r == 0) return std::copysign(T{0}, y);
    return (r < 0) != (y < 0) ? r + y : r;
  } else {
    if (y == 0) return x;
    if (y == static_cast<T>(-1) && std::is_signed_v<T>) return 0;
    const T r = x % y;
    return r != 0 && std::is_signed_v<T> && (r < 0) != (y < 0) ? r + y : r;
  }
}

// f(what is recorded, what it gives): every function.
template <std::floating_point T, class Each>
void each(Each f) {
  f(KILN_RECORDED(recip(x)), [](T x, T, T) { return 1 / x; });
  f(KILN_RECORDED(degrees(x)), [](T x, T, T) { return x * static_cast<T>(57.29577951308232); });
  f(KILN_RECORDED(radians(x)), [](T x, T, T) { return x * static_cast<T>(0.017453292519943295); });
  f(KILN_RECORDED(round_away(x)), [](T x, T, T) { return std::round(x); });
  f(KILN_RECORDED(cast<T>(is_nan(x))), [](T x, T, T) { return T(std::isnan(x)); });
  f(KILN_RECORDED(cast<T>(is_inf(x))), [](T x, T, T) { return T(std::isinf(x)); });
  f(KILN_RECORDED(cast<T>(is_finite(x))), [](T x, T, T) { return T(std::isfinite(x)); });
  f(KILN_RECORDED(mod_floor(x, y)), floor_modulo<T>);
  f(KILN_RECORDED(clamp(x, -2, 3)), [](T x, T, T) { return x != x ? T{-2} : x < -2 ? T{-2} : x > 3 ? T{3} : x; });
}

// From f32 and f64, where what is asked is exact or far from a tie.
template <IsHalf T, class Each>
void each(Each f) {
  f(KILN_RECORDED(recip(x)), [](T x, T, T) { return static_cast<T>(1 / static_cast<f64>(x)); });
  f(KILN_RECORDED(degrees(x)), [](T x, T, T) { return static_cast<T>(x * 57.29577951308232f); });
  f(KILN_RECORDED(radians(x)), [](T x, T, T) { return static_cast<T>(x * 0.017453292519943295f); });
  f(KILN_RECORDED(round_away(x)), [](T x, T, T) { return static_cast<T>(std::round(static_cast<f32>(x))); });
  f(KILN_RECORDED(cast<T>(is_nan(x))), [](T x, T, T) { return T(x != x); });
  f(KILN_RECORDED(cast<T>(is_inf(x))), [](T x, T, T) { return T(std::isinf(static_cast<f32>(x))); });
  f(KILN_RECORDED(cast<T>(is_finite(x))), [](T x, T, T) { return T(std::isfinite(static_cast<f32>(x))); });
  f(KILN_RECORDED(mod_floor(x, y)), [](T x, T y, T) { return static_cast<T>(floor_modulo<f32>(x, y, 0)); });
  f(KILN_RECORDED(clamp(x, -2, 3)), [](T x, T, T) { return x != x || x < -2 ? T(-2) : x > 3 ? T(3) : x; });
}

template <std::integral T, class Each>
void each(Each f) {
  using U = std::make_unsigned_t<T>;
  using Wide = __int128;
  constexpr int width = 8 * sizeof(T);
  using Limits = std::numeric_limits<T>;
  const auto saturate = [](Wide v) { return v < Limits::min() ? Limits::min() : v > Limits::max() ? Limits::max() : static_cast<T>(v); };
  f(KILN_RECORDED(mod_floor(x, y)), floor_modulo<T>);
  f(KILN_RECORDED(clamp(x, 2, 31)), [](T x, T, T) { return x < 2 ? T{2} : x > 31 ? T{31} : x; });
  f(KILN_RECORDED(add_sat(x, y)), [=](T x, T y, T) { return saturate(Wide{x} + Wide{y}); });
  f(KILN_RECORDED(sub_sat(x, y)), [=](T x, T y, T) { return saturate(Wide{x} - Wide{y}); });
  f(KILN_RECORDED(rotate_left(x, y)),
    [](T x, T y, T) { return static_cast<T>(std::rotl(static_cast<U>(x), static_cast<int>(static_cast<U>(y) % width))); });
  f(KILN_RECORDED(rotate_right(x, y)),
    [](T x, T y, T) { return static_cast<T>(std::rotr(static_cast<U>(x), static_cast<int>(static_cast<U>(y) % width))); });
  f(KILN_RECORDED(funnel_left(x, y, z)), [](T x, T y, T z) {
    const auto both = static_cast<unsigned __int128>(static_cast<U>(x)) << width | static_cast<U>(y);
    return static_cast<T>((both << static_cast<U>(z) % width) >> width);
  });
  f(KILN_RECORDED(funnel_right(x, y, z)), [](T x, T y, T z) {
    const auto both = static_cast<unsigned __int128>(static_cast<U>(x)) << width | static_cast<U>(y);
    return static_cast<T>(both >> static_cast<U>(z) % width);
  });
  f(KILN_RECORDED(reverse_bits(x)), [](T x, T, T) {
    U r = 0;
    for (int i = 0; i < width; ++i) r |= static_cast<U>(static_cast<U>(x) >> i & 1) << (width - 1 - i);
    return static_cast<T>(r);
  });
  f(KILN_RECORDED(byte_swap(x)), [](T x, T, T) { return std::byteswap(x); });
  f(KILN_RECORDED(find_first_set(x)), [](T x, T, T) { return static_cast<T>(x == 0 ? 0 : std::countr_zero(static_cast<U>(x)) + 1); });
  if constexpr (sizeof(T) == 4) {
    using Byte = std::conditional_t<std::is_signed_v<T>, std::int8_t, std::uint8_t>;
    f(KILN_RECORDED(dp4a(x, y, z)), [](T x, T y, T z) {
      U sum = static_cast<U>(z);
      for (int i = 0; i < 4; ++i) sum += static_cast<U>(static_cast<Byte>(x >> (8 * i)) * static_cast<Byte>(y >> (8 * i)));
      return static_cast<T>(sum);
    });
  }
}
#undef KILN_RECORDED

template <class T>
void hold(const char* name) {
  const Operands<T> in;
  const std::size_t n = in.x.size();
  std::vector<T> expected;
  each<T>([&](auto, auto wanted) {
    for (std::size_t i = 0; i < n; ++i) expected.push_back(wanted(in.x[i], in.y[i], in.z[i]));
  });
  const auto k = kernel(name, [](In<T> x, In<T> y, In<T> z, Out<T, 2> out) {
    auto i = global_id().x;
    If (i < x.size()) {
      const Val<T> a = x[i], b = y[i], c = z[i];
      u32 row = 0;
      each<T>([&](auto recorded, auto) { out[row++, i] = recorded(a, b, c); });
    }
  });
  const std::vector<Arg> args{buffer(in.x), buffer(in.y), buffer(in.z),
                              buffer(std::vector<T>(expected.size(), T(77)), {expected.size() / n, n})};
  check_run<T>(*k, {{static_cast<u32>(n + 95) / 96}, {96}}, args, 3, expected, {.unchecked = false, .ptx = Ptx::Sm75});
}

}  // namespace

TEST_CASE("recip, degrees, radians, round_away, mod_floor, clamp and the tests of floats") {
  hold<f16>("composed_f16");
  hold<bf16>("composed_bf16");
  hold<f32>("composed_f32");
  hold<f64>("composed_f64");
}

TEST_CASE("mod_floor, clamp, saturation, rotation, funnel shifts, bits and bytes of integers") {
  hold<u8>("composed_u8");
  hold<i8>("composed_i8");
  hold<u16>("composed_u16");
  hold<i16>("composed_i16");
  hold<i32>("composed_i32");
  hold<u32>("composed_u32");
  hold<i64>("composed_i64");
  hold<u64>("composed_u64");
}
