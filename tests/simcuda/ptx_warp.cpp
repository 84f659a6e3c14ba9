// How the threads of a warp take turns. Threads that are at one place go together as a fragment; fragments part at branches and join where
// they meet again. The lowest place in the text goes first, so that parted threads meet early, but no fragment waits for ever: after its
// share of instructions the one that waited longest has a turn.
#include "simcuda/ptx_warp.h"

#include <algorithm>

#include "simcuda/ptx_block.h"
#include "simcuda/ptx_call.h"
#include "simcuda/ptx_schedule.h"

namespace kiln::simcuda::ptx {
namespace {

constexpr std::uint64_t kShare = 4096;

bool same_place(const Fragment& a, const Fragment& b) {
  return a.frame.pc == b.frame.pc && a.frame.function == b.frame.function && a.frame.registers == b.frame.registers &&
         a.frame.local == b.frame.local && a.callers == b.callers;
}

std::uint64_t random(Block& b) {
  b.random ^= b.random << 13;
  b.random ^= b.random >> 7;
  b.random ^= b.random << 17;
  return b.random;
}

// Joins every ready fragment that stands where `f` does.
void join(Warp& w, std::size_t& f) {
  for (std::size_t k = w.fragments.size(); k-- > 0;) {
    Fragment& other = w.fragments[k];
    if (k == f || other.state != Fragment::State::Ready || !same_place(other, w.fragments[f])) continue;
    Fragment& mine = w.fragments[f];
    mine.lanes |= other.lanes;
    mine.steps = std::max(mine.steps, other.steps);
    mine.frame.top = std::max(mine.frame.top, other.frame.top);
    if (f == w.fragments.size() - 1) f = k;
    std::swap(other, w.fragments.back());
    w.fragments.pop_back();
  }
}

struct Pick {
  std::size_t index = 0;
  bool fair = false;  // its turn, wherever the others are
};

std::optional<Pick> pick(Warp& w, const Fragment* yielded) {
  Block& b = *w.block;
  std::vector<Fragment>& f = w.fragments;
  std::optional<std::size_t> best, oldest;
  unsigned ready = 0;
  for (std::size_t k = 0; k < f.size(); ++k) {
    if (f[k].state != Fragment::State::Ready) continue;
    ++ready;
    const std::size_t depth = f[k].callers.size();
    if (!best || depth > f[*best].callers.size() || (depth == f[*best].callers.size() && f[k].frame.pc < f[*best].frame.pc)) best = k;
    if (&f[k] != yielded && (!oldest || f[k].turn < f[*oldest].turn)) oldest = k;
  }
  if (!best) return std::nullopt;
  if (ready == 1) return Pick{*best, false};
  if (b.launch->options.order == Order::Seeded) {
    std::uint64_t n = random(b) % ready;
    for (std::size_t k = 0; k < f.size(); ++k)
      if (f[k].state == Fragment::State::Ready && n-- == 0) return Pick{k, true};
  }
  if (oldest && (yielded != nullptr || w.turns - f[*oldest].turn > kShare)) return Pick{*oldest, true};
  return Pick{*best, false};
}

// The next place where another fragment waits to be joined, beyond this fragment's.
std::uint32_t meeting_place(const Warp& w, const Fragment& f) {
  std::uint32_t meet = ~std::uint32_t{0};
  for (const Fragment& other : w.fragments) {
    if (&other == &f || other.state != Fragment::State::Ready || other.callers.size() != f.callers.size()) continue;
    if (other.frame.function == f.frame.function) meet = std::min(meet, other.frame.pc);
  }
  return meet;
}

// A copy of the fragment with some of its lanes, which leave it.
Fragment& part(Warp& w, Fragment& f, Mask leaving) {
  Fragment other = f;
  other.lanes = leaving;
  f.lanes &= ~leaving;
  other.turn = w.turns;
  w.fragments.push_back(std::move(other));  // never more than 32: the storage does not move
  return w.fragments.back();
}

void leave(Warp& w, std::size_t index) {
  if (index != w.fragments.size() - 1) std::swap(w.fragments[index], w.fragments.back());
  w.fragments.pop_back();
}

void exit_lanes(Warp& w, Mask lanes) { w.live &= ~lanes; }

}  // namespace

std::uint64_t* registers_of(Warp& w, const Fragment& f) { return w.register_file.data() + std::size_t{32} * f.frame.registers; }

void enter(Warp& w, Fragment& f) {
  w.registers = registers_of(w, f);
  w.predicates = w.predicate_file.data() + f.frame.predicates;
  w.constants = f.frame.function->constants.data();
  w.frame = &f.frame;
}

void stop(const Warp& w, const Op& op, unsigned lane, cuda::CUresult code, std::string what) {
  Stop s;
  s.violation.code = code;
  s.violation.what = std::move(what);
  s.violation.ptx_line = op.line;
  s.violation.source = source_of(w, op);
  s.violation.block = w.block->index;
  s.violation.thread = w.tid[lane];
  throw s;
}

// One fragment until it blocks, ends, parts, meets another or has had its share. Whether it gives up its turn.
static bool run_fragment(Warp& w, std::size_t index, bool fair, std::uint64_t share) {
  Block& b = *w.block;
  Fragment& f = w.fragments[index];
  f.turn = w.turns;
  enter(w, f);
  const std::uint64_t limit = b.launch->options.instruction_limit;
  const std::uint32_t meet = fair ? ~std::uint32_t{0} : meeting_place(w, f);
  const Op* ops = f.frame.function->ops.data();
  std::uint32_t pc = f.frame.pc;
  const Mask lanes = f.lanes;
  const auto width = static_cast<std::uint64_t>(std::popcount(lanes));
  std::uint64_t steps = 0;
  const auto account = [&] {
    f.frame.pc = pc;
    f.steps += steps;
    w.turns += steps;
    f.turn = w.turns;
    b.instructions += steps * width;
    steps = 0;
    if (limit != 0 && f.steps >= limit) {
      const Op& at = ops[pc];
      stop(w, at, static_cast<unsigned>(std::countr_zero(lanes)), cuda::CUDA_ERROR_LAUNCH_TIMEOUT,
           "the launch timed out: a thread has executed " + std::to_string(f.steps) + " instructions, the limit is " +
               std::to_string(limit));
    }
  };
  if (limit != 0) share = std::min(share, limit > f.steps ? limit - f.steps : 1);
  while (steps < share) {
    const Op& o = ops[pc];
    ++steps;
    const Mask m = o.guard == kTrue ? lanes : lanes & w.test(o.guard);
    if (o.flow == Flow::Plain) [[likely]] {
      if (m != 0) o.execute(w, o, m);
      if (++pc >= meet) break;
      continue;
    }
    if (m == 0) {
      if (++pc >= meet) break;
      continue;
    }
    if (o.flow == Flow::Branch) {
      if (m == lanes) {
        pc = o.target;
      } else {
        account();
        Fragment& other = part(w, f, m);
        other.frame.pc = o.target;
        f.frame.pc = pc + 1;
        return false;
      }
      if (pc >= meet) break;
      continue;
    }
    // What is left is done by all lanes of the fragment, or the others part first and come back to it.
    account();
    if (m != lanes) {
      Fragment& other = part(w, f, lanes & ~m);
      other.frame.pc = pc + 1;
      return false;
    }
    const auto first = static_cast<unsigned>(std::countr_zero(m));
    switch (o.flow) {
      case Flow::Table: {
        const std::vector<std::uint32_t>& table = f.frame.function->tables[o.target];
        const std::uint64_t* a = w.in(o.a);
        const std::uint64_t chosen = a[first];
        Mask same = 0;
        for (Mask rest = m; rest != 0; rest &= rest - 1) {
          const auto l = static_cast<unsigned>(std::countr_zero(rest));
          same |= static_cast<Mask>(a[l] == chosen) << l;
        }
        if (chosen >= table.size()) {
          stop(w, o, first, cuda::CUDA_ERROR_INVALID_PC,
               "invalid program counter: brx.idx with index " + std::to_string(chosen) + " of a table of " + std::to_string(table.size()));
        }
        if (same != m) part(w, f, m & ~same);
        f.frame.pc = table[static_cast<std::size_t>(chosen)];
        return false;
      }
      case Flow::Call: call(w, f, o); return false;
      case Flow::Return:
        if (return_from(w, f)) return false;
        [[fallthrough]];
      case Flow::Exit:
        exit_lanes(w, m);
        leave(w, index);
        after_exit(w);
        return false;
      case Flow::Barrier: arrive(w, index, o); return false;
      case Flow::Together: meet_lanes(w, index, o); return false;
      case Flow::Sleep: f.frame.pc = pc + 1; return false;
      default:
        stop(w, o, first, cuda::CUDA_ERROR_LAUNCH_FAILED,
             o.code != 0 ? "unspecified launch failure: brkpt was executed" : "unspecified launch failure: trap was executed");
    }
  }
  account();
  return false;
}

bool run_warp(Warp& w, std::uint64_t& budget) {
  Block& b = *w.block;
  const bool seeded = b.launch->options.order == Order::Seeded;
  const Fragment* yielded = nullptr;
  bool any = false;
  while (budget > 0) {
    auto choice = pick(w, yielded);
    if (!choice) break;
    any = true;
    join(w, choice->index);
    std::uint64_t share = std::min(kShare, budget);
    if (seeded && w.fragments.size() > 1) share = std::min<std::uint64_t>(share, 1 + random(b) % 64);
    const std::uint64_t before = w.turns;
    const Fragment* f = &w.fragments[choice->index];
    const bool yields = run_fragment(w, choice->index, choice->fair, share);
    if (yields && w.fragments.size() == 1) return true;  // another warp's turn
    yielded = yields ? f : nullptr;
    budget -= std::min(budget, std::max<std::uint64_t>(1, w.turns - before));
  }
  return any;
}

}  // namespace kiln::simcuda::ptx
