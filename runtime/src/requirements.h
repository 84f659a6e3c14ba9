// The require(...) of a kernel, evaluated by the host at each launch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/ir/kernel.h"
#include "kiln/runtime/client.h"

namespace kiln::rt {

// The operations that decide the requirements, taken out of the kernel once. Immutable; thread-safe.
class Requirements {
 public:
  Requirements() = default;
  // From a prepared kernel. An operation that the host cannot evaluate is an error (CompileValidation).
  static Result<Requirements> of(const ir::Kernel& kernel);

  // The first requirement that does not hold, with its text and the values of both sides (rule SizeRequirementViolated). Arguments as
  // validated. O(operations); allocates nothing when all hold.
  std::optional<Error> check(const LaunchConfig& config, std::span<const LaunchArg> args) const;
  bool reads(std::size_t param) const;           // whether one of them depends on the value of this scalar
  bool uses_grid() const { return uses_grid_; }  // one of them depends on how many blocks there are

 private:
  // One value. Operands are numbers of earlier steps.
  struct Step {
    ir::Opcode code = ir::Opcode::Const;
    ir::Type type = ir::Type::Void, operand_type = ir::Type::Void;
    std::uint8_t attr = 0, count = 0;
    std::uint32_t param = 0;  // Param, Extent, Size, Stride: the argument
    std::uint64_t imm = 0;
    std::uint32_t operands[3] = {0, 0, 0};
  };
  struct Relation {
    std::uint32_t value = 0;  // step of the condition
    std::string text, place;
  };
  class Extractor;

  std::uint64_t value(const Step& step, const LaunchConfig& config, std::span<const LaunchArg> args, const std::uint64_t* values) const;
  Error violated(const Relation& relation, const std::uint64_t* values) const;

  std::string kernel_;
  std::vector<Step> steps_;
  std::vector<Relation> relations_;
  bool uses_grid_ = false;
};

}  // namespace kiln::rt
