#include "kiln/runtime/interop.h"

#include <algorithm>
#include <new>
#include <string>
#include <type_traits>

#include "src/local_server.h"
#include "src/make_error.h"
#include "src/memory_order.h"
#include "src/strided.h"

namespace kiln {
namespace {

rt::LocalServer& local(const Client& client) { return static_cast<rt::LocalServer&>(client.server()); }  // all of this process are

// What DLPack calls our types. Code 255: it has no name for it.
dlpack::DataType dlpack_type(ir::Type type) {
  using enum ir::Type;
  const auto bits = static_cast<std::uint8_t>(ir::byte_size(type) * 8);
  switch (type) {
    case Bool: return {dlpack::kBool, 8, 1};
    case I8:
    case I16:
    case I32:
    case I64: return {dlpack::kInt, bits, 1};
    case U8:
    case U16:
    case U32:
    case U64: return {dlpack::kUInt, bits, 1};
    case F16:
    case F32:
    case F64: return {dlpack::kFloat, bits, 1};
    case BF16: return {dlpack::kBfloat, bits, 1};
    case E4M3: return {dlpack::kFloat8_e4m3fn, bits, 1};
    case E5M2: return {dlpack::kFloat8_e5m2, bits, 1};
    default: return {255, 0, 0};
  }
}

std::string text(const dlpack::DataType& type) {
  return "code " + std::to_string(type.code) + " with " + std::to_string(type.bits) + " bits and " + std::to_string(type.lanes) +
         (type.lanes == 1 ? " lane" : " lanes");
}

dlpack::Device device_of(const Client& client) {
  const rt::Device& device = local(client).device();
  return {device.host_addressable() ? dlpack::kCpu : dlpack::kCuda, device.ordinal()};
}

// --- exports -------------------------------------------------------------------------------------------------------------------

template <class Managed>
struct Export {
  Managed managed;
  Memory memory;
  std::array<std::int64_t, ir::kMaxRank> shape{}, strides{};
};
template <class Managed>
void end_export(Managed* self) {
  delete static_cast<Export<Managed>*>(self->context);
}

template <class Managed>
Result<Managed*> make_export(const Client& client, const rt::StridedBinding& view, ir::Type type, bool read_only) {
  return rt::or_no_memory([&]() -> Result<Managed*> {
    const auto device = local(client).reachable_device();
    if (!device.has_value()) return device.error();
    const Memory& memory = view.binding.memory;
    if (auto ok = client.server().sync({&view.binding, 1}); !ok.has_value()) {
      // Of what lies between the elements nothing matters.
      std::vector<Binding> elements;
      for (const ByteRange& run : rt::element_runs(view)) elements.push_back({memory, run});
      if (auto exact = client.server().sync(elements); !exact.has_value()) return exact.error();
    }
    const bool only = memory != nullptr && memory->read_only;
    if constexpr (std::is_same_v<Managed, dlpack::ManagedTensor>)
      if (only)
        return make_error(ErrorCode::Validation, "ReadOnlyMemory",
                          "the memory was imported to be read only, which a tensor of this form cannot say");
    if (auto ok = local(client).pin_address(view.binding); !ok.has_value()) return ok.error();
    auto made = std::make_unique<Export<Managed>>();
    made->memory = memory;
    for (unsigned d = 0; d < view.rank; ++d) {
      made->shape[d] = static_cast<std::int64_t>(view.extents[d]);
      made->strides[d] = static_cast<std::int64_t>(view.strides[d]);
    }
    dlpack::Tensor& tensor = made->managed.tensor;
    tensor.data = rt::empty(view.binding) ? nullptr : rt::address(view.binding);
    tensor.device = device_of(client);
    tensor.rank = view.rank;
    tensor.type = dlpack_type(type);
    tensor.shape = made->shape.data();
    tensor.strides = made->strides.data();
    if constexpr (std::is_same_v<Managed, dlpack::ManagedTensorVersioned>) made->managed.flags = read_only || only ? dlpack::kReadOnly : 0;
    made->managed.context = made.get();
    made->managed.deleter = &end_export<Managed>;
    return &made.release()->managed;
  });
}

// --- imports -------------------------------------------------------------------------------------------------------------------

// Calls the deleter when the last who holds it lets go.
template <class Managed>
std::shared_ptr<const void> owner_of(Managed* tensor) {
  return std::shared_ptr<const void>(tensor, [tensor](const void*) {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  });
}

template <class Managed>
Result<rt::Imported> import_tensor(const Client& client, Managed* managed, bool read_only, ir::Type type, unsigned rank) {
  const dlpack::Tensor& tensor = managed->tensor;
  const dlpack::DataType wanted = dlpack_type(type);
  const dlpack::Device device = device_of(client);
  const bool host = device.type == dlpack::kCpu && (tensor.device.type == dlpack::kCpu || tensor.device.type == dlpack::kCudaHost);
  if (!host && (tensor.device.type != device.type || tensor.device.id != device.id)) {
    return make_error(ErrorCode::ForeignHandle, "DlpackDevice",
                      "the tensor is on device " + std::to_string(tensor.device.id) + " of DLPack's type " +
                          std::to_string(tensor.device.type) + ", and " + client.server().label() + " is device " +
                          std::to_string(device.id) + " of type " + std::to_string(device.type) + "; move it there first");
  }
  if (tensor.type.code != wanted.code || tensor.type.bits != wanted.bits || tensor.type.lanes != 1) {
    return make_error(
        ErrorCode::Validation, "DlpackType",
        "the tensor's elements are " + text(tensor.type) + ", and those of " + std::string(ir::name(type)) + " are " + text(wanted));
  }
  if (tensor.rank != static_cast<std::int32_t>(rank))
    return make_error(ErrorCode::Validation, "DlpackRank",
                      "the tensor has " + std::to_string(tensor.rank) + " dimensions, and " + std::to_string(rank) + " are asked for");
  if (tensor.shape == nullptr && rank != 0)
    return make_error(ErrorCode::Validation, "DlpackShape", "the tensor has dimensions and no extents");
  rt::Imported imported;
  bool empty = false;
  std::int64_t packed = 1;
  for (unsigned d = rank; d-- > 0;) {
    const std::int64_t extent = tensor.shape[d];
    if (extent < 0)
      return make_error(ErrorCode::Validation, "DlpackShape",
                        "dimension " + std::to_string(d) + " of the tensor has extent " + std::to_string(extent));
    empty = empty || extent == 0;
    imported.extents[d] = static_cast<std::uint64_t>(extent);
    imported.strides[d] = tensor.strides != nullptr ? tensor.strides[d] : packed;
    if (extent == 1 && imported.strides[d] < 0) imported.strides[d] = 0;  // never gone
    if (extent != 0 && __builtin_mul_overflow(packed, extent, &packed))
      return make_error(ErrorCode::BufferTooBig, "BufferTooBig", "the tensor has more elements than 64 bits can count");
  }
  const std::uint64_t element = ir::byte_size(type);
  const auto hull = rt::strided_hull(imported.extents.data(), imported.strides.data(), rank, element);
  if (!hull.has_value()) return hull.error();
  if (empty) {
    const auto ends_here = owner_of(managed);
    return imported;
  }
  if (tensor.data == nullptr) return make_error(ErrorCode::Validation, "DlpackShape", "the tensor has elements and no data");
  auto* const first = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(first) % element != 0) {
    return make_error(
        ErrorCode::Validation, "ElementAlignment",
        "elements of " + std::to_string(element) + " bytes lie at addresses that are multiples of that, and the tensor's first does not");
  }
  // One that this runtime exported is the memory that it was, so that the order of work on it stays known.
  if (managed->deleter == &end_export<Managed>) {
    const Memory& memory = static_cast<Export<Managed>*>(managed->context)->memory;
    if (memory->server.get() == &client.server()) {
      imported.memory = memory;
      imported.first = static_cast<std::uint64_t>(first - static_cast<std::byte*>(memory->storage->data));
      const auto ends_here = owner_of(managed);
      return imported;
    }
  }
  // The owner must not end the tensor where the import fails.
  auto guard = std::make_shared<std::shared_ptr<const void>>();
  auto memory = local(client).adopt(reinterpret_cast<std::uint64_t>(first), *hull * element, guard, read_only);
  if (!memory.has_value()) return memory.error();
  *guard = owner_of(managed);
  imported.memory = std::move(*memory);
  return imported;
}

}  // namespace

