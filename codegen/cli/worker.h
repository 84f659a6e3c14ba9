// A process that answers questions (jobs.h) over a socket until that ends.
#pragma once

namespace kiln::cli {

inline constexpr int kWorkerSocket = 3;

int worker_main();

}  // namespace kiln::cli
