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
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/runtime/operation_parts.h"

namespace kiln {

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
Operation<std::invoke_result_t<F&>> call(F f, std::source_location where = std::source_location::current()) {
  using T = std::invoke_result_t<F&>;
  return Operation<T>(std::make_unique<detail::Call<T, F>>(std::move(f), where));
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
        if (!binding) return rt::not_issued(context.stream, detail::borrowed_gone("the buffer to write", 0));
        context.run->wrote(*binding);
        if (auto ok = rt::buffer_size_matches(elements, host.size()); !ok.has_value()) {
          rt::claim(*binding, ok.error());
          return rt::not_issued(context.stream, ok.error());
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
        if (!target || !source)
          return rt::not_issued(context.stream, detail::borrowed_gone(target ? "the source of the copy" : "the target of the copy", 0));
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
  // Moving copies: one that was moved from still has the value.
  Shared(const Shared&) = default;
  Shared& operator=(const Shared&) = default;
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
