#include "src/device.h"

#include <cstring>
#include <string>

#include "src/make_error.h"
#include "src/profile/time_marks.h"

namespace kiln::rt {

std::byte* Task::reserve_params(std::size_t size) {
  if (size <= kInline) {
    params = inline_.data();
  } else {
    if (heap_.size() < size + 63) heap_.resize(size + 63);
    const auto at = reinterpret_cast<std::uintptr_t>(heap_.data());
    params = heap_.data() + ((at + 63) / 64 * 64 - at);
  }
  std::memset(params, 0, size);
  return params;
}

Error lost_device(ErrorCode code, const std::string& label, Error first) {
  return make_error(
      code, "DevicePoisoned",
      label + " is lost to this process since its first failure; start a new process to use it, or another device in this one",
      {.causes = {std::move(first)}});
}

namespace {

Error has_none(const Device& device, const char* what) {
  return make_error(ErrorCode::UnsupportedIo, "NotOfThisDevice", device.label() + " " + what);
}

}  // namespace

// Of a device with the host's clock.
Result<std::int64_t> Device::nanoseconds(const TimeMark& from, const TimeMark& to) {
  return static_cast<std::int64_t>(to.time.load(std::memory_order_acquire)) -
         static_cast<std::int64_t>(from.time.load(std::memory_order_acquire));
}

Result<Event> HeldTask::watched(TaskWatcher& watcher, std::uint32_t queue, const After& after) {
  const std::uint64_t note = watcher.submitting(*task_, queue);
  Result<Event> outcome = device_.submit(*std::exchange(task_, nullptr), queue, after);
  watcher.submitted(note, outcome);
  return outcome;
}

Result<std::uint32_t> Device::best_block(const DeviceProgram&, std::uint32_t, std::uint32_t) {
  return has_none(*this, "does not know how many threads a program has resident");
}
Result<std::shared_ptr<DeviceModule>> Device::load_module(const std::string&, const std::string&) {
  return has_none(*this, "loads no PTX and no cubins");
}
Result<ModuleEntry> Device::entry(const std::shared_ptr<DeviceModule>&, const std::string&) {
  return has_none(*this, "loads no PTX and no cubins");
}
Result<std::uint32_t> Device::adopt_stream(void*) { return has_none(*this, "has no streams of CUDA"); }
Result<void> Device::release_stream(std::uint32_t) { return has_none(*this, "has no streams of CUDA"); }
Result<void> Device::check_foreign(std::uint64_t, std::uint64_t) { return has_none(*this, "has no memory of CUDA"); }

}  // namespace kiln::rt
