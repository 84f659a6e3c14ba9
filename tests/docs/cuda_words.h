// The words of CUDA C++ that the pairs of docs/porting.md use, on the host: so that the CUDA side of a pair runs, too. Blocks run one after
// the other, and each thread of a block is a thread of the host. Made for small examples: all lanes of a warp take part in a shuffle, and a
// block has whole warps.
#pragma once
#include <array>
#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#define __global__
#define __shared__ static  // blocks run one after the other

namespace kiln::test::cuda_words {

struct Indices {
  unsigned x = 0, y = 0, z = 0;
};
struct Warp {
  std::barrier<> meet{32};
  std::array<unsigned, 32> lanes{};
};
inline thread_local Indices threadIdx, blockIdx;
inline thread_local std::barrier<>* meet = nullptr;
inline thread_local Warp* warp = nullptr;
inline Indices blockDim, gridDim;

// What device code printed and asserted, since the last launch began.
inline std::mutex said_lock;
inline std::string printed, asserted;

inline void __syncthreads() { meet->arrive_and_wait(); }

template <class T>
T __shfl_down_sync(unsigned, T v, unsigned distance) {
  const unsigned lane = threadIdx.x % 32;
  warp->lanes[lane] = std::bit_cast<unsigned>(v);
  warp->meet.arrive_and_wait();
  const T got = lane + distance < 32 ? std::bit_cast<T>(warp->lanes[lane + distance]) : v;
  warp->meet.arrive_and_wait();
  return got;
}

template <class T>
T atomicAdd(T* at, T v) {
  return std::atomic_ref<T>(*at).fetch_add(v);
}

[[gnu::format(printf, 1, 2)]] inline int printf(const char* format, ...) {
  std::array<char, 200> text{};
  std::va_list values;
  va_start(values, format);
  const int n = std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  const std::lock_guard lock(said_lock);
  printed += text.data();
  return n;
}

inline void assert_that(bool holds, const char* what) {
  const std::lock_guard lock(said_lock);
  if (!holds) asserted = what;
}

// kernel<<<blocks, threads>>>(args...), and a wait for it.
template <class Kernel, class... Args>
void launch(unsigned blocks, unsigned threads, Kernel kernel, Args... args) {
  printed.clear();
  asserted.clear();
  gridDim = {blocks, 1, 1};
  blockDim = {threads, 1, 1};
  for (unsigned block = 0; block < blocks; ++block) {
    std::barrier<> all(threads);
    std::vector<Warp> warps((threads + 31) / 32);
    std::vector<std::jthread> running;
    for (unsigned thread = 0; thread < threads; ++thread)
      running.emplace_back([&, block, thread] {
        threadIdx = {thread, 0, 0};
        blockIdx = {block, 0, 0};
        meet = &all;
        warp = &warps[thread / 32];
        kernel(args...);
        all.arrive_and_drop();  // who returned is waited for no longer
      });
  }
}

}  // namespace kiln::test::cuda_words

#undef assert
#define assert(c) kiln::test::cuda_words::assert_that((c), #c)
