// Evaluates one expanded math function for many arguments at a time: each operation of the IR runs over all lanes. Holds itself against
// ir::evaluate on its first arguments.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "kiln/ir/kernel.h"

namespace kiln::bench {

class Batch {
 public:
  static constexpr std::size_t kLanes = 512;

  Batch(ir::Opcode op, ir::Type type);

  // Arguments and results as bit patterns.
  std::uint64_t* x() { return arguments_[0].data(); }
  std::uint64_t* y() { return arguments_[1].data(); }
  const std::uint64_t* x() const { return arguments_[0].data(); }
  const std::uint64_t* y() const { return arguments_[1].data(); }
  const std::uint64_t* result() const { return slots_[out_].data(); }

  void run();

 private:
  using Lanes = std::array<std::uint64_t, kLanes>;
  using Mask = std::array<std::uint8_t, kLanes>;

  void region(ir::RegionId r, const Mask& active);
  void compute(const ir::Op& op, Lanes& to);
  void check_sample(const ir::Op& op, const Lanes& got) const;

  ir::Kernel kernel_;
  std::uint32_t out_ = 0;
  std::array<Lanes, 2> arguments_{};
  std::vector<Lanes> slots_, values_;
  Lanes yielded_{};
};

}  // namespace kiln::bench
