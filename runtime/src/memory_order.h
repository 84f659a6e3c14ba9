// What a task that reads or writes an allocation comes after, and what comes after it. Under the lock of enqueueing.
#pragma once
#include "kiln/runtime/client.h"
#include "src/allocation.h"
#include "src/device.h"

namespace kiln::rt {

inline bool empty(const Binding& binding) { return binding.memory == nullptr || binding.range.empty(); }
inline std::byte* address(const Binding& binding) { return static_cast<std::byte*>(binding.memory->storage->data) + binding.range.begin; }

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
