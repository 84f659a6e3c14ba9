#include "host/shape.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace kiln::codegen::host {

using ir::Opcode;
using ir::Type;
using Kind = Shape::Kind;

namespace {

constexpr std::uint32_t kMostThreads = 1024;
constexpr std::array<std::uint32_t, 3> kLongest{1024, 1024, 64};  // of a block that is given at launch, which the launch sees to

}  // namespace

bool is_block_form(const std::array<std::uint32_t, 3>& block) {
  if (block == std::array<std::uint32_t, 3>{0, 1, 1} || block == std::array<std::uint32_t, 3>{0, 0, 0}) return true;
  std::uint64_t threads = 1;
  for (const std::uint32_t n : block) {
    if (n == 0 || n > kMostThreads) return false;
    threads *= n;
  }
  return threads <= kMostThreads;
}

Geometry::Geometry(const std::array<std::uint32_t, 3>& block) : dim(block) {
  for (unsigned a = 0; a < 3; ++a) {
    at_launch[a] = dim[a] == 0;
    if (at_launch[a]) dim[a] = kLongest[a];
  }
  most_warps = exact() ? (dim[0] * dim[1] * dim[2] + kLanes - 1) / kLanes : kMostThreads / kLanes;
  std::vector<unsigned>& axes = order;
  for (unsigned a = 0; a < 3; ++a) {
    if (dim[a] > 1) axes.push_back(a);
  }
  if (axes.empty()) return;
  if (at_launch[1]) {  // of any shape: how its rows lie in warps is not known
    for (const unsigned a : axes) axis[a] = Axis::Irregular;
    return;
  }
  const std::uint32_t n0 = dim[axes[0]];
  if (axes.size() == 1 || n0 % kLanes == 0) {
    axis[axes[0]] = Axis::Column;
    for (std::size_t i = 1; i < axes.size(); ++i) axis[axes[i]] = Axis::Uniform;
    return;
  }
  const bool rows = kLanes % n0 == 0 && (axes.size() == 2 || n0 * dim[axes[1]] % kLanes == 0);
  if (!rows) {
    for (const unsigned a : axes) axis[a] = Axis::Irregular;
    return;
  }
  width = n0;
  axis[axes[0]] = Axis::Column;
  axis[axes[1]] = Axis::Row;
  if (axes.size() == 3) axis[axes[2]] = Axis::Uniform;
}

namespace {

constexpr std::uint64_t kTop = ~std::uint64_t{0};

constexpr unsigned kAllZero = 64;

Shape uniform(std::uint64_t low = 0, std::uint64_t high = kTop) { return {.kind = Kind::Uniform, .low = low, .high = high}; }
Shape varying(std::uint64_t low = 0, std::uint64_t high = kTop) { return {.kind = Kind::Varying, .low = low, .high = high}; }

unsigned trailing_zeros(std::uint64_t v) { return v == 0 ? kAllZero : static_cast<unsigned>(std::countr_zero(v)); }

bool fits_stride(std::int64_t s) { return s > -(std::int64_t{1} << 20) && s < (std::int64_t{1} << 20); }

// The largest bit pattern that means the same number read as signed and as unsigned, for signed types; the type's maximum otherwise.
std::uint64_t plain_max(Type t) { return ir::is_signed(t) ? ir::value_mask(t) >> 1 : ir::value_mask(t); }

class Analysis {
 public:
  Analysis(const ir::Kernel& kernel, const Structure& structure, const Geometry& geometry, Shapes& out)
      : k_(kernel), s_(structure), g_(geometry), out_(out) {}

  void run() {
    // Optimistic: shapes only ever become less uniform, so this ends.
    do {
      changed_ = false;
      region(0);
      for (std::uint32_t slot = 0; slot < k_.slots.size(); ++slot) update_slot(slot);
    } while (changed_);
  }

 private:
  const Shape& of(ir::ValueId v) const { return out_.value[v]; }

