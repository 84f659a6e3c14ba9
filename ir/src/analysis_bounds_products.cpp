// Products: the row-major index of a matrix that lies in a buffer of one dimension, r * w + c < h * w where r < h and c < w.
//
// Two products may wrap here. That of the extents, h * w, counts only where the ranges of h and w show that it fits its type: 32-bit
// extents multiplied in 64 bits do, in 32 bits they do not. That of the index may wrap, since of numbers that are not negative wrapping
// only ever takes something away.
#include <algorithm>

#include "analysis_bounds_numbers.h"
#include "analysis_bounds_prover.h"

namespace kiln::ir {

using Num = Prover::Num;

bool Prover::is_row_major(Node x) const {
  const Data& d = at(x);
  const auto product = [&](Node n) { return n != kNone && at(n).kind == Kind::Operation && at(n).code == Opcode::Mul; };
  return product(x) || (d.kind == Kind::Operation && d.code == Opcode::Add && (product(d.operand[0]) || product(d.operand[1])));
}

// x = p * q + c and y = P * q: with p <= P - 1 and c <= q + k it is x <= (P - 1) * q + q + k = y + k. Without c it is x <= y - q.
Num Prover::at_most_product(Node x, Node y, int depth) {
  if (!is_row_major(x) || !is_integer(at(x).type) || !exact(y, depth)) return kInfinity;  // exact: P and q are not negative either
  const Data whole = at(y), index = at(x);
  const bool alone = index.code == Opcode::Mul;
  Num best = kInfinity;
  for (int side = 0; side < (alone ? 1 : 2); ++side) {
    const Node row = alone ? x : index.operand[side], c = alone ? kNone : index.operand[1 - side];
    const Data product = at(row);
    if (product.kind != Kind::Operation || product.code != Opcode::Mul) continue;
    for (int i = 0; i < 4; ++i) {
      const Node p = product.operand[i & 1], q = product.operand[1 - (i & 1)];
      const Node rows = whole.operand[i >> 1], width = whole.operand[1 - (i >> 1)];
      if (q != width || !non_negative(p, depth) || at_most(p, rows, depth) > -1) continue;
      if (c == kNone) best = std::min(best, -lower(q, depth));
      else if (non_negative(c, depth)) best = std::min(best, at_most(c, q, depth));
    }
  }
  return best;
}

}  // namespace kiln::ir
