// A block being run, the worker that runs it, and the launch around them.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simcuda/engine.h"
#include "simcuda/ptx_race.h"
#include "simcuda/ptx_warp.h"

namespace kiln::simcuda::ptx {

struct LoadedModule;
struct EntryCode;

// What all workers of a launch share.
struct LaunchState {
  const Launch* launch = nullptr;
  const LoadedModule* module = nullptr;
  const EntryCode* code = nullptr;
  const Function* entry = nullptr;
  Memory* memory = nullptr;
  Options options;
  std::uint64_t grid_id = 0;
  std::uint32_t static_shared = 0, shared_bytes = 0, param_bytes = 0;
  std::uint64_t local_stride = 0;  // of a thread's local memory
  bool fences = false;
  unsigned granule = 4;  // of shared memory's race detection
  std::unique_ptr<GlobalRaces> global_races;

  std::atomic<bool> stopped{false};
  std::atomic<std::uint64_t> instructions{0};
  std::mutex mutex;
  std::optional<Violation> violation;  // the first one
  std::vector<std::string> notes;
  std::set<std::pair<const void*, int>> noted;
  std::string printed;

  // Once for each instruction and kind.
  void note(const Warp& w, const Op& op, unsigned lane, int kind, const std::string& what);
  void print(const std::string& text);
};

// Of one host thread.
struct Worker {
  std::vector<Memory::Window> windows;  // the allocation that each memory instruction met last
};

struct BarrierState {
  std::vector<Mask> arrived;   // by warp
  std::uint32_t expected = 0;  // threads; 0: all
};

struct Block {
  LaunchState* launch = nullptr;
  Worker* worker = nullptr;
  std::array<std::uint32_t, 3> index{};
  std::uint64_t linear = 0;
  std::uint32_t threads = 0;
  std::vector<Warp> warps;
  std::vector<std::uint32_t> order;  // in which warps take turns
  std::vector<std::byte> shared;
  std::vector<std::uint8_t> shared_written;
  std::unique_ptr<std::byte[]> local;
  std::array<BarrierState, 16> barriers;
  std::optional<SharedRaces> races;
  std::uint64_t instructions = 0;
  std::uint64_t random = 1;

  std::byte* local_of(const Warp& w, unsigned lane) { return local.get() + (std::size_t{w.index} * 32 + lane) * launch->local_stride; }
};

// Where a lane's access lands, or a stop. `size` counts the whole vector. Checks range, alignment, never-written bytes and races.
std::byte* place(Warp& w, const Op& op, unsigned lane, std::uint64_t address, unsigned size, Access kind);
// Of shared memory alone, or else null: atomics there need no lock.
bool in_shared(const Op& op, std::uint64_t address);

// Makes a block ready to run, reusing its memory.
void start_block(Block& b, std::uint64_t linear);
// Runs until the block is done (true) or `budget` instructions of warps are over. Throws Stop.
bool run_block(Block& b, std::uint64_t budget);

// What the lanes of a warp do together, for all lanes of `everybody` at once; each lane is at an Op of its own with registers of its own.
struct Participant {
  Fragment* fragment = nullptr;
  const Op* op = nullptr;
};
void together(Warp& w, const std::vector<Participant>& participants, Mask everybody);
// The mask that a lane names.
std::uint32_t member_mask(Warp& w, const Fragment& f, const Op& op, unsigned lane);

// Registers of a fragment that is not the current one.
std::uint64_t* registers_of(Warp& w, const Fragment& f);
void enter(Warp& w, Fragment& f);  // makes it the current one

}  // namespace kiln::simcuda::ptx
