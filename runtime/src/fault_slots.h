// Which fault record belongs to which launch that is not confirmed yet.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "kiln/ir/param_layout.h"
#include "src/programs.h"

namespace kiln::rt {

// The fields of a record of an access out of range, with what the program knows about the site.
BoundsFault bounds_fault(const ir::FaultRecord& record, std::span<const ir::FaultSite> sites);

// Thread-safe; its lock is taken last and held for a moment. Taking and giving back allocate nothing.
class FaultSlots {
 public:
  explicit FaultSlots(std::span<ir::FaultRecord> records);

  // A cleared record for a launch of the program; none while all are in use.
  std::optional<std::uint32_t> take(const Program* program);
  ir::FaultRecord& record(std::uint32_t slot) { return records_[slot]; }
  void give_back(std::span<const std::uint32_t> slots) noexcept;

  // What the finished launch of the slot reported, if anything.
  std::optional<Error> fault(std::uint32_t slot) const;
  std::size_t used() const;

 private:
  std::span<ir::FaultRecord> records_;
  mutable std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::vector<const Program*> programs_;
};

// Slots on their way back; all of them are there at the end of the scope.
class GivenBack {
 public:
  explicit GivenBack(FaultSlots& slots) : slots_(slots) {}
  ~GivenBack() { flush(); }
  GivenBack(const GivenBack&) = delete;
  GivenBack& operator=(const GivenBack&) = delete;

  void add(std::uint32_t slot) {
    if (count_ == kept_.size()) flush();
    kept_[count_++] = slot;
  }

 private:
  void flush() {
    if (count_ != 0) slots_.give_back({kept_.data(), count_});
    count_ = 0;
  }

  FaultSlots& slots_;
  std::size_t count_ = 0;
  std::array<std::uint32_t, 64> kept_;
};

// A slot taken for a launch, given back unless the launch log has it.
class HeldSlot {
 public:
  HeldSlot(FaultSlots& slots, std::uint32_t slot) : slots_(slots), slot_(slot) {}
  ~HeldSlot() {
    if (!released_) slots_.give_back({&slot_, 1});
  }
  HeldSlot(const HeldSlot&) = delete;
  HeldSlot& operator=(const HeldSlot&) = delete;

  std::uint32_t number() const { return slot_; }
  void release() { released_ = true; }

 private:
  FaultSlots& slots_;
  std::uint32_t slot_;
  bool released_ = false;
};

}  // namespace kiln::rt
