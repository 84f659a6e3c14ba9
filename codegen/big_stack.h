// Runs a function on a thread with a large stack: code generators recurse as deep as kernels are large.
#pragma once
#include <functional>

namespace kiln::codegen {

// Returns when `f` has. `f` must not throw. Where no thread can be made, runs it on this one.
void on_big_stack(const std::function<void()>& f);

}  // namespace kiln::codegen
