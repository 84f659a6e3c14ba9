#include "src/device.h"

#include <cstring>

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

}  // namespace kiln::rt
