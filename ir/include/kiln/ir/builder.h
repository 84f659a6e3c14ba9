// Appends operations to a Kernel at an insertion point. The only way that recording, passes and generators make operations.
// Preconditions are the caller's (a wrong type is found by the verifier, with its line); a builder never throws except bad_alloc.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "kiln/ir/kernel.h"

namespace kiln::ir {

class Builder {
 public:
  explicit Builder(Kernel& kernel) : k_(&kernel) {}

  Kernel& kernel() { return *k_; }
  Loc loc;  // stamped on every operation made from now on

  // Insertion point: the end of a region. Operations are appended there.
  RegionId region() const { return region_; }
  void set_region(RegionId r) { region_ = r; }
  RegionId new_region();

  // Declarations.
  std::uint32_t file(std::string_view path);  // index of the path, added when new
  std::uint32_t buffer(std::string name, Type element, unsigned rank, Access access, bool strided = false);  // returns the mem index
  std::uint32_t scalar(std::string name, Type type);                                                         // returns the parameter number
  std::uint32_t shared(std::string name, Type element, std::vector<std::uint64_t> extents);
  std::uint32_t dynamic_shared(std::string name, Type element);
  std::uint32_t local(std::string name, Type element, std::vector<std::uint64_t> extents);
  std::uint32_t slot(std::string name, Type type);

  // Values.
  ValueId constant(Type type, std::uint64_t bits);
  ValueId const_bool(bool v) { return constant(Type::Bool, v); }
  ValueId const_u32(std::uint32_t v) { return constant(Type::U32, v); }
  ValueId const_i32(std::int32_t v) { return constant(Type::I32, static_cast<std::uint32_t>(v)); }
  ValueId const_u64(std::uint64_t v) { return constant(Type::U64, v); }
  ValueId const_f32(float v);
  ValueId const_f64(double v);
  ValueId param(std::uint32_t number);
  ValueId extent(std::uint32_t mem, unsigned dimension, Type type = Type::U32);
  ValueId size(std::uint32_t mem, Type type = Type::U32);
  ValueId query(Opcode code, unsigned axis = 0, Type type = Type::U32);  // thread_id, block_id, ..., lane_id, warp_id, clock
  ValueId unary(Opcode code, ValueId a);
  ValueId binary(Opcode code, ValueId a, ValueId b);  // compares give bool
  ValueId fma(ValueId a, ValueId b, ValueId c);
  ValueId select(ValueId cond, ValueId a, ValueId b);
  ValueId cast(Type to, ValueId a);
  ValueId bit_cast(Type to, ValueId a);

  // Locals and memory.
  ValueId get(std::uint32_t slot);
  void set(std::uint32_t slot, ValueId v);
  ValueId load(std::uint32_t mem, std::vector<ValueId> coordinates);
  void store(std::uint32_t mem, std::vector<ValueId> coordinates, ValueId v);
  ValueId atomic(Opcode code, std::uint32_t mem, std::vector<ValueId> coordinates, ValueId v);
  ValueId atomic_cas(std::uint32_t mem, std::vector<ValueId> coordinates, ValueId expected, ValueId desired);

  // Block and warp.
  void barrier();
  ValueId block_vote(Opcode code, ValueId cond);
  ValueId block_uniform(ValueId v);
  ValueId shuffle(Opcode code, ValueId v, ValueId lane);
  ValueId warp_vote(Opcode code, ValueId cond);
  ValueId warp_combine(Opcode code, Combine how, ValueId v);
  void warp_sync();

  // Control flow. Each returns the operation; its regions are made empty. Enter them with set_region.
  OpId if_(ValueId cond);                                     // regions 0: then, 1: else
  OpId for_(ValueId lo, ValueId hi, ValueId step);            // region 0: body; the returned id is the induction value
  OpId while_();                                              // regions 0: condition, 1: body
  OpId switch_(ValueId v, std::vector<std::uint64_t> cases);  // regions: one per case, then the default
  void yield(ValueId cond);
  void leave(Opcode code);  // Break, Continue, Return
  void check(ValueId cond, std::string text, std::vector<ValueId> values = {});
  void assume(ValueId cond, std::string text);
  void log_text(std::string text, std::vector<ValueId> values = {});
  void trap(std::string text);  // the return behind it too
  void require(ValueId cond, std::string text);

  // The general form, appended at the insertion point.
  OpId append(Op op);
  Type type(ValueId v) const { return k_->ops[v].type; }

 private:
  Kernel* k_;
  RegionId region_ = 0;
};

}  // namespace kiln::ir
