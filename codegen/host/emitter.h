// Turns one prepared kernel into one LLVM function (runtime/compiler.h, HostEntry). Internal to the host lowering; one object a
// compilation. What is where: emitter.cpp the frame and the loop over blocks; emit_threads.cpp warps and thread indices; emit_value.cpp
// values and locals; emit_control.cpp control flow and masks; emit_memory.cpp loads, stores and bounds; emit_lanes.cpp their slow ways;
// emit_atomic.cpp atomics; emit_warp.cpp warp operations; emit_text.cpp checks, traps and logs; emit_block.cpp what barriers cut.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <functional>
#include <map>
#include <vector>

#include "host/arith.h"
#include "host/level.h"
#include "host/plan.h"
#include "host/shape.h"
#include "host/structure.h"
#include "kiln/runtime/compiler.h"

namespace kiln::codegen::host {

// The lanes that are active at a point of the program. At least one is.
struct Mask {
  llvm::Value* lanes = nullptr;  // <32 x i1>; null: all of them
  bool full() const { return lanes == nullptr; }
};

// The first and the last lane of a set, an i32 with a bit for each; of an empty set, some lane. LLVM may move what is done with a lane in
// front of the branch that asks whether there is one, and there a count of zeros would be no lane's number, not even a fixed one.
llvm::Value* first_lane_of(llvm::IRBuilder<>& b, llvm::Value* set);
llvm::Value* last_lane_of(llvm::IRBuilder<>& b, llvm::Value* set);

class Emitter {
 public:
  Emitter(llvm::LLVMContext& context, llvm::Module& module, const ir::Prepared& prepared, const CompileOptions& options,
          const Level& level);

  // Adds the entry function. Throws CompileError.
  void run(const std::string& symbol);
  std::uint64_t context_bytes() const { return context_bytes_; }
  std::uint64_t context_bytes_per_warp() const { return context_bytes_per_warp_; }

 private:
  using Value = llvm::Value;
  using Block = llvm::BasicBlock;

  // --- frame (emitter.cpp) -------------------------------------------------------------------------------------------------
  struct Memory {           // per mem
    Value* base = nullptr;  // of the first element; null for Local memory in the context until a warp is known
    Value* extent[ir::kMaxRank] = {};
    Value* pitch[ir::kMaxRank] = {};                   // elements from one index to the next in that dimension
    llvm::MDNode *scope = nullptr, *others = nullptr;  // alias facts; null: none
    std::uint64_t saved_offset = 0;                    // Local memory in the context
    bool in_context = false;
  };
  void load_parameters(Value* params);
  void place_memories(Value* scratch);
  void make_alias_scopes();
  void emit_blocks(Value* first, Value* last);
  void begin_body();
  llvm::AllocaInst* variable(llvm::Type* type, const char* name);  // in the entry block; promoted to a register later unless it is an array
  Block* block(const char* name) { return Block::Create(c_, name, fn_); }
  void branch_to(Block* target) { b_.CreateBr(target); }
  void start(Block* target) { b_.SetInsertPoint(target); }
  void loop_back(Block* header);  // a branch that ends a loop that must not be unrolled
  [[noreturn]] void unsupported(ir::OpId id, const std::string& what) const;

  // --- threads (emit_threads.cpp) ------------------------------------------------------------------------------------------------
  struct Divisor {
    Value* number = nullptr;
    Value* reciprocal = nullptr;  // of one that is given at launch
  };
  void read_block(Value* grid);
  Value* quotient(Value* n, const Divisor& by);  // of a number of threads, or 32 of them
  Value* remainder(Value* n, const Divisor& by);
  Value* thread(unsigned axis);  // the index along an axis: a scalar (the base), or 32 lanes where the axis is irregular
  // Of thread `linear` of a block whose rows are x long, and y of them deep.
  std::array<Value*, 3> thread_axes(llvm::IRBuilder<>& b, Value* linear, Value* x, Value* y) const;
  void emit_warps(
      const std::function<void(Mask)>& body);  // calls `body` where warp_ is set, once for full warps and once for the partial one
  // For every warp in turn, the partial one too. What one gives is `carried` for the next; null: nothing is.
  Value* each_warp(Value* carried, const std::function<Value*(Value* warp, Value* carried)>& body);

