// The parts that operations are made of: what enqueues, what waits for a value, several at a time or in turn, coroutines. For
// kiln/runtime/operation.h.
#pragma once
#include "kiln/runtime/operation_run.h"

namespace kiln {

namespace op::detail {

// Enqueues and knows its value then.
template <class T, class F>
class Issue final : public Node<T> {
 public:
  Issue(std::optional<Client> client, F f) : client_(std::move(client)), f_(std::move(f)) {}
  void begin(const Context& context, Receiver<T> receiver) override { receiver(once(context)); }
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
  Call(F f, const std::source_location& where) : f_(std::move(f)), where_(where) {}
  void begin(const Context& context, Receiver<T> receiver) override {
    const auto shared = std::make_shared<Receiver<T>>(std::move(receiver));
    auto in_turn = [this, context, shared](const Error* lost) {
      context.run->go_on([&] {
        auto value = std::make_shared<Result<T>>(lost != nullptr ? Result<T>(*lost) : once(context));
        go_on_elsewhere(context.stream, [shared, value, run = context.run] { run->go_on([&] { (*shared)(std::move(*value)); }); });
      });
    };
    const auto ok = call_later(context.stream, std::move(in_turn), where_);
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
  std::source_location where_;
};

template <class T, class U, class F>
class Then final : public Node<U> {
 public:
  Then(NodePtr<T> first, F f) : first_(std::move(first)), f_(std::move(f)) {}
  std::optional<Client> client() const override { return first_ != nullptr ? first_->client() : std::nullopt; }
  void begin(const Context& context, Receiver<U> receiver) override {
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
  void begin(const Context& context, Receiver<Value> receiver) override {
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
    node->start({context.run, stream}, end);
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
  void begin(const Context& context, Receiver<Value> receiver) override {
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
        try {
          run_ = std::make_shared<OwnRun>(self, context);
        } catch (...) { return known(context.stream, thrown()); }
        if (node_ == nullptr) return known(context.stream, gone());
        node_->start({run_, context.stream}, [self, stream = context.stream](Result<T> value) { self->known(stream, std::move(value)); });
        return;
      }
    }
    give(context, then);
  }

 private:
  using Waiting = std::pair<Context, std::move_only_function<void(Result<T>&)>>;
  // Whoever else is dropped: it goes on for the others.
  class OwnRun final : public Run {
   public:
    OwnRun(const std::shared_ptr<Source>& source, const Context& context)
        : Run(context.stream, context.run->policy(), nullptr), source_(source), stream_(context.stream) {}
    void fail(Error why) noexcept override {
      if (const auto source = source_.lock()) source->known(stream_, std::move(why));
    }

   private:
    const std::weak_ptr<Source> source_;
    const Stream stream_;
  };
  void known(const Stream& stream, Result<T> value) noexcept {
    std::vector<Waiting> waiting;
    {
      const std::lock_guard lock(mutex_);
      if (result_) return;  // it had failed
      event_ = stream.record();
      try {
        result_.emplace(std::move(value));
      } catch (...) { result_.emplace(thrown()); }
      waiting.swap(waiting_);
    }
    for (Waiting& w : waiting) w.first.run->go_on([&] { give(w.first, w.second); });
  }
  void give(const Context& context, std::move_only_function<void(Result<T>&)>& then) {
    if (run_ != nullptr) context.run->join(*run_);
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
  void begin(const Context& context, Receiver<U> receiver) override {
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
  void begin(const Context& context, Receiver<T> receiver) override {
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
    const std::shared_ptr<Run> run = std::move(context->run);
    context.reset();
    run->go_on([&] { to(std::move(value)); });
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
  void begin(const Context& context, Receiver<std::vector<T>> receiver) override {
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
    const auto ok = read_later(context.stream, *from, reading->host.data(), [reading, run = context.run](Result<void> read) {
      run->go_on([&] {
        if (!read.has_value()) return reading->receiver(read.error());
        if constexpr (std::same_as<T, bool>) reading->receiver(std::vector<bool>(reading->host.begin(), reading->host.end()));
        else reading->receiver(std::move(reading->host));
      });
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

}  // namespace kiln
