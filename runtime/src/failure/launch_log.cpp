#include "launch_log.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::rt {

namespace {

// Only what runs on the device can fault after it was enqueued.
bool can_fault(LogKind kind) { return kind == LogKind::Launch || kind == LogKind::Copy || kind == LogKind::Graph; }

const char* kind_text(LogKind kind) {
  switch (kind) {
    case LogKind::Launch: return "a launch";
    case LogKind::Copy: return "a copy";
    case LogKind::HostWrite: return "a write from the host";
    case LogKind::Free: return "a free";
    case LogKind::Graph: return "a graph";
    case LogKind::Read: return "a read";
  }
  return "an operation";
}

std::string_view name_of(const std::shared_ptr<const std::string>& name, LogKind kind) {
  return name ? std::string_view(*name) : kind_text(kind);
}

}  // namespace

template <class T>
void LaunchLog::Ring<T>::grow(std::size_t more) {
  std::vector<T> larger(std::bit_ceil((size() + more) < 16 ? std::size_t{16} : size() + more));
  for (std::uint64_t i = begin_; i != end_; ++i) larger[i & (larger.size() - 1)] = std::move((*this)[i]);
  slots_ = std::move(larger);
  room_ = slots_.size();
}

void LaunchLog::push(const LogNote& note, std::uint64_t freed_memory, bool claimed) {
  const std::size_t count = note.reads.size() + note.writes.size() + note.covers.size();
  entries_.reserve(1);
  ranges_.reserve(count);  // nothing below can fail
  Entry& entry = entries_.push_used();
  entry.kind = note.kind;
  entry.confirmed = !can_fault(note.kind);
  entry.claimed = claimed;
  entry.conditional = note.conditional;
  entry.nothing = false;
  entry.name = note.name;
  entry.stamp = note.stamp;
  entry.stream = note.stream;
  entry.position = note.position;
  entry.slot = note.slot;
  entry.reads = static_cast<std::uint32_t>(note.reads.size());
  entry.writes = static_cast<std::uint32_t>(note.writes.size());
  entry.covers = static_cast<std::uint32_t>(note.covers.size());
  entry.first = ranges_.end();
  entry.freed = freed_memory;
  entry.fault.reset();
  entry.read = nullptr;
  for (const MemoryRange& range : note.reads) ranges_.push(range);
  for (const MemoryRange& range : note.writes) ranges_.push(range);
  for (const MemoryRange& range : note.covers) ranges_.push(range);
  empty_.store(false, std::memory_order_relaxed);
}

void LaneNotes::drop(std::uint32_t count) {
  if (count == count_) {
    count_ = used_ = 0;
    return;
  }
  const std::uint32_t first = notes_[count].first;
  std::copy(notes_.begin() + count, notes_.begin() + count_, notes_.begin());
  std::copy(ranges_.begin() + first, ranges_.begin() + used_, ranges_.begin());
  count_ -= count;
  used_ -= first;
  for (std::uint32_t i = 0; i < count_; ++i) notes_[i].first -= first;
}

Ticket LaunchLog::append(const LogNote& note) noexcept {
  const std::lock_guard lock(mutex_);
  return append_locked(note);
}

void LaunchLog::append(LaneNotes& notes) noexcept {
  if (notes.empty()) return;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < notes.count_; ++i) {
    const LaneNotes::Note& note = notes.notes_[i];
    const MemoryRange* const ranges = notes.ranges_.data() + note.first;
    append_locked({.kind = LogKind::Launch,
                   .name = {std::shared_ptr<const std::string>(), note.name},  // not counted
                   .stamp = note.stamp,
                   .reads = {ranges, note.reads},
                   .writes = {ranges + note.reads, note.writes},
                   .covers = {ranges + note.reads + note.writes, note.covers},
                   .stream = note.at.queue,
                   .position = note.at.position,
                   .slot = note.slot});
  }
  notes.count_ = notes.used_ = 0;
}

Ticket LaunchLog::append_locked(const LogNote& note) noexcept {
  bool claimed = false;
  if (note.stamp < last_finding_.load(std::memory_order_relaxed))
    claimed = store_.reconsider(name_of(note.name, note.kind), note.reads, note.writes,
                                note.conditional ? std::span<const MemoryRange>() : note.covers, note.stamp);
  // Nothing before it is in doubt and it cannot fault: no later finding concerns it.
  if (!can_fault(note.kind) && entries_.size() == 0) return entries_.end();
  try {
    push(note, 0, claimed);
    return entries_.end();
  } catch (...) {
    try {
      store_.fail(note.stamp, note.writes,
                  Error(ErrorCode::OutOfMemory, "There was no host memory left to note the operation, so its faults could not be found"));
    } catch (...) { store_.lose_track(); }
    return 0;
  }
}

