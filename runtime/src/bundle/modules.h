// Which executables and libraries of this process embed bundles, and where a kernel is in them. A constant object, so that static
// constructors of any order may register, and nothing of it is destroyed while others still look.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/runtime/bundle.h"

namespace kiln::rt {

extern std::atomic<std::uint32_t> bundle_modules;  // how many are registered
inline bool any_bundles() { return bundle_modules.load(std::memory_order_relaxed) != 0; }
// While one lives its module stays mapped, and whoever unloads it waits: read, and do nothing that blocks.
class ModulePin {
 public:
  explicit ModulePin(BundleModule::State* state) : state_(state) {}  // counted already
  ModulePin(ModulePin&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  ModulePin& operator=(ModulePin&&) = delete;
  ~ModulePin();
  BundleModule::State& operator*() const { return *state_; }

 private:
  BundleModule::State* state_;
};

// A bundle that a module embeds.
struct EmbeddedBundle {
  Bundle bundle;
  std::string module;  // its path
};
// What is embedded under a kernel's name, in the order in which the modules came.
struct Embedded {
  std::vector<ModulePin> pins;  // first, so that they go last
  std::vector<EmbeddedBundle> bundles;
  std::vector<std::string> problems;  // of modules that hold something that cannot be read
};
Embedded find_embedded(std::string_view kernel);
bool is_embedded(std::string_view kernel);  // under that name, be it of use or not
// The names of all kernels that are embedded, sorted, each once.
std::vector<std::string> embedded_kernels();
// The sentences about what is embedded and cannot be read, and about modules that could not be registered.
std::vector<std::string> embedded_problems();

}  // namespace kiln::rt
