// Operation<T>: work that runs later, once, on a stream that is chosen then. Making one enqueues nothing; dropping it runs nothing.
//
//   Operation<std::vector<f32>> job = op::launch_owned(saxpy, config, std::move(x), std::move(y), 2.0f)
//                                       .and_then([](Buffer<f32> x, Buffer<f32> y) { return op::read(std::move(y)); });
//   Result<std::vector<f32>> y = std::move(job).sync();     // or co_await std::move(job), or start() and later
//
// A part's value is known when it was enqueued (a launch, a copy) or when the device has come to it (a read, a call); what comes after it
// is enqueued then, on the same stream, so it sees what the part wrote, and no host waits. The whole is over when the device is through
// with it. Its error is that of the first part that failed; a launch that fails late fails the whole too, and its bytes as ever.
//
// A buffer that is passed as an lvalue is borrowed: an operation that runs when its memory is gone is an error (rule BorrowedBufferGone)
// and touches nothing. One that is passed as an rvalue is owned: it is kept, and handed back as the value.
//
// One operation is for one thread at a time. Functions given to operations run on threads of the runtime, or on the one that starts them;
// what they throw is the operation's error.
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
  virtual void start(const Context& context, Receiver<T> receiver) = 0;  // at most once
  virtual std::optional<Client> client() const { return std::nullopt; }
};
template <class T>
using NodePtr = std::unique_ptr<Node<T>>;

Error gone();                                                 // it ran, or was moved from
Error dropped();                                              // of a run that nobody wants
Error thrown() noexcept;                                      // the exception that is being handled
Error borrowed_gone(const char* what, std::size_t argument);  // from 1; 0: no argument of a launch
Client default_client(std::optional<Client> own);
std::optional<Client> first_client(std::initializer_list<std::optional<Client>> all);
Result<void> call_later(const Stream& stream, std::move_only_function<void(const Error*)> function);
void go_on_elsewhere(const Stream& stream, std::move_only_function<void()> then) noexcept;
Result<void> read_later(const Stream& stream, const Binding& from, void* to, std::move_only_function<void(Result<void>)> done);

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
    try {
      run->node_->start({run, stream}, [run](Result<T> value) mutable {
        auto kept = std::make_shared<Result<T>>(std::move(value));
        const std::shared_ptr<Run> base = run;
        settle(base, [run = std::move(run), kept = std::move(kept)](Result<void> how) {
          if (kept->has_value() && !how.has_value()) run->end(how.error());
          else run->end(std::move(*kept));
        });
      });
    } catch (...) { run->end(thrown()); }
    return run;
  }

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
  void end(Result<T> result) {
    std::move_only_function<void()> waiter;
    {
      const std::lock_guard lock(mutex_);
      if (result_there_) return;
      result_.emplace(std::move(result));
      result_there_ = true;
      waiter = std::move(waiter_);
      waiter_ = nullptr;
      over_.notify_all();
    }
    if (waiter) waiter();
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
  Result<T> sync() && { return std::move(*this).start().sync(); }
  Result<T> sync(const Stream& stream) && { return std::move(*this).start(stream).sync(); }
  Result<T> sync(const StreamPolicy& policy) && { return std::move(*this).start(policy).sync(); }

  // Runs it without waiting. Parts that run beside others do so on streams of the policy, else on new ones.
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
  op::detail::NodePtr<T> node_;
};

namespace op::detail {

// Enqueues and knows its value then.
template <class T, class F>
class Issue final : public Node<T> {
 public:
  Issue(std::optional<Client> client, F f) : client_(std::move(client)), f_(std::move(f)) {}
  void start(const Context& context, Receiver<T> receiver) override { receiver(once(context)); }
  std::optional<Client> client() const override { return client_; }

 private:
  Result<T> once(const Context& context) {
    if (context.run->dropped()) return dropped();
    try {
      return f_(context);
    } catch (...) { return thrown(); }
  }
  std::optional<Client> client_;
  F f_;
};
// f(context) -> Result<T>
template <class T, class F>
Operation<T> issue(std::optional<Client> client, F f) {
  return Operation<T>(std::make_unique<Issue<T, F>>(std::move(client), std::move(f)));
}

template <class T, class F>
class Call final : public Node<T> {
 public:
  explicit Call(F f) : f_(std::move(f)) {}
  void start(const Context& context, Receiver<T> receiver) override {
    const auto shared = std::make_shared<Receiver<T>>(std::move(receiver));
    const auto ok = call_later(context.stream, [this, context, shared](const Error* lost) {
      auto value = std::make_shared<Result<T>>(lost != nullptr ? Result<T>(*lost) : once(context));
      go_on_elsewhere(context.stream, [shared, value] { (*shared)(std::move(*value)); });
    });
    if (!ok.has_value()) (*shared)(ok.error());
  }

