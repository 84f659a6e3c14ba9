// The device's queues: streams of the driver, and a ring of its events for the positions of each.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cuda/session.h"
#include "src/device.h"
#include "src/profile/time_marks.h"

namespace kiln::cuda {

struct SpareTask;

// A task as the queues hand it out.
struct CudaTask final : rt::Task {
  CudaTask* next = nullptr;              // free, or held back in its queue
  SpareTask* home = nullptr;             // where it goes back to; null: to the free ones
  rt::Event event;                       // its place
  std::vector<void*> fields;             // of the parameter block; reused
  std::uint64_t fields_of = 0;           // the number of the program, 0: none
  const std::byte* fields_in = nullptr;  // and the block, to whose fields they point
  rt::After after;                       // while it is held back
  bool host_waits = false;               // of a marker that is held back: the driver refuses to wait for `after`
  bool keep = false;                     // it stays with the caller once it was given to the driver
  std::atomic<bool> held{false};         // in a queue, or on its way from there to the driver; changed under the lock
};

// A task that threads take and give back without a lock: the first one gets it.
struct alignas(128) SpareTask {
  std::atomic<CudaTask*> task{nullptr};
  std::atomic<std::uint32_t> credit{0};  // how often it may be taken before anybody counts what is outstanding
  bool made = false;                     // there is one; guarded by the lock of the queues
};

// What a task is for the driver.
struct Work {
  const std::string* kernel = nullptr;  // lives until the task is over; null: none
  Phase phase = Phase::Transfer;
  const char* doing = "";
};
Work work_of(const CudaTask& task);
CUresult give(const DriverEntries& call, CudaTask& task, CUstream stream);

// Thread-safe. Work is given to the driver at once, in the order of enqueue(); a position of a queue is over when the event recorded behind
// it is. At most kOutstanding positions are not known to be over, so that the driver never makes a thread wait and no event is used twice
// at a time: each starts with a task from take(). What comes behind a call of the host is held back here until that has returned: no stream
// of the driver ever stands still for the host, so nothing else can come to a stand behind it.
class Queues {
 public:
  static constexpr std::size_t kOutstanding = 512;

  Queues(Session& session, const rt::Device& device);
  ~Queues();  // waits for all work

  // A free task. Waits while kOutstanding are outstanding, unless `beyond`: call it without a lock. It goes back by give_back, or by
  // enqueue.
  CudaTask& take(bool beyond);
  void give_back(CudaTask& task) noexcept;

  // Enqueues it after the events. The task goes back in any event, unless it is to be kept. As Device::submit: whoever calls it is alone
  // with the queue, so that what is given to the driver at once needs no lock.
  Result<rt::Event> enqueue(CudaTask& task, std::uint32_t queue, const rt::After& after);
  void begin_call(CudaTask& task);            // waits for its turn
  void finish_call(CudaTask& task) noexcept;  // gives the driver what was held back by it
  void flush();
  // What the driver answered when a task that was held back was given to it and refused.
  std::optional<Error> refused(rt::Event event);
  bool any_refused() const { return any_refused_.load(std::memory_order_acquire); }

  // Makes a stream of somebody else's one of the last queues, or finds the queue that it is. None: all of those are in use.
  std::optional<std::uint32_t> adopt(CUstream stream);
  bool release(std::uint32_t queue);  // waits; false: it is none of those

  bool done(rt::Event event);
  bool done(const rt::After& after);
  void wait(rt::Event event);
  rt::Event last(std::uint32_t queue) const { return {queue, queues_[queue].submitted.load(std::memory_order_acquire)}; }
  // False: this thread makes a call of the host, and the events may wait for its end.
  bool may_wait(const rt::After& after) const { return rt::CallOrder::may_wait(device_, after); }
  // Known to be over, without asking the driver.
  bool over(rt::Event event) const { return queues_[event.queue].completed.load(std::memory_order_acquire) >= event.position; }