  void raise(Shape& old, Shape now) {
    if (now.kind < old.kind) now = old;
    if (now == old) return;
    old = now;
    changed_ = true;
  }
  void diverge(ir::OpId id) {
    if (!out_.divergent[id]) changed_ = true;
    out_.divergent[id] = 1;
  }

  void region(ir::RegionId r) {
    for (const ir::OpId id : k_.regions[r].ops) {
      const ir::Op& op = k_.op(id);
      if (op.type != Type::Void) raise(out_.value[id], clamp(op.type, shape(id, op)));
      for (const ir::RegionId inner : op.regions) region(inner);
      control(id, op);
    }
  }

  Shape clamp(Type t, Shape s) const {
    if (!ir::is_integer(t)) {
      s.low = 0;
      s.high = kTop;
    } else if (s.high > ir::value_mask(t)) {
      s.low = 0;
      s.high = ir::value_mask(t);
    }
    return s;
  }

  void control(ir::OpId id, const ir::Op& op) {
    switch (op.code) {
      case Opcode::If:
      case Opcode::Switch:
        if (not_uniform(op.operands[0])) diverge(id);
        break;
      case Opcode::For:
        for (const ir::ValueId v : op.operands) {
          if (not_uniform(v)) diverge(id);
        }
        leaves(id);
        break;
      case Opcode::While:
        if (not_uniform(k_.op(k_.regions[op.regions[0]].ops.back()).operands[0])) diverge(id);
        leaves(id);
        break;
      default: break;
    }
  }
  bool not_uniform(ir::ValueId v) const { return of(v).kind > Kind::Uniform; }

  // A loop diverges too when a break or continue of it is under a divergent condition.
  void leaves(ir::OpId loop) {
    for (const ir::OpId leave : s_.leaves[loop]) {
      for (ir::OpId around = s_.around(leave); around != loop; around = s_.around(around)) {
        if (out_.divergent[around]) diverge(loop);
      }
    }
  }

  // The innermost region that holds all uses of a slot.
  ir::RegionId home(std::uint32_t slot) const {
    ir::RegionId common = ir::kNone;
    for (const ir::OpId use : s_.slot_uses[slot]) { common = common == ir::kNone ? s_[use].region : join(common, s_[use].region); }
    return common;
  }
  ir::RegionId join(ir::RegionId a, ir::RegionId b) const {
    std::vector<ir::RegionId> path;
    for (ir::RegionId r = a;; r = s_[s_.parent[r]].region) {
      path.push_back(r);
      if (r == 0) break;
    }
    for (ir::RegionId r = b;; r = s_[s_.parent[r]].region) {
      if (std::find(path.begin(), path.end(), r) != path.end()) return r;
    }
  }

  void update_slot(std::uint32_t slot) {
    const auto& uses = s_.slot_uses[slot];
    if (uses.empty()) return;
    const ir::RegionId common = home(slot);
    const ir::Op& first = k_.op(uses[0]);
    const bool set_first = first.code == Opcode::Set && s_[uses[0]].region == common;
    out_.set_first[slot] = set_first;
    // Without a set at its beginning, the region must be entered by the same lanes every time.
    bool coherent = set_first || all_together(common);
    for (const ir::OpId use : uses) {
      if (k_.op(use).code != Opcode::Set) continue;
      for (ir::RegionId r = s_[use].region; r != common; r = s_[s_.parent[r]].region) {
        if (out_.divergent[s_.parent[r]]) coherent = false;
      }
    }
    if (coherent != static_cast<bool>(out_.coherent[slot])) changed_ = true;
    out_.coherent[slot] = coherent;
    Shape all = set_first ? Shape{} : uniform();
    for (const ir::OpId use : uses) {
      if (k_.op(use).code == Opcode::Set) all = join(all, of(k_.op(use).operands[0]));
    }
    if (!coherent && all.kind != Kind::None) all = varying();
    all.low = 0;
    all.high = ir::is_integer(k_.slots[slot].type) ? ir::value_mask(k_.slots[slot].type) : kTop;
    all.exact = false;
    all.zeros = 0;
    const Shape& old = out_.slot[slot];
    if (old.affine() && all.affine() && (old.column != all.column || old.row != all.row)) all = varying(all.low, all.high);
    raise(out_.slot[slot], all);
  }

