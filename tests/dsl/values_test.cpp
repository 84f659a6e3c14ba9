// Values, literals, operators and functions: what each records.
#include "recording.h"

using namespace kiln;
using recording::count;
using recording::refused;
using recording::text;
using recording::verified;

TEST_CASE("a literal takes the type of the kernel operand, on either side") {
  const std::string s = text([](In<f32> a, Out<f32> b, Val<u32> i, Val<i64> n) {
    b[i] = 0.5 * a[i] + 1;
    b[i + 1] = cast<f32>(n - 3) - 0.1;
    b[2 * i] = 1 / a[i];
  });
  HAS(s, "const 0x3f000000 : f32");
  HAS(s, "const 0x3f800000 : f32");
  HAS(s, "const 3 : i64");
  HAS(s, "const 0x3dcccccd : f32");
  HAS(s, "const 2 : u32");
  CHECK(count(s, "f64") == 0);
}

TEST_CASE("a host value that is not exact in its type is a recording error with the line") {
  CHECK(refused([](In<f32>, Out<u32> b, Val<u32> i) { b[0] = i + -1; }, __LINE__) == "the constant -1 does not fit u32");
  CHECK(refused([](In<f32>, Out<u32> b, Val<u32> i) { b[0] = i + 4294967296; }, __LINE__) == "the constant 4294967296 does not fit u32");
  CHECK(refused([](In<f32>, Out<i32> b, Val<i32> i) { b[0] = i + 2147483648u; }, __LINE__) == "the constant 2147483648 does not fit i32");
  CHECK(refused([](In<f32>, Out<i32> b, Val<i32> i) { b[0] = i - (-2147483649ll); }, __LINE__) == "the constant -2147483649 does not fit i32");
  CHECK(refused([](In<f32> a, Out<f32> b) { b[0] = a[0] + 16777217; }, __LINE__) == "the constant 16777217 is not exact in f32");
  CHECK(refused([](In<f64> a, Out<f64> b) { b[0] = a[0] * 9007199254740993; }, __LINE__) == "the constant 9007199254740993 is not exact in f64");
  CHECK(refused([](In<f32> a, Out<f32> b) { b[0] = a[0] * -16777217; }, __LINE__) == "the constant -16777217 is not exact in f32");
  CHECK(refused([](In<f32> a, Out<f32> b) { b[0] = a[0] * 1e300; }, __LINE__) == "the constant 1e+300 overflows f32");
  CHECK(refused([](In<f16> a, Out<f16> b) { b[0] = a[0] + 2049; }, __LINE__) == "the constant 2049 is not exact in f16");
  CHECK(refused([](In<bf16> a, Out<bf16> b) { b[0] = a[0] + -257; }, __LINE__) == "the constant -257 is not exact in bf16");
  CHECK(refused([](In<f16> a, Out<f16> b) { b[0] = a[0] + 65536; }, __LINE__) == "the constant 65536 overflows f16");
  CHECK(refused([](In<f16> a, Out<f16> b) { b[0] = a[0] * 65520.0; }, __LINE__) == "the constant 65520 overflows f16");
  HAS(refused([](In<bf16> a, Out<bf16> b) { b[0] = a[0] * 3.4e38; }, __LINE__), "overflows bf16");
  CHECK(refused([](Out<e4m3> a) { a[0] = 17; }, __LINE__) == "the constant 17 is not exact in e4m3");
  CHECK(refused([](Out<e4m3> a) { a[0] = 512; }, __LINE__) == "the constant 512 overflows e4m3");
  HAS(refused([](Out<e4m3> a) { a[0] = 464.5; }, __LINE__), "overflows e4m3");
  HAS(refused([](Out<e5m2> a) { a[0] = std::numeric_limits<float>::infinity(); }, __LINE__), "inf overflows e5m2");
  CHECK(refused([](Out<u32> b) { b[-1] = 0; }, __LINE__) == "the index -1 is negative and so out of range");
}

