// A launch that is checked once and then enqueued many times.
#pragma once
#include <memory>
#include <span>

#include "kiln/runtime/client.h"

namespace kiln {

namespace rt {
struct PreparedState;
}

// Everything that a launch checks was checked when it was made: the arguments, the configuration, requirements, aliasing; and the program
// is there. A launch of it does what is left: claims, skips, order of streams and late faults are those of any launch, and it allocates
// nothing. It keeps its buffers alive; the variant must outlive it. Launching is thread-safe, except beside rebind(). One that was moved
// from is of no use any more (PreparedGone).
class PreparedLaunch {
 public:
  // Errors are those of launch(); nothing is claimed, since nothing was launched. `request.args` are copied.
  static Result<PreparedLaunch> prepare(const Stream& stream, const LaunchRequest& request);
  PreparedLaunch(PreparedLaunch&&) noexcept;
  PreparedLaunch& operator=(PreparedLaunch&&) noexcept;
  ~PreparedLaunch();

  Result<void> operator()() const;              // on the stream it was prepared for
  Result<void> on(const Stream& stream) const;  // on another stream of the device. ForeignHandle: of another device; nothing is touched
  // Other buffers and numbers, checked as the first ones were. On an error the former ones stay.
  Result<void> rebind(std::span<const LaunchArg> args);
  // Throw kiln::Exception where it was moved from.
  const Stream& stream() const;
  const LaunchConfig& config() const;  // with the block and grid that were chosen, where that was left to the runtime

 private:
  explicit PreparedLaunch(std::unique_ptr<rt::PreparedState> state);
  std::unique_ptr<rt::PreparedState> state_;
};

}  // namespace kiln
