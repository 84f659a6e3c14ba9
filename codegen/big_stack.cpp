#include "big_stack.h"

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

namespace kiln::codegen {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 20;  // address space; committed only as far as used

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
Pool& pool() {
  static Pool* const p = new Pool;
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

Worker* make_worker() {
  auto* worker = new Worker;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int failed = pthread_create(&thread, &attributes, &work, worker);
  pthread_attr_destroy(&attributes);
  if (failed == 0) return worker;
  delete worker;
  return nullptr;
}

Worker* take_worker() {
  Pool& p = pool();
  {
    const std::lock_guard lock(p.mutex);
    if (!p.idle.empty()) {
      Worker* worker = p.idle.back();
      p.idle.pop_back();
      return worker;
    }
  }
  return make_worker();
}

}  // namespace

void on_big_stack(const std::function<void()>& f) {
  Worker* const worker = take_worker();
  if (worker == nullptr) return f();
  {
    std::unique_lock lock(worker->mutex);
    worker->job = &f;
    worker->wake.notify_one();
    worker->finished.wait(lock, [&] { return worker->job == nullptr; });
  }
  const std::lock_guard lock(pool().mutex);
  pool().idle.push_back(worker);
}

}  // namespace kiln::codegen
