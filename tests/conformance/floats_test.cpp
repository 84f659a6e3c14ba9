// What float operations give at their edges: bits, not tolerances, wherever the language fixes them.
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr f32 kInf = std::numeric_limits<f32>::infinity(), kNan = std::numeric_limits<f32>::quiet_NaN();
constexpr f32 kTiny = std::numeric_limits<f32>::denorm_min(), kLargest = std::numeric_limits<f32>::max();

constexpr u32 kBlock = 33;

// Host tables of doubles as both float types.
template <class T>
std::vector<T> as(const std::vector<f64>& values) {
  return std::vector<T>(values.begin(), values.end());
}

// --- min, max, comparisons ------------------------------------------------------------------------------------------------------

struct MinMaxRow {
  f64 a, b, min, max, min_nan, max_nan;
};
constexpr f64 kN = std::numeric_limits<f64>::quiet_NaN(), kI = std::numeric_limits<f64>::infinity();
constexpr MinMaxRow kMinMax[] = {
    {1, 2, 1, 2, 1, 2},
    {kN, 2, 2, 2, kN, kN},
    {1, kN, 1, 1, kN, kN},
    {kN, kN, kN, kN, kN, kN},
    {-0.0, 0.0, -0.0, 0.0, -0.0, 0.0},
    {0.0, -0.0, -0.0, 0.0, -0.0, 0.0},
    {-kI, kI, -kI, kI, -kI, kI},
    {kN, -kI, -kI, -kI, kN, kN},
    {kI, kN, kI, kI, kN, kN},
    {-3, -4, -4, -3, -4, -3},
    {-0.0, -0.0, -0.0, -0.0, -0.0, -0.0},
};

template <class T>
void check_min_max() {
  CAPTURE(ir::name(ir_type<T>));
  std::vector<T> a, b, wanted, wanted3;
  for (const auto& r : kMinMax) {
    a.push_back(static_cast<T>(r.a)), b.push_back(static_cast<T>(r.b));
    for (f64 w : {r.min, r.max, r.min_nan, r.max_nan}) wanted.push_back(static_cast<T>(w));
    for (int way = 0; way < 3; ++way) {
      for (f64 w : {r.min, r.max, r.min_nan, r.max_nan}) wanted3.push_back(static_cast<T>(w));
    }
  }
  const auto loaded = kernel("min_max", [](In<T> x, In<T> y, Out<T> out) {
    auto i = global_id().x;
    If (i < x.size()) {
      out[4 * i] = min(x[i], y[i]);
      out[4 * i + 1] = max(x[i], y[i]);
      out[4 * i + 2] = min_nan(x[i], y[i]);
      out[4 * i + 3] = max_nan(x[i], y[i]);
    }
  });
  check_run(*loaded, {{1}, {kBlock}}, {buffer(a), buffer(b), filled<T>(wanted.size(), 99)}, 2, wanted);
  const auto known = kernel("min_max_known", [](In<T> x, In<T> y, Out<T> out) {
    u32 o = 0;
    for (u32 i = 0; const auto& r : kMinMax) {
      const auto ra = static_cast<T>(r.a), rb = static_cast<T>(r.b);
      out[o++] = min(x[i], rb), out[o++] = max(x[i], rb), out[o++] = min_nan(x[i], rb), out[o++] = max_nan(x[i], rb);
      out[o++] = min(ra, y[i]), out[o++] = max(ra, y[i]), out[o++] = min_nan(ra, y[i]), out[o++] = max_nan(ra, y[i]);
      Val<T> ka = ra;
      out[o++] = min(ka, rb), out[o++] = max(ka, rb), out[o++] = min_nan(ka, rb), out[o++] = max_nan(ka, rb);
      ++i;
    }
  });
  check_run(*known, {{1}, {1}}, {buffer(a), buffer(b), filled<T>(wanted3.size(), 99)}, 2, wanted3);
}

struct OrderRow {
  f64 a, b;
  u32 bits;  // < <= > >= == !=, from bit 0 on
};
constexpr OrderRow kOrder[] = {
    {1, 2, 0b100011},  {2, 1, 0b101100},   {2, 2, 0b011010},   {-0.0, 0.0, 0b011010}, {kN, 1, 0b100000},
    {1, kN, 0b100000}, {kN, kN, 0b100000}, {kI, kN, 0b100000}, {-kI, kI, 0b100011},   {kI, kI, 0b011010},
};

Val<u32> order_bits(const auto& a, const auto& b) {
  return cast<u32>(a < b) | cast<u32>(a <= b) << 1 | cast<u32>(a > b) << 2 | cast<u32>(a >= b) << 3 | cast<u32>(a == b) << 4 |
         cast<u32>(a != b) << 5;
}