 private:
  Result<T> once(const Context& context) {
    if (context.run->dropped()) return dropped();
    try {
      if constexpr (std::is_void_v<T>) {
        f_();
        return {};
      } else {
        return f_();
      }
    } catch (...) { return thrown(); }
  }
  F f_;
};

template <class T, class U, class F>
class Then final : public Node<U> {
 public:
  Then(NodePtr<T> first, F f) : first_(std::move(first)), f_(std::move(f)) {}
  std::optional<Client> client() const override { return first_ != nullptr ? first_->client() : std::nullopt; }
  void start(const Context& context, Receiver<U> receiver) override {
    if (first_ == nullptr) return receiver(gone());
    first_->start(context, [this, context, receiver = std::move(receiver)](Result<T> value) mutable {
      if (!value.has_value()) return receiver(value.error());
      if (context.run->dropped()) return receiver(dropped());
      std::optional<Error> failed;
      try {
        if constexpr (is_operation<Applied<F, T>>) {
          second_ = apply_value(f_, value).take();
        } else {
          Result<U> now = make(value);
          return receiver(std::move(now));
        }
      } catch (...) { failed = thrown(); }
      if (failed) return receiver(std::move(*failed));
      if (second_ == nullptr) return receiver(gone());
      second_->start(context, std::move(receiver));
    });
  }

 private:
  Result<U> make(Result<T>& value) {
    if constexpr (std::is_void_v<Applied<F, T>>) {
      apply_value(f_, value);
      return {};
    } else {
      return apply_value(f_, value);
    }
  }
  NodePtr<T> first_;
  F f_;
  NodePtr<U> second_;
};

// Several at a time, on streams of their own that begin behind this one and that this one goes on behind.
template <class... T>
class All final : public Node<std::tuple<Lifted<T>...>> {
 public:
  using Value = std::tuple<Lifted<T>...>;
  explicit All(NodePtr<T>... nodes) : nodes_(std::move(nodes)...) {}
  std::optional<Client> client() const override {
    return std::apply([](const auto&... node) { return first_client({node != nullptr ? node->client() : std::nullopt...}); }, nodes_);
  }
  void start(const Context& context, Receiver<Value> receiver) override {
    const auto join = std::make_shared<Join>(context, std::move(receiver));
    start_all(context, join, std::index_sequence_for<T...>());
  }

 private:
  struct Join {
    Join(const Context& c, Receiver<Value> r) : context(c), receiver(std::move(r)) {}
    const Context context;
    Receiver<Value> receiver;
    std::tuple<std::optional<Result<T>>...> results;
    std::vector<Stream> streams;
    std::atomic<std::size_t> open{sizeof...(T)};

    void one_less() {
      if (open.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      std::optional<Error> failed;
      for (const Stream& stream : streams) {
        const auto ok = context.stream.wait(stream.record());
        if (!ok.has_value() && !failed) failed = ok.error();
      }
      std::optional<Error> first;
      std::apply([&](auto&... r) { (note(first, *r), ...); }, results);
      if (!first) first = std::move(failed);
      if (first) return receiver(std::move(*first));
      receiver(std::apply([](auto&... r) { return Result<Value>(Value(lift(*r)...)); }, results));
    }
    template <class R>
    static void note(std::optional<Error>& first, const R& r) {
      if (!first && !r.has_value()) first = r.error();
    }
    template <class U>
    static Lifted<U> lift(Result<U>& r) {
      if constexpr (std::is_void_v<U>) return {};
      else return std::move(*r);
    }
  };

