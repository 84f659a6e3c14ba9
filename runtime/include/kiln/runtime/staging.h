// Host memory that the device copies by itself: HostBuffer<T>, page-locked where the device has that, so that uploads and downloads need no
// copy in between and nobody waits for them. HostView<T>: the device's own bytes, where the host reaches them.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "kiln/runtime/buffer.h"
#include "kiln/runtime/strided.h"

namespace kiln {

namespace rt {

struct HostMemory;
Result<std::shared_ptr<HostMemory>> pin(const Client& client, std::uint64_t bytes);
std::byte* host_bytes(const HostMemory& memory);
// Ways to the bytes: both wait for what the device writes there, the second for what it reads there, too.
Result<void> settle_reads(HostMemory& memory);
Result<void> settle_writes(HostMemory& memory);
bool host_memory_ready(const HostMemory& memory);
Result<void> upload(const Stream& stream, const Binding& to, HostMemory& from, std::uint64_t first);
Result<void> download(const Stream& stream, const Binding& from, HostMemory& to, std::uint64_t first);
// The same of strided views, which are packed and row-major in the host memory.
Result<void> upload_strided(const Stream& stream, const StridedBinding& to, HostMemory& from, std::uint64_t first);
Result<void> download_strided(const Stream& stream, const StridedBinding& from, HostMemory& to, std::uint64_t first);
Result<void> host_range(std::uint64_t first, std::uint64_t count, std::uint64_t size);

// An open view of the host's; nothing may write the memory meanwhile.
class OpenView {
 public:
  static Result<OpenView> open(const Stream& stream, const Binding& from);
  OpenView() = default;
  OpenView(OpenView&& o) noexcept : memory_(std::move(o.memory_)), bytes_(std::exchange(o.bytes_, nullptr)) {}
  OpenView& operator=(OpenView&& o) noexcept {
    std::swap(memory_, o.memory_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~OpenView();
  const std::byte* bytes() const { return bytes_; }

 private:
  Memory memory_;
  const std::byte* bytes_ = nullptr;
};

}  // namespace rt

// `size()` elements in host memory of a client, zero at first. A value: a copy is another name of the same memory. For one thread at a
// time. What the device copies from it or to it is ordered by itself: read() and write() wait for just that.
template <class T>
requires IsElement<T>
class HostBuffer {
 public:
  using value_type = T;

  // Moving copies: one that was moved from is still the same memory.
  HostBuffer(const HostBuffer&) = default;
  HostBuffer& operator=(const HostBuffer&) = default;

  // Errors: OutOfMemory, BufferTooBig.
  static Result<HostBuffer> make(const Client& client, std::uint64_t size) {
    const auto elements = rt::buffer_elements(&size, 1, sizeof(T));
    if (!elements.has_value()) return elements.error();
    auto memory = rt::pin(client, size * sizeof(T));
    if (!memory.has_value()) return memory.error();
    return HostBuffer(client, std::move(*memory), size);
  }

  std::uint64_t size() const { return size_; }
  const Client& client() const { return client_; }
  // The elements, to look at. Waits for downloads into them; where one of those met claimed bytes, its error, until write() or a download
  // of all that goes well.
  Result<std::span<const T>> read() const {
    if (auto ok = rt::settle_reads(*memory_); !ok.has_value()) return ok.error();
    return std::span<const T>(elements(), size_);
  }
  bool ready() const { return rt::host_memory_ready(*memory_); }  // read() would not wait
  // The elements, to change. Waits for uploads from them and downloads into them; after a download that was refused they are zero.
  Result<std::span<T>> write() {
    if (auto ok = rt::settle_writes(*memory_); !ok.has_value()) return ok.error();
    return std::span<T>(elements(), size_);
  }
  // As read() and write() for one element; throw kiln::Exception.
  const T& operator[](std::uint64_t i) const {
    rt::host_range(i, 1, size_).value();
    return read().value()[i];
  }
  T& operator[](std::uint64_t i) {
    rt::host_range(i, 1, size_).value();
    return write().value()[i];
  }