template <class T>
void check_order() {
  CAPTURE(ir::name(ir_type<T>));
  std::vector<T> a, b;
  std::vector<u32> wanted, wanted3;
  for (const auto& r : kOrder)
    a.push_back(static_cast<T>(r.a)), b.push_back(static_cast<T>(r.b)), wanted.push_back(r.bits), wanted3.insert(wanted3.end(), 3, r.bits);
  const auto loaded = kernel("order", [](In<T> x, In<T> y, Out<u32> out) {
    auto i = global_id().x;
    If (i < x.size()) {
      Val<T> p = x[i], q = y[i];
      out[i] = order_bits(p, q);
    }
  });
  check_run(*loaded, {{1}, {kBlock}}, {buffer(a), buffer(b), filled<u32>(wanted.size(), 99)}, 2, wanted);
  const auto known = kernel("order_known", [](In<T> x, In<T> y, Out<u32> out) {
    u32 o = 0;
    for (u32 i = 0; const auto& r : kOrder) {
      Val<T> p = x[i], q = y[i], kp = static_cast<T>(r.a), kq = static_cast<T>(r.b);
      out[o++] = order_bits(p, kq);
      out[o++] = order_bits(kp, q);
      out[o++] = order_bits(kp, kq);
      ++i;
    }
  });
  check_run(*known, {{1}, {1}}, {buffer(a), buffer(b), filled<u32>(wanted3.size(), 99)}, 2, wanted3);
}

// --- conversions ------------------------------------------------------------------------------------------------------------------

template <class From, class To>
struct Conversion {
  From x;
  To wanted;
};
constexpr Conversion<f32, i32> kToI32[] = {{kNan, 0},
                                           {kInf, 2147483647},
                                           {-kInf, -2147483647 - 1},
                                           {3e9f, 2147483647},
                                           {-3e9f, -2147483647 - 1},
                                           {2147483520.0f, 2147483520},
                                           {-0.9f, 0},
                                           {1.9f, 1},
                                           {-1.9f, -1},
                                           {2147483648.0f, 2147483647},
                                           {-2147483648.0f, -2147483647 - 1},
                                           {-0.0f, 0}};
constexpr Conversion<f32, i8> kToI8[] = {{300.0f, 127}, {-200.0f, -128}, {kNan, 0},       {kInf, 127},
                                         {-kInf, -128}, {127.9f, 127},   {-128.9f, -128}, {-1.9f, -1}};
template <class T>
constexpr Conversion<T, i8> kHalfToI8[] = {{T(kInf), 127}, {T(-kInf), -128}, {T(510), 127},  {T(-510), -128},
                                           {T(kNan), 0},   {T(127.5), 127},  {T(-1.75), -1}, {T(1e-7), 0}};
template <class T>
constexpr Conversion<T, u64> kHalfToU64[] = {{T(kInf), ~u64{0}}, {T(-kInf), 0}, {T(kNan), 0}, {T(65504), 65504}, {T(-0.5), 0}};
constexpr Conversion<f32, u8> kToU8[] = {{-5.0f, 0}, {300.0f, 255}, {255.9f, 255}, {-0.9f, 0},
                                         {kNan, 0},  {kInf, 255},   {-kInf, 0},    {2.9f, 2}};
constexpr Conversion<f32, i16> kToI16[] = {{70000.0f, 32767}, {-70000.0f, -32768}, {kNan, 0},
                                           {-1.9f, -1},       {32767.5f, 32767},   {-32768.5f, -32768}};
constexpr Conversion<f64, u16> kToU16[] = {{70000.0, 65535}, {-1.0, 0}, {65535.9, 65535}, {1e300, 65535}, {-0.5, 0}, {4660.9, 4660}};
constexpr Conversion<i8, f32> kFromI8[] = {{-128, -128.0f}, {127, 127.0f}, {-1, -1.0f}, {0, 0.0f}};
constexpr Conversion<u16, f64> kFromU16[] = {{65535, 65535.0}, {32768, 32768.0}, {0, 0.0}};
constexpr Conversion<f32, u32> kToU32[] = {{kNan, 0},           {-1.0f, 0}, {5e9f, 4294967295u}, {4294967040.0f, 4294967040u},
                                           {kInf, 4294967295u}, {-kInf, 0}, {-0.9f, 0},          {3e9f, 3000000000u}};
constexpr Conversion<f32, i64> kToI64[] = {{kNan, 0},
                                           {kInf, 9223372036854775807},
                                           {-kInf, -9223372036854775807 - 1},
                                           {1e19f, 9223372036854775807},
                                           {9223371487098961920.0f, 9223371487098961920},
                                           {-1.5f, -1}};
constexpr Conversion<f32, u64> kToU64[] = {{kNan, 0},
                                           {-1.0f, 0},
                                           {2e19f, 18446744073709551615u},
                                           {18446742974197923840.0f, 18446742974197923840u},
                                           {9223372036854775808.0f, 9223372036854775808u}};
constexpr Conversion<f64, i32> kToI32Wide[] = {{kN, 0},
                                               {2147483647.9, 2147483647},
                                               {2147483648.0, 2147483647},
                                               {-2147483648.9, -2147483647 - 1},
                                               {-2147483649.0, -2147483647 - 1},
                                               {-kI, -2147483647 - 1},
                                               {1e300, 2147483647}};
