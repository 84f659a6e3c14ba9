// What integer operations give at their edges: operands from memory, and operands known while recording.
#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// The bits of a table's literal as the elements of T.
template <class T>
std::vector<T> list(std::initializer_list<std::int64_t> values) {
  std::vector<T> v;
  for (std::int64_t x : values) v.push_back(static_cast<T>(x));
  return v;
}

constexpr u32 kBlock = 45;  // no multiple of a warp

template <class T>
struct DivRow {
  T a, b, q, r;
};
template <class T>
constexpr T kMin = std::numeric_limits<T>::min();
template <class T>
constexpr T kMax = std::numeric_limits<T>::max();

// Truncation toward zero; x/0 is all ones, x%0 is x, MIN/-1 is MIN with remainder 0.
template <class T>
constexpr DivRow<T> kDivSigned[] = {
    {-7, 2, -3, -1},
    {7, -2, -3, 1},
    {-7, -2, 3, -1},
    {-1, 2, 0, -1},
    {-6, 5, -1, -1},
    {6, -5, -1, 1},
    {-7, 3, -2, -1},
    {7, 0, -1, 7},
    {-7, 0, -1, -7},
    {0, 0, -1, 0},
    {kMin<T>, -1, kMin<T>, 0},
    {kMin<T>, 1, kMin<T>, 0},
    {kMin<T>, 0, -1, kMin<T>},
    {kMax<T>, -1, -kMax<T>, 0},
    {5, kMin<T>, 0, 5},
    {kMin<T>, kMin<T>, 1, 0},
    {kMin<T>, kMax<T>, -1, -1},
    {kMax<T>, kMin<T>, 0, kMax<T>},
    {kMin<T>, 2, kMin<T> / 2, 0},
    {kMin<T>, -2, -(kMin<T> / 2), 0},
};
template <class T>
constexpr DivRow<T> kDivUnsigned[] = {
    {7, 2, 3, 1},
    {6, 7, 0, 6},
    {7, 0, kMax<T>, 7},
    {0, 0, kMax<T>, 0},
    {kMax<T>, kMax<T>, 1, 0},
    {kMax<T>, kMax<T> - 1, 1, 1},
    {kMax<T>, 2, kMax<T> / 2, 1},
    {kMax<T> / 2 + 1, kMax<T>, 0, kMax<T> / 2 + 1},
    {kMax<T>, 1, kMax<T>, 0},
    {kMax<T>, 10, kMax<T> / 10, 5},
    {kMax<T> - 5, 10, kMax<T> / 10, 0},
};
template <class T>
constexpr const auto& div_rows() {
  if constexpr (std::is_signed_v<T>) return kDivSigned<T>;
  else return kDivUnsigned<T>;
}

template <class T>
void check_division() {
  CAPTURE(ir::name(ir_type<T>));
  const auto& rows = div_rows<T>();
  std::vector<T> a, b, q, r;
  for (int copies = 0; copies < 3; ++copies) {  // more than one warp
    for (const auto& row : rows) a.push_back(row.a), b.push_back(row.b), q.push_back(row.q), r.push_back(row.r);
  }
  const auto n = static_cast<u32>(a.size());
  const LaunchConfig config{{(n + kBlock - 1) / kBlock}, {kBlock}};

  const auto loaded = kernel("divide", [](In<T> x, In<T> y, Out<T> quotient, Out<T> rest) {
    auto i = global_id().x;
    If (i < x.size()) {
      quotient[i] = x[i] / y[i];
      rest[i] = x[i] % y[i];
    }
  });
  auto outcomes = run_everywhere(*loaded, config, {buffer(a), buffer(b), filled<T>(n, 99), filled<T>(n, 99)});
  expect(outcomes, 2, q);
  expect(outcomes, 3, r);

  // A known divisor, a known dividend, and both known.
  const auto known = kernel("divide_known", [](In<T> x, In<T> y, Out<T> quotient, Out<T> rest) {
    u32 i = 0;
    for (const auto& row : div_rows<T>()) {
      quotient[i] = x[i] / row.b, rest[i] = x[i] % row.b, ++i;
      quotient[i] = row.a / y[i - 1], rest[i] = row.a % y[i - 1], ++i;
      quotient[i] = Val<T>(row.a) / row.b, rest[i] = Val<T>(row.a) % row.b, ++i;
    }
  });
  std::vector<T> a3, b3, q3, r3;
  for (const auto& row : rows) {
    a3.insert(a3.end(), 3, row.a), b3.insert(b3.end(), 3, row.b), q3.insert(q3.end(), 3, row.q), r3.insert(r3.end(), 3, row.r);
  }
  outcomes = run_everywhere(*known, {{1}, {1}}, {buffer(a3), buffer(b3), filled<T>(a3.size(), 99), filled<T>(a3.size(), 99)});
  expect(outcomes, 2, q3);
  expect(outcomes, 3, r3);
}

