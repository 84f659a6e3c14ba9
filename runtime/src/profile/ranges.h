// Ranges on the host's threads for a profiler of somebody else's, which shows device work by them.
#pragma once

namespace kiln::rt {

// Null where there is no such profiler. Thread-safe; a range ends on the thread that began it.
struct RangeSink {
  void (*push)(const char* name);
  void (*pop)();
};
const RangeSink* range_sink();  // looked for once in a process (cuda/nvtx.cpp)

}  // namespace kiln::rt
