// The CUDA device: Kiln's device interface over the driver's API.
#pragma once
#include <memory>

#include "cuda/driver.h"
#include "src/device.h"

namespace kiln::rt {

struct CudaOptions {
  std::uint64_t pool_limit = 0;  // bytes of unused memory that are kept for the next buffers; 0: a quarter of the device's
};
// The driver must outlive the device. Errors: the driver's state when it is not ok; no such device; one that is too old.
Result<std::unique_ptr<Device>> make_cuda_device(const cuda::Driver& driver, int ordinal, const CudaOptions& options = {});

}  // namespace kiln::rt
