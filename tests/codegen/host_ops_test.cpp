// Every pure operation on the CPU against its definition (ir/eval.h): scalars and vectors, operands loaded and constant, at every level.
#include "codegen/host_harness.h"
#include "kiln/ir/builder.h"
#include "kiln/ir/eval.h"
#include "kiln/ir/floats.h"

using namespace kiln;
using namespace kiln::host_test;
using ir::Opcode;
using ir::Type;

namespace {

constexpr Type kTypes[] = {Type::I8,  Type::U8,  Type::I16, Type::U16,  Type::I32, Type::U32,
                           Type::I64, Type::U64, Type::F16, Type::BF16, Type::F32, Type::F64};

std::vector<std::uint64_t> interesting(Type t) {
  std::vector<std::uint64_t> v;
  const std::uint64_t mask = ir::value_mask(t);
  if (t == Type::F32) {
    for (const float f : {0.0f,           -0.0f,         1.0f,          -1.0f,         0.5f,
                          1.5f,           2.5f,          -2.5f,         3.7f,          -3.7f,
                          0.3f,           -0.3f,         1e-40f,        -1e-45f,       1.17549435e-38f,
                          3.4e38f,        -3.4e38f,      8388607.5f,    8388609.0f,    4194303.5f,
                          -4194303.5f,    16777217.0f,   2147483520.0f, 2147483648.0f, -2147483648.0f,
                          4294967040.0f,  4294967296.0f, 1e19f,         9.2233715e18f, 9.2233720e18f,
                          -9.2233720e18f, 1.8446743e19f, 1.8446744e19f, 1.0000001f,    0.99999994f,
                          1e10f,          1e20f,         -1e20f,        1.4e-23f,      3.0f,
                          7.0f,           1e-20f}) {
      v.push_back(std::bit_cast<std::uint32_t>(f));
    }
    for (const std::uint32_t b : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00001u, 0x7f800001u}) v.push_back(b);
  } else if (t == Type::F64) {
    for (const double f : {0.0,
                           -0.0,
                           1.0,
                           -1.0,
                           0.5,
                           1.5,
                           2.5,
                           -2.5,
                           3.7,
                           -3.7,
                           0.3,
                           -0.3,
                           1e-310,
                           -5e-324,
                           2.2250738585072014e-308,
                           1.7e308,
                           -1.7e308,
                           4503599627370495.5,
                           4503599627370497.0,
                           2251799813685247.5,
                           9007199254740993.0,
                           2147483647.0,
                           2147483647.9,
                           2147483648.0,
                           -2147483648.9,
                           -2147483649.0,
                           4294967295.9,
                           4294967296.0,
                           9.223372036854775e18,
                           9.223372036854775807e18,
                           -9.3e18,
                           1.8446744073709550e19,
                           1.8446744073709552e19,
                           1.0000000000000002,
                           0.9999999999999999,
                           1e160,
                           1e-160,
                           -1e160,
                           3.0,
                           1e300,
                           1e-300,
                           1.1e-154,
                           3.4028235677973366e38,
                           1.401298464324817e-45,
                           7.006492321624085e-46}) {
      v.push_back(std::bit_cast<std::uint64_t>(f));
    }
    for (const std::uint64_t b : {0x7ff0000000000000u, 0xfff0000000000000u, 0x7ff8000000000000u, 0x7ff0000000000001u}) v.push_back(b);
    // Ties of f16 and bf16, and what is next to them.
    for (const double f : {1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40, 1 + 0x1p-8 + 0x1p-50, 65520.0, 65519.99999999,
                           0x1p-25, 0x1.8p-25, 0x1.0000000001p-25, 0x1p-134, 0x1.0000000001p-134, 0x1.ffp127, 0x1.feffffffffp127})
      v.push_back(std::bit_cast<std::uint64_t>(f));
  } else if (ir::is_half(t)) {
    const std::uint64_t infinity = ir::narrow_format(t).infinity, fraction = std::uint64_t{1} << ir::narrow_format(t).fraction_bits;
    for (const std::uint64_t b : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3}, fraction - 1, fraction, fraction + 1, infinity - 1,
                                  infinity, infinity + 1, infinity + fraction / 2})
      v.push_back(b), v.push_back(b | 0x8000);
    for (const double f : {1.0, 1.5, 2.5, -2.5, 3.7, -0.3, 127.9, -128.5, 255.5, 510.0, 2047.0, 65504.0, -40000.0})
      v.push_back(ir::round_narrow(t, f));
  } else {
    for (const std::uint64_t b : {0ull,
                                  1ull,
                                  2ull,
                                  3ull,
                                  5ull,
                                  7ull,
                                  10ull,
                                  31ull,
                                  32ull,
                                  33ull,
                                  63ull,
                                  64ull,
                                  65ull,
                                  255ull,
                                  1000003ull,
                                  0x7fffffffull,
                                  0x80000000ull,
                                  0x80000001ull,
                                  0xfffffffeull,
                                  0xffffffffull,
                                  0x100000000ull,
                                  0x123456789abcdefull,
                                  0x7fffffffffffffffull,
                                  0x8000000000000000ull,
                                  0xfffffffffffffffeull,
                                  0xffffffffffffffffull,
                                  0xdeadbeefull,
                                  0x20000000000001ull,
                                  0x80000000000003ffull,
                                  0x80000000000004ffull,
                                  0x800000000000400ull}) {
      v.push_back(b & mask);
    }
  }
  std::uint64_t state = 0x9e3779b97f4a7c15ull + static_cast<unsigned>(t);
  for (int i = 0; i < 70; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    v.push_back(state & mask);
  }
  return v;
}

