#include "interp/interp.h"

#include "interp/memory.h"
#include "interp/program.h"
#include "interp/report.h"
#include "interp/warp.h"

namespace kiln::interp {
namespace {

using ir::Opcode;

class Run {
 public:
  Run(const ir::Kernel& kernel, const Launch& launch, Report& report)
      : report_(report), program_(flatten(kernel)), memory_(kernel, launch, report), context_{kernel, program_, launch, memory_, report} {}

  void grid() {
    const Launch& launch = context_.launch;
    const std::uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    for (std::uint32_t w = 0; w * 32 < threads; ++w) warps_.emplace_back(context_, w, threads);
    for (std::uint32_t z = 0; z < launch.grid[2]; ++z) {
      for (std::uint32_t y = 0; y < launch.grid[1]; ++y) {
        for (std::uint32_t x = 0; x < launch.grid[0]; ++x) {
          if (report_.stopped()) return;
          context_.block = {x, y, z};
          block();
          ++context_.block_number;
        }
      }
    }
  }

 private:
  void block() {
    memory_.start_block();
    context_.phase = 0;
    for (Warp& w : warps_) w.start_block();
    for (;;) {
      bool waiting = false;
      for (Warp& w : warps_) {
        if (w.state() == Warp::State::Running) w.run();
        if (report_.stopped()) return;
        waiting = waiting || w.state() == Warp::State::AtBarrier;
      }
      if (!waiting) return;
      meet();
      if (report_.stopped()) return;
    }
  }

  // All warps that are not finished stand at a barrier. It is one and the same for all threads that have not returned, or an error.
  void meet() {
    const Warp* first = nullptr;
    for (const Warp& w : warps_) {
      if (w.state() == Warp::State::AtBarrier && first == nullptr) first = &w;
    }
    for (const Warp& w : warps_) {
      if (w.unreturned() == 0) continue;
      const bool here = w.state() == Warp::State::AtBarrier && w.barrier() == first->barrier() && w.iterations() == first->iterations();
      if (here && w.active() == w.unreturned()) continue;
      const ir::OpId id = first->barrier();
      report_.misuse("barrier", id, ir::kNone,
                     "divergent barrier: not all threads of block " + std::to_string(context_.block_number) +
                         " that have not returned come to " + report_.describe(id) + " together");
      report_.stop();
      return;
    }
    pass(first->barrier());
  }

  void pass(ir::OpId id) {
    const ir::Op& op = context_.kernel.op(id);
    std::uint64_t yes = 0, arrived = 0, leader = 0;
    for (const Warp& w : warps_) {
      if (w.state() != Warp::State::AtBarrier || op.operands.empty()) continue;
      const Lanes& v = w.operand(0);
      for (unsigned lane = 0; lane < 32; ++lane) {
        if ((w.active() >> lane & 1) == 0) continue;
        if (arrived++ == 0) leader = v[lane];
        yes += v[lane] != 0 ? 1 : 0;
      }
    }
    std::uint64_t result = 0;
    switch (op.code) {
      case Opcode::BarrierAny: result = yes != 0; break;
      case Opcode::BarrierAll: result = yes == arrived; break;
      case Opcode::BarrierCount: result = yes; break;
      case Opcode::BlockUniform: result = leader; break;
      default: break;
    }
    ++context_.phase;
    for (Warp& w : warps_) {
      if (w.state() == Warp::State::AtBarrier) w.pass(result);
    }
  }

  Report& report_;
  std::vector<Inst> program_;
  Memory memory_;
  Context context_;
  std::vector<Warp> warps_;
};

bool fits(const ir::Kernel& k, const Launch& launch, Report& report) {
  const auto refuse = [&](const std::string& message) {
    report.misuse("launch", ir::kNone, ir::kNone, message);
    return false;
  };
  std::uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (launch.block[axis] == 0 || launch.block[axis] > 1024)
      return refuse("launched with a block axis of " + std::to_string(launch.block[axis]));
    threads *= launch.block[axis];
    if (k.has_block_size() && launch.block[axis] != k.block_size[axis]) return refuse("launched with another block size than it declares");
  }
  if (threads > 1024 || (k.max_threads != 0 && threads > k.max_threads))
    return refuse("launched with " + std::to_string(threads) + " threads a block");
  return true;
}

}  // namespace

Outcome run(const ir::Prepared& kernel, const Launch& launch) {
  Outcome outcome;
  Report report(kernel.kernel, outcome);
  if (!fits(kernel.kernel, launch, report)) return outcome;
  Run run(kernel.kernel, launch, report);
  if (!report.stopped()) run.grid();
  return outcome;
}

}  // namespace kiln::interp
