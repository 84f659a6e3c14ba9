// Runs a function on a thread with a large stack: code generators recurse as deep as kernels are nested, and a caller's stack may be small.
#pragma once
#include <cstddef>
#include <functional>

namespace kiln::codegen {

inline constexpr std::size_t kBigStackBytes = std::size_t{64} << 20;  // address space; committed only as far as used

// Returns when `f` has. `f` must not throw. Thread-safe; as many run at once as callers ask for. Threads are kept for the next call: a new
// one each time would bring a cold stack and a cold allocator, which costs a compilation more than half a millisecond. After fork() the
// child makes its own. 0, or the error number of a thread that could not be started: `f` did not run then.
[[nodiscard]] int on_big_stack(const std::function<void()>& f);

}  // namespace kiln::codegen