// out[i] = f(x[i]) with x from memory and with x a constant of the kernel, where `inputs` is a table that both see.
template <class T, const auto& inputs, class F, class R>
void check_unary(const char* name, F, const std::vector<R>& wanted) {
  CAPTURE(std::string(name));
  CAPTURE(ir::name(ir_type<T>));
  const std::vector<T> x(std::begin(inputs), std::end(inputs));
  REQUIRE(x.size() == wanted.size());
  const auto n = static_cast<u32>(x.size());
  const auto loaded = kernel(name, [](In<T> in, Out<R> out) {
    auto i = global_id().x;
    If (i < in.size()) { out[i] = F()(Val<T>(in[i])); }
  });
  check_run(*loaded, {{n}, {7}}, {buffer(x), filled<R>(n, R(99))}, 1, wanted);
  const auto known = kernel(name, [](Out<R> out) {
    u32 i = 0;
    for (T v : inputs) out[i++] = F()(Val<T>(v));
  });
  check_run(*known, {{1}, {1}}, {filled<R>(n, R(99))}, 0, wanted);
}

struct CountLeading {
  auto operator()(const auto& x) const { return clz(x); }
};
struct CountTrailing {
  auto operator()(const auto& x) const { return ctz(x); }
};
struct CountOnes {
  auto operator()(const auto& x) const { return popcount(x); }
};
struct FirstSet {
  auto operator()(const auto& x) const { return find_first_set(x); }
};
struct Absolute {
  auto operator()(const auto& x) const { return abs(x); }
};
struct Negate {
  auto operator()(const auto& x) const { return -x; }
};
struct SelfDivide {
  auto operator()(const auto& x) const { return x / x; }
};

constexpr u64 kBits64[] = {0, 1, 0x8000000000000000u, 0x0000000100000000u, ~u64{0}, 0xE2, 0x2F, 0xFF, 0x80, 0xC1};
constexpr i64 kBitsSigned64[] = {0, 1, kMin<i64>, i64{1} << 32, -1};
constexpr u32 kBits32[] = {0, 1, 0x80000000u, 0xE2, 0x2F, ~0u, 0x80, 0xFF, 0xC1};
constexpr i32 kBitsSigned32[] = {0, 1, kMin<i32>, 0xE2, 0x2F, -1};
constexpr u8 kBits8[] = {0, 1, 0x80, 0xE2, 0x2F, 0xFF, 0xC1};
constexpr i8 kBitsSigned8[] = {0, 1, kMin<i8>, 64, -1};
constexpr u16 kBits16[] = {0, 1, 0x8000, 0x0100, 0xFFFF, 0xE2, 0x2F, 0xFF, 0x80, 0xC1};
constexpr i16 kBitsSigned16[] = {0, 1, kMin<i16>, 0x0100, -1};
constexpr i8 kSigned8[] = {0, 1, -1, 7, -7, kMin<i8>, kMax<i8>};
constexpr i16 kSigned16[] = {0, 1, -1, 7, -7, kMin<i16>, kMax<i16>};
constexpr i32 kSigned32[] = {0, 1, -1, 7, -7, kMin<i32>, kMax<i32>};
constexpr i64 kSigned64[] = {0, 1, -1, 7, -7, kMin<i64>, kMax<i64>};
// The least that is not 0 first; of signed types that is negative.
template <class T>
constexpr T kDivisors[] = {kMin<T> == 0 ? T(1) : kMin<T>, 7, 1, static_cast<T>(255), 42, static_cast<T>(-3), kMax<T>, 0};

