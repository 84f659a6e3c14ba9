// What the memory manager does besides allocating and freeing: giving back, other layouts, moving, late mapping, reports.
#include <algorithm>
#include <string>
#include <utility>

#include "src/allocation.h"
#include "src/make_error.h"
#include "src/memory/memory_capture.h"
#include "src/memory/memory_manager.h"

namespace kiln::rt {

void MemoryManager::for_each_pool(auto&& f) const {
  for (const auto& layout : layouts_)
    for (const auto& pool : layout->pools) f(*pool);
}

// --- errors --------------------------------------------------------------------------------------------------------------------

Error MemoryManager::no_memory(const Error& error, std::uint64_t bytes, std::uint64_t given_back) const {
  const std::optional<std::uint64_t> free = device_.free_memory();
  std::uint64_t in_use = 0, pooled = 0;
  {
    const std::lock_guard lock(mutex_);
    in_use = total_.bytes_in_use + total_.bytes_padding;
    pooled = total_.bytes_reserved + drop_.bytes() - std::min(total_.bytes_reserved + drop_.bytes(), in_use);
  }
  Error::Data data = error.data();
  data.message = "no memory for a buffer of " + std::to_string(bytes) + " bytes on " + device_.label() + ": " + data.message +
                 " (free: " + (free ? std::to_string(*free) : std::string("not known")) + " of " + std::to_string(traits_.bytes) +
                 " bytes, in buffers of this process: " + std::to_string(in_use) + ", pooled: " + std::to_string(pooled) +
                 ", given back before the second attempt: " + std::to_string(given_back) + ")";
  data.requested = bytes;
  data.limit = free;
  return Error(std::move(data));
}

Error MemoryManager::capacity(const PagePool& pool, std::uint64_t bytes) const {
  return make_error(ErrorCode::PoolCapacityExceeded, "PoolCapacityExceeded",
                    "a buffer of " + std::to_string(bytes) + " bytes has no room in pool " + std::to_string(pool.id()) + " of " +
                        device_.label() + ", which has " + std::to_string(pool.reserved()) + " bytes of the " +
                        std::to_string(pool.config().cap) +
                        " that it may have, and no later pool takes it; free some buffers, or raise the cap",
                    {.requested = bytes, .limit = pool.config().cap});
}

// Under the lock.
Result<void> MemoryManager::may_update(const char* what) const {
  if (windows_ == 0) return {};
  return make_error(ErrorCode::PageUpdateForbidden, "PageUpdateForbidden",
                    std::string(what) + " while a graph is captured on " + device_.label() + "; end the capture first");
}

bool MemoryManager::captured() const {
  const std::lock_guard lock(mutex_);
  return windows_ != 0;
}

// --- giving back ---------------------------------------------------------------------------------------------------------------

// Gives back all that nobody uses. Waits for the work on what was freed, but not on a thread that this work may be waiting for.
std::uint64_t MemoryManager::reclaim() {
  After open;
  {
    const std::lock_guard lock(mutex_);
    if (recording_ != 0) return 0;
    const auto collect = [&](const PagePool& pool) { pool.for_each_pending([&](const PoolSlice& s) { open.add(s.after); }); };
    for_each_pool(collect);
    collect(persistent_);
    open.add(drop_.events());
  }
  if (!InHostCall::now()) open.for_each([&](Event e) { device_.wait(e); });
  Storage* gone[2] = {};
  {
    const std::lock_guard lock(mutex_);
    if (recording_ != 0) return 0;
    const auto empty = [&](PagePool& pool) {
      pool.settle(~0u);
      while (PoolPage* page = pool.longest_empty()) leave(pool.remove(*page), {});
    };
    for_each_pool(empty);
    empty(persistent_);
    const auto passed = [&](const After& fence) { return over_(fence); };
    gone[0] = drop_.flush(passed);
    gone[1] = drop_.settle(passed);
    leaving_.store(!drop_.empty(), std::memory_order_relaxed);
    drop_empty_layouts();
  }
  std::uint64_t bytes = 0;
  for (Storage* list : gone) {
    for (const Storage* s = list; s != nullptr; s = s->next) bytes += s->bytes;
    send(list);
  }
  return bytes;
}

Result<std::uint64_t> MemoryManager::cleanup() {
  {
    const std::lock_guard lock(mutex_);
    if (auto ok = may_update("memory cannot be cleaned up"); !ok.has_value()) return ok.error();
  }
  return reclaim();
}

// --- layouts -------------------------------------------------------------------------------------------------------------------

Result<void> MemoryManager::install(const MemoryPools& layout) {
  const Result<MemoryPools> good = checked(layout, traits_.alignment);
  if (!good.has_value()) return good.error();
  auto next = std::make_unique<Layout>();
  Storage* gone = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (auto ok = may_update("the layout of memory cannot be changed"); !ok.has_value()) return ok;
    std::uint32_t id = next_pool_;
    for (const PoolConfig& config : good->pools) {
      if (id == kPersistentPool) ++id;
      next->pools.push_back(std::make_unique<PagePool>(id++, config, traits_.alignment, traits_.bytes, nodes_, over_));
    }
    uses_.resize(std::max(uses_.size(), place(*next->pools.back()) + 1));
    layouts_.reserve(layouts_.size() + 1);
    // From here on nothing fails.
    next_pool_ = id;
    if (!layouts_.empty()) {
      for (const auto& pool : layouts_.back()->pools) {
        pool->become_outdated();
        while (PoolPage* page = pool->longest_empty()) leave(pool->remove(*page), {});
      }
    }
    layouts_.push_back(std::move(next));
    keep_ = good->keep.value_or(traits_.keep);
    policy_ = good->persistent;
    drop_empty_layouts();
    gone = flush_if_due();
  }
  send(gone);
  return {};
}

