// What a task that reads or writes an allocation comes after, and what comes after it. Under the lock of enqueueing.
#pragma once
#include <atomic>

#include "kiln/runtime/client.h"
#include "src/allocation.h"
#include "src/device.h"

namespace kiln::rt {

inline bool empty(const Binding& binding) { return binding.memory == nullptr || binding.range.empty(); }
// A cleanup may move memory. So whoever hands an address to a task reads it under the lock of enqueueing, under which the task's event is
// noted, too; or looks there whether LocalServer::moves() is what it was before.
inline std::byte* address(const Allocation& memory) {
  return static_cast<std::byte*>(std::atomic_ref(memory.storage->data).load(std::memory_order_relaxed));
}
inline std::byte* address(const Binding& binding) { return address(*binding.memory) + binding.range.begin; }
// How far in its memory a task is at work, until the address is known.
inline void* at_byte(std::uint64_t offset) { return reinterpret_cast<void*>(offset); }
inline std::byte* address(const Allocation& memory, const void* offset) {
  return address(memory) + reinterpret_cast<std::uintptr_t>(offset);
}

inline void order_read(const Allocation& a, After& after) { after.add(a.last_write); }
inline void order_write(const Allocation& a, After& after) {
  after.add(a.last_write);
  after.add(a.last_reads);
}
inline void note_read(Allocation& a, Event e) { a.last_reads.add(e); }
inline void note_write(Allocation& a, Event e) {
  a.last_write = e;
  a.last_reads.clear();
}

}  // namespace kiln::rt
