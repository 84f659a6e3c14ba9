// Every operation of the table on every device, with operands loaded at run time and operands known while recording.
#include <doctest/doctest.h>

#include <cstring>

#include "fuzz/runner.h"
#include "kiln/ir/builder.h"
#include "kiln/ir/floats.h"

using namespace kiln;
using fuzz::Case;
using ir::Form;
using ir::Opcode;
using ir::Type;

namespace {

const std::vector<Type> kTypes{Type::Bool, Type::I8,  Type::U8,   Type::I16, Type::U16, Type::I32,  Type::U32, Type::I64,
                               Type::U64,  Type::F16, Type::BF16, Type::F32, Type::F64, Type::E4M3, Type::E5M2};

void put(std::vector<std::uint8_t>& bytes, std::size_t i, unsigned size, std::uint64_t bits) {
  for (unsigned k = 0; k < size; ++k) bytes[i * size + k] = static_cast<std::uint8_t>(bits >> (8 * k));
}

// Bools travel as u32 in memory here, so that a wrong one would show.
Type in_memory(Type t) { return t == Type::Bool ? Type::U32 : t; }

struct Table {
  Opcode code;
  Type result;
  std::vector<Type> operands;
};

std::vector<Table> tables() {
  std::vector<Table> v;
  for (int i = 0; i < ir::kOpcodeCount; ++i) {
    const auto code = static_cast<Opcode>(i);
    const ir::OpInfo& o = ir::info(code);
    if (o.effect != ir::Effect::None) continue;
    for (Type t : kTypes) {
      if (!(o.types & ir::type_class(t))) continue;
      switch (o.form) {
        case Form::Unary: v.push_back({code, t, {t}}); break;
        case Form::Binary: v.push_back({code, t, {t, t}}); break;
        case Form::Ternary: v.push_back({code, t, {t, t, t}}); break;
        case Form::IntegerPower: v.push_back({code, t, {t, Type::I32}}); break;
        case Form::Compare: v.push_back({code, Type::Bool, {t, t}}); break;
        case Form::Select: v.push_back({code, t, {Type::Bool, t, t}}); break;
        case Form::Convert:
          for (Type s : kTypes)
            if (s != t && ir::converts(code, s, t)) v.push_back({code, t, {s}});
          break;
        default: break;
      }
    }
  }
  return v;
}

std::string title(const Table& t) {
  std::string s = std::string(ir::info(t.code).mnemonic);
  for (Type o : t.operands) s += " " + std::string(ir::name(o));
  return s + " -> " + std::string(ir::name(t.result));
}

// A sign or payload of a NaN must not be looked at.
ir::ValueId hide_nan(ir::Builder& b, const Table& t, std::size_t operand, ir::ValueId v) {
  const bool shows = (t.code == Opcode::CopySign && operand == 1) || t.code == Opcode::BitCast;
  if (!shows || !ir::is_float(t.operands[operand])) return v;
  return b.select(b.binary(Opcode::Eq, v, v), v, b.constant(t.operands[operand], 0));
}

ir::ValueId apply(ir::Builder& b, const Table& t, const std::vector<ir::ValueId>& a) {
  switch (ir::info(t.code).form) {
    case Form::Unary: return b.unary(t.code, a[0]);
    case Form::Ternary: return b.fma(a[0], a[1], a[2]);
    case Form::Select: return b.select(a[0], a[1], a[2]);
    case Form::Convert: return t.code == Opcode::Cast ? b.cast(t.result, a[0]) : b.bit_cast(t.result, a[0]);
    default: return b.binary(t.code, a[0], a[1]);
  }
}

// n results, one a thread, operands from buffers.
Case loaded(const Table& t, std::uint32_t n, std::uint32_t block, fuzz::Random& random) {
  Case c;
  c.kernel.name = "loaded";
  ir::Builder b(c.kernel);
  b.loc = {b.file("ops.cpp"), 1};
  c.block = {block, 1, 1};
  c.grid = {(n + block - 1) / block, 1, 1};
  std::vector<std::uint32_t> mems;
  for (std::size_t i = 0; i < t.operands.size(); ++i) {
    const Type m = in_memory(t.operands[i]);
    mems.push_back(b.buffer("a" + std::to_string(i), m, 1, ir::Access::In));
    fuzz::ArgData a;
    a.is_buffer = true;
    a.data.extents = {n};
    a.data.bytes.resize(n * ir::byte_size(m));
    for (std::uint32_t k = 0; k < n; ++k) put(a.data.bytes, k, ir::byte_size(m), fuzz::interesting_bits(random, t.operands[i]));
    c.args.push_back(std::move(a));
  }
  const Type m = in_memory(t.result);
  const std::uint32_t out = b.buffer("out", m, 1, ir::Access::Out);
  fuzz::ArgData a;
  a.is_buffer = true;
  a.data.extents = {n};
  a.data.bytes.assign(n * ir::byte_size(m), 0xEE);
  c.args.push_back(std::move(a));
  const ir::ValueId i = b.query(Opcode::GlobalId, 0);
  const ir::OpId guard = b.if_(b.binary(Opcode::Lt, i, b.extent(out, 0)));
  b.set_region(c.kernel.op(guard).regions[0]);
  std::vector<ir::ValueId> v;
  for (std::size_t k = 0; k < t.operands.size(); ++k) {
    ir::ValueId x = b.load(mems[k], {i});
    if (t.operands[k] == Type::Bool) x = b.cast(Type::Bool, x);
    v.push_back(hide_nan(b, t, k, x));
  }
  ir::ValueId r = apply(b, t, v);
  if (t.result == Type::Bool) r = b.cast(Type::U32, r);
  b.store(out, {i}, r);
  return c;
}

// The same with constants, so that folding decides: one store each; the other half with the first operand loaded (a constant second operand
// is the usual case).
Case constant(const Table& t, std::uint32_t n, fuzz::Random& random) {
  Case c;
  c.kernel.name = "constant";
  ir::Builder b(c.kernel);
  b.loc = {b.file("ops.cpp"), 1};
  c.block = {1, 1, 1};
  const Type m = in_memory(t.result), first = in_memory(t.operands[0]);
  const std::uint32_t in = b.buffer("in", first, 1, ir::Access::In), out = b.buffer("out", m, 1, ir::Access::Out);
  fuzz::ArgData a, o;
  a.is_buffer = o.is_buffer = true;
  a.data.extents = {n};
  o.data.extents = {2 * n};
  a.data.bytes.resize(n * ir::byte_size(first));
  o.data.bytes.assign(2 * n * ir::byte_size(m), 0xEE);
  for (std::uint32_t k = 0; k < n; ++k) {
    std::vector<ir::ValueId> known, mixed;
    for (std::size_t q = 0; q < t.operands.size(); ++q) {
      const std::uint64_t bits = fuzz::interesting_bits(random, t.operands[q]);
      const ir::ValueId v = b.constant(t.operands[q], bits);
      known.push_back(hide_nan(b, t, q, v));
      if (q == 0) {
        put(a.data.bytes, k, ir::byte_size(first), bits);
        ir::ValueId x = b.load(in, {b.const_u32(k)});
        if (t.operands[0] == Type::Bool) x = b.cast(Type::Bool, x);
        mixed.push_back(hide_nan(b, t, q, x));
      } else {
        mixed.push_back(hide_nan(b, t, q, v));
      }
    }
    ir::ValueId r = apply(b, t, known), s = apply(b, t, mixed);
    if (t.result == Type::Bool) r = b.cast(Type::U32, r), s = b.cast(Type::U32, s);
    b.store(out, {b.const_u32(2 * k)}, r);
    b.store(out, {b.const_u32(2 * k + 1)}, s);
  }
  c.args = {std::move(a), std::move(o)};
  return c;
}

// What a constant gives must be what the same loaded value gives: outputs come in pairs.
void check_pairs(const Table& t, const Case& c) {
  const ir::Prepared p = ir::prepare(c.kernel);
  const fuzz::Outputs got = fuzz::run_interpreter(p, c);
  const unsigned size = ir::byte_size(in_memory(t.result));
  const std::vector<std::uint8_t>& out = got.buffers.back();
  for (std::size_t i = 0; i + 2 * size <= out.size(); i += 2 * size) {
    const bool same = std::memcmp(&out[i], &out[i + size], size) == 0;
    if (same) continue;
    std::uint64_t x = 0, y = 0;
    std::memcpy(&x, &out[i], size), std::memcpy(&y, &out[i + size], size);
    CHECK_MESSAGE((ir::is_nan(t.result, x) && ir::is_nan(t.result, y)), title(t), ": folded and computed differ at pair ", i / (2 * size));
  }
}

}  // namespace

