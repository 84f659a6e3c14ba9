#include "simcuda/driver_scheduler.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace kiln::simcuda {
namespace {
constexpr std::size_t kMostWorkers = 128;
}

void Scheduler::submit(const OperationPtr& operation, const std::vector<OperationPtr>& after) {
  operation->waiting_for = 0;
  for (const OperationPtr& before : after) {
    if (before == nullptr || before->done) continue;
    before->successors.push_back(operation);
    ++operation->waiting_for;
  }
  operation->position = unfinished_.size();
  unfinished_.push_back(operation);
  if (operation->waiting_for == 0) ready(operation, false);
}

void Scheduler::ready(const OperationPtr& operation, bool from_worker) {
  // A mere point in the order needs no thread.
  if (operation->work == nullptr && operation->delay == Clock::duration::zero()) return complete(operation, from_worker);
  ready_.push_back(operation);
  // A worker that completes an operation looks for the next one itself.
  const std::size_t takers = idle_ + (from_worker ? 1 : 0);
  if (ready_.size() > takers && workers_ < kMostWorkers && !stopping_) {
    try {
      std::thread([this] { work(); }).detach();
      ++workers_;
    } catch (const std::system_error&) {
      if (workers_ == 0) {  // nobody would ever run it
        ready_.pop_back();
        unfinished_.pop_back();
        throw;
      }
    }
  } else if (ready_.size() > (from_worker ? 1u : 0u)) {
    wake_.notify_one();
  }
}

// Without recursion: a long chain of mere points would exhaust the stack.
void Scheduler::complete(const OperationPtr& first, bool from_worker) {
  std::vector<OperationPtr> pending{first};
  while (!pending.empty()) {
    const OperationPtr operation = std::move(pending.back());
    pending.pop_back();
    operation->done = true;
    operation->finished = Clock::now();
    unfinished_[operation->position] = unfinished_.back();
    unfinished_[operation->position]->position = operation->position;
    unfinished_.pop_back();
    const std::vector<OperationPtr> successors = std::exchange(operation->successors, {});
    for (const OperationPtr& next : successors) {
      if (--next->waiting_for != 0) continue;
      if (next->work == nullptr && next->delay == Clock::duration::zero()) pending.push_back(next);
      else ready(next, from_worker);
    }
  }
  if (waiters_ != 0) finished_.notify_all();
}

OperationPtr Scheduler::take() {
  std::size_t index = 0;
  if (schedule_ == Schedule::Newest) index = ready_.size() - 1;
  if (schedule_ == Schedule::Seeded) index = random_() % ready_.size();
  OperationPtr operation = std::move(ready_[index]);
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(index));
  return operation;
}

void Scheduler::work() {
  Lock lock(mutex_);
  while (!stopping_) {
    if (ready_.empty()) {
      ++idle_;
      wake_.wait(lock, [&] { return stopping_ || !ready_.empty(); });
      --idle_;
      continue;
    }
    const OperationPtr operation = take();
    ++running_;
    lock.unlock();
    std::optional<Failure> failure;
    failure = execute_(*operation);
    lock.lock();
    --running_;
    if (failure.has_value()) failed_(*operation, *failure);
    complete(operation, true);
  }
  --workers_;
  stopped_.notify_all();
}

void Scheduler::wait(Lock& lock, const std::vector<OperationPtr>& operations) {
  ++waiters_;
  for (const OperationPtr& operation : operations)
    if (operation != nullptr) finished_.wait(lock, [&] { return operation->done; });
  --waiters_;
}

void Scheduler::set_schedule(Schedule schedule, std::uint64_t seed) {
  schedule_ = schedule;
  random_.seed(static_cast<std::minstd_rand::result_type>(seed % 2147483646 + 1));
}

void Scheduler::stop(Lock& lock) {
  stopping_ = true;
  wake_.notify_all();
  stopped_.notify_all();
  // A host function may wait for something that will not happen any more, and a kernel may run for long: not forever.
  stopped_.wait_for(lock, std::chrono::seconds(2), [&] { return workers_ == 0; });
}

void Scheduler::sleep(Clock::duration time) {
  Lock lock(mutex_);
  stopped_.wait_for(lock, time, [&] { return stopping_; });
}

}  // namespace kiln::simcuda
