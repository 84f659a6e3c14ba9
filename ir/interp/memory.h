// The memories of a launch: bytes, who touched each cell last and in which phase, and what was never written.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "interp/interp.h"
#include "interp/report.h"

namespace kiln::interp {

inline constexpr std::uint32_t kNobody = 0xffffffffu, kMany = 0xfffffffeu;

// A thread at a point of its block's and warp's time.
struct Who {
  std::uint32_t block = 0;   // linear
  std::uint32_t phase = 0;   // barriers that the block has passed
  std::uint32_t thread = 0;  // linear in the block
  std::uint32_t warp = 0;
  std::uint32_t warp_phase = 0;  // warp_syncs that the warp has passed
  ir::OpId op = 0;
};

// Who made accesses of one kind to a cell: one thread, or several of a warp, a block or the grid.
struct Touch {
  std::uint32_t block = kNobody, phase = 0, thread = 0, warp = 0, warp_phase = 0;
  ir::OpId op = 0;

  bool ordered_before(const Who& w) const;  // every access noted here, against w's
  void note(const Who& w);
};
struct Cell {
  Touch write, read, atomic;
};

enum class AccessKind : std::uint8_t { Read, Write, Atomic };

// Bytes with one Cell per `granule` bytes where accesses are followed.
struct Storage {
  std::vector<std::uint8_t> own;  // shared and local memory; a buffer's bytes belong to the caller
  std::uint8_t* bytes = nullptr;
  std::uint64_t size = 0;
  std::uint32_t granule = 1;
  std::vector<Cell> cells;            // empty: nobody writes here, so nobody races
  std::vector<std::uint8_t> written;  // per byte; empty: all of it counts as written (global memory)
};

// A memory of the kernel as this launch gives it.
struct Binding {
  std::shared_ptr<Storage> storage;  // two buffers may share one
  std::uint64_t byte_offset = 0;
  std::array<std::uint64_t, ir::kMaxRank> extents{}, strides{};  // in elements
  std::uint64_t lane_bytes = 0;                                  // Local: bytes of a lane; `storage` is per warp then
};

class Memory {
 public:
  // Reports what does not fit and stops the run.
  Memory(const ir::Kernel& kernel, const Launch& launch, Report& report);

  const Binding& binding(std::uint32_t mem) const { return bindings_[mem]; }
  // Shared memory as a block finds it: 0xFF, never written, touched by nobody.
  void start_block();
  // Local memory of the 32 lanes of a warp, 0xFF and never written.
  void start_local(std::uint32_t mem, Storage& storage) const;

  // One element; the caller has tested the coordinates. Notes the access and reports races and reads of what was never written.
  std::uint64_t read(std::uint32_t mem, Storage& storage, std::uint64_t byte, const Who& who, AccessKind kind = AccessKind::Read);
  void write(std::uint32_t mem, Storage& storage, std::uint64_t byte, std::uint64_t bits, const Who& who,
             AccessKind kind = AccessKind::Write);

 private:
  void bind_buffers(const Launch& launch);
  void bind_blocks_own(const Launch& launch);
  void note(std::uint32_t mem, Storage& storage, std::uint64_t byte, unsigned size, const Who& who, AccessKind kind);
  void fail(const std::string& message);

  const ir::Kernel& k_;
  Report& report_;
  std::vector<Binding> bindings_;
};

}  // namespace kiln::interp
