#include "support/ptx_machine.h"

#include <algorithm>
#include <cstring>

#include "support/ptx_thread.h"

namespace kiln::test {
namespace {

using namespace ptx;
using State = Thread::State;
using Meeting = Instruction::Meeting;

class BlockRun {
 public:
  BlockRun(Block& block, std::vector<Thread>& threads, std::uint64_t& steps_left, std::uint64_t& random)
      : block_(block), threads_(threads), steps_left_(steps_left), random_(random) {}

  // Until every thread has exited. Throws Error.
  void run() {
    while (true) {
      bool progress = false;
      for (const std::size_t n : order()) progress |= advance(threads_[n]);
      for (std::size_t warp = 0; warp * 32 < threads_.size(); ++warp) progress |= meet_in_warp(warp);
      if (std::all_of(threads_.begin(), threads_.end(), [](const Thread& t) { return t.state == State::Exited; })) return;
      if (!progress && !meet_at_barrier()) throw Error("the block is stuck: " + waiting());
    }
  }

 private:
  std::vector<std::size_t> order() {
    std::vector<std::size_t> all(threads_.size());
    for (std::size_t n = 0; n < all.size(); ++n) all[n] = n;
    if (random_ == 0) return all;
    for (std::size_t n = all.size(); n > 1; --n) {
      random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
      std::swap(all[n - 1], all[(random_ >> 33) % n]);
    }
    return all;
  }

  // Runs one thread until it waits, exits or has had its turn. Whether it did anything.
  bool advance(Thread& t) {
    bool moved = false;
    for (int turn = 0; turn < 2000 && t.state == State::Ready; ++turn) {
      Frame& frame = t.frame();
      if (frame.pc >= frame.code->instructions.size()) throw Error("ran past the end of '" + frame.code->function->name + "'");
      const Instruction& i = frame.code->instructions[frame.pc];
      if (steps_left_-- == 0) throw Error("too many steps");
      moved = true;
      if (i.guard && !i.guard(t)) {
        ++frame.pc;
        continue;
      }
      if (i.meeting != Meeting::None) {
        t.state = State::Waiting;
        break;
      }
      try {
        i.run(t);
      } catch (const Error& e) { throw Error(where(t, i) + e.what()); }
      if (t.state != State::Exited) ++t.frame().pc;
    }
    return moved;
  }

  std::string where(const Thread& t, const Instruction& i) const {
    return "PTX line " + std::to_string(i.statement->line) + ", thread " + std::to_string(t.linear) + " of block " +
           std::to_string(block_.index[0]) + ": ";
  }

  bool meet_in_warp(std::size_t warp) {
    bool met = false;
    const std::size_t first = warp * 32, last = std::min(first + 32, threads_.size());
    for (std::size_t n = first; n < last; ++n) {
      Thread& t = threads_[n];
      if (t.state != State::Waiting || t.instruction().meeting != Meeting::Warp) continue;
      const Instruction& i = t.instruction();
      const std::uint32_t mask = i.mask(t);
      if ((mask >> t.lane() & 1) == 0) throw Error(where(t, i) + "a lane that is not in its own mask");
      std::vector<Thread*> lanes(32);
      bool complete = true;
      for (unsigned l = 0; l < 32; ++l) {
        if ((mask >> l & 1) == 0) continue;
        if (first + l >= threads_.size()) throw Error(where(t, i) + "a mask with a lane that does not exist");
        Thread& other = threads_[first + l];
        if (other.state == State::Exited) continue;
        if (other.state != State::Waiting || &other.instruction() != &i || i.mask(other) != mask) complete = false;
        lanes[l] = &other;
      }
      if (!complete) continue;
      try {
        i.meet(lanes);
      } catch (const Error& e) { throw Error(where(t, i) + e.what()); }
      for (Thread* const lane : lanes) release(lane);
      met = true;
    }
    return met;
  }

  void release(Thread* t) {
    if (t == nullptr) return;
    t->state = State::Ready;
    ++t->frame().pc;
  }

  bool meet_at_barrier() {
    std::vector<Thread*> all;
    const Instruction* one = nullptr;
    for (Thread& t : threads_) {
      if (t.state == State::Exited) continue;
      if (t.instruction().meeting != Meeting::Barrier) return false;
      if (one != nullptr && one->statement->op != t.instruction().statement->op)
        throw Error(where(t, *one) + "barriers of different kinds meet");
      one = &t.instruction();
      all.push_back(&t);
    }
    if (all.empty()) return false;
    for (Thread* const t : all) {
      if (!t->instruction().aligned) continue;
      const std::size_t first = t->linear / 32 * 32;
      for (std::size_t n = first; n < std::min(first + 32, threads_.size()); ++n) {
        if (threads_[n].state == State::Exited || &threads_[n].instruction() != &t->instruction()) {
          throw Error(where(*t, t->instruction()) + "an aligned barrier that the warp does not reach together");
        }
      }
    }
    one->meet(all);
    for (Thread* const t : all) release(t);
    return true;
  }

