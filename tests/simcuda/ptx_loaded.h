// A loaded module: its text, its decoded functions, its variables in a device's memory.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "simcuda/engine.h"
#include "simcuda/ptx_ast.h"
#include "simcuda/ptx_code.h"

namespace kiln::simcuda::ptx {

// A kernel with everything that can be reached from it. Functions are decoded anew for each entry, because the addresses of shared memory
// depend on it.
struct EntryCode {
  const Function* function = nullptr;
  std::vector<std::unique_ptr<Function>> functions;  // by their number in the module; null: not reached
  std::uint32_t static_shared = 0, dynamic_begin = 0;
  std::uint64_t local_bytes = 0;  // of a thread, calls included
  std::uint32_t memory_ops = 0;
  unsigned granule = 16, any_granule = 16;  // the smallest access, of shared and of any memory
  bool fences = false, recursive = false, clusters = false;
};

struct LoadedModule {
  std::unique_ptr<ModuleDecl> decl;
  std::vector<EntryInfo> entries;
  std::vector<EntryCode> code;  // by entry
  std::map<std::string, Global> globals;
  std::vector<std::uint64_t> allocations;
  Memory* memory = nullptr;
  LoadedModule() = default;
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
};

}  // namespace kiln::simcuda::ptx

namespace kiln::simcuda {
class Module {
 public:
  ptx::LoadedModule loaded;
};
}  // namespace kiln::simcuda
