// How the driver is told of a copy of rows; as driver_types.h, which more files need.
#pragma once
#include <cstddef>

#include "cuda/driver_types.h"

namespace kiln::cuda {

struct CUDA_MEMCPY2D {
  std::size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  struct CUarray_st* srcArray;
  std::size_t srcPitch;
  std::size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  struct CUarray_st* dstArray;
  std::size_t dstPitch;
  std::size_t WidthInBytes, Height;
};

}  // namespace kiln::cuda
