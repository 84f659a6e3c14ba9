#include "cuda/queues.h"

#include <algorithm>
#include <utility>

namespace kiln::cuda {
namespace {

constexpr unsigned kSpins = 100;  // questions to the driver before the thread sleeps

}  // namespace

Queues::Queues(Session& session) : session_(session) {
  session_.on_poison([this] { return suspects(); });
}

Queues::~Queues() {
  for (std::uint32_t q = 0; q < rt::kQueues; ++q) wait(last(q));
  session_.on_poison({});
  const Session::Current current(session_);
  for (Queue& queue : queues_) {
    for (const Slot& s : queue.ring)
      if (s.event != nullptr) session_.call().cuEventDestroy(s.event);
  }
  for (std::uint32_t q = 0; q < rt::kOwnQueues; ++q)
    if (queues_[q].there) session_.call().cuStreamDestroy(queues_[q].stream);
}

// --- room ------------------------------------------------------------------------------------------------------------------

CudaTask& Queues::take() {
  std::unique_lock lock(mutex_);
  const auto full = [&] { return taken_ + (submitted_ - completed_floor_) >= kOutstanding; };
  while (full() && !session_.poisoned()) {
    reap();
    if (!full()) break;
    if (submitted_ == completed_floor_) {  // all are in the hands of other threads
      ++wanting_;
      room_.wait(lock);
      --wanting_;
      continue;
    }
    // Half of the fullest queue: then many places are free at a time.
    rt::Event event;
    std::uint64_t most = 0;
    for (std::uint32_t q = 0; q < rt::kQueues; ++q) {
      const std::uint64_t completed = queues_[q].completed.load(), open = queues_[q].submitted.load() - completed;
      if (open > most) {
        most = open;
        event = {q, completed + (open + 1) / 2};
      }
    }
    lock.unlock();
    wait(event);
    lock.lock();
  }
  if (free_ == nullptr) {
    tasks_.push_back(std::make_unique<CudaTask>());
    free_ = tasks_.back().get();
  }
  CudaTask& task = *free_;
  free_ = task.next;
  ++taken_;
  return task;
}

void Queues::give_back(CudaTask& task) noexcept {
  task.staging = rt::Staging();
  const std::lock_guard lock(mutex_);
  give_back_locked(task);
}

void Queues::give_back_locked(CudaTask& task) noexcept {
  --taken_;
  task.next = free_;
  free_ = &task;
  if (wanting_ != 0) room_.notify_one();
}

// Finds out how far each queue has got, in a few questions.
void Queues::reap() {
  const Session::Current current(session_);
  std::uint64_t floor = 0;
  for (std::uint32_t q = 0; q < rt::kQueues; ++q) {
    Queue& queue = queues_[q];
    for (std::uint64_t end = queue.submitted.load(); end > queue.completed.load();) {
      if (ask({q, end})) break;
      end = queue.completed.load() + (end - queue.completed.load()) / 2;
    }
    floor += queue.completed.load();
  }
  completed_floor_ = floor;
}

// --- enqueueing ------------------------------------------------------------------------------------------------------------

CUresult Queues::prepare(std::uint32_t q, const rt::After& after, CUstream& stream) {
  Queue& queue = queues_[q];
  const DriverEntries& call = session_.call();
  if (!queue.there) {
    if (q >= rt::kOwnQueues) return CUDA_ERROR_INVALID_HANDLE;  // of a stream that was released
    if (const CUresult r = call.cuStreamCreate(&queue.stream, CU_STREAM_NON_BLOCKING); r != CUDA_SUCCESS) return r;
    queue.there = true;
  }
  if (q >= rt::kOwnQueues) {  // what is captured does not run, and nobody could tell when it is over
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (const CUresult r = call.cuStreamIsCapturing(queue.stream, &status); r != CUDA_SUCCESS) return r;
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (queue.ring.empty()) queue.ring.resize(kOutstanding);
  Slot& s = queue.ring[(queue.submitted.load(std::memory_order_relaxed) + 1) % kOutstanding];
  if (s.event == nullptr) {
    if (const CUresult r = call.cuEventCreate(&s.event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC); r != CUDA_SUCCESS) {
      s.event = nullptr;
      return r;
    }
  }
  stream = queue.stream;
  CUresult result = CUDA_SUCCESS;
  after.for_each([&](rt::Event e) {
    if (result == CUDA_SUCCESS && e.queue != q && !over(e)) result = call.cuStreamWaitEvent(stream, slot(e).event, 0);
  });
  return result;
}

Result<rt::Event> Queues::record(std::uint32_t q, const std::string* kernel, Phase phase, const char* doing) {
  Queue& queue = queues_[q];
  const rt::Event event{q, queue.submitted.load(std::memory_order_relaxed) + 1};
  Slot& s = slot(event);
  s.kernel = kernel;
  s.order = ++order_;
  const CUresult r = session_.call().cuEventRecord(s.event, queue.stream);
  queue.submitted.store(event.position, std::memory_order_release);
  ++submitted_;
  // The work is on its way, and nobody could tell when it is over.
  if (r != CUDA_SUCCESS) return session_.fatal(r, phase, doing);
  return event;
}

std::optional<std::uint32_t> Queues::adopt(CUstream stream) {
  const std::lock_guard lock(mutex_);
  std::optional<std::uint32_t> unused;
  for (std::uint32_t q = rt::kOwnQueues; q < rt::kQueues; ++q) {
    if (queues_[q].there && queues_[q].stream == stream) return q;
    if (!queues_[q].there && !unused) unused = q;
  }
  if (unused) {
    queues_[*unused].stream = stream;
    queues_[*unused].there = true;
  }
  return unused;
}

bool Queues::release(std::uint32_t queue) {
  if (queue < rt::kOwnQueues) return false;
  wait(last(queue));
  const std::lock_guard lock(mutex_);
  return std::exchange(queues_[queue].there, false);
}

// --- what is over ----------------------------------------------------------------------------------------------------------

void Queues::raise(rt::Event event) {
  std::atomic<std::uint64_t>& completed = queues_[event.queue].completed;
  std::uint64_t known = completed.load(std::memory_order_relaxed);
  while (known < event.position && !completed.compare_exchange_weak(known, event.position, std::memory_order_acq_rel)) {}
}

bool Queues::ask(rt::Event event) {
  const CUresult r = session_.call().cuEventQuery(slot(event).event);
  if (r == CUDA_SUCCESS) {
    if (!session_.poisoned()) raise(event);
    return true;
  }
  if (r != CUDA_ERROR_NOT_READY) session_.fatal(r, Phase::Wait, "waiting for the device");
  return false;
}

bool Queues::done(rt::Event event) {
  if (over(event) || session_.poisoned()) return true;
  const Session::Current current(session_);
  const rt::Event newest = last(event.queue);
  if (ask(newest)) return true;
  if (session_.poisoned()) return true;
  return over(event) || (newest.position != event.position && ask(event)) || over(event);
}

bool Queues::done(const rt::After& after) {
  bool all = true;
  after.for_each([&](rt::Event e) { all = all && done(e); });
  return all;
}

void Queues::wait(rt::Event event) {
  if (over(event) || session_.poisoned()) return;
  const Session::Current current(session_);
  for (unsigned i = 0; i < kSpins; ++i) {
    if (over(event) || ask(event) || session_.poisoned()) return;
  }
  const CUresult r = session_.call().cuEventSynchronize(slot(event).event);
  if (r != CUDA_SUCCESS) {
    session_.fatal(r, Phase::Wait, "waiting for the device");
  } else if (!session_.poisoned()) {
    raise(event);
  }
}

// Under the session's lock, while the device is being poisoned. Reads without ours: whoever found the failure may hold it.
std::vector<std::string> Queues::suspects() const {
  std::vector<std::pair<std::uint64_t, const std::string*>> open;
  for (const Queue& queue : queues_) {
    const std::uint64_t end = queue.submitted.load(std::memory_order_acquire);
    for (std::uint64_t p = queue.completed.load(std::memory_order_acquire) + 1; p <= end; ++p) {
      const Slot& s = queue.ring[p % kOutstanding];
      if (s.kernel != nullptr) open.emplace_back(s.order, s.kernel);
    }
  }
  std::sort(open.begin(), open.end());
  std::vector<std::string> names;
  for (const auto& [order, kernel] : open) names.push_back(*kernel);
  return names;
}

}  // namespace kiln::cuda
