// A variant as launches name it, and what kernels that are recorded and kernels that are embedded have in common.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/dsl/kernel.h"

namespace kiln::dsl {

struct VariantSlot {
  explicit VariantSlot(const ConfigBits& key_) : key(key_) {}
  ConfigBits key;
  mutable std::once_flag once;
  mutable std::shared_ptr<const Variant> variant;  // set once
  mutable std::optional<Error> error;              // of recording, or the space's refusal
};
const VariantSlot& no_slot();  // in the place of one that the host had no memory for

std::string type_text(const ParamSpec& param);  // "In<f32, 2>"
// A kernel without a body: what a launch of a kernel that is not to be had is held to. `where` may be of no line.
ir::Kernel signature_kernel(const std::string& name, std::span<const ParamSpec> params, const std::vector<std::string>& names,
                            const Where& where);
// The host has no memory: what the launch was to write carries that. The error of the launch.
Error claim_outputs(std::span<const ParamSpec> params, std::span<const LaunchArg> args) noexcept;

}  // namespace kiln::dsl