template <class T>
struct ShiftRow {
  T x, count, left, right;
};
constexpr ShiftRow<u8> kShift8[] = {{0x81, 0, 0x81, 0x81}, {0x81, 1, 2, 0x40}, {0x81, 7, 0x80, 1},
                                    {0x81, 8, 0, 0},       {0xFF, 0xFF, 0, 0}, {0xFF, 32, 0, 0}};
constexpr ShiftRow<i8> kShiftSigned8[] = {{-8, 1, -16, -4}, {-8, 7, 0, -1}, {-8, 8, 0, -1}, {-8, -1, 0, -1}, {8, 9, 0, 0}, {1, 7, -128, 0}};
constexpr ShiftRow<u16> kShift16[] = {
    {0x8001, 1, 2, 0x4000}, {0x8001, 15, 0x8000, 1}, {0x8001, 16, 0, 0}, {0xFFFF, 0xFFFF, 0, 0}, {0xFFFF, 32, 0, 0}};
constexpr ShiftRow<i16> kShiftSigned16[] = {{-8, 1, -16, -4}, {-8, 15, 0, -1}, {-8, 16, 0, -1},
                                            {-8, -1, 0, -1},  {8, 17, 0, 0},   {1, 15, kMin<i16>, 0}};
constexpr ShiftRow<u32> kShift32[] = {
    {0x80000001u, 0, 0x80000001u, 0x80000001u},
    {0x80000001u, 1, 2, 0x40000000u},
    {0x80000001u, 31, 0x80000000u, 1},
    {0x80000001u, 32, 0, 0},
    {0x80000001u, 33, 0, 0},
    {~0u, ~0u, 0, 0},
    {~0u, 64, 0, 0},
};
constexpr ShiftRow<i32> kShiftSigned32[] = {
    {-8, 1, -16, -4},      {-8, 31, 0, -1},        {-8, 32, 0, -1},       {-8, -1, 0, -1}, {8, 32, 0, 0}, {kMin<i32>, 1, 0, -0x40000000},
    {kMax<i32>, 33, 0, 0}, {-1, kMin<i32>, 0, -1}, {1, 31, kMin<i32>, 0},
};
constexpr ShiftRow<u64> kShift64[] = {
    {0x8000000000000001u, 32, 0x100000000u, 0x80000000u},
    {0x8000000000000001u, 63, 0x8000000000000000u, 1},
    {~u64{0}, 64, 0, 0},
    {~u64{0}, u64{1} << 32, 0, 0},
    {1, 63, u64{1} << 63, 0},
};
constexpr ShiftRow<i64> kShiftSigned64[] = {
    {-8, 1, -16, -4}, {-8, 63, 0, -1},        {-8, 64, 0, -1},       {-8, -1, 0, -1},
    {8, 64, 0, 0},    {kMin<i64>, 63, 0, -1}, {1, 63, kMin<i64>, 0}, {kMax<i64>, i64{1} << 32, 0, 0},
};