  // --- values (emit_value.cpp) -------------------------------------------------------------------------------------------------
  Value* scalar(ir::ValueId v);               // of a uniform value; the base of an affine one
  Value* vector(ir::ValueId v);               // 32 lanes of any value
  Value* raw(ir::ValueId v);                  // as its shape keeps it
  Value* spread(ir::ValueId v, Value* held);  // 32 lanes from what raw() gives
  Value* offsets(llvm::Type* lane, const Shape& shape);
  void define(ir::ValueId v, Value* value, Mask m);
  Value* query(ir::OpId id);
  Value* clock(ir::Opcode code);  // now; u64
  Value* arithmetic(ir::OpId id);
  void emit_get(ir::OpId id, Mask m);
  void emit_set(ir::OpId id, Mask m);
  llvm::Type* held_type(ir::Type type, const Shape& shape) const;  // of a value or slot of that shape
  Value* splat(Value* scalar_value) { return b_.CreateVectorSplat(kLanes, scalar_value); }
  llvm::FixedVectorType* lanes_of(llvm::Type* lane) const { return llvm::FixedVectorType::get(lane, kLanes); }
  Value* all_lanes() const { return llvm::Constant::getAllOnesValue(lanes_of(llvm::Type::getInt1Ty(c_))); }
  Value* no_lanes() const { return llvm::Constant::getNullValue(lanes_of(llvm::Type::getInt1Ty(c_))); }
  Value* lanes(Mask m) const { return m.full() ? all_lanes() : m.lanes; }
  Value* bits(Value* lanes) { return b_.CreateBitCast(lanes, b_.getInt32Ty()); }
  Value* bits(Mask m) { return m.full() ? b_.getInt32(~0u) : bits(m.lanes); }
  Value* first_lane(Mask m);  // i32
  Value* last_lane(Mask m);
  Value* lane_numbers();  // <32 x i32> 0 ... 31
  Value* any(Value* lanes) { return b_.CreateICmpNE(bits(lanes), b_.getInt32(0)); }
  // For access by a lane number known at run time only. The arrays are good until begin_scratch(), which the next operation calls: all
  // share them.
  llvm::AllocaInst* lanes_in_memory(Value* vector_value);
  llvm::AllocaInst* scratch_array(llvm::Type* lanes);  // the same with anything in it
  void begin_scratch() { scratch_taken_.clear(); }

  // --- control (emit_control.cpp) ------------------------------------------------------------------------------------------------
  struct Loop {
    ir::OpId op;
    bool divergent;
    llvm::AllocaInst *live = nullptr, *running = nullptr;  // divergent: lanes still in the loop; those of them still in this iteration
    Block *exit = nullptr, *next = nullptr;
  };
  void emit_ops(ir::RegionId region, std::size_t begin, Mask m);
  void emit_op(ir::OpId id, Mask m);
  // The rest of a region for the given lanes: skipped when there are none, in a version of its own when they are all. `certainly_all` is a
  // cheaper test of that, which may miss it; code goes on at `after_all` when all went (null: where it goes on for the others).
  void emit_for_lanes(Value* lanes, ir::RegionId region, std::size_t begin, bool may_be_full, Value* certainly_all = nullptr,
                      Block* after_all = nullptr);
  Value* certainly(ir::ValueId v, bool wanted);
  bool is_early_return(ir::OpId id) const;
  void emit_if(ir::OpId id, Mask m);
  void emit_switch(ir::OpId id, Mask m);
  void emit_for(ir::OpId id, Mask m);
  void emit_uniform_for(ir::OpId id, Mask m, llvm::AllocaInst* i);
  void emit_divergent_for(ir::OpId id, Mask m, llvm::AllocaInst* i);
  llvm::AllocaInst* returned_inside(ir::RegionId region) const;
  void emit_while(ir::OpId id, Mask m);
  void emit_leave(ir::OpId id, Mask m);
  void drop(llvm::AllocaInst* from, Mask m);
  bool is_direct(ir::OpId leave, ir::OpId up_to) const;  // all active lanes take the way to it together
  llvm::AllocaInst* lost_lanes(ir::OpId id);             // the variable to look at after `id`, or null when it loses no lane
  std::uint32_t size_from(ir::RegionId region, std::size_t begin) const;
  std::size_t end_of(ir::RegionId region) const;
  Value* for_begins(ir::OpId id, bool scalars);
  Value* for_goes_on(ir::OpId id, Value* i, bool scalars);
  void compiler_fence(ir::OpId loop);

