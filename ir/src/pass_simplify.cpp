#include "pass_simplify.h"

#include <array>
#include <optional>
#include <span>

#include "kiln/ir/eval.h"
#include "kiln/ir/floats.h"

namespace kiln::ir {

void make_constant(Op& op, std::uint64_t bits) {
  op.code = Opcode::Const;
  op.attr = 0;
  op.index = kNone;
  op.imm = bits & value_mask(op.type);
  op.operands.clear();
}

namespace {

using Code = Opcode;

// One attempt on one operation. Each step either ends with a value, or rewrites and tries again.
class Simplifier {
 public:
  Simplifier(Kernel& k, OpId id) : k_(k), op_(k.op(id)) {}

  Simplified run() {
    Simplified result;
    for (int round = 0; round < 4; ++round) {  // each rewrite makes the operation smaller; four are more than can follow each other
      if (op_.code == Code::Const) return result;
      const Code code = op_.code;
      if (fold()) return {kNone, true};
      again_ = false;
      result.value = step();
      result.rewritten = result.rewritten || again_ || op_.code != code;
      if (result.value != kNone || !again_) break;
    }
    return result;
  }

 private:
  bool is_const(ValueId v) const { return k_.op(v).code == Code::Const; }
  bool is_const(ValueId v, std::uint64_t bits) const { return is_const(v) && k_.op(v).imm == bits; }
  Type type(ValueId v) const { return k_.op(v).type; }

  Type operand_type() const { return type(op_.operands[op_.code == Code::Select ? 1 : 0]); }

  bool fold() {
    const std::size_t n = op_.operands.size();
    if (n == 0 || n > 3) return false;
    std::array<std::uint64_t, 3> bits{};
    for (std::size_t i = 0; i < n; ++i) {
      if (!is_const(op_.operands[i])) return false;
      bits[i] = k_.op(op_.operands[i]).imm;
    }
    const auto result = evaluate(op_.code, op_.type, operand_type(), std::span(bits.data(), n));
    if (result) make_constant(op_, *result);
    return result.has_value();
  }

  ValueId constant(std::uint64_t bits) {
    make_constant(op_, bits);
    return kNone;
  }
  ValueId rewrite(Code code, std::vector<ValueId> operands) {
    op_.code = code;
    op_.operands = std::move(operands);
    again_ = true;
    return kNone;
  }

  ValueId step() {
    switch (info(op_.code).form) {
      case Form::Query: return query();
      case Form::Unary: return unary();
      case Form::Binary: return is_float(op_.type) ? float_binary() : integer_binary();
      case Form::Compare: return compare();
      case Form::Select: return select();
      case Form::Convert: return convert();
      default: return kNone;
    }
  }

  ValueId query() {
    switch (op_.code) {
      case Code::BlockDim: return k_.has_block_size() ? constant(k_.block_size[op_.attr]) : kNone;
      case Code::ThreadId: return k_.has_block_size() && k_.block_size[op_.attr] == 1 ? constant(0) : kNone;
      case Code::WarpId:
        return k_.has_block_size() && std::uint64_t{k_.block_size[0]} * k_.block_size[1] * k_.block_size[2] <= 32 ? constant(0) : kNone;
      case Code::Size:
      case Code::Extent: {
        const Mem& m = k_.mems[op_.index];
        const bool fixed = m.space != Space::Global && !m.dynamic;
        if (op_.code == Code::Extent) return fixed ? constant(m.extents[op_.attr]) : kNone;
        if (m.rank == 1) {
          op_.code = Code::Extent;
          op_.attr = 0;
          again_ = true;
          return kNone;
        }
        std::uint64_t n = 1;
        for (unsigned d = 0; d < m.rank; ++d) n *= m.extents[d];
        return fixed ? constant(n) : kNone;
      }
      default: return kNone;
    }
  }

  ValueId unary() {
    const ValueId a = op_.operands[0];
    const Op& inner = k_.op(a);
    switch (op_.code) {
      case Code::Not:
        if (inner.code == Code::Not) return inner.operands[0];
        if (const auto inverse = inverse_compare(inner)) return rewrite(*inverse, inner.operands);
        return kNone;
      case Code::Neg: return inner.code == Code::Neg ? inner.operands[0] : kNone;
      case Code::Abs:
        if (is_unsigned(op_.type) || inner.code == Code::Abs) return a;
        if (inner.code == Code::Neg) return rewrite(Code::Abs, {inner.operands[0]});
        return kNone;
      default: return kNone;
    }
  }

  // NaN makes every ordered comparison of floats false, so only == and != turn into each other there.
  std::optional<Code> inverse_compare(const Op& c) const {
    if (info(c.code).form != Form::Compare) return std::nullopt;
    const bool fp = is_float(type(c.operands[0]));
    switch (c.code) {
      case Code::Eq: return Code::Ne;
      case Code::Ne: return Code::Eq;
      case Code::Lt: return fp ? std::nullopt : std::optional(Code::Ge);
      case Code::Ge: return fp ? std::nullopt : std::optional(Code::Lt);
      case Code::Gt: return fp ? std::nullopt : std::optional(Code::Le);
      case Code::Le: return fp ? std::nullopt : std::optional(Code::Gt);
      default: return std::nullopt;
    }
  }