constexpr Conversion<f64, u64> kToU64Wide[] = {{kN, 0},
                                               {-0.5, 0},
                                               {-1e300, 0},
                                               {18446744073709549568.0, 18446744073709549568u},
                                               {18446744073709551616.0, 18446744073709551615u},
                                               {kI, 18446744073709551615u}};
constexpr Conversion<i32, f32> kFromI32[] = {
    {16777217, 16777216.0f}, {16777219, 16777220.0f}, {-16777217, -16777216.0f}, {2147483647, 2147483648.0f}, {0, 0.0f}};
constexpr Conversion<i64, f32> kFromI64[] = {{9223372036854775807, 9223372036854775808.0f},
                                             {16777217, 16777216.0f},
                                             {0x7fffff4000000001, 9223371487098961920.0f},
                                             {-9223372036854775807 - 1, -9223372036854775808.0f},
                                             {0x2000002000000001, 2305843284091600896.0f}};
constexpr Conversion<u64, f32> kFromU64[] = {{18446744073709551615u, 18446744073709551616.0f},
                                             {0x8000008000000001u, 9223373136366403584.0f},
                                             {0x8000008000000000u, 9223372036854775808.0f},
                                             {1, 1.0f}};
constexpr Conversion<u64, f64> kFromU64Wide[] = {{18446744073709551615u, 18446744073709551616.0},
                                                 {9007199254740993u, 9007199254740992.0},
                                                 {9007199254740995u, 9007199254740996.0},
                                                 {0xfffffffffffffbffu, 18446744073709549568.0}};
constexpr Conversion<f64, f32> kNarrow[] = {{0.1, 0.1f},
                                            {1e300, kInf},
                                            {-1e300, -kInf},
                                            {1e-300, 0.0f},
                                            {1e-45, kTiny},
                                            {kN, kNan},
                                            {3.4028235677973366e38, kInf},
                                            {3.4028235677973362e38, kLargest},
                                            {7e-46, 0.0f},
                                            {7.1e-46, kTiny}};

template <class From, class To, const auto& rows>
void check_conversion() {
  CAPTURE(ir::name(ir_type<From>));
  CAPTURE(ir::name(ir_type<To>));
  std::vector<From> x;
  std::vector<To> wanted;
  for (const auto& row : rows) x.push_back(row.x), wanted.push_back(row.wanted);
  const auto loaded = kernel("convert", [](In<From> in, Out<To> out) {
    auto i = global_id().x;
    If (i < in.size()) { out[i] = cast<To>(in[i]); }
  });
  check_run(*loaded, {{1}, {kBlock}}, {buffer(x), filled<To>(x.size(), 99)}, 1, wanted);
  const auto known = kernel("convert_known", [](Out<To> out) {
    u32 i = 0;
    for (const auto& row : rows) out[i++] = cast<To>(Val<From>(row.x));
  });
  check_run(*known, {{1}, {1}}, {filled<To>(x.size(), 99)}, 0, wanted);
}

// --- one operand, results known to the bit -------------------------------------------------------------------------------------------

template <class T, class F>
void check_exact(const char* name, F, const std::vector<f64>& inputs, const std::vector<f64>& wanted) {
  CAPTURE(std::string(name));
  CAPTURE(ir::name(ir_type<T>));
  const auto loaded = kernel(name, [](In<T> in, Out<T> out) {
    auto i = global_id().x;
    If (i < in.size()) { out[i] = F()(Val<T>(in[i])); }
  });
  check_run(*loaded, {{1}, {kBlock}}, {buffer(as<T>(inputs)), filled<T>(inputs.size(), 99)}, 1, as<T>(wanted));
}
struct Root {
  auto operator()(const auto& x) const { return sqrt(x); }
};
struct Reciprocal {
  auto operator()(const auto& x) const { return 1 / x; }
};
struct Floor {
  auto operator()(const auto& x) const { return floor(x); }
};
struct Ceil {
  auto operator()(const auto& x) const { return ceil(x); }
};
struct Trunc {
  auto operator()(const auto& x) const { return trunc(x); }
};
struct Round {
  auto operator()(const auto& x) const { return round_even(x); }
};
struct Magnitude {
  auto operator()(const auto& x) const { return abs(x); }
};
struct Negate {
  auto operator()(const auto& x) const { return -x; }
};

}  // namespace

TEST_CASE("min and max take the number over NaN whichever operand it is, and order the zeros; min_nan and max_nan propagate") {
  check_min_max<f16>();
  check_min_max<bf16>();
  check_min_max<f32>();
  check_min_max<f64>();
}

TEST_CASE("every ordered comparison with NaN is false and only != is true") {
  check_order<f16>();
  check_order<bf16>();
  check_order<f32>();
  check_order<f64>();
}

