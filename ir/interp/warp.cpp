#include "interp/warp.h"

#include "kiln/ir/eval.h"
#include "kiln/ir/message.h"

namespace kiln::interp {

using ir::Opcode;
using ir::Type;
using Kind = Inst::Kind;

Warp::Warp(Context& context, std::uint32_t number, std::uint32_t threads_of_block)
    : context_(context), kernel_(context.kernel), program_(context.program), number_(number) {
  const std::uint32_t first = number * 32, lanes = std::min(32u, threads_of_block - first);
  present_ = lanes == 32 ? ~Mask{0} : (Mask{1} << lanes) - 1;
  const auto& block = context.launch.block;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    const std::uint32_t t = first + lane;
    thread_[0][lane] = t % block[0];
    thread_[1][lane] = t / block[0] % block[1];
    thread_[2][lane] = t / block[0] / block[1];
  }
  values_.resize(kernel_.ops.size());
  slots_.resize(kernel_.slots.size());
  locals_.resize(kernel_.mems.size());
}

void Warp::start_block() {
  state_ = State::Running;
  pc_ = 0;
  active_ = present_;
  returned_ = 0;
  loop_ = ir::kNone;
  warp_phase_ = 0;
  frames_.clear();
  for (Lanes& s : slots_) s.fill(0);
  for (std::uint32_t m = 0; m < kernel_.mems.size(); ++m) {
    if (kernel_.mems[m].space == ir::Space::Local) context_.memory.start_local(m, locals_[m]);
  }
}

Who Warp::who(ir::OpId op, unsigned lane) const {
  return {context_.block_number, context_.phase, number_ * 32 + lane, number_, warp_phase_, op};
}

std::uint64_t Warp::iterations() const {
  std::uint64_t hash = 0;
  for (const Frame& f : frames_) hash = hash * 0x9e3779b97f4a7c15u + f.iteration;
  return hash;
}

void Warp::pass(std::uint64_t result) {
  Lanes& out = value(barrier());
  each([&](unsigned lane) { out[lane] = result; });
  ++pc_;
  state_ = State::Running;
}

Warp::State Warp::run() {
  while (state_ == State::Running && !context_.report.stopped()) step();
  return state_;
}

// --- control flow -------------------------------------------------------------------------------------------------------

void Warp::step() {
  if (++context_.steps > context_.launch.step_limit) {
    context_.report.misuse("steps", program_[pc_].op, ir::kNone,
                           "the step limit of " + std::to_string(context_.launch.step_limit) + " was reached; does a loop end?");
    context_.report.stop();
    return;
  }
  const Inst& inst = program_[pc_];
  const bool statement = inst.kind <= Kind::For;
  if (statement && active_ == 0) {
    pc_ = inst.end;
    return;
  }
  switch (inst.kind) {
    case Kind::Simple:
      if (ir::is_block_barrier(kernel_.op(inst.op).code)) {
        state_ = State::AtBarrier;
        return;
      }
      simple(inst.op);
      ++pc_;
      return;
    case Kind::If: {
      const Lanes& condition = value(kernel_.op(inst.op).operands[0]);
      Mask yes = 0;
      each([&](unsigned lane) { yes |= condition[lane] != 0 ? Mask{1} << lane : 0; });
      frames_.push_back({ .kind = Kind::If, .saved = active_ & ~yes });
      active_ = yes;
      pc_ = yes != 0 ? pc_ + 1 : inst.target;
      return;
    }
    case Kind::Else: {
      std::swap(frames_.back().saved, active_);
      pc_ = active_ != 0 ? pc_ + 1 : inst.target;
      return;
    }
    case Kind::EndIf:
      active_ |= frames_.back().saved;
      frames_.pop_back();
      ++pc_;
      return;
    case Kind::Switch:
      frames_.push_back({.kind = Kind::Switch, .saved = active_});
      active_ = 0;
      pc_ = inst.target;
      return;
    case Kind::Case: {
      const ir::Op& op = kernel_.op(inst.op);
      Frame& f = frames_.back();
      f.joined |= active_;
      active_ = f.saved;
      if (inst.number < op.cases.size()) {
        const Lanes& v = value(op.operands[0]);
        Mask same = 0;
        each([&](unsigned lane) { same |= v[lane] == op.cases[inst.number] ? Mask{1} << lane : 0; });
        active_ = same;
      }
      f.saved &= ~active_;
      pc_ = active_ != 0 ? pc_ + 1 : inst.target;
      return;
    }
    case Kind::EndSwitch:
      active_ |= frames_.back().joined;
      frames_.pop_back();
      ++pc_;
      return;
    case Kind::While:
      enter_loop(Kind::While);
      ++pc_;
      return;
    case Kind::For:
      begin_for(kernel_.op(inst.op), inst.op);
      pc_ = active_ != 0 ? pc_ + 1 : inst.target;
      return;
    case Kind::Yield: {
      const Lanes& condition = value(kernel_.op(inst.op).operands[0]);
      Mask stay = 0;
      each([&](unsigned lane) { stay |= condition[lane] != 0 ? Mask{1} << lane : 0; });
      frames_.back().saved |= active_ & ~stay;
      active_ = stay;
      pc_ = stay != 0 ? pc_ + 1 : inst.target;
      return;
    }
    case Kind::LoopBack: loop_back(inst); return;
    case Kind::End: state_ = State::Finished; return;
  }
}