  // --- memory (emit_memory.cpp) ------------------------------------------------------------------------------------------------------
  // What one access touches.
  struct Access {
    ir::OpId id = 0;
    const ir::Op* op = nullptr;
    const ir::Mem* mem = nullptr;
    unsigned rank = 0;
    bool checked = false;
    bool uniform = false;  // one address for all lanes (of Local memory: one row of lanes)
    bool rows = false;     // lanes next to each other, in rows of geometry.width
  };
  Access access(ir::OpId id);
  void emit_load(ir::OpId id, Mask m);
  void emit_store(ir::OpId id, Mask m);
  Value* load_uniform(const Access& a, Mask m);
  Value* load_rows(const Access& a, Mask m);
  Value* load_each(const Access& a, Mask m);
  void store_uniform(const Access& a, Mask m);
  void store_rows(const Access& a, Mask m);
  void store_each(const Access& a, Mask m);
  Value* stored(const Access& a) { return vector(a.op->operands[a.rank]); }
  Value* index64(ir::ValueId v);  // scalar coordinate, extended
  Value* index64_lanes(ir::ValueId v);
  Value* uniform_index(const Access& a);  // element number, all coordinates' bases
  Value* lane_index(const Access& a);     // <32 x i64>
  bool may_wrap(const Access& a, unsigned dimension) const;
  Value* row_index(const Access& a, unsigned dimension);
  Value* row_pointer(const Access& a, unsigned row);
  Value* rows_are_plain(const Access& a);        // i1 or null: the fast way applies whatever the mask
  Value* inside_uniform(const Access& a);        // i1
  Value* inside_lanes(const Access& a, Mask m);  // active lanes that are in bounds
  Mask checked_lanes(const Access& a, Mask m);   // the same, after the others are reported
  void report(const Access& a, Value* first_bad_lane);
  void report_lanes(const Access& a, Value* bad);  // bits; does nothing when there are none
  Value* extent(std::uint32_t mem, unsigned dimension) { return memory_[mem].extent[dimension]; }
  Value* memory_base(std::uint32_t mem);
  llvm::Type* element_type(const ir::Mem& mem) const;  // in memory: a bool is a byte
  Value* from_memory(const ir::Mem& mem, Value* v);
  Value* to_memory_form(const ir::Mem& mem, Value* v);
  llvm::Align element_align(const ir::Mem& mem) const { return llvm::Align(ir::byte_size(mem.element)); }
  template <class I>
  I* note(I* instruction, const Access& a) {  // alias facts
    const Memory& m = memory_[a.op->index];
    instruction->setMetadata(llvm::LLVMContext::MD_alias_scope, m.scope);
    if (m.others) instruction->setMetadata(llvm::LLVMContext::MD_noalias, m.others);
    return instruction;
  }

  // --- text (emit_text.cpp) -----------------------------------------------------------------------------------------------------
  llvm::Function* report_function();
  void call_report(std::uint32_t site, Value* dimension, Value* index, Value* extent, Value* lane);
  void emit_check(ir::OpId id, Mask m);
  void emit_trap(ir::OpId id, Mask m);
  void emit_log(ir::OpId id, Mask m);
  Value* lane_bits(ir::ValueId v, Value* lane);  // of one lane, in 64
  Value* lane_thread(Value* lane) { return b_.CreateAdd(b_.CreateShl(warp_, 5), lane); }

  // --- lane by lane (emit_lanes.cpp) ---------------------------------------------------------------------------------------------
  llvm::Function* helper(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters, bool& fresh);
  llvm::Function* stepping_helper(bool stores, unsigned bytes);
  llvm::Function* indexed_helper(bool stores, unsigned bytes);
  llvm::Function* checking_helper(bool stores, unsigned bytes, ir::Type index, std::int64_t column, bool dense);
  Value* row_checked_lane_by_lane(const Access& a, Mask m, Value* stored);
  llvm::StructType* where_type() const;
  void declare_where();
  void note_block();            // in where_
  void note_warp(Value* warp);  // there and in warp_
  Value* rows_lane_by_lane(const Access& a, Mask m, Value* stored);
  Value* each_lane_by_lane(const Access& a, Mask m, Value* index, Value* stored);
  bool has_masked_access(const Access& a) const;  // of rows, by one instruction each

  // --- atomics (emit_atomic.cpp) -------------------------------------------------------------------------------------------------------
  void emit_atomic(ir::OpId id, Mask m);
  Value* atomic_step(const Access& a, Value* pointer, Value* operand, Value* expected);
  Value* combine_atomic(const Access& a, Value* old, Value* operand);
  Value* flush_subnormal(Value* v);

