// One warp: 32 lanes of every value, explicit masks, and a stack of the control flow it is in. Runs until a barrier or its end.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "interp/memory.h"
#include "interp/program.h"

namespace kiln::interp {

using Mask = std::uint32_t;
using Lanes = std::array<std::uint64_t, 32>;

// What all warps of a launch share.
struct Context {
  const ir::Kernel& kernel;
  const std::vector<Inst>& program;
  const Launch& launch;
  Memory& memory;
  Report& report;
  std::uint64_t steps = 0;
  std::array<std::uint32_t, 3> block{};  // coordinates of the running block
  std::uint32_t block_number = 0;        // linear
  std::uint32_t phase = 0;               // barriers the block has passed
};

class Warp {
 public:
  Warp(Context& context, std::uint32_t number, std::uint32_t threads_of_block);

  void start_block();
  enum class State : std::uint8_t { Running, AtBarrier, Finished };
  // Until a barrier, the end, or the report says stop.
  State run();
  State state() const { return state_; }

  // At a barrier: which one, in which iterations of the loops around it, who stands there, and who should.
  ir::OpId barrier() const { return program_[pc_].op; }
  std::uint64_t iterations() const;
  Mask active() const { return active_; }
  Mask unreturned() const { return present_ & ~returned_; }
  const Lanes& operand(unsigned i) const { return value(kernel_.op(barrier()).operands[i]); }
  // Goes past the barrier with this result in every active lane.
  void pass(std::uint64_t result);

 private:
  struct Frame {
    Inst::Kind kind;
    Mask saved = 0;   // If: the else lanes, then the survivors of then; Switch: lanes that no case took yet; loops: lanes that left
    Mask joined = 0;  // Switch: survivors of the cases; loops: lanes that continued
    std::uint32_t outer_loop = ir::kNone;
    std::uint64_t iteration = 0;
  };

  template <class F>
  void each(F&& f) const {
    for (Mask m = active_; m != 0; m &= m - 1) f(static_cast<unsigned>(std::countr_zero(m)));
  }
  Lanes& value(ir::OpId id) { return values_[id]; }
  const Lanes& value(ir::OpId id) const { return values_[id]; }
  Who who(ir::OpId op, unsigned lane) const;

  void step();
  void enter_loop(Inst::Kind kind);
  void begin_for(const ir::Op& op, ir::OpId id);
  void loop_back(const Inst& inst);
  void leave(ir::Opcode code);
  void simple(ir::OpId id);
  void query(const ir::Op& op, Lanes& out);
  void pure(const ir::Op& op, Lanes& out);
  void access(const ir::Op& op, ir::OpId id);
  // The byte of the element, or nothing after the report of the coordinate that is out of range.
  bool locate(const ir::Op& op, ir::OpId id, unsigned lane, std::uint64_t& byte);
  std::uint64_t atomic(const ir::Op& op, ir::OpId id, unsigned lane, Storage& storage, std::uint64_t byte);
  void vote(const ir::Op& op, Lanes& out);
  void shuffle(const ir::Op& op, Lanes& out);
  void combine(const ir::Op& op, Lanes& out);
  void check(const ir::Op& op);
  void trap(const ir::Op& op);
  void log(const ir::Op& op);
  void report_fault(ir::FaultRecord f, unsigned lane);
  void require(const ir::Op& op, ir::OpId id);

  Context& context_;
  const ir::Kernel& kernel_;
  const std::vector<Inst>& program_;
  const std::uint32_t number_;
  Mask present_ = 0;  // lanes that exist
  std::array<std::array<std::uint32_t, 32>, 3> thread_{};
  std::vector<Lanes> values_, slots_;
  std::vector<Storage> locals_;  // per mem

  State state_ = State::Running;
  std::uint32_t pc_ = 0;
  Mask active_ = 0, returned_ = 0;
  std::uint32_t loop_ = ir::kNone;  // innermost loop, index into frames_
  std::uint32_t warp_phase_ = 0;
  std::vector<Frame> frames_;
};

}  // namespace kiln::interp
