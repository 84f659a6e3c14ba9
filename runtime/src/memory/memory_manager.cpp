#include "src/memory/memory_manager.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "src/make_error.h"
#include "src/memory/memory_capture.h"

namespace kiln::rt {
namespace {

std::uint64_t next_manager() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// How deep a thread is in windows of persistent memory, for each manager that it has some of.
struct Depth {
  std::uint64_t manager = 0;
  unsigned depth = 0;
};
thread_local std::vector<Depth> persistent_depths;

// The stream's accounts that are kept beyond those with live memory.
constexpr std::size_t kAccounts = 1024;

}  // namespace

thread_local unsigned InHostCall::depth = 0;

void MemoryManager::Use::add(std::uint64_t asked, std::uint64_t taken) {
  ++usage.allocations;
  usage.bytes_in_use += asked;
  usage.bytes_padding += taken - asked;
  largest = std::max(largest, asked);
  peak = std::max(peak, usage.bytes_in_use);
}

void MemoryManager::Use::remove(std::uint64_t asked, std::uint64_t taken) {
  --usage.allocations;
  usage.bytes_in_use -= asked;
  usage.bytes_padding -= taken - asked;
}

MemoryManager::MemoryManager(Device& device, const MemorySettings& settings)
    : device_(device),
      number_(next_manager()),
      traits_(device.memory_traits()),
      persistent_(kPersistentPool, {PoolKind::Persistent, 0, 0, 0, 0}, traits_.alignment, traits_.bytes, nodes_, over_),
      keep_(traits_.keep),
      drop_(settings.deferred) {
  install(settings.applied_to(traits_.pools)).value();  // the device's own is right, as the presets are
}

MemoryManager::~MemoryManager() {
  const auto give_back = [&](PagePool& pool) {
    pool.for_each_pending([&](PoolSlice& s) { s.after.for_each([&](Event e) { device_.wait(e); }); });
    pool.settle(~0u);
    while (PoolPage* page = pool.longest_empty()) leave(pool.remove(*page), {});
  };
  for (const auto& layout : layouts_)
    for (const auto& pool : layout->pools) give_back(*pool);
  give_back(persistent_);
  drop_.events().for_each([&](Event e) { device_.wait(e); });
  const auto passed = [](const After&) { return true; };
  send(drop_.flush(passed));
  send(drop_.settle(passed));
}

// --- allocating ----------------------------------------------------------------------------------------------------------------

struct MemoryManager::Attempt {
  const std::uint64_t bytes, rounded;
  const Request& request;
  const bool tight, lazy, persistent, may_wait_for_others;
  const std::uint32_t queue;
  StreamAccount& account;
  Block storage;
  std::optional<Error> refused;  // the first reason
  void refuse(Error error) {
    if (!refused) refused = std::move(error);
  }
};

Result<MemoryManager::Block> MemoryManager::allocate(std::uint64_t bytes, const Request& request) {
  if (device_.poisoned()) return device_.allocate(bytes);  // which says so
  if (traits_.bytes != 0 && bytes > traits_.bytes) {
    return make_error(
        ErrorCode::BufferTooBig, {},
        "no buffer of " + std::to_string(bytes) + " bytes: " + device_.label() + " has " + std::to_string(traits_.bytes) + " in all",
        {.requested = bytes, .limit = traits_.bytes});
  }
  auto block = with_reclaim(bytes, [&](bool tight) { return attempt(bytes, request, tight); });
  if (!block.has_value() || request.lazy || !(*block)->unmapped.load(std::memory_order_relaxed)) return block;
  if (lazy_.load(std::memory_order_relaxed) > 0) return block;
  if (auto ok = map(**block); !ok.has_value()) {  // a slice of a page that nobody needed so far
    const After after = (*block)->after;
    retire(std::move(*block), after);
    return ok.error().causes().empty() ? ok.error() : ok.error().causes().front();
  }
  return block;
}

Result<MemoryManager::Block> MemoryManager::attempt(std::uint64_t bytes, const Request& request, bool tight) {
  auto storage = std::make_unique_for_overwrite<Storage>();  // it sets what it has; not the room for events that it has not
  std::unique_lock lock(mutex_);
  nodes_.reserve(2);
  Attempt a{bytes,
            round_up_to(bytes, traits_.alignment),
            request,
            tight,
            request.lazy || lazy_.load(std::memory_order_relaxed) > 0,
            policy_ == PersistentPolicy::Enforced || (policy_ != PersistentPolicy::Disabled && persistent_now()),
            !InHostCall::now(),
            queue_of(request.stream),
            account_of(request.stream),
            std::move(storage),
            {}};
  if (a.account.capture != nullptr) a.account.capture->reserve_pin();
  if (a.persistent || policy_ == PersistentPolicy::SizeMatch) {
    if (PoolSlice* found = persistent_.find(a.rounded, a.queue, PagePool::Whose::Nobodys)) return give(lock, persistent_, *found, a);
  }
  Layout& layout = *layouts_.back();
  if (!a.persistent) {
    // Nearly always the first that takes it has some.
    for (const auto& pool : layout.pools) {
      if (!pool->takes(a.rounded)) continue;
      if (PoolSlice* found = pool->find(a.rounded, a.queue, PagePool::Whose::Nobodys)) return give(lock, *pool, *found, a);
      break;
    }
  }
  // The lock is let go of in between: layout and account must stay.
  struct UnderWay {
    Layout& layout;
    StreamAccount& account;
    std::unique_lock<std::mutex>& lock;
    UnderWay(Layout& l, StreamAccount& s, std::unique_lock<std::mutex>& k) : layout(l), account(s), lock(k) {
      ++layout.users;
      ++account.live;
    }
    ~UnderWay() {
      if (!lock.owns_lock()) lock.lock();
      --layout.users;
      --account.live;
    }
  } under_way(layout, a.account, lock);
  return grow(lock, layout, a);
}

// No pool has a free slice that nobody is at work on: each in turn, more memory or memory that others are at work on.
Result<MemoryManager::Block> MemoryManager::grow(std::unique_lock<std::mutex>& lock, Layout& layout, Attempt& a) {
  const std::size_t count = a.persistent ? 1 : layout.pools.size();
  std::uint64_t too_much = kAnySize;  // what the device did not have
  for (std::size_t i = 0; i < count; ++i) {
    PagePool& pool = a.persistent ? persistent_ : *layout.pools[i];
    if (!pool.takes(a.rounded)) continue;
    PoolSlice* found = pool.find(a.rounded, a.queue, PagePool::Whose::Nobodys);
    if (found == nullptr) found = refresh(lock, pool, a);
    const bool recording = a.account.capture != nullptr && a.account.capture->recording();
    const auto others = [&] { return a.may_wait_for_others ? pool.find(a.rounded, a.queue, PagePool::Whose::Anybodys) : nullptr; };
    if (found == nullptr && (traits_.reuse_first || recording)) found = others();
    if (found != nullptr) return give(lock, pool, *found, a);
    if (recording) {
      a.refuse(make_error(
          ErrorCode::PageUpdateForbidden, "PageUpdateForbidden",
          "no memory is free for " + std::to_string(a.bytes) +
              " bytes, and none may be taken from the device while a graph is captured on the stream; run the same work once before "
              "the capture begins, or allocate before it",
          {.requested = a.bytes}));
      continue;
    }
    const std::uint64_t bytes = pool.page_for(a.rounded, a.tight);
    if (bytes >= too_much) continue;
    if (!pool.has_room(bytes)) {
      if ((found = others()) != nullptr) return give(lock, pool, *found, a);
      a.refuse(capacity(pool, a.bytes));
      continue;
    }
    pool.expect(bytes);
    lock.unlock();
    std::unique_ptr<PoolPage> page;
    std::optional<Error> failed;
    try {
      page = std::make_unique<PoolPage>();
      page->bytes = bytes;
      if (!a.lazy) {
        auto block = device_.allocate(bytes);
        if (block.has_value()) page->block = std::move(*block);
        else failed = block.error();
      }
      lock.lock();
      if (!failed) nodes_.reserve(3);
      if (a.account.capture != nullptr) a.account.capture->reserve_pin();
    } catch (const std::bad_alloc&) {
      if (!lock.owns_lock()) lock.lock();
      pool.unexpect(bytes);
      lock.unlock();
      if (page != nullptr && page->block != nullptr) device_.retire(std::move(page->block), {});
      throw;
    }
    if (failed) {
      pool.unexpect(bytes);
      if ((found = others()) != nullptr) return give(lock, pool, *found, a);
      if (failed->code() == ErrorCode::OutOfMemory) too_much = bytes;
      a.refuse(std::move(*failed));
      continue;
    }
    if (page->block != nullptr) count_reserved(bytes);
    return give(lock, pool, *pool.add(std::move(page)).first, a);
  }
  if (a.refused) return std::move(*a.refused);
  return make_error(ErrorCode::PageSizesExhausted, "PageSizesExhausted",
                    "no pool of " + device_.label() + " takes allocations of " + std::to_string(a.bytes) +
                        " bytes; give the layout of its memory (install_memory_pools) one that does",
                    {.requested = a.bytes});
}

// Asks the device, without the lock, about the memory that was freed longest ago. A slice that can be taken now; null: none.
PoolSlice* MemoryManager::refresh(std::unique_lock<std::mutex>& lock, PagePool& pool, const Attempt& a) {
  for (unsigned round = 0; round < 32 && pool.oldest_pending() != nullptr; ++round) {
    const After after = pool.oldest_pending()->after;
    lock.unlock();
    bool over = true;
    after.for_each([&](Event e) { over = over && device_.done(e); });
    lock.lock();
    if (!over) return nullptr;
    pool.settle(~0u);
    if (PoolSlice* found = pool.find(a.rounded, a.queue, PagePool::Whose::Nobodys)) return found;
  }
  return nullptr;
}

Result<MemoryManager::Block> MemoryManager::give(std::unique_lock<std::mutex>& lock, PagePool& pool, PoolSlice& found, Attempt& a) {
  PoolSlice& slice = pool.cut(found, a.rounded, a.storage->after);
  PoolPage& page = *slice.page;
  slice.asked = a.bytes;
  slice.account = &a.account;
  slice.user = a.storage.get();
  a.storage->slice = &slice;
  a.storage->bytes = a.bytes;
  if (page.data() != nullptr) a.storage->data = page.data() + slice.offset;
  else a.storage->unmapped.store(true, std::memory_order_relaxed);
  count_in(slice);
  if (MemoryCapture* capture = a.account.capture; capture != nullptr && capture->recording()) capture->pin(slice);
  pool.note_allocation();
  if (PoolPage* idle = pool.idle_page()) leave(pool.remove(*idle), {});
  Storage* gone = leaving_.load(std::memory_order_relaxed) ? flush_if_due() : nullptr;
  lock.unlock();
  if (gone != nullptr) send(gone);
  return std::move(a.storage);
}

// --- freeing -------------------------------------------------------------------------------------------------------------------

void MemoryManager::retire(Block storage, const After& after) noexcept {
  if (storage->slice == nullptr) return device_.retire(std::move(storage), after);  // somebody else's, and no graph's
  PoolSlice& slice = *storage->slice;
  Storage* gone = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (slice.page == nullptr) {
      if (slice.pins != 0) {
        slice.state = PoolSlice::State::Held;
        slice.after = after;
        storage.release();  // the slice has it
        return;
      }
      nodes_.give_back(slice);
      storage->slice = nullptr;
    } else {
      MemoryCapture* const capture = slice.account->capture;
      count_out(slice);
      slice.account = nullptr;
      slice.user = nullptr;
      slice.after = after;
      const bool kept = capture != nullptr && capture->keep(slice);
      if (kept || slice.pins != 0) slice.state = PoolSlice::State::Held;
      else free_slice(slice, after);
      gone = leaving_.load(std::memory_order_relaxed) ? flush_if_due() : nullptr;
    }
  }
  if (storage->slice == nullptr) return device_.retire(std::move(storage), after);
  storage.reset();
  if (gone != nullptr) send(gone);
}

