#include "cpu/scheduler.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "cpu/storage.h"
#include "src/profile/time_marks.h"

namespace kiln::rt {
namespace {

constexpr std::size_t kStackBytes = std::size_t{16} << 20;  // local arrays of 32 lanes live on it; committed only as far as used
constexpr unsigned kSpins = 1000;                           // some ten microseconds
constexpr unsigned kChunksPerWorker = 8;
constexpr unsigned kStagesInTurn = 64;      // that a thread runs by itself before other queues get their turn
constexpr unsigned kDefaultMxcsr = 0x1f80;  // round to nearest, subnormals kept, no traps

void note_time(TimeMark& mark) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  mark.time.store(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()), std::memory_order_release);
}

}  // namespace

Scheduler::Scheduler(RunBlocks blocks, CountBlocks count) : run_(blocks), count_(count) {}

Result<std::unique_ptr<Scheduler>> Scheduler::start(unsigned workers, RunBlocks blocks, CountBlocks count) {
  std::unique_ptr<Scheduler> self(new Scheduler(blocks, count));
  // From the heap, so that who looks for leaks finds what the tasks hold; committed only as far as they are made.
  void* memory = std::aligned_alloc(alignof(CpuTask), kTasks * sizeof(CpuTask));
  if (memory == nullptr) return Error(ErrorCode::OutOfMemory, "the CPU device has no memory for its tasks");
  self->tasks_ = static_cast<CpuTask*>(memory);
  workers = std::max(workers, 1u);
  self->threads_.reserve(workers);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  int failed = 0;
  for (unsigned i = 0; i < workers && failed == 0; ++i) {
    pthread_t thread;
    failed = pthread_create(&thread, &attributes, &Scheduler::thread_main, self.get());
    if (failed == 0) self->threads_.push_back(thread);
  }
  pthread_attr_destroy(&attributes);
  // Fewer threads than asked for still run everything; none cannot.
  if (self->threads_.empty())
    return Error(ErrorCode::Generic, std::string("the CPU device could not start a thread: ") + std::strerror(failed));
  return self;
}

Scheduler::~Scheduler() {
  for (std::uint32_t q = 0; q < kQueues; ++q) wait(last(q));
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true, std::memory_order_relaxed);
  }
  work_.notify_all();
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
  free_storage(garbage_);
  for (std::size_t i = 0; i < made_; ++i) tasks_[i].~CpuTask();
  std::free(static_cast<void*>(tasks_));
}

// --- the host's side ----------------------------------------------------------------------------------------------------

CpuTask& Scheduler::acquire(bool beyond) {
  std::unique_lock lock(mutex_);
  if (beyond && free_ == nullptr && made_ == kTasks) {
    beyond_.push_back(std::make_unique<CpuTask>());
    return *beyond_.back();
  }
  while (free_ == nullptr && made_ == kTasks) {
    ++wanting_;
    room_.wait(lock);
    --wanting_;
  }
  if (free_ == nullptr) return *new (&tasks_[made_++]) CpuTask;
  CpuTask* task = free_;
  free_ = task->next;
  return *task;
}

void Scheduler::abandon(CpuTask& task) noexcept {
  const std::lock_guard lock(mutex_);
  give_back(task);
}

void Scheduler::give_back(CpuTask& task) {
  task.next = free_;
  free_ = &task;
  if (wanting_ != 0) room_.notify_one();
}

std::uint64_t Scheduler::chunk_of(std::uint64_t blocks) const {
  return std::max<std::uint64_t>(1, blocks / (std::uint64_t{workers()} * kChunksPerWorker));
}

void Scheduler::set_blocks(CpuTask& task, std::uint64_t blocks) {
  task.blocks = blocks;
  task.chunk = chunk_of(blocks);
  task.chunks = (blocks + task.chunk - 1) / task.chunk;
  task.joined = 0;
  task.next_block.store(0, std::memory_order_relaxed);
}

void Scheduler::next_stage(CpuTask& task) {
  set_blocks(task, task.later.front());
  task.later = task.later.subspan(1);
  ++task.stage;
}

