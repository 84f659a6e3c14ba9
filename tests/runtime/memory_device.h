// A device of memory only, for the memory manager: blocks of the heap, and events that are over when the test says so.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/device.h"
#include "src/memory/memory_capture.h"
#include "src/memory/memory_manager.h"

namespace kiln::test {

class MemoryDevice final : public rt::Device {
 public:
  rt::MemoryTraits traits;
  std::uint64_t room = ~std::uint64_t{0};  // bytes of blocks that it has
  std::function<std::optional<Error>(std::uint64_t)> on_allocate;
  // Asked of each block that comes back.
  std::function<void(const rt::Storage&)> on_retire;

  explicit MemoryDevice(std::uint64_t alignment = 1) {
    traits.alignment = alignment;
    traits.bytes = std::uint64_t{1} << 40;
    traits.keep = ~std::uint64_t{0};
    traits.pools.pools = {{PoolKind::Exclusive, kAnySize, 0, 0, 0}};
    properties_.name = "memory";
    properties_.kind = "test";
    properties_.memory_bytes = traits.bytes;
  }
  ~MemoryDevice() override { CHECK(blocks() == 0); }

  std::size_t blocks() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size();
  }
  std::uint64_t block_bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  std::uint64_t allocations() const {
    const std::lock_guard lock(mutex_);
    return allocations_;
  }
  std::atomic<std::uint64_t> waits{0};

  // The next event of a queue; it is over when finish() was called with it or a later one.
  rt::Event start(std::uint32_t queue) { return {queue, submitted_[queue].fetch_add(1) + 1}; }
  void finish(rt::Event e) {
    std::uint64_t now = completed_[e.queue].load();
    while (now < e.position && !completed_[e.queue].compare_exchange_weak(now, e.position)) {}
  }
  void finish_all() {
    for (std::uint32_t q = 0; q < rt::kQueues; ++q) finish({q, submitted_[q].load()});
  }

  const DeviceProperties& properties() const override { return properties_; }
  rt::MemoryTraits memory_traits() const override { return traits; }
  Result<std::unique_ptr<rt::Storage>> allocate(std::uint64_t bytes) override {
    if (on_allocate) {
      if (auto error = on_allocate(bytes)) return std::move(*error);
    }
    const std::lock_guard lock(mutex_);
    if (bytes > room - std::min(room, bytes_)) return Error(ErrorCode::OutOfMemory, "the test's device is full");
    auto block = std::make_unique<rt::Storage>();
    block->data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    block->bytes = bytes;
    blocks_[block->data] = bytes;
    bytes_ += bytes;
    ++allocations_;
    return block;
  }
  void retire(std::unique_ptr<rt::Storage> block, const rt::After& after) noexcept override {
    bool open = false;
    after.for_each([&](rt::Event e) { open = open || !done(e); });
    if (on_retire) on_retire(*block);
    if (block->owner != nullptr) return;
    if (open) std::abort();  // the manager's blocks come back when they are over
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(block->data);
    if (found == blocks_.end()) std::abort();  // not its own, or twice
    bytes_ -= found->second;
    blocks_.erase(found);
    std::free(block->data);
  }
  std::optional<std::uint64_t> free_memory() const override { return room - block_bytes(); }
  bool done(rt::Event e) const override { return completed_[e.queue].load() >= e.position; }
  void wait(rt::Event e) override {
    if (!done(e)) ++waits;
    finish(e);
  }
  rt::Event last(std::uint32_t queue) const override { return {queue, submitted_[queue].load()}; }

  // It runs nothing.
  bool host_addressable() const override { return true; }
  Result<rt::Staging> stage(std::uint64_t) override { return nothing(); }
  std::uint64_t max_staging() const override { return 0; }
  CompileOptions compile_options(const ir::Kernel&, const Dim3&, bool) const override { return {}; }
  Result<std::unique_ptr<rt::DeviceProgram>> load(const CompiledCode&, const rt::ProgramFacts&) override { return nothing(); }
  Result<Mapped> map(std::uint64_t) override { return nothing(); }
  void unmap(const Mapped&) noexcept override {}
  Result<std::unique_ptr<rt::DeviceGraph>> make_graph(std::span<const rt::GraphNode>, const std::string&) override { return nothing(); }
  std::span<ir::FaultRecord> fault_records() override { return {}; }
  std::uint64_t fault_address() override { return 0; }
  rt::Task& acquire(bool) override { throw std::logic_error("this device runs nothing"); }
  void abandon(rt::Task&) noexcept override {}
  Result<rt::Event> submit(rt::Task&, std::uint32_t, const rt::After&) override { return nothing(); }
  bool busy(std::uint32_t, const rt::After&) const override { return false; }
  void begin_host(rt::Task&) override {}
  void finish_host(rt::Task&) noexcept override {}
  void trapped(const Error&) override {}
  void ask_for_trap(std::function<std::optional<Error>()>) override {}

 private:
  static Error nothing() { return Error(ErrorCode::UnsupportedIo, "this device has memory only"); }

  DeviceProperties properties_;
  std::array<std::atomic<std::uint64_t>, rt::kQueues> submitted_{}, completed_{};
  mutable std::mutex mutex_;
  std::map<void*, std::uint64_t> blocks_;
  std::uint64_t bytes_ = 0, allocations_ = 0;
};

// A manager over such a device, and what it gave out.
class MemoryBench {
 public:
  using Block = rt::MemoryManager::Block;
  MemoryDevice device;
  std::unique_ptr<rt::MemoryManager> manager;

  explicit MemoryBench(std::uint64_t alignment = 1, std::vector<PoolConfig> pools = {}) : device(alignment) {
    if (!pools.empty()) device.traits.pools.pools = std::move(pools);
    manager = std::make_unique<rt::MemoryManager>(device);
  }
  Result<Block> take(std::uint64_t bytes, std::uint64_t stream = 0) { return manager->allocate(bytes, {stream, false}); }
  Block get(std::uint64_t bytes, std::uint64_t stream = 0) { return take(bytes, stream).value(); }
  void drop(Block block, const rt::After& after = {}) { manager->retire(std::move(block), after); }
  MemoryReport report() const { return manager->report(); }
  MemoryUsage total() const { return report().total; }
  // The pool of that number in the present layout.
  PoolReport pool(std::size_t i) const {
    std::vector<PoolReport> present;
    for (const PoolReport& p : report().pools)
      if (!p.outdated) present.push_back(p);
    return present.at(i);
  }
  PoolReport persistent() const { return report().pools.back(); }
};

inline PoolConfig sliced(std::uint64_t page, std::uint64_t cap = 0, std::uint64_t max_slice = 0) {
  return {PoolKind::Sliced, page, max_slice, cap, 0};
}
inline PoolConfig exclusive(std::uint64_t page = kAnySize, std::uint64_t cap = 0) { return {PoolKind::Exclusive, page, 0, cap, 0}; }
inline PoolConfig direct() { return {PoolKind::Direct, 0, 0, 0, 0}; }

}  // namespace kiln::test