// Under the lock, as all that follows.
void MemoryManager::free_slice(PoolSlice& slice, const After& after) noexcept {
  PoolPage& page = *slice.page;
  PagePool& pool = *page.pool;
  if (pool.kind() == PoolKind::Direct) {
    leave(pool.remove_with(slice), after);
    return;
  }
  pool.free(slice, after);
  if (!page.empty() || &pool == &persistent_) return;
  if (pool.outdated()) {
    leave(pool.remove(page), {});
    return;
  }
  std::uint64_t kept = 0;
  for (const auto& each : layouts_.back()->pools) kept += each->empty_bytes();
  while (kept > keep_ && pool.longest_empty() != nullptr) {
    PoolPage& oldest = *pool.longest_empty();
    if (oldest.block != nullptr) kept -= oldest.bytes;
    leave(pool.remove(oldest), {});
  }
}

void MemoryManager::leave(std::unique_ptr<PoolPage> page, const After& after) noexcept {
  if (page->block == nullptr) return;
  total_.bytes_reserved -= page->bytes;
  page->block->after = after;
  drop_.push(std::move(page->block));
  leaving_.store(true, std::memory_order_relaxed);
}

// What goes back to the device now, linked; to be sent without the lock.
Storage* MemoryManager::flush_if_due() noexcept {
  if (recording_ != 0) return nullptr;  // nothing may be released while a graph records
  const auto passed = [&](const After& fence) { return over_(fence); };
  Storage* gone = drop_.due() ? drop_.flush(passed) : drop_.settle(passed);
  if (gone == nullptr) gone = drop_.settle(passed);
  if (drop_.empty()) leaving_.store(false, std::memory_order_relaxed);
  return gone;
}