void LaunchLog::freed(std::uint64_t memory) noexcept {
  const std::lock_guard lock(mutex_);
  if (entries_.size() != 0) {
    try {
      push(LogNote{.kind = LogKind::Free,
                   .name = nullptr,
                   .stamp = 0,
                   .reads = {},
                   .writes = {},
                   .covers = {},
                   .stream = 0,
                   .position = 0,
                   .slot = kNoSlot},
           memory, false);
    } catch (...) {  // a later finding may claim memory that is gone: a record too many, no wrong answer
    }
  }
  store_.clear(memory);  // after the entry: no finding can come between
}

LogRead::LogRead(LaunchLog& log, std::vector<MemoryRange> ranges) : log_(log), ranges_(std::move(ranges)) {
  const std::lock_guard lock(log.mutex_);
  known_ = log.store_.ensure_written(ranges_);
  if (ranges_.empty() || ranges_.front().empty()) return;
  if (!known_.has_value()) {
    for (const Claim& claim : log.store_.claims(ranges_.front().memory)) add(claim);
    if (claims_.empty()) return;  // never allocated, or the store lost track
    for (const Claim& claim : claims_.of(ranges_.front().memory)) describe(claim.failure);
  }
  if (log.entries_.size() == 0) return;
  LogNote note;
  note.kind = LogKind::Read;
  note.reads = ranges_;
  log.push(note, 0, false);
  ticket_ = log.entries_.end();
  log.entries_[ticket_ - 1].read = this;
}

LogRead::~LogRead() {
  const std::lock_guard lock(log_.mutex_);
  if (ticket_ > log_.entries_.begin()) log_.entries_[ticket_ - 1].read = nullptr;
}

bool LogRead::add(const Claim& claim) {
  bool met = false;
  for (const MemoryRange& range : ranges_) {
    const ByteRange bytes = range.bytes();
    MemoryRange where = range;
    where.range = {std::max(claim.range.begin, bytes.begin), std::min(claim.range.end, bytes.end)};
    if (where.range.empty()) continue;
    claims_.taint(where, claim.failure, claim.stamp);
    met = true;
  }
  return met;
}

void LogRead::describe(FailureId failure) {
  const auto same = [&](const Report& report) { return report.failure == failure; };
  if (std::none_of(reports_.begin(), reports_.end(), same))
    reports_.push_back({failure, log_.store_.report(failure, ranges_.front().memory)});
}

Result<void> LogRead::verdict() const {
  const std::lock_guard lock(log_.mutex_);
  if (log_.store_.lost(ranges_)) return log_.store_.ensure_written(ranges_);
  if (claims_.empty()) return known_;
  std::vector<FailureId> met;
  std::vector<Error> errors;
  for (const Claim& claim : claims_.of(ranges_.front().memory)) {
    if (std::find(met.begin(), met.end(), claim.failure) != met.end()) continue;
    met.push_back(claim.failure);
    for (const Report& report : reports_)
      if (report.failure == claim.failure) errors.push_back(report.error);
  }
  return FailureStore::unreadable(std::move(errors));
}

std::size_t LaunchLog::confirm_with(const Inspector& inspector, Ticket up_to) {
  const std::lock_guard lock(mutex_);
  std::size_t faults = 0;
  std::uint64_t first_fault = entries_.end();
  const auto settle = [&] {
    if (first_fault != entries_.end()) {
      try {
        faults = settle_faults(first_fault);
      } catch (...) {  // no memory to note what was found: nothing may be read as data any more
        store_.lose_track();
      }
    }
    drop_confirmed();
  };
  try {
    for (std::uint64_t i = entries_.begin(); i != entries_.end() && i < up_to; ++i) {
      Entry& entry = entries_[i];
      if (entry.confirmed) continue;
      Verdict verdict = inspector.call(
          inspector.self, LogView{i + 1, entry.kind, entry.name.get(), entry.stream, entry.position, entry.slot, entry.writes != 0});
      if (verdict.kind == Verdict::Kind::Pending) continue;
      entry.confirmed = true;
      if (entry.conditional && verdict.kind != Verdict::Kind::Faulted) resolve(entry, verdict.kind == Verdict::Kind::Clean);
      if (verdict.kind != Verdict::Kind::Faulted || entry.claimed) continue;
      entry.fault = verdict.error ? std::move(*verdict.error) : Error(ErrorCode::Generic, "The operation failed on the device");
      if (first_fault == entries_.end()) first_fault = i;
    }
  } catch (...) {
    settle();
    throw;
  }
  settle();
  return faults;
}

