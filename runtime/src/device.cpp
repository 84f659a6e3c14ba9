#include "src/device.h"

#include <cstring>
#include <string>

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

namespace {

Error has_none(const Device& device, const char* what) {
  Error::Data data;
  data.code = ErrorCode::UnsupportedIo;
  data.rule = "NotOfThisDevice";
  data.message = device.properties().name + " (" + device.properties().kind + ") " + what;
  return Error(std::move(data));
}

}  // namespace

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