TEST_CASE("the limits of every integer type are literals of it") {
  const std::string s = text([](Out<i32> a, Out<u32> b, Out<i64> c, Out<u64> d) {
    a[0] = -2147483647 - 1;
    a[1] = 2147483647;
    b[0] = 4294967295u;
    c[0] = std::numeric_limits<i64>::min();
    c[1] = std::numeric_limits<i64>::max();
    d[0] = std::numeric_limits<u64>::max();
  });
  for (const char* v : {"const -2147483648 : i32", "const 2147483647 : i32", "const 4294967295 : u32", "const -9223372036854775808 : i64",
                        "const 9223372036854775807 : i64", "const 18446744073709551615 : u64"}) {
    HAS(s, v);
  }
}

TEST_CASE("integers that are exact in a float are literals of it, however large") {
  const std::string s = text([](In<f32> a, Out<f32> b) {
    b[0] = a[0] + 16777216;
    b[1] = a[1] + (1ll << 62);
    b[2] = a[2] - -3;
  });
  HAS(s, "const 0x4b800000 : f32");
  HAS(s, "const 0x5e800000 : f32");
  HAS(s, "const 0xc0400000 : f32");
}

TEST_CASE("host numbers and host halves are constants of f16 and bf16, rounded once") {
  const std::string s = text([](In<f16> a, Out<f16> b, In<bf16> c, Out<bf16> d, Val<f16> e) {
    b[0] = a[0] * 0.1 + e;
    b[1] = max(a[1], 2048) - f16(0.5);
    b[2] = 1.00048828125 * a[2];  // a tie
    d[0] = c[0] + 0.1f;
    Var<bf16> v;
    v += -3;
    d[1] = v;
  });
  for (const char* constant : {"const 0x2e66 : f16  # 0.1", "const 0x6800 : f16  # 2048", "const 0x3800 : f16  # 0.5", "const 0x3c00 : f16  # 1",
                               "const 0x3dcd : bf16  # 0.1", "const 0xc040 : bf16  # -3", "param "})
    HAS(s, constant);
}

TEST_CASE("host numbers and host values are constants of e4m3 and e5m2, rounded once, and nothing else is done with them") {
  const std::string s = text([](In<e4m3> a, Out<e4m3> b, In<e5m2> c, Out<e5m2> d, Val<e4m3> e, Val<bool> yes) {
    b[0] = 0.4;
    b[1] = select(yes, a[0], -2);
    b[2] = cast<e4m3>(cast<f32>(a[1]) + cast<f32>(e));
    d[0] = e5m2::from_bits(0x7c);
    Var<e5m2> v;
    v = c[0];
    d[1] = v;
    d[2] = bit_cast<e5m2>(bit_cast<u8>(e));
    d[3] = cast<e5m2>(cast<f64>(c[1]));
  });
  for (const char* line : {"const 0x2d : e4m3  # 0.4", "const 0xc0 : e4m3  # -2", "select", "cast %", ": e4m3", "const 0x7c : e5m2  # inf",
                           "const 0x00 : e5m2  # 0", "bit_cast", ": e5m2", "param "})
    HAS(s, line);
}

