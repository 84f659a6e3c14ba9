// Operations among the lanes of a warp that are active at this point of the structured program. A lane in another branch, out of the loop,
// returned, or missing from a partial warp takes no part.
#pragma once
#include "kiln/dsl/value.h"

namespace kiln::warp {

inline constexpr u32 size = 32;

// The value of another lane: lane mod 32, own lane - distance, own lane + distance, own lane ^ mask. One's own value where that lane is not
// active or, but for idx, does not exist.
#define KILN_SHUFFLE(NAME, OPCODE, LANE)                                                                                                  \
  template <dsl::Dsl A>                                                                                                                   \
  auto NAME(A&& a, Use<u32> lane) {                                                                                                       \
    using T = dsl::value_t<A>;                                                                                                            \
    KILN_COMPUTES(T);                                                                                                                     \
    return Val<T>(dsl::binary(ir::Opcode::OPCODE, Use<T>(std::forward<A>(a), lane.where), lane));                                         \
  }                                                                                                                                       \
  template <dsl::Dsl A, dsl::Dsl L>                                                                                                       \
  requires(!DslOf<L, u32>)                                                                                                                \
  auto NAME(A&&, L&&) {                                                                                                                   \
    static_assert(dsl::never<L>, "kiln: the " LANE " of warp::" #NAME " is a u32; write cast<u32>(" LANE ").");                           \
    return dsl::trapped<Val<dsl::value_t<A>>>();                                                                                          \
  }                                                                                                                                       \
  template <dsl::Host A, class L>                                                                                                         \
  auto NAME(A, L&&) {                                                                                                                     \
    static_assert(dsl::never<A>, "kiln: warp::" #NAME " moves a value of the kernel, and this is a host value, the same in every lane."); \
    return dsl::trapped<Val<std::conditional_t<Scalar<A>, A, f32>>>();                                                                    \
  }
KILN_SHUFFLE(shfl_idx, ShuffleIdx, "lane")
KILN_SHUFFLE(shfl_up, ShuffleUp, "distance")
KILN_SHUFFLE(shfl_down, ShuffleDown, "distance")
KILN_SHUFFLE(shfl_xor, ShuffleXor, "mask")
#undef KILN_SHUFFLE

// Votes: whether any or all active lanes say true; ballot has bit l set where lane l does.
Val<bool> any(Use<bool> c);
Val<bool> all(Use<bool> c);
Val<u32> ballot(Use<bool> c);
// True in exactly one active lane, the lowest.
Val<bool> elect(dsl::Where w = dsl::Where::current());
// Orders memory among the active lanes.
void sync(dsl::Where w = dsl::Where::current());

namespace detail {
dsl::Handle combine(ir::Opcode code, ir::Combine how, const dsl::Operand& a);
}

// Reductions give every active lane the combined value (the butterfly 16, 8, 4, 2, 1). inclusive_ scans give each lane the combination of
// the active lanes up to its own, exclusive_ scans of those before it (the identity in the first).
#define KILN_COMBINE(NAME, HOW, CONDITION, SENTENCE)                                                                \
  template <dsl::Dsl A>                                                                                             \
  auto NAME(A&& a, dsl::Where w = dsl::Where::current()) {                                                          \
    using T = dsl::value_t<A>;                                                                                      \
    KILN_NEEDS(T, CONDITION, "kiln: warp::" #NAME " " SENTENCE);                                                    \
    return Val<T>(detail::combine(ir::Opcode::WarpReduce, ir::Combine::HOW, Use<T>(std::forward<A>(a), w)));        \
  }                                                                                                                 \
  template <dsl::Dsl A>                                                                                             \
  auto inclusive_##NAME(A&& a, dsl::Where w = dsl::Where::current()) {                                              \
    using T = dsl::value_t<A>;                                                                                      \
    KILN_NEEDS(T, CONDITION, "kiln: warp::inclusive_" #NAME " " SENTENCE);                                          \
    return Val<T>(detail::combine(ir::Opcode::WarpScan, ir::Combine::HOW, Use<T>(std::forward<A>(a), w)));          \
  }                                                                                                                 \
  template <dsl::Dsl A>                                                                                             \
  auto exclusive_##NAME(A&& a, dsl::Where w = dsl::Where::current()) {                                              \
    using T = dsl::value_t<A>;                                                                                      \
    KILN_NEEDS(T, CONDITION, "kiln: warp::exclusive_" #NAME " " SENTENCE);                                          \
    return Val<T>(detail::combine(ir::Opcode::WarpScanExclusive, ir::Combine::HOW, Use<T>(std::forward<A>(a), w))); \
  }
#define KILN_NUMBERS "needs numbers, not bool."
#define KILN_BITS "needs integers or bool."
KILN_COMBINE(sum, Add, Number<T>, KILN_NUMBERS)
KILN_COMBINE(product, Mul, Number<T> && !IsHalf<T>, "needs numbers, and none of f16 or bf16: cast<f32>(x), and back.")
KILN_COMBINE(min, Min, Number<T>, KILN_NUMBERS)
KILN_COMBINE(max, Max, Number<T>, KILN_NUMBERS)
KILN_COMBINE(and_, And, std::integral<T>, KILN_BITS)
KILN_COMBINE(or_, Or, std::integral<T>, KILN_BITS)
KILN_COMBINE(xor_, Xor, std::integral<T>, KILN_BITS)
#undef KILN_COMBINE
#undef KILN_NUMBERS
#undef KILN_BITS

}  // namespace kiln::warp
