#include "src/requirements.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "kiln/ir/eval.h"
#include "kiln/ir/floats.h"
#include "src/launch_validation.h"
#include "src/make_error.h"

namespace kiln::rt {
namespace {

std::string text(ir::Type type, std::uint64_t bits) {
  if (ir::is_bool(type)) return bits != 0 ? "true" : "false";
  if (ir::is_signed(type)) return std::to_string(ir::sign_extend(type, bits));
  if (!ir::is_float(type)) return std::to_string(bits);
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, ir::float_value(type, bits), std::chars_format::general, 9).ptr};
}

const char* relation_sign(ir::Opcode code) {
  switch (code) {
    case ir::Opcode::Eq: return "==";
    case ir::Opcode::Ne: return "!=";
    case ir::Opcode::Lt: return "<";
    case ir::Opcode::Le: return "<=";
    case ir::Opcode::Gt: return ">";
    case ir::Opcode::Ge: return ">=";
    default: return nullptr;
  }
}

}  // namespace

// Collects the steps below a condition, each once, operands first.
class Requirements::Extractor {
 public:
  Extractor(const ir::Kernel& kernel, Requirements& out) : kernel_(kernel), out_(out), param_of_(kernel.mems.size(), ir::kNone) {
    for (std::uint32_t p = 0; p < kernel.params.size(); ++p) {
      if (kernel.params[p].is_buffer && kernel.params[p].mem < param_of_.size()) param_of_[kernel.params[p].mem] = p;
    }
  }

  // The step of a value; none when the host cannot evaluate it.
  std::optional<std::uint32_t> step(ir::ValueId id) {
    if (const auto known = steps_.find(id); known != steps_.end()) return known->second;
    const ir::Op& op = kernel_.op(id);
    Step s;
    s.code = op.code;
    s.type = op.type;
    s.attr = op.attr;
    s.imm = op.imm;
    switch (op.code) {
      case ir::Opcode::Const:
      case ir::Opcode::BlockDim: break;
      case ir::Opcode::GridDim: out_.uses_grid_ = true; break;
      case ir::Opcode::Param: s.param = op.index; break;
      case ir::Opcode::Extent:
      case ir::Opcode::Size:
      case ir::Opcode::Stride:
        if (op.index >= param_of_.size() || param_of_[op.index] == ir::kNone) return std::nullopt;
        s.param = param_of_[op.index];
        break;
      default: {
        if (!ir::is_pure(op.code) || ir::info(op.code).form == ir::Form::Query || op.operands.empty() || op.operands.size() > 3)
          return std::nullopt;
        for (const ir::ValueId operand : op.operands) {
          const auto number = step(operand);
          if (!number) return std::nullopt;
          s.operands[s.count++] = *number;
        }
        s.operand_type = kernel_.op(op.operands[op.code == ir::Opcode::Select ? 1 : 0]).type;
        const std::uint64_t zeros[3] = {0, 0, 0};
        if (!ir::evaluate(s.code, s.type, s.operand_type, {zeros, s.count})) return std::nullopt;
      }
    }
    out_.steps_.push_back(s);
    return steps_[id] = static_cast<std::uint32_t>(out_.steps_.size() - 1);
  }

 private:
  const ir::Kernel& kernel_;
  Requirements& out_;
  std::vector<std::uint32_t> param_of_;
  std::map<ir::ValueId, std::uint32_t> steps_;
};

Result<Requirements> Requirements::of(const ir::Kernel& kernel) {
  Requirements out;
  out.kernel_ = kernel.name;
  Extractor extractor(kernel, out);
  for (const ir::OpId id : kernel.regions[0].ops) {
    const ir::Op& op = kernel.op(id);
    if (op.code != ir::Opcode::Require) continue;
    Relation relation;
    if (op.imm < kernel.texts.size()) relation.text = kernel.texts[op.imm];
    relation.place = ir::to_string(kernel, op.loc);
    const auto value = extractor.step(op.operands[0]);
    if (!value) {
      return make_error(ErrorCode::CompileValidation, "RequirementNotEvaluable",
                        "require(" + relation.text +
                            ") depends on something that the host does not know at launch; use sizes, extents, scalars and constants",
                        {.kernel = kernel.name, .place = relation.place});
    }
    relation.value = *value;
    out.relations_.push_back(std::move(relation));
  }
  return out;
}

bool Requirements::reads(std::size_t param) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& s) { return s.code == ir::Opcode::Param && s.param == param; });
}

std::uint64_t Requirements::value(const Step& step, const LaunchConfig& config, std::span<const LaunchArg> args,
                                  const std::uint64_t* values) const {
  switch (step.code) {
    case ir::Opcode::Const: return step.imm;
    case ir::Opcode::Param: return args[step.param].bits & ir::value_mask(step.type);
    case ir::Opcode::Extent: return args[step.param].extents[step.attr] & ir::value_mask(step.type);
    case ir::Opcode::Stride: return args[step.param].strides[step.attr] & ir::value_mask(step.type);
    case ir::Opcode::Size: return element_count(args[step.param], args[step.param].rank).value_or(0) & ir::value_mask(step.type);
    case ir::Opcode::BlockDim: return config.block[step.attr];
    case ir::Opcode::GridDim: return config.grid[step.attr];
    default: break;
  }
  std::uint64_t operands[3] = {0, 0, 0};
  for (unsigned i = 0; i < step.count; ++i) operands[i] = values[step.operands[i]];
  return ir::evaluate(step.code, step.type, step.operand_type, {operands, step.count}).value_or(0);
}

std::optional<Error> Requirements::check(const LaunchConfig& config, std::span<const LaunchArg> args) const {
  if (relations_.empty()) return std::nullopt;
  std::uint64_t few[64];
  std::uint64_t* values = few;
  if (steps_.size() > std::size(few)) {
    thread_local std::vector<std::uint64_t> room;  // grows once a thread
    if (room.size() < steps_.size()) room.resize(steps_.size());
    values = room.data();
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) values[i] = value(steps_[i], config, args, values);
  for (const Relation& relation : relations_) {
    if (values[relation.value] == 0) return violated(relation, values);
  }
  return std::nullopt;
}

Error Requirements::violated(const Relation& relation, const std::uint64_t* values) const {
  // Of a conjunction, the side that is false.
  const Step* step = &steps_[relation.value];
  while (step->code == ir::Opcode::And) step = &steps_[values[step->operands[0]] == 0 ? step->operands[0] : step->operands[1]];
  ErrorFacts facts{.kernel = kernel_, .place = relation.place};
  std::string message = "a requirement of the kernel does not hold (" + relation.text + ")";
  if (const char* sign = relation_sign(step->code)) {
    const std::uint64_t left = values[step->operands[0]], right = values[step->operands[1]];
    message += ": " + text(step->operand_type, left) + " " + sign + " " + text(step->operand_type, right) + " is false";
    facts.requested = left;
    facts.limit = right;
    facts.numbers = Error::Numbers::AsTold;
  }
  return make_error(ErrorCode::Validation, "SizeRequirementViolated", std::move(message), std::move(facts));
}

}  // namespace kiln::rt
