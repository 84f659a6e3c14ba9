// The mode overrides of the process, as launches ask for them.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "kiln/runtime/modes.h"

namespace kiln::rt {

extern std::atomic<std::uint32_t> open_overrides;  // of the process and of streams
// None, and every launch runs: what a launch asks first. One load.
inline bool any_override() { return open_overrides.load(std::memory_order_relaxed) != 0; }
// Allocates nothing. O(overrides of streams).
LaunchMode mode_of_launch(const Server& server, std::uint64_t stream);
// Whether a launch there, now, does not run.
inline bool dropped_now(const Server& server, std::uint64_t stream) {
  return any_override() && drops_launch(mode_of_launch(server, stream));
}

// The collector that registrations count to now; null: to none.
std::shared_ptr<StatisticsState> open_collector();
// The server has queued kernels, which are to be compiled when the last override closes.
void note_queued(const std::shared_ptr<Server>& server);

}  // namespace kiln::rt
