// Runs tasks on a pool of threads: queues in order, queues beside each other by priority, one task's blocks on many
// threads.
#pragma once
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cpu/scratch.h"
#include "src/device.h"

namespace kiln::rt {

// A task with its place in the scheduler. Only the scheduler touches what it adds.
struct CpuTask : Task {
  CpuTask* next = nullptr;  // in its queue, or in the list of free tasks
  CpuTask *ready_before = nullptr, *ready_after = nullptr;
  After after;
  std::uint32_t queue = 0;
  std::uint64_t position = 0;
  std::uint64_t blocks = 0, chunk = 0, chunks = 0, joined = 0;
  std::span<const std::uint64_t> later;  // the blocks of each stage that comes after this one
  std::size_t stage = 0;
  std::uint32_t active = 0;  // threads at work on it
  bool listed = false;       // in the ready list: blocks may be left to start
  bool turn = false;         // Kind::Host and Kind::Call
  bool idle = false;         // a launch whose grid turned out to be one that does not run
  std::atomic<std::uint64_t> next_block{0};
};

// What the scheduler runs: blocks [first, last) of a started task, of the stage where it is, on a worker with its scratch memory.
using RunBlocks = void (*)(CpuTask& task, std::uint64_t first, std::uint64_t last, Scratch& scratch);
// How many blocks a task has whose number is not known before its turn comes (Task::dynamic_grid); above 0. Called under the lock.
using CountBlocks = std::uint64_t (*)(CpuTask& task);

// Thread-safe. Blocks of a task start in ascending order, in chunks; a thread that has nothing to do spins briefly and then sleeps.
class Scheduler {
 public:
  static constexpr std::size_t kTasks = 1024;  // outstanding at a time

  // At least one thread is started, else an error.
  static Result<std::unique_ptr<Scheduler>> start(unsigned workers, RunBlocks blocks, CountBlocks count);
  // Runs what was submitted, then ends the threads.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;

  CpuTask& acquire(bool beyond);  // waits while kTasks are outstanding, or makes more of them
  void abandon(CpuTask& task) noexcept;
  // `blocks` > 0 pieces of work, except for Kind::Host and Kind::Call, which have none. Then as many of each later stage, which starts when
  // the one before is over; the numbers stay where they are until the task is.
  Event submit(CpuTask& task, std::uint32_t queue, const After& after, std::uint64_t blocks, std::span<const std::uint64_t> later = {});
  bool busy(std::uint32_t queue, const After& after) const;
  void begin_host(CpuTask& task);
  void finish_host(CpuTask& task) noexcept;

  bool done(Event event) const { return queues_[event.queue].completed.load(std::memory_order_acquire) >= event.position; }
  bool done(const After& after) const;
  void wait(Event event);
  Event last(std::uint32_t queue) const;
  // Frees `storage` by `release` once its events are over.
  void retire(std::unique_ptr<Storage> storage) noexcept;
  unsigned workers() const { return static_cast<unsigned>(threads_.size()); }

 private:
  struct alignas(64) Queue {
    CpuTask *head = nullptr, *tail = nullptr;
    std::uint64_t submitted = 0;
    std::atomic<std::uint64_t> completed{0};
    bool blocked = false;  // the head waits for events of other queues
  };

  Scheduler(RunBlocks blocks, CountBlocks count);
  static void* thread_main(void* self);
  void work();
  CpuTask* next_ready(std::unique_lock<std::mutex>& lock);
  CpuTask* choose();
  void run(CpuTask& task, Scratch& scratch);
  std::uint64_t chunk_of(std::uint64_t blocks) const;
  void set_blocks(CpuTask& task, std::uint64_t blocks);
  void next_stage(CpuTask& task);
  void list(CpuTask& task);
  void unlist(CpuTask& task);
  void wake_workers(unsigned count);
  void start_head(std::uint32_t queue);
  Staging complete(CpuTask& task);  // gives what the task owned, to be freed without the lock
  void give_back(CpuTask& task);
  Storage* take_garbage();

  const RunBlocks run_;
  const CountBlocks count_;
  CpuTask* tasks_ = nullptr;  // kTasks, made as they are first needed in memory for all
  mutable std::mutex mutex_;  // guards all that is not atomic
  std::condition_variable work_, over_, room_;
  Queue queues_[kQueues];
  CpuTask* free_ = nullptr;
  struct Ready {
    CpuTask *first = nullptr, *last = nullptr;
  } ready_tasks_[3];         // by priority
  std::uint32_t picks_ = 0;  // of ready tasks by threads
  std::size_t made_ = 0;
  std::vector<std::unique_ptr<CpuTask>> beyond_;  // tasks beyond kTasks
  std::uint64_t blocked_ = 0;                     // queues whose head waits
  std::atomic<std::uint32_t> ready_{0};           // length of the ready lists
  std::uint32_t sleeping_ = 0, spinning_ = 0, waiting_ = 0, wanting_ = 0;
  Storage* garbage_ = nullptr;
  std::atomic<bool> stop_{false};
  std::vector<pthread_t> threads_;
};

}  // namespace kiln::rt
