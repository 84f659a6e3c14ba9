#include "launch_draw.h"

#include <algorithm>

#include "kiln/ir/floats.h"
#include "requirement_solver.h"
#include "values.h"

namespace kiln::cli {
namespace {

using ir::Opcode;

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 20;

// Which sources (parameters) a value may come from, one bit each; parameters beyond the 64th share the last bit.
using Sources = std::uint64_t;
Sources bit_of(std::size_t param) { return Sources{1} << std::min<std::size_t>(param, 63); }

// What flows into bounds of loops, conditions within loops and coordinates, through values, slots and memory. Wide: what is drawn small
// although it need not be is only drawn less widely.
class Flow {
 public:
  explicit Flow(const ir::Kernel& kernel)
      : kernel_(kernel), value_(kernel.ops.size()), slot_(kernel.slots.size()), mem_(kernel.mems.size()) {
    for (std::size_t p = 0; p < kernel.params.size(); ++p)
      if (kernel.params[p].is_buffer && kernel.params[p].mem < mem_.size()) mem_[kernel.params[p].mem] |= bit_of(p);
    do changed_ = false, region(0, 0);
    while (changed_);
  }
  Sources steering() const { return steering_; }

 private:
  void add(Sources& to, Sources from) {
    changed_ = changed_ || (to | from) != to;
    to |= from;
  }
  Sources operands(const ir::Op& op) const {
    Sources all = 0;
    for (const ir::ValueId v : op.operands) all |= value_[v];
    return all;
  }
  // `above`: what decided whether the region runs.
  void region(ir::RegionId id, int loops) {
    for (const ir::OpId o : kernel_.regions[id].ops) {
      const ir::Op& op = kernel_.op(o);
      Sources from = operands(op);
      const ir::Form form = ir::info(op.code).form;
      if (op.code == Opcode::Param) from |= bit_of(op.index);
      if (form == ir::Form::SlotGet) from |= slot_[op.index];
      if (form == ir::Form::SlotSet) add(slot_[op.index], from);
      if (ir::is_access(op.code)) {
        const std::size_t rank = kernel_.mems[op.index].rank;
        Sources stored = 0;
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
          if (i < rank) add(steering_, value_[op.operands[i]]);
          else stored |= value_[op.operands[i]];
        }
        add(mem_[op.index], stored);
        from = mem_[op.index];
      }
      const bool loop = op.code == Opcode::For || op.code == Opcode::While;
      if (loop || op.code == Opcode::Yield || (loops > 0 && (op.code == Opcode::If || op.code == Opcode::Switch))) add(steering_, from);
      add(value_[o], from);
      for (const ir::RegionId r : op.regions) region(r, loops + (loop ? 1 : 0));
    }
  }

  const ir::Kernel& kernel_;
  std::vector<Sources> value_, slot_, mem_;
  Sources steering_ = 0;
  bool changed_ = false;
};

std::string text_of(const std::vector<std::uint64_t>& extents) {
  std::string text;
  for (const std::uint64_t e : extents) text += (text.empty() ? "" : "x") + std::to_string(e);
  return text;
}

}  // namespace

LaunchDraw::LaunchDraw(const ir::Prepared& kernel, const GivenParts& given)
    : kernel_(kernel), given_(given), params_(kernel.kernel.params.size()) {
  find_roles();
}

void LaunchDraw::find_roles() {
  const ir::Kernel& k = kernel_.kernel;
  const Sources steering = Flow(k).steering();
  for (std::size_t p = 0; p < params_.size(); ++p) params_[p].small = (steering & bit_of(p)) != 0;
  for (const ir::Op& op : k.ops)
    if (op.code == Opcode::ThreadId || op.code == Opcode::BlockId || op.code == Opcode::GlobalId || op.code == Opcode::BlockDim ||
        op.code == Opcode::GridDim)
      if (op.attr < 3) uses_axis_[op.attr] = true;
}

// One launch in the making: sizes first, values last.
class LaunchDraw::Attempt {
 public:
  Attempt(LaunchDraw& draw, std::uint64_t seed, unsigned size)
      : draw_(draw), kernel_(draw.kernel_.kernel), given_(draw.given_), random_(seed), size_(size) {}

