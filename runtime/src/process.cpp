#include "src/process.h"

#include <pthread.h>

namespace kiln::rt {

constinit std::atomic<unsigned> forks{0};

namespace {

// A counter, since asking for the process id is a system call, too much for a launch.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

}  // namespace kiln::rt
