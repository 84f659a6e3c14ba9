// What the simulated driver is told from outside: the devices it describes and the fault script. See README.md for both formats.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cuda/driver_types.h"
#include "simcuda/engine.h"

namespace kiln::simcuda {
using namespace kiln::cuda;

struct DeviceDescription {
  std::string name;
  std::uint64_t memory = 0;  // bytes
  std::optional<int> driver_version;
  std::optional<unsigned> ptx_version;  // 90 for 9.0; else that of the driver
  static constexpr std::size_t kAttributes = 128;
  std::array<std::optional<int>, kAttributes> attributes;  // all of CUdevice_attribute that Kiln knows
  int attribute(CUdevice_attribute a) const { return *attributes[static_cast<std::size_t>(a)]; }
  unsigned arch() const;  // 90 for 9.0
};

// Counts the events that it is asked about: true for the n-th (and the times - 1 after it), or for each when there is no n.
struct Countdown {
  std::optional<std::uint64_t> n;
  std::uint64_t times = 1;
  std::uint64_t seen = 0;
  bool hit() {
    ++seen;
    return !n.has_value() || (seen >= *n && seen - *n < times);
  }
};

struct CallFault {  // an entry point answers `code` and does nothing
  std::string name;
  Countdown when;
  CUresult code = CUDA_ERROR_UNKNOWN;
  bool sticky = false;  // and the current context is poisoned with it
};
struct AllocationFault {
  Countdown when;
  CUresult code = CUDA_ERROR_OUT_OF_MEMORY;
  bool host = false;  // pinned host memory instead of device memory
  std::optional<int> device;
};
struct KernelFault {  // a launch of this kernel ends with `code`
  std::string name;   // empty: any
  Countdown when;
  CUresult code = CUDA_ERROR_LAUNCH_FAILED;
  double after_ms = 0;  // the time it takes until then
  bool runs = false;    // the kernel's work is done before
};
struct LoadFault {
  Countdown when;
  CUresult code = CUDA_ERROR_INVALID_PTX;
  std::string log;
};
struct SlowStream {
  std::optional<unsigned> stream;  // number in the order of creation, 0: the null streams; none: all
  double ms = 0;
};
enum class Schedule : std::uint8_t { Oldest, Newest, Seeded };  // which of several ready operations starts first

struct Script {
  std::optional<CUresult> init;
  std::optional<int> driver_version;
  std::optional<std::vector<std::string>> devices;  // replaces KILN_SIMCUDA_DEVICES
  std::vector<std::string> missing;                 // entry points that cuGetProcAddress does not know
  std::vector<CallFault> calls;
  std::vector<AllocationFault> allocations;
  std::vector<KernelFault> kernels;
  std::vector<LoadFault> loads;
  std::vector<SlowStream> slow;
  double late_events_ms = 0;
  bool null_launches = false;
  bool free_in_use_is_fault = false;
  bool quiet = false;  // reports go to the file and the C API only
  Schedule schedule = Schedule::Oldest;
  Options engine;
  std::string report;  // file; replaces KILN_SIMCUDA_REPORT
};

// The first fault that is due among those that `concerns` accepts; each of these counts the event.
template <class Fault, class Concerns>
Fault* due(std::vector<Fault>& faults, Concerns concerns) {
  Fault* first = nullptr;
  for (Fault& fault : faults)
    if (concerns(fault) && fault.when.hit() && first == nullptr) first = &fault;
  return first;
}

// All throw std::runtime_error with a sentence that names the place.
Script parse_script(const std::string& json);
Script parse_script_file(const std::string& path);
DeviceDescription load_device(const std::string& name_or_path);

// The highest PTX version that a driver's JIT reads: 90 for 13.0.
unsigned ptx_version_of(int driver_version);

}  // namespace kiln::simcuda