  // Elements from `first` on to all of a buffer of the same client, or the other way. Enqueues and returns: the elements must not be looked
  // at or changed but through read() and write(). Errors: HostRange, ForeignHandle, and those of a write or a read that are known by then.
  template <unsigned R>
  Result<void> upload(const Stream& stream, Buffer<T, R>& to, std::uint64_t first = 0) const {
    if (auto ok = rt::host_range(first, to.size(), size_); !ok.has_value()) {
      rt::claim(to.binding(), ok.error());
      return rt::not_issued(stream, ok.error());
    }
    return rt::upload(stream, to.binding(), *memory_, first * sizeof(T));
  }
  template <unsigned R>
  Result<void> upload(Buffer<T, R>& to) const {
    return upload(client_.default_stream(), to);
  }
  template <unsigned R>
  Result<void> download(const Stream& stream, const Buffer<T, R>& from, std::uint64_t first = 0) {
    if (auto ok = rt::host_range(first, from.size(), size_); !ok.has_value()) return rt::not_issued(stream, ok.error());
    return rt::download(stream, from.binding(), *memory_, first * sizeof(T));
  }
  template <unsigned R>
  Result<void> download(const Buffer<T, R>& from) {
    return download(client_.default_stream(), from);
  }

  // Elements from `first` on to those of a view, or the other way: packed and row-major here, a stride apart there. The bytes of the view's
  // elements are touched and no others. Errors: as above, and OverlappingStrides for a target that names an element twice; of a source the
  // element is downloaded as often as it is named. The cost grows with the rows, as that of StridedView::read.
  template <unsigned R>
  Result<void> upload(const Stream& stream, StridedView<T, R> to, std::uint64_t first = 0) const {
    if (auto ok = rt::host_range(first, to.size(), size_); !ok.has_value()) {
      rt::claim_strided(to.untyped(), ok.error());
      return rt::not_issued(stream, ok.error());
    }
    return rt::upload_strided(stream, to.untyped(), *memory_, first * sizeof(T));
  }
  template <unsigned R>
  Result<void> upload(StridedView<T, R> to) const {
    return upload(client_.default_stream(), std::move(to));
  }
  template <unsigned R>
  Result<void> download(const Stream& stream, const StridedView<T, R>& from, std::uint64_t first = 0) {
    if (auto ok = rt::host_range(first, from.size(), size_); !ok.has_value()) return rt::not_issued(stream, ok.error());
    return rt::download_strided(stream, from.untyped(), *memory_, first * sizeof(T));
  }
  template <unsigned R>
  Result<void> download(const StridedView<T, R>& from) {
    return download(client_.default_stream(), from);
  }

 private:
  HostBuffer(const Client& client, std::shared_ptr<rt::HostMemory> memory, std::uint64_t size)
      : client_(client), memory_(std::move(memory)), size_(size) {}
  T* elements() const { return reinterpret_cast<T*>(rt::host_bytes(*memory_)); }

  Client client_;
  std::shared_ptr<rt::HostMemory> memory_;
  std::uint64_t size_ = 0;
};

// The elements of a buffer where they lie, on a device whose memory the host reaches (the CPU). It keeps the memory. While it is open,
// nothing writes there: whatever would is refused (HostViewOpen), and its target is claimed as by any operation that failed.
template <class T>
class HostView {
 public:
  HostView(rt::OpenView view, std::uint64_t size)
      : view_(std::move(view)), elements_(reinterpret_cast<const T*>(view_.bytes()), static_cast<std::size_t>(size)) {}
  HostView(HostView&& o) noexcept : view_(std::move(o.view_)), elements_(std::exchange(o.elements_, {})) {}
  HostView& operator=(HostView&& o) noexcept {
    std::swap(view_, o.view_);
    std::swap(elements_, o.elements_);
    return *this;
  }
  std::span<const T> elements() const { return elements_; }
  std::uint64_t size() const { return elements_.size(); }
  const T& operator[](std::uint64_t i) const { return elements_[i]; }
  auto begin() const { return elements_.begin(); }
  auto end() const { return elements_.end(); }

 private:
  rt::OpenView view_;
  std::span<const T> elements_;
};

// Waits for the work before it and refuses claimed bytes, as read() does, and copies nothing. Errors: UnsupportedIo (HostViewUnsupported)
// on a device whose memory the host does not reach.
template <class T, unsigned R>
Result<HostView<T>> host_view(const Stream& stream, const Buffer<T, R>& buffer) {
  auto view = rt::OpenView::open(stream, buffer.binding());
  if (!view.has_value()) return view.error();
  return HostView<T>(std::move(*view), buffer.size());
}
template <class T, unsigned R>
Result<HostView<T>> host_view(const Buffer<T, R>& buffer) {
  return host_view(buffer.client().default_stream(), buffer);
}

}  // namespace kiln