template <class T, const auto& rows>
void check_shifts() {
  CAPTURE(ir::name(ir_type<T>));
  std::vector<T> x, count, left, right, left3, right3;
  for (const auto& row : rows) {
    x.push_back(row.x), count.push_back(row.count), left.push_back(row.left), right.push_back(row.right);
    left3.insert(left3.end(), 3, row.left), right3.insert(right3.end(), 3, row.right);
  }
  const auto n = static_cast<u32>(x.size());
  const auto loaded = kernel("shift", [](In<T> value, In<T> by, Out<T> l, Out<T> r) {
    auto i = global_id().x;
    If (i < value.size()) {
      l[i] = value[i] << by[i];
      r[i] = value[i] >> by[i];
    }
  });
  auto outcomes = run_everywhere(*loaded, {{1}, {kBlock}}, {buffer(x), buffer(count), filled<T>(n, 99), filled<T>(n, 99)});
  expect(outcomes, 2, left);
  expect(outcomes, 3, right);
  const auto known = kernel("shift_known", [](In<T> value, In<T> by, Out<T> l, Out<T> r) {
    u32 i = 0;
    for (u32 k = 0; const auto& row : rows) {
      l[i] = value[k] << row.count, r[i++] = value[k] >> row.count;
      l[i] = row.x << by[k], r[i++] = row.x >> by[k];
      l[i] = Val<T>(row.x) << row.count, r[i++] = Val<T>(row.x) >> row.count;
      ++k;
    }
  });
  outcomes = run_everywhere(*known, {{1}, {1}}, {buffer(x), buffer(count), filled<T>(3 * n, 99), filled<T>(3 * n, 99)});
  expect(outcomes, 2, left3);
  expect(outcomes, 3, right3);
}

template <class T>
struct Pair {
  T a, b, result;
};
constexpr Pair<u32> kHigh32[] = {{0xFFFFFFFFu, 0x10000, 0xFFFF},         {0x80000000u, 2, 1},     {0x55555555u, 4, 1},
                                 {0x10000000u, 0x20000000u, 0x2000000u}, {~0u, ~0u, 0xFFFFFFFEu}, {7, 9, 0}};
constexpr Pair<i32> kHighSigned32[] = {{-1, -1, 0},
                                       {-1, 1, -1},
                                       {kMin<i32>, kMin<i32>, 0x40000000},
                                       {kMin<i32>, kMax<i32>, -0x40000000},
                                       {0x10000000, 0x20000000, 0x2000000},
                                       {kMin<i32>, -1, 0}};
constexpr Pair<u64> kHigh64[] = {{~u64{0}, ~u64{0}, ~u64{0} - 1},
                                 {u64{1} << 63, 2, 1},
                                 {u64{1} << 32, u64{1} << 32, 1},
                                 {0xFFFFFFFF00000000u, 0x100000001u, 0xFFFFFFFFu},
                                 {7, 9, 0}};
constexpr Pair<i64> kHighSigned64[] = {
    {-1, -1, 0}, {-1, 1, -1}, {kMin<i64>, kMin<i64>, i64{1} << 62}, {kMin<i64>, kMax<i64>, -(i64{1} << 62)}, {kMin<i64>, -1, 0}};
