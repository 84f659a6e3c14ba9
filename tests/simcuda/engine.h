// PTX on the CPU: what the simulated driver loads and launches. Written from the PTX ISA (9.0), for everything that LLVM 22 and nvcc 13
// emit for plain kernels on sm_75 to sm_121. Knows nothing of contexts, streams or handles (driver side), nor of Kiln.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/driver_types.h"
#include "simcuda/memory.h"

namespace kiln::simcuda {

// What the driver and the device offer, for what a module needs.
struct Target {
  unsigned arch = 90;         // 90 for compute capability 9.0
  unsigned ptx_version = 90;  // highest PTX ISA that the driver's JIT knows: 90 for 9.0
};

struct EntryParam {
  std::uint32_t offset = 0, size = 0, align = 1;
};

// What is known of an entry from its text. Registers are an estimate (the largest number of live 32-bit registers).
struct EntryInfo {
  std::string name;
  std::vector<EntryParam> params;
  std::uint32_t param_bytes = 0;
  std::uint32_t static_shared = 0;
  std::uint32_t local_bytes = 0;
  std::uint32_t registers = 0;
  std::optional<std::array<std::uint32_t, 3>> reqntid, maxntid, reqnctapercluster;
};

struct LoadFailure {
  cuda::CUresult code = cuda::CUDA_ERROR_INVALID_PTX;  // 218, 222, 209, 200
  std::string log;                                     // as the driver's JIT writes it: "ptxas application ptx input, line 12; error : ..."
};

class Module;  // a loaded module: parsed, checked, decoded for execution; its globals are in a device's memory
struct LoadResult {
  std::shared_ptr<Module> module;  // null: failure
  LoadFailure failure;
};
// `image` is PTX text (until the first zero byte or the end). Globals are allocated in `memory` and initialised; they are freed with the
// module.
LoadResult load(const std::string& image, const Target& target, Memory& memory);
const std::vector<EntryInfo>& entries(const Module& module);
struct Global {
  std::uint64_t address = 0, bytes = 0;
};
std::optional<Global> global(const Module& module, const std::string& name);

// The order in which the threads of a block take turns; a correct program does not care.
enum class Order : std::uint8_t { Forward, Reverse, Seeded };

struct Launch {
  const Module* module = nullptr;
  std::size_t entry = 0;  // index into entries()
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  std::uint32_t dynamic_shared = 0;
  const std::byte* params = nullptr;  // param_bytes
  bool cooperative = false;
};
struct Options {
  Order order = Order::Forward;
  std::uint64_t seed = 0;
  unsigned workers = 0;                 // host threads that run blocks; 0: as many as processors
  bool shared_races = true;             // report races within a block's shared memory
  bool global_races = false;            // and between the threads of a launch on global memory (slower)
  bool unwritten_is_fault = true;       // reads of bytes that nobody wrote end the launch; else they are only reported
  std::uint64_t instruction_limit = 0;  // instructions of one thread after which the launch counts as hung (702); 0: none
};

// What ended a launch: the code that a device would give, and where.
struct Violation {
  cuda::CUresult code = cuda::CUDA_SUCCESS;  // 700, 702, 715, 716, 717, 718, 719, 710
  std::string what;                          // a sentence
  unsigned ptx_line = 0;                     // line of the image
  std::string source;                        // "saxpy.cpp:12" by .loc, or empty
  std::array<std::uint32_t, 3> block{}, thread{};
  std::string text() const;  // all of it
};
struct RunResult {
  std::optional<Violation> violation;
  std::uint64_t instructions = 0;  // executed by all threads
  std::string printed;             // what the kernel's printf wrote (at most 1 MiB), for the driver to print at the next synchronisation
  std::vector<std::string> notes;  // what is wrong but does not end a launch (unwritten reads when they are no fault), at most 16
};
// Runs all blocks. Thread-safe; launches of several modules may run at once. Never throws for what a program does.
RunResult run(const Launch& launch, Memory& memory, const Options& options);

}  // namespace kiln::simcuda
