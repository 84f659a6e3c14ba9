#include "src/background.h"

#include <pthread.h>

#include <array>
#include <new>
#include <system_error>
#include <utility>

#include "src/make_error.h"

namespace kiln::rt {

Error no_thread() {
  return make_error(ErrorCode::OutOfMemory, "NoThread",
                    "the system starts no thread for host calls and for what is to go on later; it may work once other threads have ended");
}

struct Background::State {
  static thread_local const State* serving;  // whose queue this thread serves
  static thread_local std::uint32_t serving_queue;

  struct Queue {
    Job* first = nullptr;  // QueueJobs, by position
    std::uint32_t holds = 0;
    bool served = false;        // by a thread
    std::uint64_t waiting = 0;  // position that the thread waits for; 0: none
    std::condition_variable more;
  };
  // Serves a queue until it has no jobs.
  class Serve final : public Job {
   public:
    State* state = nullptr;
    std::uint32_t queue = 0;
    void run() noexcept override { state->serve(queue); }
  };
  // Waits for the event of one job and runs it.
  class Alone final : public Job {
   public:
    Alone(Device& d, std::unique_ptr<QueueJob> j) : device(d), job(std::move(j)) {}
    Device& device;
    std::unique_ptr<QueueJob> job;
    void run() noexcept override {
      device.wait(job->at);
      job->run();
      job.reset();
    }
  };

  explicit State(Device& d) : device(d) {
    for (std::uint32_t q = 0; q < kQueues; ++q) {
      serves[q].state = this;
      serves[q].queue = q;
    }
  }

  bool start_thread(const std::shared_ptr<State>& self) noexcept;  // under the lock
  bool put(const std::shared_ptr<State>& self, Job* job, bool surely) noexcept;
  void work();
  void serve(std::uint32_t q) noexcept;
  void insert(QueueJob* job) noexcept;
  bool is_serve(const Job* job) const { return job >= &serves.front() && job <= &serves.back(); }

  Device& device;
  std::mutex mutex;
  std::condition_variable jobs_there;
  Job *first = nullptr, *last = nullptr;
  std::size_t waiting_jobs = 0, idle = 0;
  bool stop = false;
  std::array<Queue, kQueues> queues;
  std::array<Serve, kQueues> serves;
  std::vector<std::thread> threads;
};

thread_local const Background::State* Background::State::serving = nullptr;
thread_local std::uint32_t Background::State::serving_queue = 0;

Background::Background(Device& device) : state_(std::make_shared<State>(device)) {}

Background::~Background() {
  serve_own_queue();
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    threads.swap(state_->threads);
  }
  state_->jobs_there.notify_all();
  for (std::thread& t : threads) {
    if (t.get_id() == std::this_thread::get_id()) t.detach();
    else t.join();
  }
}

void Background::serve_own_queue() noexcept {
  if (State::serving == state_.get()) state_->serve(State::serving_queue);
}

bool Background::State::start_thread(const std::shared_ptr<State>& self) noexcept {
  try {
    threads.reserve(threads.size() + 1);
    threads.emplace_back([self] { self->work(); });
    return true;
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {}
  return false;
}

// `surely`: only with a thread that is free for it. Under the lock.
bool Background::State::put(const std::shared_ptr<State>& self, Job* job, bool surely) noexcept {
  if (waiting_jobs + 1 > idle && !start_thread(self) && (surely || threads.empty())) return false;
  job->next_ = nullptr;
  (first != nullptr ? last->next_ : first) = job;
  last = job;
  ++waiting_jobs;
  jobs_there.notify_one();
  return true;
}

void Background::State::work() {
  pthread_setname_np(pthread_self(), "kiln-host");
  std::unique_lock lock(mutex);
  for (;;) {
    if (first == nullptr) {
      if (stop) return;
      ++idle;
      jobs_there.wait(lock, [&] { return first != nullptr || stop; });
      --idle;
      continue;
    }
    Job* job = first;
    first = job->next_;
    --waiting_jobs;
    lock.unlock();
    job->run();
    if (!is_serve(job)) delete job;
    lock.lock();
  }
}

void Background::State::serve(std::uint32_t q) noexcept {
  Queue& queue = queues[q];
  std::unique_lock lock(mutex);
  for (;;) {
    auto* const job = static_cast<QueueJob*>(queue.first);
    if (job == nullptr) {
      if (queue.holds == 0) {
        queue.served = false;
        return;
      }
      queue.more.wait(lock);
      continue;
    }
    queue.waiting = job->at.position;
    lock.unlock();
    if (job->task != nullptr) device.begin_host(*job->task);
    else device.wait(job->at);
    lock.lock();
    queue.waiting = 0;
    queue.first = job->next_;
    serving = this;
    serving_queue = q;
    lock.unlock();
    job->run();  // may be the end of the device
    delete job;
    lock.lock();
    serving = nullptr;
  }
}

Result<void> Background::hold(std::uint32_t q) {
  const std::lock_guard lock(state_->mutex);
  State::Queue& queue = state_->queues[q];
  ++queue.holds;
  if (queue.served) return {};
  if (!state_->put(state_, &state_->serves[q], true)) {
    --queue.holds;
    return no_thread();
  }
  queue.served = true;
  return {};
}

void Background::let_go(std::uint32_t q) noexcept {
  const std::lock_guard lock(state_->mutex);
  --state_->queues[q].holds;
  state_->queues[q].more.notify_one();
}

// Under the lock.
void Background::State::insert(QueueJob* job) noexcept {
  Queue& queue = queues[job->at.queue];
  Job** place = &queue.first;
  while (*place != nullptr && static_cast<QueueJob*>(*place)->at.position <= job->at.position) place = &(*place)->next_;
  job->next_ = *place;
  *place = job;
  queue.more.notify_one();
}

void Background::add(std::unique_ptr<QueueJob> job) noexcept {
  const std::lock_guard lock(state_->mutex);
  --state_->queues[job->at.queue].holds;
  state_->insert(job.release());
}

Result<void> Background::when_over(std::unique_ptr<QueueJob> job) {
  State::Queue& queue = state_->queues[job->at.queue];
  auto alone = std::make_unique<State::Alone>(state_->device, nullptr);
  const std::lock_guard lock(state_->mutex);
  if (queue.waiting > job->at.position) {  // the queue's thread looks at a later point, which may be far off
    alone->job = std::move(job);
    if (!state_->put(state_, alone.get(), true)) return no_thread();
    (void)alone.release();
    return {};
  }
  if (!queue.served) {
    if (!state_->put(state_, &state_->serves[job->at.queue], true)) return no_thread();
    queue.served = true;
  }
  state_->insert(job.release());
  return {};
}

bool Background::post(std::unique_ptr<Job>& job) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (!state_->put(state_, job.get(), false)) return false;
  (void)job.release();
  return true;
}

}  // namespace kiln::rt
