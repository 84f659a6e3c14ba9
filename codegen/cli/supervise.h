// A whole command in a child process with limits: for those that open a SOURCE and compile of it (list, show, run, check, env why). What
// the code generator, or the code of a kernel library, does to that process is one error of this one. A command that lets its user's kernel
// run says recorded() (limits.h) before it opens a device, and holds a Compiling while it makes the launch ready.
#pragma once
#include "command.h"

namespace kiln::cli {

// Whether the command of these words is to be run so: it was not asked to stay --in-process, and this is no child already.
bool to_supervise(const Options& options);

// Runs the same words in a child; returns its exit code. Throws Failed when it died or reached a limit.
int supervise(int argc, char** argv, const Options& options, const std::string& command);

// In such a child: tells its parent what it is busy with, and that it came to its end: an end before that is a failure. Once each.
void tell_parent();
void tell_parent_the_end();

}  // namespace kiln::cli