  template <std::size_t... I>
  void start_all(const Context& context, const std::shared_ptr<Join>& join, std::index_sequence<I...>) {
    const Event fork = context.stream.record();
    for (std::size_t i = 0; i < sizeof...(T); ++i) join->streams.push_back(context.run->branch());
    (start_one<I>(context, join, fork), ...);
  }
  template <std::size_t I>
  void start_one(const Context& context, const std::shared_ptr<Join>& join, const Event& fork) {
    auto& node = std::get<I>(nodes_);
    using U = std::tuple_element_t<I, std::tuple<std::type_identity<T>...>>::type;
    const auto end = [join](Result<U> value) {
      std::get<I>(join->results).emplace(std::move(value));
      join->one_less();
    };
    if (node == nullptr) return end(gone());
    const Stream& stream = join->streams[I];
    if (auto ok = stream.wait(fork); !ok.has_value()) return end(ok.error());
    try {
      node->start({context.run, stream}, end);
    } catch (...) { end(thrown()); }
  }

  std::tuple<NodePtr<T>...> nodes_;
};

// One after the other on one stream; the next begins when the value of the one before is known, and not after a failure.
template <class... T>
class Zip final : public Node<std::tuple<Lifted<T>...>> {
 public:
  using Value = std::tuple<Lifted<T>...>;
  explicit Zip(NodePtr<T>... nodes) : nodes_(std::move(nodes)...) {}
  std::optional<Client> client() const override {
    return std::apply([](const auto&... node) { return first_client({node != nullptr ? node->client() : std::nullopt...}); }, nodes_);
  }
  void start(const Context& context, Receiver<Value> receiver) override {
    receiver_ = std::move(receiver);
    next<0>(context);
  }

 private:
  template <std::size_t I>
  void next(const Context& context) {
    if constexpr (I == sizeof...(T)) {
      end(std::apply([](auto&... v) { return Result<Value>(Value(std::move(*v)...)); }, values_));
    } else {
      auto& node = std::get<I>(nodes_);
      if (node == nullptr) return end(gone());
      if (context.run->dropped()) return end(dropped());
      using U = std::tuple_element_t<I, std::tuple<std::type_identity<T>...>>::type;
      node->start(context, [this, context](Result<U> value) {
        if (!value.has_value()) return end(value.error());
        if constexpr (std::is_void_v<U>) std::get<I>(values_).emplace();
        else std::get<I>(values_).emplace(std::move(*value));
        next<I + 1>(context);
      });
    }
  }
  void end(Result<Value> value) {
    Receiver<Value> receiver = std::move(receiver_);
    receiver(std::move(value));
  }

  std::tuple<NodePtr<T>...> nodes_;
  std::tuple<std::optional<Lifted<T>>...> values_;
  Receiver<Value> receiver_;
};

// A source that several operations have a part in: it runs once, with the first of them, and others wait for it by an event.
template <class T>
class Source {
 public:
  explicit Source(NodePtr<T> node) : node_(std::move(node)) {}
  std::optional<Client> client() const { return node_ != nullptr ? node_->client() : std::nullopt; }
  // then(the result, which stays here)
  void use(const std::shared_ptr<Source>& self, const Context& context, std::move_only_function<void(Result<T>&)> then) {
    {
      std::unique_lock lock(mutex_);
      if (!result_) {
        waiting_.emplace_back(context, std::move(then));
        if (std::exchange(begun_, true)) return;
        lock.unlock();
        run_ = std::make_shared<Run>(context.stream, context.run->policy(), nullptr);  // whoever else is dropped
        if (node_ == nullptr) return known(context.stream, gone());
        try {
          node_->start({run_, context.stream}, [self, stream = context.stream](Result<T> value) { self->known(stream, std::move(value)); });
        } catch (...) { known(context.stream, thrown()); }
        return;
      }
    }
    give(context, then);
  }

 private:
  using Waiting = std::pair<Context, std::move_only_function<void(Result<T>&)>>;
  void known(const Stream& stream, Result<T> value) {
    std::vector<Waiting> waiting;
    {
      const std::lock_guard lock(mutex_);
      event_ = stream.record();
      result_.emplace(std::move(value));
      waiting.swap(waiting_);
    }
    for (Waiting& w : waiting) give(w.first, w.second);
  }
  void give(const Context& context, std::move_only_function<void(Result<T>&)>& then) {
    context.run->join(*run_);
    if (auto ok = context.stream.wait(event_); !ok.has_value()) {
      Result<T> failed(ok.error());
      return then(failed);
    }
    then(*result_);
  }

