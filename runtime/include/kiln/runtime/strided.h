// StridedView<T, R>: elements of a memory that lie a stride apart in each dimension: rows of a pitched buffer, every second column, two
// dimensions exchanged. For parameters In<T, R, Strided> and their like, for reads, writes and copies.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "kiln/runtime/buffer.h"

namespace kiln {

namespace rt {

// A strided view without its type. `binding` is the hull: it begins with the first element and ends with the last one.
struct StridedBinding {
  Binding binding;
  std::array<std::uint64_t, ir::kMaxRank> extents{}, strides{};  // in elements
  std::uint8_t rank = 1;
  std::uint32_t element_bytes = 1;
};
// Host memory is packed, row-major. Each touches the bytes of the elements and no others: what lies between them is neither read, nor
// written, nor looked at for failures. The cost grows with the pieces that are contiguous on both sides.
Result<void> read_strided(const Stream& stream, const StridedBinding& from, void* to);
Result<void> write_strided(const Stream& stream, const StridedBinding& to, const void* from);
// On one device; equal extents, not overlapping.
Result<void> copy_strided(const Stream& stream, const StridedBinding& to, const StridedBinding& from);

// The bytes of the elements count as never written, because of `why`.
void claim_strided(const StridedBinding& to, const Error& why) noexcept;

// Checks shared by all views. The first two throw kiln::Exception.
void require_dimensions(unsigned rank, unsigned a, unsigned b);
void require_box(unsigned d, std::uint64_t extent, std::uint64_t first, std::uint64_t count, std::uint64_t step);
void require_broadcast(unsigned d, std::uint64_t extent);  // throws kiln::Exception
// How many elements the hull has; 0 where there is none. Errors: UnsupportedStrides (a negative one), BufferTooBig.
Result<std::uint64_t> strided_hull(const std::uint64_t* extents, const std::int64_t* strides, unsigned rank, std::uint64_t element_bytes);

}  // namespace rt

template <class T, unsigned R>
class StridedView {
  static_assert(R <= ir::kMaxRank, "kiln: no more dimensions than kernels have.");

 public:
  static constexpr unsigned rank = R;
  using value_type = T;
  using Extents = std::array<std::uint64_t, R>;

  // Moving copies: a view that was moved from is still one.
  StridedView(const StridedView&) = default;
  StridedView& operator=(const StridedView&) = default;
  // A dense buffer seen so.
  StridedView(const Buffer<T, R>& buffer) : client_(buffer.client()), binding_(buffer.binding()), extents_(buffer.extents()) {
    std::uint64_t stride = 1;
    for (unsigned d = R; d-- > 0;) {
      strides_[d] = stride;
      stride *= extents_[d];
    }
  }
  // Elements of `memory`, the first of them at byte `first`; strides in elements. A stride of 0 names one element many times: for inputs
  // only. Errors: UnsupportedStrides (a negative stride), else as Buffer::over.
  static Result<StridedView> over(const Client& client, Memory memory, Extents extents, std::array<std::int64_t, R> strides,
                                  std::uint64_t first = 0);

  std::uint64_t size() const {
    std::uint64_t n = 1;
    for (const std::uint64_t e : extents_) n *= e;
    return n;
  }
  std::uint64_t extent(unsigned d) const { return extents_[d]; }
  std::uint64_t stride(unsigned d) const { return strides_[d]; }  // in elements
  const Extents& extents() const { return extents_; }
  const Extents& strides() const { return strides_; }
  const Client& client() const { return client_; }
  bool can_mutate() const { return binding_.memory == nullptr || binding_.memory.use_count() == 1; }  // as Buffer's
  Binding binding() const { return binding_; }  // from the first element to the last one, with what lies between them

  // Two dimensions exchanged. As the following, throws kiln::Exception where there is no such dimension or no such element.
  StridedView transposed(unsigned a = 0, unsigned b = 1) const {
    rt::require_dimensions(R, a, b);
    StridedView view = *this;
    std::swap(view.extents_[a], view.extents_[b]);
    std::swap(view.strides_[a], view.strides_[b]);
    return view;
  }
  // `count` elements of dimension d, from `first` on, each `step` behind the one before.
  StridedView range(unsigned d, std::uint64_t first, std::uint64_t count, std::uint64_t step = 1) const {
    rt::require_dimensions(R, d, 0);
    rt::require_box(d, extents_[d], first, count, step);
    StridedView view = *this;
    view.extents_[d] = count;
    if (count > 1) view.strides_[d] *= step;
    return view.moved(count == 0 ? 0 : first * strides_[d]);
  }
  // `extents` elements from `first` on in all dimensions.
  StridedView box(const Extents& first, const Extents& extents) const {
    StridedView view = *this;
    for (unsigned d = 0; d < R; ++d) view = view.range(d, first[d], extents[d]);
    return view;
  }
  // A dimension of extent 1 seen as `count` times the same elements. For inputs only.
  StridedView broadcast(unsigned d, std::uint64_t count) const {
    rt::require_dimensions(R, d, 0);
    rt::require_broadcast(d, extents_[d]);
    StridedView view = *this;
    view.extents_[d] = count;
    view.strides_[d] = 0;
    return view.moved(0);
  }