TEST_CASE("every binary operator records its operation") {
  const std::string s = text([](InOut<u32> a, InOut<bool> b, InOut<f32> c) {
    Val<u32> x = a[0], y = a[1];
    Val<f32> f = c[0], g = c[1];
    a[0] = x + y; a[0] = x - y; a[0] = x * y; a[0] = x / y; a[0] = x % y;
    a[0] = x & y; a[0] = x | y; a[0] = x ^ y; a[0] = x << y; a[0] = x >> y;
    b[0] = x < y; b[0] = x <= y; b[0] = x > y; b[0] = x >= y; b[0] = x == y; b[0] = x != y;
    a[0] = ~x; a[0] = -x; a[0] = +x;
    c[0] = f + g; c[0] = f - g; c[0] = f * g; c[0] = f / g; c[0] = f % g; c[0] = -f;
    b[0] = ((f < g) & (f > g)) | (!(f == g) ^ (f != g));
  });
  for (const char* op : {"add", "sub", "mul", "div", "rem", "and", "or", "xor", "shl", "shr"}) HAS(s, std::string("= ") + op + " ");
  for (const char* op : {"add", "sub", "mul", "div", "rem", "lt", "gt", "eq", "ne", "neg", "not", "and", "or", "xor"}) {
    CHECK_MESSAGE(count(s, std::string("= ") + op + " ") >= 2, op);
  }
  for (const char* op : {"le", "ge"}) HAS(s, std::string("= ") + op + " ");
}

TEST_CASE("every function records its operation, by argument-dependent lookup and qualified") {
  const std::string s = text([](InOut<f32> a, InOut<u32> b, InOut<f64> c) {
    Val<f32> x = a[0];
    Var<f32> v = x;
    a[0] = sqrt(x); a[0] = floor(v); a[0] = ceil(a[1]); a[0] = trunc(x); a[0] = round_even(x); a[0] = abs(x);
    a[0] = exp(x); a[0] = log(x); a[0] = sin(x); a[0] = cos(x); a[0] = tanh(x); a[0] = rsqrt(x); a[0] = pow(x, 2);
    a[0] = exp2(x); a[0] = exp10(v); a[0] = expm1(a[1]); a[0] = log2(x); a[0] = log10(x); a[0] = log1p(x); a[0] = tan(x); a[0] = asin(x);
    a[0] = acos(x); a[0] = atan(x); a[0] = atan2(x, 1); a[0] = sinh(x); a[0] = cosh(x); a[0] = asinh(x); a[0] = acosh(x); a[0] = atanh(x);
    a[0] = erf(x); a[0] = erfc(x); a[0] = cbrt(x); a[0] = hypot(x, v); a[0] = rhypot(3, x); a[0] = powi(x, 3); a[0] = powi(v, cast<i32>(x));
    c[0] = sin(cast<f64>(x)); c[0] = powi(cast<f64>(x), -2);
    a[0] = min(x, 0); a[0] = max(0, x); a[0] = min_nan(x, v); a[0] = max_nan(v, x); a[0] = copysign(x, -1); a[0] = fma(x, 2, v);
    Val<u32> n = b[0];
    b[0] = clz(n); b[0] = ctz(n); b[0] = popcount(n); b[0] = mul_hi(n, 3u); b[0] = kiln::min(n, 7); b[0] = kiln::max(3, b[1]);
    b[0] = cast<u32>(x); b[0] = bit_cast<u32>(x); c[0] = cast<f64>(n); b[0] = cast<u32>(n > 1);
    a[0] = select(n > 1, x, 0); a[0] = select(n > 1, 0.5, v); a[0] = select<f32>(n > 1, 1, 0); a[0] = kiln::select(true, x, v);
    a[0] = kiln::sqrt(x) + kiln::exp(kiln::fma(x, x, 1)) + kiln::bit_cast<f32>(n);
  });
  for (const char* op : {"sqrt", "floor", "ceil", "trunc", "round_even", "abs", "exp", "log", "sin", "cos", "tanh", "rsqrt", "pow", "min", "max", "min_nan",
                         "exp2", "exp10", "expm1", "log2", "log10", "log1p", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh",
                         "erf", "erfc", "cbrt", "hypot", "rhypot", "powi",
                         "max_nan", "copysign", "fma", "clz", "ctz", "popcount", "mul_hi", "cast", "bit_cast", "select"}) {
    HAS(s, std::string("= ") + op + " ");
  }
}