  // --- warp operations (emit_warp.cpp) ---------------------------------------------------------------------------------------------------
  void emit_shuffle(ir::OpId id, Mask m);
  void emit_vote(ir::OpId id, Mask m);
  void emit_combine(ir::OpId id, Mask m);
  Value* combine(ir::Combine how, ir::Type type, Value* x, Value* y);
  Value* permute(Value* v, Value* sources);
  Value* shift_lanes(Value* v, unsigned by, Value* fill);

  // --- the block (emit_block.cpp) --------------------------------------------------------------------------------------------------------
  void lay_out_context();
  void begin_block_context();
  void emit_block_region(ir::RegionId region);
  void emit_segment(ir::RegionId region, const Step& step);
  void emit_block_scalar(ir::OpId id);
  void emit_block_control(ir::OpId id);
  void leave_if_block_is_done();
  void emit_block_vote(ir::OpId id, Mask m);  // inside a warp: its part
  void begin_votes(ir::RegionId region, const Step& step);
  Value* block_scalar(ir::ValueId v);                   // of a value that steers the block
  std::uint64_t place_in_context(std::uint64_t bytes);  // so many of each warp; where they begin, of the first warp
  Value* context_pointer(std::uint64_t offset, std::uint64_t bytes, Value* warp);
  Value* load_saved(ir::ValueId v);
  bool at_hand(ir::ValueId v) const;  // that raw(v) can be had here: after a barrier only of what the plan kept
  void save(ir::ValueId v, Value* value);
  void capture(ir::ValueId v, Value* value, Mask m);
  bool is_empty_segment(ir::RegionId region, const Step& step) const;

  llvm::LLVMContext& c_;
  llvm::Module& module_;
  const ir::Prepared& prepared_;
  const ir::Kernel& k_;
  const CompileOptions& options_;
  const Level& level_;
  const Geometry geometry_;
  const Structure structure_;
  Shapes shapes_;
  std::unique_ptr<const Plan> plan_;  // kernels with barriers
  const std::uint32_t log_stride_;
  std::vector<char> used_;    // per op: its result is an operand of something
  std::vector<bool> atomic_;  // per mem

  llvm::IRBuilder<> b_;
  Arith arith_;
  llvm::Function* fn_ = nullptr;
  llvm::Instruction* variables_end_ = nullptr;  // variables are put before it
  llvm::Function* report_ = nullptr;
  llvm::AllocaInst* where_ = nullptr;  // a Where, for the helpers that report faults; null: no access is checked

  std::vector<Memory> memory_;
  std::vector<Value*> parameter_;  // scalars, by parameter number
  Value *fault_record_ = nullptr, *log_ = nullptr, *global_time_ = nullptr;
  Value *grid_dim_[3] = {}, *dynamic_bytes_ = nullptr, *context_ = nullptr;
  Value* block_id_[3] = {};
  Value *block_dim_[3] = {}, *full_warps_ = nullptr, *tail_lanes_ = nullptr, *warps_ = nullptr;  // i32; constants of an exact block
  std::array<Divisor, 3> divisor_;                                                               // x, y and x * y of the block
  Value* warp_ = nullptr;                                                                        // i32
  Block* block_end_ = nullptr;                                                                   // where a block is done
  Block* body_end_ = nullptr;                                                                    // where a warp's turn is done

  std::vector<Value*> value_;        // per op, of the warp code being made
  std::vector<std::uint32_t> made_;  // per op: the body that value_ belongs to
  std::uint32_t body_ = 0;
  llvm::Instruction* body_prologue_ = nullptr;  // values made again are put before it
  std::vector<Value*> block_value_;             // per op
  std::vector<llvm::AllocaInst*> slot_;
  std::map<llvm::Type*, std::vector<llvm::AllocaInst*>> scratch_lanes_;
  std::map<llvm::Type*, std::size_t> scratch_taken_;
  llvm::AllocaInst* alive_ = nullptr;  // lanes that have not returned; null when nothing returns
  llvm::AllocaInst* yield_ = nullptr;  // where the condition region being made puts its result
  std::vector<Loop> loops_;
  unsigned versions_ = 0;  // nesting of full versions
  ir::RegionId segment_region_ = ir::kNone;
  std::size_t segment_end_ = 0;

  struct BlockLoop {
    ir::OpId op;
    Block *exit, *next;
  };
  std::vector<BlockLoop> block_loops_;
  std::vector<std::uint64_t> value_offset_, slot_offset_;  // in the context
  std::vector<llvm::AllocaInst*> captured_, vote_;
  std::uint64_t alive_offset_ = 0, context_bytes_ = 0, context_bytes_per_warp_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> zeroed_;  // what starts as zero in the context: where, bytes of a warp
};

}  // namespace kiln::codegen::host
