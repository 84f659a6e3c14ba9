// How a stream is called before people: in the log, in errors and in timelines.
#pragma once
#include <cstdint>
#include <string>

#include "kiln/runtime/client.h"
#include "src/events.h"

namespace kiln::rt {

// Streams are counted from 0 on, those of each priority for themselves.
constexpr std::uint64_t stream_number(std::uint64_t stream) { return stream & ~(std::uint64_t{7} << kStreamPriorityShift); }
std::string stream_name(std::uint64_t stream);  // "5", "0 (high)", "28 (adopted)"
std::string stream_text(std::uint64_t stream);  // "stream 5"

}  // namespace kiln::rt