void Warp::enter_loop(Kind kind) {
  frames_.push_back({.kind = kind, .outer_loop = loop_});
  loop_ = static_cast<std::uint32_t>(frames_.size() - 1);
}

void Warp::begin_for(const ir::Op& op, ir::OpId id) {
  enter_loop(Kind::For);
  const Lanes &lo = value(op.operands[0]), &hi = value(op.operands[1]);
  Mask in = 0;
  each([&](unsigned lane) {
    value(id)[lane] = lo[lane];
    const bool below =
        ir::is_signed(op.type) ? ir::sign_extend(op.type, lo[lane]) < ir::sign_extend(op.type, hi[lane]) : lo[lane] < hi[lane];
    if (below) in |= Mask{1} << lane;
  });
  frames_.back().saved = active_ & ~in;
  active_ = in;
}

void Warp::loop_back(const Inst& inst) {
  Frame& f = frames_.back();
  active_ |= f.joined;
  f.joined = 0;
  ++f.iteration;
  if (f.kind == Kind::For) {
    const ir::Op& op = kernel_.op(inst.op);
    const std::uint64_t mask = ir::value_mask(op.type);
    Lanes& i = value(inst.op);
    const Lanes &hi = value(op.operands[1]), &step = value(op.operands[2]);
    Mask in = 0;
    each([&](unsigned lane) {
      // There is a next iteration when it is below hi, so i never wraps; a step of 0 has none.
      if (((step[lane] - 1) & mask) < ((hi[lane] - i[lane] - 1) & mask)) {
        in |= Mask{1} << lane;
        i[lane] = (i[lane] + step[lane]) & mask;
      }
    });
    f.saved |= active_ & ~in;
    active_ = in;
  }
  if (active_ != 0) {
    pc_ = inst.target;
    return;
  }
  active_ = f.saved;
  loop_ = f.outer_loop;
  frames_.pop_back();
  ++pc_;
}

void Warp::leave(Opcode code) {
  if (code == Opcode::Return) {
    returned_ |= active_;
  } else if (code == Opcode::Break) {
    frames_[loop_].saved |= active_;
  } else {
    frames_[loop_].joined |= active_;
  }
  active_ = 0;
}

// --- operations without regions -------------------------------------------------------------------------------------------

