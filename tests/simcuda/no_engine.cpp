// Stands in for the engine where the tree has none: modules cannot be loaded, everything else of the driver works.
#include "simcuda/engine.h"

namespace kiln::simcuda {

class Module {};
LoadResult load(const std::string&, const Target&, Memory&) {
  return {nullptr, {cuda::CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "simulated driver: built without the engine that executes PTX"}};
}
const std::vector<EntryInfo>& entries(const Module&) {
  static const std::vector<EntryInfo> none;
  return none;
}
std::optional<Global> global(const Module&, const std::string&) { return std::nullopt; }
std::string Violation::text() const { return what; }
RunResult run(const Launch&, Memory&, const Options&) { return {}; }

}  // namespace kiln::simcuda
