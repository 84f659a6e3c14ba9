#include "cuda/device_blocks.h"

#include <string>
#include <utility>

namespace kiln::cuda {

DeviceBlocks::DeviceBlocks(Session& session, Queues& queues) : session_(session), queues_(queues) {
  std::size_t total = 0;
  if (session_.call().cuDeviceTotalMem(&total, session_.device()) == CUDA_SUCCESS) total_ = total;
}

DeviceBlocks::~DeviceBlocks() { let_go(); }

Result<std::unique_ptr<rt::Storage>> DeviceBlocks::allocate(std::uint64_t bytes) {
  if (session_.poisoned()) return session_.lost(Phase::Allocate);
  let_go();
  auto block = std::make_unique<rt::Storage>();  // first: what the driver gives must not be lost
  CUdeviceptr address = 0;
  CUresult result = CUDA_SUCCESS;
  {
    const Session::Current current(session_);
    result = session_.call().cuMemAlloc(&address, bytes);
  }
  if (result != CUDA_SUCCESS)
    return session_.failed(result, Phase::Allocate, "memory of " + std::to_string(bytes) + " bytes on " + session_.name());
  block->data = reinterpret_cast<void*>(address);
  block->bytes = bytes;
  return block;
}

void DeviceBlocks::retire(std::unique_ptr<rt::Storage> storage) noexcept {
  {
    const std::lock_guard lock(mutex_);
    storage->next = leaving_;
    leaving_ = storage.release();
  }
  let_go();
}

rt::After DeviceBlocks::open_tasks(std::uint64_t address, std::uint64_t bytes) const {
  rt::After open;
  const std::lock_guard lock(mutex_);
  for (const rt::Storage* s = leaving_; s != nullptr; s = s->next) {
    const auto begin = reinterpret_cast<std::uint64_t>(s->data);
    if (begin < address + bytes && address < begin + s->bytes) open.add(s->after);
  }
  return open;
}

std::optional<std::uint64_t> DeviceBlocks::free_bytes() const {
  std::size_t free = 0, total = 0;
  const Session::Current current(session_);
  if (session_.call().cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return std::nullopt;
  return free;
}

void DeviceBlocks::free_block(const rt::Storage& block) {
  const Session::Current current(session_);
  session_.call().cuMemFree(reinterpret_cast<CUdeviceptr>(block.data));
}

// Of memory whose tasks are over.
void DeviceBlocks::let_go() noexcept {
  rt::Storage* over = nullptr;
  {
    const std::lock_guard lock(mutex_);
    for (rt::Storage** at = &leaving_; *at != nullptr;) {
      rt::Storage* storage = *at;
      if (queues_.done(storage->after)) {
        *at = storage->next;
        storage->next = over;
        over = storage;
      } else {
        at = &storage->next;
      }
    }
  }
  while (over != nullptr) {  // without the lock: an owner may do what it likes
    const std::unique_ptr<rt::Storage> storage(std::exchange(over, over->next));
    if (storage->owner == nullptr) free_block(*storage);
  }
}

}  // namespace kiln::cuda
