// A CUDA driver that executes nothing: what Kiln does around the driver's calls can be tested and measured with it. Built several times, as
// drivers of which something is wrong: FAKE_INIT is what cuInit gives, FAKE_VERSION the driver's version, FAKE_DEVICES how many devices.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "cuda/driver_entries.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef FAKE_INIT
#define FAKE_INIT 0
#endif
#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif
#ifndef FAKE_DEVICES
#define FAKE_DEVICES 1
#endif

namespace kiln::cuda {
namespace {

std::atomic<unsigned long long> next_address{0x700000000000ull};
std::atomic<std::uintptr_t> next_handle{0x1000};

template <class T>
T handle() {
  return reinterpret_cast<T>(next_handle.fetch_add(16));
}

}  // namespace

extern "C" {

#define FAKE_DECLARE(entry, symbol, since, params) CUresult symbol params;
KILN_CUDA_ENTRIES(FAKE_DECLARE)
#undef FAKE_DECLARE

CUresult cuInit(unsigned) { return static_cast<CUresult>(FAKE_INIT); }
CUresult cuDriverGetVersion(int* version) {
  *version = FAKE_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = FAKE_DEVICES;
  return CUDA_SUCCESS;
}

#ifndef FAKE_NO_LOOKUP
CUresult cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t, CUdriverProcAddressQueryResult* status) {
  struct Entry {
    const char* name;
    void* function;
    int version;
  };
// The name as the build may have changed it.
#define FAKE_QUOTED(text) #text
#define FAKE_TEXT(text) FAKE_QUOTED(text)
#define FAKE_ENTRY(entry, symbol, since, params) {FAKE_TEXT(entry), reinterpret_cast<void*>(&symbol), since},
  static const Entry entries[] = {KILN_CUDA_ENTRIES(FAKE_ENTRY)};
#undef FAKE_ENTRY
#undef FAKE_TEXT
#undef FAKE_QUOTED
  *function = nullptr;
  *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  for (const Entry& e : entries) {
    if (std::strcmp(e.name, name) != 0) continue;
    const bool there = e.version <= version && e.version <= FAKE_VERSION;
    *status = there ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    if (there) *function = e.function;
  }
  return CUDA_SUCCESS;
}
#endif

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "null GPU", static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  *bytes = std::size_t{16} << 30;
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  *free_bytes = *total = std::size_t{16} << 30;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 0x7fffffff; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    default: *value = 1;
  }
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = reinterpret_cast<CUcontext>(std::uintptr_t{0x100} + static_cast<unsigned>(device) * 16);
  return CUDA_SUCCESS;
}

thread_local CUcontext stack[16];
thread_local unsigned depth = 0;
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = depth != 0 ? stack[depth - 1] : nullptr;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  stack[depth++ % 16] = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack[--depth];
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  depth = context != nullptr ? 1 : 0;
  stack[0] = context;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void*, unsigned, CUjit_option*, void**) {
  *module = handle<CUmodule>();
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  *function = handle<CUfunction>();
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
  return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = handle<CUstream>();
  return CUDA_SUCCESS;
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned, int) {
  *stream = handle<CUstream>();
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = handle<CUevent>();
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  *address = next_address.fetch_add((bytes + 511) / 512 * 512);
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *pointer != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFreeHost(void* pointer) {
  std::free(pointer);
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned) {
  *address = reinterpret_cast<CUdeviceptr>(pointer);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr, std::size_t bytes, CUstream) {
  std::memset(to, 0, bytes);
  return CUDA_SUCCESS;
}

}  // extern "C"
}  // namespace kiln::cuda