constexpr Pair<u8> kSum8[] = {{255, 1, 0}, {128, 128, 0}, {200, 100, 44}, {2, 3, 5}};
constexpr Pair<i8> kSumSigned8[] = {{127, 1, -128}, {-128, -1, 127}, {100, 100, -56}, {-2, 3, 1}};
constexpr Pair<u16> kDifference16[] = {{0, 1, 65535}, {10, 20, 65526}, {255, 0, 255}};
constexpr Pair<i16> kProductSigned16[] = {{256, 256, 0}, {kMin<i16>, -1, kMin<i16>}, {-7, 6, -42}, {300, 300, 24464}};
constexpr Pair<u8> kProduct8[] = {{16, 16, 0}, {255, 255, 1}, {15, 17, 255}};
constexpr Pair<u8> kHigh8[] = {{255, 255, 254}, {128, 2, 1}, {15, 17, 0}};
constexpr Pair<i8> kHighSigned8[] = {{-1, -1, 0}, {-1, 1, -1}, {-128, -128, 64}, {-128, 127, -64}};
constexpr Pair<u16> kHigh16[] = {{65535, 65535, 65534}, {32768, 2, 1}, {255, 257, 0}};
constexpr Pair<i16> kHighSigned16[] = {{-1, 1, -1}, {kMin<i16>, kMin<i16>, 16384}, {kMin<i16>, kMax<i16>, -16384}};
constexpr Pair<u32> kSum32[] = {{~0u, 1, 0}, {0x80000000u, 0x80000000u, 0}, {2, 3, 5}};
constexpr Pair<i32> kSumSigned32[] = {{kMax<i32>, 1, kMin<i32>}, {kMin<i32>, -1, kMax<i32>}, {-2, 3, 1}};
constexpr Pair<i64> kSumSigned64[] = {{kMax<i64>, 1, kMin<i64>}, {kMin<i64>, -1, kMax<i64>}, {0xFFFFFFFF, 1, i64{1} << 32}};
constexpr Pair<u32> kDifference32[] = {{0, 1, ~0u}, {10, 20, 0xFFFFFFF6u}, {255, 0, 255}};
constexpr Pair<i32> kDifferenceSigned32[] = {{kMin<i32>, 1, kMax<i32>}, {0, kMin<i32>, kMin<i32>}, {10, 20, -10}};
constexpr Pair<i32> kProductSigned32[] = {{0x10000, 0x10000, 0}, {kMin<i32>, -1, kMin<i32>}, {-7, 6, -42}, {0x7FFFFFFF, 2, -2}};
constexpr Pair<u64> kProduct64[] = {{u64{1} << 32, u64{1} << 32, 0}, {36863, 65536, 2415853568u}, {~u64{0}, ~u64{0}, 1}};

struct High {
  auto operator()(const auto& a, const auto& b) const { return mul_hi(a, b); }
};
struct Plus {
  auto operator()(const auto& a, const auto& b) const { return a + b; }
};
struct Minus {
  auto operator()(const auto& a, const auto& b) const { return a - b; }
};
struct Times {
  auto operator()(const auto& a, const auto& b) const { return a * b; }
};

template <class T, const auto& rows, class F>
void check_pairs(const char* name, F) {
  CAPTURE(std::string(name));
  CAPTURE(ir::name(ir_type<T>));
  std::vector<T> a, b, wanted, wanted3;
  for (const auto& row : rows)
    a.push_back(row.a), b.push_back(row.b), wanted.push_back(row.result), wanted3.insert(wanted3.end(), 3, row.result);
  const auto n = static_cast<u32>(a.size());
  const auto loaded = kernel(name, [](In<T> x, In<T> y, Out<T> out) {
    auto i = global_id().x;
    If (i < x.size()) { out[i] = F()(Val<T>(x[i]), Val<T>(y[i])); }
  });
  check_run(*loaded, {{1}, {kBlock}}, {buffer(a), buffer(b), filled<T>(n, 99)}, 2, wanted);
  const auto known = kernel(name, [](In<T> x, In<T> y, Out<T> out) {
    u32 i = 0;
    for (u32 k = 0; const auto& row : rows) {
      out[i++] = F()(Val<T>(x[k]), Val<T>(row.b));
      out[i++] = F()(Val<T>(row.a), Val<T>(y[k]));
      out[i++] = F()(Val<T>(row.a), Val<T>(row.b));
      ++k;
    }
  });
  check_run(*known, {{1}, {1}}, {buffer(a), buffer(b), filled<T>(3 * n, 99)}, 2, wanted3);
}

}  // namespace

TEST_CASE("division truncates toward zero and never traps, with loaded and with known operands") {
  check_division<i8>();
  check_division<i16>();
  check_division<u8>();
  check_division<u16>();
  check_division<i32>();
  check_division<i64>();
  check_division<u32>();
  check_division<u64>();
}