  NodePtr<T> node_;
  std::shared_ptr<Run> run_;
  std::mutex mutex_;
  bool begun_ = false;
  std::optional<Result<T>> result_;
  Event event_;
  std::vector<Waiting> waiting_;
};

template <class T, class U, class F>
class Part final : public Node<U> {
 public:
  Part(std::shared_ptr<Source<T>> source, F take) : source_(std::move(source)), take_(std::move(take)) {}
  std::optional<Client> client() const override { return source_->client(); }
  void start(const Context& context, Receiver<U> receiver) override {
    source_->use(source_, context, [this, receiver = std::move(receiver)](Result<T>& value) mutable {
      if (!value.has_value()) return receiver(value.error());
      receiver(take_(*value));
    });
  }

 private:
  std::shared_ptr<Source<T>> source_;
  F take_;
};

// --- operations that are coroutines ---

template <class T>
class CoroutineNode final : public Node<T> {
 public:
  explicit CoroutineNode(std::coroutine_handle<Coroutine<T>> handle) : handle_(handle) {}
  ~CoroutineNode() override { handle_.destroy(); }
  void start(const Context& context, Receiver<T> receiver) override {
    Coroutine<T>& promise = handle_.promise();
    promise.context.emplace(context);
    promise.receiver = std::move(receiver);
    handle_.resume();
  }

 private:
  std::coroutine_handle<Coroutine<T>> handle_;
};

template <class T>
struct CoroutineBase {
  std::optional<Context> context;
  Receiver<T> receiver;
  std::optional<Result<T>> result;

  std::suspend_always initial_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { result.emplace(thrown()); }
  // Where a co_await goes on that nobody wants the end of.
  bool abandoned() const { return context->run->dropped(); }
  void abandon() {
    result.emplace(dropped());
    tell();
  }
  void tell() {
    Receiver<T> to = std::move(receiver);  // the frame may be gone before it returns
    Result<T> value = std::move(*result);
    context.reset();
    to(std::move(value));
  }

  template <class U>
  auto await_transform(Operation<U>&& operation) {
    return Await<U>(RunOf<U>::begin(std::move(operation).take(), context->stream, context->run->policy(), context->run));
  }
  template <class U>
  Await<U> await_transform(Operation<U>& operation) {
    return operation.operator co_await();
  }
  template <class A>
  decltype(auto) await_transform(A&& awaitable) {
    return std::forward<A>(awaitable);
  }
};

template <class T, class Base>
struct FinalTell {
  bool await_ready() noexcept { return false; }
  void await_suspend(std::coroutine_handle<Base> handle) noexcept { handle.promise().tell(); }
  void await_resume() noexcept {}
};

template <class T>
struct Coroutine : CoroutineBase<T> {
  Operation<T> get_return_object() {
    return Operation<T>(std::make_unique<CoroutineNode<T>>(std::coroutine_handle<Coroutine>::from_promise(*this)));
  }
  FinalTell<T, Coroutine> final_suspend() noexcept { return {}; }
  template <class V>
  requires std::constructible_from<Result<T>, V>
  void return_value(V&& value) {
    this->result.emplace(std::forward<V>(value));
  }
};
template <>
struct Coroutine<void> : CoroutineBase<void> {
  Operation<void> get_return_object() {
    return Operation<void>(std::make_unique<CoroutineNode<void>>(std::coroutine_handle<Coroutine>::from_promise(*this)));
  }
  FinalTell<void, Coroutine> final_suspend() noexcept { return {}; }
  void return_void() { this->result.emplace(); }
};

// --- buffers ---

// A buffer without its memory, which may go meanwhile.
class Borrowed {
 public:
  explicit Borrowed(const Binding& binding) : memory_(binding.memory), range_(binding.range), empty_(binding.memory == nullptr) {}
  // Null: gone.
  std::optional<Binding> lock() const {
    if (empty_) return Binding{nullptr, range_};
    Memory memory = memory_.lock();
    if (memory == nullptr) return std::nullopt;
    return Binding{std::move(memory), range_};
  }

