// Blocks: made ready, and their warps run in turn until all are done.
#include "simcuda/ptx_block.h"

#include <algorithm>
#include <cstring>

#include "simcuda/ptx_loaded.h"
#include "simcuda/ptx_schedule.h"

namespace kiln::simcuda::ptx {
namespace {

constexpr std::uint64_t kWarpShare = 1u << 16;
constexpr std::uint64_t kPoison = 0xdeadbeefdeadbeefull;  // what a register holds that nobody wrote

std::uint64_t mixed(std::uint64_t v) {
  v += 0x9e3779b97f4a7c15ull;
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ v >> 27) * 0x94d049bb133111ebull;
  return (v ^ v >> 31) | 1;
}

void shuffle(auto& list, std::uint64_t& state) {
  for (std::size_t k = list.size(); k > 1; --k) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::swap(list[k - 1], list[static_cast<std::size_t>(state % k)]);
  }
}

void start_warp(Block& b, Warp& w, std::uint32_t index) {
  const LaunchState& launch = *b.launch;
  w.block = &b;
  w.index = index;
  const std::uint32_t n = std::min(32u, b.threads - index * 32);
  w.all = w.live = n == 32 ? ~Mask{0} : (Mask{1} << n) - 1;
  w.turns = 0;
  w.carry = 0;
  w.fragments.clear();
  w.fragments.reserve(40);
  Fragment f;
  f.lanes = w.all;
  f.frame.function = launch.entry;
  f.frame.top = launch.entry->frame_bytes;
  w.register_file.resize(std::max<std::size_t>(w.register_file.size(), std::size_t{32} * launch.entry->slots));
  w.predicate_file.resize(std::max<std::size_t>(w.predicate_file.size(), launch.entry->predicates));
  for (const std::uint32_t slot : launch.entry->undefined) std::fill_n(w.register_file.begin() + std::size_t{32} * slot, 32, kPoison);
  std::fill(w.predicate_file.begin(), w.predicate_file.end(), 0);
  w.fragments.push_back(std::move(f));
  const auto& dim = launch.launch->block;
  for (std::uint32_t l = 0; l < n; ++l) {
    const std::uint32_t t = index * 32 + l;
    w.tid[l] = {t % dim[0], t / dim[0] % dim[1], t / dim[0] / dim[1]};
  }
  for (std::uint8_t l = 0; l < 32; ++l) w.order[l] = launch.options.order == Order::Reverse ? static_cast<std::uint8_t>(31 - l) : l;
  if (launch.options.order == Order::Seeded) shuffle(w.order, b.random);
}

}  // namespace

void start_block(Block& b, std::uint64_t linear) {
  const LaunchState& launch = *b.launch;
  const auto& grid = launch.launch->grid;
  const auto& dim = launch.launch->block;
  b.linear = linear;
  b.index = {static_cast<std::uint32_t>(linear % grid[0]), static_cast<std::uint32_t>(linear / grid[0] % grid[1]),
             static_cast<std::uint32_t>(linear / grid[0] / grid[1])};
  b.threads = dim[0] * dim[1] * dim[2];
  b.random = mixed(launch.options.seed ^ mixed(linear));
  const std::uint32_t warps = (b.threads + 31) / 32;
  b.warps.resize(warps);
  for (std::uint32_t k = 0; k < warps; ++k) start_warp(b, b.warps[k], k);
  b.order.resize(warps);
  for (std::uint32_t k = 0; k < warps; ++k) b.order[k] = launch.options.order == Order::Reverse ? warps - 1 - k : k;
  b.shared.resize(launch.shared_bytes + 32);
  b.shared_written.assign(launch.shared_bytes + 32, 0);
  if (!b.local && launch.local_stride > 0) b.local.reset(new std::byte[launch.local_stride * 32 * warps + 16]);
  for (BarrierState& s : b.barriers) {
    s.arrived.assign(warps, 0);
    s.expected = 0;
  }
  if (launch.options.shared_races || launch.options.global_races) {
    if (!b.races) b.races.emplace();
    b.races->reset(b.threads, launch.options.shared_races ? launch.shared_bytes : 0, launch.granule);
  }
}

bool run_block(Block& b, std::uint64_t budget) {
  while (budget > 0) {
    if (b.launch->stopped.load(std::memory_order_relaxed)) return true;
    if (b.launch->options.order == Order::Seeded) shuffle(b.order, b.random);
    bool any = false, alive = false;
    for (const std::uint32_t k : b.order) {
      Warp& w = b.warps[k];
      if (w.fragments.empty()) continue;
      std::uint64_t share = kWarpShare;
      any = run_warp(w, share) || any;
      budget -= std::min(budget, kWarpShare - share);
      alive = alive || !w.fragments.empty();
    }
    if (!alive) return true;
    if (!any) report_deadlock(b);
  }
  return false;
}

}  // namespace kiln::simcuda::ptx
