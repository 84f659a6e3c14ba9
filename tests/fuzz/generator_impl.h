// The generator, private to its sources: a kernel grows statement by statement through the builder. What every statement computes goes into
// a trace of 64 bits a thread, so that one wrong lane anywhere shows at the end.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "fuzz/generator.h"
#include "kiln/ir/builder.h"

namespace kiln::fuzz {

class Generator {
 public:
  Generator(std::uint64_t seed, const Shape& shape);
  Case run();

 private:
  using ValueId = ir::ValueId;
  using Type = ir::Type;
  using Opcode = ir::Opcode;

  struct Value {
    ValueId id;
    Type type;
    bool uniform;  // the same in every thread of the block, whatever the verifier may think
  };
  struct Slot {
    std::uint32_t id;
    Type type;
  };
  // How a buffer with one element a thread is laid out.
  enum class Layout : std::uint8_t { Linear, BlockAndThread, GlobalIds };
  struct Memory {
    std::uint32_t mem = ir::kNone;
    Type type = Type::U32;
    std::vector<std::uint64_t> extents{};
    Layout layout = Layout::Linear;
    std::vector<ValueId> cell{};      // own buffers: the coordinates of the thread's element
    std::uint32_t alias = ir::kNone;  // own buffers: a second, read-only parameter that is the same memory
  };
  struct Accumulator {
    std::uint32_t mem;
    Type type;
    Opcode kind;
    bool exact;
  };
  struct Context {
    bool uniform_control = true;   // every not-returned thread of the block is here
    bool may_leave_loop = false;   // a break or continue may be put here
    bool loop_is_uniform = false;  // ... under conditions that are the same for all threads of the block only
  };

  // Types of this kernel: few, so that its values meet each other.
  Type any_type() { return r_.pick(types_); }
  Type any_computed() {  // not one that is stored only
    for (;;)
      if (const Type t = any_type(); !ir::is_float8(t)) return t;
  }
  Type any_integer() { return r_.pick(integers_); }
  // One that holds the indices of an array of `count` elements, and what index expressions come to; else u32.
  Type index_type(std::uint64_t count) {
    const Type t = any_integer();
    return (ir::value_mask(t) >> 1) >= 2 * (count + total_) + 16 ? t : Type::U32;
  }
  // One that there are atomics of.
  Type any_atomic_integer() {
    const Type t = any_integer();
    return ir::bit_width(t) >= 32 ? t : Type::U32;
  }
  Type any_atomic_float() {
    const Type t = any_float();
    return ir::is_half(t) ? Type::F32 : t;
  }
  Type any_float() { return r_.pick(floats_); }
  Type any_number() { return r_.pick(numbers_); }
  Type any_element() { return r_.pick(elements_); }

  // --- generate_launch.cpp: the launch, its data, what the kernel declares, and how it begins ---
  void choose_types();
  void choose_launch();
  void declare();
  void declare_own(Type t);
  void declare_accumulators();
  void head();
  void requires_();
  std::uint32_t add_buffer(const std::string& name, Type t, const std::vector<std::uint64_t>& extents, ir::Access access,
                           const std::vector<std::uint64_t>& strides = {});
  std::vector<std::uint64_t> any_strides(const std::vector<std::uint64_t>& extents, bool overlapping);
  std::uint64_t accumulator_start(const Accumulator& a);
  ValueId block_linear();
  ValueId linear_in_block();

  // --- generate_values.cpp: expressions without effects ---
  Value keep(ValueId id, bool uniform);
  Value leaf(Type t, bool uniform);
  Value value(Type t, int depth, bool uniform = false);
  Value math(Type t, int depth, bool uniform);
  Value operation(Type t, int depth, bool uniform);
  Value varying(Type t);     // hardly ever the same in all lanes
  ValueId divergent_bool();  // a condition on which the lanes of a warp part, now and then one that was asked before
  ValueId new_divergent_bool();
  ValueId lanes_against_uniform();
  ValueId no_nan(ValueId v);  // zero in the place of NaN, where its sign or payload would show
  bool too_dear(Opcode code, Type t);

  // --- generate_memory.cpp: loads, stores and the indices that they use ---
  ValueId index_into(const Memory& m, unsigned dimension, bool uniform);
  ValueId index_inside(const Memory& m, unsigned dimension, bool uniform);
  ValueId index_at_edge(const Memory& m, unsigned dimension, bool uniform);
  ValueId side_by_side(const Memory& m, unsigned dimension, bool edge);
  ValueId extent_minus(const Memory& m, unsigned dimension, Type t, std::uint64_t less);
  Value load_input(Type t, bool uniform);
  void input_statement();
  void adjacent_loads(const Memory& m);
  void guarded_statement();
  void own_statement();
  void local_statement();

  // --- generate_control.cpp: statements that hold statements ---
  void block(std::uint32_t depth, const Context& c, int count);
  void statement(std::uint32_t depth, const Context& c);
  void leave_guarded(Opcode code, bool uniform);
  void conditional(std::uint32_t depth, const Context& c);
  void counted_loop(std::uint32_t depth, const Context& c);
  void while_loop(std::uint32_t depth, const Context& c);
  void switch_statement(std::uint32_t depth, const Context& c);
  void loop_body(std::uint32_t depth, const Context& inner);
  void arithmetic();
  void assign();
  void check_statement();
  void log_statement();
  void assume_statement();
  void clock_statement();
  void trap_statement();
  void uniform_assign();

  // --- generate_exchange.cpp: what threads tell each other ---
  void warp_statement();
  void barrier_statement();
  void atomic_statement();
  ValueId shuffle_lane();

  // --- generator.cpp ---
  void fold(ValueId v);  // into the trace
  void write_trace();
  void results();
  template <class F>
  void in(ir::RegionId region, F&& f) {
    const ir::RegionId before = b_.region();
    const std::size_t depth = scope_.size();
    b_.set_region(region);
    f();
    b_.set_region(before);
    scope_.resize(depth);
  }
  template <class F>
  void in_region(ir::OpId op, unsigned number, F&& f) {
    in(b_.kernel().op(op).regions[number], std::forward<F>(f));
  }

  Random r_;
  Shape shape_;
  Case case_;
  ir::Builder b_;
  std::uint32_t threads_ = 1, total_ = 1;
  bool faults_ = false;  // accesses may lie on the edge of their memory
  int budget_ = 0, dear_ = 0, loop_count_ = 0, log_count_ = 0;
  std::vector<Type> types_, integers_, floats_, numbers_, elements_;  // numbers that are computed with; what memories hold
  std::vector<Memory> inputs_, own_;
  std::vector<std::pair<std::uint32_t, Type>> scalars_;
  std::vector<Accumulator> accumulators_, shared_accumulators_;
  Memory exchange_, local_;
  std::uint32_t trace_ = ir::kNone, trace32_ = ir::kNone, trace64_ = ir::kNone;  // the buffer, and what becomes of its element
  ValueId linear_ = ir::kNone, thread_ = ir::kNone;                              // of the thread in the grid, in the block
  std::vector<Slot> slots_, uniform_slots_;
  std::vector<Value> scope_;
};

}  // namespace kiln::fuzz
