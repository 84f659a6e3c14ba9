// The logs of a device's launches: memory for them, and their way to the sink.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kiln/runtime/log.h"
#include "src/device.h"
#include "src/programs.h"

namespace kiln::rt {

// The log of one launch: an ir::LogHeader and records in memory that kernels write. Reused.
struct LaunchLogMemory {
  Device::Mapped memory;
  std::uint64_t bytes = 0, wanted = 0;           // fewer than wanted where the device had no more
  bool as_called = false;                        // wanted by set_bytes
  std::uint32_t stride = 0;                      // of the records in it now
  const Program* program = nullptr;              // whose launch it is
  std::string lost;                              // why there is no memory
  LaunchLogMemory* next = nullptr;               // free, or on its way to the sink
  std::atomic<std::uint32_t>* untold = nullptr;  // of one that is kept for replays: goes down once it was told
  ir::LogHeader& header() const { return *reinterpret_cast<ir::LogHeader*>(memory.host); }
};

// Thread-safe. Its lock is taken last and held for a moment; the sink is called without it.
class LaunchLogs {
 public:
  static constexpr std::size_t kMost = 32;  // in use at a time, as a rule

  explicit LaunchLogs(Device& device);
  ~LaunchLogs();  // nothing uses the memory any more; what nobody waited for is not told
  LaunchLogs(const LaunchLogs&) = delete;
  LaunchLogs& operator=(const LaunchLogs&) = delete;

  // A log for a launch of the program. Null where the device has no memory for one, which is told. Throws std::bad_alloc.
  LaunchLogMemory* take(const Program& program);
  bool full() const;  // kMost are in use: better wait for one
  // Of a launch that did not run.
  void give_back(LaunchLogMemory* log) noexcept;
  // A log that whoever has it keeps for launches that are replayed, beside those that count as in use. After a replay that logged, or whose
  // log has no memory, he adds 1 to `untold` and calls over(), and the log must not be used until the 1 is gone. Throws std::bad_alloc.
  LaunchLogMemory& keep(const Program& program, std::atomic<std::uint32_t>& untold);
  void give_up(LaunchLogMemory& log) noexcept;
  // The launch is over. Call it in the order in which the launches are to be told.
  void over(LaunchLogMemory* log) noexcept;

  // Whether there is something for deliver() to do. Two loads.
  bool waiting() const { return told_count_.load(std::memory_order_acquire) < over_count_.load(std::memory_order_acquire); }
  // Hands the sink what is over by now, and waits for other threads that do, unless this one is one of them or `wait` is false. Call it
  // without a lock.
  void deliver(bool wait = true);
  bool delivering() const;  // this thread does
  // The device is another process's: its memory is not given back.
  void forget() noexcept { all_.clear(), free_ = first_ = last_ = nullptr; }

  void set_sink(LogSink sink);
  void set_bytes(std::uint64_t bytes);

 private:
  LaunchLogMemory& take_free(const Program& program, bool in_use);
  void find_memory(LaunchLogMemory& log, std::uint64_t wanted);
  void tell(const LaunchLogMemory& log, const LogSink& sink) const;
  void drop(LaunchLogMemory* log) noexcept;  // to the free ones, or to him who keeps it; under the lock

  Device& device_;
  mutable std::mutex mutex_;
  std::condition_variable told_;
  std::vector<std::unique_ptr<LaunchLogMemory>> all_;
  LaunchLogMemory *free_ = nullptr, *first_ = nullptr, *last_ = nullptr;
  std::size_t in_use_ = 0;
  std::uint64_t bytes_;
  bool called_ = false;  // set_bytes was
  std::atomic<std::uint64_t> over_count_{0}, told_count_{0};
  bool telling_ = false;
  std::uint64_t asked_ = 0;  // by the sink: how many are to be told before its thread goes on
  std::thread::id teller_;
  std::shared_ptr<const LogSink> sink_;
};

}  // namespace kiln::rt