  // x + 0 is not x for x = -0, so only the zero that changes nothing counts; x * 1 and x / 1 keep everything but the payload of a NaN,
  // which arithmetic does not specify.
  ValueId float_binary() {
    const ValueId a = op_.operands[0], b = op_.operands[1];
    const std::uint64_t minus_zero = std::uint64_t{1} << (bit_width(op_.type) - 1);
    switch (op_.code) {
      case Code::Add:
        if (is_const(b, minus_zero)) return a;
        return is_const(a, minus_zero) ? b : kNone;
      case Code::Sub: return is_const(b, 0) ? a : kNone;
      case Code::Mul:
        if (is_one(b)) return a;
        return is_one(a) ? b : kNone;
      case Code::Div: return is_one(b) ? a : kNone;
      case Code::Min:
      case Code::Max:
      case Code::MinNan:
      case Code::MaxNan: return a == b ? a : kNone;
      default: return kNone;
    }
  }
  bool is_one(ValueId v) const { return is_const(v, float_bits(op_.type, 1)); }

  ValueId integer_binary() {
    const ValueId a = op_.operands[0], b = op_.operands[1];
    const std::uint64_t ones = value_mask(op_.type);
    switch (op_.code) {
      case Code::Add:
        if (is_const(b, 0)) return a;
        return is_const(a, 0) ? b : kNone;
      case Code::Sub:
        if (is_const(b, 0)) return a;
        return a == b ? constant(0) : kNone;
      case Code::Mul:
        if (is_const(b, 0) || is_const(a, 0)) return constant(0);
        if (is_const(b, 1)) return a;
        return is_const(a, 1) ? b : kNone;
      case Code::Div: return is_const(b, 1) ? a : kNone;
      case Code::Rem: return is_const(b, 1) || a == b ? constant(0) : kNone;  // x % 0 is x, so also 0 % 0 is 0
      case Code::And:
        if (is_const(b, 0) || is_const(a, 0)) return constant(0);
        if (is_const(b, ones) || a == b) return a;
        return is_const(a, ones) ? b : kNone;
      case Code::Or:
        if (is_const(b, ones) || is_const(a, ones)) return constant(ones);
        if (is_const(b, 0) || a == b) return a;
        return is_const(a, 0) ? b : kNone;
      case Code::Xor:
        if (a == b) return constant(0);
        if (op_.type == Type::Bool && is_const(b, 1)) return rewrite(Code::Not, {a});
        if (op_.type == Type::Bool && is_const(a, 1)) return rewrite(Code::Not, {b});
        if (is_const(b, 0)) return a;
        return is_const(a, 0) ? b : kNone;
      case Code::Shl:
      case Code::Shr:
        if (is_const(b, 0)) return a;
        if (is_const(a, 0)) return constant(0);
        if (is_const(b) && k_.op(b).imm >= bit_width(op_.type) && (op_.code == Code::Shl || is_unsigned(op_.type))) return constant(0);
        return kNone;
      case Code::Min:
      case Code::Max: return a == b ? a : kNone;
      default: return kNone;
    }
  }

  ValueId compare() {
    const ValueId a = op_.operands[0], b = op_.operands[1];
    const Type t = type(a);
    if (a == b) {
      const bool strict = op_.code == Code::Lt || op_.code == Code::Gt;
      if (strict) return constant(0);
      if (!is_float(t)) return constant(op_.code != Code::Ne);
      return kNone;
    }
    if (t == Type::Bool) {
      const bool want = op_.code == Code::Eq;
      for (int i = 0; i < 2; ++i) {
        const ValueId c = op_.operands[i], other = op_.operands[1 - i];
        if (!is_const(c)) continue;
        if ((k_.op(c).imm != 0) == want) return other;
        return rewrite(Code::Not, {other});
      }
      return kNone;
    }
    if (is_unsigned(t)) {
      if (is_const(b, 0) && op_.code == Code::Lt) return constant(0);
      if (is_const(b, 0) && op_.code == Code::Ge) return constant(1);
      if (is_const(a, 0) && op_.code == Code::Gt) return constant(0);
      if (is_const(a, 0) && op_.code == Code::Le) return constant(1);
    }
    return kNone;
  }

  ValueId select() {
    const ValueId c = op_.operands[0], a = op_.operands[1], b = op_.operands[2];
    if (is_const(c)) return k_.op(c).imm != 0 ? a : b;
    if (a == b) return a;
    if (is_const(a) && is_const(b) && k_.op(a).imm == k_.op(b).imm) return a;
    if (k_.op(c).code == Code::Not) return rewrite(Code::Select, {k_.op(c).operands[0], b, a});
    if (op_.type == Type::Bool) {
      if (is_const(a, 1) && is_const(b, 0)) return c;
      if (is_const(a, 0) && is_const(b, 1)) return rewrite(Code::Not, {c});
      if (is_const(b, 0) || b == c) return rewrite(Code::And, {c, a});
      if (is_const(a, 1) || a == c) return rewrite(Code::Or, {c, b});
    }
    return kNone;
  }

  ValueId convert() {
    const ValueId a = op_.operands[0];
    if (type(a) == op_.type) return a;
    const Op& inner = k_.op(a);
    if (inner.code != op_.code) return kNone;
    // There and back: bit_cast always, cast between integers when nothing was cut off on the way.
    const ValueId source = inner.operands[0];
    if (type(source) != op_.type) return kNone;
    if (op_.code == Code::BitCast) return source;
    if (op_.code != Code::Cast) return kNone;
    const bool integers = is_integer(op_.type) && is_integer(inner.type);
    return integers && bit_width(inner.type) >= bit_width(op_.type) ? source : kNone;
  }

  Kernel& k_;
  Op& op_;
  bool again_ = false;
};

}  // namespace

Simplified simplify(Kernel& k, OpId id) { return Simplifier(k, id).run(); }

}  // namespace kiln::ir