TEST_CASE("x / x is computed, not folded to 1, since x may be 0") {
  const auto of = [](auto zero) {
    using T = decltype(zero);
    check_unary<T, kDivisors<T>>("self_divide", SelfDivide(), list<T>({1, 1, 1, 1, 1, 1, 1, -1}));
  };
  of(i8{}), of(u8{}), of(i16{}), of(u16{}), of(i32{}), of(u32{}), of(i64{}), of(u64{});
}

TEST_CASE("the bits of a zero and of 64-bit values are counted") {
  check_unary<u64, kBits64>("clz", CountLeading(), list<u64>({64, 63, 0, 31, 0, 56, 58, 56, 56, 56}));
  check_unary<u64, kBits64>("ctz", CountTrailing(), list<u64>({64, 0, 63, 32, 0, 1, 0, 0, 7, 0}));
  check_unary<u64, kBits64>("popcount", CountOnes(), list<u64>({0, 1, 1, 1, 64, 4, 5, 8, 1, 3}));
  check_unary<u64, kBits64>("first_set", FirstSet(), list<u64>({0, 1, 64, 33, 1, 2, 1, 1, 8, 1}));
  check_unary<i64, kBitsSigned64>("clz", CountLeading(), list<i64>({64, 63, 0, 31, 0}));
  check_unary<i64, kBitsSigned64>("ctz", CountTrailing(), list<i64>({64, 0, 63, 32, 0}));
  check_unary<i64, kBitsSigned64>("popcount", CountOnes(), list<i64>({0, 1, 1, 1, 64}));
  check_unary<u32, kBits32>("clz", CountLeading(), list<u32>({32, 31, 0, 24, 26, 0, 24, 24, 24}));
  check_unary<u32, kBits32>("ctz", CountTrailing(), list<u32>({32, 0, 31, 1, 0, 0, 7, 0, 0}));
  check_unary<u32, kBits32>("popcount", CountOnes(), list<u32>({0, 1, 1, 4, 5, 32, 1, 8, 3}));
  check_unary<u32, kBits32>("first_set", FirstSet(), list<u32>({0, 1, 32, 2, 1, 1, 8, 1, 1}));
  check_unary<i32, kBitsSigned32>("clz", CountLeading(), list<i32>({32, 31, 0, 24, 26, 0}));
  check_unary<i32, kBitsSigned32>("ctz", CountTrailing(), list<i32>({32, 0, 31, 1, 0, 0}));
  check_unary<i32, kBitsSigned32>("popcount", CountOnes(), list<i32>({0, 1, 1, 4, 5, 32}));
}

TEST_CASE("the bits of 8- and 16-bit values are counted: a zero has 8 or 16") {
  check_unary<u8, kBits8>("clz", CountLeading(), list<u8>({8, 7, 0, 0, 2, 0, 0}));
  check_unary<u8, kBits8>("ctz", CountTrailing(), list<u8>({8, 0, 7, 1, 0, 0, 0}));
  check_unary<u8, kBits8>("popcount", CountOnes(), list<u8>({0, 1, 1, 4, 5, 8, 3}));
  check_unary<u8, kBits8>("first_set", FirstSet(), list<u8>({0, 1, 8, 2, 1, 1, 1}));
  check_unary<i8, kBitsSigned8>("clz", CountLeading(), list<i8>({8, 7, 0, 1, 0}));
  check_unary<i8, kBitsSigned8>("ctz", CountTrailing(), list<i8>({8, 0, 7, 6, 0}));
  check_unary<i8, kBitsSigned8>("popcount", CountOnes(), list<i8>({0, 1, 1, 1, 8}));
  check_unary<u16, kBits16>("clz", CountLeading(), list<u16>({16, 15, 0, 7, 0, 8, 10, 8, 8, 8}));
  check_unary<u16, kBits16>("ctz", CountTrailing(), list<u16>({16, 0, 15, 8, 0, 1, 0, 0, 7, 0}));
  check_unary<u16, kBits16>("popcount", CountOnes(), list<u16>({0, 1, 1, 1, 16, 4, 5, 8, 1, 3}));
  check_unary<u16, kBits16>("first_set", FirstSet(), list<u16>({0, 1, 16, 9, 1, 2, 1, 1, 8, 1}));
  check_unary<i16, kBitsSigned16>("clz", CountLeading(), list<i16>({16, 15, 0, 7, 0}));
  check_unary<i16, kBitsSigned16>("ctz", CountTrailing(), list<i16>({16, 0, 15, 8, 0}));
  check_unary<i16, kBitsSigned16>("popcount", CountOnes(), list<i16>({0, 1, 1, 1, 16}));
}

