// Between the scheduler of a warp and what its instructions need of the block. Private to the engine.
#pragma once
#include <string>

#include "simcuda/ptx_warp.h"

namespace kiln::simcuda::ptx {

// Runs a warp until nothing in it is ready or the budget (instructions of fragments) is over. False: nothing was ready.
bool run_warp(Warp& w, std::uint64_t& budget);

// At a barrier of the block (ptx_barrier.cpp): the fragment waits, or the barrier completes.
void arrive(Warp& w, std::size_t fragment, const Op& op);
// At an instruction that the lanes of a mask execute together: the fragment waits, or all are there and it is done.
void meet_lanes(Warp& w, std::size_t fragment, const Op& op);
// Threads have exited: who waited for them goes on.
void after_exit(Warp& w);
// Whom everybody waits for, when nothing in a block can go on.
[[noreturn]] void report_deadlock(Block& b);

// "saxpy.cu:12" of an instruction, or empty.
std::string source_of(const Warp& w, const Op& op);

}  // namespace kiln::simcuda::ptx
