// Threads of the runtime: they make host calls when the queues come to them, and run what is to go on when the device has come to a point.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/device.h"

namespace kiln::rt {

// Something for a thread to do, once. Owned by whoever holds it, in the end by the thread.
class Job {
 public:
  virtual ~Job() = default;
  virtual void run() noexcept = 0;

 private:
  friend class Background;
  Job* next_ = nullptr;
};

// A job for when a queue has come to a point: the task's turn where there is one, else the end of the task at that position.
class QueueJob : public Job {
 public:
  Event at;
  Task* task = nullptr;  // run() is over when the task is, by finish_host
};

Error no_thread();  // none can be started

// Thread-safe. Threads are started when nobody is free, so that what one job waits for, another can do; they stay until the end. A queue
// with jobs has a thread, which waits for them in their order.
class Background {
 public:
  explicit Background(Device& device);
  // Nothing is left to do. May run on one of the threads, in a job.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // On a thread that is in a job of a queue: what else the queue has, since the thread will not come to it.
  void serve_own_queue() noexcept;

  // A thread will be there for one job of the queue. Followed by add() or let_go(). Errors: no thread can be started.
  Result<void> hold(std::uint32_t queue);
  void let_go(std::uint32_t queue) noexcept;
  // With a task: under the lock of enqueueing, in its order. What hold() promised is used up.
  void add(std::unique_ptr<QueueJob> job) noexcept;
  // Runs the job when the event is over, on a thread of its own. Errors: as hold(); the job is gone then.
  Result<void> when_over(std::unique_ptr<QueueJob> job);
  // Runs it as soon as a thread is free. False: there is none and none can be started; the job is still the caller's.
  bool post(std::unique_ptr<Job>& job) noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;  // of the threads too: one may outlive this
};

}  // namespace kiln::rt