Event Scheduler::submit(CpuTask& task, std::uint32_t queue, const After& after, std::uint64_t blocks,
                        std::span<const std::uint64_t> later) {
  task.queue = queue;
  task.after.clear();
  after.for_each([&](Event e) {
    if (e.queue != queue && !done(e)) task.after.add(e);
  });
  set_blocks(task, blocks);
  task.later = later;
  task.stage = 0;
  task.active = 0;
  task.listed = task.turn = task.idle = false;
  task.next = nullptr;

  const std::lock_guard lock(mutex_);
  Queue& q = queues_[queue];
  task.position = ++q.submitted;
  if (q.tail != nullptr) {
    q.tail->next = &task;
    q.tail = &task;
  } else {
    q.head = q.tail = &task;
    start_head(queue);
  }
  return {queue, task.position};
}

bool Scheduler::done(const After& after) const {
  bool all = true;
  after.for_each([&](Event e) { all = all && done(e); });
  return all;
}

bool Scheduler::busy(std::uint32_t queue, const After& after) const { return !done(last(queue)) || !done(after); }

Event Scheduler::last(std::uint32_t queue) const {
  const std::lock_guard lock(mutex_);
  return {queue, queues_[queue].submitted};
}

void Scheduler::begin_host(CpuTask& task) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  over_.wait(lock, [&] { return task.turn; });
  --waiting_;
}

void Scheduler::finish_host(CpuTask& task) noexcept {
  Storage* garbage = nullptr;
  {
    const std::lock_guard lock(mutex_);
    complete(task);
    garbage = take_garbage();
  }
  free_storage(garbage);
}

void Scheduler::wait(Event event) {
  for (unsigned i = 0; i < kSpins; ++i) {
    if (done(event)) return;
    _mm_pause();
  }
  std::unique_lock lock(mutex_);
  ++waiting_;
  over_.wait(lock, [&] { return done(event); });
  --waiting_;
}

void Scheduler::retire(std::unique_ptr<Storage> storage) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!done(storage->after)) {
      storage->next = garbage_;
      garbage_ = storage.release();
      return;
    }
  }
  free_storage(storage.release());
}

// --- under the lock -----------------------------------------------------------------------------------------------------

// Starts the queue's first task, if the events it waits for are over.
void Scheduler::start_head(std::uint32_t queue) {
  CpuTask& task = *queues_[queue].head;
  const std::uint64_t bit = std::uint64_t{1} << queue;
  if (!done(task.after)) {
    blocked_ |= bit;
    return;
  }
  blocked_ &= ~bit;
  if (task.kind == Task::Kind::Host || task.kind == Task::Kind::Call) {
    task.turn = true;
    if (task.begin != nullptr) note_time(*task.begin);
    if (waiting_ != 0) over_.notify_all();
  } else {
    if (task.kind == Task::Kind::Launch && task.dynamic_grid != nullptr) set_blocks(task, count_(task));
    list(task);
    wake_workers(1);
  }
}

Staging Scheduler::complete(CpuTask& task) {
  if (task.end != nullptr) note_time(*task.end);
  Queue& q = queues_[task.queue];
  q.head = task.next;
  if (q.head == nullptr) q.tail = nullptr;
  q.completed.store(task.position, std::memory_order_release);
  const std::uint32_t queue = task.queue;
  Staging owned = std::move(task.staging);
  give_back(task);
  const std::uint64_t blocked = blocked_;
  if (q.head != nullptr) start_head(queue);
  for (std::uint64_t rest = blocked; rest != 0; rest &= rest - 1) start_head(static_cast<std::uint32_t>(std::countr_zero(rest)));
  if (waiting_ != 0) over_.notify_all();
  return owned;
}

Storage* Scheduler::take_garbage() {
  Storage* taken = nullptr;
  for (Storage** at = &garbage_; *at != nullptr;) {
    Storage* storage = *at;
    if (done(storage->after)) {
      *at = storage->next;
      storage->next = taken;
      taken = storage;
    } else {
      at = &storage->next;
    }
  }
  return taken;
}

void Scheduler::list(CpuTask& task) {
  Ready& ready = ready_tasks_[static_cast<std::size_t>(priority_of(task.queue))];
  task.listed = true;
  task.ready_before = ready.last;
  task.ready_after = nullptr;
  (ready.last != nullptr ? ready.last->ready_after : ready.first) = &task;
  ready.last = &task;
  ready_.fetch_add(1, std::memory_order_relaxed);
}

