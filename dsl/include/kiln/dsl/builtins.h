// Where a thread stands in its launch, and what the threads of a block do together.
#pragma once
#include "kiln/dsl/value.h"

namespace kiln {

// Three numbers, one per axis; `auto [x, y, z] = global_id();` works too.
template <Scalar T>
struct Axes {
  Val<T> x, y, z;
  KILN_NO_VALUE(ThreeNumbers, T)
};

namespace dsl {
template <Scalar T>
Axes<T> axes(ir::Opcode code, const Where& w) {
  return {Val<T>(query(code, 0, ir_type<T>, w)), Val<T>(query(code, 1, ir_type<T>, w)), Val<T>(query(code, 2, ir_type<T>, w))};
}
}  // namespace dsl

inline Axes<u32> thread_id(dsl::Where w = dsl::Where::current()) { return dsl::axes<u32>(ir::Opcode::ThreadId, w); }
inline Axes<u32> block_id(dsl::Where w = dsl::Where::current()) { return dsl::axes<u32>(ir::Opcode::BlockId, w); }
inline Axes<u32> block_dim(dsl::Where w = dsl::Where::current()) { return dsl::axes<u32>(ir::Opcode::BlockDim, w); }
inline Axes<u32> grid_dim(dsl::Where w = dsl::Where::current()) { return dsl::axes<u32>(ir::Opcode::GridDim, w); }
// block_id * block_dim + thread_id. A launch with more threads along a used axis than 32 bits count is refused; global_id64 takes any.
inline Axes<u32> global_id(dsl::Where w = dsl::Where::current()) { return dsl::axes<u32>(ir::Opcode::GlobalId, w); }
inline Axes<u64> global_id64(dsl::Where w = dsl::Where::current()) { return dsl::axes<u64>(ir::Opcode::GlobalId, w); }
// Within the warp, and the warp within the block: of the linear thread id x + y * block_dim.x + z * block_dim.x * block_dim.y.
inline Val<u32> lane_id(dsl::Where w = dsl::Where::current()) { return Val<u32>(dsl::query(ir::Opcode::LaneId, 0, ir::Type::U32, w)); }
inline Val<u32> warp_id(dsl::Where w = dsl::Where::current()) { return Val<u32>(dsl::query(ir::Opcode::WarpId, 0, ir::Type::U32, w)); }

// Waits for the threads of the block that have not returned, and orders their shared and global memory. Refused where an enclosing
// condition may differ among them.
void barrier(dsl::Where w = dsl::Where::current());
// A barrier that also tells every thread the same: whether any, whether all, and how many said true.
Val<bool> barrier_any(Use<bool> c);
Val<bool> barrier_all(Use<bool> c);
Val<u32> barrier_count(Use<bool> c);
// A barrier that gives every thread the value of one of them: for conditions that the author knows to be uniform.
template <dsl::Dsl A>
auto block_uniform(A&& a, dsl::Where w = dsl::Where::current()) {
  using T = dsl::value_t<A>;
  KILN_COMPUTES(T);
  return Val<T>(dsl::unary(ir::Opcode::BlockUniform, Use<T>(std::forward<A>(a), w)));
}

// Cycles of the multiprocessor that the thread runs on, of the processor's time-stamp counter on the CPU. Each call reads the counter where
// it stands: clocks are neither merged nor moved over each other, barriers, atomics and stores.
Val<u64> clock_cycles(dsl::Where w = dsl::Where::current());
// Nanoseconds since some point in time that is the same for all threads of a launch; never less in a later call of a thread.
Val<u64> global_time(dsl::Where w = dsl::Where::current());

}  // namespace kiln