void MemoryManager::drop_empty_layouts() noexcept {
  for (std::size_t i = 0; i + 1 < layouts_.size();) {
    Layout& layout = *layouts_[i];
    const bool used =
        layout.users != 0 || std::any_of(layout.pools.begin(), layout.pools.end(), [](const auto& pool) { return pool->pages() != 0; });
    if (used) ++i;
    else layouts_.erase(layouts_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::vector<MemoryManager::Movable> MemoryManager::movable() {
  std::vector<Movable> found;
  for (;;) {
    std::size_t count = 0;
    {
      const std::lock_guard lock(mutex_);
      if (windows_ != 0) return found;
      const auto look = [&](auto&& f) {
        for (std::size_t i = 0; i + 1 < layouts_.size(); ++i) {
          for (const auto& pool : layouts_[i]->pools) {
            pool->for_each_page([&](PoolPage& page) {
              if (page.block == nullptr) return;
              for (PoolSlice* s = page.first; s != nullptr; s = s->above) {
                if (s->state != PoolSlice::State::Used || s->pins != 0 || s->user == nullptr || s->user->fixed) continue;
                if (Allocation* owner = s->user->allocation.load(std::memory_order_acquire)) f(*owner, s->account->stream);
              }
            });
          }
        }
      };
      look([&](Allocation&, std::uint64_t) { ++count; });
      if (count <= found.capacity()) {
        // Nothing is let go of under the lock: it may be the last reference, and freeing takes the lock.
        look([&](Allocation& owner, std::uint64_t stream) {
          if (Memory memory = owner.weak_from_this().lock()) found.push_back({std::move(memory), stream});
        });
        return found;
      }
    }
    found.reserve(count + 8);
  }
}

bool MemoryManager::exchange(Storage& moved, Storage& fresh) noexcept {
  const std::lock_guard lock(mutex_);
  PoolSlice &a = *moved.slice, &b = *fresh.slice;
  if (moved.fixed || a.pins != 0 || windows_ != 0) return false;
  std::swap(a.user, b.user);
  std::swap(moved.slice, fresh.slice);
  std::swap(moved.capacity, fresh.capacity);
  void* const from = moved.data;
  std::atomic_ref(moved.data).store(fresh.data, std::memory_order_relaxed);  // others read it at any time
  fresh.data = from;
  return true;
}

void MemoryManager::pin_address(Storage& storage) noexcept {
  const std::lock_guard lock(mutex_);
  storage.fixed = true;
}

// --- late mapping --------------------------------------------------------------------------------------------------------------

Result<void> MemoryManager::map(Storage& storage) {
  PoolPage& page = *storage.slice->page;  // stays: the storage is in it
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!storage.unmapped.load(std::memory_order_relaxed)) return {};
    bytes = page.bytes;
    if (MemoryCapture* capture = storage.slice->account->capture; capture != nullptr && capture->recording()) {
      return make_error(ErrorCode::StorageMappingFailed, {},
                        "memory of " + std::to_string(storage.bytes) + " bytes cannot be taken at its first use",
                        {.causes = {may_update("no memory may be taken from the device").error()}});
    }
  }
  auto block = with_reclaim(bytes, [&](bool) { return device_.allocate(bytes); });
  if (!block.has_value()) {
    return make_error(ErrorCode::StorageMappingFailed, "StorageMappingFailed",
                      "there was no memory for " + std::to_string(storage.bytes) +
                          " bytes that were allocated in a mode that takes none, when they were first used",
                      {.requested = storage.bytes, .causes = {block.error()}});
  }
  std::unique_ptr<Storage> other;
  {
    const std::lock_guard lock(mutex_);
    if (page.block != nullptr) {
      other = std::move(*block);  // another thread was faster
    } else {
      page.block = std::move(*block);
      page.pool->mapped(page);
      count_reserved(bytes);
      for (PoolSlice* s = page.first; s != nullptr; s = s->above) {
        if (s->user == nullptr) continue;
        std::atomic_ref(s->user->data).store(page.data() + s->offset, std::memory_order_relaxed);
        s->user->unmapped.store(false, std::memory_order_release);
      }
    }
  }
  if (other != nullptr) device_.retire(std::move(other), {});
  return {};
}

// --- reports -------------------------------------------------------------------------------------------------------------------

namespace {

PoolReport describe(const PagePool& pool) {
  PoolReport r;
  r.kind = pool.kind();
  r.id = pool.id();
  r.outdated = pool.outdated();
  r.page_bytes = pool.config().page_bytes;
  r.cap = pool.config().cap;
  return r;
}

}  // namespace

MemoryReport MemoryManager::report() const {
  MemoryReport report;
  const std::lock_guard lock(mutex_);
  const auto add = [&](const PagePool& pool) {
    PoolReport r = describe(pool);
    const Use& use = uses_[place(pool)];
    r.usage = use.usage;
    r.usage.bytes_reserved = pool.reserved();
    r.largest_allocation = use.largest;
    r.bytes_in_use_peak = use.peak;
    r.pages = pool.pages();
    r.pages_peak = pool.pages_peak();
    r.pages_unmapped = pool.pages_unmapped();
    report.pools.push_back(r);
  };
  for_each_pool(add);
  add(persistent_);
  report.total = total_;
  report.bytes_in_use_peak = in_use_peak_;
  report.bytes_reserved_peak = reserved_peak_;
  report.bytes_leaving = drop_.bytes();
  return report;
}

Result<MemoryReport> MemoryManager::report(std::uint64_t stream) const {
  MemoryReport report;
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(stream);
  if (found == accounts_.end()) { return Error(ErrorCode::NotFound, "nothing was ever allocated for the stream on " + device_.label()); }
  const std::vector<Use>& uses = found->second->uses;
  const auto add = [&](const PagePool& pool) {
    if (place(pool) >= uses.size() || uses[place(pool)].peak == 0) return;
    const Use& use = uses[place(pool)];
    PoolReport r = describe(pool);
    r.usage = use.usage;
    r.usage.bytes_reserved = use.usage.bytes_in_use + use.usage.bytes_padding;
    r.largest_allocation = use.largest;
    r.bytes_in_use_peak = use.peak;
    report.total.allocations += r.usage.allocations;
    report.total.bytes_in_use += r.usage.bytes_in_use;
    report.total.bytes_padding += r.usage.bytes_padding;
    report.total.bytes_reserved += r.usage.bytes_reserved;
    report.pools.push_back(r);
  };
  for_each_pool(add);
  add(persistent_);
  report.bytes_in_use_peak = found->second->in_use_peak;
  report.bytes_reserved_peak = found->second->taken_peak;
  return report;
}

}  // namespace kiln::rt
