// The two kinds of engines; open_engine chooses.
#pragma once
#include "engine.h"

namespace kiln::cli {

std::unique_ptr<Engine> device_engine(const std::string& name);
std::unique_ptr<Engine> interpreter_engine(std::uint64_t step_limit);

}  // namespace kiln::cli
