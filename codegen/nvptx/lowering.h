// One kernel as LLVM IR for NVPTX. One class, because everything shares the insertion point and the values; its functions are grouped by
// subject into lowering.cpp (the frame: parameters, dispatch), control.cpp, memory.cpp, text.cpp, warp.cpp, block.cpp and lines.cpp.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control_facts.h"
#include "kiln/runtime/compiler.h"
#include "lines.h"
#include "target.h"

namespace kiln::codegen::nvptx {

class Lowering {
 public:
  Lowering(llvm::Module& module, const ir::Prepared& prepared, const CompileOptions& options, const PtxTarget& target);
  // Emits everything. Throws CompileError. Once.
  void run();
  const std::string& symbol() const { return symbol_; }
  std::uint64_t static_shared_bytes() const { return shared_bytes_; }
  const std::vector<TargetReasons::Choice>& choices() const { return choices_; }  // of instructions that older architectures lack

 private:
  // The lanes of a warp that are at one point of the structured program. In a region, `lanes` always holds all of them; it may also hold
  // lanes that have returned since (`stale`), which the next use sorts out. Null: nothing below needs it, so it is not kept.
  struct Mask {
    llvm::Value* lanes = nullptr;
    bool stale = false;
  };
  // A loop being emitted, for break and continue. Where a warp operation may follow in the loop, a lane that leaves cannot jump away from
  // lanes that will ask who is still there: it notes why it leaves and goes to the end of the innermost if that asks (`joins`), then on to
  // the latch.
  struct Loop {
    llvm::BasicBlock* exit;
    llvm::BasicBlock* latch;
    llvm::AllocaInst* leaving = nullptr;  // null: lanes jump directly
    std::vector<llvm::BasicBlock*> joins;
  };
  struct Parameter {  // of a buffer
    llvm::Value* pointer = nullptr;
    std::array<llvm::Value*, ir::kMaxRank> extents{}, strides{};
  };
  // An access's coordinates as 64-bit numbers (a negative one is huge) with the extents they are measured by.
  struct Place {
    std::uint32_t mem;
    std::vector<llvm::Value*> index, extent;
  };

  // lowering.cpp
  void declare_kernel();
  void declare_parameters();
  void declare_memories();
  void declare_slots();
  void emit_op(ir::OpId id, bool lanes_needed_later);
  llvm::Value* emit_query(const ir::Op& op);
  std::vector<bool> find_nan_bits_users() const;
  llvm::Value* value(ir::ValueId v) const { return values_[v]; }
  std::vector<llvm::Value*> values(const std::vector<ir::ValueId>& ids) const;
  llvm::Type* type(ir::Type t) const;
  llvm::Value* i32(std::uint32_t v) { return b_.getInt32(v); }
  [[noreturn]] void fail(const ir::Op& op, const std::string& what) const;
  // Whether the target has an instruction that came with architecture `sm`; who asks uses it for `op` then. Everything that depends on the
  // architecture asks here, so that it can be told.
  bool has(const char* instruction, unsigned sm, const ir::Op& op);

  // control.cpp
  void emit_region(ir::RegionId region);
  void emit_if(const ir::Op& op, bool lanes_needed_later);
  void emit_switch(const ir::Op& op, bool lanes_needed_later);
  void emit_branches(const ir::Op& op, const std::vector<llvm::BasicBlock*>& blocks, const std::vector<llvm::Value*>& masks,
                     llvm::BasicBlock* join, bool asks);
  void emit_for(ir::OpId id);
  void emit_while(ir::OpId id);
  void emit_leave(ir::Opcode code);
  bool splits_here(const ir::Op& op, bool lanes_needed_later) const;
  llvm::AllocaInst* begin_leaving(ir::OpId loop);
  llvm::Value* leaves_by(std::uint32_t why);
  bool terminated() const;
  void jump(llvm::BasicBlock* to);
  llvm::BasicBlock* block(const char* name);

