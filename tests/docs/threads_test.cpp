// The examples of docs/language/threads.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_threads {

// example: positions
KILN_KERNEL(positions, (Out<u32, 2> y))
{
  require(y.extent(1) >= 4);
  auto [x, row, z] = global_id();  // block_id * block_dim + thread_id, for each axis
  If (row < y.extent(0) && x == 0) {
    y[row, 0] = thread_id().y;
    y[row, 1] = block_id().y;
    y[row, 2] = block_dim().y;
    y[row, 3] = grid_dim().y;
  }
}
// end

// example: grid stride
// Any number of blocks does it.
KILN_KERNEL(add_one, (InOut<f32> y))
{
  for (auto i : range(global_id64().x, y.size64(), cast<u64>(block_dim().x) * cast<u64>(grid_dim().x))) { y[i] += 1; }
}
// end

// example: lanes
KILN_KERNEL(lanes, (Out<u32> lane, Out<u32> warp))
{
  auto [x, y, z] = thread_id();
  auto linear = x + y * block_dim().x + z * block_dim().x * block_dim().y;
  If (linear < lane.size() && linear < warp.size()) {
    lane[linear] = lane_id();  // linear % 32
    warp[linear] = warp_id();  // linear / 32
  }
}
// end

// example: clocks
// How long each block took, in nanoseconds and in cycles, as its first thread sees it.
KILN_KERNEL(timed, (In<f32> x, InOut<f32> y, InOut<u64, 2> took))
{
  Val<u64> begun = global_time(), first_cycle = clock_cycles();
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) { y[i] = sqrt(x[i]); }
  barrier();
  Val<u64> last_cycle = clock_cycles(), over = global_time();
  If (thread_id().x == 0) {
    took[block_id().x, 0] = over - begun;
    took[block_id().x, 1] = last_cycle - first_cycle;
  }
}
// end

}  // namespace docs_threads

TEST_CASE("docs/language/threads") {
  check_example<u32>(docs_threads::positions, {{1, 2}, {4, 2}}, {buffer(std::vector<u32>(16), {4, 4})}, 0,
                     {0, 0, 2, 2, 1, 0, 2, 2, 0, 1, 2, 2, 1, 1, 2, 2});
  check_example<f32>(docs_threads::add_one, {{2}, {33}}, {filled<f32>(500, 2)}, 0, std::vector<f32>(500, 3));
  const std::vector<Arg> args{filled<u32>(40, 0), filled<u32>(40, 0)};
  check_example<u32>(docs_threads::lanes, {{1}, {5, 4, 2}}, args, 0, made_of<u32>(40, [](auto i) { return i % 32; }));
  check_example<u32>(docs_threads::lanes, {{1}, {5, 4, 2}}, args, 1, made_of<u32>(40, [](auto i) { return i / 32; }));
  check_example<f32>(docs_threads::timed, {{2}, {32}}, {filled<f32>(50, 4), filled<f32>(50, 0), buffer(std::vector<u64>(4), {2, 2})}, 1,
                     std::vector<f32>(50, 2));
}
