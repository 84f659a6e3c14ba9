// Which executables and libraries of this process embed bundles, and where a kernel is in them. A constant object, so that static
// constructors of any order may register, and nothing of it is destroyed while others still look.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/runtime/bundle.h"

namespace kiln::rt {

extern std::atomic<std::uint32_t> bundle_modules;  // how many are registered
inline bool any_bundles() { return bundle_modules.load(std::memory_order_relaxed) != 0; }

// Which bundle of which module. No other one ever has the same.
struct BundlePlace {
  std::uint64_t module = 0, at = 0;
  bool operator==(const BundlePlace&) const = default;
};

// Calls `use` with each bundle that is embedded under a kernel's name, in the order in which the modules came, and its module's path. Until
// it returns the module stays mapped, and whoever unloads one waits, with the loader's lock: so `use` reads, copies (Bundle::held) and does
// nothing else, no unpacking either, whose memory of a thread makes the loader's lock needed. Returns a sentence for each that is damaged.
std::vector<std::string> each_embedded(std::string_view kernel,
                                       const std::function<void(const Bundle& bundle, const std::string& module, BundlePlace place)>& use);
bool is_embedded(std::string_view kernel);  // under that name, be it of use or not
// The names of all kernels that are embedded, sorted, each once.
std::vector<std::string> embedded_kernels();
// The sentences about what is embedded and cannot be read, and about modules that could not be registered.
std::vector<std::string> embedded_problems();

}  // namespace kiln::rt
