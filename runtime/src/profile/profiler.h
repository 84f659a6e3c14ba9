// Profiling of one device: the windows that are open and, while a timeline runs, what its tasks are and when they began and ended.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "src/device.h"
#include "src/enqueue_lock.h"
#include "src/failure/launch_log.h"
#include "src/profile/time_marks.h"
#include "src/profile/trace.h"

namespace kiln::rt {

// Thread-safe; its lock is taken last but for those of the marks and the device's queues, and never held while anything waits.
class Profiler final : public TaskWatcher, public LateFailures {
 public:
  Profiler(Device& device, EnqueueLock& enqueue);  // the second: the lock of enqueueing
  ~Profiler() override;                            // the device's work is over
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // --- windows, by the number of their token ---
  // Opens one that began with the task at `begun`, which notes its end in `mark`; or that begins with the queue's next launch.
  std::uint64_t open(std::uint32_t queue, TimeMark* mark, Event begun);
  std::uint64_t open_at_launch(std::uint32_t queue);
  // What is known of one before its end is looked for.
  struct Ending {
    std::uint32_t queue = 0;
    bool begun = false;
    std::optional<Error> error;
  };
  std::optional<Ending> ending(std::uint64_t number);  // none: there is no such window, or another thread ends it
  void ends_at(std::uint64_t number, Event end);       // faults behind it are none of the window's
  // The time up to `mark`, of a task that is over; null: there is none. The window is over.
  Result<std::chrono::nanoseconds> close(std::uint64_t number, TimeMark* mark);
  bool abandon(std::uint64_t number);
  // Marks the windows that are open on the queue. Free where none is.
  void failed(std::uint32_t queue, const Error& error) noexcept {
    if (open_.load(std::memory_order_relaxed) != 0) mark_failed(queue, ~std::uint64_t{0}, error);
  }
  void failed_late(std::uint32_t queue, std::uint64_t position, const Error& error) noexcept override {
    if (open_.load(std::memory_order_relaxed) != 0) mark_failed(queue, position, error);
  }

  // --- the timeline ---
  Result<void> attach(std::uint64_t timeline, std::size_t capacity);     // waits for a moment of the device
  void stop(std::uint64_t timeline) noexcept;                            // what was recorded is forgotten
  DeviceTrace finish(std::uint64_t timeline, const std::string& label);  // waits for what was recorded
  bool recording() const { return recording_.load(std::memory_order_relaxed) != 0; }

  TimeMarks& marks() { return marks_; }
  void forget() { marks_.forget(); }  // the device is another process's

  std::uint64_t submitting(Task& task, std::uint32_t queue) noexcept override;
  void submitted(std::uint64_t note, const Result<Event>& outcome) noexcept override;

 private:
  struct Window {
    std::uint64_t number = 0;
    std::uint32_t queue = 0;
    TimeMark* begin = nullptr;   // null: it waits for a launch
    std::uint64_t note = 0;      // of the launch that it begins with, while that is submitted
    Event begun;                 // the task that notes `begin`
    std::uint64_t position = 0;  // of the task before the first in it
    std::uint64_t last = ~std::uint64_t{0};
    bool ending = false;
    std::optional<Error> error;
  };
  struct Pending {
    std::uint64_t note = 0, timeline = 0;
    TracedOperation operation;
    TimeMark *begin = nullptr, *end = nullptr;
    Event event;  // position 0: not submitted yet
  };

  void mark_failed(std::uint32_t queue, std::uint64_t position, const Error& error) noexcept;
  std::vector<Window>::iterator find(std::uint64_t number);
  void drop(std::vector<Window>::iterator window);
  void update();  // who watches
  void release(TimeMark* mark, Event noted);
  void sweep();
  bool begin_windows(Task& task, std::uint32_t queue, std::uint64_t note);
  bool record(Task& task, std::uint32_t queue, std::uint64_t note);
  void harvest();
  void settle(Pending& pending);
  bool set_mark(TimeMark*& mark, TimeMark*& mine);

  Device& device_;
  EnqueueLock& enqueue_;
  TimeMarks marks_;
  std::atomic<std::uint32_t> open_{0};
  std::atomic<std::uint64_t> recording_{0};  // which timeline
  mutable std::mutex mutex_;                 // guards what follows
  std::vector<Window> windows_;
  std::uint64_t notes_ = 0;
  std::size_t capacity_ = 0, held_ = 0;  // operations of the timeline that there may be, and are
  std::size_t waiting_ = 0;              // windows that wait for a launch
  std::deque<Pending> pending_;
  struct Retired {
    TimeMark* mark;
    Event noted;
  };
  std::vector<Retired> retired_;  // marks that nobody wants, of tasks that were not over
  DeviceTrace trace_;
  TimeMark* base_ = nullptr;    // of which the host's time is known
  std::int64_t base_time_ = 0;  // that
};

}  // namespace kiln::rt
