// Memory of the CPU device.
#pragma once
#include <cstdint>
#include <memory>

#include "src/device.h"

namespace kiln::rt {

std::uint64_t machine_bytes();    // of physical memory
std::uint64_t available_bytes();  // of it, that nobody uses
// Aligned to 64, with room behind the last byte for a vector access that is masked there. Errors: OutOfMemory.
Result<std::unique_ptr<Storage>> make_storage(std::uint64_t bytes);
// Frees a list linked by `next`; null is an empty one. Of memory that somebody else allocated the owner is let go of, whose code may run:
// call it without a lock.
void free_storage(Storage* first) noexcept;

}  // namespace kiln::rt