bool same(Type t, std::uint64_t x, std::uint64_t y) { return x == y || (ir::is_nan(t, x) && ir::is_nan(t, y)); }

struct Row {
  Opcode code;
  Type result;
};

// Everything that takes operands of type t.
std::vector<Row> rows_for(Type t) {
  std::vector<Row> rows;
  for (int c = 0; c < ir::kOpcodeCount; ++c) {
    const auto code = static_cast<Opcode>(c);
    const ir::OpInfo& info = ir::info(code);
    if (!ir::is_pure(code) || ir::is_math_function(code) || !(info.types & ir::type_class(t))) continue;
    if (code == Opcode::Rem && ir::is_float(t)) continue;
    switch (info.form) {
      case ir::Form::Unary:
      case ir::Form::Binary:
      case ir::Form::Ternary:
      case ir::Form::Select: rows.push_back({code, t}); break;
      case ir::Form::Compare: rows.push_back({code, Type::Bool}); break;
      case ir::Form::Convert:
        if (code == Opcode::Cast) {
          rows.push_back({code, Type::Bool});
          for (const Type to : kTypes) rows.push_back({code, to});
        } else {
          for (const Type to : kTypes) {
            if (ir::bit_width(to) == ir::bit_width(t) && to != t) rows.push_back({code, to});
          }
        }
        break;
      default: break;
    }
  }
  return rows;
}

unsigned operand_count(Opcode code) {
  switch (ir::info(code).form) {
    case ir::Form::Unary:
    case ir::Form::Convert: return 1;
    case ir::Form::Ternary: return 3;
    default: return 2;  // select: the condition is made of the two others
  }
}

// How the operands reach the operation.
enum class Way { Lanes, Scalars, ConstantSecond, NumberFirst, NumberSecond };  // Number: of an integer, so that it is known to be no NaN

bool in_scalars(Way way) { return way != Way::Lanes && way != Way::ConstantSecond; }

std::uint64_t number_of(Type t, std::uint64_t v) {
  const std::uint64_t integer = *ir::evaluate(Opcode::Cast, Type::I32, t, std::vector<std::uint64_t>{v});
  return *ir::evaluate(Opcode::Cast, t, Type::I32, std::vector<std::uint64_t>{integer});
}

ir::Kernel make(Type t, const std::vector<Row>& rows, Way way, std::uint64_t second) {
  ir::Kernel k;
  k.name = "ops";
  k.options.checked = false;
  k.options.contraction = false;
  ir::Builder b(k);
  std::uint32_t in[3];
  const char* names[] = {"a", "b", "c"};
  for (int i = 0; i < 3; ++i) in[i] = b.buffer(names[i], t, 1, ir::Access::In);
  const std::uint32_t out = b.buffer("out", Type::U64, 2, ir::Access::Out);
  const ir::ValueId i = in_scalars(way) ? b.query(Opcode::BlockId) : b.query(Opcode::GlobalId);
  const ir::ValueId n = b.size(in[0]);
  const ir::OpId guard = b.if_(b.binary(Opcode::Lt, i, n));
  b.set_region(k.op(guard).regions[0]);
  ir::ValueId x = b.load(in[0], {i}), y = b.load(in[1], {i});
  const ir::ValueId z = b.load(in[2], {i});
  if (way == Way::ConstantSecond) y = b.constant(t, second);
  if (way == Way::NumberFirst) x = b.cast(t, b.cast(Type::I32, x));
  if (way == Way::NumberSecond) y = b.cast(t, b.cast(Type::I32, y));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    ir::ValueId v = 0;
    switch (ir::info(rows[r].code).form) {
      case ir::Form::Unary: v = b.unary(rows[r].code, x); break;
      case ir::Form::Ternary: v = b.fma(x, y, z); break;
      case ir::Form::Select: v = b.select(b.binary(Opcode::Eq, x, z), x, y); break;
      case ir::Form::Convert: v = rows[r].code == Opcode::Cast ? b.cast(rows[r].result, x) : b.bit_cast(rows[r].result, x); break;
      default: v = b.binary(rows[r].code, x, y);
    }
    if (ir::is_half(rows[r].result)) v = b.bit_cast(Type::U16, v);
    if (rows[r].result == Type::F32) v = b.bit_cast(Type::U32, v);
    if (rows[r].result == Type::F64) v = b.bit_cast(Type::U64, v);
    if (rows[r].result == Type::I8) v = b.cast(Type::U8, v);
    if (rows[r].result == Type::I16) v = b.cast(Type::U16, v);
    if (rows[r].result == Type::I32) v = b.cast(Type::U32, v);
    b.store(out, {b.const_u32(static_cast<std::uint32_t>(r)), i}, b.cast(Type::U64, v));
  }
  return k;
}

