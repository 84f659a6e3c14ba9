// Counts what the calling thread allocates with operator new, for tests that say "allocates nothing".
#pragma once
#include <cstdint>

namespace kiln::test {

// False where a sanitizer brings an operator new of its own that cannot be replaced: then nothing below has an effect, and tests that need
// it have to return.
bool allocations_counted();

// Calls of operator new by this thread so far.
std::uint64_t allocations();

// While one lives, operator new throws on this thread, after so many allocations that it still makes. Let no assertion run meanwhile.
class NoMemory {
 public:
  explicit NoMemory(std::uint64_t after = 0);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
};

// While one lives, this thread has memory all the same, as what it calls may have that is no part of a test.
class MemoryAgain {
 public:
  MemoryAgain();
  ~MemoryAgain();
  MemoryAgain(const MemoryAgain&) = delete;

 private:
  std::uint64_t made_, most_;
};

}  // namespace kiln::test
