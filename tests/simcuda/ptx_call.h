// Calls of functions within a kernel. Private to the engine.
#pragma once
#include "simcuda/ptx_warp.h"

namespace kiln::simcuda::ptx {

// All lanes of the fragment call. For an indirect call lanes with different targets part.
void call(Warp& w, Fragment& f, const Op& op);
// False: it was the kernel itself that returned.
bool return_from(Warp& w, Fragment& f);

}  // namespace kiln::simcuda::ptx
