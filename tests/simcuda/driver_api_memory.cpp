// Entry points: device memory, page-locked host memory, copies and fills.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simcuda/driver_state.h"

namespace kiln::simcuda {

Context* Driver::owner(std::uint64_t address, std::uint64_t* begin, std::uint64_t* bytes) {
  for (Context& context : contexts) {
    if (context.memory == nullptr) continue;
    const auto extent = context.memory->find(address);
    if (!extent.has_value() || extent->host) continue;
    if (begin != nullptr) *begin = extent->begin;
    if (bytes != nullptr) *bytes = extent->bytes;
    return &context;
  }
  return nullptr;
}

std::map<std::uint64_t, Pinned>::iterator Driver::pinned(const void* pointer, std::uint64_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  auto it = pinned_memory.upper_bound(address);
  if (it == pinned_memory.begin()) return pinned_memory.end();
  --it;
  const std::uint64_t offset = address - it->first;
  return offset < it->second.bytes && bytes <= it->second.bytes - offset ? it : pinned_memory.end();
}

std::string Driver::used_by(std::uint64_t address, std::uint64_t bytes) const {
  for (const OperationPtr& operation : scheduler.unfinished()) {
    if (operation->work == nullptr) continue;
    for (const Use& use : operation->work->uses)
      if (use.address < address + bytes && address < use.address + use.bytes)
        return operation->work->name + ", which was given it, has not finished";
  }
  return "";
}

namespace {

std::string hex(std::uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

// One side of a copy.
struct Side {
  Context* device = nullptr;  // null: host memory
  std::shared_ptr<Memory> memory;
  std::uint64_t address = 0;
  bool page_locked = false;  // host memory that was page-locked when the call was made
};

struct Range {
  std::byte* host = nullptr;
  std::optional<Failure> failure;
};

Range resolve(const Side& side, std::uint64_t bytes, Access access, const std::string& what) {
  if (side.memory == nullptr) {
    auto* const pointer = reinterpret_cast<std::byte*>(side.address);
    if (!side.page_locked) return {pointer, std::nullopt};
    Driver& driver = Driver::get();
    const Lock lock(driver.mutex);
    if (driver.pinned(pointer, bytes) != driver.pinned_memory.end()) return {pointer, std::nullopt};
    return {nullptr, Failure{CUDA_ERROR_ILLEGAL_ADDRESS, what + ": page-locked host memory at " + hex(side.address) + " was freed"}};
  }
  const Memory::Place place = side.memory->range(side.address, bytes, access);
  if (place.host != nullptr) return {place.host, std::nullopt};
  return {nullptr, Failure{CUDA_ERROR_ILLEGAL_ADDRESS, what + ": " + side.memory->describe(side.address)}};
}

Side host_side(Driver& driver, const void* pointer, std::uint64_t bytes) {
  Side side;
  side.address = reinterpret_cast<std::uint64_t>(pointer);
  side.page_locked = driver.pinned(pointer, bytes) != driver.pinned_memory.end();
  return side;
}

// A device address with room for the bytes: checked when the call is made, as the driver does.
CUresult device_side(Driver& driver, CUdeviceptr address, std::uint64_t bytes, const char* what, Side& side) {
  side.address = address;
  side.device = driver.owner(address);
  if (side.device == nullptr && driver.pinned(reinterpret_cast<void*>(address), bytes) != driver.pinned_memory.end()) {
    side.page_locked = true;  // mapped host memory is device memory, too
    return CUDA_SUCCESS;
  }
  if (side.device != nullptr) {
    KILN_SIMCUDA_TRY(side.device->poison);
    side.memory = side.device->memory;
    if (side.memory->range(address, bytes, Access::Read).host != nullptr) return CUDA_SUCCESS;  // a look: nothing counts as written yet
  }
  Context* current = nullptr;
  if (side.memory == nullptr && driver.current(current) == CUDA_SUCCESS) side.memory = current->memory;
  driver.report(std::string(what) + " of " + std::to_string(bytes) + " bytes at " + hex(address) + " is refused" +
                (side.memory == nullptr ? "" : ": " + side.memory->describe(address)));
  return CUDA_ERROR_INVALID_VALUE;
}

std::shared_ptr<const Work> copy_work(Context& context, const Side& to, const Side& from, std::uint64_t bytes, const char* direction,
                                      std::shared_ptr<std::vector<std::byte>> staged) {
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::Copy;
  work->context = &context;
  work->name = "a copy of " + std::to_string(bytes) + " bytes " + direction;
  work->uses.push_back({to.address, bytes});
  if (staged == nullptr) work->uses.push_back({from.address, bytes});
  work->run = [to, from, bytes, staged, name = work->name]() -> std::optional<Failure> {
    const Range target = resolve(to, bytes, Access::Write, name);
    if (target.failure.has_value()) return target.failure;
    if (staged != nullptr) {
      std::memcpy(target.host, staged->data(), bytes);
      return std::nullopt;
    }
    const Range source = resolve(from, bytes, Access::Read, name);
    if (source.failure.has_value()) return source.failure;
    std::memmove(target.host, source.host, bytes);
    return std::nullopt;
  };
  return work;
}

// Rows that lie a pitch apart on either side. Each is looked at by itself: what lies between them is not touched.
struct Rows {
  std::uint64_t rows = 0, width = 0, to_pitch = 0, from_pitch = 0;
  std::uint64_t to_bytes() const { return (rows - 1) * to_pitch + width; }
  std::uint64_t from_bytes() const { return (rows - 1) * from_pitch + width; }
};

Side row_of(Side side, std::uint64_t offset) {
  side.address += offset;
  return side;
}

std::shared_ptr<const Work> copy_rows_work(Context& context, const Side& to, const Side& from, const Rows& rows,
                                           std::shared_ptr<std::vector<std::byte>> staged) {
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::Copy;
  work->context = &context;
  work->name = "a copy of " + std::to_string(rows.rows) + " rows of " + std::to_string(rows.width) + " bytes";
  work->uses.push_back({to.address, rows.to_bytes()});
  if (staged == nullptr) work->uses.push_back({from.address, rows.from_bytes()});
  work->run = [to, from, rows, staged, name = work->name]() -> std::optional<Failure> {
    for (std::uint64_t row = 0; row < rows.rows; ++row) {
      const Range target = resolve(row_of(to, row * rows.to_pitch), rows.width, Access::Write, name);
      if (target.failure.has_value()) return target.failure;
      if (staged != nullptr) {
        std::memcpy(target.host, staged->data() + row * rows.width, rows.width);
        continue;
      }
      const Range source = resolve(row_of(from, row * rows.from_pitch), rows.width, Access::Read, name);
      if (source.failure.has_value()) return source.failure;
      std::memmove(target.host, source.host, rows.width);
    }
    return std::nullopt;
  };
  return work;
}

template <class T>
CUresult fill(Entry entry, CUdeviceptr to, T value, std::size_t count, CUstream handle) {
  return context_entry_point(entry, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (count > std::uint64_t{1} << 60 || to % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (count == 0) return driver.legacy_rule(*stream);
    const std::uint64_t bytes = count * sizeof(T);
    Side side;
    KILN_SIMCUDA_TRY(device_side(driver, to, bytes, "a fill", side));
    auto work = std::make_shared<Work>();
    work->kind = Work::Kind::Fill;
    work->context = stream->context;
    work->name = "a fill of " + std::to_string(bytes) + " bytes";
    work->uses.push_back({to, bytes});
    work->run = [side, value, count, name = work->name]() -> std::optional<Failure> {
      const Range target = resolve(side, count * sizeof(T), Access::Write, name);
      if (target.failure.has_value()) return target.failure;
      if constexpr (sizeof(T) == 1) std::memset(target.host, static_cast<int>(value), count);
      else
        for (std::size_t i = 0; i < count; ++i) std::memcpy(target.host + i * sizeof(T), &value, sizeof(T));
      return std::nullopt;
    };
    return driver.enqueue(*stream, work);
  });
}

void give_back(Driver& driver, std::map<std::uint64_t, Pinned>::iterator it) {
  void* const pointer = reinterpret_cast<void*>(it->first);
  for (Context& context : driver.contexts)
    if (context.memory != nullptr) context.memory->unmap_host(pointer);
  driver.pinned_memory.erase(it);
  std::free(pointer);
}

CUresult injected_allocation(Driver& driver, bool host, int device) {
  const AllocationFault* fault = due(driver.script.allocations, [&](const AllocationFault& f) {
    return f.host == host && (!f.device.has_value() || *f.device == device);
  });
  return fault == nullptr ? CUDA_SUCCESS : fault->code;
}

}  // namespace
}  // namespace kiln::simcuda

namespace kiln::cuda {
using namespace kiln::simcuda;

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return context_entry_point(Entry::cuMemGetInfo, [&](Driver&, Lock&, Context& context) -> CUresult {
    if (free_bytes != nullptr) *free_bytes = context.memory->free_bytes();
    if (total_bytes != nullptr) *total_bytes = context.memory->total_bytes();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  return context_entry_point(Entry::cuMemAlloc, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    KILN_SIMCUDA_TRY(driver.unsafe_call());
    KILN_SIMCUDA_TRY(injected_allocation(driver, false, context.ordinal));
    const auto made = context.memory->allocate(bytes);
    if (!made.has_value()) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = *made;
    ++context.allocations;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return context_entry_point(Entry::cuMemFree, [&](Driver& driver, Lock& lock, Context&) -> CUresult {
    KILN_SIMCUDA_TRY(driver.unsafe_call());
    std::uint64_t begin = 0, bytes = 0;
    Context* owner = driver.owner(address, &begin, &bytes);
    if (owner == nullptr || begin != address) return CUDA_ERROR_INVALID_VALUE;
    KILN_SIMCUDA_TRY(owner->poison);
    if (const std::string user = driver.used_by(address, bytes); !user.empty()) {
      const std::string text = "device memory at " + hex(address) + " (" + std::to_string(bytes) + " bytes) is freed while " + user;
      if (driver.script.free_in_use_is_fault) driver.poison(*owner, {CUDA_ERROR_ILLEGAL_ADDRESS, text});
      else driver.report(text);
    }
    driver.scheduler.wait(lock, driver.all_work(*owner));
    KILN_SIMCUDA_TRY(owner->poison);
    if (owner->memory == nullptr || !owner->memory->free(address)) return CUDA_ERROR_INVALID_VALUE;  // somebody else was faster
    --owner->allocations;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return context_entry_point(Entry::cuMemHostAlloc, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    constexpr unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pointer == nullptr || bytes == 0 || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    KILN_SIMCUDA_TRY(driver.unsafe_call());
    KILN_SIMCUDA_TRY(injected_allocation(driver, true, context.ordinal));
    constexpr std::size_t page = 4096;
    if (bytes > (std::size_t{1} << 46)) return CUDA_ERROR_OUT_OF_MEMORY;
    void* const made = std::aligned_alloc(page, (bytes + page - 1) / page * page);
    if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    for (Context& other : driver.contexts)
      if (other.memory != nullptr) other.memory->map_host(made, bytes);
    driver.pinned_memory[reinterpret_cast<std::uint64_t>(made)] = {&context, bytes};
    *pointer = made;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFreeHost(void* pointer) {
  return context_entry_point(Entry::cuMemFreeHost, [&](Driver& driver, Lock& lock, Context& context) -> CUresult {
    KILN_SIMCUDA_TRY(driver.unsafe_call());
    const auto address = reinterpret_cast<std::uint64_t>(pointer);
    const auto it = driver.pinned_memory.find(address);
    if (it == driver.pinned_memory.end()) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t bytes = it->second.bytes;
    if (const std::string user = driver.used_by(address, bytes); !user.empty()) {
      driver.poison(context, {CUDA_ERROR_ILLEGAL_ADDRESS, "page-locked host memory at " + hex(address) + " (" + std::to_string(bytes) +
                                                              " bytes) is freed while " + user});
      driver.scheduler.wait(lock, std::vector(driver.scheduler.unfinished()));  // what runs must not touch it once it is gone
    }
    const auto again = driver.pinned_memory.find(address);
    if (again != driver.pinned_memory.end()) give_back(driver, again);
    return context.poison;
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned flags) {
  return context_entry_point(Entry::cuMemHostGetDevicePointer, [&](Driver& driver, Lock&, Context&) -> CUresult {
    if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (driver.pinned(pointer, 1) == driver.pinned_memory.end()) return CUDA_ERROR_INVALID_VALUE;
    *address = reinterpret_cast<CUdeviceptr>(pointer);
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return context_entry_point(Entry::cuPointerGetAttribute, [&](Driver& driver, Lock&, Context&) -> CUresult {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t begin = 0, bytes = 0;
    const Context* owner = driver.owner(address, &begin, &bytes);
    const bool device = owner != nullptr;
    if (!device) {
      const auto it = driver.pinned(reinterpret_cast<void*>(address), 1);
      if (it == driver.pinned_memory.end()) return CUDA_ERROR_INVALID_VALUE;
      owner = it->second.context;
      begin = it->first;
      bytes = it->second.bytes;
    }
    const auto answer = [data](const auto& value) {
      std::memcpy(data, &value, sizeof value);
      return CUDA_SUCCESS;
    };
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_CONTEXT: return answer(owner->handle);
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return answer(static_cast<unsigned>(device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return answer(owner->ordinal);
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return answer(static_cast<CUdeviceptr>(begin));
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return answer(static_cast<std::size_t>(bytes));
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream handle) {
  return context_entry_point(Entry::cuMemcpyHtoDAsync, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (bytes == 0) return driver.legacy_rule(*stream);
    if (from == nullptr || driver.owner(reinterpret_cast<std::uint64_t>(from)) != nullptr) return CUDA_ERROR_INVALID_VALUE;
    Side target;
    KILN_SIMCUDA_TRY(device_side(driver, to, bytes, "a copy to the device", target));
    const Side source = host_side(driver, from, bytes);
    // Pageable memory is read before the call returns, page-locked memory when the stream gets there.
    std::shared_ptr<std::vector<std::byte>> staged;
    if (!source.page_locked && stream->capture == nullptr) {
      const auto* bytes_from = static_cast<const std::byte*>(from);
      staged = std::make_shared<std::vector<std::byte>>(bytes_from, bytes_from + bytes);
    }
    return driver.enqueue(*stream, copy_work(*stream->context, target, source, bytes, "from host to device", std::move(staged)));
  });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream handle) {
  return context_entry_point(Entry::cuMemcpyDtoHAsync, [&](Driver& driver, Lock& lock, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (bytes == 0) return driver.legacy_rule(*stream);
    if (to == nullptr || driver.owner(reinterpret_cast<std::uint64_t>(to)) != nullptr) return CUDA_ERROR_INVALID_VALUE;
    Side source;
    KILN_SIMCUDA_TRY(device_side(driver, from, bytes, "a copy to the host", source));
    const Side target = host_side(driver, to, bytes);
    Context& where = *stream->context;
    OperationPtr operation;
    KILN_SIMCUDA_TRY(driver.enqueue(*stream, copy_work(where, target, source, bytes, "from device to host", nullptr), &operation));
    if (target.page_locked || operation == nullptr) return CUDA_SUCCESS;
    driver.scheduler.wait(lock, {operation});  // a copy to pageable memory has been made when the call returns
    return where.poison;
  });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream handle) {
  return context_entry_point(Entry::cuMemcpyDtoDAsync, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (bytes == 0) return driver.legacy_rule(*stream);
    Side target, source;
    KILN_SIMCUDA_TRY(device_side(driver, from, bytes, "a copy from the device", source));
    KILN_SIMCUDA_TRY(device_side(driver, to, bytes, "a copy to the device", target));
    return driver.enqueue(*stream, copy_work(*stream->context, target, source, bytes, "from device to device", nullptr));
  });
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream handle) {
  return context_entry_point(Entry::cuMemcpy2DAsync, [&](Driver& driver, Lock& lock, Context& context) -> CUresult {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (copy->WidthInBytes == 0 || copy->Height == 0) return driver.legacy_rule(*stream);
    constexpr std::uint64_t most_pitch = 0x7fffffff;  // CU_DEVICE_ATTRIBUTE_MAX_PITCH of every GPU so far
    if (copy->srcPitch > most_pitch || copy->dstPitch > most_pitch) return CUDA_ERROR_INVALID_VALUE;
    if (copy->srcXInBytes + copy->WidthInBytes > copy->srcPitch || copy->dstXInBytes + copy->WidthInBytes > copy->dstPitch)
      return CUDA_ERROR_INVALID_VALUE;
    const auto is_kind = [](CUmemorytype type) { return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE; };  // no arrays here
    if (!is_kind(copy->srcMemoryType) || !is_kind(copy->dstMemoryType)) return CUDA_ERROR_INVALID_VALUE;
    const Rows rows{copy->Height, copy->WidthInBytes, copy->dstPitch, copy->srcPitch};
    const std::uint64_t from_offset = copy->srcY * copy->srcPitch + copy->srcXInBytes,
                        to_offset = copy->dstY * copy->dstPitch + copy->dstXInBytes;
    const auto side = [&](CUmemorytype type, const void* host, CUdeviceptr device, std::uint64_t offset, std::uint64_t bytes, Side& out) {
      if (type == CU_MEMORYTYPE_DEVICE) return device_side(driver, device + offset, bytes, "a copy of rows", out);
      if (host == nullptr || driver.owner(reinterpret_cast<std::uint64_t>(host)) != nullptr) return CUDA_ERROR_INVALID_VALUE;
      out = host_side(driver, static_cast<const std::byte*>(host) + offset, bytes);
      return CUDA_SUCCESS;
    };
    Side target, source;
    KILN_SIMCUDA_TRY(side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, from_offset, rows.from_bytes(), source));
    KILN_SIMCUDA_TRY(side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, to_offset, rows.to_bytes(), target));
    const auto pageable = [](CUmemorytype type, const Side& s) { return type == CU_MEMORYTYPE_HOST && !s.page_locked; };
    std::shared_ptr<std::vector<std::byte>> staged;
    if (pageable(copy->srcMemoryType, source) && stream->capture == nullptr) {  // read before the call returns
      staged = std::make_shared<std::vector<std::byte>>(rows.rows * rows.width);
      for (std::uint64_t row = 0; row < rows.rows; ++row)
        std::memcpy(staged->data() + row * rows.width, reinterpret_cast<const std::byte*>(source.address) + row * rows.from_pitch,
                    rows.width);
    }
    Context& where = *stream->context;
    OperationPtr operation;
    KILN_SIMCUDA_TRY(driver.enqueue(*stream, copy_rows_work(where, target, source, rows, std::move(staged)), &operation));
    if (!pageable(copy->dstMemoryType, target) || operation == nullptr) return CUDA_SUCCESS;
    driver.scheduler.wait(lock, {operation});  // a copy to pageable memory has been made when the call returns
    return where.poison;
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return fill<unsigned char>(Entry::cuMemsetD8Async, to, value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return fill<unsigned>(Entry::cuMemsetD32Async, to, value, count, stream);
}

}  // namespace kiln::cuda