Result<Memory> import_memory(const Client& client, const void* address, std::uint64_t bytes, std::shared_ptr<const void> owner,
                             bool read_only) {
  return local(client).adopt(reinterpret_cast<std::uint64_t>(address), bytes, std::move(owner), read_only);
}

namespace rt {

Result<Imported> import_dlpack(const Client& client, dlpack::ManagedTensor* tensor, ir::Type type, unsigned rank) {
  return or_no_memory([&]() -> Result<Imported> {
    if (tensor == nullptr) return make_error(ErrorCode::Validation, "DlpackShape", "there is no tensor");
    return import_tensor(client, tensor, false, type, rank);
  });
}

Result<Imported> import_dlpack(const Client& client, dlpack::ManagedTensorVersioned* tensor, ir::Type type, unsigned rank) {
  return or_no_memory([&]() -> Result<Imported> {
    if (tensor == nullptr) return make_error(ErrorCode::Validation, "DlpackShape", "there is no tensor");
    if (tensor->version.major != 1) {
      return make_error(ErrorCode::Validation, "DlpackVersion",
                        "the tensor has version " + std::to_string(tensor->version.major) + "." + std::to_string(tensor->version.minor) +
                            " of DLPack, and Kiln knows version 1");
    }
    return import_tensor(client, tensor, (tensor->flags & dlpack::kReadOnly) != 0, type, rank);
  });
}

Result<dlpack::ManagedTensorVersioned*> export_dlpack(const Client& client, const StridedBinding& view, ir::Type type, bool read_only) {
  return make_export<dlpack::ManagedTensorVersioned>(client, view, type, read_only);
}
Result<dlpack::ManagedTensor*> export_dlpack_unversioned(const Client& client, const StridedBinding& view, ir::Type type) {
  return make_export<dlpack::ManagedTensor>(client, view, type, false);
}

}  // namespace rt
}  // namespace kiln