  // Row-major, without what lies between. Waits for the work before it, and refuses claimed bytes, those of its elements only.
  Result<std::vector<T>> read() const { return read(client_.default_stream()); }
  Result<std::vector<T>> read(const Stream& stream) const;
  // host.size() must be size() (BufferSize), and no element may be named twice (UnsupportedStrides). `host` may go away on return.
  Result<void> write(const std::vector<T>& host) { return write(client_.default_stream(), host); }
  Result<void> write(const Stream& stream, const std::vector<T>& host);
  // From a view of equal extents on the same device, whatever its strides. Errors: CopySize, CopyOverlap, UnsupportedStrides,
  // ForeignHandle.
  Result<void> copy_from(const StridedView& from) { return copy_from(client_.default_stream(), from); }
  Result<void> copy_from(const Stream& stream, const StridedView& from) { return rt::copy_strided(stream, untyped(), from.untyped()); }

  // As a launch argument.
  LaunchArg arg() const {
    LaunchArg a;
    a.is_buffer = true;
    a.binding = binding_;
    a.type = ir_type<T>;
    a.rank = R;
    for (unsigned d = 0; d < R; ++d) {
      a.extents[d] = extents_[d];
      a.strides[d] = strides_[d];
    }
    return a;
  }
  rt::StridedBinding untyped() const {
    rt::StridedBinding all{.binding = binding_, .extents = {}, .strides = {}, .rank = R, .element_bytes = sizeof(T)};
    for (unsigned d = 0; d < R; ++d) {
      all.extents[d] = extents_[d];
      all.strides[d] = strides_[d];
    }
    return all;
  }

 private:
  StridedView(const Client& client, Binding binding, const Extents& extents, const Extents& strides)
      : client_(client), binding_(std::move(binding)), extents_(extents), strides_(strides) {}
  // The hull of what is left, `elements` further on.
  StridedView moved(std::uint64_t elements) const {
    StridedView view = *this;
    std::uint64_t hull = 1;
    for (unsigned d = 0; d < R; ++d) {
      if (extents_[d] == 0) {
        view.binding_ = {};
        return view;
      }
      hull += (extents_[d] - 1) * strides_[d];
    }
    view.binding_.range.begin += elements * sizeof(T);
    view.binding_.range.end = view.binding_.range.begin + hull * sizeof(T);
    return view;
  }

  Client client_;
  Binding binding_;
  Extents extents_{}, strides_{};
};

template <class T, unsigned R>
Result<StridedView<T, R>> StridedView<T, R>::over(const Client& client, Memory memory, Extents extents, std::array<std::int64_t, R> strides,
                                                  std::uint64_t first) {
  const auto hull = rt::strided_hull(extents.data(), strides.data(), R, sizeof(T));
  if (!hull.has_value()) return hull.error();
  Extents steps{};
  for (unsigned d = 0; d < R; ++d) steps[d] = static_cast<std::uint64_t>(strides[d]);
  if (*hull == 0) return StridedView(client, {}, extents, steps);
  if (auto ok = rt::buffer_fits(client, memory, first, *hull * sizeof(T), sizeof(T)); !ok.has_value()) return ok.error();
  return StridedView(client, {std::move(memory), {first, first + *hull * sizeof(T)}}, extents, steps);
}

template <class T, unsigned R>
Result<std::vector<T>> StridedView<T, R>::read(const Stream& stream) const {
  const auto elements = rt::buffer_elements(extents_.data(), R, sizeof(T));  // a broadcast one may have any number
  if (!elements.has_value()) return elements.error();
  return rt::to_elements<T>(*elements, [&](void* to) { return rt::read_strided(stream, untyped(), to); });
}

template <class T, unsigned R>
Result<void> StridedView<T, R>::write(const Stream& stream, const std::vector<T>& host) {
  bool issued = false;
  Result<void> result = rt::buffer_size_matches(size(), host.size());
  if (result.has_value()) {
    result = rt::from_elements(host, [&](const void* from) {
      issued = true;
      return rt::write_strided(stream, untyped(), from);
    });
  }
  if (issued || result.has_value()) return result;
  rt::claim_strided(untyped(), result.error());
  return rt::not_issued(stream, result.error());
}

}  // namespace kiln
