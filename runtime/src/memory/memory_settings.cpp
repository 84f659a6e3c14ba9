#include "src/memory/memory_settings.h"

#include <string>

#include "src/config.h"

namespace kiln::rt {

MemoryPools MemorySettings::applied_to(const MemoryPools& layout) const {
  MemoryPools begins = pools.value_or(layout);
  if (keep) begins.keep = keep;
  begins.persistent = persistent;
  return begins;
}

MemorySettings configured_memory(const DeviceProperties& device) {
  MemorySettings all;
  const std::string pools = configured_text(Setting::MemoryPools), persistent = configured_text(Setting::MemoryPersistent);
  if (pools == "sub_slices") all.pools = MemoryPools::sub_slices(device, configured_number(Setting::MemoryMaxPage));
  if (pools == "exclusive_pages") all.pools = MemoryPools::exclusive_pages();
  if (!configured_text(Setting::MemoryKeep).empty()) all.keep = configured_number(Setting::MemoryKeep);
  if (persistent == "size_match") all.persistent = PersistentPolicy::SizeMatch;
  if (persistent == "disabled") all.persistent = PersistentPolicy::Disabled;
  if (persistent == "enforced") all.persistent = PersistentPolicy::Enforced;
  all.deferred = {configured_number(Setting::MemoryDeferred), configured_number(Setting::MemoryDeferredBytes)};
  return all;
}

}  // namespace kiln::rt
