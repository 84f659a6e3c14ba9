#include "cuda/driver.h"

#include <dlfcn.h>
#include <link.h>

#include "cuda/errors.h"
#include "src/config.h"

namespace kiln::cuda {
namespace {

std::string path_of(void* library, const std::string& asked) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr && *map->l_name != 0) return map->l_name;
  return asked;
}

// A stub comes from the toolkit's folder for the linker; a driver may still be found under another name.
bool worth_going_on(DriverState state) { return state == DriverState::NoLibrary || state == DriverState::Stub; }

class Loader {
 public:
  explicit Loader(Driver& to) : to_(to) {}

  void load(const std::string& library) {
    void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* why = dlerror();
      to_.file = library;
      return end(DriverState::NoLibrary, why != nullptr ? why : library + " could not be opened");
    }
    to_.file = path_of(handle, library);
    examine(handle);
    if (to_.state == DriverState::Stub) dlclose(handle);
  }

 private:
  void end(DriverState state, std::string sentence) {
    to_.state = state;
    to_.sentence = std::move(sentence);
  }
  void missing(const char* symbol) {
    to_.symbol = symbol;
    end(DriverState::SymbolMissing, to_.file + " has no " + symbol +
                                        ", so it is no CUDA driver that Kiln can use; install an NVIDIA driver for CUDA " +
                                        version_text(kMinimumDriver) + " or newer");
  }
  template <class F>
  static F symbol(void* library, const char* name) {
    return reinterpret_cast<F>(dlsym(library, name));
  }

  void examine(void* library) {
    const auto init = symbol<decltype(DriverEntries::cuInit)>(library, "cuInit");
    if (init == nullptr) return missing("cuInit");
    to_.code = init(0);
    if (to_.code == CUDA_ERROR_STUB_LIBRARY) {
      return end(DriverState::Stub,
                 to_.file +
                     " is the stub library of a CUDA toolkit, which is for linking only (cuInit gives 34, "
                     "CUDA_ERROR_STUB_LIBRARY); install the NVIDIA driver, and take the stub's folder off LD_LIBRARY_PATH");
    }
    if (const auto version = symbol<decltype(DriverEntries::cuDriverGetVersion)>(library, "cuDriverGetVersion")) version(&to_.version);
    if (to_.code == CUDA_ERROR_NO_DEVICE) return no_device();
    if (to_.code != CUDA_SUCCESS) {
      const ResultRow& row = result_row(to_.code);
      return end(DriverState::InitFailed, "the CUDA driver " + to_.file + " could not start: cuInit gives " + result_text(to_.code) + ", " +
                                              row.cause + "; " + row.remedy);
    }
    const auto look_up = symbol<GetProcAddress>(library, "cuGetProcAddress_v2");
    if (look_up == nullptr || to_.version < kMinimumDriver) {
      return end(DriverState::TooOld, "the CUDA driver " + to_.file + " is for CUDA " +
                                          (to_.version != 0 ? version_text(to_.version) : std::string("of an unknown version")) +
                                          ", and Kiln needs " + version_text(kMinimumDriver) + " or newer; update the NVIDIA driver");
    }
    const char* absent = nullptr;
#define KILN_CUDA_LOAD(entry, exported, since, params) \
  if (!resolve(to_.call.entry, library, look_up, #entry, #exported, since) && absent == nullptr) absent = #exported;
    KILN_CUDA_ENTRIES(KILN_CUDA_LOAD)
#undef KILN_CUDA_LOAD
    if (absent != nullptr) return missing(absent);
    if (to_.call.cuDeviceGetCount(&to_.devices) != CUDA_SUCCESS || to_.devices <= 0) return no_device();
    end(DriverState::Ok, to_.file + ", for CUDA " + version_text(to_.version) + ", " + std::to_string(to_.devices) +
                             (to_.devices == 1 ? " device" : " devices"));
  }

  void no_device() {
    to_.devices = 0;
    end(DriverState::NoDevice, "the CUDA driver " + to_.file + " finds no GPU; is one installed, and not hidden by CUDA_VISIBLE_DEVICES?");
  }

  // False: an entry that must be there is not.
  template <class F>
  bool resolve(F& to, void* library, GetProcAddress look_up, const char* entry, const char* exported, int since) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    if (look_up(entry, &found, since, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS || status != CU_GET_PROC_ADDRESS_SUCCESS)
      found = nullptr;
    if (found == nullptr) found = dlsym(library, exported);
    to = reinterpret_cast<F>(found);
    return to != nullptr || since > kMinimumDriver;
  }

  Driver& to_;
};

}  // namespace

const char* name(DriverState state) {
  switch (state) {
    case DriverState::Ok: return "ok";
    case DriverState::NoLibrary: return "no library";
    case DriverState::Stub: return "stub";
    case DriverState::SymbolMissing: return "symbol missing";
    case DriverState::TooOld: return "too old";
    case DriverState::InitFailed: return "init failed";
    case DriverState::NoDevice: return "no device";
  }
  return "?";
}

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

Driver open_driver(const std::vector<std::string>& libraries) {
  std::string tried, reasons;
  Driver stub;
  for (const std::string& library : libraries) {
    Driver one;
    Loader(one).load(library);
    if (!worth_going_on(one.state)) return one;
    tried += (tried.empty() ? "" : ", ") + library;
    if (one.state == DriverState::Stub) {
      if (stub.state != DriverState::Stub) stub = std::move(one);
    } else {
      reasons += (reasons.empty() ? "" : "; ") + one.sentence;
    }
  }
  if (stub.state == DriverState::Stub) return stub;
  Driver none;
  none.file = tried;
  none.sentence = "no CUDA driver was found (" + reasons + "); install the NVIDIA driver";
  return none;
}

const Driver& driver() {
  static const Driver& opened = *new Driver([] {
    const std::string named = rt::configured_text(rt::Setting::CudaLibrary);
    const bool is_named = !named.empty();
    Driver found = is_named ? open_driver({named}) : open_driver({"libcuda.so.1", "libcuda.so"});
    if (is_named && !found.ok()) {
      found.sentence += "; KILN_CUDA_LIBRARY names this library: correct it, or unset it to look for the system's";
    } else if (found.state == DriverState::NoLibrary) {
      found.sentence += ", or name its library in KILN_CUDA_LIBRARY";
    }
    return found;
  }());
  return opened;
}

}  // namespace kiln::cuda
