#include "kiln/dsl/composed.h"

#include <cmath>
#include <vector>

#include "kiln/ir/expr.h"

namespace kiln::dsl {
namespace {

using ir::Opcode;
using ir::Type;

using X = ir::Expr;

Type unsigned_of(Type t) {
  switch (t) {
    case Type::I8: return Type::U8;
    case Type::I16: return Type::U16;
    case Type::I32: return Type::U32;
    case Type::I64: return Type::U64;
    default: return t;
  }
}

// f16 and bf16 by way of f32: the factor has more bits than they.
X scaled(X x, double factor) {
  const X wide = ir::is_half(x.type()) ? x.cast(Type::F32) : x;
  const X product = wide * wide.like(factor);
  return ir::is_half(x.type()) ? product.cast(x.type()) : product;
}

// Half away from zero; -0 and what rounds to it keep the sign.
X round_away(X x) {
  const X whole = x.unary(Opcode::Trunc);
  const X part = (x - whole).unary(Opcode::Abs);
  const X up = x.like(0.5) <= part;  // not of infinity, whose part is NaN
  const X one = x.like(1).binary(Opcode::CopySign, x);
  const X next = whole + one;
  return select(up, next, whole);
}

// The remainder has the sign of the divisor, a zero too.
X mod_floor(X x, X y) {
  const X r = x % y;
  if (ir::is_float(x.type())) {
    const X zero = x.like(0);
    const X is_zero = r == zero;
    const X signed_zero = zero.binary(Opcode::CopySign, y);
    const X r_below = r < zero;
    const X other = r_below ^ (y < zero);
    const X moved = r + y;
    const X value = select(other, moved, r);
    return select(is_zero, signed_zero, value);
  }
  if (!ir::is_signed(x.type())) return r;
  const X zero = x.bits(0);
  const X some = r != zero;
  const X other = (r ^ y) < zero;
  const X moved = r + y;
  return select(some & other, moved, r);
}

X add_sat(X x, X y) {
  const X sum = x + y;
  if (!ir::is_signed(x.type())) {
    const X wrapped = sum < x;
    return select(wrapped, x.bits(~std::uint64_t{0}), sum);
  }
  const X changed = x ^ sum;
  const X both = changed & (y ^ sum);
  const X overflow = both < x.bits(0);
  const X sign = x >> x.bits(ir::bit_width(x.type()) - 1);
  const X edge = sign ^ x.bits(ir::value_mask(x.type()) >> 1);
  return select(overflow, edge, sum);
}

X sub_sat(X x, X y) {
  const X difference = x - y;
  if (!ir::is_signed(x.type())) {
    const X below = x < y;
    return select(below, x.bits(0), difference);
  }
  const X unlike = x ^ y;
  const X both = unlike & (x ^ difference);
  const X overflow = both < x.bits(0);
  const X sign = x >> x.bits(ir::bit_width(x.type()) - 1);
  const X edge = sign ^ x.bits(ir::value_mask(x.type()) >> 1);
  return select(overflow, edge, difference);
}

// The upper or lower word of (high low) shifted by count mod width, in the form that compilers know for it.
X funnel(X high, X low, X count, bool left) {
  const Type t = high.type(), u = unsigned_of(t);
  const X h = high.as(u);
  const X l = low.as(u);
  const X n = count.as(u);
  const X last = n.bits(ir::bit_width(n.type()) - 1);
  const X by = n & last;
  const X rest = by ^ last;
  if (left) {
    const X upper = h << by;
    const X half = l >> l.bits(1);
    const X lower = half >> rest;
    return (upper | lower).as(t);
  }
  const X lower = l >> by;
  const X twice = h << h.bits(1);
  const X upper = twice << rest;
  return (upper | lower).as(t);
}

// Exchanges neighbouring groups of `group` bits.
X exchange(X x, unsigned group) {
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < ir::bit_width(x.type()); ++i) {
    if (i / group % 2 == 0) mask |= std::uint64_t{1} << i;
  }
  const X distance = x.bits(group);
  const X low = x.bits(mask);
  const X down = (x >> distance) & low;
  const X up = (x & low) << distance;
  return up | down;
}
X reverse(X x, unsigned smallest) {
  const Type t = x.type();
  X r = x.as(unsigned_of(t));
  for (unsigned group = ir::bit_width(x.type()) / 2; group >= smallest; group /= 2) r = exchange(r, group);
  return r.as(t);
}

X find_first_set(X x) {
  const X one = x.bits(1);
  const X place = x.unary(Opcode::Ctz) + one;
  const X none = x == x.bits(0);
  return select(none, x.bits(0), place);
}

X dp4a(X a, X b, X c) {
  const X top = a.bits(24);
  X sum = c;
  for (unsigned i = 0; i < 4; ++i) {
    const X up = a.bits(24 - 8 * i);
    const X x = (a << up) >> top;
    const X y = (b << up) >> top;
    const X product = x * y;
    sum = sum + product;
  }
  return sum;
}

X compose(Composed what, std::span<const X> in) {
  const X x = in[0];
  switch (what) {
    case Composed::Recip: return x.like(1) / x;
    case Composed::Degrees: return scaled(x, 0x1.ca5dc1a63c1f8p+5);  // 180 / pi
    case Composed::Radians: return scaled(x, 0x1.1df46a2529d39p-6);  // pi / 180
    case Composed::RoundAway: return round_away(x);
    case Composed::IsNan: return x != x;
    case Composed::IsInf: {
      const X magnitude = x.unary(Opcode::Abs);
      return magnitude == x.like(HUGE_VAL);
    }
    case Composed::IsFinite: {
      const X magnitude = x.unary(Opcode::Abs);
      return magnitude < x.like(HUGE_VAL);
    }
    case Composed::Clamp: {
      const X above = x.binary(Opcode::Max, in[1]);
      return above.binary(Opcode::Min, in[2]);
    }
    case Composed::ModFloor: return mod_floor(x, in[1]);
    case Composed::AddSat: return add_sat(x, in[1]);
    case Composed::SubSat: return sub_sat(x, in[1]);
    case Composed::RotateLeft: return funnel(x, x, in[1], true);
    case Composed::RotateRight: return funnel(x, x, in[1], false);
    case Composed::FunnelLeft: return funnel(x, in[1], in[2], true);
    case Composed::FunnelRight: return funnel(x, in[1], in[2], false);
    case Composed::ReverseBits: return reverse(x, 1);
    case Composed::ByteSwap: return reverse(x, 8);
    case Composed::FindFirstSet: return find_first_set(x);
    case Composed::Dp4a: return dp4a(x, in[1], in[2]);
  }
  return x;
}

}  // namespace

Handle compose(Composed what, std::span<const Operand> operands) {
  Recorder& r = Recorder::current(operands[0].where);
  ir::Builder& builder = r.at(operands[0].where);
  std::vector<X> in;
  for (const Operand& o : operands) in.emplace_back(builder, o.id);
  return r.handle(compose(what, in).id());
}

}  // namespace kiln::dsl