TEST_CASE("a copied and a moved Var are new locals") {
  const std::string s = text([](Out<u32> a) {
    Var<u32> x = 1;
    Var<u32> y = x;
    auto z = x;
    Var<u32> w = std::move(x);
    x = 2;
    y += 3;
    z = w;
    a[0] = x + y + z + w;
  });
  CHECK(count(s, "set v0") == 2);
  CHECK(count(s, "set v1") == 2);
  CHECK(count(s, "set v2") == 2);
  CHECK(count(s, "set v3") == 1);
}

TEST_CASE("a Var is zero where it is declared, each time the declaration is reached") {
  const std::string s = text([](Out<u32> a) {
    for (auto i : range(4)) {
      Var<u32> x;
      x += i;
      a[i] = x;
    }
  });
  HAS(s, "for ");
  CHECK(count(s, "set v0") == 2);
}

TEST_CASE("every compound assignment exists on Var and on elements") {
  const std::string s = text([](InOut<u32> a, InOut<f32> b, Val<u32> n) {
    Var<u32> v = 1;
    v += n; v -= 1; v *= n; v /= n; v %= n; v &= n; v |= 1; v ^= n; v <<= 1; v >>= n;
    ++v; v++; --v; v--;
    a[n] += v; a[n] -= 1; a[n] *= n; a[n] /= n; a[n] %= n; a[n] &= n; a[n] |= 1; a[n] ^= n; a[n] <<= 1; a[n] >>= n;
    ++a[n]; a[n]++; --a[n]; a[n]--;
    b[0] += 0.5; b[0] *= b[1];
    Var<bool> t = true;
    t &= n > 3; t |= false; t ^= t;
  });
  for (const char* op : {"mul", "div", "rem", "and", "or", "xor", "shl", "shr"}) CHECK_MESSAGE(count(s, std::string("= ") + op + " ") >= 2, op);
  CHECK(count(s, "store a") == 14);
  CHECK(count(s, "load a") == 14);
  CHECK(verified([](InOut<u32> a, Val<u32> n) {
    Var<u32> v = n;
    Val<u32> old = v++;
    a[old] = v--;
  }) == "");
}

TEST_CASE("postfix ++ gives the value from before") {
  const std::string s = text([](Out<u32> a, Val<u32> n) {
    Var<u32> v = 5;
    a[n] = v++;
  });
  HAS(s, "%2 = get v0 : u32\n"
         "%3 = const 1 : u32\n"
         "%4 = add %2, %3 : u32\n"
         "set v0, %4\n"
         "store a[%0], %2\n");
}

TEST_CASE("a value of an ended branch is refused where it is used, with the place it comes from") {
  const std::string message = refused(
      [](In<f32> a, Out<f32> b) {
        std::vector<Val<f32>> kept;
        If (a.size() > 3) { kept.push_back(a[3]); }
        b[0] = kept[0];
      },
      __LINE__ - 2);
  HAS(message, "inside a branch or loop that has ended; declare a Var before it");
  HAS(message, "values_test.cpp:");
}

TEST_CASE("a value of an earlier recording is refused") {
  static std::vector<Val<u32>> kept;
  recording::of([](Out<u32> a) { kept.push_back(a.size()); });
  HAS(refused([](Out<u32> a) { a[0] = kept[0]; }, __LINE__), "another kernel");
  kept.clear();
}

TEST_CASE("kernel code outside of a kernel says so") {
  try {
    global_id();
    FAIL("no exception");
  } catch (const Exception& e) {
    HAS(std::string(e.what()), "no kernel is being recorded");
    HAS(std::string(e.what()), "values_test.cpp:");
  }
}

TEST_CASE("the operands of shifts and comparisons take literals of the type") {
  const std::string s = text([](InOut<i64> a, Val<i64> n) { a[0] = (n << 3) + (1 << n) + cast<i64>(n >= -7); });
  HAS(s, "const 3 : i64");
  HAS(s, "const 1 : i64");
  HAS(s, "const -7 : i64");
}
