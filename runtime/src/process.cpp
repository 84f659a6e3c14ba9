#include "src/process.h"

#include <pthread.h>

#include <atomic>

namespace kiln::rt {
namespace {

std::atomic<unsigned> number{0};
// A counter, since asking for the process id is a system call, too much for a launch.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { number.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

unsigned process_number() noexcept { return number.load(std::memory_order_relaxed); }

}  // namespace kiln::rt
