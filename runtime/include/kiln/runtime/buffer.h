// Buffer<T, R>: typed device memory with R extents, dense and row-major (others: strided.h, layout.h). A value: copying shares the memory
// (as a view does). Different buffers may be used by different threads; one Buffer object is for one thread at a time, the memory behind it
// for all.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/runtime/client.h"
#include "kiln/runtime/scalar.h"

namespace kiln {

template <class T, unsigned R = 1>
requires IsElement<T>
class Buffer {
 public:
  static constexpr unsigned rank = R;
  using value_type = T;
  using Extents = std::array<std::uint64_t, R>;

  // Moving copies: a buffer that was moved from is still one, so that no use of it can crash.
  Buffer(const Buffer&) = default;
  Buffer& operator=(const Buffer&) = default;

  // On the default client. Throws kiln::Exception. O(bytes).
  explicit Buffer(const std::vector<T>& host)
  requires(R == 1)
      : Buffer(from_host(Client::default_client(), host).value()) {}
  Buffer(const std::vector<T>& host, Extents extents) : Buffer(from_host(Client::default_client(), host, extents).value()) {}

  static Result<Buffer> from_host(const Client& client, const std::vector<T>& host)
  requires(R == 1) {
    return from_host(client, host, Extents{host.size()});
  }
  // The number of elements must be the product of the extents (rule BufferSize). Further errors of all that make a buffer: a negative
  // extent (ExtentOutOfRange), BufferTooBig, OutOfMemory. An extent of 0 makes an empty buffer without memory.
  static Result<Buffer> from_host(const Client& client, const std::vector<T>& host, Extents extents);
  template <std::integral... I>
  requires(sizeof...(I) == R)
  static Result<Buffer> zeroed(const Client& client, I... extents);
  template <std::integral... I>
  requires(sizeof...(I) == R)
  static Result<Buffer> uninitialised(const Client& client, I... extents);

  // Elements that lie in `memory` from byte `first` on: of memory that was adopted (kiln/runtime/interop.h), or of another buffer's, which
  // both share then. Nothing is copied or set. Errors: BindingRange (they end beyond the memory), ElementAlignment (the first one's address
  // is no multiple of its size), ForeignHandle (another device's memory), BufferTooBig. O(1).
  static Result<Buffer> over(const Client& client, Memory memory, Extents extents, std::uint64_t first = 0);

  std::uint64_t size() const { return elements_; }
  std::uint64_t extent(unsigned d) const { return extents_[d]; }
  const Extents& extents() const { return extents_; }
  const Client& client() const { return client_; }
  Binding binding() const { return {memory_, {offset_, offset_ + elements_ * sizeof(T)}}; }
  // Whether this handle is the only one of its memory: no other buffer, view, graph, pending operation or export has it, so that to change
  // it changes nobody else's data.
  bool can_mutate() const { return memory_ == nullptr || memory_.use_count() == 1; }

  // Waits for the work before it and refuses claimed bytes; the error names the root cause.
  Result<std::vector<T>> read() const { return read(client_.default_stream()); }
  Result<std::vector<T>> read(const Stream& stream) const;
  Result<void> write(const std::vector<T>& host) { return write(client_.default_stream(), host); }
  Result<void> write(const Stream& stream,
                     const std::vector<T>& host);  // host.size() must be size(), rule BufferSize; host may go away on return

  // The same memory with other extents of the same product; throws kiln::Exception when it is another.
  template <std::integral... I>
  Buffer<T, sizeof...(I)> view(I... extents) const;
  // count elements from `first` on (rank 1); throws kiln::Exception when out of range.
  Buffer<T, 1> slice(std::uint64_t first, std::uint64_t count) const;

  // As a launch argument.
  LaunchArg arg() const {
    LaunchArg a;
    a.is_buffer = true;
    a.binding = binding();
    a.type = ir_type<T>;
    a.rank = R;
    for (unsigned d = 0; d < R; ++d) a.extents[d] = extents_[d];
    return a;
  }

