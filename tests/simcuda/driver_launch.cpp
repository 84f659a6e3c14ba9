#include "simcuda/driver_launch.h"

#include <algorithm>

namespace kiln::simcuda {
namespace {

constexpr unsigned kWarp = 32;
constexpr std::uint32_t kMostLocal = 512 * 1024;  // bytes of a thread
constexpr unsigned kPortableCluster = 8, kLargestCluster = 16;
constexpr unsigned kMostRegisters = 255;
constexpr unsigned kRegisterStep = 256;  // registers are given to a warp in steps of
constexpr std::uint64_t kSharedStep = 128;

std::uint64_t up(std::uint64_t v, std::uint64_t to) { return (v + to - 1) / to * to; }

std::uint64_t limit(const Function& f, CUdevice_attribute a) {
  return static_cast<std::uint64_t>(f.module->context->description.attribute(a));
}

std::uint64_t registers_of_warp(const Function& f) { return up(std::uint64_t{registers(f)} * kWarp, kRegisterStep); }

}  // namespace

unsigned registers(const Function& f) { return std::clamp(f.info().registers, 1u, kMostRegisters); }

std::uint64_t max_threads(const Function& f) {
  std::uint64_t threads = limit(f, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  threads = std::min(threads, limit(f, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK) / registers_of_warp(f) * kWarp);
  for (const auto& bound : {f.info().maxntid, f.info().reqntid})
    if (bound.has_value()) {
      std::uint64_t bounded = 1;
      for (const std::uint32_t d : *bound) bounded = std::min(threads, bounded * d);  // none of them is 0
      threads = bounded;
    }
  return threads;
}

unsigned max_cluster(const Function& f) { return f.non_portable_cluster ? kLargestCluster : kPortableCluster; }

std::uint64_t resident_blocks(const Function& f, std::uint64_t threads, std::uint64_t dynamic_shared) {
  if (threads == 0 || threads > max_threads(f)) return 0;
  const std::uint64_t warps = up(threads, kWarp) / kWarp;
  std::uint64_t blocks = limit(f, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  blocks = std::min(blocks, limit(f, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / kWarp / warps);
  blocks = std::min(blocks, limit(f, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) / registers_of_warp(f) / warps);
  const std::uint64_t own = f.info().static_shared + dynamic_shared;
  if (own > limit(f, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)) return 0;
  const std::uint64_t shared = up(own + limit(f, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK), kSharedStep);
  if (shared != 0) blocks = std::min(blocks, limit(f, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / shared);
  return blocks;
}

std::uint64_t capacity(const Function& f, const LaunchShape& shape) {
  return resident_blocks(f, shape.threads(), shape.dynamic_shared) * limit(f, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

CUresult read_shape(const CUlaunchConfig& config, const Function& f, LaunchShape& shape) {
  shape.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
  shape.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
  shape.dynamic_shared = config.sharedMemBytes;
  if (config.numAttrs != 0 && config.attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& a = config.attrs[i];
    switch (a.id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE: break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: shape.cooperative = a.value.cooperative != 0; break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        shape.has_cluster = true;
        shape.cluster = {a.value.clusterDim.x, a.value.clusterDim.y, a.value.clusterDim.z};
        break;
      default: return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  const auto& required = f.required_cluster;
  if (required == std::array<int, 3>{}) return CUDA_SUCCESS;
  std::array<std::uint32_t, 3> own{};
  for (std::size_t d = 0; d < 3; ++d) own[d] = static_cast<std::uint32_t>(required[d]);
  if (shape.has_cluster && shape.cluster != own) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  shape.has_cluster = true;
  shape.cluster = own;
  return CUDA_SUCCESS;
}

CUresult check_cluster(const Function& f, const LaunchShape& shape) {
  if (!shape.has_cluster) return CUDA_SUCCESS;
  std::uint64_t size = 1;
  for (const std::uint32_t d : shape.cluster) {
    if (d == 0 || d > kLargestCluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    size *= d;
  }
  if (size == 1) return CUDA_SUCCESS;
  if (limit(f, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (size > max_cluster(f)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  for (std::size_t d = 0; d < 3; ++d)
    if (shape.grid[d] % shape.cluster[d] != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return CUDA_SUCCESS;
}

CUresult check_launch(const Function& f, const LaunchShape& shape) {
  const EntryInfo& info = f.info();
  constexpr CUdevice_attribute grid_limits[] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                                CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
  constexpr CUdevice_attribute block_limits[] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                                 CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
  for (std::size_t d = 0; d < 3; ++d)
    if (shape.grid[d] == 0 || shape.grid[d] > limit(f, grid_limits[d])) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t d = 0; d < 3; ++d)
    if (shape.block[d] == 0 || shape.block[d] > limit(f, block_limits[d])) return CUDA_ERROR_INVALID_VALUE;
  if (shape.threads() > limit(f, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)) return CUDA_ERROR_INVALID_VALUE;
  if (info.reqntid.has_value() && *info.reqntid != shape.block) return CUDA_ERROR_INVALID_VALUE;
  if (shape.threads() > max_threads(f)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (info.local_bytes > kMostLocal) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (shape.dynamic_shared > static_cast<std::uint64_t>(f.max_dynamic_shared)) return CUDA_ERROR_INVALID_VALUE;
  if (std::uint64_t{info.static_shared} + shape.dynamic_shared > limit(f, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;  // the static part alone is too much
  if (const CUresult code = check_cluster(f, shape); code != CUDA_SUCCESS) return code;
  if (!shape.cooperative) return CUDA_SUCCESS;
  if (limit(f, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  return shape.blocks() > capacity(f, shape) ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

}  // namespace kiln::simcuda