namespace {

template <class T>
void check_block_extremes() {
  CAPTURE(ir::name(ir_type<T>));
  const T nan(kNan);
  std::vector<T> x(45);
  for (u32 i = 0; i < 45; ++i) x[i] = i % 3 == 0 ? nan : T(static_cast<f32>(i) - 20);
  const auto k = kernel("extremes", [](In<T> in, Out<T> out) {
    Shared<T> low(2), high(2);
    auto t = thread_id().x;
    auto least = warp::min(in[t]), most = warp::max(in[t]);
    If (t % 32 == 0) {
      low[t / 32] = least;
      high[t / 32] = most;
    }
    barrier();
    out[2 * t] = min(low[0], low[1]);
    out[2 * t + 1] = max(high[0], high[1]);
  });
  std::vector<T> wanted;
  for (u32 i = 0; i < 45; ++i) wanted.push_back(T(-19)), wanted.push_back(T(i32{24}));
  check_run(*k, {{1}, {45}}, {buffer(x), filled<T>(90, 99)}, 1, wanted);
  check_run(*k, {{1}, {45}}, {filled<T>(45, nan), filled<T>(90, 99)}, 1, std::vector<T>(90, nan));
}

}  // namespace

TEST_CASE("a block's min and max of values with NaN among them follow min and max") {
  check_block_extremes<f16>();
  check_block_extremes<bf16>();
  check_block_extremes<f32>();
  check_block_extremes<f64>();
}

TEST_CASE("floats become integers by truncation, saturate out of range, and NaN gives 0") {
  check_conversion<f16, i8, kHalfToI8<f16>>();
  check_conversion<bf16, i8, kHalfToI8<bf16>>();
  check_conversion<f16, u64, kHalfToU64<f16>>();
  check_conversion<f32, i8, kToI8>();
  check_conversion<f32, u8, kToU8>();
  check_conversion<f32, i16, kToI16>();
  check_conversion<f64, u16, kToU16>();
  check_conversion<f32, i32, kToI32>();
  check_conversion<f32, u32, kToU32>();
  check_conversion<f32, i64, kToI64>();
  check_conversion<f32, u64, kToU64>();
  check_conversion<f64, i32, kToI32Wide>();
  check_conversion<f64, u64, kToU64Wide>();
}

