#include "histogram.h"

using namespace kiln;

namespace samples {
namespace {

// Counts in shared memory first: an atomic of the block is cheaper than one of the device.
template <class Count>
void count_in_block(u32 bin_count, const InOut<u32>& bins, Count&& count) {
  Shared<u32> local(bin_count);
  auto t = thread_id().x, step = block_dim().x;
  for (auto b : range(t, bin_count, step)) { local[b] = 0; }
  barrier();
  count(local);
  barrier();
  for (auto b : range(t, bin_count, step)) { bins.atomic_add(b, local[b]); }
}

}  // namespace

KILN_KERNEL(histogram, (In<u32> keys, InOut<u32> bins))
{
  require(bins.size() >= histogram_bins);
  count_in_block(histogram_bins, bins, [&](const Shared<u32>& local) {
    for (auto i : range(global_id().x, keys.size(), block_dim().x * grid_dim().x)) {
      auto k = keys[i];
      If (k < histogram_bins) { local.atomic_add(k, 1); }
    }
  });
}

KILN_KERNEL(byte_histogram, (In<u32> words, InOut<u32> bins))
{
  require(bins.size() >= byte_bins);
  count_in_block(byte_bins, bins, [&](const Shared<u32>& local) {
    for (auto i : range(global_id().x, words.size(), block_dim().x * grid_dim().x)) {
      auto word = words[i];
      for (u32 byte = 0; byte < 4; ++byte) local.atomic_add((word >> 8 * byte) & 0xff, 1);
    }
  });
}

}  // namespace samples
