// Shared by the decoders of arithmetic. Private to the engine.
#pragma once
#include "simcuda/ptx_decoder.h"

namespace kiln::simcuda::ptx {
// add, addc, sub and subc with the condition code: read when `in`, written when `out`.
void carry_add(Decoder& d, Type type, bool subtract, bool in, bool out);
}  // namespace kiln::simcuda::ptx