// It is known now whether a conditional operation ran.
void LaunchLog::resolve(Entry& entry, bool ran) {
  entry.conditional = false;
  entry.nothing = !ran;
  if (!ran || entry.claimed) return;
  covers_.clear();
  const std::uint64_t begin = entry.first + entry.reads + entry.writes;
  for (std::uint64_t r = begin; r != begin + entry.covers; ++r) covers_.push_back(ranges_[r]);
  store_.succeed(entry.stamp, covers_);
}

// Goes through the log as if each fault had been known when its operation was enqueued. `late` holds the bytes that are claimed only
// because of what was found now; the store knows the rest. An operation in the log ran, so nothing that the store knew then lay on its
// reads.
std::size_t LaunchLog::settle_faults(std::uint64_t from) {
  ClaimMap late;
  std::vector<FailureId> found;
  std::vector<MemoryRange> writes;
  struct Told {
    LogRead* read;
    FailureId failure;
  };
  std::vector<Told> told;
  std::size_t faults = 0;
  for (std::uint64_t i = from; i != entries_.end(); ++i) {
    Entry& entry = entries_[i];
    if (entry.kind == LogKind::Free) {
      late.clear(entry.freed);
      continue;
    }
    if (entry.kind == LogKind::Read) {
      if (entry.read == nullptr) continue;
      for (const Claim& claim : late.of(ranges_[entry.first].memory))
        if (entry.read->add(claim)) told.push_back({entry.read, claim.failure});
      continue;
    }
    if (entry.claimed || entry.nothing) continue;
    const std::uint64_t reads_end = entry.first + entry.reads, writes_end = reads_end + entry.writes,
                        covers_end = writes_end + entry.covers;
    FailureId failure = 0;
    MemoryRange needed;
    for (std::uint64_t r = entry.first; r != reads_end && failure == 0; ++r) {
      if (const Claim* claim = late.find(ranges_[r])) {
        failure = claim->failure;
        needed = ranges_[r];
      }
    }
    if (failure == 0 && !entry.fault) {
      if (entry.conditional) continue;  // it may leave them as they are
      for (std::uint64_t r = writes_end; r != covers_end; ++r) late.release(ranges_[r], kEver);
      continue;
    }
    writes.clear();
    for (std::uint64_t r = reads_end; r != writes_end; ++r) writes.push_back(ranges_[r]);
    if (failure == 0) {
      failure = store_.insert(std::move(*entry.fault));
      found.push_back(failure);
      ++faults;
    } else {
      store_.record(failure, name_of(entry.name, entry.kind), needed, writes, Propagation::Voided);
    }
    entry.fault.reset();  // where an input was claimed, its own fault is a consequence
    if (late_ != nullptr) {
      if (const auto error = store_.error(failure)) late_->failed_late(static_cast<std::uint32_t>(entry.stream), entry.position, *error);
    }
    entry.claimed = true;
    for (const MemoryRange& range : writes) late.taint(range, failure, entry.stamp);
  }
  late.for_each([&](std::uint64_t memory, const Claim& claim) {
    const MemoryRange range{memory, claim.range, true};
    store_.claim(claim.failure, {&range, 1}, claim.stamp);
  });
  // While they are known: writes behind the read may have ended every claim of theirs.
  for (const Told& t : told) t.read->describe(t.failure);
  for (const FailureId failure : found) store_.prune(failure);
  last_finding_.store(store_.next_stamp(), std::memory_order_relaxed);
  return faults;
}

void LaunchLog::drop_confirmed() {
  std::uint64_t i = entries_.begin();
  for (; i != entries_.end() && entries_[i].confirmed; ++i) {
    entries_[i].name.reset();
    ranges_.drop_to(entries_[i].first + entries_[i].reads + entries_[i].writes + entries_[i].covers);
  }
  entries_.drop_to(i);
  if (entries_.size() == 0) empty_.store(true, std::memory_order_release);
}

Ticket LaunchLog::last() const {
  const std::lock_guard lock(mutex_);
  return entries_.end();
}

std::size_t LaunchLog::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t LaunchLog::capacity() const {
  const std::lock_guard lock(mutex_);
  return entries_.room();
}

}  // namespace kiln::rt
