// One value from every thread of a block, combined; every thread gets the result.
#pragma once
#include <kiln/kiln.h>

namespace samples {

// Combines over a block of Threads threads along x, a multiple of the warp's size: `combine` by pairs, `of_warp` over a warp. `per_warp`
// has an element for each warp and may be used again at once. Every thread of the block must get here.
template <kiln::u32 Threads, kiln::Scalar T, class Combine, class OfWarp>
kiln::Val<T> block_reduce(kiln::Val<T> v, kiln::Shared<T>& per_warp, Combine combine, OfWarp of_warp) {
  using namespace kiln;
  static_assert(Threads % warp::size == 0);
  auto t = thread_id().x;
  auto mine = of_warp(v);
  barrier();  // who used per_warp before is through with it
  If (t % warp::size == 0) { per_warp[t / warp::size] = mine; }
  barrier();
  Var<T> all = per_warp[0];
  for (u32 w = 1; w < Threads / warp::size; ++w) all = combine(Val<T>(all), Val<T>(per_warp[w]));
  return all;
}

template <kiln::u32 Threads, kiln::Scalar T>
kiln::Val<T> block_sum_of(kiln::Val<T> v, kiln::Shared<T>& per_warp) {
  return block_reduce<Threads>(v, per_warp, [](auto a, auto b) { return a + b; }, [](auto x) { return kiln::warp::sum(x); });
}

template <kiln::u32 Threads, kiln::Scalar T>
kiln::Val<T> block_max_of(kiln::Val<T> v, kiln::Shared<T>& per_warp) {
  return block_reduce<Threads>(v, per_warp, [](auto a, auto b) { return kiln::max(a, b); }, [](auto x) { return kiln::warp::max(x); });
}

}  // namespace samples
