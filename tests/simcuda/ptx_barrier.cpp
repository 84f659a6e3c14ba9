// Meeting points: barriers of a block, and instructions that lanes of a warp execute together.
#include <algorithm>
#include <bit>

#include "simcuda/ptx_block.h"
#include "simcuda/ptx_schedule.h"

namespace kiln::simcuda::ptx {
namespace {

enum BarrierKind : std::uint8_t { kSync, kArrive, kPopc, kAnd, kOr };

const Op& op_of(const Fragment& f) { return f.frame.function->ops[f.frame.pc]; }

std::string hex(std::uint32_t v) {
  char text[12];
  std::snprintf(text, sizeof text, "0x%08x", v);
  return text;
}

// The threads of a warp count as a whole when all that live have arrived.
std::uint32_t counted(const Warp& w, Mask arrived) {
  return arrived == 0 ? 0 : arrived == w.live ? 32 : static_cast<std::uint32_t>(std::popcount(arrived));
}

void complete(Block& b, std::uint32_t id) {
  BarrierState& s = b.barriers[id];
  // An aligned barrier is for whole warps at one instruction.
  std::uint32_t total = 0, truths = 0;
  for (Warp& w : b.warps) {
    const Fragment* first = nullptr;
    for (Fragment& f : w.fragments) {
      if (f.state != Fragment::State::AtBarrier || f.barrier != id) continue;
      const Op& op = op_of(f);
      if (op.aligned &&
          ((first != nullptr && f.frame.pc != first->frame.pc) || (s.arrived[w.index] & ~w.live) != 0 || s.arrived[w.index] != w.live)) {
        stop(w, op, static_cast<unsigned>(std::countr_zero(f.lanes)), cuda::CUDA_ERROR_LAUNCH_FAILED,
             "undefined behaviour: an aligned barrier is executed by lanes " + hex(f.lanes) + " of warp " + std::to_string(w.index) +
                 ", not by the whole warp (" + hex(w.live) + ") at once");
      }
      first = &f;
      enter(w, f);
      total += static_cast<std::uint32_t>(std::popcount(f.lanes));
      truths += static_cast<std::uint32_t>(std::popcount(w.test(op.q) & f.lanes));
    }
  }
  if (b.races) {
    // Threads that have exited are not waited for, and what they did counts as done before.
    std::vector<std::uint32_t> participants = s.arrived;
    if (s.expected == 0)
      for (const Warp& w : b.warps) participants[w.index] |= w.all & ~w.live;
    b.races->clock().barrier(participants);
  }
  for (Warp& w : b.warps) {
    for (Fragment& f : w.fragments) {
      if (f.state != Fragment::State::AtBarrier || f.barrier != id) continue;
      const Op& op = op_of(f);
      enter(w, f);
      if (op.code == kPopc) {
        std::uint64_t* d = w.out(op.d);
        lanes(f.lanes, [&](unsigned l) { d[l] = truths; });
      } else if (op.code == kAnd || op.code == kOr) {
        w.set(op.p, (op.code == kAnd ? truths == total : truths != 0) ? ~Mask{0} : 0, f.lanes);
      }
      f.state = Fragment::State::Ready;
      ++f.frame.pc;
    }
    s.arrived[w.index] = 0;
  }
  s.expected = 0;
}

void check_barrier(Block& b, std::uint32_t id) {
  const BarrierState& s = b.barriers[id];
  if (std::all_of(s.arrived.begin(), s.arrived.end(), [](Mask m) { return m == 0; })) return;
  if (s.expected == 0) {
    for (const Warp& w : b.warps)
      if ((s.arrived[w.index] & w.live) != w.live) return;
  } else {
    std::uint32_t n = 0;
    for (const Warp& w : b.warps) n += counted(w, s.arrived[w.index]);
    if (n < s.expected) return;
  }
  complete(b, id);
}

// Lanes of the warp that wait at the same kind of instruction with the same mask.
bool same_meeting(const Fragment& a, const Fragment& b) {
  const Op &x = op_of(a), &y = op_of(b);
  return a.wait_mask == b.wait_mask && x.code == y.code && x.type == y.type && x.imm == y.imm;
}

// Does what waits at the fragment's instruction when everybody named is there.
bool try_meeting(Warp& w, std::size_t index) {
  const Fragment& f = w.fragments[index];
  Mask there = 0;
  for (const Fragment& other : w.fragments)
    if (other.state == Fragment::State::AtWarpSync && same_meeting(other, f)) there |= other.lanes;
  if (there != (f.wait_mask & w.live)) return false;
  std::vector<Participant> participants;
  for (Fragment& other : w.fragments)
    if (other.state == Fragment::State::AtWarpSync && (&other == &f || same_meeting(other, f)))
      participants.push_back({&other, &op_of(other)});
  together(w, participants, there);
  for (const Participant& p : participants) {
    p.fragment->state = Fragment::State::Ready;
    ++p.fragment->frame.pc;
  }
  return true;
}

}  // namespace

void arrive(Warp& w, std::size_t index, const Op& op) {
  Block& b = *w.block;
  Fragment& f = w.fragments[index];
  const auto lane = static_cast<unsigned>(std::countr_zero(f.lanes));
  const std::uint64_t id = w.in(op.a)[lane], count = w.in(op.b)[lane];
  if (id > 15)
    stop(w, op, lane, cuda::CUDA_ERROR_ILLEGAL_INSTRUCTION, "illegal barrier: number " + std::to_string(id) + ", there are 0 to 15");
  BarrierState& s = b.barriers[static_cast<std::size_t>(id)];
  const bool begun = std::any_of(s.arrived.begin(), s.arrived.end(), [](Mask m) { return m != 0; });
  if (begun && s.expected != count) {
    stop(w, op, lane, cuda::CUDA_ERROR_LAUNCH_FAILED,
         "undefined behaviour: barrier " + std::to_string(id) + " is used with " + std::to_string(count) + " and with " +
             std::to_string(s.expected) + " threads at once (0: all)");
  }
  if (count % 32 != 0) {
    stop(w, op, lane, cuda::CUDA_ERROR_ILLEGAL_INSTRUCTION,
         "illegal barrier: a count of " + std::to_string(count) + " threads, which is no multiple of the warp size");
  }
  s.expected = static_cast<std::uint32_t>(count);
  s.arrived[w.index] |= f.lanes;
  if (op.code == kArrive) {
    ++f.frame.pc;  // goes on without waiting
  } else {
    f.state = Fragment::State::AtBarrier;
    f.barrier = static_cast<std::uint32_t>(id);
  }
  check_barrier(b, static_cast<std::uint32_t>(id));
}

void meet_lanes(Warp& w, std::size_t index, const Op& op) {
  Fragment& f = w.fragments[index];
  const auto first = static_cast<unsigned>(std::countr_zero(f.lanes));
  const std::uint32_t mask = member_mask(w, f, op, first);
  Mask same = 0;
  for (Mask rest = f.lanes; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(rest));
    if (member_mask(w, f, op, l) == mask) same |= Mask{1} << l;
  }
  if (same != f.lanes) {  // lanes with another mask come back to the instruction on their own
    Fragment other = f;
    other.lanes = f.lanes & ~same;
    f.lanes = same;
    other.turn = 0;
    w.fragments.push_back(std::move(other));
    Fragment& mine = w.fragments[index];
    mine.lanes = same;
  }
  Fragment& g = w.fragments[index];
  if ((g.lanes & ~mask) != 0) {
    stop(w, op, static_cast<unsigned>(std::countr_zero(g.lanes & ~mask)), cuda::CUDA_ERROR_LAUNCH_FAILED,
         "undefined behaviour: a lane executes an instruction for the lanes of mask " + hex(mask) + ", which does not name it");
  }
  if (g.lanes == (mask & w.live)) {  // everybody is here
    together(w, {{&g, &op}}, g.lanes);
    ++g.frame.pc;
    return;
  }
  g.state = Fragment::State::AtWarpSync;
  g.wait_mask = mask;
  try_meeting(w, index);
}

