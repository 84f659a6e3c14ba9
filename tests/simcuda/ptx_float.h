// The float side of the instructions that integers and floats share; what is left to do when the modifiers and the type are read.
// Private to the engine.
#pragma once
#include "simcuda/ptx_decoder.h"

namespace kiln::simcuda::ptx {

void float_add(Decoder& d, Type t, Round round, bool ftz, bool sat);
void float_sub(Decoder& d, Type t, Round round, bool ftz, bool sat);
void float_mul(Decoder& d, Type t, Round round, bool ftz, bool sat);
void float_fma(Decoder& d, Type t, Round round, bool ftz, bool sat, bool relu);
void float_div(Decoder& d, Type t, Round round, bool ftz, bool approx, bool full);
void float_sign(Decoder& d, Type t, bool ftz, bool absolute);
void float_min_max(Decoder& d, Type t, bool ftz, bool nan, bool xorsign, bool max);
void float_min_max_of_three(Decoder& d, Type t, bool ftz, bool nan, bool abs, bool max);

// f16, bf16 and their pairs (ptx_half.cpp).
void half_add(Decoder& d, Type t, bool subtract, bool ftz, bool sat);
void half_mul(Decoder& d, Type t, bool ftz, bool sat);
void half_fma(Decoder& d, Type t, bool ftz, bool sat, bool relu);
void half_sign(Decoder& d, Type t, bool ftz, bool absolute);
void half_min_max(Decoder& d, Type t, bool ftz, bool nan, bool xorsign, bool max);
bool is_half(Type t);  // f16, bf16, f16x2, bf16x2

// Directed rounding (ptx_round.cpp): op is '+', '-', '*', '/', 'f' (fma), 'r' (1/x), 's' (square root). Null: no such function.
Execute rounded(char op, Type t, Round round, bool ftz, bool sat);

}  // namespace kiln::simcuda::ptx