  // warp.cpp
  llvm::Value* full_mask() { return i32(0xffffffffu); }
  bool is_full(const llvm::Value* mask) const;
  llvm::Value* initial_mask();
  llvm::Value* active();  // the current mask, without lanes that have returned
  llvm::Value* ballot(llvm::Value* mask, llvm::Value* condition);
  llvm::Value* lane();
  llvm::Value* call(llvm::Intrinsic::ID id, std::vector<llvm::Value*> arguments);
  llvm::Value* shuffle_bits(llvm::Intrinsic::ID id, llvm::Value* mask, llvm::Value* value, llvm::Value* operand, unsigned clamp);
  llvm::Value* read_lane(llvm::Value* mask, llvm::Value* value, llvm::Value* source);
  llvm::Value* either(llvm::Value* mask, const std::function<llvm::Value*()>& when_full, const std::function<llvm::Value*()>& otherwise);
  std::vector<llvm::Value*> steps(const std::vector<llvm::Value*>& state,
                                  const std::function<std::vector<llvm::Value*>(const std::vector<llvm::Value*>&)>& step);
  llvm::Value* emit_shuffle(const ir::Op& op);
  llvm::Value* emit_vote(const ir::Op& op);
  llvm::Value* emit_reduce(const ir::Op& op);
  llvm::Value* emit_scan(const ir::Op& op);
  llvm::Value* reduce_full(ir::Combine how, ir::Type t, llvm::Value* v);
  llvm::Value* reduce_partial(ir::Combine how, ir::Type t, llvm::Value* v, llvm::Value* mask);
  llvm::Value* scan_full(ir::Combine how, ir::Type t, llvm::Value* v, bool exclusive);
  llvm::Value* scan_chain(ir::Combine how, ir::Type t, llvm::Value* v, llvm::Value* mask, bool exclusive);
  llvm::Value* scan_tree(ir::Combine how, ir::Type t, llvm::Value* v, llvm::Value* mask, bool exclusive);

  // block.cpp
  void emit_barrier();
  llvm::Value* emit_block_vote(const ir::Op& op);
  llvm::Value* emit_block_uniform(const ir::Op& op);
  llvm::Value* block_dim(unsigned axis);
  llvm::Value* thread_id(unsigned axis);
  llvm::Value* linear_thread();
  llvm::Value* special_register(llvm::Intrinsic::ID x, unsigned axis);

  // memory.cpp
  llvm::Value* extent(std::uint32_t mem, unsigned dimension);
  Place place(const ir::Op& op);
  llvm::Value* address(const Place& place);
  llvm::Value* emit_access(const ir::Op& op);
  llvm::Value* access_at(const ir::Op& op, const Place& place);
  llvm::Value* emit_atomic(const ir::Op& op, llvm::Value* pointer);
  llvm::Value* float_atomic_min_max(const ir::Op& op, llvm::Value* pointer);
  llvm::Value* checked(const ir::Op& op, Place place);
  void report(const ir::Op& op, const Place& place, const std::vector<llvm::Value*>& inside);

  // text.cpp
  void emit_check(const ir::Op& op);
  void emit_trap(const ir::Op& op);
  void emit_log(const ir::Op& op);
  llvm::Value* bits_of(ir::ValueId v);
  llvm::Function* fault_function();
  llvm::Value* read_clock(ir::Opcode code);

  llvm::LLVMContext& c_;
  llvm::Module& m_;
  const ir::Prepared& prepared_;
  const ir::Kernel& k_;
  const CompileOptions& options_;
  const PtxTarget& target_;
  const ControlFacts facts_;
  const std::string symbol_;
  const std::uint32_t log_stride_;
  std::array<std::uint32_t, 3> block_size_{};  // {0, 0, 0}: not known
  std::vector<bool> nan_bits_matter_;          // per operation

  llvm::IRBuilder<> b_;
  Lines lines_;
  llvm::Function* f_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;  // allocas and what everything may use
  llvm::BasicBlock* exit_ = nullptr;
  std::vector<llvm::Value*> values_;   // per operation
  std::vector<llvm::Value*> scalars_;  // per parameter number
  std::vector<Parameter> buffers_;     // per mem
  std::vector<llvm::Value*> storage_;  // per mem: what an access of it starts from
  std::vector<llvm::AllocaInst*> slots_;
  llvm::Value *fault_record_ = nullptr, *log_ = nullptr;
  llvm::Function* fault_function_ = nullptr;
  llvm::GlobalVariable* uniform_scratch_ = nullptr;
  std::uint64_t shared_bytes_ = 0;
  std::vector<TargetReasons::Choice> choices_;
  Mask mask_;
  Loop* loop_ = nullptr;
  bool lanes_returned_ = false;  // some lanes of a warp may have returned without the others
  const ir::Op* current_ = nullptr;
};

}  // namespace kiln::codegen::nvptx
