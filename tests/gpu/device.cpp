// What the driver says of itself and of the first device, and what Kiln makes of it.
#include <cstdint>

#include "cuda/ptx_target.h"
#include "kiln/kiln.h"
#include "measures.h"

namespace kiln::gpu {

using namespace kiln::cuda;

int device() {
  const Driver& d = driver();
  say("driver: %s", d.sentence.c_str());
  say("driver version: %d (CUDA %s), cuInit gives %d, devices: %d", d.version, version_text(d.version).c_str(), static_cast<int>(d.code),
      d.devices);
  if (!d.ok()) return 1;
  const std::uint32_t ptx = ptx_of_driver(d.version);
  say("PTX that Kiln takes this driver to read: up to %s", ptx_text(ptx).c_str());
  for (int ordinal = 0; ordinal < d.devices; ++ordinal) {
    CUdevice device = 0;
    char name[256] = "";
    std::size_t total = 0;
    d.call.cuDeviceGet(&device, ordinal);
    d.call.cuDeviceGetName(name, sizeof name - 1, device);
    d.call.cuDeviceTotalMem(&total, device);
    int major = 0, minor = 0;
    d.call.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    d.call.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    say("cuda:%d: %s, compute capability %d.%d, %zu bytes, compiled for: %s", ordinal, name, major, minor, total,
        best_target(static_cast<unsigned>(major * 10 + minor), ptx).c_str());
    if (ordinal != 0) continue;
    // By the numbers of CUdevice_attribute in cuda.h; those that a driver does not know are left out.
    for (int attribute = 1; attribute < 200; ++attribute) {
      int value = 0;
      if (d.call.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), device) == CUDA_SUCCESS)
        say("attribute %d: %d", attribute, value);
    }
  }
  const double began = now();
  const Client client = Client::open("cuda").value();
  say("opening the device: %.1f ms", (now() - began) * 1e3);
  std::size_t free_bytes = 0, total = 0;
  CUcontext context = nullptr;
  if (d.call.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS && d.call.cuCtxPushCurrent(context) == CUDA_SUCCESS &&
      d.call.cuMemGetInfo(&free_bytes, &total) == CUDA_SUCCESS)
    say("memory that is free: %zu of %zu bytes", free_bytes, total);
  return 0;
}

}  // namespace kiln::gpu