void Warp::simple(ir::OpId id) {
  const ir::Op& op = kernel_.op(id);
  Lanes& out = value(id);
  switch (ir::info(op.code).form) {
    case ir::Form::Const: each([&](unsigned lane) { out[lane] = op.imm; }); return;
    case ir::Form::Query: query(op, out); return;
    case ir::Form::SlotGet: each([&](unsigned lane) { out[lane] = slots_[op.index][lane]; }); return;
    case ir::Form::SlotSet: each([&](unsigned lane) { slots_[op.index][lane] = value(op.operands[0])[lane]; }); return;
    case ir::Form::Load:
    case ir::Form::Store:
    case ir::Form::Atomic:
    case ir::Form::AtomicCas: access(op, id); return;
    case ir::Form::Barrier: ++warp_phase_; return;  // warp_sync; the block's barriers do not come here
    case ir::Form::WarpVote: vote(op, out); return;
    case ir::Form::Shuffle: shuffle(op, out); return;
    case ir::Form::WarpCombine: combine(op, out); return;
    case ir::Form::Leave: leave(op.code); return;
    case ir::Form::Check: check(op); return;
    case ir::Form::Text: op.code == Opcode::Trap ? trap(op) : log(op); return;
    case ir::Form::Require: require(op, id); return;
    default: pure(op, out); return;
  }
}

void Warp::query(const ir::Op& op, Lanes& out) {
  const std::uint64_t mask = ir::value_mask(op.type);
  const Launch& launch = context_.launch;
  const auto all = [&](std::uint64_t v) { each([&](unsigned lane) { out[lane] = v & mask; }); };
  switch (op.code) {
    case Opcode::Param: return all(launch.args[op.index].bits);
    case Opcode::Extent: return all(context_.memory.binding(op.index).extents[op.attr]);
    case Opcode::Stride: return all(context_.memory.binding(op.index).strides[op.attr]);
    case Opcode::Size: {
      std::uint64_t size = 1;
      for (unsigned d = 0; d < kernel_.mems[op.index].rank; ++d) size *= context_.memory.binding(op.index).extents[d];
      return all(size);
    }
    case Opcode::BlockId: return all(context_.block[op.attr]);
    case Opcode::BlockDim: return all(launch.block[op.attr]);
    case Opcode::GridDim: return all(launch.grid[op.attr]);
    case Opcode::WarpId: return all(number_);
    case Opcode::Clock:
    case Opcode::GlobalTime: return all(context_.steps);  // it only grows
    case Opcode::LaneId: each([&](unsigned lane) { out[lane] = lane; }); return;
    case Opcode::ThreadId: each([&](unsigned lane) { out[lane] = thread_[op.attr][lane]; }); return;
    case Opcode::GlobalId: {
      const std::uint64_t first = std::uint64_t{context_.block[op.attr]} * launch.block[op.attr];
      each([&](unsigned lane) { out[lane] = (first + thread_[op.attr][lane]) & mask; });
      return;
    }
    default: return;
  }
}

void Warp::pure(const ir::Op& op, Lanes& out) {
  const std::size_t n = op.operands.size();
  const Type operand_type = kernel_.op(op.operands[op.code == Opcode::Select ? 1 : 0]).type;
  const Lanes* in[3] = {};
  for (std::size_t i = 0; i < n && i < 3; ++i) in[i] = &value(op.operands[i]);
  each([&](unsigned lane) {
    std::uint64_t operands[3];
    for (std::size_t i = 0; i < n; ++i) operands[i] = (*in[i])[lane];
    const auto result = ir::evaluate(op.code, op.type, operand_type, {operands, n});
    out[lane] = result.value_or(0);
    if (!result) {
      const auto id = program_[pc_].op;
      context_.report.misuse("evaluate", id, ir::kNone, context_.report.describe(id) + " has no evaluation; was the kernel prepared?");
      context_.report.stop();
    }
  });
}

void Warp::require(const ir::Op& op, ir::OpId id) {
  bool good = true;
  each([&](unsigned lane) { good = good && value(op.operands[0])[lane] != 0; });
  if (good) return;
  context_.report.misuse("require", id, ir::kNone, "require(" + kernel_.texts[op.imm] + ") is false");
  context_.report.stop();
}

void Warp::check(const ir::Op& op) {
  if (!kernel_.options.checked) return;
  each([&](unsigned lane) {
    if (value(op.operands[0])[lane] != 0) return;
    const auto number = [&](std::size_t i) { return i < op.operands.size() ? value(op.operands[i])[lane] : 0; };
    report_fault({.state = 2, .kind = 1, .site = op.site, .dimension = 0, .index = number(1), .extent = number(2)}, lane);
  });
}