TEST_CASE("sums, differences, products and negations wrap, signed ones too") {
  check_pairs<u32, kSum32>("add", Plus());
  check_pairs<i32, kSumSigned32>("add", Plus());
  check_pairs<i64, kSumSigned64>("add", Plus());
  check_pairs<u32, kDifference32>("sub", Minus());
  check_pairs<i32, kDifferenceSigned32>("sub", Minus());
  check_pairs<i32, kProductSigned32>("mul", Times());
  check_pairs<u64, kProduct64>("mul", Times());
  check_pairs<u8, kSum8>("add", Plus());
  check_pairs<i8, kSumSigned8>("add", Plus());
  check_pairs<u16, kDifference16>("sub", Minus());
  check_pairs<i16, kProductSigned16>("mul", Times());
  check_pairs<u8, kProduct8>("mul", Times());
  check_unary<i8, kSigned8>("neg", Negate(), list<i8>({0, -1, 1, -7, 7, kMin<i8>, -kMax<i8>}));
  check_unary<i16, kSigned16>("neg", Negate(), list<i16>({0, -1, 1, -7, 7, kMin<i16>, -kMax<i16>}));
  check_unary<i8, kSigned8>("abs", Absolute(), list<i8>({0, 1, 1, 7, 7, kMin<i8>, kMax<i8>}));
  check_unary<i16, kSigned16>("abs", Absolute(), list<i16>({0, 1, 1, 7, 7, kMin<i16>, kMax<i16>}));
  check_unary<i32, kSigned32>("neg", Negate(), list<i32>({0, -1, 1, -7, 7, kMin<i32>, -kMax<i32>}));
  check_unary<i64, kSigned64>("neg", Negate(), list<i64>({0, -1, 1, -7, 7, kMin<i64>, -kMax<i64>}));
  check_unary<i32, kSigned32>("abs", Absolute(), list<i32>({0, 1, 1, 7, 7, kMin<i32>, kMax<i32>}));
  check_unary<i64, kSigned64>("abs", Absolute(), list<i64>({0, 1, 1, 7, 7, kMin<i64>, kMax<i64>}));
}

TEST_CASE("mul_hi gives the high half of the whole product") {
  check_pairs<u8, kHigh8>("mul_hi", High());
  check_pairs<i8, kHighSigned8>("mul_hi", High());
  check_pairs<u16, kHigh16>("mul_hi", High());
  check_pairs<i16, kHighSigned16>("mul_hi", High());
  check_pairs<u32, kHigh32>("mul_hi", High());
  check_pairs<i32, kHighSigned32>("mul_hi", High());
  check_pairs<u64, kHigh64>("mul_hi", High());
  check_pairs<i64, kHighSigned64>("mul_hi", High());
}

TEST_CASE("a shift by the width or more gives zero, or the sign, and a count is unsigned") {
  check_shifts<u8, kShift8>();
  check_shifts<i8, kShiftSigned8>();
  check_shifts<u16, kShift16>();
  check_shifts<i16, kShiftSigned16>();
  check_shifts<u32, kShift32>();
  check_shifts<i32, kShiftSigned32>();
  check_shifts<u64, kShift64>();
  check_shifts<i64, kShiftSigned64>();
}

