// How the rows of a buffer lie in memory: packed, or each at an address that the device likes. PitchedBuffer<T, R> is a buffer with the
// second layout.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include "kiln/runtime/strided.h"

namespace kiln {

enum class LayoutPolicy : std::uint8_t {
  Contiguous,  // packed, row-major
  Optimised,   // of rank 2 and more: rows begin at multiples of the device's alignment (CUDA 512 bytes, CPU 64) where they would not anyway
};

template <unsigned R>
struct MemoryLayout {
  std::uint64_t elements = 0;  // of the memory, padding with them
  std::array<std::uint64_t, R> strides{};
};

namespace rt {
std::uint64_t row_alignment(const Client& client);
// The memory's elements, and its strides in `strides`. Errors: BufferTooBig.
Result<std::uint64_t> layout(LayoutPolicy policy, std::uint64_t alignment, std::uint64_t element_bytes, unsigned rank,
                             const std::uint64_t* extents, std::uint64_t* strides);
}  // namespace rt

// What a policy makes of extents on a device.
template <class T, std::size_t R>
Result<MemoryLayout<R>> memory_layout(const Client& client, LayoutPolicy policy, const std::array<std::uint64_t, R>& extents) {
  MemoryLayout<R> made;
  const auto elements = rt::layout(policy, rt::row_alignment(client), sizeof(T), R, extents.data(), made.strides.data());
  if (!elements.has_value()) return elements.error();
  made.elements = *elements;
  return made;
}

// Device memory whose rows may be padded. A value, as a Buffer is. A kernel takes it as a Strided parameter; view() gives all that views
// have. Reads strip the padding, writes leave it alone.
template <class T, unsigned R>
requires IsElement<T>
class PitchedBuffer {
 public:
  static constexpr unsigned rank = R;
  using value_type = T;
  using Extents = std::array<std::uint64_t, R>;

  // Errors: as those of Buffer.
  static Result<PitchedBuffer> from_host(const Client& client, const std::vector<T>& host, Extents extents,
                                         LayoutPolicy policy = LayoutPolicy::Optimised) {
    const auto elements = rt::buffer_elements(extents.data(), R, sizeof(T));
    if (!elements.has_value()) return elements.error();
    if (auto ok = rt::buffer_size_matches(*elements, host.size()); !ok.has_value()) return ok.error();
    auto made = uninitialised(client, extents, policy);
    if (!made.has_value()) return made;
    if (auto ok = made->write(host); !ok.has_value()) return ok.error();
    return made;
  }
  static Result<PitchedBuffer> zeroed(const Client& client, Extents extents, LayoutPolicy policy = LayoutPolicy::Optimised) {
    auto made = uninitialised(client, extents, policy);
    if (!made.has_value()) return made;
    if (auto ok = rt::fill_zero(client.default_stream(), made->binding()); !ok.has_value()) return ok.error();
    return made;
  }
  static Result<PitchedBuffer> uninitialised(const Client& client, Extents extents, LayoutPolicy policy = LayoutPolicy::Optimised) {
    const auto made = memory_layout<T, R>(client, policy, extents);
    if (!made.has_value()) return made.error();
    auto memory = rt::allocate(client, made->elements * sizeof(T));
    if (!memory.has_value()) return memory.error();
    std::array<std::int64_t, R> strides{};
    for (unsigned d = 0; d < R; ++d) strides[d] = static_cast<std::int64_t>(made->strides[d]);
    auto view = StridedView<T, R>::over(client, std::move(*memory), extents, strides);
    if (!view.has_value()) return view.error();
    return PitchedBuffer(std::move(*view), made->elements);
  }

  std::uint64_t size() const { return view_.size(); }
  std::uint64_t extent(unsigned d) const { return view_.extent(d); }
  const Extents& extents() const { return view_.extents(); }
  const Extents& strides() const { return view_.strides(); }                                                  // in elements
  std::uint64_t pitch_bytes() const { return R < 2 ? size() * sizeof(T) : view_.stride(R - 2) * sizeof(T); }  // from one row to the next
  const Client& client() const { return view_.client(); }
  Binding binding() const {  // all of the memory, padding with it
    Binding all = view_.binding();
    if (all.memory != nullptr) all.range = {0, elements_ * sizeof(T)};
    return all;
  }
  bool can_mutate() const { return view_.can_mutate(); }

  const StridedView<T, R>& view() const { return view_; }
  operator const StridedView<T, R>&() const { return view_; }

  Result<std::vector<T>> read() const { return view_.read(); }
  Result<std::vector<T>> read(const Stream& stream) const { return view_.read(stream); }
  Result<void> write(const std::vector<T>& host) { return view_.write(host); }
  Result<void> write(const Stream& stream, const std::vector<T>& host) { return view_.write(stream, host); }
  // From elements of any layout on the same device.
  Result<void> copy_from(const StridedView<T, R>& from) { return view_.copy_from(from); }
  Result<void> copy_from(const Stream& stream, const StridedView<T, R>& from) { return view_.copy_from(stream, from); }

 private:
  PitchedBuffer(StridedView<T, R> view, std::uint64_t elements) : view_(std::move(view)), elements_(elements) {}

  StridedView<T, R> view_;
  std::uint64_t elements_ = 0;
};

}  // namespace kiln
