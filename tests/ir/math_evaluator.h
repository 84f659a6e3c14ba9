// Evaluates an expanded math function for one set of arguments through ir::evaluate, the definition that folding and the interpreter share.
#pragma once
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <span>
#include <vector>

#include "kiln/ir/builder.h"
#include "kiln/ir/eval.h"
#include "kiln/ir/passes.h"

namespace kiln::ir::test {

class MathFunction {
 public:
  MathFunction(Opcode op, Type type, bool fast = false) {
    Builder b(kernel_);
    kernel_.name = "f";
    kernel_.options.fast_math = fast;
    const std::uint32_t x = b.scalar("x", type), y = b.scalar("y", info(op).form == Form::IntegerPower ? Type::I32 : type);
    out_ = b.slot("out", type);
    const ValueId vx = b.param(x);
    b.set(out_, info(op).form == Form::Unary ? b.unary(op, vx) : b.binary(op, vx, b.param(y)));
    expand_math(kernel_);
    fold_and_simplify(kernel_);
    eliminate_common(kernel_);
    compact(kernel_);
    slots_.resize(kernel_.slots.size());
    values_.resize(kernel_.ops.size());
  }

  const Kernel& kernel() const { return kernel_; }

  std::uint64_t operator()(std::uint64_t x, std::uint64_t y = 0) {
    arguments_ = {x, y};
    std::fill(slots_.begin(), slots_.end(), 0);
    region(0);
    return slots_[out_];
  }
  float operator()(float x, float y = 0) {
    return std::bit_cast<float>(
        static_cast<std::uint32_t>((*this)(std::uint64_t{std::bit_cast<std::uint32_t>(x)}, std::bit_cast<std::uint32_t>(y))));
  }
  double operator()(double x, double y = 0) {
    return std::bit_cast<double>((*this)(std::bit_cast<std::uint64_t>(x), std::bit_cast<std::uint64_t>(y)));
  }
  // x to the power n.
  float operator()(float x, std::int32_t n) {
    return std::bit_cast<float>(
        static_cast<std::uint32_t>((*this)(std::uint64_t{std::bit_cast<std::uint32_t>(x)}, std::uint64_t{static_cast<std::uint32_t>(n)})));
  }
  double operator()(double x, std::int32_t n) {
    return std::bit_cast<double>((*this)(std::bit_cast<std::uint64_t>(x), std::uint64_t{static_cast<std::uint32_t>(n)}));
  }

 private:
  bool region(RegionId r) {  // what its yield says
    for (const OpId id : kernel_.regions[r].ops) {
      const Op& op = kernel_.op(id);
      switch (op.code) {
        case Opcode::Const: values_[id] = op.imm; break;
        case Opcode::Param: values_[id] = arguments_[op.index]; break;
        case Opcode::Get: values_[id] = slots_[op.index]; break;
        case Opcode::Set: slots_[op.index] = values_[op.operands[0]]; break;
        case Opcode::If: region(op.regions[values_[op.operands[0]] ? 0 : 1]); break;
        case Opcode::While:
          while (region(op.regions[0])) region(op.regions[1]);
          break;
        case Opcode::Yield: return values_[op.operands[0]] != 0;
        default: {
          std::array<std::uint64_t, 3> in{};
          for (std::size_t i = 0; i < op.operands.size(); ++i) in[i] = values_[op.operands[i]];
          const Type operand_type = kernel_.op(op.operands[op.code == Opcode::Select ? 1 : 0]).type;
          const auto v = evaluate(op.code, op.type, operand_type, std::span(in.data(), op.operands.size()));
          if (!v) FAIL(info(op.code).mnemonic << " has no evaluation");
          values_[id] = *v;
        }
      }
    }
    return false;
  }

  Kernel kernel_;
  std::uint32_t out_ = 0;
  std::array<std::uint64_t, 2> arguments_{};
  std::vector<std::uint64_t> slots_, values_;
};

}  // namespace kiln::ir::test
