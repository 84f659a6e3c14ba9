// Numbers of the bounds prover: wide enough that no sum or product of two values of a type wraps. Private to ir/.
#pragma once
#include "analysis_bounds_prover.h"

namespace kiln::ir {

inline constexpr int kProverDepth = 12;         // how many steps a question goes back
inline constexpr unsigned kProverBudget = 400;  // and in how many steps in all

// Infinity stays infinity: "don't know" plus anything is "don't know".
inline Prover::Num plus(Prover::Num a, Prover::Num b) {
  if (a >= Prover::kInfinity || b >= Prover::kInfinity) return Prover::kInfinity;
  if (a <= -Prover::kInfinity || b <= -Prover::kInfinity) return -Prover::kInfinity;
  return a + b;
}

inline Prover::Num type_min(Type t) { return is_signed(t) ? -(Prover::Num{1} << (bit_width(t) - 1)) : Prover::Num{0}; }
inline Prover::Num type_max(Type t) {
  if (t == Type::Bool) return 1;
  return (Prover::Num{1} << (is_signed(t) ? bit_width(t) - 1 : bit_width(t))) - 1;
}
inline bool countable(Type t) { return is_integer(t) || is_bool(t); }

// The smallest 2^n - 1 not below a non-negative value.
inline Prover::Num all_bits(Prover::Num v) {
  Prover::Num m = 0;
  while (m < v) m = m * 2 + 1;
  return m;
}

}  // namespace kiln::ir
