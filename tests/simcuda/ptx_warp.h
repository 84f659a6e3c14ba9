// What runs: warps, their threads' registers, and the block around them.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "simcuda/engine.h"
#include "simcuda/ptx_code.h"

namespace kiln::simcuda::ptx {

struct Block;
struct LaunchState;

// What ends a launch, thrown by what executes and caught by the worker.
struct Stop {
  Violation violation;
};

struct Frame {
  const Function* function = nullptr;
  std::uint32_t pc = 0;                         // where to go on
  std::uint32_t registers = 0, predicates = 0;  // first slots
  std::uint64_t local = 0, top = 0;             // bytes of local memory: where the frame begins, where the next one may
  std::uint32_t call = 0;                       // index of the call it is in
  bool operator==(const Frame&) const = default;
};

// Threads of a warp that are at one place and go on together.
struct Fragment {
  enum class State : std::uint8_t { Ready, AtBarrier, AtWarpSync } state = State::Ready;
  Mask lanes = 0;
  Frame frame;
  std::vector<Frame> callers;
  std::uint64_t steps = 0;    // instructions since the start, for the limit
  std::uint64_t turn = 0;     // when it ran last
  Mask wait_mask = 0;         // AtWarpSync: of all lanes together; lanes may name different masks
  std::uint32_t barrier = 0;  // AtBarrier: which
};

struct Warp {
  Block* block = nullptr;
  std::uint32_t index = 0;
  Mask all = 0, live = 0;  // lanes that exist, that have not exited
  std::vector<Fragment> fragments;
  std::size_t current = 0;
  std::uint64_t turns = 0;

  // The current fragment's frame.
  std::uint64_t* registers = nullptr;
  Mask* predicates = nullptr;
  const std::uint64_t* constants = nullptr;
  Frame* frame = nullptr;
  Mask carry = 0;  // the condition code of each lane

  std::vector<std::uint64_t> register_file;
  std::vector<Mask> predicate_file;
  std::array<std::array<std::uint32_t, 3>, 32> tid{};
  std::array<std::uint8_t, 32> order{};  // in which lanes store and do atomics

  const std::uint64_t* in(Slot s) const {
    return s >= 0 ? registers + std::size_t{32} * static_cast<std::uint32_t>(s)
                  : constants + std::size_t{32} * static_cast<std::uint32_t>(~s);
  }
  std::uint64_t* out(Slot s) { return registers + std::size_t{32} * static_cast<std::uint32_t>(s); }
  Mask test(Predicate p) const {
    if (p < 0) return p == kTrue ? ~Mask{0} : 0;
    const Mask m = predicates[p >> 1];
    return (p & 1) != 0 ? ~m : m;
  }
  void set(Predicate p, Mask value, Mask lanes) {
    if (p < 0) return;
    Mask& m = predicates[p >> 1];
    m = (m & ~lanes) | (value & lanes);
  }
};

// One lane after another; all of them in a loop that the compiler can vectorise.
template <class F>
inline void lanes(Mask m, F&& f) {
  if (m == ~Mask{0}) {
#pragma GCC ivdep
    for (unsigned l = 0; l < 32; ++l) f(l);
  } else {
    for (; m != 0; m &= m - 1) f(static_cast<unsigned>(std::countr_zero(m)));
  }
}

template <auto F>
void map1(Warp& w, const Op& o, Mask m) {
  const std::uint64_t* a = w.in(o.a);
  std::uint64_t* d = w.out(o.d);
  lanes(m, [&](unsigned l) { d[l] = F(a[l]); });
}
template <auto F>
void map2(Warp& w, const Op& o, Mask m) {
  const std::uint64_t *a = w.in(o.a), *b = w.in(o.b);
  std::uint64_t* d = w.out(o.d);
  lanes(m, [&](unsigned l) { d[l] = F(a[l], b[l]); });
}
template <auto F>
void map3(Warp& w, const Op& o, Mask m) {
  const std::uint64_t *a = w.in(o.a), *b = w.in(o.b), *c = w.in(o.c);
  std::uint64_t* d = w.out(o.d);
  lanes(m, [&](unsigned l) { d[l] = F(a[l], b[l], c[l]); });
}

// Ends the launch because of what a lane does at an instruction.
[[noreturn]] void stop(const Warp& w, const Op& op, unsigned lane, cuda::CUresult code, std::string what);

}  // namespace kiln::simcuda::ptx