 private:
  template <class U, unsigned S>
  requires IsElement<U>
  friend class Buffer;
  Buffer(const Client& client, Memory memory, std::uint64_t offset, std::uint64_t elements, Extents extents)
      : client_(client), memory_(std::move(memory)), offset_(offset), elements_(elements), extents_(extents) {}

  static Result<Buffer> allocated(const Client& client, Extents extents);

  Client client_;
  Memory memory_;
  std::uint64_t offset_ = 0, elements_ = 0;
  Extents extents_{};
};

namespace rt {

// Checks shared by all buffers, out of line. `extents` has `rank` numbers.
Result<std::uint64_t> buffer_elements(const std::uint64_t* extents, unsigned rank, std::uint64_t element_bytes);  // product; its bytes fit
Result<void> buffer_size_matches(std::uint64_t elements, std::uint64_t given);
// `bytes` bytes of elements of that size lie in the memory from byte `first` on.
Result<void> buffer_fits(const Client& client, const Memory& memory, std::uint64_t first, std::uint64_t bytes, std::uint64_t element_bytes);
void require_view(std::uint64_t elements, std::uint64_t wanted);                       // throws kiln::Exception
void require_slice(std::uint64_t elements, std::uint64_t first, std::uint64_t count);  // throws kiln::Exception
Error negative_extent(std::int64_t extent);
// An operation that was to be done on the stream failed before the runtime was asked for it: a graph that is recorded there would lack it,
// so that there is none, and what a profile window measures is not what was to be measured.
Error not_issued(const Stream& stream, Error why);

// Host integers as extents.
template <std::integral... I>
Result<std::array<std::uint64_t, sizeof...(I)>> to_extents(I... extents) {
  std::optional<Error> error;
  const auto one = [&](auto e) {
    if (!std::in_range<std::uint64_t>(e) && !error) error = negative_extent(static_cast<std::int64_t>(e));
    return static_cast<std::uint64_t>(e);
  };
  const std::array<std::uint64_t, sizeof...(I)> all{one(extents)...};
  if (error) return *error;
  return all;
}

// What `write(const void*)` makes of the elements, and what `read(void*)` puts there. A bool is a byte on the device, and std::vector<bool>
// has no bytes to copy. Where the host has no memory for the elements that is the error, and neither is called.
template <class T, class Write>
Result<void> from_elements(const std::vector<T>& host, Write&& write) {
  if constexpr (std::same_as<T, bool>) {
    std::vector<std::uint8_t> bytes;
    try {
      bytes.assign(host.begin(), host.end());
    } catch (const std::exception&) { return no_host_memory(); }
    return write(bytes.data());
  } else {
    return write(host.data());
  }
}
template <class T, class Read>
Result<std::vector<T>> to_elements(std::uint64_t elements, Read&& read) {
  using Raw = std::conditional_t<std::same_as<T, bool>, std::uint8_t, T>;
  std::vector<Raw> host;
  std::vector<T> bits;
  try {
    host.resize(elements);
    if constexpr (std::same_as<T, bool>) bits.resize(elements);
  } catch (const std::exception&) { return no_host_memory(); }
  if (auto ok = read(host.data()); !ok.has_value()) return ok.error();
  if constexpr (std::same_as<T, bool>) {
    std::copy(host.begin(), host.end(), bits.begin());
    return bits;
  } else {
    return host;
  }
}
template <class T>
Result<void> write_elements(const Stream& stream, const Binding& to, const std::vector<T>& host) {
  bool issued = false;
  const Result<void> result = from_elements(host, [&](const void* from) {
    issued = true;
    return write(stream, to, from);
  });
  if (issued || result.has_value()) return result;
  claim(to, result.error());
  return not_issued(stream, result.error());
}
template <class T>
Result<std::vector<T>> read_elements(const Stream& stream, const Binding& from, std::uint64_t elements) {
  return to_elements<T>(elements, [&](void* to) { return read(stream, from, to); });
}

}  // namespace rt

template <class T, unsigned R>
requires IsElement<T>
Result<Buffer<T, R>> Buffer<T, R>::allocated(const Client& client, Extents extents) {
  const auto elements = rt::buffer_elements(extents.data(), R, sizeof(T));
  if (!elements.has_value()) return elements.error();
  auto memory = rt::allocate(client, *elements * sizeof(T));
  if (!memory.has_value()) return memory.error();
  return Buffer(client, std::move(*memory), 0, *elements, extents);
}

template <class T, unsigned R>
requires IsElement<T>
Result<Buffer<T, R>> Buffer<T, R>::from_host(const Client& client, const std::vector<T>& host, Extents extents) {
  const auto elements = rt::buffer_elements(extents.data(), R, sizeof(T));
  if (!elements.has_value()) return elements.error();
  if (auto ok = rt::buffer_size_matches(*elements, host.size()); !ok.has_value()) return ok.error();
  auto buffer = allocated(client, extents);
  if (!buffer.has_value()) return buffer;
  if (auto ok = buffer->write(host); !ok.has_value()) return ok.error();
  return buffer;
}

template <class T, unsigned R>
requires IsElement<T>
template <std::integral... I>
requires(sizeof...(I) == R)
Result<Buffer<T, R>> Buffer<T, R>::zeroed(const Client& client, I... extents) {
  auto buffer = uninitialised(client, extents...);
  if (!buffer.has_value()) return buffer;
  if (auto ok = rt::fill_zero(client.default_stream(), buffer->binding()); !ok.has_value()) return ok.error();
  return buffer;
}

template <class T, unsigned R>
requires IsElement<T>
template <std::integral... I>
requires(sizeof...(I) == R)
Result<Buffer<T, R>> Buffer<T, R>::uninitialised(const Client& client, I... extents) {
  const auto all = rt::to_extents(extents...);
  if (!all.has_value()) return all.error();
  return allocated(client, *all);
}

template <class T, unsigned R>
requires IsElement<T>
Result<Buffer<T, R>> Buffer<T, R>::over(const Client& client, Memory memory, Extents extents, std::uint64_t first) {
  const auto elements = rt::buffer_elements(extents.data(), R, sizeof(T));
  if (!elements.has_value()) return elements.error();
  if (auto ok = rt::buffer_fits(client, memory, first, *elements * sizeof(T), sizeof(T)); !ok.has_value()) return ok.error();
  if (*elements == 0) return Buffer(client, Memory(), 0, 0, extents);
  return Buffer(client, std::move(memory), first, *elements, extents);
}

template <class T, unsigned R>
requires IsElement<T>
Result<std::vector<T>> Buffer<T, R>::read(const Stream& stream) const {
  return rt::read_elements<T>(stream, binding(), elements_);
}

template <class T, unsigned R>
requires IsElement<T>
Result<void> Buffer<T, R>::write(const Stream& stream, const std::vector<T>& host) {
  if (auto ok = rt::buffer_size_matches(elements_, host.size()); !ok.has_value()) {
    rt::claim(binding(), ok.error());
    return rt::not_issued(stream, ok.error());
  }
  return rt::write_elements<T>(stream, binding(), host);
}

template <class T, unsigned R>
requires IsElement<T>
template <std::integral... I>
Buffer<T, sizeof...(I)> Buffer<T, R>::view(I... extents) const {
  const auto all = rt::to_extents(extents...).value();
  rt::require_view(elements_, rt::buffer_elements(all.data(), sizeof...(I), sizeof(T)).value());
  return Buffer<T, sizeof...(I)>(client_, memory_, offset_, elements_, all);
}

template <class T, unsigned R>
requires IsElement<T>
Buffer<T, 1> Buffer<T, R>::slice(std::uint64_t first, std::uint64_t count) const {
  static_assert(R == 1, "slice() is for buffers of rank 1; view(n) gives one");
  rt::require_slice(elements_, first, count);
  return Buffer<T, 1>(client_, count == 0 ? Memory() : memory_, count == 0 ? 0 : offset_ + first * sizeof(T), count, {count});
}

}  // namespace kiln
