// The entry points of the CUDA Driver API that Kiln uses: the one list. For each: the name that cuGetProcAddress takes, the symbol that the
// library exports for this version (for the fallback by dlsym), the version that first had this signature, and the parameters. All return
// CUresult.
#pragma once
#include "cuda/driver_copies.h"
#include "cuda/driver_types.h"

// clang-format off
#define KILN_CUDA_ENTRIES(ENTRY)                                                                                                              \
  ENTRY(cuInit, cuInit, 2000, (unsigned flags))                                                                                               \
  ENTRY(cuDriverGetVersion, cuDriverGetVersion, 2020, (int* version))                                                                         \
  ENTRY(cuGetErrorName, cuGetErrorName, 6000, (CUresult error, const char** name))                                                            \
  ENTRY(cuGetErrorString, cuGetErrorString, 6000, (CUresult error, const char** text))                                                        \
  ENTRY(cuDeviceGetCount, cuDeviceGetCount, 2000, (int* count))                                                                               \
  ENTRY(cuDeviceGet, cuDeviceGet, 2000, (CUdevice* device, int ordinal))                                                                      \
  ENTRY(cuDeviceGetName, cuDeviceGetName, 2000, (char* name, int length, CUdevice device))                                                    \
  ENTRY(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, (CUuuid* uuid, CUdevice device))                                                          \
  ENTRY(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, (int* value, CUdevice_attribute attribute, CUdevice device))                        \
  ENTRY(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, (std::size_t* bytes, CUdevice device))                                                   \
  ENTRY(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (CUcontext* context, CUdevice device))                                      \
  ENTRY(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice device))                                                    \
  ENTRY(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, (CUcontext context))                                                                     \
  ENTRY(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, (CUcontext* context))                                                                      \
  ENTRY(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext* context))                                                                         \
  ENTRY(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext context))                                                                          \
  ENTRY(cuCtxGetDevice, cuCtxGetDevice, 2000, (CUdevice* device))                                                                             \
  ENTRY(cuCtxSynchronize, cuCtxSynchronize, 2000, ())                                                                                         \
  ENTRY(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, (int* least, int* greatest))                                          \
  ENTRY(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010,                                                                                         \
        (CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values))                                          \
  ENTRY(cuModuleUnload, cuModuleUnload, 2000, (CUmodule module))                                                                              \
  ENTRY(cuModuleGetFunction, cuModuleGetFunction, 2000, (CUfunction* function, CUmodule module, const char* name))                            \
  ENTRY(cuModuleGetGlobal, cuModuleGetGlobal_v2, 3020, (CUdeviceptr* address, std::size_t* bytes, CUmodule module, const char* name))         \
  ENTRY(cuFuncGetAttribute, cuFuncGetAttribute, 2020, (int* value, CUfunction_attribute attribute, CUfunction function))                      \
  ENTRY(cuFuncSetAttribute, cuFuncSetAttribute, 9000, (CUfunction function, CUfunction_attribute attribute, int value))                       \
  ENTRY(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040, (CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size))      \
  ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,                                       \
        (int* blocks, CUfunction function, int block_size, std::size_t dynamic_shared))                                                       \
  ENTRY(cuOccupancyMaxPotentialBlockSize, cuOccupancyMaxPotentialBlockSize, 6050,                                                             \
        (int* blocks, int* block_size, CUfunction function, CUoccupancyB2DSize shared_of_block, std::size_t dynamic_shared, int limit))       \
  ENTRY(cuOccupancyMaxPotentialClusterSize, cuOccupancyMaxPotentialClusterSize, 11070,                                                        \
        (int* size, CUfunction function, const CUlaunchConfig* config))                                                                       \
  ENTRY(cuOccupancyMaxActiveClusters, cuOccupancyMaxActiveClusters, 11070, (int* clusters, CUfunction function, const CUlaunchConfig* config)) \
  ENTRY(cuMemGetInfo, cuMemGetInfo_v2, 3020, (std::size_t* free_bytes, std::size_t* total_bytes))                                             \
  ENTRY(cuMemAlloc, cuMemAlloc_v2, 3020, (CUdeviceptr* address, std::size_t bytes))                                                           \
  ENTRY(cuMemFree, cuMemFree_v2, 3020, (CUdeviceptr address))                                                                                 \
  ENTRY(cuMemHostAlloc, cuMemHostAlloc, 2020, (void** pointer, std::size_t bytes, unsigned flags))                                            \
  ENTRY(cuMemFreeHost, cuMemFreeHost, 2000, (void* pointer))                                                                                  \
  ENTRY(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020, (CUdeviceptr* address, void* pointer, unsigned flags))                 \
  ENTRY(cuPointerGetAttribute, cuPointerGetAttribute, 4000, (void* data, CUpointer_attribute attribute, CUdeviceptr address))                 \
  ENTRY(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020, (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream))                \
  ENTRY(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020, (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream))                      \
  ENTRY(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream))                \
  ENTRY(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020, (const CUDA_MEMCPY2D* copy, CUstream stream))                                              \
  ENTRY(cuMemsetD8Async, cuMemsetD8Async, 3020, (CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream))                    \
  ENTRY(cuMemsetD32Async, cuMemsetD32Async, 3020, (CUdeviceptr to, unsigned value, std::size_t count, CUstream stream))                       \
  ENTRY(cuStreamCreate, cuStreamCreate, 2000, (CUstream* stream, unsigned flags))                                                             \
  ENTRY(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, (CUstream* stream, unsigned flags, int priority))                       \
  ENTRY(cuStreamGetPriority, cuStreamGetPriority, 5050, (CUstream stream, int* priority))                                                     \
  ENTRY(cuStreamDestroy, cuStreamDestroy_v2, 4000, (CUstream stream))                                                                         \
  ENTRY(cuStreamGetCtx, cuStreamGetCtx, 9020, (CUstream stream, CUcontext* context))                                                          \
  ENTRY(cuStreamSynchronize, cuStreamSynchronize, 2000, (CUstream stream))                                                                    \
  ENTRY(cuStreamQuery, cuStreamQuery, 2000, (CUstream stream))                                                                                \
  ENTRY(cuStreamWaitEvent, cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned flags))                                         \
  ENTRY(cuLaunchHostFunc, cuLaunchHostFunc, 10000, (CUstream stream, CUhostFn function, void* user_data))                                     \
  ENTRY(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, (CUstream stream, CUstreamCaptureMode mode))                                    \
  ENTRY(cuStreamEndCapture, cuStreamEndCapture, 10000, (CUstream stream, CUgraph* graph))                                                     \
  ENTRY(cuStreamIsCapturing, cuStreamIsCapturing, 10000, (CUstream stream, CUstreamCaptureStatus* status))                                    \
  ENTRY(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode * mode))                            \
  ENTRY(cuEventCreate, cuEventCreate, 2000, (CUevent* event, unsigned flags))                                                                 \
  ENTRY(cuEventDestroy, cuEventDestroy_v2, 4000, (CUevent event))                                                                             \
  ENTRY(cuEventRecord, cuEventRecord, 2000, (CUevent event, CUstream stream))                                                                 \
  ENTRY(cuEventQuery, cuEventQuery, 2000, (CUevent event))                                                                                    \
  ENTRY(cuEventSynchronize, cuEventSynchronize, 2000, (CUevent event))                                                                        \
  ENTRY(cuEventElapsedTime, cuEventElapsedTime, 2000, (float* milliseconds, CUevent start, CUevent end))                                      \
  ENTRY(cuLaunchKernelEx, cuLaunchKernelEx, 11060, (const CUlaunchConfig* config, CUfunction function, void** params, void** extra))          \
  ENTRY(cuGraphInstantiate, cuGraphInstantiateWithFlags, 11040, (CUgraphExec* exec, CUgraph graph, unsigned long long flags))                 \
  ENTRY(cuGraphLaunch, cuGraphLaunch, 10000, (CUgraphExec exec, CUstream stream))                                                             \
  ENTRY(cuGraphExecDestroy, cuGraphExecDestroy, 10000, (CUgraphExec exec))                                                                    \
  ENTRY(cuGraphDestroy, cuGraphDestroy, 10000, (CUgraph graph))
// clang-format on

namespace kiln::cuda {

// cuGetProcAddress itself, looked up by dlsym as cuGetProcAddress_v2 (12.0): a library without it is too old.
using GetProcAddress = CUresult (*)(const char* name, void** function, int version, std::uint64_t flags,
                                    CUdriverProcAddressQueryResult* status);
inline constexpr int kMinimumDriver = 12000;

// A function pointer for each entry, null until loaded.
struct DriverEntries {
#define KILN_CUDA_MEMBER(name, symbol, version, params) CUresult(*name) params = nullptr;
  KILN_CUDA_ENTRIES(KILN_CUDA_MEMBER)
#undef KILN_CUDA_MEMBER
};

}  // namespace kiln::cuda