namespace {

constexpr f32 of_bits(u32 bits) { return std::bit_cast<f32>(bits); }
constexpr bf16 brain(u16 bits) { return bf16::from_bits(bits); }
constexpr f16 half(u16 bits) { return f16::from_bits(bits); }

constexpr Conversion<f32, bf16> kF32ToBf16[] = {{of_bits(0x3e89ccd5), brain(0x3e8a)}, {of_bits(0x3f808000), brain(0x3f80)},
                                                {of_bits(0x3f818000), brain(0x3f82)}, {of_bits(0x3f807fff), brain(0x3f80)},
                                                {of_bits(0x3f808001), brain(0x3f81)}, {of_bits(0x7f7fffff), brain(0x7f80)},
                                                {of_bits(0x7f800001), brain(0x7fc0)}, {of_bits(0x00000001), brain(0x0000)},
                                                {of_bits(0x80010000), brain(0x8001)}, {of_bits(0x00018000), brain(0x0002)}};
constexpr Conversion<f32, f16> kF32ToF16[] = {
    {65519.996f, half(0x7bff)}, {65520.0f, half(0x7c00)}, {-1e10f, half(0xfc00)}, {0x1p-25f, half(0)},        {0x1.000002p-25f, half(1)},
    {0x1.8p-24f, half(2)},      {-0.0f, half(0x8000)},    {kNan, half(0x7e00)},   {0x1.002p0f, half(0x3c00)}, {0x1.006p0f, half(0x3c02)}};
// Rounded to f32 first, each would be a tie and round the other way.
constexpr Conversion<f64, f16> kF64ToF16[] = {{1 + 0x1p-11 + 0x1p-40, half(0x3c01)},
                                              {1 + 0x1p-11 - 0x1p-40, half(0x3c00)},
                                              {-1 - 3 * 0x1p-11 + 0x1p-45, half(0xbc01)},
                                              {0x1p-25 + 0x1p-70, half(1)},
                                              {65520 - 0x1p-30, half(0x7bff)},
                                              {1e300, half(0x7c00)},
                                              {kN, half(0x7e00)},
                                              {1 + 0x1p-11, half(0x3c00)}};
constexpr Conversion<f64, bf16> kF64ToBf16[] = {{1 + 0x1p-8 + 0x1p-50, brain(0x3f81)},
                                                {0x1p-134 + 0x1p-180, brain(1)},
                                                {0x1p-134, brain(0)},
                                                {0x1.feffffffffffp127, brain(0x7f7f)},
                                                {0x1.ffp127, brain(0x7f80)}};
constexpr Conversion<i32, f16> kI32ToF16[] = {
    {2049, half(0x6800)},   {2051, half(0x6802)},   {65519, half(0x7bff)},           {65520, half(0x7c00)},
    {-65519, half(0xfbff)}, {-65520, half(0xfc00)}, {-2147483647 - 1, half(0xfc00)}, {0, half(0)}};
constexpr Conversion<u64, f16> kU64ToF16[] = {{65519, half(0x7bff)}, {~u64{0}, half(0x7c00)}, {u64{1} << 40, half(0x7c00)}};
// Rounded to f32 or f64 first, each but the last would be a tie.
constexpr Conversion<i32, bf16> kI32ToBf16[] = {
    {0x40400001, brain(0x4e81)}, {-0x40400001, brain(0xce81)}, {0x403fffff, brain(0x4e80)}, {257, brain(0x4380)}};
constexpr Conversion<i64, bf16> kI64ToBf16[] = {{0x4040000000000001, brain(0x5e81)},
                                                {-0x4040000000000001, brain(0xde81)},
                                                {0x403fffffffffffff, brain(0x5e80)},
                                                {std::numeric_limits<i64>::min(), brain(0xdf00)},
                                                {-1, brain(0xbf80)},
                                                {0, brain(0)}};
constexpr Conversion<u64, bf16> kU64ToBf16[] = {
    {0x8080000000000001, brain(0x5f01)}, {0x8080000000000000, brain(0x5f00)}, {~u64{0}, brain(0x5f80)}};
constexpr Conversion<f16, bf16> kF16ToBf16[] = {
    {half(0x3c04), brain(0x3f80)}, {half(0x3c0c), brain(0x3f82)}, {half(0x0001), brain(0x3380)}, {half(0x7c00), brain(0x7f80)}};
constexpr Conversion<bf16, f16> kBf16ToF16[] = {
    {brain(0x4780), half(0x7c00)}, {brain(0x3380), half(0x0001)}, {brain(0x3300), half(0)}, {brain(0x0001), half(0)}};
constexpr Conversion<bool, f16> kBoolToF16[] = {{true, half(0x3c00)}, {false, half(0)}};

// All bits; the exact results were rounded by arithmetic on fractions.
struct HalfRow {
  u16 x, y, z, fused, product, sum, quotient;
};
constexpr HalfRow kF16Rows[] = {
    {0x3c01, 0x3e00, 0x0001, 0x3e02, 0x3e02, 0x4100, 0x3957}, {0x3c01, 0x3e00, 0x8001, 0x3e01, 0x3e02, 0x4100, 0x3957},
    {0x3c01, 0x3e00, 0x0000, 0x3e02, 0x3e02, 0x4100, 0x3957}, {0x0003, 0x3800, 0x0001, 0x0002, 0x0002, 0x3800, 0x0006},
    {0x0001, 0x3800, 0x8000, 0x0000, 0x0000, 0x3800, 0x0002}, {0x7bff, 0x4000, 0xfbff, 0x7bff, 0x7c00, 0x7bff, 0x77ff},
    {0x0400, 0x3bff, 0x0001, 0x0400, 0x0400, 0x3bff, 0x0401}, {0x7bff, 0x7bff, 0x0001, 0x7c00, 0x7c00, 0x7c00, 0x3c00},
    {0x0001, 0x7bff, 0x3c00, 0x3c04, 0x1bff, 0x7bff, 0x0000}, {0x3555, 0x3aab, 0xb400, 0x271c, 0x3472, 0x3cab, 0x3666},
};
constexpr HalfRow kBf16Rows[] = {
    {0x3f81, 0x3fc0, 0x0001, 0x3fc2, 0x3fc2, 0x4020, 0x3f2c}, {0x3f81, 0x3fc0, 0x8001, 0x3fc1, 0x3fc2, 0x4020, 0x3f2c},
    {0x3f81, 0x3fc0, 0x0000, 0x3fc2, 0x3fc2, 0x4020, 0x3f2c}, {0x0003, 0x3f00, 0x0001, 0x0002, 0x0002, 0x3f00, 0x0006},
    {0x0001, 0x3f00, 0x8000, 0x0000, 0x0000, 0x3f00, 0x0002}, {0x7f7f, 0x4000, 0xff7f, 0x7f7f, 0x7f80, 0x7f7f, 0x7eff},
    {0x0080, 0x3f7f, 0x0001, 0x0080, 0x0080, 0x3f7f, 0x0081}, {0x7f7f, 0x7f7f, 0x0001, 0x7f80, 0x7f80, 0x7f80, 0x3f80},
    {0x0001, 0x7f7f, 0x3f80, 0x3f84, 0x3cff, 0x7f7f, 0x0000}, {0x0081, 0x407f, 0x3300, 0x3300, 0x0180, 0x407f, 0x0020},
    {0x0001, 0x4040, 0x0001, 0x0004, 0x0003, 0x4040, 0x0000},
};

template <class T>
void check_half_rows(const auto& rows) {
  CAPTURE(ir::name(ir_type<T>));
  std::vector<T> x, y, z, wanted;
  for (const HalfRow& r : rows) {
    x.push_back(T::from_bits(r.x)), y.push_back(T::from_bits(r.y)), z.push_back(T::from_bits(r.z));
    for (const u16 bits : {r.fused, r.product, r.sum, r.quotient}) wanted.push_back(T::from_bits(bits));
  }
  const auto loaded = kernel("half_rows", [](In<T> a, In<T> b, In<T> c, Out<T> out) {
    auto i = global_id().x;
    If (i < a.size()) {
      out[4 * i] = fma(a[i], b[i], c[i]);
      out[4 * i + 1] = a[i] * b[i];
      out[4 * i + 2] = a[i] + b[i];
      out[4 * i + 3] = a[i] / b[i];
    }
  });
  check_run(*loaded, {{1}, {kBlock}}, {buffer(x), buffer(y), buffer(z), filled<T>(wanted.size(), 99)}, 3, wanted);
}

}  // namespace