  std::string waiting() const {
    std::string text;
    int shown = 0;
    for (const Thread& t : threads_) {
      if (t.state != State::Waiting || ++shown > 6) continue;
      const Instruction& i = t.instruction();
      text += "thread " + std::to_string(t.linear) + " at line " + std::to_string(i.statement->line);
      if (i.meeting == Meeting::Warp) text += " for lanes " + std::to_string(i.mask(t));
      text += "; ";
    }
    return text;
  }

  Block& block_;
  std::vector<Thread>& threads_;
  std::uint64_t& steps_left_;
  std::uint64_t& random_;
};

}  // namespace

interp::Outcome run_ptx(const std::string& ptx, const ir::Prepared& prepared, const interp::Launch& launch, std::uint64_t seed) {
  interp::Outcome outcome;
  const ir::Kernel& k = prepared.kernel;
  try {
    const Module module = parse(ptx);
    std::unordered_map<std::string, std::unique_ptr<Code>> codes;
    for (const auto& [name, function] : module.functions) codes[name] = decode(module, function);
    const Code* const entry = codes.at(ir::symbol_name(k.name)).get();

    // Buffers at addresses far apart. Two arguments on one vector share its address.
    std::vector<Allocation> memory;
    const auto map = [&](std::uint8_t* data, std::uint64_t bytes, const std::string& name) {
      for (const Allocation& a : memory) {
        if (a.data == data) return a.address;
      }
      memory.push_back({(memory.size() + 1) << 40, data, bytes, name});
      return memory.back().address;
    };
    ir::FaultRecord record;
    std::vector<std::uint8_t> params(entry->function->param_bytes);
    const ir::ParamLayout layout = ir::param_layout(k, k.options.checked);
    if (layout.fields.size() != entry->function->param_offset.size())
      throw Error("the entry has another number of parameters than the layout");
    for (std::size_t n = 0; n < layout.fields.size(); ++n) {
      const ir::ParamField& field = layout.fields[n];
      using FieldKind = ir::ParamField::Kind;
      Bits v = 0;
      if (field.kind == FieldKind::Fault) {
        v = map(reinterpret_cast<std::uint8_t*>(&record), sizeof record, "fault record");
      } else {
        const interp::Arg& arg = launch.args.at(field.param);
        if (field.kind == FieldKind::Pointer) v = map(arg.bytes->data(), arg.bytes->size(), k.params[field.param].name) + arg.byte_offset;
        if (field.kind == FieldKind::Extent) v = arg.extents.at(field.dimension);
        if (field.kind == FieldKind::Stride) v = arg.strides.at(field.dimension);
        if (field.kind == FieldKind::Scalar) v = arg.bits;
      }
      if (field.size != entry->function->param_size[n]) throw Error("a parameter has another size than in the layout");
      std::memcpy(&params[entry->function->param_offset[n]], &v, field.size);
    }

    std::uint64_t steps_left = launch.step_limit, random = seed;
    const std::uint64_t threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
    for (std::uint64_t b = 0; b < std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]; ++b) {
      Block block;
      for (int axis = 0; axis < 3; ++axis) block.grid[axis] = launch.grid[axis], block.dim[axis] = launch.block[axis];
      block.index[0] = static_cast<std::uint32_t>(b % launch.grid[0]);
      block.index[1] = static_cast<std::uint32_t>(b / launch.grid[0] % launch.grid[1]);
      block.index[2] = static_cast<std::uint32_t>(b / launch.grid[0] / launch.grid[1]);
      block.dynamic_bytes = launch.dynamic_shared_bytes;
      block.shared.assign((module.static_shared + 15) / 16 * 16 + launch.dynamic_shared_bytes, 0xff);
      block.memory = &memory;
      block.module = &module;
      block.codes = &codes;
      std::vector<Thread> all(threads);
      for (std::uint64_t n = 0; n < threads; ++n) {
        Thread& t = all[n];
        t.block = &block;
        t.linear = static_cast<std::uint32_t>(n);
        t.id[0] = static_cast<std::uint32_t>(n % launch.block[0]);
        t.id[1] = static_cast<std::uint32_t>(n / launch.block[0] % launch.block[1]);
        t.id[2] = static_cast<std::uint32_t>(n / launch.block[0] / launch.block[1]);
        Frame frame;
        frame.code = entry;
        frame.registers.assign(entry->registers.size(), 0xdeadbeefdeadbeefull);
        frame.params = params;
        t.frames.push_back(std::move(frame));
        t.local.assign(entry->function->local_bytes, 0xff);
      }
      BlockRun(block, all, steps_left, random).run();
    }
    if (record.state != 0) outcome.fault = record;
  } catch (const std::exception& e) { outcome.misuse.push_back("PTX of kernel '" + k.name + "': " + e.what()); }
  return outcome;
}

}  // namespace kiln::test
