// As a profiler's library, which puts its functions into the tables that it is given (NVTX 3). Written after the documentation of that
// interface, not after what is tested with it.
#include <cstddef>
#include <cstdint>

#include "record.h"

namespace {

using Function = void (*)();
struct ExportedCallbacks {
  std::size_t struct_size;
  int (*get_module_function_table)(std::uint32_t module, Function*** table, unsigned* size);
};
struct ExportedVersion {
  std::size_t struct_size;
  std::uint32_t version, reserved;
  void (*set_injection_version)(std::uint32_t version);
};

int push(const char* name) { return fake_nvtx::record(std::string("push ") + name); }
int pop() { return fake_nvtx::record("pop"); }

}  // namespace

extern "C" int InitializeInjectionNvtx2(const void* (*get_export_table)(std::uint32_t)) {
  const auto* version = static_cast<const ExportedVersion*>(get_export_table(3));
  if (version != nullptr && version->struct_size >= sizeof(ExportedVersion)) version->set_injection_version(3);
  const auto* callbacks = static_cast<const ExportedCallbacks*>(get_export_table(1));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(ExportedCallbacks)) return 0;
  if (get_export_table(77) != nullptr) return 0;
  Function** core = nullptr;
  Function** domains = nullptr;
  unsigned size = 0, size_of_domains = 0;
  if (callbacks->get_module_function_table(1, &core, &size) == 0 || size <= 11) return 0;
  if (callbacks->get_module_function_table(5, &domains, &size_of_domains) == 0 || size_of_domains <= 15) return 0;
  if (core[0] != nullptr || core[size] != nullptr) return 0;
  *core[9] = reinterpret_cast<Function>(&push);
  *core[11] = reinterpret_cast<Function>(&pop);
  for (unsigned i = 1; i < size_of_domains; ++i) *domains[i] = nullptr;  // there is a slot for each
  return 1;
}