std::uint64_t expected(const Row& row, Type t, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  std::vector<std::uint64_t> in = {x};
  const unsigned n = operand_count(row.code);
  if (n > 1) in.push_back(y);
  if (n > 2) in.push_back(z);
  if (row.code == Opcode::Select) {
    const std::uint64_t equal = *ir::evaluate(Opcode::Eq, Type::Bool, t, std::vector<std::uint64_t>{x, z});
    in = {equal, x, y};
  }
  const auto v = ir::evaluate(row.code, row.result, t, in);
  if (!v) FAIL("no definition of " << ir::info(row.code).mnemonic);
  return *v;
}

template <class T>
std::vector<T> narrow(const std::vector<std::uint64_t>& v) {
  return {v.begin(), v.end()};
}

void hold(const std::string& level, Type t, Way way, std::uint64_t second = 0) {
  const std::vector<Row> rows = rows_for(t);
  const ir::Prepared prepared = ir::prepare(make(t, rows, way, second));
  CompileOptions options;
  options.arch = level;
  options.block = {in_scalars(way) ? 1u : 96u, 1, 1};
  const Kernel k(prepared, options);
  const std::vector<std::uint64_t> values = interesting(t);
  // All pairs, the third operand something of the rest.
  std::vector<std::uint64_t> a, b, c;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < values.size(); ++j) {
      a.push_back(values[i]), b.push_back(way == Way::ConstantSecond ? second : values[j]),
          c.push_back(values[(i * 7 + j * 3 + i * j) % values.size()]);
      if (way != Way::Lanes && j >= 20) break;
    }
  }
  std::vector<std::uint64_t> out(rows.size() * a.size(), 0xdead);
  const std::uint32_t n = static_cast<std::uint32_t>(a.size());
  const std::uint32_t blocks = in_scalars(way) ? n : (n + 95) / 96;
  auto run = [&](auto zero) {
    using T = decltype(zero);
    auto ta = narrow<T>(a), tb = narrow<T>(b), tc = narrow<T>(c);
    k.run({blocks, 1, 1}, {buffer(ta), buffer(tb), buffer(tc), buffer(out, {rows.size(), a.size()})});
  };
  switch (ir::byte_size(t)) {
    case 1: run(std::uint8_t{}); break;
    case 2: run(std::uint16_t{}); break;
    case 4: run(std::uint32_t{}); break;
    default: run(std::uint64_t{});
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    int shown = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::uint64_t x = way == Way::NumberFirst ? number_of(t, a[i]) : a[i], y = way == Way::NumberSecond ? number_of(t, b[i]) : b[i];
      const std::uint64_t want = expected(rows[r], t, x, y, c[i]), got = out[r * a.size() + i];
      if (same(rows[r].result, want, got) || ++shown > 3) continue;
      std::string text = level + " " + std::string(ir::info(rows[r].code).mnemonic) + " " + std::string(ir::name(t)) + " -> " +
                         std::string(ir::name(rows[r].result));
      char numbers[160];
      std::snprintf(numbers, sizeof numbers, "(%016llx, %016llx, %016llx): want %016llx, got %016llx",
                    static_cast<unsigned long long>(a[i]), static_cast<unsigned long long>(b[i]), static_cast<unsigned long long>(c[i]),
                    static_cast<unsigned long long>(want), static_cast<unsigned long long>(got));
      text += numbers;
      FAIL_CHECK(text);
    }
  }
}

}  // namespace

TEST_CASE("every operation on the CPU gives the defined bits in vectors of lanes, at every level") {
  for (const std::string& level : levels()) {
    for (const Type t : kTypes) hold(level, t, Way::Lanes);
  }
}

TEST_CASE("every operation on the CPU gives the defined bits on scalars, at every level") {
  for (const std::string& level : levels()) {
    for (const Type t : kTypes) hold(level, t, Way::Scalars);
  }
}

TEST_CASE("every operation on the CPU gives the defined bits where one operand is known to be no NaN, at every level") {
  for (const std::string& level : levels()) {
    for (const Type t : {Type::F16, Type::F32, Type::F64}) {
      hold(level, t, Way::NumberFirst);
      hold(level, t, Way::NumberSecond);
    }
  }
}

TEST_CASE("a constant second operand gives the same bits on the CPU as a loaded one") {
  const std::string level = levels().back();
  for (const Type t : kTypes) {
    const std::uint64_t all_ones = ir::value_mask(t), min = (all_ones >> 1) + 1;
    for (const std::uint64_t second :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{7}, std::uint64_t{33}, std::uint64_t{64}, all_ones, min})
      hold(level, t, Way::ConstantSecond, second);
  }
}
