// Entry points: initialisation, errors, devices and contexts.
#include <algorithm>
#include <cstring>

#include "simcuda/driver_errors.h"
#include "simcuda/driver_state.h"

namespace kiln::cuda {
using namespace kiln::simcuda;

namespace {

CUresult push(Context* context) {
  ThreadState& thread = this_thread();
  if (thread.depth == ThreadState::kDepth) return CUDA_ERROR_OUT_OF_MEMORY;
  thread.stack[thread.depth++] = context->handle;
  return CUDA_SUCCESS;
}

// A context that a thread can make current: a live handle of a context that somebody retains.
CUresult usable(Driver& driver, CUcontext handle, Context*& context) {
  context = driver.context_of(handle);
  return context == nullptr || !context->active() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

}  // namespace

CUresult cuInit(unsigned flags) {
  return entry_point(Entry::cuInit, [&](Driver& driver, Lock& lock) -> CUresult {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.initialise(lock);
  });
}

CUresult cuDriverGetVersion(int* version) {
  return entry_point(Entry::cuDriverGetVersion, [&](Driver& driver, Lock&) -> CUresult {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = driver.driver_version();
    return CUDA_SUCCESS;
  });
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  return entry_point(Entry::cuGetErrorName, [&](Driver&, Lock&) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = error_name(error);
    return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  return entry_point(Entry::cuGetErrorString, [&](Driver&, Lock&) -> CUresult {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *text = error_text(error);
    return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return entry_point(Entry::cuDeviceGetCount, [&](Driver& driver, Lock&) -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver.contexts.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return entry_point(Entry::cuDeviceGet, [&](Driver& driver, Lock&) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (driver.device(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return entry_point(Entry::cuDeviceGetName, [&](Driver& driver, Lock&) -> CUresult {
    const Context* context = driver.device(device);
    if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    const std::string& full = context->description.name;
    const std::size_t n = std::min(full.size(), static_cast<std::size_t>(length) - 1);
    std::memcpy(name, full.data(), n);
    name[n] = '\0';
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return entry_point(Entry::cuDeviceGetUuid, [&](Driver& driver, Lock&) -> CUresult {
    const Context* context = driver.device(device);
    if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
    for (const char c : context->description.name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    std::memcpy(uuid->bytes, "Kiln sim", 8);
    hash ^= static_cast<std::uint64_t>(device) << 56;
    std::memcpy(uuid->bytes + 8, &hash, 8);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return entry_point(Entry::cuDeviceGetAttribute, [&](Driver& driver, Lock&) -> CUresult {
    const Context* context = driver.device(device);
    if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const auto& known = context->description.attributes;
    const auto index = static_cast<std::size_t>(attribute);  // a negative one becomes a large one
    if (value == nullptr || index >= known.size() || !known[index].has_value()) return CUDA_ERROR_INVALID_VALUE;
    *value = *known[index];
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return entry_point(Entry::cuDeviceTotalMem, [&](Driver& driver, Lock&) -> CUresult {
    const Context* context = driver.device(device);
    if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = context->description.memory;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice device) {
  return entry_point(Entry::cuDevicePrimaryCtxRetain, [&](Driver& driver, Lock&) -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = driver.device(device);
    if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (context->poison != CUDA_SUCCESS) return context->poison;
    if (context->description.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == 2) return CUDA_ERROR_UNKNOWN;  // prohibited
    if (!context->active()) driver.activate(*context);
    ++context->retained;
    *result = context->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return entry_point(Entry::cuDevicePrimaryCtxRelease, [&](Driver& driver, Lock& lock) -> CUresult {
    Context* context = driver.device(device);
    if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (!context->active()) return CUDA_ERROR_INVALID_CONTEXT;
    driver.release(lock, *context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  return entry_point(Entry::cuCtxPushCurrent, [&](Driver& driver, Lock&) -> CUresult {
    Context* context = nullptr;
    KILN_SIMCUDA_TRY(usable(driver, handle, context));
    return push(context);
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
  return entry_point(Entry::cuCtxPopCurrent, [&](Driver&, Lock&) -> CUresult {
    ThreadState& thread = this_thread();
    if (thread.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    const CUcontext top = thread.stack[--thread.depth];
    if (handle != nullptr) *handle = top;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
  return entry_point(Entry::cuCtxGetCurrent, [&](Driver&, Lock&) -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const ThreadState& thread = this_thread();
    *handle = thread.depth == 0 ? nullptr : thread.stack[thread.depth - 1];
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  return entry_point(Entry::cuCtxSetCurrent, [&](Driver& driver, Lock&) -> CUresult {
    ThreadState& thread = this_thread();
    if (handle == nullptr) {
      if (thread.depth != 0) --thread.depth;
      return CUDA_SUCCESS;
    }
    Context* context = nullptr;
    KILN_SIMCUDA_TRY(usable(driver, handle, context));
    if (thread.depth != 0) --thread.depth;
    return push(context);
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return entry_point(Entry::cuCtxGetDevice, [&](Driver& driver, Lock&) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const ThreadState& thread = this_thread();
    const Context* context = thread.depth == 0 ? nullptr : driver.context_of(thread.stack[thread.depth - 1]);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return context_entry_point(Entry::cuCtxSynchronize, [&](Driver& driver, Lock& lock, Context& context) -> CUresult {
    if (driver.captures(context, false)) {
      for (const auto& capture : driver.active_captures)
        if (std::any_of(capture->streams.begin(), capture->streams.end(), [&](const Stream* s) { return s->context == &context; }))
          driver.invalidate(*capture);
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    KILN_SIMCUDA_TRY(driver.unsafe_call());
    driver.scheduler.wait(lock, driver.all_work(context));
    return context.poison;
  });
}

}  // namespace kiln::cuda