TEST_CASE("operations on f16 and bf16 are the exact result rounded once, subnormals kept") {
  check_half_rows<f16>(kF16Rows);
  check_half_rows<bf16>(kBf16Rows);
}

TEST_CASE("what the CPU has no instruction for is made without functions of a library: halves on every level") {
  const std::vector<f16> x{f16(1), f16(65504), f16(0x1p-24), f16(kNan)}, wanted{half(0x4000), half(0x7c00), half(0x0002), half(0x7e00)};
  const auto twice = kernel("twice", [](In<f16> in, Out<f16> out) {
    auto i = global_id().x;
    If (i < in.size()) { out[i] = cast<f16>(cast<f32>(in[i]) * 2); }
  });
  check_run(*twice, {{1}, {kBlock}}, {buffer(x), filled<f16>(4, 99)}, 1, wanted);
  const std::vector<bf16> bx{bf16(1), brain(0x7f7f), brain(0x0001), bf16(kNan)},
      bwanted{brain(0x4000), brain(0x7f80), brain(0x0002), brain(0x7fc0)};
  const auto twice_brain = kernel("twice_bf16", [](In<bf16> in, Out<bf16> out) {
    auto i = global_id().x;
    If (i < in.size()) { out[i] = cast<bf16>(cast<f32>(in[i]) * 2); }
  });
  check_run(*twice_brain, {{1}, {kBlock}}, {buffer(bx), filled<bf16>(4, 99)}, 1, bwanted);
}

TEST_CASE("every bf16 and every f16 is read as the f32 that it is") {
  const auto widen = [](auto zero) {
    using T = decltype(zero);
    std::vector<T> codes;
    std::vector<f32> wanted;
    for (u32 b = 0; b < 65536; ++b) codes.push_back(T::from_bits(static_cast<u16>(b))), wanted.push_back(codes.back());
    const auto k = kernel("widen", [](In<T> in, Out<f32> out) {
      auto i = global_id().x;
      If (i < in.size()) { out[i] = cast<f32>(in[i]); }
    });
    check_run(*k, {{512}, {128}}, {buffer(codes), filled<f32>(codes.size(), 99)}, 1, wanted);
  };
  widen(bf16());
  widen(f16());
}

TEST_CASE("integers become floats rounded once, to nearest even, and so do f64 to f32, f16 and bf16, and f32 to those") {
  check_conversion<f32, bf16, kF32ToBf16>();
  check_conversion<f32, f16, kF32ToF16>();
  check_conversion<f64, f16, kF64ToF16>();
  check_conversion<f64, bf16, kF64ToBf16>();
  check_conversion<i32, f16, kI32ToF16>();
  check_conversion<u64, f16, kU64ToF16>();
  check_conversion<i32, bf16, kI32ToBf16>();
  check_conversion<i64, bf16, kI64ToBf16>();
  check_conversion<u64, bf16, kU64ToBf16>();
  check_conversion<f16, bf16, kF16ToBf16>();
  check_conversion<bf16, f16, kBf16ToF16>();
  check_conversion<bool, f16, kBoolToF16>();
  check_conversion<i8, f32, kFromI8>();
  check_conversion<u16, f64, kFromU16>();
  check_conversion<i32, f32, kFromI32>();
  check_conversion<i64, f32, kFromI64>();
  check_conversion<u64, f32, kFromU64>();
  check_conversion<u64, f64, kFromU64Wide>();
  check_conversion<f64, f32, kNarrow>();
}

TEST_CASE("the option contraction decides whether a product and a sum are fused, everywhere the same") {
  // a*x + b*x cancels to 0 without fusion and leaves the error of one product with it; z*z - s likewise.
  struct Row {
    bool contraction;
    f32 r, t;
  };
  const auto fused = kernel("fused", [](In<f32> v, Out<f32> out) {
    Val<f32> a = v[0], b = v[1], x = v[2], z = v[3], q = v[4];
    auto s = z * z;
    out[0] = a * x + b * x;
    out[1] = z * z - s;
    out[2] = fma(q, q, -(q * q));
  });
  const auto plain = kernel("plain", [](In<f32> v, Out<f32> out) {
    options({.contraction = false});
    Val<f32> a = v[0], b = v[1], x = v[2], z = v[3], q = v[4];
    auto s = z * z;
    out[0] = a * x + b * x;
    out[1] = z * z - s;
    out[2] = fma(q, q, -(q * q));
  });
  const std::vector<f32> v{1e20f, -1e20f, 1e10f, 0.1f, 1 + 0x1p-12f};
  check_run<f32>(*plain, {{1}, {1}}, {buffer(v), filled<f32>(3, 99)}, 1, {0, 0, 0x1p-24f});
  // fma(q, q, -(q*q)) names its product twice and stays what it is.
  check_run<f32>(*fused, {{1}, {1}}, {buffer(v), filled<f32>(3, 99)}, 1, {4.9934111e21f, -4.0978193e-10f, 0x1p-24f});
}