// Without the lock.
void MemoryManager::send(Storage* list) noexcept {
  while (list != nullptr) {
    Storage* const block = std::exchange(list, list->next);
    block->next = nullptr;
    device_.retire(Block(block), {});
  }
}

void MemoryManager::settle() noexcept {
  if (!leaving_.load(std::memory_order_relaxed)) return;
  Storage* gone = nullptr;
  {
    const std::lock_guard lock(mutex_);
    gone = flush_if_due();
  }
  send(gone);
}

// --- accounts ------------------------------------------------------------------------------------------------------------------

std::size_t MemoryManager::place(const PagePool& pool) {
  if (pool.id() == kPersistentPool) return 0;
  return pool.id() < kPersistentPool ? pool.id() + 1 : pool.id();
}

MemoryManager::Use& MemoryManager::use(std::vector<Use>& uses, const PagePool& pool) { return uses[place(pool)]; }

// With room for what the present layout needs counted.
StreamAccount& MemoryManager::account_of(std::uint64_t stream) {
  StreamAccount* account = last_account_;
  if (account == nullptr || account->stream != stream) {
    auto found = accounts_.find(stream);
    if (found == accounts_.end()) {
      if (accounts_.size() >= kAccounts) {  // those of streams that have nothing are forgotten
        last_account_ = nullptr;
        std::erase_if(accounts_, [](const auto& entry) { return entry.second->live == 0 && entry.second->capture == nullptr; });
      }
      found = accounts_.emplace(stream, std::make_unique<StreamAccount>(stream)).first;
    }
    last_account_ = account = found->second.get();
  }
  if (account->uses.size() < uses_.size()) account->uses.resize(uses_.size());
  return *account;
}