// The return behind it ends the lanes; the others go on, as threads of the CPU device do.
void Warp::trap(const ir::Op& op) {
  each([&](unsigned lane) { report_fault({.state = 2, .kind = 1, .site = op.site, .trapped = op.site + 1}, lane); });
}

void Warp::log(const ir::Op& op) {
  std::vector<Type> types;
  for (const ir::ValueId v : op.operands) types.push_back(kernel_.op(v).type);
  each([&](unsigned lane) {
    Logged line{.site = op.site, .text = {}};
    for (int axis = 0; axis < 3; ++axis) {
      line.thread[axis] = thread_[axis][lane];
      line.block[axis] = context_.block[axis];
    }
    std::vector<std::uint64_t> bits;
    for (const ir::ValueId v : op.operands) bits.push_back(value(v)[lane]);
    line.text = ir::format_message(kernel_.texts[op.imm], types, bits);
    context_.report.log(std::move(line));
  });
}

void Warp::report_fault(ir::FaultRecord f, unsigned lane) {
  for (int axis = 0; axis < 3; ++axis) {
    f.thread[axis] = thread_[axis][lane];
    f.block[axis] = context_.block[axis];
  }
  context_.report.fault(f);
}

// --- memory -----------------------------------------------------------------------------------------------------------------

bool Warp::locate(const ir::Op& op, ir::OpId id, unsigned lane, std::uint64_t& byte) {
  const ir::Mem& mem = kernel_.mems[op.index];
  const Binding& b = context_.memory.binding(op.index);
  std::uint64_t element = 0;
  for (unsigned d = 0; d < mem.rank; ++d) {
    const Type type = kernel_.op(op.operands[d]).type;
    const std::uint64_t bits = value(op.operands[d])[lane];
    const std::uint64_t index = ir::is_signed(type) ? static_cast<std::uint64_t>(ir::sign_extend(type, bits)) : bits;
    if (index < b.extents[d]) {
      element += index * b.strides[d];
      continue;
    }
    if (op.bounds == ir::Bounds::Checked) {
      report_fault({.state = 2, .kind = 1, .site = op.site, .dimension = d, .index = index, .extent = b.extents[d]}, lane);
    } else {
      context_.report.misuse("bounds", id, ir::kNone,
                             context_.report.describe(id) + " of '" + mem.name + "': coordinate " + std::to_string(d) + " is " +
                                 (ir::is_signed(type) ? std::to_string(static_cast<std::int64_t>(index)) : std::to_string(index)) +
                                 ", the extent is " + std::to_string(b.extents[d]) + ", but the access is not tested (thread " +
                                 std::to_string(number_ * 32 + lane) + " of block " + std::to_string(context_.block_number) + ")");
    }
    return false;
  }
  byte = element * ir::byte_size(mem.element) + b.byte_offset + (mem.space == ir::Space::Local ? lane * b.lane_bytes : 0);
  return true;
}

void Warp::access(const ir::Op& op, ir::OpId id) {
  const bool local = kernel_.mems[op.index].space == ir::Space::Local;
  const auto& bound = context_.memory.binding(op.index).storage;
  Lanes& out = value(id);
  each([&](unsigned lane) {
    std::uint64_t byte = 0;
    if (!locate(op, id, lane, byte)) {
      out[lane] = 0;
      return;
    }
    Storage& storage = local ? locals_[op.index] : *bound;
    if (op.code == Opcode::Load) {
      out[lane] = context_.memory.read(op.index, storage, byte, who(id, lane));
    } else if (op.code == Opcode::Store) {
      context_.memory.write(op.index, storage, byte, value(op.operands.back())[lane], who(id, lane));
    } else {
      out[lane] = atomic(op, id, lane, storage, byte);
    }
  });
}

// f32 additions in global memory: a subnormal counts as a zero of its sign.
static std::uint64_t flush(std::uint64_t bits) { return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits; }

