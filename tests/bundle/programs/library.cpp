// A library that embeds kernels and launches them.
#include "bundle/programs/use.h"

extern "C" __attribute__((visibility("default"))) int use_library() { return use_kernels(); }
