// What the driver's results mean: the one table from a CUresult to an error of ours, its cause and what to do about it.
#pragma once
#include <string>

#include "cuda/driver_types.h"
#include "kiln/runtime/error.h"

namespace kiln::cuda {

// What kind of answer a result is; with what was being done it gives the code of the error.
enum class ResultKind : std::uint8_t {
  Poison,       // the context can do nothing more
  Memory,       // there is none left
  Resources,    // the device says no to this program or launch
  Unsupported,  // the program or operation is not for this device or driver
  NotFound,
  Request,  // a wrong value or handle, which Kiln should not have passed on
  Other,
};

struct ResultRow {
  CUresult code;
  ResultKind kind;
  const char* name;    // "CUDA_ERROR_ILLEGAL_ADDRESS"
  const char* cause;   // half a sentence
  const char* remedy;  // half a sentence
};
// Of a result that is not in the table: a row of kind Other.
const ResultRow& result_row(CUresult code);
bool is_sticky(CUresult code);
std::string result_text(CUresult code);  // "CUDA_ERROR_ILLEGAL_ADDRESS (700)"

// What was being done.
enum class Phase : std::uint8_t { Open, Load, Launch, Transfer, Allocate, Wait };

// "<doing>: the driver answers <name> (<code>), <cause>; <remedy>". rule is the result's name. `kernel` may be empty.
Error driver_error(CUresult code, Phase phase, const std::string& doing, const std::string& kernel = {});

// What every operation gets once `first` poisoned the device: the code by phase, the first failure as the cause.
Error poisoned_error(const Error& first, Phase phase, const std::string& device);

}  // namespace kiln::cuda
