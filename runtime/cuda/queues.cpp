#include "cuda/queues.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>
#include <utility>

namespace kiln::cuda {
namespace {

constexpr std::uint32_t kCredit = 16;
constexpr unsigned kSpins = 100;  // questions to the driver before the thread sleeps
// Whoever waits for what is held back looks this often whether the device was lost: who finds that cannot tell, since it holds locks.
constexpr std::chrono::milliseconds kLook{20};

constinit thread_local std::size_t thread_number [[gnu::tls_model("initial-exec")]] = 0;  // from 1 on

bool is_adopted(std::uint32_t queue) { return queue >= rt::kOwnQueues && queue < rt::kStreamQueues; }

}  // namespace

Queues::Queues(Session& session, const rt::Device& device) : session_(session), device_(device) {
  int least = 0, greatest = 0;  // the lower the number, the higher the priority
  const Session::Current current(session_);
  if (session_.call().cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS)
    priorities_ = {least, (least + greatest) / 2, greatest};
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
  for (std::uint32_t q = 0; q < rt::kQueues; ++q)
    if (queues_[q].there && !is_adopted(q)) session_.call().cuStreamDestroy(queues_[q].stream);
}

// --- room ------------------------------------------------------------------------------------------------------------------

// Threads have different ones, as far as there are enough.
SpareTask& Queues::spare_of_thread() {
  static std::atomic<std::size_t> threads{0};
  if (thread_number == 0) thread_number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return spares_[thread_number % kSpares];
}

CudaTask& Queues::take(bool beyond) {
  SpareTask& spare = spare_of_thread();
  if (!beyond && spare.credit.load(std::memory_order_relaxed) == 0) give_credit(spare);
  const std::uint32_t credit = spare.credit.load(std::memory_order_relaxed);
  if (beyond || credit != 0) {
    if (CudaTask* const task = spare.task.exchange(nullptr, std::memory_order_acquire)) {
      if (!beyond) spare.credit.store(credit - 1, std::memory_order_relaxed);
      return *task;
    }
  }
  std::unique_lock lock(mutex_);
  while (!beyond && full() && !session_.poisoned()) {
    reap();
    advance();
    if (!full()) break;
    if (outstanding() == 0) {  // all are in the hands of other threads
      ++wanting_;
      room_.wait(lock);
      --wanting_;
      continue;
    }
    // Half of what the fullest queue has at the driver, which comes to its end by itself: then many places are free at a time.
    rt::Event event;
    std::uint64_t most = 0;
    for (std::uint32_t q = 0; q < rt::kQueues; ++q) {
      const std::uint64_t completed = queues_[q].completed.load(), open = queues_[q].given.load() - completed;
      if (open > most) {
        most = open;
        event = {q, completed + (open + 1) / 2};
      }
    }
    if (most == 0) {  // all waits for calls of the host
      given_.wait_for(lock, kLook);
      continue;
    }
    lock.unlock();
    wait(event);
    lock.lock();
  }
  give_credit(spare);
  if (CudaTask* const task = spare.task.exchange(nullptr, std::memory_order_acquire)) return *task;
  if (free_ == nullptr) {
    tasks_.push_back(std::make_unique<CudaTask>());
    free_ = tasks_.back().get();
    if (!spare.made) {
      spare.made = true;
      free_->home = &spare;
    }
  }
  CudaTask& task = *free_;
  free_ = task.next;
  count_taken(task, 1);
  return task;
}

// As many as all threads may take before what they took is counted.
void Queues::give_credit(SpareTask& spare) const {
  const std::uint64_t counted = std::min<std::uint64_t>(kOutstanding, open());
  spare.credit.store(static_cast<std::uint32_t>(std::min<std::uint64_t>(kCredit, (kOutstanding - counted) / kSpares)),
                     std::memory_order_relaxed);
}

void Queues::give_back(CudaTask& task) noexcept {
  // Whoever gave it to the driver may not be done with it, though it is over; and on a lost device it may be in its queue still.
  if (task.held.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    if (task.held.load(std::memory_order_relaxed)) {
      take_out(task);
      task.held.store(false, std::memory_order_relaxed);
      held_.fetch_sub(1, std::memory_order_release);
    }
  }
  task.staging = rt::Staging();
  task.keep = false;
  if (task.home != nullptr) {
    task.home->task.store(&task, std::memory_order_release);
    return;
  }
  const std::lock_guard lock(mutex_);
  give_back_locked(task);
}

void Queues::give_back_locked(CudaTask& task) noexcept {
  task.keep = false;
  task.held.store(false, std::memory_order_relaxed);
  if (task.home != nullptr) {
    task.home->task.store(&task, std::memory_order_release);
    return;
  }
  count_taken(task, -1);
  task.next = free_;
  free_ = &task;
  if (wanting_ != 0) room_.notify_one();
}

std::uint64_t Queues::outstanding() const {
  std::uint64_t all = 0;
  for (std::uint64_t rest = used_.load(std::memory_order_acquire); rest != 0; rest &= rest - 1) {
    const Queue& queue = queues_[static_cast<std::size_t>(std::countr_zero(rest))];
    const std::uint64_t completed = queue.completed.load(std::memory_order_acquire);  // first: it is never more than what was submitted
    all += queue.submitted.load(std::memory_order_acquire) - completed;
  }
  return all;
}

// Finds out how far each queue has got, in a few questions.
void Queues::reap() {
  const Session::Current current(session_);
  for (std::uint32_t q = 0; q < rt::kQueues; ++q) {
    Queue& queue = queues_[q];
    for (std::uint64_t end = queue.given.load(); end > queue.completed.load();) {
      if (ask({q, end})) break;
      end = queue.completed.load() + (end - queue.completed.load()) / 2;
    }
  }
}

// --- enqueueing ------------------------------------------------------------------------------------------------------------

Result<rt::Event> Queues::enqueue(CudaTask& task, std::uint32_t q, const rt::After& after) {
  if (held_.load(std::memory_order_acquire) != 0 || task.kind == rt::Task::Kind::Call || is_adopted(q) || session_.poisoned() ||
      !room_in(q)) {
    return enqueue_locked(task, q, after);
  }
  Result<rt::Event> event = give_now(task, q, after);
  if (event.has_value()) task.event = *event;
  if (!task.keep) give_back(task);
  return event;
}

Result<rt::Event> Queues::enqueue_locked(CudaTask& task, std::uint32_t q, const rt::After& after) {
  const std::lock_guard lock(mutex_);
  if (session_.poisoned()) {
    const Phase phase = work_of(task).phase;
    if (!task.keep) give_back_locked(task);
    return session_.lost(phase);
  }
  if (held_.load(std::memory_order_relaxed) != 0) advance();
  if (task.kind == rt::Task::Kind::Call || queues_[q].first != nullptr || !given(after) || !room_in(q)) {
    if (task.kind != rt::Task::Kind::Call) {  // so that its place can be marked when its turn comes, whatever becomes of it
      const Session::Current current(session_, Session::Calls::Enqueueing);
      if (const CUresult r = make_ready(q, queues_[q].submitted.load(std::memory_order_relaxed) + 1); r != CUDA_SUCCESS) {
        const Work work = work_of(task);
        const Error error = session_.failed(r, work.phase, work.doing, text(work.kernel));
        if (!task.keep) give_back_locked(task);
        return error;
      }
    }
    hold_back(task, q, after);
    return task.event;
  }
  Result<rt::Event> event = give_now(task, q, after);
  if (event.has_value()) task.event = *event;
  if (!task.keep) give_back_locked(task);
  return event;
}

bool Queues::given(const rt::After& after) const {
  bool all = true;
  after.for_each([&](rt::Event e) { all = all && given(e); });
  return all;
}

bool Queues::room_in(std::uint32_t q) const { return queues_[q].given.load() - queues_[q].completed.load() < kOutstanding; }

// The next position of the queue.
Result<rt::Event> Queues::give_now(CudaTask& task, std::uint32_t q, const rt::After& after) {
  const Session::Current current(session_, Session::Calls::Enqueueing);
  CUstream stream = nullptr;
  CUresult r = prepare(q, after, stream);
  if (r == CUDA_SUCCESS) r = note_time(task.begin, stream);
  if (r == CUDA_SUCCESS) r = give(session_.call(), task, stream);
  const Work work = work_of(task);
  if (r != CUDA_SUCCESS) return session_.failed(r, work.phase, work.doing, text(work.kernel));
  r = note_time(task.end, stream);
  if (r != CUDA_SUCCESS) return session_.fatal(r, work.phase, work.doing);
  return record(q, work.kernel, task.order, work.phase, work.doing);
}

void Queues::hold_back(CudaTask& task, std::uint32_t q, const rt::After& after) {
  Queue& queue = queues_[q];
  task.after.clear();
  after.for_each([&](rt::Event e) {
    if (e.queue != q && !over(e)) task.after.add(e);
  });
  task.event = {q, queue.submitted.load(std::memory_order_relaxed) + 1};
  task.host_waits = false;
  task.next = nullptr;
  (queue.first != nullptr ? queue.last->next : queue.first) = &task;
  queue.last = &task;
  task.held.store(true, std::memory_order_relaxed);
  count_taken(task, -1);  // it counts once
  used_.fetch_or(std::uint64_t{1} << q, std::memory_order_release);
  held_.fetch_add(1, std::memory_order_relaxed);
  queue.submitted.store(task.event.position, std::memory_order_release);
}

// The first as a rule. On a lost device nobody waits for what is before it.
void Queues::take_out(CudaTask& task) noexcept {
  Queue& queue = queues_[task.event.queue];
  CudaTask* before = nullptr;
  for (CudaTask* at = queue.first; at != &task; at = at->next) before = at;
  (before != nullptr ? before->next : queue.first) = task.next;
  if (queue.last == &task) queue.last = before;
  count_taken(task, 1);
}

// Nothing: the driver has it. An error: it has not, and its position is still the next one.
std::optional<Error> Queues::give_held(CudaTask& task, std::uint32_t q) noexcept {
  const std::uint64_t before = queues_[q].given.load(std::memory_order_relaxed);
  std::optional<Error> refused;
  try {
    const auto event = give_now(task, q, task.after);
    if (!event.has_value()) refused = event.error();
  } catch (const std::bad_alloc&) { refused = rt::no_host_memory(); }  // for the words of it
  if (queues_[q].given.load(std::memory_order_relaxed) != before) return std::nullopt;
  return refused;
}

// Gives the driver what nothing holds back any more.
void Queues::advance() noexcept {
  bool any = false;
  for (bool more = held_.load(std::memory_order_relaxed) != 0; more;) {
    more = false;
    for (std::uint32_t q = 0; q < rt::kQueues; ++q) {
      Queue& queue = queues_[q];
      while (queue.first != nullptr) {
        CudaTask& task = *queue.first;
        const bool lost = session_.poisoned();
        if (!lost && (task.kind == rt::Task::Kind::Call || !given(task.after) || !room_in(q))) break;
        if (lost && task.kind == rt::Task::Kind::Call) break;  // its thread finishes it
        if (!lost && task.host_waits && !done(task.after)) break;
        const std::optional<Error> refused = lost ? std::nullopt : give_held(task, q);
        const bool marker = task.kind == rt::Task::Kind::Marker;
        if (refused && marker && !task.host_waits && !session_.poisoned()) {
          task.host_waits = true;  // what is behind it may count on its order: nothing goes past it
          if (!done(task.after)) break;
          continue;
        }
        queue.first = task.next;
        count_taken(task, 1);
        more = any = true;
        // Its place in the order is taken all the same. The refusal is there before anybody can see that the place is over. Of a marker
        // nobody asks.
        if (refused && !session_.poisoned()) {
          const Work work = work_of(task);
          const Session::Current current(session_, Session::Calls::Enqueueing);
          if (!marker) refuse({q, queue.given.load(std::memory_order_relaxed) + 1}, *refused);
          (void)record(q, nullptr, 0, work.phase, work.doing);
        }
        if (!task.keep) give_back_locked(task);
        else task.held.store(false, std::memory_order_release);  // from here on it is the caller's alone
        held_.fetch_sub(1, std::memory_order_release);
      }
    }
  }
  if (any) given_.notify_all();  // whoever waits for it comes here, too
}

void Queues::refuse(rt::Event event, const Error& error) noexcept {
  try {
    refusals_.push_back({event, error});
    any_refused_.store(true, std::memory_order_release);
  } catch (const std::bad_alloc&) {  // nobody could tell any more that its bytes were not written
    session_.fatal(CUDA_ERROR_OUT_OF_MEMORY, Phase::Wait, "noting that work was refused");
  }
}

std::optional<Error> Queues::refused(rt::Event event) {
  if (!any_refused_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  for (auto at = refusals_.begin(); at != refusals_.end(); ++at) {
    if (at->event.queue != event.queue || at->event.position != event.position) continue;
    std::optional<Error> error(std::move(at->error));
    refusals_.erase(at);
    any_refused_.store(!refusals_.empty(), std::memory_order_release);
    return error;
  }
  return std::nullopt;
}

// A position to wait for, so that events are free for more of its queue, or that the host waits for in the driver's place. Such work needs
// nothing of the host to come to its end.
std::optional<rt::Event> Queues::held_by() const {
  std::optional<rt::Event> first;
  for (std::uint32_t q = 0; q < rt::kQueues && !first; ++q) {
    const Queue& queue = queues_[q];
    if (queue.first == nullptr || queue.first->kind == rt::Task::Kind::Call || !given(queue.first->after)) continue;
    if (!room_in(q)) {
      first = rt::Event{q, queue.completed.load() + kOutstanding / 2};
    } else if (queue.first->host_waits) {
      queue.first->after.for_each([&](rt::Event e) {
        if (!over(e)) first = e;
      });
    }
  }
  return first;
}

void Queues::begin_call(CudaTask& task) {
  wait({task.event.queue, task.event.position - 1});
  task.after.for_each([&](rt::Event e) { wait(e); });
}

void Queues::finish_call(CudaTask& task) noexcept {
  std::unique_lock lock(mutex_);
  const rt::Event event = task.event;
  Queue& queue = queues_[event.queue];
  take_out(task);
  raise(event);  // first: there is no event of the driver to ask for it
  queue.given.store(event.position, std::memory_order_release);
  held_.fetch_sub(1, std::memory_order_release);
  give_back_locked(task);
  advance();
  given_.notify_all();
  while (const auto full = held_by()) {
    lock.unlock();
    wait(*full);
    lock.lock();
    advance();
  }
}

void Queues::flush() {
  if (held_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(mutex_);
  advance();
}

void Queues::wait_until_given(rt::Event event) {
  std::unique_lock lock(mutex_);
  while (!session_.poisoned()) {
    advance();
    if (given(event)) return;
    if (const auto full = held_by()) {
      lock.unlock();
      wait(*full);
      lock.lock();
    } else {
      given_.wait_for(lock, kLook);
    }
  }
}

// The stream of the queue, and the event of a position.
CUresult Queues::make_ready(std::uint32_t q, std::uint64_t position) {
  Queue& queue = queues_[q];
  const DriverEntries& call = session_.call();
  if (!queue.there) {
    if (is_adopted(q)) return CUDA_ERROR_INVALID_HANDLE;  // of a stream that was released
    const int priority = priorities_[static_cast<std::size_t>(rt::priority_of(q))];
    if (const CUresult r = call.cuStreamCreateWithPriority(&queue.stream, CU_STREAM_NON_BLOCKING, priority); r != CUDA_SUCCESS) return r;
    queue.there = true;
    used_.fetch_or(std::uint64_t{1} << q, std::memory_order_release);
  }
  if (queue.ring.empty()) queue.ring.resize(kOutstanding);
  Slot& s = slot({q, position});
  if (s.event != nullptr) return CUDA_SUCCESS;
  const CUresult r = call.cuEventCreate(&s.event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
  if (r != CUDA_SUCCESS) s.event = nullptr;
  return r;
}

CUresult Queues::prepare(std::uint32_t q, const rt::After& after, CUstream& stream) {
  Queue& queue = queues_[q];
  const DriverEntries& call = session_.call();
  const std::uint64_t position = queue.given.load(std::memory_order_relaxed) + 1;
  if (!queue.there || queue.ring.empty() || slot({q, position}).event == nullptr) {
    if (const CUresult r = make_ready(q, position); r != CUDA_SUCCESS) return r;
  }
  if (is_adopted(q)) {  // what is captured does not run, and nobody could tell when it is over
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (const CUresult r = call.cuStreamIsCapturing(queue.stream, &status); r != CUDA_SUCCESS) return r;
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  stream = queue.stream;
  CUresult result = CUDA_SUCCESS;
  after.for_each([&](rt::Event e) {
    if (result == CUDA_SUCCESS && e.queue != q && !over(e)) result = call.cuStreamWaitEvent(stream, slot(e).event, 0);
  });
  return result;
}

Result<rt::Event> Queues::record(std::uint32_t q, const std::string* kernel, std::uint64_t order, Phase phase, const char* doing) {
  Queue& queue = queues_[q];
  const rt::Event event{q, queue.given.load(std::memory_order_relaxed) + 1};
  Slot& s = slot(event);
  s.kernel = kernel;
  s.order = order;
  const CUresult r = session_.call().cuEventRecord(s.event, queue.stream);
  if (queue.submitted.load(std::memory_order_relaxed) < event.position) queue.submitted.store(event.position, std::memory_order_release);
  queue.given.store(event.position, std::memory_order_release);
  // The work is on its way, and nobody could tell when it is over.
  if (r != CUDA_SUCCESS) return session_.fatal(r, phase, doing);
  return event;
}

std::optional<std::uint32_t> Queues::adopt(CUstream stream) {
  const std::lock_guard lock(mutex_);
  std::optional<std::uint32_t> unused;
  for (std::uint32_t q = rt::kOwnQueues; q < rt::kStreamQueues; ++q) {
    if (queues_[q].there && queues_[q].stream == stream) return q;
    if (!queues_[q].there && !unused) unused = q;
  }
  if (unused) {
    queues_[*unused].stream = stream;
    queues_[*unused].there = true;
    used_.fetch_or(std::uint64_t{1} << *unused, std::memory_order_release);
  }
  return unused;
}

bool Queues::release(std::uint32_t queue) {
  if (!is_adopted(queue)) return false;
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
  if (!given(event)) return false;
  const rt::Event newest{event.queue, queues_[event.queue].given.load(std::memory_order_acquire)};
  if (over(newest) || ask(newest)) return true;
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
  if (!given(event)) {
    wait_until_given(event);
    if (over(event) || session_.poisoned()) return;
  }
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
    const std::uint64_t end = queue.given.load(std::memory_order_acquire);
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
