#include "src/stream_text.h"

namespace kiln::rt {

std::string stream_name(std::uint64_t stream) {
  std::string name = std::to_string(stream_number(stream));
  if (is_adopted(stream)) return name + " (adopted)";
  if ((stream & kAdoptedStream) != 0) return name + " (of a host call)";
  switch (stream_priority(stream)) {
    case StreamPriority::High: return name + " (high)";
    case StreamPriority::Low: return name + " (low)";
    case StreamPriority::Normal: break;
  }
  return name;
}

std::string stream_text(std::uint64_t stream) { return "stream " + stream_name(stream); }

}  // namespace kiln::rt
