// cuGetProcAddress, and the simulated driver's own C interface.
#include <algorithm>
#include <cstring>
#include <exception>

#include "simcuda/driver_simcuda.h"
#include "simcuda/driver_state.h"

namespace kiln::cuda {
// Exported beside the entries of the list.
KILN_SIMCUDA_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags,
                                                 CUdriverProcAddressQueryResult* status);
KILN_SIMCUDA_EXPORT CUresult cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags);
}  // namespace kiln::cuda

namespace kiln::simcuda {
namespace {

struct Known {
  const char* name;
  int since;
  void* function;
};

const Known* find_entry(const char* name) {
  static const Known known[] = {
#define KILN_SIMCUDA_KNOWN(entry, symbol, version, params) {#entry, version, reinterpret_cast<void*>(&cuda::symbol)},
      KILN_CUDA_ENTRIES(KILN_SIMCUDA_KNOWN)
#undef KILN_SIMCUDA_KNOWN
          {"cuGetProcAddress", 12000, reinterpret_cast<void*>(&cuda::cuGetProcAddress_v2)},
  };
  for (const Known& k : known)
    if (std::strcmp(k.name, name) == 0) return &k;
  return nullptr;
}

CUresult look_up(const char* name, void** function, int version, std::uint64_t flags, CUdriverProcAddressQueryResult& status) {
  Driver& driver = Driver::get();
  const Lock lock(driver.mutex);
  if (name == nullptr || function == nullptr || flags > 1) return CUDA_ERROR_INVALID_VALUE;  // 2: per-thread default streams, not simulated
  *function = nullptr;
  if (version > driver.driver_version()) return CUDA_ERROR_INVALID_VALUE;
  const Known* known = find_entry(name);
  const auto& missing = driver.script.missing;
  if (known == nullptr || known->since > driver.driver_version() || std::find(missing.begin(), missing.end(), name) != missing.end()) {
    status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  } else if (known->since > version) {
    status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  } else {
    status = CU_GET_PROC_ADDRESS_SUCCESS;
    *function = known->function;
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace kiln::simcuda

namespace kiln::cuda {
using namespace kiln::simcuda;

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags, CUdriverProcAddressQueryResult* status) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult code = look_up(name, function, version, flags, found);
  if (code == CUDA_SUCCESS && status != nullptr) *status = found;
  return code;
}

// The form of CUDA 11.3: what is not there is an error.
CUresult cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult code = look_up(name, function, version, flags, found);
  if (code != CUDA_SUCCESS) return code;
  return found == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace kiln::cuda

using kiln::simcuda::Driver;
using kiln::simcuda::Lock;

int kiln_simcuda_configure(const char* json) {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  try {
    driver.configure(lock, json == nullptr ? "{}" : json);
    return 0;
  } catch (const std::exception& e) {
    driver.report(std::string("kiln_simcuda_configure: ") + e.what());
    return 1;
  }
}

void kiln_simcuda_reset() {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  driver.reset(lock);
}

const char* kiln_simcuda_last_report() {
  static thread_local std::string text;
  Driver& driver = Driver::get();
  const Lock lock(driver.mutex);
  text = driver.last_report;
  return text.c_str();
}

unsigned long long kiln_simcuda_count(const char* what) {
  Driver& driver = Driver::get();
  const Lock lock(driver.mutex);
  const std::string name = what == nullptr ? "" : what;
  if (name == "launches") return driver.launches;
  if (name == "instructions") return driver.instructions;
  if (name == "reports") return driver.reports;
  if (name == "streams") return driver.streams.size();
  if (name == "events") return driver.events.size();
  if (name == "modules") return driver.modules.size();
  if (name == "graphs") return driver.graphs.size() + driver.graph_execs.size();
  if (name == "pinned") return driver.pinned_memory.size();
  if (name == "pending") return driver.scheduler.unfinished().size();
  unsigned long long n = 0;
  for (const auto& context : driver.contexts)
    n += name == "allocations" ? context.allocations : name == "contexts" ? static_cast<unsigned long long>(context.active()) : 0;
  return n;
}
