#include "src/server_log.h"

#include <string>

#include "src/allocation.h"

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

void tell_launch(const Server& device, std::uint64_t stream, const LaunchRequest& request, const Result<void>& result,
                 bool dropped) noexcept {
  write(LogArea::Launch, LogLevel::Debug, [&] {
    const LaunchConfig& c = request.config;
    std::string text = of(device) + "kernel '" + (request.variant != nullptr ? request.variant->name() : std::string()) + "' on stream " +
                       std::to_string(stream) + ", grid " + three(c.grid) + ", block " + three(c.block);
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
  write(LogArea::Stream, LogLevel::Debug, [&] {
    return of(device) + "waited for " + (stream != nullptr ? "stream " + std::to_string(*stream) : std::string("all streams"));
  });
}

void tell_failure(const Server& device, const Error& error, bool lost) noexcept {
  if (lost && logs(LogArea::Failure, LogLevel::Warning)) {
    write(LogArea::Failure, LogLevel::Warning, [&] { return of(device) + "the device is lost to this process: " + error.root().text(); });
  } else if (logs(LogArea::Failure, LogLevel::Info)) {
    write(LogArea::Failure, LogLevel::Info, [&] { return of(device) + error.text(); });
  }
}

}  // namespace kiln::rt
