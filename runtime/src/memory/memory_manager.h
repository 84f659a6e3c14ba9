// MemoryManager: the memory of one device, between the server and the device. Written once for all devices: these give and take back blocks
// (Device::allocate, Device::retire), which are the manager's pages.
//
// What holds: memory that is freed with events still open may be given out at once, and Storage::after says what its taker comes after.
// Nothing of it waits on the host, but for what says so. A failed allocation leaves nothing behind. Destroying in any order works.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kiln/runtime/memory.h"
#include "src/device.h"
#include "src/memory/drop_queue.h"
#include "src/memory/memory_settings.h"
#include "src/memory/page_pool.h"
#include "src/memory/pool_config.h"

namespace kiln::rt {

class MemoryCapture;

// A thread of the runtime that calls a host function in a stream's turn: while one lives, allocations of the thread take no memory that
// others are at work on, and wait for nobody, since that work may be behind the function itself.
class InHostCall {
 public:
  InHostCall() { ++depth; }
  ~InHostCall() { --depth; }
  InHostCall(const InHostCall&) = delete;
  static bool now() { return depth != 0; }

 private:
  static thread_local unsigned depth;
};

// Thread-safe: one lock, which no call of the device is made under that may block, allocate or free. Its place is behind the server's lock
// of enqueueing and before all of the device's.
class MemoryManager {
 public:
  explicit MemoryManager(Device& device, const MemorySettings& settings = {});
  ~MemoryManager();  // gives back every page. Everything given out is back, and captures are gone
  MemoryManager(const MemoryManager&) = delete;

  using Block = std::unique_ptr<Storage>;
  struct Request {
    std::uint64_t stream = 0;  // whose account it is on
    bool lazy = false;         // no memory is taken for it until map()
  };
  // bytes > 0. What is done with it must come after its `after`. Where there is no more, unused memory is given back to the device, for
  // which this waits, and it is asked once more. Errors: BufferTooBig, OutOfMemory (with the sizes), PoolCapacityExceeded,
  // PageSizesExhausted, PageUpdateForbidden while the stream is captured, those of a lost device.
  Result<Block> allocate(std::uint64_t bytes, const Request& request);
  // Frees once the events are over; gives out before that only to who comes after them. Also of memory that somebody else allocated.
  void retire(Block storage, const After& after) noexcept;

  // Takes memory for storage that was allocated without (Storage::unmapped). Errors: StorageMappingFailed, the cause in it.
  Result<void> map(Storage& storage);
  // Somebody knows the address from now on: it stays where it is.
  void pin_address(Storage& storage) noexcept;

  // Windows of persistent memory, of the calling thread.
  void enter_persistent();
  void leave_persistent() noexcept;
  // While entered, by any thread, what all threads allocate takes no memory until it is first used by work that is really done. For modes
  // that only go through a program to see what it would do. Nests.
  void enter_lazy() noexcept { lazy_.fetch_add(1, std::memory_order_relaxed); }
  void leave_lazy() noexcept { lazy_.fetch_sub(1, std::memory_order_relaxed); }

  MemoryReport report() const;
  Result<MemoryReport> report(std::uint64_t stream) const;

  // See kiln/runtime/memory.h.
  Result<void> install(const MemoryPools& layout);
  // Without moving anything. Waits.
  Result<std::uint64_t> cleanup();
  // What may be moved out of pools of an earlier layout, and the streams it was allocated for; nothing while a graph is captured.
  struct Movable {
    Memory memory;
    std::uint64_t stream = 0;
  };
  std::vector<Movable> movable();
  // Each has the other's memory from now on; both of one stream. False, and nothing changed: the first may not be moved.
  bool exchange(Storage& moved, Storage& fresh) noexcept;
  // Gives the device what was on its way back and is over now. Cheap where there is nothing.
  void settle() noexcept;
  // Whether a graph is captured or warmed up on any stream.
  bool captured() const;

