// e4m3 and e5m2 on every device: every value each way, everything that rounds to them near where rounding decides, and what moves them.
// Expected values are those of support/float8.h.
#include <bit>
#include <random>

#include "conformance/everywhere.h"
#include "support/float8.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// One conversion of a long list: 256 threads a block.
template <class From, class To>
void check_conversion(const std::vector<From>& from, const std::vector<To>& wanted, const Ways& ways = {}) {
  CAPTURE(ir::name(ir_type<From>));
  CAPTURE(ir::name(ir_type<To>));
  const auto k = kernel("convert", [](In<From> in, Out<To> out) {
    auto i = global_id().x;
    If (i < in.size()) { out[i] = cast<To>(in[i]); }
  });
  const auto blocks = static_cast<u32>((from.size() + 255) / 256);
  const auto outcomes = run_everywhere(*k, {{blocks}, {256}}, {buffer(from), buffer(std::vector<To>(from.size()))}, ways);
  expect(outcomes, 1, wanted);
  if constexpr (IsFloat8<To>) {  // of these a NaN has known bits too
    for (const Outcome& o : outcomes) {
      if (!o.bytes.empty()) CHECK_MESSAGE(o.bytes[1] == to_bytes(wanted), o.where);
    }
  }
}

template <class To, class From>
std::vector<To> nearest(const std::vector<From>& from) {
  std::vector<To> v;
  for (const From& x : from) v.push_back(To::from_bits(static_cast<u8>(float8_nearest(ir_type<To>, static_cast<f64>(x)))));
  return v;
}

template <class T>
std::vector<T> all_codes() {
  std::vector<T> v;
  for (u32 code = 0; code < 256; ++code) v.push_back(T::from_bits(static_cast<u8>(code)));
  return v;
}

template <class T, class Wide>
void check_widening() {
  std::vector<Wide> wanted;
  for (u32 code = 0; code < 256; ++code) wanted.push_back(static_cast<Wide>(float8_value(ir_type<T>, code)));
  check_conversion(all_codes<T>(), wanted);
}

template <class T, class Half>
void check_all_halves() {
  std::vector<Half> from;
  for (u32 bits = 0; bits < 65536; ++bits) from.push_back(Half::from_bits(static_cast<u16>(bits)));
  check_conversion(from, nearest<T>(from), {.checked = false});
}

template <class T, class F, class Word>
void check_rounding() {
  std::vector<F> from = float8_boundaries<F>(ir_type<T>);
  check_conversion(from, nearest<T>(from));
  // Random bits, and random numbers of the type's range.
  from.clear();
  std::mt19937_64 random(7);
  std::uniform_real_distribution<F> exponent(-20, 17);
  for (u32 i = 0; i < 20000; ++i) {
    from.push_back(std::bit_cast<F>(static_cast<Word>(random())));
    const F x = std::exp2(exponent(random));
    from.push_back(i % 2 == 0 ? x : -x);
  }
  check_conversion(from, nearest<T>(from), {.checked = false});
}

