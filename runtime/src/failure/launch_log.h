// LaunchLog: the operations of one device whose late faults are not known yet, in the order in which they were enqueued, so that a fault
// that shows after the fact has the effects it would have had if it had been known at once.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "failure_store.h"
#include "src/events.h"
#include "src/short_lock.h"

namespace kiln::rt {

using Ticket = std::uint64_t;  // number of an entry, from 1 on, in log order
inline constexpr std::uint32_t kNoSlot = 0xffffffffu;

enum class LogKind : std::uint8_t { Launch, Copy, HostWrite, Free, Graph, Read };

// What is noted of an operation that was enqueued successfully (skipped and failed ones are not noted: the store knows them).
struct LogNote {
  LogKind kind = LogKind::Launch;
  std::shared_ptr<const std::string>
      name;         // for reports; shared, so that noting allocates nothing. Owns a text and nothing else. Null: the kind
  Stamp stamp = 0;  // ExecuteScope::stamp()
  std::span<const MemoryRange> reads, writes, covers;
  std::uint64_t stream = 0, position = 0;  // for the inspector only: where the operation lies in its stream
  std::uint32_t slot = kNoSlot;            // for the inspector only: its fault record
  // Whether it does anything at all is known when it is confirmed (Verdict::nothing). Until then it ends no claims: `covers` are not to be
  // among those of its scope. A reader that a fault found meanwhile concerns may be told too much, never too little.
  bool conditional = false;
};

// Launches of one queue on their way to the log, for whoever comes by often and does not want its lock each time. Not synchronised.
class LaneNotes {
 public:
  // Whether one more launch, with so many ranges, has room; else the log is to take them first.
  bool has_room(std::size_t ranges) const { return count_ < kNotes && used_ + ranges <= kRanges; }
  bool empty() const { return count_ == 0; }
  // Precondition: has_room. What is named outlives the launch's place in the log.
  void add(const std::string& name, Stamp stamp, Event at, std::uint32_t slot, std::span<const MemoryRange> reads,
           std::span<const MemoryRange> writes, std::span<const MemoryRange> covers) {
    Note& note = notes_[count_++];  // by field, as MemoryRange::become
    note.name = &name;
    note.stamp = stamp;
    note.at.queue = at.queue;
    note.at.position = at.position;
    note.slot = slot;
    note.first = used_;
    note.reads = static_cast<std::uint32_t>(reads.size());
    note.writes = static_cast<std::uint32_t>(writes.size());
    note.covers = static_cast<std::uint32_t>(covers.size());
    MemoryRange* to = ranges_.data() + used_;
    for (const MemoryRange& range : reads) (to++)->become(range);
    for (const MemoryRange& range : writes) (to++)->become(range);
    for (const MemoryRange& range : covers) (to++)->become(range);
    used_ = static_cast<std::uint32_t>(to - ranges_.data());
  }

  static constexpr std::uint32_t kNotes = 32;
  struct Note {
    const std::string* name = nullptr;
    Stamp stamp = 0;
    Event at;
    std::uint32_t slot = kNoSlot, first = 0, reads = 0, writes = 0, covers = 0;
  };
  std::span<const Note> notes() const { return {notes_.data(), count_}; }  // in their order
  // The first so many are known to have left nothing, and never come to the log.
  void drop(std::uint32_t count);

 private:
  friend class LaunchLog;
  static constexpr std::uint32_t kRanges = 128;
  std::uint32_t count_ = 0, used_ = 0;
  std::array<Note, kNotes> notes_;
  std::array<MemoryRange, kRanges> ranges_;
};

// What the inspector sees.
struct LogView {
  Ticket ticket = 0;
  LogKind kind = LogKind::Launch;
  const std::string* name = nullptr;  // null: the kind
  std::uint64_t stream = 0, position = 0;
  std::uint32_t slot = kNoSlot;
  bool writes = false;  // it has bytes to carry its failure
};

struct Verdict {
  enum class Kind : std::uint8_t { Pending, Clean, Nothing, Faulted } kind = Kind::Pending;
  std::optional<Error> error;  // Faulted

  static Verdict pending() { return {}; }
  static Verdict clean() { return {Kind::Clean, std::nullopt}; }
  static Verdict nothing() { return {Kind::Nothing, std::nullopt}; }  // of a conditional entry: it touched nothing
  static Verdict faulted(Error e) { return {Kind::Faulted, std::move(e)}; }
};

// Hears of operations that failed, or ran on what had failed, after they were enqueued. Called under the log's lock; must not block.
class LateFailures {
 public:
  virtual ~LateFailures() = default;
  virtual void failed_late(std::uint32_t queue, std::uint64_t position, const Error& error) noexcept = 0;
};

class LaunchLog;

// A read's place in the log: a fault of an operation before it that shows later concerns it, one of an operation behind it does not,
// whatever is claimed, written or freed meanwhile. It keeps the claims on its bytes as they are at that place: those that were known when
// it was enqueued, and what is found since, newer ones over older ones. For one thread.
class LogRead {
 public:
  // Call it in the order of enqueueing, before anything behind it is noted.
  LogRead(LaunchLog& log, const MemoryRange& range) : LogRead(log, std::vector<MemoryRange>{range}) {}
  LogRead(LaunchLog& log, std::vector<MemoryRange> ranges);  // of one memory
  ~LogRead();
  LogRead(const LogRead&) = delete;
  LogRead& operator=(const LogRead&) = delete;
  // Final once everything that the read waited for is confirmed. Errors as FailureStore::ensure_written.
  Result<void> verdict() const;