TEST_CASE("differences of bytes are signed where the author casts first") {
  const std::vector<u8> x{0, 10, 255, 200}, y{255, 20, 0, 100};
  const auto k =
      kernel("byte_distance", [](In<u8> a, In<u8> b, Out<i32> d, InOut<i32> total, Out<f32> rest, Out<i32> negative, Out<u8> wrapped) {
        auto i = global_id().x;
        If (i < a.size()) {
          Val<i32> distance = abs(cast<i32>(a[i]) - cast<i32>(b[i]));
          d[i] = distance;
          total.atomic_add(0, distance);
          rest[i] = 255.0f - cast<f32>(a[i]);
          negative[i] = -cast<i32>(a[i]);
          wrapped[i] = a[i] - b[i];
        }
      });
  const auto outcomes = run_everywhere(
      *k, {{1}, {7}},
      {buffer(x), buffer(y), filled<i32>(4, 99), filled<i32>(1, 0), filled<f32>(4, 99), filled<i32>(4, 99), filled<u8>(4, 99)});
  expect<i32>(outcomes, 2, {255, 10, 255, 100});
  expect<i32>(outcomes, 3, {620});
  expect<f32>(outcomes, 4, {255, 245, 0, 55});
  expect<i32>(outcomes, 5, {0, -10, -255, -200});
  expect<u8>(outcomes, 6, {1, 246, 255, 100});
}

TEST_CASE("differences of unsigned values are signed where the author casts first") {
  const std::vector<u32> x{0, 10, 255, 200}, y{255, 20, 0, 100};
  const auto k = kernel("distance", [](In<u32> a, In<u32> b, Out<i32> d, InOut<i32> total, Out<f32> rest, Out<i32> negative) {
    auto i = global_id().x;
    If (i < a.size()) {
      Val<i32> distance = abs(cast<i32>(a[i]) - cast<i32>(b[i]));
      d[i] = distance;
      total.atomic_add(0, distance);
      rest[i] = 255.0f - cast<f32>(a[i]);
      negative[i] = -cast<i32>(a[i]);
    }
  });
  const auto outcomes =
      run_everywhere(*k, {{1}, {7}}, {buffer(x), buffer(y), filled<i32>(4, 99), filled<i32>(1, 0), filled<f32>(4, 99), filled<i32>(4, 99)});
  expect<i32>(outcomes, 2, {255, 10, 255, 100});
  expect<i32>(outcomes, 3, {620});
  expect<f32>(outcomes, 4, {255, 245, 0, 55});
  expect<i32>(outcomes, 5, {0, -10, -255, -200});
}

TEST_CASE("signed and unsigned of one width differ where they should: order, right shift, widening, division") {
  const std::vector<i32> x{-1, kMin<i32>, -2, 5};
  const auto k = kernel("signs", [](In<i32> in, Out<u32> out) {
    auto i = global_id().x;
    If (i < in.size()) {
      Val<i32> s = in[i];
      Val<u32> u = cast<u32>(s);
      out[6 * i] = cast<u32>(s < 1);
      out[6 * i + 1] = cast<u32>(u < 1);
      out[6 * i + 2] = cast<u32>(cast<i64>(s) >> 32);
      out[6 * i + 3] = cast<u32>(cast<u64>(u) >> 32);
      out[6 * i + 4] = cast<u32>(s / 2);
      out[6 * i + 5] = u / 2;
    }
  });
  check_run<u32>(*k, {{1}, {33}}, {buffer(x), filled<u32>(24, 99)}, 1, {1, 0, ~0u, 0, 0,           0x7FFFFFFF,   //
                                                                        1, 0, ~0u, 0, 0xC0000000u, 0x40000000u,  //
                                                                        1, 0, ~0u, 0, ~0u,         0x7FFFFFFF,   //
                                                                        0, 0, 0,   0, 2,           2});
}