 private:
  std::weak_ptr<Allocation> memory_;
  ByteRange range_;
  bool empty_;
};

template <class T>
class Read final : public Node<std::vector<T>> {
 public:
  Read(const Client& client, const Binding& from, std::uint64_t elements, bool owned) : client_(client), from_(from), elements_(elements) {
    if (owned) kept_ = from;
  }
  std::optional<Client> client() const override { return client_; }
  void start(const Context& context, Receiver<std::vector<T>> receiver) override {
    if (context.run->dropped()) return receiver(dropped());
    const auto from = from_.lock();
    if (!from) return receiver(borrowed_gone("the buffer to read", 0));
    using Raw = std::conditional_t<std::same_as<T, bool>, std::uint8_t, T>;
    struct Reading {
      std::vector<Raw> host;
      Receiver<std::vector<T>> receiver;
    };
    auto reading = std::make_shared<Reading>();
    reading->host.resize(elements_);
    reading->receiver = std::move(receiver);
    kept_.reset();
    const auto ok = read_later(context.stream, *from, reading->host.data(), [reading](Result<void> read) {
      if (!read.has_value()) return reading->receiver(read.error());
      if constexpr (std::same_as<T, bool>) reading->receiver(std::vector<bool>(reading->host.begin(), reading->host.end()));
      else reading->receiver(std::move(reading->host));
    });
    if (!ok.has_value()) reading->receiver(ok.error());
  }

