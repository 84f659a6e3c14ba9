// The part of the server that allocates, frees, maps late and moves memory. Which memory that is, the memory manager knows (memory/).
#include <new>
#include <optional>

#include "src/launch_modes.h"
#include "src/local_server.h"
#include "src/memory_order.h"
#include "src/server_log.h"

namespace kiln {

Allocation::~Allocation() { server->free(*this); }

namespace rt {

Result<Memory> LocalServer::allocate_now(std::uint64_t stream, std::uint64_t bytes) {
  if (bytes == 0) {
    if (auto ok = device_state(ErrorCode::IoDevicePoisoned); !ok.has_value()) return ok.error();
    return Memory();
  }
  // Where launches do not run, memory that nothing else uses is only counted.
  auto storage = memory_->allocate(bytes, {stream, dropped_now(*this, stream)});
  if (!storage.has_value()) {
    if (captures_.recording(stream)) captures_.fail(stream, storage.error());  // the graph would lack what was to be done with it
    return storage.error();
  }
  Memory memory;
  try {
    memory = std::make_shared<Allocation>(shared_from_this(), next_memory_.fetch_add(1, std::memory_order_relaxed), std::move(*storage));
  } catch (const std::bad_alloc&) {
    const After after = (*storage)->after;
    memory_->retire(std::move(*storage), after);
    throw;
  }
  memory->last_reads = memory->storage->after;                                 // those who had it before may not be through with it
  memory->storage->allocation.store(memory.get(), std::memory_order_release);  // from here on it may be moved
  return memory;
}

void LocalServer::free(Allocation& allocation) noexcept {
  if (forked()) {
    (void)allocation.storage.release();
    return;
  }
  After after;
  order_write(allocation, after);  // nobody else can name it any more
  if (const std::uint8_t lane = allocation.lane.load(std::memory_order_relaxed); lane != Allocation::kNoLane) enqueue_.flush(lane);
  log_.freed(allocation.id);
  if (allocation.storage->owner != nullptr) leave_adopted(allocation, after);
  const std::uint64_t bytes = allocation.storage->bytes;
  memory_->retire(std::move(allocation.storage), after);
  if (logs(LogArea::Memory, LogLevel::Debug)) tell_free(*this, allocation.id, bytes);
}

// Memory that was allocated in a mode that takes none gets it when it is first used.
Result<void> LocalServer::map_late(Allocation& memory) {
  if (!memory.storage->unmapped.load(std::memory_order_acquire)) return {};
  return memory_->map(*memory.storage);
}

Result<void> LocalServer::pin_address(const Binding& binding) {
  if (empty(binding) || forked()) return {};
  if (auto ok = map_late(*binding.memory); !ok.has_value()) return ok;
  memory_->pin_address(*binding.memory->storage);
  return {};
}

Result<void> LocalServer::map_for(const Binding& to, const Binding& used) {
  auto ok = map_late(*used.memory);
  if (ok.has_value()) return ok;
  const MemoryRange target = memory_range(to);
  const std::lock_guard lock(enqueue_);
  return ExecuteScope::failed_writing(store_, {&target, 1}, ok.error());
}

// --- cleanup -------------------------------------------------------------------------------------------------------------------

Result<std::uint64_t> LocalServer::memory_cleanup_now() {
  if (memory_->captured()) return memory_->cleanup();  // which refuses
  std::optional<Error> failed;
  for (const MemoryManager::Movable& each : memory_->movable()) {
    if (auto ok = move_memory(*each.memory, each.stream); !ok.has_value()) {
      failed = ok.error();
      break;
    }
  }
  auto freed = memory_->cleanup();
  confirm();
  if (failed) return std::move(*failed);
  if (auto ok = device_state(); freed.has_value() && !ok.has_value()) return ok.error();
  return freed;
}

// To memory of the present layout. The copy has its place among the operations on it; what it carries stays, since its number does.
Result<void> LocalServer::move_memory(Allocation& allocation, std::uint64_t stream) {
  auto fresh = memory_->allocate(allocation.storage->bytes, {stream, false});
  if (!fresh.has_value()) return fresh.error();
  After before = (*fresh)->after;
  Result<void> result;
  {
    HeldTask task(*device_);
    const std::lock_guard lock(enqueue_);
    // Not while the host looks at it where it is, nor where memory is only counted just now.
    if (allocation.host_views == 0 && !(*fresh)->unmapped.load(std::memory_order_relaxed)) {
      task->kind = Task::Kind::Copy;
      task->to = (*fresh)->data;
      task->from = allocation.storage->data;
      task->bytes = allocation.storage->bytes;
      After after = before;
      order_write(allocation, after);
      const Result<Event> event = task.submit(queue_of(stream), after);
      if (!event.has_value()) {
        result = event.error();
      } else {
        before.add(*event);
        if (memory_->exchange(*allocation.storage, **fresh)) {
          order_write(allocation, before);
          note_write(allocation, *event);
          moves_.fetch_add(1, std::memory_order_relaxed);
          // Where the device refuses the copy when its turn comes, the bytes are lost.
          const MemoryRange all{allocation.id, {0, allocation.storage->bytes}};
          LogNote note;
          note.kind = LogKind::Copy;
          note.stamp = store_.next_stamp();
          note.writes = {&all, 1};
          note.stream = event->queue;
          note.position = event->position;
          log_.append(note);
        }
      }
    }
  }
  memory_->retire(std::move(*fresh), before);
  return result;
}

}  // namespace rt
}  // namespace kiln
