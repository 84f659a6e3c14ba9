// Counts what the process allocates: operator new is replaced in this program, and so in every library it loads.
#pragma once
#include <cstdint>

namespace kiln::bench {

std::uint64_t allocations();  // since the start of the process, all threads

}  // namespace kiln::bench