  std::optional<OneLaunch> make() {
    shapes();
    sizes();
    scalars();
    RequirementSolver solver(kernel_, launch_, fixed(), random_);
    if (!solver.solve()) {
      draw_.unmet_ = solver.unmet();
      return std::nullopt;
    }
    const std::uint64_t threads = std::uint64_t{launch_.block[0]} * launch_.block[1] * launch_.block[2];
    if (threads == 0 || threads > most_threads() || launch_.block[2] > 64) return std::nullopt;
    if (!contents()) return std::nullopt;
    return std::move(launch_);
  }

 private:
  std::uint64_t most_threads() const { return kernel_.max_threads != 0 ? std::min<std::uint64_t>(kernel_.max_threads, 1024) : 1024; }

  FixedParts fixed() const {
    FixedParts parts;
    parts.grid = given_.grid.has_value();
    parts.block = given_.block.has_value() || kernel_.has_block_size();
    for (std::size_t p = 0; p < kernel_.params.size(); ++p) parts.arguments.push_back(is_given(p));
    return parts;
  }
  bool is_given(std::size_t p) const { return p < given_.arguments.size() && given_.arguments[p].has_value(); }

  void shapes() {
    using Shape = std::array<std::uint32_t, 3>;
    static const std::vector<Shape> rows{{32, 1, 1}, {1, 1, 1},   {7, 1, 1},  {33, 1, 1}, {64, 1, 1},
                                         {45, 1, 1}, {128, 1, 1}, {31, 1, 1}, {256, 1, 1}};
    static const std::vector<Shape> planes{{8, 8, 1}, {16, 16, 1}, {5, 7, 1}, {32, 4, 1}, {1, 1, 1}, {32, 8, 1}, {16, 3, 1}};
    static const std::vector<Shape> boxes{{4, 4, 2}, {8, 4, 4}, {3, 5, 3}, {1, 1, 1}, {16, 2, 2}};
    if (kernel_.has_block_size()) {
      launch_.block = kernel_.block_size;
    } else {
      const std::vector<Shape>& shapes = draw_.uses_axis_[2] ? boxes : draw_.uses_axis_[1] ? planes : rows;
      std::vector<Shape> fitting;
      for (const Shape& s : shapes)
        if (std::uint64_t{s[0]} * s[1] * s[2] <= most_threads()) fitting.push_back(s);
      launch_.block = fitting.empty() ? Shape{1, 1, 1} : random_.pick(fitting);
    }
    for (std::size_t axis = 0; axis < 3; ++axis)
      launch_.grid[axis] = draw_.uses_axis_[axis] ? 1 + static_cast<std::uint32_t>(random_.below(axis == 0 ? std::min(size_, 8u) : 3)) : 1;
    if (given_.block) launch_.block = *given_.block;
    if (given_.grid) launch_.grid = *given_.grid;
  }

