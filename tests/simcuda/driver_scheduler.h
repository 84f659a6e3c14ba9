// Runs what was enqueued, in the order of its dependencies. The work of all streams of all devices is one graph of operations: a stream is
// a chain, a wait for an event is an edge between chains, the null stream is edges to and from the blocking streams. Host threads take
// whatever is ready; there are as many as there is work that can run at once, so that work that blocks (a host function, a hanging kernel)
// holds up nobody else.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "simcuda/driver_settings.h"

namespace kiln::simcuda {

struct Context;
struct LoadedModule;
using Lock = std::unique_lock<std::mutex>;
using Clock = std::chrono::steady_clock;

// How work ended that poisons its context.
struct Failure {
  CUresult code = CUDA_ERROR_UNKNOWN;
  std::string text;
};

// Memory that a piece of work was given.
struct Use {
  std::uint64_t address = 0, bytes = 0;
};

// What an operation does; the same for an operation of a stream and for a node of a graph.
struct Work {
  enum class Kind : std::uint8_t { Kernel, Copy, Fill, Host };
  Kind kind = Kind::Host;
  Context* context = nullptr;
  std::string name;  // of the kernel, or "a copy of 16 bytes from host to device"
  std::vector<Use> uses;
  std::shared_ptr<const LoadedModule> module;  // of a kernel
  std::function<std::optional<Failure>()> run;
};

struct Operation {
  std::shared_ptr<const Work> work;  // null: only a point in the order
  Context* context = nullptr;
  bool is_event = false;            // its time of completion is asked for
  std::optional<Failure> injected;  // by the fault script
  bool injected_after_work = false;
  Clock::duration delay{};  // before it starts
  // The scheduler's.
  std::vector<std::shared_ptr<Operation>> successors;
  unsigned waiting_for = 0;
  std::size_t position = 0;  // among the unfinished
  bool done = false;
  Clock::time_point finished{};
};
using OperationPtr = std::shared_ptr<Operation>;

class Scheduler {
 public:
  // `execute` is called without the lock, on a thread of the scheduler, and says how the work ended; `failed` with the lock.
  Scheduler(std::mutex& mutex, std::function<std::optional<Failure>(Operation&)> execute, std::function<void(Operation&, Failure&)> failed)
      : mutex_(mutex), execute_(std::move(execute)), failed_(std::move(failed)) {}

  // All with the driver's lock held.
  void submit(const OperationPtr& operation, const std::vector<OperationPtr>& after);
  void wait(Lock& lock, const std::vector<OperationPtr>& operations);
  const std::vector<OperationPtr>& unfinished() const { return unfinished_; }
  void set_schedule(Schedule schedule, std::uint64_t seed);
  // Starts nothing more and waits for a while for what runs. For the end of the process.
  void stop(Lock& lock);

  // Without the lock: sleeps, but not beyond the end of the process.
  void sleep(Clock::duration time);

 private:
  void ready(const OperationPtr& operation, bool from_worker);
  void complete(const OperationPtr& operation, bool from_worker);
  OperationPtr take();
  void work();

  std::mutex& mutex_;
  const std::function<std::optional<Failure>(Operation&)> execute_;
  const std::function<void(Operation&, Failure&)> failed_;
  std::condition_variable wake_, finished_, stopped_;
  std::deque<OperationPtr> ready_;
  std::vector<OperationPtr> unfinished_;
  std::size_t workers_ = 0, idle_ = 0, running_ = 0, waiters_ = 0;
  bool stopping_ = false;
  Schedule schedule_ = Schedule::Oldest;
  std::minstd_rand random_{1};
};

}  // namespace kiln::simcuda