  bool all_together(ir::RegionId r) const {
    for (; r != 0; r = s_[s_.parent[r]].region) {
      if (out_.divergent[s_.parent[r]]) return false;
    }
    return true;
  }

  static Shape join(const Shape& a, const Shape& b) {
    if (a.kind == Kind::None) return b;
    if (b.kind == Kind::None) return a;
    Shape r = a;
    r.low = std::min(a.low, b.low);
    r.high = std::max(a.high, b.high);
    r.exact = a.exact && b.exact;
    r.zeros = std::min(a.zeros, b.zeros);
    if (a.kind == b.kind && a.column == b.column && a.row == b.row) return r;
    return varying(r.low, r.high);
  }

  // The thread index along an axis.
  Shape thread(unsigned a) const {
    const std::uint64_t high = g_.dim[a] - 1;
    switch (g_.axis[a]) {
      case Geometry::Axis::Zero:
      case Geometry::Axis::Uniform: return uniform(0, high);
      // A warp begins at a multiple of 32 threads.
      case Geometry::Axis::Column:
        return {.kind = Kind::Affine,
                .column = 1,
                .row = 0,
                .exact = true,
                .low = 0,
                .high = high,
                .zeros = g_.width < kLanes ? kAllZero : trailing_zeros(kLanes)};
      case Geometry::Axis::Row:
        return {
            .kind = Kind::Affine, .column = 0, .row = 1, .exact = true, .low = 0, .high = high, .zeros = trailing_zeros(kLanes / g_.width)};
      case Geometry::Axis::Irregular: return varying(0, high);
    }
    return varying();
  }

  Shape shape(ir::OpId id, const ir::Op& op) {
    const Type t = op.type;
    const std::uint64_t top = ir::value_mask(t);
    switch (op.code) {
      case Opcode::Const: return constant(op.imm);
      case Opcode::BlockDim: return g_.at_launch[op.attr] ? uniform(1, g_.dim[op.attr]) : constant(g_.dim[op.attr]);
      case Opcode::BlockId: return uniform(0, std::numeric_limits<std::int32_t>::max());
      case Opcode::GridDim: return uniform(0, std::numeric_limits<std::int32_t>::max());
      case Opcode::ThreadId: return thread(op.attr);
      case Opcode::GlobalId: {
        // The launch refuses a grid whose 32-bit global ids would wrap.
        Shape r = thread(op.attr);
        r.high = ir::bit_width(t) == 32 ? top : std::uint64_t{1} << 42;
        r.zeros = g_.at_launch[op.attr] ? 0 : std::min(r.zeros, trailing_zeros(g_.dim[op.attr]));
        return r;
      }
      case Opcode::LaneId:
        return {.kind = Kind::Affine,
                .column = 1,
                .row = g_.width == kLanes ? 0 : static_cast<std::int64_t>(g_.width),
                .exact = true,
                .low = 0,
                .high = kLanes - 1,
                .zeros = kAllZero};
      case Opcode::WarpId: return uniform(0, g_.most_warps - 1);
      case Opcode::Get: return out_.slot[op.index];
      case Opcode::Load: {
        for (const ir::ValueId c : op.operands) {
          if (of(c).kind == Kind::None) return {};
        }
        if (k_.mems[op.index].space == ir::Space::Local) return varying();
        for (const ir::ValueId c : op.operands) {
          if (!of(c).uniform()) return varying();
        }
        return uniform();
      }
      case Opcode::For: {
        const Shape &lo = of(op.operands[0]), &hi = of(op.operands[1]), &step = of(op.operands[2]);
        if (lo.kind == Kind::None || step.kind == Kind::None) return {};
        Shape r = lo;
        if (!step.uniform()) r = varying();
        // lo <= i < hi, and i never passes hi: so no wrap either.
        const bool ranged = lo.high <= plain_max(t) && hi.high <= plain_max(t) && hi.kind != Kind::None && hi.high > 0;
        r.low = ranged ? lo.low : 0;
        r.high = ranged ? std::max(lo.low, hi.high - 1) : top;
        r.exact = lo.exact && r.column >= 0 && r.row >= 0;
        r.zeros = std::min(lo.zeros, step.zeros);
        return r;
      }
      case Opcode::ShuffleIdx:
      case Opcode::ShuffleUp:
      case Opcode::ShuffleDown:
      case Opcode::ShuffleXor: {
        const Shape& v = of(op.operands[0]);
        return v.kind <= Kind::Uniform ? v : varying();
      }
      case Opcode::WarpScan:
      case Opcode::WarpScanExclusive: return varying();
      default: break;
    }
    switch (ir::info(op.code).uniformity) {
      case ir::UniformityRule::Grid:
      case ir::UniformityRule::Block:
      case ir::UniformityRule::Warp: return uniform();
      case ir::UniformityRule::Operands: return arithmetic(id, op);
      default: return varying();
    }
  }

