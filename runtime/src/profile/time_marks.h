// Points in time on a device, which tasks note as they begin and end.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "kiln/runtime/error.h"

namespace kiln::rt {

class Device;

// Filled by the device when its time has come; read once the task is over.
struct TimeMark {
  std::atomic<std::uint64_t> time{0};  // of a device that has the host's clock, in nanoseconds
  void* handle = nullptr;              // else the device's own
  TimeMark* next = nullptr;
  std::uint32_t users = 0;
};

// The marks of one device, reused. Thread-safe; its lock is taken last.
class TimeMarks {
 public:
  static constexpr std::size_t kMost = 16384;

  explicit TimeMarks(Device& device) : device_(device) {}
  ~TimeMarks();  // no task names one any more
  TimeMarks(const TimeMarks&) = delete;
  TimeMarks& operator=(const TimeMarks&) = delete;

  // With one user. Errors: the device's; Generic where kMost are in use.
  Result<TimeMark*> take();
  void share(TimeMark& mark);
  void give_back(TimeMark* mark) noexcept;  // one user less; null: nothing
  void forget() { forgotten_ = true; }      // the device is another process's

 private:
  Device& device_;
  std::mutex mutex_;
  std::deque<TimeMark> all_;
  TimeMark* free_ = nullptr;
  bool forgotten_ = false;
};

}  // namespace kiln::rt
