// The device's queues: streams of the driver, and a ring of its events for the positions of each.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/session.h"
#include "src/device.h"
#include "src/profile/time_marks.h"

namespace kiln::cuda {

// A task as the queues hand it out.
struct CudaTask final : rt::Task {
  CudaTask* next = nullptr;
  rt::Event event;            // Download: when the bytes are there
  std::vector<void*> fields;  // of the parameter block; reused
};

// Thread-safe. Work is given to the driver at once, in the order of enqueue(); a position of a queue is over when the event recorded behind
// it is. At most kOutstanding positions are not known to be over, so that the driver never makes a thread wait and no event is used twice
// at a time: each starts with a task from take().
class Queues {
 public:
  static constexpr std::size_t kOutstanding = 512;

  explicit Queues(Session& session);
  ~Queues();  // waits for all work

  // A free task. Waits while kOutstanding are outstanding: call it without a lock. It goes back by give_back, or by enqueue.
  CudaTask& take();
  void give_back(CudaTask& task) noexcept;

  // Enqueues `operation(CUstream) -> CUresult` after the events. `kernel` (may be null) is named should the device fail before the position
  // is known to be over, and must live until then. The task goes back in any event, unless it is to be kept.
  template <class Operation>
  Result<rt::Event> enqueue(CudaTask& task, bool keep, std::uint32_t queue, const rt::After& after, const std::string* kernel, Phase phase,
                            const char* doing, Operation&& operation) {
    const std::lock_guard lock(mutex_);
    const Returned returned{*this, keep ? nullptr : &task};
    if (session_.poisoned()) return session_.lost(phase);
    const Session::Current current(session_, Session::Calls::Enqueueing);
    CUstream stream = nullptr;
    if (const CUresult r = prepare(queue, after, stream); r != CUDA_SUCCESS) return session_.failed(r, phase, doing, text(kernel));
    if (const CUresult r = note_time(task.begin, stream); r != CUDA_SUCCESS) return session_.failed(r, phase, doing, text(kernel));
    rt::TimeMark* const end = task.end;
    if (const CUresult r = operation(stream); r != CUDA_SUCCESS) return session_.failed(r, phase, doing, text(kernel));
    if (const CUresult r = note_time(end, stream); r != CUDA_SUCCESS) return session_.fatal(r, phase, doing);
    return record(queue, kernel, phase, doing);
  }

  // Makes a stream of somebody else's one of the last queues, or finds the queue that it is. None: all of those are in use.
  std::optional<std::uint32_t> adopt(CUstream stream);
  bool release(std::uint32_t queue);  // waits; false: it is none of those

  bool done(rt::Event event);
  bool done(const rt::After& after);
  void wait(rt::Event event);
  rt::Event last(std::uint32_t queue) const { return {queue, queues_[queue].submitted.load(std::memory_order_acquire)}; }
  // Known to be over, without asking the driver.
  bool over(rt::Event event) const { return queues_[event.queue].completed.load(std::memory_order_acquire) >= event.position; }

 private:
  struct Slot {
    CUevent event = nullptr;
    const std::string* kernel = nullptr;
    std::uint64_t order = 0;  // among the positions of all queues
  };
  struct alignas(64) Queue {
    CUstream stream = nullptr;
    bool there = false;  // the stream is (null may be one that was adopted)
    std::atomic<std::uint64_t> submitted{0}, completed{0};
    std::vector<Slot> ring;  // kOutstanding of them from the first use on
  };
  struct Returned {
    Queues& queues;
    CudaTask* task;
    ~Returned() {
      if (task != nullptr) queues.give_back_locked(*task);
    }
  };

  // Null: nothing to note.
  CUresult note_time(const rt::TimeMark* mark, CUstream stream) {
    return mark != nullptr ? session_.call().cuEventRecord(static_cast<CUevent>(mark->handle), stream) : CUDA_SUCCESS;
  }
  static std::string text(const std::string* kernel) { return kernel != nullptr ? *kernel : std::string(); }
  CUresult prepare(std::uint32_t queue, const rt::After& after, CUstream& stream);
  Result<rt::Event> record(std::uint32_t queue, const std::string* kernel, Phase phase, const char* doing);
  void give_back_locked(CudaTask& task) noexcept;
  Slot& slot(rt::Event event) { return queues_[event.queue].ring[event.position % kOutstanding]; }
  void raise(rt::Event event);
  bool ask(rt::Event event);  // the driver, whether it is over
  void reap();
  std::vector<std::string> suspects() const;

  Session& session_;
  std::mutex mutex_;  // the order of enqueueing; what is not atomic
  std::condition_variable room_;
  std::array<Queue, rt::kQueues> queues_;
  std::uint64_t submitted_ = 0, completed_floor_ = 0;  // over all queues; the second as last counted
  std::size_t taken_ = 0, wanting_ = 0;                // tasks that are out; threads that wait for one
  CudaTask* free_ = nullptr;
  std::vector<std::unique_ptr<CudaTask>> tasks_;
  std::uint64_t order_ = 0;
};

}  // namespace kiln::cuda
