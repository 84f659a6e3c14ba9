// An operation, what it is while it runs, and what a part of one is to it. For kiln/runtime/operation.h.
#pragma once
#include <atomic>
#include <concepts>
#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/runtime/buffer.h"
#include "kiln/runtime/client.h"

namespace kiln {

// Chooses streams for operations. Cheap to copy; copies take turns together. Thread-safe.
class StreamPolicy {
 public:
  // Moving copies: a policy that was moved from is still one.
  StreamPolicy(const StreamPolicy&) = default;
  StreamPolicy& operator=(const StreamPolicy&) = default;
  static StreamPolicy single(const Stream& stream);
  // `streams` new streams in turn: operation k runs on stream k modulo that. Throws kiln::Exception for none.
  static StreamPolicy round_robin(const Client& client, unsigned streams = 4);
  Stream next() const;

 private:
  struct State;
  explicit StreamPolicy(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

template <class T>
class Operation;
template <class T>
class Running;

namespace op::detail {

template <class... T>
inline constexpr bool never = false;

// What the parts of a run share, and who hears of its end.
class Run {
 public:
  Run(const Stream& stream, std::optional<StreamPolicy> policy, std::shared_ptr<Run> parent)
      : policy_(std::move(policy)), is_part_(parent != nullptr), parent_(std::move(parent)), streams_{stream} {}
  virtual ~Run() = default;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Nobody wants it any more: no further part begins.
  void drop() { dropped_.store(true, std::memory_order_relaxed); }
  bool dropped() const {
    if (dropped_.load(std::memory_order_relaxed)) return true;
    if (!is_part_) return false;
    const auto parent = parent_.lock();
    return parent == nullptr || parent->dropped();
  }
  const std::optional<StreamPolicy>& policy() const { return policy_; }
  Stream branch();                   // a stream for a part that runs beside others
  void wrote(const Binding& bytes);  // a part enqueues work that writes them
  void join(Run& other);             // what that has done belongs to this one, too
  // The parts are enqueued, or one of them failed: `then` hears, on a thread of the runtime, how it went once the device is through.
  static void settle(const std::shared_ptr<Run>& run, std::move_only_function<void(Result<void>)> then) noexcept;
  // A part cannot tell its receiver what it has come to, for it was on the way there that something was thrown: the whole ends with this.
  virtual void fail(Error why) noexcept = 0;
  // Goes on with a part of the run, wherever that is. What it throws is the run's end: no thread of the runtime has anybody to throw at,
  // and who waits for the run waits for its end.
  template <class F>
  void go_on(F&& f) noexcept;

 protected:
  // Waits for `over` to become true under the lock, whatever else the thread is. Errors: it is a host call that would wait for itself.
  Result<void> wait(std::unique_lock<std::mutex>& lock, const bool& over);
  std::mutex mutex_;
  std::condition_variable over_;

 private:
  std::atomic<bool> dropped_{false};
  std::optional<StreamPolicy> policy_;
  const bool is_part_;
  const std::weak_ptr<Run> parent_;  // which may hold this one
  std::vector<Stream> streams_;      // all that were used; guarded, as is what follows
  std::vector<Binding> written_;
};

struct Context {
  std::shared_ptr<Run> run;
  Stream stream;
};

// Called once, with what the part has come to.
template <class T>
using Receiver = std::move_only_function<void(Result<T>)>;

// One part of an operation. Lives as long as its run.
template <class T>
class Node {
 public:
  virtual ~Node() = default;
  // At most once.
  void start(const Context& context, Receiver<T> receiver) noexcept {
    const std::shared_ptr<Run> run = context.run;  // the context may be the receiver's
    run->go_on([&] { begin(context, std::move(receiver)); });
  }
  virtual std::optional<Client> client() const { return std::nullopt; }

 private:
  virtual void begin(const Context& context, Receiver<T> receiver) = 0;
};
template <class T>
using NodePtr = std::unique_ptr<Node<T>>;

Error gone() noexcept;                                        // it ran, or was moved from
Error dropped() noexcept;                                     // of a run that nobody wants
Error thrown() noexcept;                                      // the exception that is being handled
Error borrowed_gone(const char* what, std::size_t argument);  // from 1; 0: no argument of a launch
Client default_client(std::optional<Client> own);
std::optional<Client> first_client(std::initializer_list<std::optional<Client>> all);
Result<void> call_later(const Stream& stream, std::move_only_function<void(const Error*)> function, const std::source_location& where);
void go_on_elsewhere(const Stream& stream, std::move_only_function<void()> then) noexcept;
Result<void> read_later(const Stream& stream, const Binding& from, void* to, std::move_only_function<void(Result<void>)> done);

template <class F>
void Run::go_on(F&& f) noexcept {
  try {
    std::forward<F>(f)();
  } catch (...) { fail(thrown()); }
}

// A run with its result.
template <class T>
class RunOf final : public Run {
 public:
  RunOf(NodePtr<T> node, const Stream& stream, std::optional<StreamPolicy> policy, std::shared_ptr<Run> parent)
      : Run(stream, std::move(policy), std::move(parent)), node_(std::move(node)) {}

  static std::shared_ptr<RunOf> begin(NodePtr<T> node, const Stream& stream, std::optional<StreamPolicy> policy = {},
                                      std::shared_ptr<Run> parent = nullptr) {
    const auto run = std::make_shared<RunOf>(std::move(node), stream, std::move(policy), std::move(parent));
    if (run->node_ == nullptr) {
      run->end(gone());
      return run;
    }
    run->go_on([&] {
      run->node_->start({run, stream}, [run](Result<T> value) {
        run->go_on([&] {
          auto kept = std::make_shared<Result<T>>(std::move(value));
          settle(run, [run, kept = std::move(kept)](Result<void> how) {
            if (kept->has_value() && !how.has_value()) run->end(how.error());
            else run->end(std::move(*kept));
          });
        });
      });
    });
    return run;
  }
  void fail(Error why) noexcept override { end(std::move(why)); }

  bool is_over() {
    const std::lock_guard lock(mutex_);
    return result_there_;
  }
  // False: it is over already, and `waiter` is gone.
  bool wake(std::move_only_function<void()> waiter) {
    const std::lock_guard lock(mutex_);
    if (result_there_) return false;
    waiter_ = std::move(waiter);
    return true;
  }
  void wake_nobody() {
    const std::lock_guard lock(mutex_);
    waiter_ = nullptr;
  }
  Result<T> take() {
    std::unique_lock lock(mutex_);
    if (auto ok = this->wait(lock, result_there_); !ok.has_value()) return ok.error();
    if (!result_) return gone();
    Result<T> result = std::move(*result_);
    result_.reset();
    return result;
  }

 private:
  void end(Result<T> result) noexcept {
    std::move_only_function<void()> waiter;
    {
      const std::lock_guard lock(mutex_);
      if (result_there_) return;
      try {
        result_.emplace(std::move(result));
      } catch (...) { result_.emplace(thrown()); }  // the value's own move did
      result_there_ = true;
      waiter = std::move(waiter_);
      waiter_ = nullptr;
      over_.notify_all();
    }
    try {
      if (waiter) waiter();
    } catch (...) {}  // a coroutine of somebody else's that throws at whoever resumes it
  }

  NodePtr<T> node_;
  bool result_there_ = false;
  std::optional<Result<T>> result_;
  std::move_only_function<void()> waiter_;
};

// co_await of a run. With a promise of an operation that is a coroutine, what was dropped is not resumed.
template <class T>
class Await {
 public:
  explicit Await(std::shared_ptr<RunOf<T>> run) : run_(std::move(run)) {}
  Await(Await&&) = default;
  ~Await() {
    if (run_ == nullptr) return;
    run_->wake_nobody();
    if (!taken_) run_->drop();
  }
  bool await_ready() const { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> handle) {
    const std::shared_ptr<RunOf<T>> run = run_;  // this may be gone before wake() has returned
    if constexpr (requires(P& p) { p.abandoned(); }) {
      return run->wake([handle] {
        if (handle.promise().abandoned()) handle.promise().abandon();
        else handle.resume();
      });
    } else {
      return run->wake([handle] { handle.resume(); });
    }
  }
  Result<T> await_resume() {
    taken_ = true;
    return run_->take();
  }

 private:
  std::shared_ptr<RunOf<T>> run_;
  bool taken_ = false;
};

template <class T>
struct Coroutine;

template <class F, class T>
decltype(auto) apply_value(F& f, Result<T>& value) {
  if constexpr (std::is_void_v<T>) {
    return f();
  } else if constexpr (std::is_invocable_v<F&, T&&>) {
    return f(std::move(*value));
  } else {
    return std::apply(f, std::move(*value));
  }
}
template <class F, class T>
using Applied = decltype(apply_value(std::declval<F&>(), std::declval<Result<T>&>()));
template <class T>
inline constexpr bool is_operation = false;
template <class T>
inline constexpr bool is_operation<Operation<T>> = true;

// void among the values of several.
template <class T>
using Lifted = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

}  // namespace op::detail

// An operation that runs. Movable. Dropping it does not wait: parts that have not begun never do, what the device has runs to its end, and
// all that it uses is kept until then.
template <class T>
class [[nodiscard]] Running {
 public:
  explicit Running(std::shared_ptr<op::detail::RunOf<T>> run) : run_(std::move(run)) {}
  Running(Running&&) noexcept = default;
  Running& operator=(Running&& o) noexcept {
    std::swap(run_, o.run_);
    return *this;
  }
  ~Running() {
    if (run_ != nullptr) run_->drop();
  }
  bool done() const { return run_ == nullptr || run_->is_over(); }
  // Waits, and gives the value once.
  Result<T> sync() && {
    if (run_ == nullptr) return op::detail::gone();
    const auto run = std::move(run_);
    return run->take();
  }
  auto operator co_await() && { return op::detail::Await<T>(std::move(run_)); }

 private:
  std::shared_ptr<op::detail::RunOf<T>> run_;
};

// Movable, not copyable. It runs once: sync(), start(), co_await and the combinators take it away, so they are for rvalues. What was taken
// away before is an error (rule OperationGone).
//
// A coroutine that returns Operation<T> is one, too: it begins when it runs, and what it awaits runs on its stream.
template <class T>
class [[nodiscard]] Operation {
 public:
  using value_type = T;
  using promise_type = op::detail::Coroutine<T>;

  explicit Operation(op::detail::NodePtr<T> node) : node_(std::move(node)) {}
  Operation(Operation&&) noexcept = default;
  Operation& operator=(Operation&&) noexcept = default;

  // Runs it and waits. Without an argument on the calling thread's default stream of its client.
  Result<T> sync() && { return run_and_wait(); }
  Result<T> sync(const Stream& stream) && { return run_and_wait(stream); }
  Result<T> sync(const StreamPolicy& policy) && { return run_and_wait(policy); }

  // Runs it without waiting. Parts that run beside others do so on streams of the policy, else on new ones. As whatever makes an operation
  // throws std::bad_alloc where the host has no memory for it; nothing has begun then.
  Running<T> start() && {
    const Client client = op::detail::default_client(node_ != nullptr ? node_->client() : std::nullopt);
    return std::move(*this).start(client.default_stream());
  }
  Running<T> start(const Stream& stream) && { return Running<T>(op::detail::RunOf<T>::begin(std::move(node_), stream)); }
  Running<T> start(const StreamPolicy& policy) && {
    return Running<T>(op::detail::RunOf<T>::begin(std::move(node_), policy.next(), policy));
  }
  // Suspends; a thread of the runtime resumes when the device is through. Gives a Result<T>.
  auto operator co_await() && {
    const Client client = op::detail::default_client(node_ != nullptr ? node_->client() : std::nullopt);
    return op::detail::Await<T>(op::detail::RunOf<T>::begin(std::move(node_), client.default_stream()));
  }

  // f(value) gives the operation that comes next, on the same stream. The elements of a tuple are passed one by one where f takes them so.
  template <class F>
  auto and_then(F f) &&;
  // f(value) gives the new value.
  template <class F>
  auto map(F f) &&;

#define KILN_ONCE                     \
  static_assert(op::detail::never<U>, \
                "kiln: an operation runs once: write std::move(operation) before sync(), start(), co_await, and_then() or map().")
  template <class U = T, class... A>
  Result<T> sync(A&&...) & {
    KILN_ONCE;
    return op::detail::gone();
  }
  template <class U = T, class... A>
  Running<T> start(A&&...) & {
    KILN_ONCE;
    return Running<T>(nullptr);
  }
  template <class U = T>
  op::detail::Await<T> operator co_await() & {
    KILN_ONCE;
    return op::detail::Await<T>(nullptr);
  }
#undef KILN_ONCE

  op::detail::NodePtr<T> take() && { return std::move(node_); }  // for combinators

 private:
  template <class... On>
  Result<T> run_and_wait(const On&... on) {
    try {
      return std::move(*this).start(on...).sync();
    } catch (const std::bad_alloc&) { return rt::no_host_memory(); }
  }

  op::detail::NodePtr<T> node_;
};

}  // namespace kiln
