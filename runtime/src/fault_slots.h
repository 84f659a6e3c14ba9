// Which fault record belongs to which launch that is not confirmed yet.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kiln/ir/param_layout.h"
#include "src/programs.h"

namespace kiln::rt {

// The fields of a record of an access out of range, with what the program knows about the site.
BoundsFault bounds_fault(const ir::FaultRecord& record, std::span<const ir::FaultSite> sites);

// What the record of a finished launch of the program reports, if anything.
std::optional<Error> fault_of(ir::FaultRecord& record, const Program& program);

class LaunchLogs;
struct LaunchLogMemory;

// Thread-safe, without a lock. Taking and giving back allocate nothing.
class FaultSlots {
 public:
  explicit FaultSlots(std::span<ir::FaultRecord> records);  // fewer than 65535

  // A cleared record for a launch of the program; none while all are in use.
  std::optional<std::uint32_t> take(const Program* program);
  // The same in two steps: slots that are set aside, as many as there are, up to the room in `slots`; and one of them for a launch.
  std::size_t take(std::span<std::uint32_t> slots);
  void begin(std::uint32_t slot, const Program* program);
  void set_aside(std::uint32_t slot) { rows_[slot].program.store(nullptr, std::memory_order_relaxed); }  // again, once that is over
  // The log of the slot's launch, if it has one: kept for it, and given to whoever asks first.
  void keep_log(std::uint32_t slot, LaunchLogMemory* log);
  LaunchLogMemory* take_log(std::uint32_t slot);
  ir::FaultRecord& record(std::uint32_t slot) { return records_[slot]; }
  void give_back(std::span<const std::uint32_t> slots) noexcept;

  // Whether the finished launch of the slot left nothing at all: no report, no log.
  bool left_nothing(std::uint32_t slot) const {
    ir::FaultRecord& record = records_[slot];
    return std::atomic_ref(record.state).load(std::memory_order_acquire) == 0 &&
           std::atomic_ref(record.trapped).load(std::memory_order_acquire) == 0 &&
           rows_[slot].log.load(std::memory_order_relaxed) == nullptr;
  }
  // What the finished launch of the slot reported, if anything.
  std::optional<Error> fault(std::uint32_t slot) const;
  bool did_nothing(std::uint32_t slot) const;  // its grid was empty; see dynamic_grid.h
  // The trap that one of the launches in use came to, if any did: what poisoned the device.
  std::optional<Error> trap() const;
  std::size_t used() const;

 private:
  static constexpr std::uint32_t kNone = 0xffff;
  static constexpr unsigned kNumberBits = 16;

  std::span<ir::FaultRecord> records_;
  // The free slots, one behind the other: the number of the first, and above it how often this was changed, so that whoever compares it
  // cannot take what was there before for what is there now.
  alignas(64) std::atomic<std::uint64_t> free_{kNone};
  // Of a slot; in a line of its own, as its record is, since slots beside each other are those of different threads.
  struct alignas(64) Row {
    std::atomic<const Program*> program{nullptr};  // null: nobody launches with it
    std::atomic<LaunchLogMemory*> log{nullptr};
    std::atomic<std::uint32_t> behind{kNone};
    std::atomic<std::uint32_t> cleared{0};  // how often, of its record
  };
  alignas(64) std::vector<Row> rows_;
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

// A slot taken for a launch, given back, with the log that is kept with it, unless the launch log has it.
class HeldSlot {
 public:
  HeldSlot(FaultSlots& slots, LaunchLogs& logs, std::uint32_t slot) : slots_(slots), logs_(logs), slot_(slot) {}
  ~HeldSlot();
  HeldSlot(const HeldSlot&) = delete;
  HeldSlot& operator=(const HeldSlot&) = delete;

  std::uint32_t number() const { return slot_; }
  void release() { released_ = true; }

 private:
  FaultSlots& slots_;
  LaunchLogs& logs_;
  std::uint32_t slot_;
  bool released_ = false;
};

}  // namespace kiln::rt
