#include "big_stack.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace kiln::codegen {
namespace {

struct Worker {
  std::mutex mutex;
  std::condition_variable wake, finished;
  const std::function<void()>* job = nullptr;
};

// Never destroyed: its threads are parked in it until the process ends.
struct Pool {
  std::mutex mutex;
  std::vector<Worker*> idle;
};
std::atomic<Pool*> current{nullptr};
// The parent's threads are not in a child, and its lock may be held for ever there.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { current.store(nullptr, std::memory_order_relaxed); });

Pool& pool() {
  Pool* p = current.load(std::memory_order_acquire);
  if (p != nullptr) return *p;
  auto made = std::make_unique<Pool>();
  if (current.compare_exchange_strong(p, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *p;
}

void* work(void* argument) {
  auto& worker = *static_cast<Worker*>(argument);
  std::unique_lock lock(worker.mutex);
  while (true) {
    worker.wake.wait(lock, [&] { return worker.job != nullptr; });
    const std::function<void()>& job = *worker.job;
    lock.unlock();
    job();
    lock.lock();
    worker.job = nullptr;
    worker.finished.notify_one();
  }
}

int make_worker(Worker*& made) {
  auto worker = std::make_unique<Worker>();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kBigStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int failed = pthread_create(&thread, &attributes, &work, worker.get());
  pthread_attr_destroy(&attributes);
  if (failed == 0) made = worker.release();
  return failed;
}

int take_worker(Worker*& taken) {
  Pool& p = pool();
  {
    const std::lock_guard lock(p.mutex);
    if (!p.idle.empty()) {
      taken = p.idle.back();
      p.idle.pop_back();
      return 0;
    }
  }
  return make_worker(taken);
}

}  // namespace

int on_big_stack(const std::function<void()>& f) {
  Worker* worker = nullptr;
  if (const int failed = take_worker(worker); failed != 0) return failed;
  {
    std::unique_lock lock(worker->mutex);
    worker->job = &f;
    worker->wake.notify_one();
    worker->finished.wait(lock, [&] { return worker->job == nullptr; });
  }
  const std::lock_guard lock(pool().mutex);
  pool().idle.push_back(worker);
  return 0;
}

}  // namespace kiln::codegen
