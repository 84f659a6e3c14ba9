// fork(): threads and the driver's contexts stay with the parent, so what a process opened is of no use to a child of it.
#pragma once
#include <atomic>

namespace kiln::rt {

extern std::atomic<unsigned> forks;
// How many forks lie between this process and the one that started the program. One load.
inline unsigned process_number() noexcept { return forks.load(std::memory_order_relaxed); }

}  // namespace kiln::rt
