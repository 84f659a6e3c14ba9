#include "cpu/storage.h"

#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <new>

namespace kiln::rt {
namespace {

constexpr std::uint64_t kMargin = 256;

}  // namespace

std::uint64_t machine_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

std::uint64_t available_bytes() {
  const long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

Result<std::unique_ptr<Storage>> make_storage(std::uint64_t bytes) {
  auto storage = std::make_unique<Storage>();
  storage->data = std::aligned_alloc(64, (bytes + kMargin + 63) / 64 * 64);
  if (storage->data == nullptr) return Error(ErrorCode::OutOfMemory, "the system gives no more memory; free some buffers");
  storage->bytes = bytes;
  return storage;
}

void free_storage(Storage* first) noexcept {
  while (first != nullptr) {
    Storage* next = first->next;
    if (first->owner == nullptr) std::free(first->data);
    delete first;
    first = next;
  }
}

}  // namespace kiln::rt
