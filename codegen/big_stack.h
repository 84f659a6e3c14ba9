// Runs a function on a thread with a large stack: code generators recurse as deep as kernels are nested, and a caller's stack may be small.
#pragma once
#include <functional>

namespace kiln::codegen {

// Returns when `f` has. `f` must not throw. Thread-safe; as many run at once as callers ask for. Threads are kept for the next call: a new
// one each time would bring a cold stack and a cold allocator, which costs a compilation more than half a millisecond. Where no thread can
// be made, `f` runs on the caller's.
void on_big_stack(const std::function<void()>& f);

}  // namespace kiln::codegen