TEST_CASE("the same holds when the operands are known while recording") {
  const auto fused = kernel("fused_known", [](Out<f32> out) {
    Val<f32> a = 1e20f, b = -1e20f, x = 1e10f, z = 0.1f, q = 1 + 0x1p-12f;
    auto s = z * z;
    out[0] = a * x + b * x;
    out[1] = z * z - s;
    out[2] = fma(q, q, -(q * q));
  });
  const auto plain = kernel("plain_known", [](Out<f32> out) {
    options({.contraction = false});
    Val<f32> a = 1e20f, b = -1e20f, x = 1e10f, z = 0.1f, q = 1 + 0x1p-12f;
    auto s = z * z;
    out[0] = a * x + b * x;
    out[1] = z * z - s;
    out[2] = fma(q, q, -(q * q));
  });
  check_run<f32>(*plain, {{1}, {1}}, {filled<f32>(3, 99)}, 0, {0, 0, 0x1p-24f});
  check_run<f32>(*fused, {{1}, {1}}, {filled<f32>(3, 99)}, 0, {4.9934111e21f, -4.0978193e-10f, 0x1p-24f});
}

TEST_CASE("a product that passes through a Var is never fused") {
  const auto k = kernel("through_var", [](In<f32> v, Out<f32> out) {
    Var<f32> product = v[0] * v[0];
    out[0] = product - v[1];
  });
  const f32 z = 0.1f;
  check_run<f32>(*k, {{1}, {1}}, {buffer<f32>({z, z * z}), filled<f32>(1, 99)}, 1, {0});
}

TEST_CASE("square roots, quotients and rounding are exact in their bits, subnormals kept") {
  check_exact<f32>("sqrt", Root(), {0, 1, 4, 9, 16, 25, 2, -1, -0.0, kI, 1.4012984643248171e-45, 3.4028234663852886e38},
                   {0, 1, 2, 3, 4, 5, 0x1.6a09e6p+0, kN, -0.0, kI, 3.743392066509216e-23, 1.8446742974197924e19});
  check_exact<f64>("sqrt", Root(), {0, 1, 4, 9, 16, 25, 2, -1, -0.0, kI}, {0, 1, 2, 3, 4, 5, 0x1.6a09e667f3bcdp+0, kN, -0.0, kI});
  check_exact<f32>("recip", Reciprocal(), {1, 2, 4, 0.5, 3, 0.0, -0.0, kI, 0x1p+127, 0x1.fffffep+127},
                   {1, 0.5, 0.25, 2, 0x1.555556p-2, kI, -kI, 0, 0x1p-127, 0x1p-128});
  check_exact<f64>("recip", Reciprocal(), {1, 2, 4, 0.5, 3, 0.0, -0.0, 0x1p+1023},
                   {1, 0.5, 0.25, 2, 0x1.5555555555555p-2, kI, -kI, 0x1p-1023});
  check_exact<f32>("abs", Magnitude(), {-1, 23.1, -1.4, 5.1, -0.0, -kI}, {1, 23.1, 1.4, 5.1, 0.0, kI});
  const std::vector<f64> x{-2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5, 0.49999997, 8388609, -kI, kN};
  check_exact<f32>("floor", Floor(), x, {-3, -2, -1, -0.0, 0, 1, 2, 0, 8388609, -kI, kN});
  check_exact<f32>("ceil", Ceil(), x, {-2, -1, -0.0, -0.0, 1, 2, 3, 1, 8388609, -kI, kN});
  check_exact<f32>("trunc", Trunc(), x, {-2, -1, -0.0, -0.0, 0, 1, 2, 0, 8388609, -kI, kN});
  check_exact<f32>("round_even", Round(), x, {-2, -2, -0.0, -0.0, 0, 2, 2, 0, 8388609, -kI, kN});
  check_exact<f64>("round_even", Round(), x, {-2, -2, -0.0, -0.0, 0, 2, 2, 0, 8388609, -kI, kN});
}

TEST_CASE("the remainder of floats is exact and has the sign of the dividend") {
  const std::vector<f32> a{5.5f, -5.5f, 5.5f, 1e30f, kLargest, 1, kInf, 1, -4, kTiny * 7}, b{2, 2, -2, 7, 3, 0, 1, kInf, 2, kTiny * 3};
  std::vector<f32> wanted;
  for (std::size_t i = 0; i < a.size(); ++i) wanted.push_back(std::fmod(a[i], b[i]));
  const auto k = kernel("remainder", [](In<f32> x, In<f32> y, Out<f32> out) {
    auto i = global_id().x;
    If (i < x.size()) { out[i] = x[i] % y[i]; }
  });
  check_run(*k, {{1}, {kBlock}}, {buffer(a), buffer(b), filled<f32>(a.size(), 99)}, 2, wanted);
}

