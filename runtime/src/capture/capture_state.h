// Where the capture of one queue stands.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "kiln/runtime/error.h"
#include "src/capture/recording.h"

namespace kiln::rt {

enum class CapturePhase : std::uint8_t { None, Prepared, Recording };

// Not synchronised. A queue is captured on behalf of one of the streams that are folded on it, its owner; only what the owner issues is
// recorded. An error changes nothing, but where it says so.
class CaptureState {
 public:
  CapturePhase phase() const { return phase_; }
  std::uint64_t owner() const { return owner_; }  // while there is one

  Result<void> prepare(std::uint64_t owner);  // CaptureOpen
  Result<void> begin();                       // CaptureNotPrepared
  // Its end, on behalf of `caller`.
  struct Ended {
    bool owned = false;  // else abandoned: by another than the owner
    std::uint64_t owner = 0;
    std::optional<Error> failure;  // what doomed it
    Recording recording;           // to be dropped without a lock
  };
  Result<Ended> end(std::uint64_t caller);  // CaptureNotRecording; it is over then, too
  Recording abort();                        // whatever there is, to be dropped without a lock

  Recording* recording() { return phase_ == CapturePhase::Recording ? &recording_ : nullptr; }
  // An operation could not be recorded. The first one counts.
  void fail(const Error& why);

 private:
  CapturePhase phase_ = CapturePhase::None;
  std::uint64_t owner_ = 0;
  std::optional<Error> failure_;
  Recording recording_;
};

// What is wrong with the way a stream is captured.
Error capture_error(const char* rule, std::string message);
Error capture_not_prepared(std::uint64_t stream, CapturePhase phase);
Error capture_not_recording(std::uint64_t stream, CapturePhase phase);
// Of an end() that gives no graph.
Error capture_doomed(std::uint64_t stream, const Error& why);
Error capture_abandoned(std::uint64_t owner, std::uint64_t caller, const std::optional<Error>& doomed);

}  // namespace kiln::rt