TEST_CASE("every operation gives the same bits on every device with operands from memory") {
  fuzz::Random random(11);
  fuzz::CheckOptions options;
  options.ptx = true;
  options.assemble = false;
  const std::vector<std::string> levels = fuzz::host_levels();
  std::size_t math_turn = 0, mode_turn = 0;
  for (const Table& t : tables()) {
    const bool slow = t.code == Opcode::Rem && ir::is_float(t.result);
    // A math function is expanded into operations that have rows of their own: the levels take turns.
    if (ir::is_math_function(t.code)) options.levels = {levels[math_turn++ % levels.size()]};
    // Of f16 and bf16 the lowest level has one way and those with conversions of f16 another.
    else if (ir::is_half(t.result) || ir::is_half(t.operands.back())) options.levels = {levels.front(), levels.back()};
    else options.levels = levels;
    // A check stands before an access and never in an operation: with and without take turns, from one type of an operation to the next.
    options.checked = mode_turn++ % 2 == 0;
    options.unchecked = !options.checked;
    const auto wrong = fuzz::check(loaded(t, slow ? 200 : 500, 96, random), options);
    CHECK_MESSAGE(!wrong, title(t), ": ", wrong ? *wrong : "");
  }
}

TEST_CASE("every operation gives the same bits folded and at run time") {
  fuzz::Random random(12);
  fuzz::CheckOptions options;
  options.levels = {fuzz::host_levels().back()};
  options.unchecked = false;
  options.ptx = true;
  options.assemble = false;
  for (const Table& t : tables()) {
    const bool function = ir::is_math_function(t.code);
    options.ptx = !function;  // of what it is expanded into
    const Case c = constant(t, function ? 2 : t.code == Opcode::Rem && ir::is_float(t.result) ? 4 : 16, random);
    const auto wrong = fuzz::check(c, options);
    CHECK_MESSAGE(!wrong, title(t), ": ", wrong ? *wrong : "");
    check_pairs(t, c);
  }
}

TEST_CASE("the op table yields a case for every pure operation") {
  std::size_t pure = 0;
  for (int i = 0; i < ir::kOpcodeCount; ++i) {
    const ir::OpInfo& o = ir::info(static_cast<Opcode>(i));
    pure += o.effect == ir::Effect::None && o.form != Form::Const && o.form != Form::Query;
  }
  std::vector<bool> seen(ir::kOpcodeCount);
  for (const Table& t : tables()) seen[static_cast<int>(t.code)] = true;
  CHECK(static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true)) == pure);
}
