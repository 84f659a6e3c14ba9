// What a process that compiles may take, and what it is busy with: so that what comes from somebody else, a .kir file or the code of a
// kernel library, costs one kernel and not the program (child.h). The limits are against accidents. They are no sandbox: a kernel library
// runs with the rights of who opens it.
#pragma once
#include <cstdint>
#include <string>

namespace kiln::cli {

struct Options;

struct Limits {
  double seconds = 120;                           // of one kernel for one architecture; 0: as long as it takes
  std::uint64_t memory = std::uint64_t{4} << 30;  // of one process, bytes; 0: all there is
};
// --timeout and --memory. Throws a usage error.
Limits parse_limits(const Options& options);

// From here on this process is in the hands of what it was given: the limits begin, on top of what it has in use now. Again: no effect.
void begin_limits();

// What this process is busy with, told to the one that watches it: "recording". The last one told stands in the error when it dies. A
// pointer to a text that stays. Does nothing where nobody watches.
void now(const char* stage);

// From here on this process does what its user asked for, for as long and on as much memory as the user chose: the limits end. Before a
// device is opened. Does nothing where nobody watches.
void recorded();

// While it lives, a kernel is compiled once more, by a launch that is made ready: the limits hold again, that of time anew, that of memory
// on top of what is in use; without it for a GPU, whose driver takes address space as it likes. Does nothing where nobody watches.
class Compiling {
 public:
  explicit Compiling(bool for_gpu);
  ~Compiling();
  Compiling(const Compiling&) = delete;
};

// --- the watched side ---------------------------------------------------------------------------------------------------

// The first thing that a child process does: no life after its parent's, and from begin_limits() no more than so much memory.
void enter_limits(std::uint64_t memory, int parent);
// Where now() and compiled() tell it.
enum class Mark : std::uint8_t { Stage, Begin, Compiling, Free };  // Free: no limits
void tell_stages(void (*sink)(const char* stage, Mark mark));
// The end of memory as a sentence: "out of memory" or which limit was reached, and what to do.
std::string out_of_memory();

}  // namespace kiln::cli
