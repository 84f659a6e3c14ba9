// Memory of others: pointers that somebody else allocated, and DLPack's tensors, in and out.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "kiln/runtime/buffer.h"
#include "kiln/runtime/dlpack.h"
#include "kiln/runtime/strided.h"

namespace kiln {

// Memory that somebody else allocated, as the memory of buffers (Buffer::over): for a CPU client the process's own, for a CUDA client
// device memory of that device. `owner` is kept until Kiln's last task on it is over. The same range imported twice is the same memory; one
// that overlaps another is refused (AliasingArguments), so that aliasing stays visible: import the whole and take views. Read-only memory
// may be read and copied from; what would write it is refused (ReadOnlyMemory). Nothing else may write it while Kiln uses it, and who else
// reads it waits with sync() first.
Result<Memory> import_memory(const Client& client, const void* address, std::uint64_t bytes, std::shared_ptr<const void> owner = {},
                             bool read_only = false);

// As a buffer of extents; nothing is copied. Errors: as import_memory, and ElementAlignment.
template <class T, std::size_t R>
Result<Buffer<T, R>> import_buffer(const Client& client, T* elements, const std::array<std::uint64_t, R>& extents,
                                   std::shared_ptr<const void> owner = {}) {
  const auto n = rt::buffer_elements(extents.data(), R, sizeof(T));
  if (!n.has_value()) return n.error();
  auto memory = import_memory(client, elements, *n * sizeof(T), std::move(owner));
  if (!memory.has_value()) return memory.error();
  return Buffer<T, R>::over(client, std::move(*memory), extents);
}
template <class T>
Result<Buffer<T>> import_buffer(const Client& client, T* elements, std::uint64_t size, std::shared_ptr<const void> owner = {}) {
  return import_buffer(client, elements, std::array<std::uint64_t, 1>{size}, std::move(owner));
}

namespace rt {

struct Imported {
  Memory memory;
  std::uint64_t first = 0;  // byte
  std::array<std::uint64_t, ir::kMaxRank> extents{};
  std::array<std::int64_t, ir::kMaxRank> strides{};  // in elements
};
// Takes the tensor over on success only.
Result<Imported> import_dlpack(const Client& client, dlpack::ManagedTensor* tensor, ir::Type type, unsigned rank);
Result<Imported> import_dlpack(const Client& client, dlpack::ManagedTensorVersioned* tensor, ir::Type type, unsigned rank);
Result<dlpack::ManagedTensorVersioned*> export_dlpack(const Client& client, const StridedBinding& view, ir::Type type, bool read_only);
Result<dlpack::ManagedTensor*> export_dlpack_unversioned(const Client& client, const StridedBinding& view, ir::Type type);

template <class T, unsigned R, class Tensor>
Result<StridedView<T, R>> view_of_dlpack(const Client& client, Tensor* tensor) {
  auto imported = import_dlpack(client, tensor, ir_type<T>, R);
  if (!imported.has_value()) return imported.error();
  std::array<std::uint64_t, R> extents{};
  std::array<std::int64_t, R> strides{};
  for (unsigned d = 0; d < R; ++d) {
    extents[d] = imported->extents[d];
    strides[d] = imported->strides[d];
  }
  return StridedView<T, R>::over(client, std::move(imported->memory), extents, strides, imported->first);
}
}  // namespace rt

// A tensor of DLPack's, of this element type and rank, on the client's device, as a view of its memory; nothing is copied. The tensor is
// the view's from then on, and its deleter is called once, when Kiln's last task on the memory is over; on an error it stays the caller's.
// Whoever made it has seen to it that its bytes are there. A tensor that Kiln exported is the memory it was. `Tensor` is
// dlpack::ManagedTensor or dlpack::ManagedTensorVersioned: cast those of dlpack.h, whose layout they have. Errors: DlpackVersion,
// DlpackDevice, DlpackType, DlpackRank, DlpackShape, UnsupportedStrides (NegativeStride), and those of import_memory.
template <class T, unsigned R, class Tensor>
Result<StridedView<T, R>> from_dlpack(const Client& client, Tensor* tensor) {
  return rt::view_of_dlpack<T, R>(client, tensor);
}

// As a tensor for others, who call its deleter once; it keeps the memory until then (can_mutate() is false). Waits for the work on the
// bytes and refuses claimed ones. What either side enqueues afterwards the other does not know of: sync() before the bytes change hands.
template <class T, unsigned R>
Result<dlpack::ManagedTensorVersioned*> to_dlpack(const StridedView<T, R>& view, bool read_only = false) {
  return rt::export_dlpack(view.client(), view.untyped(), ir_type<T>, read_only);
}
template <class T, unsigned R>
Result<dlpack::ManagedTensorVersioned*> to_dlpack(const Buffer<T, R>& buffer, bool read_only = false) {
  return to_dlpack(StridedView<T, R>(buffer), read_only);
}
// Of the older form, for those who do not know versions. It cannot say read-only: memory that is so is refused (ReadOnlyMemory).
template <class T, unsigned R>
Result<dlpack::ManagedTensor*> to_dlpack_unversioned(const StridedView<T, R>& view) {
  return rt::export_dlpack_unversioned(view.client(), view.untyped(), ir_type<T>);
}
template <class T, unsigned R>
Result<dlpack::ManagedTensor*> to_dlpack_unversioned(const Buffer<T, R>& buffer) {
  return to_dlpack_unversioned(StridedView<T, R>(buffer));
}

}  // namespace kiln
