// How long the device took: profile windows over a stream, and a timeline of everything that the devices did.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "kiln/runtime/client.h"

namespace kiln {

// --- windows --------------------------------------------------------------------------------------------------------------------
//
// A window measures what the device does for a stream between two points, on the device's clock: from where the work before the start is
// over to where the work before the end is over. What the device waits for in between counts, so compile first (launch once before).
// Windows nest, each with a token of its own. A launch, copy, fill or write of the stream that fails, is skipped or refused while a window
// is open marks it, late faults too: its end gives that error and no time. Where nothing was timed the error is NotMeasured; a time is
// never 0. Streams beyond the 28th share the queues of others, and their windows the time.

// Thread-safe. A window that is never ended holds two points in time of its device.
struct ProfileToken {
  std::uint64_t number = 0;  // of the window, unlike that of any other in the process; 0: none
};

// Does not wait. Errors: the device is lost; the stream is being recorded (NotInCapture).
Result<ProfileToken> start_profile(const Stream& stream);
// Starts with the stream's next launch, so that the time until then does not count. Without a launch it measures nothing: NotMeasured.
Result<ProfileToken> start_profile_at_launch(const Stream& stream);
// Waits for the stream's work. Errors: NotRegistered (no window of this stream's device, or ended before), what the window was marked with,
// NotMeasured, and as start_profile; the window is over in any event, except where the stream is being recorded.
Result<std::chrono::nanoseconds> end_profile(const Stream& stream, ProfileToken token);
// The window is over and nobody wants to know. NotRegistered as above.
Result<void> abandon_profile(const Stream& stream, ProfileToken token);

// Ends or abandons with the scope.
class ProfileWindow {
 public:
  explicit ProfileWindow(const Stream& stream, ProfileToken token) : stream_(stream), token_(token) {}
  ~ProfileWindow() {
    if (token_.number != 0) (void)abandon_profile(stream_, token_);
  }
  ProfileWindow(const ProfileWindow&) = delete;
  ProfileWindow& operator=(const ProfileWindow&) = delete;
  Result<std::chrono::nanoseconds> end() { return end_profile(stream_, std::exchange(token_, {})); }

 private:
  Stream stream_;
  ProfileToken token_;
};

// The time of what `work` enqueues on the stream. Where it returns a Result that is an error, that error. What it throws goes through.
template <class F>
Result<std::chrono::nanoseconds> profile(const Stream& stream, F&& work) {
  auto token = start_profile(stream);
  if (!token.has_value()) return token.error();
  ProfileWindow window(stream, *token);
  if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
    std::forward<F>(work)();
  } else {
    const auto result = std::forward<F>(work)();
    if constexpr (requires { result.error().causes(); }) {
      if (!result.has_value()) return result.error();
    }
  }
  return window.end();
}

// --- the timeline ---------------------------------------------------------------------------------------------------------------

// What was recorded, as chrome://tracing and ui.perfetto.dev read it: a process for each device and one for the host, a track for each
// stream; launches with kernel, source line, grid and block, copies, uploads, downloads and fills with their bytes, calls of the host,
// graphs, and on the host's tracks what was compiled.
struct Trace {
  std::string json;
  std::uint64_t operations = 0;  // that are in it
  std::uint64_t dropped = 0;     // that there was no room for, or that the device did not time
  // NotFound where the file cannot be written.
  Result<void> save(const std::string& path) const;
};

// Records every device of the process from start() to finish(), those that are opened meanwhile too. One at a time. While none runs, an
// operation pays for a look at one pointer. KILN_TRACE=FILE records from the first use of a device to the end of the process.
class Timeline {
 public:
  struct Options {
    std::size_t operations = std::size_t{1} << 16;  // that are kept of each device, and of the host; some 150 bytes each
  };
  // Waits for a moment of each device that is open. Errors: TimelineRunning; a device that cannot time.
  static Result<Timeline> start(const Options& options);
  static Result<Timeline> start() { return start(Options()); }
  Timeline(Timeline&& other) noexcept : running_(std::exchange(other.running_, 0)) {}
  Timeline& operator=(Timeline&& other) noexcept {
    std::swap(running_, other.running_);
    return *this;
  }
  ~Timeline();  // without finish(): what was recorded is forgotten. Does not wait

  // Waits for what was recorded to be over. Errors: TimelineFinished, where it was before.
  Result<Trace> finish();

 private:
  explicit Timeline(std::uint64_t running) : running_(running) {}
  std::uint64_t running_ = 0;  // which of the process; 0: finished
};

}  // namespace kiln