TEST_CASE("subnormals are kept by arithmetic, also as constants") {
  const auto k = kernel("subnormal", [](In<f32> x, Out<f32> out) {
    out[0] = x[0] + x[0];
    out[1] = x[1] * 0.5f;
    out[2] = x[0] * 4.0f - x[0];
    out[3] = Val<f32>(0x1p-149f) + 0x1p-149f;
    out[4] = Val<f32>(0x1p-126f) * 0.5f;
  });
  check_run<f32>(*k, {{1}, {1}}, {buffer<f32>({0x1p-149f, 0x1p-126f}), filled<f32>(5, 99)}, 1,
                 {0x1p-148f, 0x1p-127f, 0x3p-149f, 0x1p-148f, 0x1p-127f});
}

TEST_CASE("NaN and infinity are told apart by comparing, with and without fast_math") {
  const std::vector<f32> x{0, kNan, kInf, -kInf};
  // Bit 0 by comparing, bit 1 by the function.
  const auto body = [](In<f32> in, Out<u32> nan, Out<u32> inf) {
    auto i = global_id().x;
    If (i < in.size()) {
      Val<f32> v = in[i];
      nan[i] = cast<u32>(v != v) | cast<u32>(is_nan(v)) << 1;
      inf[i] = cast<u32>(abs(v) == kInf) | cast<u32>(is_inf(v)) << 1;
    }
  };
  const auto fast = kernel("classify_fast", [](In<f32> in, Out<u32> nan, Out<u32> inf) {
    options({.fast_math = true});
    auto i = global_id().x;
    If (i < in.size()) {
      Val<f32> v = in[i];
      nan[i] = cast<u32>(v != v) | cast<u32>(is_nan(v)) << 1;
      inf[i] = cast<u32>(abs(v) == kInf) | cast<u32>(is_inf(v)) << 1;
    }
  });
  for (const auto& k : {kernel("classify", body), fast}) {
    const auto outcomes = run_everywhere(*k, {{1}, {7}}, {buffer(x), filled<u32>(4, 99), filled<u32>(4, 99)});
    expect<u32>(outcomes, 1, {0, 3, 0, 0});
    expect<u32>(outcomes, 2, {0, 0, 3, 3});
  }
}

namespace {

template <class T>
void check_chains() {
  CAPTURE(ir::name(ir_type<T>));
  const auto k = kernel("chains", [](In<T> v, Out<T> out) {
    out[0] = v[0] * v[1] / v[2];
    auto product = v[0] * v[1];
    out[1] = product / v[2];
    Var<T> r = 0;
    If (v[2] > 0) { r = v[0] * v[1]; }
    Else { r = 1; }
    out[2] = r / v[2];
    out[3] = Val<T>(3) * 4 / 2;
  });
  check_run(*k, {{1}, {1}}, {buffer<T>({T(3.0f), T(4.0f), T(2.0f)}), filled<T>(4, 99)}, 1, std::vector<T>(4, T(6.0f)));
}

}  // namespace

TEST_CASE("a * b / c gives the same through a value, a local and a branch") {
  check_chains<f16>();
  check_chains<bf16>();
  check_chains<f32>();
  check_chains<f64>();
}

TEST_CASE("neg, abs and copysign move the sign bit of anything, loads and selects move every bit") {
  const std::vector<u32> x{0x7fc00001, 0xffc12345, 0x00000001, 0x80000000, 0x7f800001, 0x3f800000};
  const auto k = kernel("bits", [](In<f32> in, In<f32> sign, Out<f32> out) {
    auto i = global_id().x, n = in.size();
    If (i < n) {
      out[i] = in[i];
      out[i + n] = -in[i];
      out[i + 2 * n] = abs(in[i]);
      out[i + 3 * n] = copysign(in[i], sign[i]);
      out[i + 4 * n] = select(sign[i] < 0, in[i], 1);
    }
  });
  const std::vector<f32> sign{-1, 1, -1, -1, -1, 1};
  std::vector<u32> wanted = x;
  for (u32 v : x) wanted.push_back(v ^ 0x80000000u);
  for (u32 v : x) wanted.push_back(v & 0x7fffffffu);
  for (std::size_t i = 0; i < x.size(); ++i) wanted.push_back((x[i] & 0x7fffffffu) | (sign[i] < 0 ? 0x80000000u : 0));
  for (std::size_t i = 0; i < x.size(); ++i) wanted.push_back(sign[i] < 0 ? x[i] : 0x3f800000u);
  std::vector<f32> in(x.size());
  std::memcpy(in.data(), x.data(), x.size() * 4);
  // As u32, so that the payload of a NaN counts.
  check_run(*k, {{1}, {kBlock}}, {buffer(in), buffer(sign), filled<f32>(wanted.size(), 99)}, 2, wanted);
}
