// fork(): threads and the driver's contexts stay with the parent, so what a process opened is of no use to a child of it.
#pragma once

namespace kiln::rt {

// How many forks lie between this process and the one that started the program. One load.
unsigned process_number() noexcept;

}  // namespace kiln::rt
