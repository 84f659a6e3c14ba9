// A process that is forked, or that may not start threads.
#pragma once
#include <kiln/runtime/client.h>

// Uses the device, forks, and says what each operation answers in the child; then the parent goes on.
void use_after_fork(const kiln::Client& client);
// Launches while no more address space is to be had, and once more when there is.
void compile_without_threads(const kiln::Client& client);
