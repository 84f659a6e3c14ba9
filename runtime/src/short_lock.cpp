#include "src/short_lock.h"

namespace kiln::rt {
namespace {

constexpr unsigned kLooks = 60;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void ShortLock::wait() noexcept {
  for (unsigned i = 0; i < kLooks; ++i) {
    if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    pause();
  }
  while (state_.exchange(kWanted, std::memory_order_acquire) != kFree) state_.wait(kWanted, std::memory_order_relaxed);
}

}  // namespace kiln::rt
