// The examples of docs/language/warps.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_warps {

// example: sums
KILN_KERNEL(warp_sums, (In<i32> x, Out<i32> sums, Out<i32> before))
{
  auto i = global_id().x;
  If (i < x.size() && i < before.size()) {
    Val<i32> v = x[i];
    Val<i32> sum = warp::sum(v);         // of the lanes that are here: the last warp has fewer
    before[i] = warp::exclusive_sum(v);  // of the lanes before this one
    If (warp::elect()) { sums[i / warp::size] = sum; }
  }
}
// end

// example: shuffles
KILN_KERNEL(shuffles, (In<u32> x, Out<u32, 2> y))
{
  auto t = thread_id().x;
  If (t < x.size() && t < y.extent(1)) {
    Val<u32> v = x[t];
    y[0, t] = warp::shfl_xor(v, 1);   // neighbours swap
    y[1, t] = warp::shfl_up(v, 1);    // of the lane below; the lowest keeps its own
    y[2, t] = warp::shfl_down(v, 1);  // of the lane above; the highest keeps its own
    y[3, t] = warp::shfl_idx(v, 3);   // of lane 3
  }
}
// end

// example: votes
// The places of the elements that are not 0, in their order: a compaction of one warp.
KILN_KERNEL(places, (In<u32> x, InOut<u32> y, Out<u32> count))
{
  block_size(32);
  auto t = thread_id().x;
  Val<bool> keep = t < x.size() && x[t] != 0;
  Val<u32> kept = warp::ballot(keep);  // bit l is what lane l says
  Val<bool> some = warp::any(keep), every = warp::all(keep);
  If (keep) { y[popcount(kept & ((Val<u32>(1) << lane_id()) - 1))] = t; }
  If (warp::elect()) { count[0] = select(some && !every, popcount(kept), 99); }
}
// end

// example: combines
KILN_KERNEL(combines, (In<u32> x, Out<u32> y))
{
  block_size(4);
  Val<u32> v = x[thread_id().x];
  Val<u32> product = warp::product(v), least = warp::min(v), most = warp::max(v);
  Val<u32> both = warp::and_(v), either = warp::or_(v), odd = warp::xor_(v);
  Val<u32> so_far = warp::inclusive_max(v);
  If (thread_id().x == 3) {
    y[0] = product;
    y[1] = least;
    y[2] = most;
    y[3] = both;
    y[4] = either;
    y[5] = odd;
    y[6] = so_far;
  }
}
// end

// example: all scans
// Each reduction has its two scans: inclusive with the lane's own value, exclusive without it (the first lane: what changes nothing).
KILN_KERNEL(scans, (In<i32> x, Out<i32, 2> y))
{
  block_size(4);
  auto t = thread_id().x;
  Val<i32> v = x[t];
  y[0, t] = warp::inclusive_sum(v) - warp::exclusive_sum(v);
  y[1, t] = warp::inclusive_product(v) - warp::exclusive_product(v);
  y[2, t] = warp::inclusive_min(v) - min(v, warp::exclusive_min(v));
  y[3, t] = warp::inclusive_max(v) - max(v, warp::exclusive_max(v));
  y[4, t] = warp::inclusive_and_(v) - (v & warp::exclusive_and_(v));
  y[5, t] = warp::inclusive_or_(v) - (v | warp::exclusive_or_(v));
  y[6, t] = warp::inclusive_xor_(v) - (v ^ warp::exclusive_xor_(v));
}
// end

// example: sync
// Lanes hand values on through shared memory; the warp alone waits.
KILN_KERNEL(neighbours, (In<u32> x, Out<u32> y))
{
  block_size(32);
  Shared<u32> s(32);
  auto t = thread_id().x;
  s[t] = x[t];
  warp::sync();
  y[t] = s[(t + 1) % 32];
}
// end

}  // namespace docs_warps

TEST_CASE("docs/language/warps") {
  const std::vector<Arg> sums{buffer(made_of<i32>(40, [](auto i) { return i; })), filled<i32>(2, 0), filled<i32>(40, 0)};
  check_example<i32>(docs_warps::warp_sums, {{1}, {64}}, sums, 1, {31 * 32 / 2, 39 * 40 / 2 - 31 * 32 / 2});
  std::vector<i32> before(40);
  for (i32 i = 1; i < 40; ++i) before[static_cast<u32>(i)] = i == 32 ? 0 : before[static_cast<u32>(i) - 1] + i - 1;
  check_example<i32>(docs_warps::warp_sums, {{1}, {64}}, sums, 2, before);
  check_example<u32>(docs_warps::shuffles, {{1}, {32}}, {buffer<u32>({10, 11, 12, 13, 14, 15}), buffer(std::vector<u32>(24), {4, 6})}, 1,
                     {11, 10, 13, 12, 15, 14, 10, 10, 11, 12, 13, 14, 11, 12, 13, 14, 15, 15, 13, 13, 13, 13, 13, 13});
  const std::vector<Arg> places{buffer<u32>({0, 4, 0, 0, 9, 1}), filled<u32>(4, 77), filled<u32>(1, 0)};
  check_example<u32>(docs_warps::places, {{1}, {32}}, places, 1, {1, 4, 5, 77});
  check_example<u32>(docs_warps::places, {{1}, {32}}, places, 2, {3});
  check_example<u32>(docs_warps::combines, {{1}, {4}}, {buffer<u32>({3, 5, 2, 7}), filled<u32>(7, 0)}, 1, {210, 2, 7, 0, 7, 3, 7});
  check_example<i32>(docs_warps::scans, {{1}, {4}}, {buffer<i32>({3, -5, 2, 7}), buffer(std::vector<i32>(28, 9), {7, 4})}, 1,
                     {3, -5, 2, 7, 2, -18, -15, -180, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const auto x = made_of<u32>(32, [](auto i) { return 2 * i; });
  check_example<u32>(docs_warps::neighbours, {{1}, {32}}, {buffer(x), filled<u32>(32, 0)}, 1,
                     made_of<u32>(32, [](auto i) { return 2 * ((i + 1) % 32); }));
}