std::uint64_t Warp::atomic(const ir::Op& op, ir::OpId id, unsigned lane, Storage& storage, std::uint64_t byte) {
  const ir::Mem& mem = kernel_.mems[op.index];
  const Who me = who(id, lane);
  const std::uint64_t old = context_.memory.read(op.index, storage, byte, me, AccessKind::Atomic);
  const std::uint64_t v = value(op.operands[mem.rank])[lane];
  const auto with = [&](Opcode code) { return ir::evaluate(code, mem.element, mem.element, std::array{old, v}).value_or(0); };
  std::uint64_t fresh = 0;
  switch (op.code) {
    case Opcode::AtomicAdd:
      if (mem.element == Type::F32 && mem.space == ir::Space::Global) {
        fresh = flush(ir::evaluate(Opcode::Add, Type::F32, Type::F32, std::array{flush(old), flush(v)}).value_or(0));
      } else {
        fresh = with(Opcode::Add);
      }
      break;
    case Opcode::AtomicSub: fresh = with(Opcode::Sub); break;
    case Opcode::AtomicMin: fresh = with(Opcode::Min); break;
    case Opcode::AtomicMax: fresh = with(Opcode::Max); break;
    case Opcode::AtomicAnd: fresh = with(Opcode::And); break;
    case Opcode::AtomicOr: fresh = with(Opcode::Or); break;
    case Opcode::AtomicXor: fresh = with(Opcode::Xor); break;
    case Opcode::AtomicExchange: fresh = v; break;
    default: fresh = old == v ? value(op.operands[mem.rank + 1])[lane] : old; break;  // atomic_cas
  }
  context_.memory.write(op.index, storage, byte, fresh, me, AccessKind::Atomic);
  return old;
}

// --- warp -------------------------------------------------------------------------------------------------------------------

void Warp::vote(const ir::Op& op, Lanes& out) {
  const Lanes& in = value(op.operands[0]);
  Mask yes = 0;
  each([&](unsigned lane) { yes |= in[lane] != 0 ? Mask{1} << lane : 0; });
  const std::uint64_t result = op.code == Opcode::Ballot ? yes : op.code == Opcode::VoteAny ? yes != 0 : yes == active_;
  each([&](unsigned lane) { out[lane] = result; });
}

void Warp::shuffle(const ir::Op& op, Lanes& out) {
  const Lanes in = value(op.operands[0]), argument = value(op.operands[1]);
  each([&](unsigned lane) {
    const std::uint64_t d = argument[lane];
    std::uint64_t source = lane;
    switch (op.code) {
      case Opcode::ShuffleIdx: source = d % 32; break;
      case Opcode::ShuffleUp: source = d <= lane ? lane - d : lane; break;
      case Opcode::ShuffleDown: source = d < 32 ? lane + d : lane; break;
      default: source = d < 32 ? lane ^ d : lane; break;  // xor
    }
    const bool there = source < 32 && (active_ >> source & 1) != 0;
    out[lane] = in[there ? source : lane];
  });
}

void Warp::combine(const ir::Op& op, Lanes& out) {
  const auto how = static_cast<ir::Combine>(op.attr);
  const std::uint64_t nothing = ir::identity(how, op.type);
  Lanes v;
  v.fill(nothing);
  each([&](unsigned lane) { v[lane] = value(op.operands[0])[lane]; });
  if (op.code == Opcode::WarpReduce) {
    for (unsigned d = 16; d > 0; d /= 2) {
      const Lanes before = v;
      for (unsigned lane = 0; lane < 32; ++lane) v[lane] = ir::combine(how, op.type, before[lane], before[lane ^ d]);
    }
  } else {
    for (unsigned d = 1; d < 32; d *= 2) {
      const Lanes before = v;
      for (unsigned lane = d; lane < 32; ++lane) v[lane] = ir::combine(how, op.type, before[lane - d], before[lane]);
    }
  }
  const bool exclusive = op.code == Opcode::WarpScanExclusive;
  each([&](unsigned lane) { out[lane] = !exclusive ? v[lane] : lane == 0 ? nothing : v[lane - 1]; });
}

}  // namespace kiln::interp
