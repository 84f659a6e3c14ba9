#include "src/server_log.h"

#include <string>

#include "src/allocation.h"
#include "src/capture/instances.h"
#include "src/stream_text.h"

namespace kiln::rt {
namespace {

template <class Text>
void write(LogArea area, LogLevel level, Text&& text) noexcept {
  try {
    say(area, level, text());
  } catch (...) {  // no memory for the line
  }
}

std::string of(const Server& device) { return device.label() + ": "; }
std::string three(const Dim3& d) { return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")"; }

}  // namespace

void tell_launch(const Server& device, std::uint64_t stream, const LaunchRequest& request, const LaunchConfig& c,
                 const Result<void>& result, bool dropped) noexcept {
  write(LogArea::Launch, LogLevel::Debug, [&] {
    std::string text =
        of(device) + "kernel '" + (request.variant != nullptr ? request.variant->name() : std::string()) + "' on " + stream_text(stream);
    if (c.elements != 0) text += ", automatic(" + std::to_string(c.elements) + ")";  // nothing was chosen
    else
      text += ", grid " + (request.dynamic_grid != nullptr ? std::string("from the device") : three(c.grid)) + ", block " + three(c.block);
    if (c.shared_bytes != 0) text += ", " + std::to_string(c.shared_bytes) + " bytes of dynamic shared memory";
    if (!result.has_value()) return text + ": " + name(result.error().code());
    return text + (dropped ? ": dropped" : ": enqueued");
  });
}

void tell_allocation(const Server& device, std::uint64_t bytes, const Result<Memory>& result) noexcept {
  write(LogArea::Memory, LogLevel::Debug, [&] {
    const std::string text = of(device) + std::to_string(bytes) + " bytes";
    if (!result.has_value()) return text + " refused: " + name(result.error().code());
    return text + " allocated" + (*result != nullptr ? " as memory " + std::to_string((*result)->id) : std::string());
  });
}

void tell_free(const Server& device, std::uint64_t memory, std::uint64_t bytes) noexcept {
  write(LogArea::Memory, LogLevel::Debug,
        [&] { return of(device) + "memory " + std::to_string(memory) + " of " + std::to_string(bytes) + " bytes freed"; });
}

void tell_wait(const Server& device, const std::uint64_t* stream) noexcept {
  write(LogArea::Stream, LogLevel::Debug,
        [&] { return of(device) + "waited for " + (stream != nullptr ? stream_text(*stream) : std::string("all streams")); });
}

void tell_capture(const Server& device, std::uint64_t stream, const char* what) noexcept {
  write(LogArea::Capture, LogLevel::Debug, [&] { return of(device) + "the capture of " + stream_text(stream) + " was " + what; });
}

void tell_graph(const Server& device, std::uint64_t stream, const GraphBody& graph) noexcept {
  write(LogArea::Capture, LogLevel::Info, [&] {
    return of(device) + *graph.name + ", captured on " + stream_text(stream) + " at " + graph.place + ": " +
           std::to_string(graph.ops.size()) + " operations, " + *graph.label;
  });
}

void tell_no_graph(const Server& device, std::uint64_t stream, const Error& why) noexcept {
  write(LogArea::Capture, LogLevel::Info,
        [&] { return of(device) + "the capture of " + stream_text(stream) + " gave no graph: " + why.text(); });
}

void tell_replay(const Server& device, std::uint64_t stream, const GraphBody& graph, const Result<void>& result, bool dropped) noexcept {
  write(LogArea::Capture, LogLevel::Debug, [&] {
    return of(device) + "replay of " + *graph.name + " on " + stream_text(stream) + ": " +
           (!result.has_value() ? name(result.error().code())
            : dropped           ? "dropped"
                                : "enqueued");
  });
}

void tell_window(const Server& device, std::uint64_t stream, std::uint64_t window, const char* what,
                 const Result<std::chrono::nanoseconds>* time) noexcept {
  write(LogArea::Profile, LogLevel::Debug, [&] {
    std::string text = of(device) + "profile window " + std::to_string(window) + " on " + stream_text(stream) + ": " + what;
    if (time == nullptr) return text;
    return text + (time->has_value() ? ", " + std::to_string((*time)->count()) + " ns" : std::string(", ") + name(time->error().code()));
  });
}

void tell_unheard(const Server& device, const Error& error) noexcept {
  if (!logs(LogArea::Failure, LogLevel::Warning)) return;
  write(LogArea::Failure, LogLevel::Warning,
        [&] { return of(device) + "a launch failed that writes nothing, so that no read will tell: " + error.text(); });
}

void tell_failure(const Server& device, const Error& error, bool lost) noexcept {
  if (lost && logs(LogArea::Failure, LogLevel::Warning)) {
    write(LogArea::Failure, LogLevel::Warning, [&] { return of(device) + "the device is lost to this process: " + error.root().text(); });
  } else if (logs(LogArea::Failure, LogLevel::Info)) {
    write(LogArea::Failure, LogLevel::Info, [&] { return of(device) + error.text(); });
  }
}

}  // namespace kiln::rt
