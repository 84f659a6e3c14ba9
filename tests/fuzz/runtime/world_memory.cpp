// Memory: taking and giving it, cleanups that move it, other layouts of pools.
#include <algorithm>
#include <optional>

#include "fuzz/runtime/world_parts.h"
#include "kiln/runtime/memory.h"

namespace kiln::fuzz {

void World::allocate() {
  if (memories_.size() >= options_.memories) return release();
  const std::uint64_t n = 1 + below(options_.elements);
  const std::uint64_t how = below(4);
  const std::vector<u32> host = how == 0 ? numbers(n) : std::vector<u32>();
  const Stream s = stream();
  note("allocate " + std::to_string(next_name_) + " of " + std::to_string(n));
  std::optional<PersistentMemory> persistent;
  if (chance(10)) persistent.emplace(client_);
  const auto made = [&]() -> Result<Buffer<u32>> {
    switch (how) {
      case 0: return Buffer<u32>::from_host(client_, host);
      case 1: return Buffer<u32>::zeroed(client_, n);
      case 2: return Buffer<u32>::uninitialised(client_, n);
      default: {
        auto memory = kiln::allocate(s, n * sizeof(u32));
        if (!memory.has_value()) return memory.error();
        return Buffer<u32>::over(client_, std::move(*memory), {n});
      }
    }
  }();
  if (!made.has_value()) {
    if (how == 3 && records(s) && made.error().code() == ErrorCode::PageUpdateForbidden) return doom({root_name(made.error())});
    if (!excused(made.error())) wrong("an allocation gave: " + made.error().text());
    if (how == 3 && records(s)) doom({root_name(made.error())});
    return;
  }
  auto tracked = std::make_shared<Tracked>(Tracked{*made, std::vector<Cell>(n), next_name_++});
  for (std::uint64_t i = 0; i < n; ++i) tracked->cells[i] = {how < 2, how == 0 ? host[i] : 0, {}, {}};
  memories_.push_back(std::move(tracked));
}

// A graph that has it may go on using it.
void World::release() {
  if (memories_.empty()) return;
  const std::uint64_t which = below(memories_.size());
  note("free " + std::to_string(memories_[which]->name));
  memories_[which]->buffer.reset();
  memories_.erase(memories_.begin() + static_cast<std::ptrdiff_t>(which));
}

// Nothing that the model knows changes.
void World::cleanup() {
  note("cleanup");
  const std::uint64_t prepared = together_.prepared;
  const int open = together_.captures;
  const auto freed = memory_cleanup(client_);
  if (freed.has_value()) {
    if (recorded_) wrong("memory was cleaned up while a graph was captured");
    return;
  }
  const bool captured = open != 0 || together_.captures != 0 || together_.prepared != prepared;
  if (!(captured && freed.error().code() == ErrorCode::PageUpdateForbidden) && !excused(freed.error()))
    wrong("a cleanup gave: " + freed.error().text());
}

void World::install_pools() {
  note("install_pools");
  MemoryPools layout;
  switch (below(4)) {
    case 0: layout = MemoryPools::exclusive_pages(); break;
    case 1: layout = MemoryPools::sub_slices(client_.properties(), std::uint64_t{1} << 20); break;
    case 2: layout.pools = {{.kind = PoolKind::Sliced, .page_bytes = 16384, .max_slice = 1024}, {.kind = PoolKind::Direct}}; break;
    default:
      layout.pools = {{.kind = PoolKind::Exclusive, .page_bytes = 4096, .cap = 8192},
                      {.kind = PoolKind::Sliced, .page_bytes = std::uint64_t{1} << 18, .idle = 5}};
  }
  layout.persistent = static_cast<PersistentPolicy>(below(4));
  const std::uint64_t prepared = together_.prepared;
  const int open = together_.captures;
  const auto result = install_memory_pools(client_, layout);
  if (result.has_value()) {
    if (recorded_) wrong("a layout was installed while a graph was captured");
    return chance(60) ? cleanup() : void();
  }
  const bool captured = open != 0 || together_.captures != 0 || together_.prepared != prepared;
  if (!(captured && result.error().code() == ErrorCode::PageUpdateForbidden) && !excused(result.error()))
    wrong("another layout gave: " + result.error().text());
}

}  // namespace kiln::fuzz