 private:
  friend class LaunchLog;
  LaunchLog& log_;
  const std::vector<MemoryRange> ranges_;
  Ticket ticket_ = 0;   // 0: nothing before it was in doubt
  Result<void> known_;  // when it was enqueued
  // Guarded by the log's lock.
  ClaimMap claims_;
  struct Report {
    FailureId failure;
    Error error;  // taken while the failure is known
  };
  std::vector<Report> reports_;
  bool add(const Claim& claim);  // false: on none of its bytes
  void describe(FailureId failure);
};

// One per device, thread-safe. Memory grows to the largest number of operations ever outstanding and is then reused: noting and confirming
// clean entries allocate nothing after warm-up. Whoever never waits should confirm now and then (size() tells), or the log grows with the
// backlog. Host writes and frees cannot fault late and need no inspector.
class LaunchLog {
 public:
  explicit LaunchLog(FailureStore& store) : store_(store) {}
  LaunchLog(const LaunchLog&) = delete;
  LaunchLog& operator=(const LaunchLog&) = delete;

  // Notes an operation at the end. Call it in the order of enqueueing, after its scope settled with success. If a fault was found between
  // the scope's entering and now, the operation is treated as enqueued after it: claims on its inputs pass on to its outputs. Never throws:
  // without memory for the entry the outputs are claimed, since their faults could not be found any more; 0 then.
  Ticket append(const LogNote& note) noexcept;
  // The same of them all, in their order, however long ago they settled, as long as nothing else that touches the same memory was appended
  // since; none are left. The record of one for which there is no memory is never looked at, nor its slot given back.
  void append(LaneNotes& notes) noexcept;
  // The memory is free: its claims end, in the store too, and no later finding claims it again.
  void freed(std::uint64_t memory) noexcept;

  // Asks inspect(const LogView&) -> Verdict once or more for every entry up to `up_to` that is not confirmed, in log order. Clean and
  // Faulted confirm the entry and are given at most once for an entry: the place to take the fault record and to give its slot back. All
  // faults found are settled in one pass over the log: a faulted operation claims its writes; a later one that read claimed bytes claims
  // its writes with the same failure (its own fault, a consequence, is not reported); one that did not ends claims within its C; a free
  // ends all of its memory. Returns how many operations faulted by themselves. The inspector runs under the log's lock: it must not block,
  // nor use the log. If it throws, entries before it stay confirmed.
  template <class Inspect>
  std::size_t confirm(Inspect&& inspect, Ticket up_to = ~Ticket{0}) {
    auto call = [&inspect](const LogView& view) -> Verdict { return inspect(view); };
    return confirm_with({&call, [](void* self, const LogView& view) { return (*static_cast<decltype(call)*>(self))(view); }}, up_to);
  }

  void tell(LateFailures* who) { late_ = who; }  // before the log is used

  // Without the lock. Nothing that was appended is in doubt; and a stamp later than those of all operations that the last finding may
  // concern, right for whoever saw before that the log is empty.
  bool empty() const { return empty_.load(std::memory_order_acquire); }
  Stamp last_finding() const { return last_finding_.load(std::memory_order_relaxed); }

  Ticket last() const;           // ticket of the newest entry, 0 when there was none
  std::size_t size() const;      // entries held
  std::size_t capacity() const;  // entries for which there is room

 private:
  friend class LogRead;
  struct Inspector {
    void* self;
    Verdict (*call)(void*, const LogView&);
  };
  struct Entry {
    LogKind kind = LogKind::Launch;
    bool confirmed = false;
    bool claimed = false;      // its writes carry a failure already; as if it had not run
    bool conditional = false;  // and not known to have run
    bool nothing = false;      // it did not
    std::shared_ptr<const std::string> name;
    Stamp stamp = 0;
    std::uint64_t stream = 0, position = 0;
    std::uint32_t slot = kNoSlot;
    std::uint32_t reads = 0, writes = 0, covers = 0;  // counts
    std::uint64_t first = 0;                          // of its ranges: reads, writes, covers
    std::uint64_t freed = 0;                          // Free: the memory
    std::optional<Error> fault;                       // found, not settled yet
    LogRead* read = nullptr;                          // Read: who wants to know, while he does
  };
  // A queue that keeps its room. Elements have running numbers.
  template <class T>
  class Ring {
   public:
    std::uint64_t begin() const { return begin_; }
    std::uint64_t end() const { return end_; }
    std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
    std::size_t room() const { return room_; }
    T& operator[](std::uint64_t i) { return slots_[i & (room_ - 1)]; }
    const T& operator[](std::uint64_t i) const { return slots_[i & (room_ - 1)]; }
    void reserve(std::size_t more) {  // strong guarantee
      if (size() + more > room_) grow(more);
    }
    void push(const T& value) { (*this)[end_++] = value; }  // room was reserved
    T& push_used() { return (*this)[end_++]; }              // with what was there before; room was reserved
    void drop_to(std::uint64_t i) { begin_ = i; }

   private:
    void grow(std::size_t more);

    std::vector<T> slots_;
    std::uint64_t room_ = 0;  // of them, a power of two
    std::uint64_t begin_ = 0, end_ = 0;
  };

  std::size_t confirm_with(const Inspector& inspector, Ticket up_to);
  Ticket append_locked(const LogNote& note) noexcept;
  void push(const LogNote& note, std::uint64_t freed_memory, bool claimed);
  std::size_t settle_faults(std::uint64_t from);
  void resolve(Entry& entry, bool ran);
  void drop_confirmed();

  FailureStore& store_;
  LateFailures* late_ = nullptr;
  mutable ShortLock mutex_;
  Ring<Entry> entries_;  // entry number i has ticket i + 1
  Ring<MemoryRange> ranges_;
  std::vector<MemoryRange> covers_;  // reused
  // Changed under the lock.
  std::atomic<Stamp> last_finding_{0};  // when faults were last settled
  std::atomic<bool> empty_{true};       // there are no entries
};

}  // namespace kiln::rt
