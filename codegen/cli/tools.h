// Other programs that may be installed: ptxas, nvdisasm, llvm-objdump.
#pragma once
#include <string>
#include <vector>

namespace kiln::cli {

// The first of the names on PATH; empty when there is none.
std::string find_program(const std::vector<std::string>& names);

struct ProgramResult {
  int status = -1;  // exit status; -1 where it could not be started, was killed or took too long
  std::string out;  // standard output, and standard error behind it
};
// Runs it with nothing on its standard input, at most so long. Never throws for what the program does.
ProgramResult run_program(const std::vector<std::string>& argv, int seconds = 20);

}  // namespace kiln::cli
