#include "src/capture/capture_state.h"

#include <utility>

#include "src/make_error.h"
#include "src/stream_text.h"

namespace kiln::rt {

Error capture_error(const char* rule, std::string message) { return make_error(ErrorCode::Validation, rule, std::move(message)); }

Error capture_not_prepared(std::uint64_t stream, CapturePhase phase) {
  return capture_error("CaptureNotPrepared",
                       phase == CapturePhase::Recording
                           ? stream_text(stream) + " is being recorded already; end that capture first"
                           : stream_text(stream) + " cannot be recorded: its capture was not prepared, or it is over");
}

Error capture_not_recording(std::uint64_t stream, CapturePhase phase) {
  return capture_error("CaptureNotRecording",
                       phase == CapturePhase::Prepared
                           ? stream_text(stream) + " was prepared for a capture that never began; there is nothing to make a graph of"
                           : stream_text(stream) + " is not being recorded: its capture was not prepared, or it is over");
}

Error capture_doomed(std::uint64_t stream, const Error& why) {
  return make_error(why.code(), "CaptureDoomed",
                    "the capture of " + stream_text(stream) + " gives no graph, since an operation in it failed", {.causes = {why}});
}

Error capture_abandoned(std::uint64_t owner, std::uint64_t caller, const std::optional<Error>& doomed) {
  std::vector<Error> causes{capture_error("CaptureAbandoned", "the capture of " + stream_text(owner) + " was ended by " +
                                                                  stream_text(caller) + ", which is not the one that was prepared")};
  if (doomed) causes.push_back(*doomed);
  return make_error(ErrorCode::Several, {}, "The capture was torn down", {.causes = std::move(causes)});
}

Result<void> CaptureState::prepare(std::uint64_t owner) {
  if (phase_ != CapturePhase::None) {
    return capture_error("CaptureOpen", owner == owner_ ? stream_text(owner) + " is being captured already; end that capture first"
                                                        : stream_text(owner) + " shares a queue of the device with " + stream_text(owner_) +
                                                              ", which is being captured; end that capture first, or take another stream");
  }
  phase_ = CapturePhase::Prepared;
  owner_ = owner;
  return {};
}

Result<void> CaptureState::begin() {
  if (phase_ != CapturePhase::Prepared) return capture_not_prepared(owner_, phase_);
  phase_ = CapturePhase::Recording;
  return {};
}

Result<CaptureState::Ended> CaptureState::end(std::uint64_t caller) {
  const CapturePhase was = std::exchange(phase_, CapturePhase::None);
  if (was != CapturePhase::Recording) return capture_not_recording(was == CapturePhase::None ? caller : owner_, was);
  return Ended{caller == owner_, owner_, std::exchange(failure_, std::nullopt), std::exchange(recording_, Recording())};
}

Recording CaptureState::abort() {
  phase_ = CapturePhase::None;
  failure_.reset();
  return std::exchange(recording_, Recording());
}

void CaptureState::fail(const Error& why) {
  if (phase_ == CapturePhase::Recording && !failure_) failure_ = why;
}

}  // namespace kiln::rt
