#include "src/fault_slots.h"

#include <atomic>
#include <cassert>
#include <string>
#include <utility>

#include "kiln/ir/message.h"
#include "src/dynamic_grid.h"
#include "src/launch_logs.h"
#include "src/make_error.h"

namespace kiln::rt {
namespace {

std::string text(const std::uint32_t (&d)[3]) {
  return "(" + std::to_string(d[0]) + ", " + std::to_string(d[1]) + ", " + std::to_string(d[2]) + ")";
}

std::string by_whom(const ir::FaultRecord& record) { return ", in thread " + text(record.thread) + " of block " + text(record.block); }

// Of a check or an assumption.
Error check_failed(const ir::FaultRecord& record, const Program& program, const ir::FaultSite& site) {
  Error::Data data;
  data.code = ErrorCode::CheckFailed;
  data.kernel = *program.name;
  data.place = site.place;
  data.bounds = bounds_fault(record, program.sites);
  const std::uint64_t values[] = {record.index, record.extent};
  const bool check = site.operation == "check";
  data.message =
      (check ? "check failed: " + ir::format_message(site.text, site.values, values) : "the assumption does not hold: " + site.text) +
      by_whom(record);
  return Error(std::move(data));
}

// Who has the record need not be the thread that trapped.
Error trap_error(const ir::FaultRecord& record, const Program& program) {
  Error::Data data;
  data.code = ErrorCode::Trapped;
  data.kernel = *program.name;
  data.message = "trap";
  if (record.trapped <= program.sites.size()) {
    const ir::FaultSite& site = program.sites[record.trapped - 1];
    data.place = site.place;
    if (!site.text.empty()) data.message += ": " + site.text;
    if (record.state == 2 && record.site == record.trapped - 1) {
      data.bounds = bounds_fault(record, program.sites);
      data.message += by_whom(record);
    }
  }
  return Error(std::move(data));
}

Error out_of_bounds(const ir::FaultRecord& record, const Program& program) {
  Error::Data data;
  data.code = ErrorCode::Bounds;
  data.kernel = *program.name;
  BoundsFault fault = bounds_fault(record, program.sites);
  data.message = "out of range: " + fault.operation + " of '" + fault.memory + "' " +
                 (fault.declared.empty() ? "" : "(declared at " + fault.declared + ") ") + "at index " + index_text(fault) +
                 " of dimension " + std::to_string(fault.dimension) + ", whose extent is " + std::to_string(fault.extent) + ", by thread " +
                 text(record.thread) + " of block " + text(record.block);
  data.place = fault.place;
  data.bounds = std::move(fault);
  return Error(std::move(data));
}

Error no_scratch(const ir::FaultRecord& record, const Program& program) {
  return make_error(
      ErrorCode::LaunchOutOfMemory, {},
      "the device has no memory for the " + std::to_string(record.index) + " bytes of shared memory and carried values of a block",
      {.kernel = *program.name, .requested = record.index});
}

// trap() looks at a record that another thread may meanwhile give back and begin anew. So each field is cleared by a release, once this was
// counted, and copied by an acquire: who has anything of what came after sees that the count is another.
template <class F, class... Record>
void for_each_field(F&& f, Record&... records) {
  f(records.trapped...);
  f(records.state...);
  f(records.kind...);
  f(records.site...);
  f(records.dimension...);
  f(records.index...);
  f(records.extent...);
  for (unsigned d = 0; d < 3; ++d) {
    f(records.thread[d]...);
    f(records.block[d]...);
  }
}

ir::FaultRecord copy_of(ir::FaultRecord& record) {
  ir::FaultRecord copy;
  for_each_field([](auto& from, auto& to) { to = std::atomic_ref(from).load(std::memory_order_acquire); }, record, copy);
  return copy;
}

}  // namespace

BoundsFault bounds_fault(const ir::FaultRecord& record, std::span<const ir::FaultSite> sites) {
  BoundsFault fault;
  fault.dimension = record.dimension;
  fault.index = record.index;
  fault.extent = record.extent;
  fault.thread = {record.thread[0], record.thread[1], record.thread[2]};
  fault.block = {record.block[0], record.block[1], record.block[2]};
  if (record.site < sites.size()) {
    const ir::FaultSite& site = sites[record.site];
    fault.memory = site.memory;
    fault.operation = site.operation;
    fault.place = site.place;
    fault.declared = site.declared;
    fault.index_signed = record.dimension < ir::kMaxRank && site.signed_index[record.dimension];
  } else {
    fault.memory = fault.operation = fault.place = "?";
  }
  return fault;
}

std::optional<Error> fault_of(ir::FaultRecord& record, const Program& program) {
  const bool trapped = std::atomic_ref(record.trapped).load(std::memory_order_acquire) != 0;
  if (std::atomic_ref(record.state).load(std::memory_order_acquire) == 0 && !trapped) return std::nullopt;
  if (trapped) return trap_error(record, program);
  if (record.kind == kFaultNoScratch) return no_scratch(record, program);
  if (record.kind == kFaultGridTooLarge) return grid_too_large(*program.name, program.place, record.dimension, record.index, record.extent);
  if (record.site < program.sites.size() && program.sites[record.site].is_check())
    return check_failed(record, program, program.sites[record.site]);
  return out_of_bounds(record, program);
}

FaultSlots::FaultSlots(std::span<ir::FaultRecord> records) : records_(records), rows_(records.size()) {
  assert(records.size() < kNone);
  for (std::size_t i = 0; i < records.size(); ++i)
    rows_[i].behind.store(i + 1 < records.size() ? static_cast<std::uint32_t>(i + 1) : kNone, std::memory_order_relaxed);
  free_.store(records.empty() ? kNone : 0, std::memory_order_relaxed);
}

std::optional<std::uint32_t> FaultSlots::take(const Program* program) {
  std::uint32_t slot = 0;
  if (take({&slot, 1}) == 0) return std::nullopt;
  begin(slot, program);
  return slot;
}

std::size_t FaultSlots::take(std::span<std::uint32_t> slots) {
  std::uint64_t first = free_.load(std::memory_order_acquire);
  for (;;) {
    std::size_t count = 0;
    std::uint32_t slot = static_cast<std::uint32_t>(first % (1u << kNumberBits));
    // Where another thread takes them meanwhile these are of no use, and what is compared has changed.
    for (; count < slots.size() && slot != kNone; ++count) {
      slots[count] = slot;
      slot = rows_[slot].behind.load(std::memory_order_relaxed);
    }
    if (count == 0) return 0;
    if (free_.compare_exchange_weak(first, ((first >> kNumberBits) + 1) << kNumberBits | slot, std::memory_order_acq_rel,
                                    std::memory_order_acquire))
      return count;
  }
}

void FaultSlots::begin(std::uint32_t slot, const Program* program) {
  ir::FaultRecord& record = records_[slot];
  const auto is_set = [](std::uint32_t& field) { return std::atomic_ref(field).load(std::memory_order_relaxed) != 0; };
  if (is_set(record.trapped) || is_set(record.state)) {  // who writes anything there sets one of the two
    rows_[slot].cleared.fetch_add(1, std::memory_order_relaxed);
    for_each_field([](auto& field) { std::atomic_ref(field).store(0, std::memory_order_release); }, record);
  }
  rows_[slot].program.store(program, std::memory_order_release);
}

void FaultSlots::give_back(std::span<const std::uint32_t> slots) noexcept {
  if (slots.empty()) return;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    rows_[slots[i]].program.store(nullptr, std::memory_order_relaxed);
    if (i != 0) rows_[slots[i - 1]].behind.store(slots[i], std::memory_order_relaxed);
  }
  std::uint64_t first = free_.load(std::memory_order_relaxed);
  do {
    rows_[slots.back()].behind.store(static_cast<std::uint32_t>(first % (1u << kNumberBits)), std::memory_order_relaxed);
  } while (!free_.compare_exchange_weak(first, ((first >> kNumberBits) + 1) << kNumberBits | slots.front(), std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
}

void FaultSlots::keep_log(std::uint32_t slot, LaunchLogMemory* log) { rows_[slot].log.store(log, std::memory_order_release); }

LaunchLogMemory* FaultSlots::take_log(std::uint32_t slot) {
  if (rows_[slot].log.load(std::memory_order_relaxed) == nullptr) return nullptr;
  return rows_[slot].log.exchange(nullptr, std::memory_order_acq_rel);
}

std::optional<Error> FaultSlots::trap() const {
  for (std::size_t slot = 0; slot < rows_.size(); ++slot) {
    const std::uint32_t cleared = rows_[slot].cleared.load(std::memory_order_acquire);
    const Program* const program = rows_[slot].program.load(std::memory_order_acquire);
    if (program == nullptr || std::atomic_ref(records_[slot].trapped).load(std::memory_order_acquire) == 0) continue;
    const ir::FaultRecord record = copy_of(records_[slot]);
    if (rows_[slot].cleared.load(std::memory_order_relaxed) == cleared && rows_[slot].program.load(std::memory_order_relaxed) == program)
      return trap_error(record, *program);
  }
  return std::nullopt;
}

HeldSlot::~HeldSlot() {
  if (released_) return;
  if (LaunchLogMemory* log = slots_.take_log(slot_)) logs_.give_back(log);
  slots_.give_back({&slot_, 1});
}

std::optional<Error> FaultSlots::fault(std::uint32_t slot) const {
  return fault_of(records_[slot], *rows_[slot].program.load(std::memory_order_acquire));
}

bool FaultSlots::did_nothing(std::uint32_t slot) const {
  return std::atomic_ref(records_[slot].state).load(std::memory_order_acquire) == 2 && records_[slot].kind == kFaultEmptyGrid;
}

std::size_t FaultSlots::used() const {
  std::size_t used = 0;
  for (const Row& row : rows_) used += row.program.load(std::memory_order_relaxed) != nullptr;
  return used;
}

}  // namespace kiln::rt
