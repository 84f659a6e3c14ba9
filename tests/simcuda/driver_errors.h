// The results of the driver by number, name and text.
#pragma once
#include <optional>
#include <string>

#include "cuda/driver_types.h"

namespace kiln::simcuda {

// Null for a number that is no result.
const char* error_name(cuda::CUresult code);
const char* error_text(cuda::CUresult code);
std::optional<cuda::CUresult> error_by_name(const std::string& name);

}  // namespace kiln::simcuda