void Scheduler::unlist(CpuTask& task) {
  Ready& ready = ready_tasks_[static_cast<std::size_t>(priority_of(task.queue))];
  task.listed = false;
  (task.ready_before != nullptr ? task.ready_before->ready_after : ready.first) = task.ready_after;
  (task.ready_after != nullptr ? task.ready_after->ready_before : ready.last) = task.ready_before;
  ready_.fetch_sub(1, std::memory_order_relaxed);
}

// The first of the highest priority; but every fourth time of the normal one, and every sixteenth of the low one, so that each gets on.
CpuTask* Scheduler::choose() {
  const Ready &low = ready_tasks_[0], &normal = ready_tasks_[1], &high = ready_tasks_[2];
  ++picks_;
  if (picks_ % 16 == 0 && low.first != nullptr) return low.first;
  if (picks_ % 4 == 0 && normal.first != nullptr) return normal.first;
  return high.first != nullptr ? high.first : normal.first != nullptr ? normal.first : low.first;
}

// A thread that spins will see the work by itself. Whoever starts on a task wakes two more when blocks are left, so that all are awake soon
// and the host pays for one.
void Scheduler::wake_workers(unsigned count) {
  for (; spinning_ == 0 && count != 0 && sleeping_ != 0; --count) work_.notify_one();
}

// --- the workers' side --------------------------------------------------------------------------------------------------

void* Scheduler::thread_main(void* self) {
  pthread_setname_np(pthread_self(), "kiln-cpu");
  _mm_setcsr(kDefaultMxcsr);  // a thread inherits its maker's
  static_cast<Scheduler*>(self)->work();
  return nullptr;
}

void Scheduler::work() {
  Scratch scratch;
  std::unique_lock lock(mutex_);
  while (CpuTask* task = next_ready(lock)) {
    ++task->active;
    if (task->joined == 0 && task->stage == 0 && task->begin != nullptr) note_time(*task->begin);
    if (++task->joined >= task->chunks) unlist(*task);  // one thread a chunk is enough
    if (ready_.load(std::memory_order_relaxed) != 0) wake_workers(2);
    lock.unlock();
    run(*task, scratch);
    lock.lock();
    if (task->listed) unlist(*task);  // nothing is left to start
    if (--task->active != 0) continue;
    if (!task->later.empty()) {
      next_stage(*task);
      list(*task);
    } else {
      Staging owned = complete(*task);
      Storage* garbage = take_garbage();
      if (owned || garbage != nullptr) {
        lock.unlock();
        owned = Staging();
        free_storage(garbage);
        lock.lock();
      }
    }
  }
}

// A task with blocks to start; null once the scheduler ends.
CpuTask* Scheduler::next_ready(std::unique_lock<std::mutex>& lock) {
  while (ready_.load(std::memory_order_relaxed) == 0) {
    if (stop_.load(std::memory_order_relaxed)) return nullptr;
    ++spinning_;
    lock.unlock();
    for (unsigned i = 0; i < kSpins && ready_.load(std::memory_order_relaxed) == 0 && !stop_.load(std::memory_order_relaxed); ++i)
      _mm_pause();
    lock.lock();
    --spinning_;
    if (ready_.load(std::memory_order_relaxed) != 0 || stop_.load(std::memory_order_relaxed)) continue;
    ++sleeping_;
    work_.wait(lock);
    --sleeping_;
  }
  return choose();
}

void Scheduler::run(CpuTask& task, Scratch& scratch) {
  for (unsigned turns = 1;; ++turns) {
    for (;;) {
      const std::uint64_t first = task.next_block.fetch_add(task.chunk, std::memory_order_relaxed);
      if (first >= task.blocks) break;
      run_(task, first, std::min(first + task.chunk, task.blocks), scratch);
    }
    // A stage of one chunk was this thread's alone, and where the next one is too nobody else need know.
    if (task.chunks != 1 || task.later.empty() || task.later.front() != 1 || turns == kStagesInTurn) return;
    next_stage(task);
  }
}

}  // namespace kiln::rt