  // One length an axis for most buffers, so that sizes that have to agree mostly do: what the grid covers, less, or more.
  void sizes() {
    std::uint64_t along[3];
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::uint64_t threads = std::uint64_t{launch_.grid[axis]} * launch_.block[axis];
      const std::uint64_t less = threads > 1 ? random_.below(std::min<std::uint64_t>(threads, 40)) : 0;
      along[axis] = random_.chance(40) ? threads : random_.chance(75) ? threads - less : threads + random_.below(20);
    }
    const bool square = random_.chance(50);
    for (std::size_t p = 0; p < kernel_.params.size(); ++p) {
      const ir::Param& param = kernel_.params[p];
      Argument a;
      if (is_given(p)) {
        launch_.arguments.push_back(*given_.arguments[p]);
        continue;
      }
      a.is_buffer = param.is_buffer;
      a.type = param.is_buffer ? kernel_.mems[param.mem].element : param.type;
      if (param.is_buffer) {
        const ir::Mem& mem = kernel_.mems[param.mem];
        a.access = mem.access;
        for (std::size_t d = 0; d < mem.rank; ++d) {
          const std::size_t axis = std::min<std::size_t>(mem.rank - 1 - d, 2);
          std::uint64_t extent = square ? along[0] : along[axis];
          if (mem.rank > 2) extent = std::min<std::uint64_t>(extent, 40);
          if (random_.chance(8)) extent = random_.below(8) == 0 ? 0 : 1 + random_.below(70);
          a.extents.push_back(extent);
        }
      }
      launch_.arguments.push_back(std::move(a));
    }
    if (given_.shared_bytes) {
      launch_.shared_bytes = *given_.shared_bytes;
    } else if (draw_.kernel_.shared.dynamic_mem != ir::kNone) {
      const ir::Mem& mem = kernel_.mems[draw_.kernel_.shared.dynamic_mem];
      launch_.shared_bytes = launch_.block[0] * launch_.block[1] * launch_.block[2] * byte_size(mem.element);
    }
  }

  std::uint64_t shortest() const {
    std::uint64_t least = 16;
    for (const Argument& a : launch_.arguments)
      for (const std::uint64_t e : a.extents) least = std::min(least, std::max<std::uint64_t>(e, 1));
    return least;
  }

  void scalars() {
    for (std::size_t p = 0; p < kernel_.params.size(); ++p) {
      Argument& a = launch_.arguments[p];
      if (is_given(p) || a.is_buffer) continue;
      if (!draw_.params_[p].small) {
        a.bits = random_.chance(40) ? special_value(random_, a.type) : limited_value(random_, a.type, 100);
      } else if (ir::is_real(a.type)) {
        a.bits = limited_value(random_, a.type, 8);
      } else {  // a size, most likely
        std::vector<std::uint64_t> usual{0, 1, 2, 3};
        for (const Argument& b : launch_.arguments)
          for (const std::uint64_t e : b.extents)
            if (e < 4096) usual.insert(usual.end(), 3, e);
        a.bits = random_.pick(usual) & ir::value_mask(a.type);
      }
    }
  }

  // Contents and the text of each argument, as `kiln run` takes it. False: too large.
  bool contents() {
    const std::uint64_t least = shortest();
    for (std::size_t p = 0; p < kernel_.params.size(); ++p) {
      Argument& a = launch_.arguments[p];
      if (is_given(p)) continue;
      const std::string type(ir::name(a.type));
      if (!a.is_buffer) {
        const bool nan = ir::is_real(a.type) && ir::is_nan(a.type, a.bits);  // of many, one is written so
        if (nan) a.bits = parse_value(a.type, "nan");
        a.text = type + ":" + value_text(a.type, a.bits);
        continue;
      }
      std::uint64_t elements = 1;
      for (const std::uint64_t e : a.extents)
        if (__builtin_mul_overflow(elements, e, &elements) || elements > kMostElements) return false;
      a.bytes.assign(elements * byte_size(a.type), 0);
      const std::string extents = text_of(a.extents);
      if (a.access == ir::Access::Out) {
        a.text = "out:" + type + ":" + extents;
        continue;
      }
      const std::uint64_t seed = random_.next() >> 40, limit = draw_.params_[p].small ? (ir::is_real(a.type) ? 8 : least) : 0;
      fill_random(a.type, a.bytes, seed, limit);
      a.text = (a.access == ir::Access::In ? "in:" : "inout:") + type + ":" + extents + ":random:" + std::to_string(seed) +
               (limit != 0 ? ":" + std::to_string(limit) : "");
    }
    return true;
  }

  LaunchDraw& draw_;
  const ir::Kernel& kernel_;
  const GivenParts& given_;
  Random random_;
  unsigned size_;
  OneLaunch launch_;
};

std::optional<OneLaunch> LaunchDraw::draw(std::uint64_t seed, unsigned size) {
  for (std::uint64_t attempt = 0; attempt < 50; ++attempt)
    if (auto launch = Attempt(*this, seed * 1000 + attempt, size).make()) return launch;
  return std::nullopt;
}

}  // namespace kiln::cli
