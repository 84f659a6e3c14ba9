#include "cuda/nvtx.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "src/config.h"

namespace kiln::cuda {
namespace {

// The injection interface of NVTX 3, as its documentation has it: a profiler's library has InitializeInjectionNvtx2, which asks for tables
// of slots by module and puts its functions into those that it wants called.
using Slot = void (*)();
constexpr unsigned kSlots = 16;
constexpr unsigned kModules = 7;  // numbered from 1 on: core, then those of CUDA, OpenCL, the runtime, the domains and synchronisation
constexpr unsigned kCore = 1, kRangePushA = 9, kRangePop = 11;

struct Tables {
  std::array<std::array<Slot, kSlots>, kModules> slots{};
  std::array<std::array<Slot*, kSlots + 1>, kModules> places{};  // the first and the last are null
};
Tables& tables() {
  static Tables& t = *[] {
    auto* made = new Tables;
    for (unsigned m = 1; m < kModules; ++m)
      for (unsigned i = 1; i < kSlots; ++i) made->places[m][i] = &made->slots[m][i];
    return made;
  }();
  return t;
}

int function_table(std::uint32_t module, Slot*** table, unsigned* size) {
  if (module == 0 || module >= kModules || table == nullptr) return 0;
  *table = tables().places[module].data();
  if (size != nullptr) *size = kSlots;
  return 1;
}

struct Callbacks {
  std::size_t size = sizeof(Callbacks);
  int (*function_table)(std::uint32_t, Slot***, unsigned*) = &cuda::function_table;
};
struct VersionInfo {
  std::size_t size = sizeof(VersionInfo);
  std::uint32_t version = 3, reserved = 0;
  void (*set_injection_version)(std::uint32_t) = [](std::uint32_t) {};
};

const void* export_table(std::uint32_t id) {
  static const Callbacks callbacks;
  static const VersionInfo version;
  return id == 1 ? static_cast<const void*>(&callbacks) : id == 3 ? &version : nullptr;
}

using Push = int (*)(const char*);
using Pop = int (*)();
Push push_range = nullptr;
Pop pop_range = nullptr;
constexpr rt::RangeSink kSink{[](const char* name) { push_range(name); }, [] { pop_range(); }};

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(reinterpret_cast<std::uintptr_t>(dlsym(library, name)));
}

}  // namespace

const rt::RangeSink* open_nvtx(const std::string& library, std::string& why) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* said = dlerror();
    why = said != nullptr ? said : "'" + library + "' cannot be opened";
    return nullptr;
  }
  push_range = symbol<Push>(handle, "nvtxRangePushA");
  pop_range = symbol<Pop>(handle, "nvtxRangePop");
  if (push_range != nullptr && pop_range != nullptr) return &kSink;
  const auto initialise = symbol<int (*)(const void* (*)(std::uint32_t))>(handle, "InitializeInjectionNvtx2");
  if (initialise == nullptr) {
    why = "'" + library + "' is no library of NVTX: it has neither nvtxRangePushA and nvtxRangePop nor InitializeInjectionNvtx2";
    return nullptr;
  }
  const int taken = initialise(&export_table);
  const std::array<Slot, kSlots>& core = tables().slots[kCore];
  push_range = reinterpret_cast<Push>(core[kRangePushA]);
  pop_range = reinterpret_cast<Pop>(core[kRangePop]);
  if (taken != 0 && push_range != nullptr && pop_range != nullptr) return &kSink;
  why = "'" + library + "' does not want to hear of ranges";
  return nullptr;
}

}  // namespace kiln::cuda

namespace kiln::rt {

// KILN_NVTX: off, on, or a library. Without it: where a profiler asks to be loaded.
const RangeSink* range_sink() {
  static const RangeSink* const sink = []() -> const RangeSink* {
    const char* injected = std::getenv("NVTX_INJECTION64_PATH");  // NVIDIA's variable
    std::string library = configured_text(Setting::Nvtx);
    const bool by_name = !library.empty();
    if (library == "off" || library == "0") return nullptr;
    if (library == "on" || library == "1") library.clear();
    if (library.empty() && injected != nullptr) library = injected;
    if (library.empty() && by_name) library = "libnvToolsExt.so.1";
    if (library.empty()) return nullptr;
    std::string why;
    const RangeSink* found = cuda::open_nvtx(library, why);
    if (found == nullptr) std::fputs(("kiln: no NVTX ranges: " + why + "\n").c_str(), stderr);
    return found;
  }();
  return sink;
}

}  // namespace kiln::rt
