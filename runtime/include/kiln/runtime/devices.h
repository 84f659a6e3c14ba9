// Several devices in one process: copies from one to another.
#pragma once
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/strided.h"

namespace kiln {

namespace rt {
// From one device to any other, or within one. Ordered behind the work on the source and before later work on the target, by the two
// streams. Goes through host memory a piece at a time; the calling thread waits for the source. Claimed bytes are not copied: the target
// carries their failure then, whole, and so it does after any other error. Errors: CopySize, ForeignHandle (a stream of another device than
// its binding), those of a read and a write.
Result<void> copy_across(const Stream& to_stream, const Binding& to, const Stream& from_stream, const Binding& from);
// The same of strided views with equal extents. The bytes of their elements are touched and no others. Errors: UnsupportedStrides, too.
Result<void> copy_across_strided(const Stream& to_stream, const StridedBinding& to, const Stream& from_stream, const StridedBinding& from);
}  // namespace rt

// Elements of a buffer to one of as many on any device.
template <class T, unsigned R, unsigned S>
Result<void> copy_across(const Stream& to_stream, Buffer<T, R>& to, const Stream& from_stream, const Buffer<T, S>& from) {
  return rt::copy_across(to_stream, to.binding(), from_stream, from.binding());
}
template <class T, unsigned R, unsigned S>
Result<void> copy_across(Buffer<T, R>& to, const Buffer<T, S>& from) {
  return copy_across(to.client().default_stream(), to, from.client().default_stream(), from);
}
// Elements of a view to those of one of equal extents on any device, whatever their strides.
template <class T, unsigned R>
Result<void> copy_across(const Stream& to_stream, StridedView<T, R> to, const Stream& from_stream, const StridedView<T, R>& from) {
  return rt::copy_across_strided(to_stream, to.untyped(), from_stream, from.untyped());
}
template <class T, unsigned R>
Result<void> copy_across(StridedView<T, R> to, const StridedView<T, R>& from) {
  return copy_across(to.client().default_stream(), to, from.client().default_stream(), from);
}
// A buffer of the same elements on another device (or a second one on the same). On an error there is none.
template <class T, unsigned R>
Result<Buffer<T, R>> to_device(const Client& client, const Buffer<T, R>& from) {
  auto memory = rt::allocate(client, from.size() * sizeof(T));
  if (!memory.has_value()) return memory.error();
  auto to = Buffer<T, R>::over(client, std::move(*memory), from.extents());
  if (!to.has_value()) return to;
  if (auto ok = copy_across(*to, from); !ok.has_value()) return ok.error();
  return to;
}

// Whether one device reaches the memory of the other by itself. Asked of the devices once a pair. CPU devices do, of one another; of the
// others none does through Kiln.
bool peer_access(const Client& from, const Client& to);

}  // namespace kiln