 private:
  struct Slot {
    CUevent event = nullptr;
    const std::string* kernel = nullptr;
    std::uint64_t order = 0;  // among the positions of all queues
  };
  struct alignas(128) Queue {  // of one thread as a rule: processors fetch two lines at a time
    CUstream stream = nullptr;
    bool there = false;                                               // the stream is (null may be one that was adopted)
    std::atomic<std::uint64_t> submitted{0}, given{0}, completed{0};  // the second: to the driver, or calls that are over
    CudaTask *first = nullptr, *last = nullptr;                       // held back: given + 1 to submitted
    std::vector<Slot> ring;                                           // kOutstanding of them from the first use on
  };

  // Null: nothing to note.
  CUresult note_time(const rt::TimeMark* mark, CUstream stream) {
    return mark != nullptr ? session_.call().cuEventRecord(static_cast<CUevent>(mark->handle), stream) : CUDA_SUCCESS;
  }
  static std::string text(const std::string* kernel) { return kernel != nullptr ? *kernel : std::string(); }
  bool given(rt::Event event) const { return queues_[event.queue].given.load(std::memory_order_acquire) >= event.position; }
  bool given(const rt::After& after) const;
  bool room_in(std::uint32_t queue) const;  // of events, for one more position
  Result<rt::Event> give_now(CudaTask& task, std::uint32_t queue, const rt::After& after);
  void hold_back(CudaTask& task, std::uint32_t queue, const rt::After& after);
  void take_out(CudaTask& task) noexcept;  // of its queue
  void advance() noexcept;
  void refuse(rt::Event event, const Error& error) noexcept;
  std::optional<Error> give_held(CudaTask& task, std::uint32_t queue) noexcept;
  std::optional<rt::Event> held_by() const;
  void wait_until_given(rt::Event event);
  CUresult make_ready(std::uint32_t queue, std::uint64_t position);
  CUresult prepare(std::uint32_t queue, const rt::After& after, CUstream& stream);
  Result<rt::Event> record(std::uint32_t queue, const std::string* kernel, std::uint64_t order, Phase phase, const char* doing);
  void give_back_locked(CudaTask& task) noexcept;
  static constexpr std::size_t kSpares = 16;
  SpareTask& spare_of_thread();
  std::uint64_t outstanding() const;
  std::uint64_t open() const { return taken_.load(std::memory_order_relaxed) + outstanding(); }
  bool full() const { return open() >= kOutstanding; }
  void give_credit(SpareTask& spare) const;
  void count_taken(const CudaTask& task, int change) {
    if (task.home == nullptr) taken_.fetch_add(static_cast<std::size_t>(change), std::memory_order_relaxed);
  }
  Result<rt::Event> enqueue_locked(CudaTask& task, std::uint32_t queue, const rt::After& after);
  Slot& slot(rt::Event event) { return queues_[event.queue].ring[event.position % kOutstanding]; }
  void raise(rt::Event event);
  bool ask(rt::Event event);  // the driver, whether it is over
  void reap();
  std::vector<std::string> suspects() const;

  Session& session_;
  const rt::Device& device_;
  std::array<int, 3> priorities_{};  // of the driver's streams, by StreamPriority
  std::mutex mutex_;                 // the order of enqueueing; what is not atomic
  std::condition_variable room_, given_;
  std::array<Queue, rt::kQueues> queues_;
  std::atomic<std::uint64_t> used_{0};  // queues that ever had something
  std::atomic<std::size_t> taken_{0};   // tasks that are out, without the spare ones; changed under the lock
  std::size_t wanting_ = 0;             // threads that wait for one
  std::array<SpareTask, kSpares> spares_;
  CudaTask* free_ = nullptr;
  std::vector<std::unique_ptr<CudaTask>> tasks_;
  // Tasks that are held back, or on their way from there to the driver. 0: nobody but who enqueues changes a queue.
  std::atomic<std::size_t> held_{0};
  struct Refusal {
    rt::Event event;
    Error error;
  };
  std::vector<Refusal> refusals_;
  std::atomic<bool> any_refused_{false};
};

}  // namespace kiln::cuda