 private:
  friend class MemoryCapture;
  struct Use {
    MemoryUsage usage;
    std::uint64_t largest = 0, peak = 0;
    void add(std::uint64_t asked, std::uint64_t taken);
    void remove(std::uint64_t asked, std::uint64_t taken);
  };
  struct Layout {
    std::vector<std::unique_ptr<PagePool>> pools;
    unsigned users = 0;  // allocations that are under way in it
  };
  friend struct StreamAccount;
  struct Attempt;

  template <class F>
  auto with_reclaim(std::uint64_t bytes, F&& attempt) -> decltype(attempt(false));
  Result<Block> attempt(std::uint64_t bytes, const Request& request, bool tight);
  Result<Block> give(std::unique_lock<std::mutex>& lock, PagePool& pool, PoolSlice& found, Attempt& a);
  Result<Block> grow(std::unique_lock<std::mutex>& lock, Layout& layout, Attempt& a);
  PoolSlice* refresh(std::unique_lock<std::mutex>& lock, PagePool& pool, const Attempt& a);
  std::uint64_t reclaim();
  Error no_memory(const Error& error, std::uint64_t bytes, std::uint64_t given_back) const;
  Error capacity(const PagePool& pool, std::uint64_t bytes) const;
  Result<void> may_update(const char* what) const;

  StreamAccount& account_of(std::uint64_t stream);
  bool persistent_now() const;
  static std::size_t place(const PagePool& pool);  // in the lists of uses
  Use& use(std::vector<Use>& uses, const PagePool& pool);
  void count_in(PoolSlice& slice);
  void count_reserved(std::uint64_t bytes);
  void count_out(PoolSlice& slice) noexcept;
  void free_slice(PoolSlice& slice, const After& after) noexcept;
  void leave(std::unique_ptr<PoolPage> page, const After& after) noexcept;
  Storage* flush_if_due() noexcept;
  void send(Storage* list) noexcept;
  void for_each_pool(auto&& f) const;
  void drop_empty_layouts() noexcept;

  Device& device_;
  const EventsOver over_{device_};
  const std::uint64_t number_;  // of the manager in the process, for what threads remember
  std::atomic<int> lazy_{0};
  std::atomic<bool> leaving_{false};  // something is on its way back
  const MemoryTraits traits_;

  mutable std::mutex mutex_;  // guards what follows, and every slice
  SliceNodes nodes_;
  std::vector<std::unique_ptr<Layout>> layouts_;  // the present one last
  PagePool persistent_;
  std::uint32_t next_pool_ = 0;
  std::uint64_t keep_ = 0;
  PersistentPolicy policy_ = PersistentPolicy::Enabled;
  DropQueue drop_;
  unsigned windows_ = 0, recording_ = 0;  // of captures: open, and past their warm-up
  std::unordered_map<std::uint64_t, std::unique_ptr<StreamAccount>> accounts_;
  StreamAccount* last_account_ = nullptr;
  std::vector<Use> uses_;  // by place()
  MemoryUsage total_;
  std::uint64_t in_use_peak_ = 0, reserved_peak_ = 0;
};

// What was allocated for one stream.
struct StreamAccount {
  explicit StreamAccount(std::uint64_t id) : stream(id) {}
  const std::uint64_t stream;
  std::uint64_t live = 0;                                                // allocations, also those that are under way
  std::uint64_t in_use = 0, taken = 0, in_use_peak = 0, taken_peak = 0;  // bytes
  std::vector<MemoryManager::Use> uses;                                  // by MemoryManager::place()
  MemoryCapture* capture = nullptr;                                      // while one is open on the stream
};

// The one place where memory is given back and asked for once more.
template <class F>
auto MemoryManager::with_reclaim(std::uint64_t bytes, F&& attempt) -> decltype(attempt(false)) {
  auto result = attempt(false);
  if (result.has_value() || !result.error().may_succeed_after_reclaim()) return result;
  const std::uint64_t given_back = reclaim();
  result = attempt(true);
  if (result.has_value() || result.error().code() != ErrorCode::OutOfMemory) return result;
  return no_memory(result.error(), bytes, given_back);
}

}  // namespace kiln::rt