 private:
  Client client_;
  Borrowed from_;
  std::uint64_t elements_;
  std::optional<Binding> kept_;
};

}  // namespace op::detail

template <class T>
template <class F>
auto Operation<T>::and_then(F f) && {
  using Next = op::detail::Applied<F, T>;
  static_assert(op::detail::is_operation<Next>,
                "kiln: the function of and_then() gives an Operation; map() is for one that gives a value.");
  using U = typename Next::value_type;
  return Operation<U>(std::make_unique<op::detail::Then<T, U, F>>(std::move(node_), std::move(f)));
}
template <class T>
template <class F>
auto Operation<T>::map(F f) && {
  using U = op::detail::Applied<F, T>;
  static_assert(!op::detail::is_operation<U>, "kiln: the function of map() gives a value; and_then() is for one that gives an Operation.");
  return Operation<U>(std::make_unique<op::detail::Then<T, U, F>>(std::move(node_), std::move(f)));
}

// What operations are made of; launches are in kiln/dsl/operation.h.
namespace op {

template <class T>
Operation<std::decay_t<T>> value(T&& v) {
  return detail::issue<std::decay_t<T>>(std::nullopt, [v = std::decay_t<T>(std::forward<T>(v))](const detail::Context&) mutable {
    return Result<std::decay_t<T>>(std::move(v));
  });
}
inline Operation<void> nothing() {
  return detail::issue<void>(std::nullopt, [](const detail::Context&) { return Result<void>(); });
}

// Calls f when the stream has come to it, as Stream::call does; what it gives is the value.
template <class F>
Operation<std::invoke_result_t<F&>> call(F f) {
  using T = std::invoke_result_t<F&>;
  return Operation<T>(std::make_unique<detail::Call<T, F>>(std::move(f)));
}

// The buffer's elements at this place in the stream, as Buffer::read gives them; no thread of the caller's waits.
template <class T, unsigned R>
Operation<std::vector<T>> read(const Buffer<T, R>& buffer) {
  return Operation<std::vector<T>>(std::make_unique<detail::Read<T>>(buffer.client(), buffer.binding(), buffer.size(), false));
}
template <class T, unsigned R>
Operation<std::vector<T>> read(Buffer<T, R>&& buffer) {
  return Operation<std::vector<T>>(std::make_unique<detail::Read<T>>(buffer.client(), buffer.binding(), buffer.size(), true));
}

// As Buffer::write. The elements are copied when it runs, and the buffer's size is tested then.
template <class T, unsigned R>
Operation<void> write(const Buffer<T, R>& to, std::vector<T> host) {
  return detail::issue<void>(
      to.client(),
      [to = detail::Borrowed(to.binding()), elements = to.size(), host = std::move(host)](const detail::Context& context) -> Result<void> {
        const auto binding = to.lock();
        if (!binding) return detail::borrowed_gone("the buffer to write", 0);
        context.run->wrote(*binding);
        if (auto ok = rt::buffer_size_matches(elements, host.size()); !ok.has_value()) {
          rt::claim(*binding, ok.error());
          return ok;
        }
        return rt::write_elements<T>(context.stream, *binding, host);
      });
}
template <class T, unsigned R>
Operation<Buffer<T, R>> write(Buffer<T, R>&& to, std::vector<T> host) {
  const Client client = to.client();
  return detail::issue<Buffer<T, R>>(client, [to = std::move(to), host = std::move(host)](const detail::Context& context) mutable {
    context.run->wrote(to.binding());
    const auto ok = to.write(context.stream, host);
    return ok.has_value() ? Result<Buffer<T, R>>(std::move(to)) : Result<Buffer<T, R>>(ok.error());
  });
}

// From device memory to device memory, as rt::copy: equal sizes, not overlapping.
template <class T, unsigned R, unsigned S>
Operation<void> copy(const Buffer<T, R>& to, const Buffer<T, S>& from) {
  return detail::issue<void>(
      to.client(),
      [to = detail::Borrowed(to.binding()), from = detail::Borrowed(from.binding())](const detail::Context& context) -> Result<void> {
        const auto target = to.lock(), source = from.lock();
        if (target && !source) rt::claim(*target, detail::borrowed_gone("the source of the copy", 0));
        if (!target || !source) return detail::borrowed_gone(target ? "the source of the copy" : "the target of the copy", 0);
        context.run->wrote(*target);
        return rt::copy(context.stream, *target, *source);
      });
}
template <class T, unsigned R, unsigned S>
Operation<std::tuple<Buffer<T, R>, Buffer<T, S>>> copy(Buffer<T, R>&& to, Buffer<T, S>&& from) {
  using Both = std::tuple<Buffer<T, R>, Buffer<T, S>>;
  const Client client = to.client();
  return detail::issue<Both>(client, [both = Both(std::move(to), std::move(from))](const detail::Context& context) mutable {
    context.run->wrote(std::get<0>(both).binding());
    const auto ok = rt::copy(context.stream, std::get<0>(both).binding(), std::get<1>(both).binding());
    return ok.has_value() ? Result<Both>(std::move(both)) : Result<Both>(ok.error());
  });
}

// All at a time: each on a stream of its own, as the policy has them; what comes next waits for all, on the device. The value is a tuple,
// in which std::monostate stands for nothing; the error is that of the first in order that failed. All are of one device.
template <class... T>
Operation<std::tuple<detail::Lifted<T>...>> when_all(Operation<T>... operations) {
  return Operation<std::tuple<detail::Lifted<T>...>>(std::make_unique<detail::All<T...>>(std::move(operations).take()...));
}
// One after the other on one stream: where one fails, those behind it do not begin.
template <class... T>
Operation<std::tuple<detail::Lifted<T>...>> zip(Operation<T>... operations) {
  return Operation<std::tuple<detail::Lifted<T>...>>(std::make_unique<detail::Zip<T...>>(std::move(operations).take()...));
}

// An operation whose value many others begin with. It runs once, with the first of them that runs.
template <class T>
requires(!std::is_void_v<T>)
class Shared {
 public:
  explicit Shared(Operation<T> operation) : source_(std::make_shared<detail::Source<T>>(std::move(operation).take())) {}
  // One that gives the value, as often as wanted.
  Operation<std::shared_ptr<const T>> get() const {
    using U = std::shared_ptr<const T>;
    auto take = [source = source_](T& value) { return Result<U>(U(source, &value)); };
    return Operation<U>(std::make_unique<detail::Part<T, U, decltype(take)>>(source_, std::move(take)));
  }

 private:
  std::shared_ptr<detail::Source<T>> source_;
};
template <class T>
requires(!std::is_void_v<T>)
Shared<T> share(Operation<T> operation) {
  return Shared<T>(std::move(operation));
}

// A tuple's operation as one for each element; they run it once.
template <class... T>
std::tuple<Operation<T>...> unzip(Operation<std::tuple<T...>> operation) {
  using Tuple = std::tuple<T...>;
  const auto source = std::make_shared<detail::Source<Tuple>>(std::move(operation).take());
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto part = [&]<std::size_t J>(std::integral_constant<std::size_t, J>) {
      using U = std::tuple_element_t<J, Tuple>;
      auto take = [](Tuple& all) { return Result<U>(std::move(std::get<J>(all))); };
      return Operation<U>(std::make_unique<detail::Part<Tuple, U, decltype(take)>>(source, take));
    };
    return std::tuple<Operation<T>...>(part(std::integral_constant<std::size_t, I>())...);
  }(std::index_sequence_for<T...>());
}

}  // namespace op
}  // namespace kiln