template <class T>
void check_moves() {
  const auto k = kernel("moves", [](In<T, 2, Strided> in, Val<T> s, InOut<T> out, Out<u8> bits) {
    Shared<T> shared(64);
    Local<T, 4> local;
    Var<T> kept;  // 0
    auto i = thread_id().x;
    Val<T> x = in[i % 16, i / 16];
    shared[i] = x;
    local[i % 4] = x;
    barrier();
    If (i % 3 == 0) { kept = shared[63 - i]; }
    If (i % 3 == 1) { kept = local[i % 4]; }
    out[i] = select(i % 5 == 0, s, kept);
    bits[i] = bit_cast<u8>(out[i]);
    If (i == 63) { out[i] = bit_cast<T>(Val<i8>(-5)); }
    If (i == 62) { out[i] = 0.4; }
    If (i == 61) { out[i] = T::from_bits(0xff); }
    If (i == 60) { out[i] = T::from_bits(0x7c); }
  });
  std::vector<T> in = all_codes<T>(), out(64), wanted(64);
  std::vector<u8> bits(64), wanted_bits(64);
  Arg strided = buffer(in, {16, 4});
  strided.strides = {3, 50};
  const T s = T::from_bits(0xa5);
  const auto at = [&](u32 i) { return in[i % 16 * 3 + i / 16 * 50]; };
  for (u32 i = 0; i < 64; ++i) {
    wanted[i] = i % 5 == 0 ? s : i % 3 == 0 ? at(63 - i) : i % 3 == 1 ? at(i) : T();
    wanted_bits[i] = wanted[i].bits();
  }
  wanted[63] = T::from_bits(0xfb), wanted[62] = T::from_bits(static_cast<u8>(float8_nearest(ir_type<T>, 0.4)));
  wanted[61] = T::from_bits(0xff), wanted[60] = T::from_bits(0x7c);
  const auto outcomes = run_everywhere(*k, {{1}, {64}}, {strided, scalar(s), buffer(out), buffer(bits)});
  expect(outcomes, 3, wanted_bits);
  for (const Outcome& o : outcomes) {
    if (!o.bytes.empty()) CHECK_MESSAGE(o.bytes[2] == to_bytes(wanted), o.where);  // NaN too: what moves bits keeps them
  }
}

}  // namespace

TEST_CASE("each value of e4m3 and e5m2 is read as the f32, f64, f16 and bf16 that it is") {
  check_widening<e4m3, f32>();
  check_widening<e4m3, f64>();
  check_widening<e4m3, f16>();
  check_widening<e4m3, bf16>();
  check_widening<e5m2, f32>();
  check_widening<e5m2, f64>();
  check_widening<e5m2, f16>();
  check_widening<e5m2, bf16>();
}

TEST_CASE("each f16 and bf16 becomes the nearest e4m3 and e5m2, ties to even, the largest beyond the range") {
  check_all_halves<e4m3, f16>();
  check_all_halves<e4m3, bf16>();
  check_all_halves<e5m2, f16>();
  check_all_halves<e5m2, bf16>();
}

TEST_CASE("f32 and f64 become e4m3 and e5m2 rounded once, at each boundary and between") {
  check_rounding<e4m3, f32, u32>();
  check_rounding<e4m3, f64, u64>();
  check_rounding<e5m2, f32, u32>();
  check_rounding<e5m2, f64, u64>();
}

TEST_CASE("e4m3 and e5m2 convert to each other") {
  std::vector<e4m3> narrow = all_codes<e4m3>();
  std::vector<e5m2> wide = all_codes<e5m2>();
  check_conversion(narrow, nearest<e5m2>(narrow));
  check_conversion(wide, nearest<e4m3>(wide));
}

TEST_CASE("e4m3 and e5m2 pass through every memory, local and parameter with all their bits") {
  check_moves<e4m3>();
  check_moves<e5m2>();
}

TEST_CASE("e4m3 of -2.1, 1.8, 0.4 and 1.2, and back") {
  const auto k = kernel("row_111", [](In<f32> in, Out<e4m3> narrow, Out<f32> back) {
    auto i = thread_id().x;
    Val<e4m3> x = cast<e4m3>(in[i]);
    narrow[i] = x;
    back[i] = cast<f32>(x);
  });
  const auto outcomes =
      run_everywhere(*k, {{1}, {4}}, {buffer<f32>({-2.1f, 1.8f, 0.4f, 1.2f}), buffer(std::vector<e4m3>(4)), filled<f32>(4, 99)});
  std::vector<e4m3> bits;
  for (const u8 b : {0xC0, 0x3E, 0x2D, 0x3A}) bits.push_back(e4m3::from_bits(b));
  expect(outcomes, 1, bits);
  expect<f32>(outcomes, 2, {-2, 1.75f, 0.40625f, 1.25f});
}
