// The part of the server that serves memory which somebody else allocated.
#include <string>
#include <thread>

#include "src/local_server.h"
#include "src/make_error.h"
#include "src/memory_order.h"

namespace kiln::rt {

Result<Memory> LocalServer::adopt_now(std::uint64_t address, std::uint64_t bytes, std::shared_ptr<const void> owner, bool read_only) {
  if (bytes == 0) return Memory();
  if (address == 0 || bytes > ~address) {
    return make_error(ErrorCode::Validation, "BindingRange",
                      "there is no memory of " + std::to_string(bytes) + " bytes at address " + std::to_string(address));
  }
  if (auto ok = device_->check_foreign(address, bytes); !ok.has_value()) return ok.error();
  // What is dropped may be the last of a memory, or call its owner's code: not under the lock.
  std::vector<Memory> others;
  std::unique_lock lock(adopted_mutex_);
  for (;;) {
    bool leaving = false;  // another thread drops it just now, and has not yet said which tasks are left
    After open;            // of those who had it before, whose writes are its contents
    for (const Adopted& a : adopted_) {
      if (address >= a.address + a.bytes || a.address >= address + bytes) continue;
      leaving = leaving || (a.owners != nullptr && a.memory.expired());
      a.after.for_each([&](Event e) {
        if (!device_->done(e)) open.add(e);
      });
    }
    if (!leaving && open.empty()) break;
    lock.unlock();
    const CallOrder::Wait wait(*device_, open);
    if (!wait.allowed()) return CallOrder::waits_for_itself();
    open.for_each([&](Event e) { device_->wait(e); });
    if (leaving) std::this_thread::yield();
    lock.lock();
  }
  std::erase_if(adopted_, [&](const Adopted& a) {
    bool open = a.owners != nullptr;
    a.after.for_each([&](Event e) { open = open || !device_->done(e); });
    return !open;
  });
  others.reserve(adopted_.size());
  for (const Adopted& a : adopted_) {
    if (address >= a.address + a.bytes || a.address >= address + bytes) continue;
    Memory& memory = others.emplace_back(a.memory.lock());
    if (memory == nullptr) continue;
    if (a.address != address || a.bytes != bytes) {
      return make_error(ErrorCode::Validation, "AliasingArguments",
                        "memory of " + std::to_string(bytes) + " bytes overlaps other memory that was adopted (" + std::to_string(a.bytes) +
                            " bytes); adopt the whole once and take views of it");
    }
    if (memory->read_only && !read_only) {
      return make_error(ErrorCode::Validation, "ReadOnlyMemory",
                        "the memory is imported already, to be read only; let that go first, or import it read-only");
    }
    a.owners->push_back(std::move(owner));
    return memory;
  }
  auto owners = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  owners->reserve(1);
  auto storage = std::make_unique<Storage>();
  storage->data = reinterpret_cast<void*>(address);
  storage->bytes = bytes;
  storage->owner = owners;
  const std::uint64_t id = next_memory_.fetch_add(1, std::memory_order_relaxed);
  adopted_.reserve(adopted_.size() + 1);
  auto memory = std::make_shared<Allocation>(shared_from_this(), id, std::move(storage));
  owners->push_back(std::move(owner));
  memory->read_only = read_only;
  adopted_.push_back({address, bytes, memory, id, {}, owners});
  return memory;
}

// The entry stays until the last task is over.
void LocalServer::leave_adopted(const Allocation& allocation, const After& after) noexcept {
  std::shared_ptr<const void> dropped;
  const std::lock_guard lock(adopted_mutex_);
  for (Adopted& a : adopted_) {
    if (a.id != allocation.id) continue;
    a.after = after;
    dropped = std::move(a.owners);  // the storage keeps them
  }
}

}  // namespace kiln::rt