void MemoryManager::count_in(PoolSlice& slice) {
  const PagePool& pool = *slice.page->pool;
  use(uses_, pool).add(slice.asked, slice.bytes);
  StreamAccount& account = *slice.account;
  use(account.uses, pool).add(slice.asked, slice.bytes);
  ++account.live;
  account.in_use_peak = std::max(account.in_use_peak, account.in_use += slice.asked);
  account.taken_peak = std::max(account.taken_peak, account.taken += slice.bytes);
  ++total_.allocations;
  total_.bytes_in_use += slice.asked;
  total_.bytes_padding += slice.bytes - slice.asked;
  in_use_peak_ = std::max(in_use_peak_, total_.bytes_in_use);
}

void MemoryManager::count_reserved(std::uint64_t bytes) {
  total_.bytes_reserved += bytes;
  reserved_peak_ = std::max(reserved_peak_, total_.bytes_reserved);
}

void MemoryManager::count_out(PoolSlice& slice) noexcept {
  const PagePool& pool = *slice.page->pool;
  use(uses_, pool).remove(slice.asked, slice.bytes);
  StreamAccount& account = *slice.account;
  use(account.uses, pool).remove(slice.asked, slice.bytes);
  --account.live;
  account.in_use -= slice.asked;
  account.taken -= slice.bytes;
  --total_.allocations;
  total_.bytes_in_use -= slice.asked;
  total_.bytes_padding -= slice.bytes - slice.asked;
  slice.asked = 0;
}

// --- modes ---------------------------------------------------------------------------------------------------------------------

void MemoryManager::enter_persistent() {
  for (Depth& d : persistent_depths) {
    if (d.manager != number_) continue;
    ++d.depth;
    return;
  }
  persistent_depths.push_back({number_, 1});
}

void MemoryManager::leave_persistent() noexcept {
  for (std::size_t i = 0; i < persistent_depths.size(); ++i) {
    if (persistent_depths[i].manager != number_) continue;
    if (--persistent_depths[i].depth == 0) persistent_depths.erase(persistent_depths.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

bool MemoryManager::persistent_now() const {
  for (const Depth& d : persistent_depths)
    if (d.manager == number_) return true;
  return false;
}

}  // namespace kiln::rt
