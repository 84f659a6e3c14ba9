#include "support/allocations.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t made = 0;
thread_local std::uint64_t most = UINT64_MAX;  // allocations that may be made

void* take(std::size_t bytes) {
  if (++made > most) throw std::bad_alloc();
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void* take(std::size_t bytes, std::size_t alignment) {
  if (++made > most) throw std::bad_alloc();
  if (void* p = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)) return p;
  throw std::bad_alloc();
}

}  // namespace

namespace kiln::test {
bool allocations_counted() {
  const std::uint64_t before = made;
  ::operator delete(::operator new(1));
  return made != before;
}
std::uint64_t allocations() { return made; }
NoMemory::NoMemory(std::uint64_t after) { most = made + after; }
NoMemory::~NoMemory() { most = UINT64_MAX; }
MemoryAgain::MemoryAgain() : made_(made), most_(most) { most = UINT64_MAX; }
MemoryAgain::~MemoryAgain() {
  made = made_;
  most = most_;
}
}  // namespace kiln::test

// Not under a sanitizer, which has operators of its own and pairs them across libraries: nothing is counted there (allocations_counted()).
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Weak: where a sanitizer links its own statically, that one is used.
#define KILN_WEAK __attribute__((weak))

KILN_WEAK void* operator new(std::size_t bytes) { return take(bytes); }
KILN_WEAK void* operator new[](std::size_t bytes) { return take(bytes); }
KILN_WEAK void* operator new(std::size_t bytes, std::align_val_t alignment) { return take(bytes, static_cast<std::size_t>(alignment)); }
KILN_WEAK void* operator new[](std::size_t bytes, std::align_val_t alignment) { return take(bytes, static_cast<std::size_t>(alignment)); }
KILN_WEAK void operator delete(void* p) noexcept { std::free(p); }
KILN_WEAK void operator delete[](void* p) noexcept { std::free(p); }
KILN_WEAK void operator delete(void* p, std::size_t) noexcept { std::free(p); }
KILN_WEAK void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
KILN_WEAK void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
KILN_WEAK void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
KILN_WEAK void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
KILN_WEAK void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif
