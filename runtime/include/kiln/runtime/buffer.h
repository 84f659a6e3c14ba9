// Buffer<T, R>: typed device memory with R extents, dense and row-major. A value: copying shares the memory (as a view does).
#pragma once
#include <array>
#include <cstdint>
#include <span>
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

  // On the default client. Throws kiln::Exception.
  explicit Buffer(const std::vector<T>& host) requires(R == 1) : Buffer(from_host(Client::default_client(), host).value()) {}
  Buffer(const std::vector<T>& host, Extents extents) : Buffer(from_host(Client::default_client(), host, extents).value()) {}

  static Result<Buffer> from_host(const Client& client, const std::vector<T>& host) requires(R == 1) {
    return from_host(client, host, Extents{host.size()});
  }
  // The number of elements must be the product of the extents.
  static Result<Buffer> from_host(const Client& client, const std::vector<T>& host, Extents extents);
  template <std::integral... I>
    requires(sizeof...(I) == R)
  static Result<Buffer> zeroed(const Client& client, I... extents);
  template <std::integral... I>
    requires(sizeof...(I) == R)
  static Result<Buffer> uninitialised(const Client& client, I... extents);

  std::uint64_t size() const { return elements_; }
  std::uint64_t extent(unsigned d) const { return extents_[d]; }
  const Extents& extents() const { return extents_; }
  const Client& client() const { return client_; }
  Binding binding() const { return {memory_, {offset_, offset_ + elements_ * sizeof(T)}}; }

  // Waits for the work before it and refuses claimed bytes; the error names the root cause.
  Result<std::vector<T>> read() const { return read(client_.default_stream()); }
  Result<std::vector<T>> read(const Stream& stream) const;
  Result<void> write(const std::vector<T>& host) { return write(client_.default_stream(), host); }
  Result<void> write(const Stream& stream, const std::vector<T>& host);  // host.size() must be size()

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
  template <class, unsigned>
    requires IsElement<T>
  friend class Buffer;
  Client client_;
  Memory memory_;
  std::uint64_t offset_ = 0, elements_ = 0;
  Extents extents_{};
};

}  // namespace kiln
