// The process's timeline: which servers there are, what the host does, and the file that KILN_TRACE asks for.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>

#include "kiln/runtime/profile.h"
#include "src/profile/trace.h"

namespace kiln::rt {

class LocalServer;

// Each server that is made is told here, and is recorded where a timeline runs. The first one looks at KILN_TRACE.
void timeline_sees(const std::shared_ptr<LocalServer>& server);
// Of a server that goes: what was recorded of it is kept.
void timeline_keeps(std::uint64_t timeline, DeviceTrace trace);

// The timeline that runs; 0: none.
inline std::atomic<std::uint64_t>& running_timeline() {
  static std::atomic<std::uint64_t> running{0};
  return running;
}

// Something that the host takes its time for, on the thread that it runs on: a span of the timeline and a range for profilers of others.
class HostSpan {
 public:
  HostSpan(const char* what, const std::string& kernel);
  HostSpan(std::uint64_t stream, const std::source_location& where) noexcept;  // a host call of the stream
  ~HostSpan();
  HostSpan(const HostSpan&) = delete;
  HostSpan& operator=(const HostSpan&) = delete;

 private:
  void begin(const char* range) noexcept;

  TracedSpan span_;  // its strings are there while a timeline runs
  const std::uint64_t timeline_;
};

}  // namespace kiln::rt
