// MemoryCapture: the memory of a graph that is captured on a stream, from its warm-up until the graph goes away.
#pragma once
#include <cstdint>
#include <vector>

#include "src/memory/memory_manager.h"

namespace kiln::rt {

// The way of one:
//
//     MemoryCapture memory(server.memory(), stream_id);
//     memory.prime();       // prepare: the warm-up runs. What is freed of the stream's memory is kept apart, so that memory enough is
//     there memory.begin();       // begin: what the warm-up freed can be had again. From here on the stream takes none from the device
//     memory.use(storage);  // for each allocation that recorded work touches, whoever allocated it and when
//     memory.end();         // end, or abort: the window is closed
//     memory.release(after) // the graph goes away; `after`: the events of its replays
//
// Memory that was allocated for the stream between begin() and end(), freed there, or named to use(), is the graph's until release(): it
// may be freed at any time, and is not given to anybody, not moved and not given back to the device. No reference of a Memory is held, so
// whether a buffer may be mutated does not change. What is allocated within the window may still have events before it
// (Allocation::last_reads, from Storage::after): a graph that cannot contain them comes after them when it is replayed.
// While a window is open, install_memory_pools and memory_cleanup are refused; while one records, nothing goes back to the device.
//
// Thread-safe. The manager outlives it.
class MemoryCapture {
 public:
  MemoryCapture(MemoryManager& manager, std::uint64_t stream) : manager_(manager), stream_(stream) {}
  ~MemoryCapture();  // ends and releases it
  MemoryCapture(const MemoryCapture&) = delete;

  // Errors (Validation, CaptureOpen): another one is open on the stream, or this one has begun. Nothing changes then.
  Result<void> prime();
  // With or without a warm-up. Once more while it records: nothing happens, and what was pinned stays so. Errors: as prime().
  Result<void> begin();
  void use(Storage& storage);  // precondition: begun. Throws std::bad_alloc
  void end() noexcept;         // also without begin(): what the warm-up kept is free. No-op when nothing is open
  void release(const After& after) noexcept;

  std::size_t pinned() const;  // pieces of memory that are the graph's

 private:
  friend class MemoryManager;
  enum class State : std::uint8_t { Closed, Priming, Recording };

  // By the manager, under its lock.
  bool recording() const { return state_ == State::Recording; }
  void reserve_pin() {
    if (pins_.size() == pins_.capacity()) pins_.reserve(pins_.size() * 2 + 16);
  }
  void pin(PoolSlice& slice) noexcept;   // there is room
  bool keep(PoolSlice& slice) noexcept;  // a slice of the stream is freed. Whether it is held

  Result<void> open();
  void free_primed() noexcept;
  void unpin(PoolSlice& slice, const After& after, Storage*& others) noexcept;

  MemoryManager& manager_;
  const std::uint64_t stream_;
  // Guarded by the manager's lock.
  State state_ = State::Closed;
  StreamAccount* account_ = nullptr;
  std::vector<PoolSlice*> pins_;
  PoolSlice *primed_ = nullptr, *freed_ = nullptr;  // linked: freed in the warm-up; freed while it records, without another pin of this one
  std::size_t freed_count_ = 0;
};

}  // namespace kiln::rt