  static Shape constant(std::uint64_t bits) {
    Shape r = uniform(bits, bits);
    r.zeros = trailing_zeros(bits);
    return r;
  }

  // How far the last lane is from the base, or nothing where a lane lies below it.
  std::uint64_t reach(const Shape& s) const {
    if (s.uniform()) return 0;
    if (s.column < 0 || s.row < 0) return kTop;
    return static_cast<std::uint64_t>(s.column) * (g_.width - 1) + static_cast<std::uint64_t>(s.row) * (kLanes / g_.width - 1);
  }
  // The offsets of all lanes fit in the low bits that are zero in the base and that `bits` keeps.
  bool offsets_stay_below(const Shape& s, unsigned bits) const {
    const unsigned n = std::min(s.zeros, bits);
    return reach(s) < (n >= 63 ? kTop : std::uint64_t{1} << n);
  }

  Shape arithmetic(ir::OpId, const ir::Op& op) {
    bool all_uniform = true, any_varying = false;
    for (const ir::ValueId v : op.operands) {
      if (of(v).kind == Kind::None) return {};
      all_uniform &= of(v).uniform();
      any_varying |= of(v).varying();
    }
    Shape r = range(op);
    r.kind = all_uniform ? Kind::Uniform : Kind::Varying;
    if (all_uniform || any_varying || !ir::is_integer(op.type)) return r;
    return affine(op, r);
  }

