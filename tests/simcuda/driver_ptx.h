// PTX for the tests of the driver: small kernels, and a loader for them.
#pragma once
#include <string>

#include "simcuda/driver_fixture.h"

namespace kiln::simcuda::test {

// fill(u64 to, u32 value): each thread writes value + its linear number in the grid (x only) to its word.
// add(u64 to, u64 from, u32 n): to[i] += from[i].
// poke(u64 at, u32 value): one word, at whatever address.
// none(): nothing.
// wide(u8 a, u64 b, u16 c, .align 16 .b8 d[24], u32 e, u64 out): writes a, b, c, d[0..2], e as u64 words.
// fixed(): .reqntid 64, 2, 1; at_most(): .maxntid 128; shared(): 40000 bytes of static shared memory; cluster kernels where sm_90.
// sum(u64 out, u32 n): sums 0..n-1 in a loop.  spin(u64 flag): until the word is not 0.
// Globals: counter (u32, 5), table (u32 x 4).
std::string kernels_ptx(const std::string& target = "sm_75", const std::string& version = "7.8");

CUmodule load(const std::string& ptx = kernels_ptx());
CUfunction get(CUmodule module, const char* name);

// A launch of `grid` blocks of `block` threads, for the checks to change.
CUlaunchConfig config(unsigned grid = 1, unsigned block = 1, CUstream stream = nullptr);

template <class... Args>
CUresult launch(CUfunction function, const CUlaunchConfig& c, Args... args) {
  void* params[] = {static_cast<void*>(&args)..., nullptr};
  return library().cuLaunchKernelEx(&c, function, params, nullptr);
}

}  // namespace kiln::simcuda::test
