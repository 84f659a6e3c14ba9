#include "host/shape.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace kiln::codegen::host {

using ir::Opcode;
using ir::Type;
using Kind = Shape::Kind;

Geometry::Geometry(const std::array<std::uint32_t, 3>& block) : dim(block) {
  threads = dim[0] * dim[1] * dim[2];
  full_warps = threads / kLanes;
  tail_lanes = threads % kLanes;
  std::vector<unsigned>& axes = order;
  for (unsigned a = 0; a < 3; ++a) {
    if (dim[a] > 1) axes.push_back(a);
  }
  if (axes.empty()) return;
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

Shape uniform(std::uint64_t low = 0, std::uint64_t high = kTop) { return {.kind = Kind::Uniform, .low = low, .high = high}; }
Shape varying(std::uint64_t low = 0, std::uint64_t high = kTop) { return {.kind = Kind::Varying, .low = low, .high = high}; }

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
    for (const ir::OpId use : s_.slot_uses[slot]) {
      common = common == ir::kNone ? s_[use].region : join(common, s_[use].region);
    }
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
    if (a.kind == b.kind && a.column == b.column && a.row == b.row) return r;
    return varying(r.low, r.high);
  }

  Shape axis(Geometry::Axis a, std::uint64_t high, bool exact) const {
    switch (a) {
      case Geometry::Axis::Zero: return uniform(0, high);
      case Geometry::Axis::Uniform: return uniform(0, high);
      case Geometry::Axis::Column: return {.kind = Kind::Affine, .column = 1, .row = 0, .exact = exact, .low = 0, .high = high};
      case Geometry::Axis::Row: return {.kind = Kind::Affine, .column = 0, .row = 1, .exact = exact, .low = 0, .high = high};
      case Geometry::Axis::Irregular: return varying(0, high);
    }
    return varying();
  }

  Shape shape(ir::OpId id, const ir::Op& op) {
    const Type t = op.type;
    const std::uint64_t top = ir::value_mask(t);
    switch (op.code) {
      case Opcode::Const: return uniform(op.imm, op.imm);
      case Opcode::BlockDim: return uniform(g_.dim[op.attr], g_.dim[op.attr]);
      case Opcode::BlockId: return uniform(0, std::numeric_limits<std::int32_t>::max());
      case Opcode::GridDim: return uniform(0, std::numeric_limits<std::int32_t>::max());
      case Opcode::ThreadId: return axis(g_.axis[op.attr], g_.dim[op.attr] - 1, true);
      // The launch refuses a grid whose 32-bit global ids would wrap.
      case Opcode::GlobalId: return axis(g_.axis[op.attr], ir::bit_width(t) == 32 ? top : (std::uint64_t{1} << 42), true);
      case Opcode::LaneId: return {.kind = Kind::Affine, .column = 1, .row = g_.width == kLanes ? 0 : static_cast<std::int64_t>(g_.width), .exact = true, .low = 0, .high = kLanes - 1};
      case Opcode::WarpId: return uniform(0, g_.warps() - 1);
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
        if (plain(0) && plain(1) && (in(0).high == 0 || in(1).high <= top / in(0).high)) set(in(0).low * in(1).low, in(0).high * in(1).high);
        break;
      case Opcode::Shl:
        if (plain(0) && in(1).high < ir::bit_width(t) && in(0).high <= top >> in(1).high) set(in(0).low << in(1).low, in(0).high << in(1).high);
        break;
      case Opcode::Shr:
        if (plain(0)) set(in(1).high < 64 ? in(0).low >> in(1).high : 0, in(1).low < 64 ? in(0).high >> in(1).low : 0);
        break;
      case Opcode::And:
        set(0, std::min(in(0).high, in(1).high));
        break;
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

  const ir::Kernel& k_;
  const Structure& s_;
  const Geometry& g_;
  Shapes& out_;
  bool changed_ = false, no_wrap_ = false;
};

}  // namespace

Shapes::Shapes(const ir::Kernel& kernel, const Structure& structure, const Geometry& geometry)
    : value(kernel.ops.size()), slot(kernel.slots.size()), coherent(kernel.slots.size(), 1), set_first(kernel.slots.size(), 0), divergent(kernel.ops.size(), 0) {
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