  // All operands uniform or affine, at least one affine; `r` has the range, full when the operation may wrap.
  Shape affine(const ir::Op& op, Shape r) {
    const auto in = [&](unsigned i) -> const Shape& { return of(op.operands[i]); };
    const auto strides = [&](std::int64_t column, std::int64_t row) {
      if (!fits_stride(column) || !fits_stride(row)) return r;
      r.kind = column == 0 && row == 0 ? Kind::Uniform : Kind::Affine;
      r.column = column;
      r.row = row;
      return r;
    };
    const auto exact_in = [&](unsigned i) { return in(i).uniform() || in(i).exact; };
    switch (op.code) {
      case Opcode::Add:
        r.exact = no_wrap_ && exact_in(0) && exact_in(1);
        // Offsets below the lowest bit that a uniform operand may have set never carry: base and offset are apart.
        for (unsigned i = 0; i < 2; ++i) {
          const Shape &u = in(i), &a = in(1 - i);
          if (u.uniform() && a.exact && u.zeros < 64 && a.high < std::uint64_t{1} << u.zeros) r.exact = true;
        }
        return strides(in(0).column + in(1).column, in(0).row + in(1).row);
      case Opcode::Sub:
        r.exact = no_wrap_ && exact_in(0) && exact_in(1);
        return strides(in(0).column - in(1).column, in(0).row - in(1).row);
      case Opcode::Neg: return strides(-in(0).column, -in(0).row);
      case Opcode::Mul:
        for (unsigned i = 0; i < 2; ++i) {
          const Shape &a = in(i), &c = in(1 - i);
          if (!c.uniform() || c.low != c.high) continue;
          const std::int64_t factor = ir::sign_extend(op.type, c.low);
          if (!fits_stride(factor)) continue;
          r.exact = no_wrap_ && exact_in(i);
          return strides(a.column * factor, a.row * factor);
        }
        return r;
      case Opcode::Shl:
        if (!in(1).uniform() || in(1).low != in(1).high || in(1).low >= 20) return r;
        r.exact = no_wrap_ && exact_in(0);
        return strides(in(0).column << in(1).low, in(0).row << in(1).low);
      // By a power of two, where the offsets of the lanes lie below it: like a division of the base.
      case Opcode::Rem:
      case Opcode::Div:
      case Opcode::And:
      case Opcode::Shr: {
        const Shape &a = in(0), &c = in(1);
        if (!c.uniform() || c.low != c.high || !a.affine() || !a.exact || a.high > plain_max(op.type)) return r;
        const bool by_shift = op.code == Opcode::Shr, by_mask = op.code == Opcode::And;
        const std::uint64_t divisor = by_shift ? (c.low < 63 ? std::uint64_t{1} << c.low : 0) : by_mask ? c.low + 1 : c.low;
        if (!std::has_single_bit(divisor) || divisor > plain_max(op.type) || !offsets_stay_below(a, trailing_zeros(divisor))) return r;
        r.exact = true;
        return op.code == Opcode::Rem || by_mask ? strides(a.column, a.row) : strides(0, 0);
      }
      case Opcode::Select:
        if (!in(0).uniform() || in(1).kind != in(2).kind) return r;
        if (in(1).column != in(2).column || in(1).row != in(2).row) return r;
        r.exact = in(1).exact && in(2).exact;
        return strides(in(1).column, in(1).row);
      case Opcode::Cast:
      case Opcode::BitCast: {
        const Type from = k_.op(op.operands[0]).type;
        if (!ir::is_integer(from)) return r;
        const bool plain = in(0).exact && in(0).high <= plain_max(from) && in(0).high <= plain_max(op.type);
        r.exact = plain || (in(0).exact && ir::is_signed(from) == ir::is_signed(op.type) && ir::bit_width(op.type) >= ir::bit_width(from));
        if (ir::bit_width(op.type) > ir::bit_width(from) && !in(0).exact) return r;
        return strides(in(0).column, in(0).row);
      }
      default: return r;
    }
  }