void after_exit(Warp& w) {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t k = 0; k < w.fragments.size() && !again; ++k)
      if (w.fragments[k].state == Fragment::State::AtWarpSync) again = try_meeting(w, k);
  }
  for (std::uint32_t id = 0; id < w.block->barriers.size(); ++id) { check_barrier(*w.block, id); }
}

void report_deadlock(Block& b) {
  std::string text = "the launch timed out: every thread of the block waits.";
  const Warp* where = nullptr;
  const Op* at = nullptr;
  unsigned lane = 0, listed = 0;
  for (Warp& w : b.warps) {
    for (const Fragment& f : w.fragments) {
      const Op& op = op_of(f);
      if (where == nullptr) {
        where = &w;
        at = &op;
        lane = static_cast<unsigned>(std::countr_zero(f.lanes));
      }
      if (++listed > 8) continue;
      text += " Warp " + std::to_string(w.index) + ", lanes " + hex(f.lanes) + ": at PTX line " + std::to_string(op.line) + ", ";
      if (f.state == Fragment::State::AtBarrier) {
        const BarrierState& s = b.barriers[f.barrier];
        text +=
            "barrier " + std::to_string(f.barrier) + " for " + (s.expected == 0 ? "all threads" : std::to_string(s.expected) + " threads");
      } else {
        text += "an instruction for lanes " + hex(f.wait_mask) + ", of which " + hex(f.wait_mask & w.live & ~f.lanes) + " are missing";
      }
      text += ".";
    }
  }
  if (listed > 8) text += " And " + std::to_string(listed - 8) + " more.";
  stop(*where, *at, lane, cuda::CUDA_ERROR_LAUNCH_TIMEOUT, text);
}

}  // namespace kiln::simcuda::ptx
