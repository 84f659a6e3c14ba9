// Which values, slots and regions are the same for a whole grid, block or warp. A forward analysis to a fixed point: every level starts as
// uniform as possible and only ever gets worse, so the iteration ends after at most a few sweeps (loops and slots feed back).
#include <algorithm>

#include "kiln/ir/analysis.h"

namespace kiln::ir {
namespace {

Level worse(Level a, Level b) { return std::max(a, b); }

class Sweep {
 public:
  explicit Sweep(const Kernel& kernel) : k_(kernel) {
    u_.value.assign(k_.ops.size(), Level::Grid);
    u_.slot.assign(k_.slots.size(), Level::Grid);
    u_.region.assign(k_.regions.size(), Level::Grid);
    find_stable_mems();
  }

  Uniformity run() {
    do {
      changed_ = false;
      sweep(0);
    } while (changed_);
    for (OpId id = 0; id < k_.ops.size(); ++id) {
      if (k_.ops[id].type == Type::Void) u_.value[id] = Level::Thread;
    }
    return std::move(u_);
  }

 private:
  // Memory that no thread of the launch can change: global buffers nobody writes, neither directly nor through a buffer that may alias.
  void find_stable_mems() {
    stable_.assign(k_.mems.size(), false);
    std::vector<bool> written(k_.mems.size(), false);
    for (const Op& op : k_.ops) {
      if (is_access(op.code) && info(op.code).form != Form::Load && op.index < written.size()) written[op.index] = true;
    }
    for (std::size_t m = 0; m < k_.mems.size(); ++m) stable_[m] = k_.mems[m].space == Space::Global && !written[m];
    for (const auto& [a, b] : k_.in_place) {
      if (a >= k_.params.size() || b >= k_.params.size() || !k_.params[a].is_buffer || !k_.params[b].is_buffer) continue;
      const std::uint32_t x = k_.params[a].mem, y = k_.params[b].mem;
      if (written[x]) stable_[y] = false;
      if (written[y]) stable_[x] = false;
    }
  }

  void raise(Level& level, Level to) {
    if (to > level) {
      level = to;
      changed_ = true;
    }
  }

  Level operands(const Op& op) const {
    Level l = Level::Grid;
    for (const ValueId v : op.operands) l = worse(l, u_.value[v]);
    return l;
  }

  // A thread id along an axis, where the declared block shape may tell more than "differs per thread".
  Level thread_id(unsigned axis) const {
    if (!k_.has_block_size()) return Level::Thread;
    if (k_.block_size[axis] == 1) return Level::Grid;
    std::uint64_t below = 1;  // threads that share one coordinate on this axis come in runs of this length
    for (unsigned a = 0; a < axis; ++a) below *= k_.block_size[a];
    return axis > 0 && below % 32 == 0 ? Level::Warp : Level::Thread;
  }

  Level value(const Op& op) const {
    switch (op.code) {
      case Opcode::ThreadId: return thread_id(op.attr);
      case Opcode::GlobalId: return worse(Level::Block, thread_id(op.attr));
      case Opcode::WarpId: {
        const std::uint64_t threads = std::uint64_t{k_.block_size[0]} * k_.block_size[1] * k_.block_size[2];
        return k_.has_block_size() && threads <= 32 ? Level::Grid : Level::Warp;
      }
      default: break;
    }
    switch (info(op.code).uniformity) {
      case UniformityRule::Operands: return operands(op);
      case UniformityRule::Grid: return Level::Grid;
      case UniformityRule::Block: return Level::Block;
      case UniformityRule::Warp: return Level::Warp;
      case UniformityRule::Thread: return Level::Thread;
      case UniformityRule::Memory: return stable_[op.index] ? operands(op) : Level::Thread;
      case UniformityRule::Slots: return op.code == Opcode::Get ? u_.slot[op.index] : Level::Thread;
    }
    return Level::Thread;
  }

  void enter(RegionId region, Level level) {
    raise(u_.region[region], level);
    sweep(region);
  }

  void sweep(RegionId region) {
    for (const OpId id : k_.regions[region].ops) {
      const Op& op = k_.ops[id];
      if (op.type != Type::Void) raise(u_.value[id], value(op));
      const Level here = u_.region[region];
      switch (op.code) {
        // After a set not executed by the whole group together, only some of its threads hold the new value.
        case Opcode::Set: raise(u_.slot[op.index], worse(here, u_.value[op.operands[0]])); break;
        case Opcode::If:
        case Opcode::Switch: {
          const Level inside = worse(here, operands(op));
          for (const RegionId r : op.regions) enter(r, inside);
          break;
        }
        case Opcode::For: loop(op, worse(here, operands(op))); break;
        case Opcode::While: loop(op, here); break;
        // The condition decides which threads stay in the loop, for both of its regions.
        case Opcode::Yield: raise(*loop_, u_.value[op.operands[0]]); break;
        // Threads part here for the rest of the loop (break) or of the iteration (continue), wherever it stands.
        case Opcode::Break:
        case Opcode::Continue: raise(*loop_, here); break;
        default: break;  // Return: returned threads no longer count
      }
    }
  }

  // One level for all regions of a loop: who is in one is in all. A later sweep carries what was found late in the body to its beginning.
  void loop(const Op& op, Level level) {
    for (const RegionId r : op.regions) level = worse(level, u_.region[r]);
    Level* const outer = loop_;
    Level inside = level;
    loop_ = &inside;
    for (const RegionId r : op.regions) enter(r, inside);
    for (const RegionId r : op.regions) raise(u_.region[r], inside);
    loop_ = outer;
  }

  const Kernel& k_;
  Uniformity u_;
  std::vector<bool> stable_;
  Level* loop_ = nullptr;
  bool changed_ = false;
};

}  // namespace

Uniformity analyze_uniformity(const Kernel& kernel) { return Sweep(kernel).run(); }

}  // namespace kiln::ir