  // The range of an integer result, from those of the operands. Sets no_wrap_.
  Shape range(const ir::Op& op) {
    Shape r;
    no_wrap_ = false;
    const Type t = op.type;
    if (!ir::is_integer(t)) return r;
    r.zeros = zeros(op);
    r.high = ir::value_mask(t);
    const std::uint64_t top = plain_max(t);
    const auto in = [&](unsigned i) -> const Shape& { return of(op.operands[i]); };
    const auto plain = [&](unsigned i) { return in(i).high <= plain_max(k_.op(op.operands[i]).type); };
    const auto set = [&](std::uint64_t low, std::uint64_t high) {
      r.low = low;
      r.high = high;
      no_wrap_ = true;
    };
    switch (op.code) {
      case Opcode::Add:
        if (plain(0) && plain(1) && in(0).high <= top - in(1).high) set(in(0).low + in(1).low, in(0).high + in(1).high);
        break;
      case Opcode::Sub:
        if (plain(0) && plain(1) && in(0).low >= in(1).high) set(in(0).low - in(1).high, in(0).high - in(1).low);
        break;
      case Opcode::Mul:
        if (plain(0) && plain(1) && (in(0).high == 0 || in(1).high <= top / in(0).high))
          set(in(0).low * in(1).low, in(0).high * in(1).high);
        break;
      case Opcode::Shl:
        if (plain(0) && in(1).high < ir::bit_width(t) && in(0).high <= top >> in(1).high)
          set(in(0).low << in(1).low, in(0).high << in(1).high);
        break;
      case Opcode::Shr:
        if (plain(0)) set(in(1).high < 64 ? in(0).low >> in(1).high : 0, in(1).low < 64 ? in(0).high >> in(1).low : 0);
        break;
      case Opcode::And: set(0, std::min(in(0).high, in(1).high)); break;
      case Opcode::Div:
        if (plain(0) && plain(1) && in(1).low > 0) set(in(0).low / in(1).high, in(0).high / in(1).low);
        break;
      case Opcode::Rem:
        if (plain(0) && plain(1) && in(1).low > 0) set(0, std::min(in(0).high, in(1).high - 1));
        break;
      case Opcode::Min:
        if (plain(0) && plain(1)) set(std::min(in(0).low, in(1).low), std::min(in(0).high, in(1).high));
        break;
      case Opcode::Max:
        if (plain(0) && plain(1)) set(std::max(in(0).low, in(1).low), std::max(in(0).high, in(1).high));
        break;
      case Opcode::Select: set(std::min(in(1).low, in(2).low), std::max(in(1).high, in(2).high)); break;
      case Opcode::Cast: {
        const Type from = k_.op(op.operands[0]).type;
        if (ir::is_bool(from)) {
          set(0, 1);
        } else if (ir::is_integer(from) && in(0).high <= plain_max(from) && in(0).high <= ir::value_mask(t)) {
          set(in(0).low, in(0).high);
        }
        break;
      }
      default: break;
    }
    return r;
  }

  unsigned zeros(const ir::Op& op) const {
    const auto in = [&](unsigned i) { return of(op.operands[i]).zeros; };
    const Shape& last = of(op.operands.back());
    const bool known = last.uniform() && last.low == last.high;
    switch (op.code) {
      case Opcode::Add:
      case Opcode::Sub:
      case Opcode::Or:
      case Opcode::Xor: return std::min(in(0), in(1));
      case Opcode::And: return std::max(in(0), in(1));
      case Opcode::Mul: return std::min(in(0) + in(1), kAllZero);
      case Opcode::Neg: return in(0);
      case Opcode::Shl:
        return known ? std::min<unsigned>(in(0) + static_cast<unsigned>(std::min<std::uint64_t>(last.low, 64)), kAllZero) : in(0);
      case Opcode::Shr: return known && last.low < in(0) ? in(0) - static_cast<unsigned>(last.low) : 0;
      case Opcode::Select: return std::min(in(1), in(2));
      case Opcode::Cast: return ir::is_integer(k_.op(op.operands[0]).type) ? in(0) : 0;
      default: return 0;
    }
  }

  const ir::Kernel& k_;
  const Structure& s_;
  const Geometry& g_;
  Shapes& out_;
  bool changed_ = false, no_wrap_ = false;
};

}  // namespace

Shapes::Shapes(const ir::Kernel& kernel, const Structure& structure, const Geometry& geometry)
    : value(kernel.ops.size()),
      slot(kernel.slots.size()),
      coherent(kernel.slots.size(), 1),
      set_first(kernel.slots.size(), 0),
      divergent(kernel.ops.size(), 0) {
  Analysis(kernel, structure, geometry, *this).run();
  // What no path reaches is as uniform as it looks.
  for (Shape& s : value) {
    if (s.kind == Kind::None) s.kind = Kind::Uniform;
  }
  for (Shape& s : slot) {
    if (s.kind == Kind::None) s.kind = Kind::Uniform;
  }
}

}  // namespace kiln::codegen::host
