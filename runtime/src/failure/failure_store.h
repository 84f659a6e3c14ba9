// The failures of one device and the bytes they lie on. Not a queue of errors and not a state of a stream: a failure belongs to bytes, and
// stays until those bytes are written whole or freed.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "claims.h"
#include "kiln/runtime/error.h"

namespace kiln::rt {

// A claim that a query met.
struct Claimed {
  FailureId failure = 0;
  std::uint64_t memory = 0;                // the allocation it was found on
  Error error;                             // the root
  const std::string* parameter = nullptr;  // as the range has it
};

// "'x' (memory 7)", or "memory 7" where it is no parameter.
std::string memory_text(std::uint64_t memory, const std::string& parameter);

// How an operation came to carry the failure of its input.
enum class Propagation : std::uint8_t {
  Skipped,  // it did not run
  Voided,   // it had been enqueued before the failure was known, and ran on claimed bytes
};

// One per device. Thread-safe: every function may be called by any thread; one mutex, never held over anything that blocks or over code of
// others. Healthy operations allocate nothing. Destroying it forgets everything.
class FailureStore {
 public:
  static constexpr std::size_t kKeptSkips = 16;  // records kept per failure, newest

  // `next_memory`: the number that memory gets next, so that those that there are are known; null: all that there ever are.
  explicit FailureStore(const std::atomic<std::uint64_t>* next_memory = nullptr) : next_memory_(next_memory) {}
  FailureStore(const FailureStore&) = delete;
  FailureStore& operator=(const FailureStore&) = delete;

  // --- queries ------------------------------------------------------------------------------------------------------
  // The first claim in the order given, none where all is well. Does not wait.
  std::optional<Claimed> read_failure(std::span<const MemoryRange> ranges) const;
  // For reads and checks. Success, or Several (always, also for one) of Unwritten errors: each failure once, in the order found. Memory
  // that was never allocated and carries no failure gives NotFound. Late faults are the launch log's: confirm them first.
  Result<void> ensure_written(std::span<const MemoryRange> ranges) const;
  // What a read says of the Unwritten errors that it met: Several.
  static Error unreadable(std::vector<Error> errors);
  // The Unwritten error of a read of `memory`, which carries `failure`: number, how many allocations still carry it, the skips between, the
  // root.
  Error report(FailureId failure, std::uint64_t memory) const;
  // The error of a failure; none once no byte carries it.
  std::optional<Error> error(FailureId failure) const;
  // The bytes of `memory` that carry `failure`, ascending, touching ranges as one.
  std::vector<ByteRange> ranges(FailureId failure, std::uint64_t memory) const;
  // All claims of `memory`, ascending and disjoint.
  std::vector<Claim> claims(std::uint64_t memory) const;
  std::uint64_t tagged(FailureId failure) const;  // how many allocations carry it
  std::size_t size() const;                       // failures known; 0 after everything was written or freed
  bool empty() const { return size() == 0; }

  // --- changes ------------------------------------------------------------------------------------------------------
  // A place in the order of operations, later than every one before.
  Stamp next_stamp() { return take_stamps(1); }
  // So many of them, one behind the other; gives the first. Whoever sets them aside for operations to come sees to it that each is later
  // than all that concern the same memory.
  Stamp take_stamps(Stamp count) { return clock_.fetch_add(count, std::memory_order_acq_rel) + 1; }
  Stamp now() const { return clock_.load(std::memory_order_relaxed); }

  // A failure on no bytes yet. Give it some with taint(), or prune() it.
  FailureId insert(Error error);
  // Puts a known failure on the ranges (empty ones are nothing), as an operation enqueued now. No-op for a failure that is gone.
  void taint(FailureId failure, std::span<const MemoryRange> ranges);
  // The ranges were written whole: nothing there is claimed any more, bytes outside stay claimed.
  void written(std::span<const MemoryRange> ranges);
  // Freed, or bound to other storage.
  void clear(std::uint64_t memory) noexcept;
  // Another error for a failure that is still known; else a no-op.
  void replace(FailureId failure, Error error);
  // Forgets a failure that lies on no bytes.
  void prune(FailureId failure);

  // --- what scopes and the launch log do, each in one step -------------------------------------------------------------
  struct Entered {
    Stamp stamp = 0;
    std::optional<Claimed> claimed;  // set: an input was claimed, and the writes carry that failure now
  };
  // Looks at `reads`; a claim there is passed on to `writes` with a record that `name` needed it.
  Entered enter(std::string_view name, std::span<const MemoryRange> reads, std::span<const MemoryRange> writes) noexcept {
    Entered entered;
    if (enter(entered.stamp)) entered.claimed = pass_on(entered.stamp, name, reads, writes);
    return entered;
  }
  // The same in two steps. Takes the stamp of an operation that is entered now, unless it has one that was set aside (not 0). False:
  // nothing is claimed, so that there is nothing to pass on. The stamp first: whoever has a later one than a finding sees its claims, and
  // whoever has an earlier one is looked at again by the log.
  bool enter(Stamp& stamp) noexcept {
    if (stamp == 0) stamp = next_stamp();
    return !quiet_.load(std::memory_order_acquire);
  }
  // The second, where the first one says so: the claim, if there is one.
  std::optional<Claimed> pass_on(Stamp stamp, std::string_view name, std::span<const MemoryRange> reads,
                                 std::span<const MemoryRange> writes) noexcept;
  // An operation of that stamp went well: older claims on `covers` end (they stay when there is no memory to split them).
  void succeed(Stamp stamp, std::span<const MemoryRange> covers) noexcept {
    if (!quiet_.load(std::memory_order_acquire)) end_claims(stamp, covers);
  }
  // An operation of that stamp failed: `writes` are claimed. Returns the new failure, 0 when there were no bytes to claim. Never throws:
  // when there is no memory to note a claim with, the store counts everything as claimed from then on rather than let a failure be read as
  // data.
  FailureId fail(Stamp stamp, std::span<const MemoryRange> writes, Error error) noexcept;
  // For findings after the fact: a known failure lies on the ranges as if claimed by an operation of that stamp (newer claims stay).
  void claim(FailureId failure, std::span<const MemoryRange> ranges, Stamp stamp);
  // A record for reports: `name` needed `needed`, which carried the failure, and so `produced` carries it.
  void record(FailureId failure, std::string_view name, const MemoryRange& needed, std::span<const MemoryRange> produced, Propagation how);
  // Failures were found while an operation of that stamp was being enqueued. True: an older claim lies on its reads, and its writes carry
  // that failure now. False: older claims on `covers` end.
  bool reconsider(std::string_view name, std::span<const MemoryRange> reads, std::span<const MemoryRange> writes,
                  std::span<const MemoryRange> covers, Stamp stamp) noexcept;
  // Every byte that there is now counts as claimed for good; see fail(). Memory that is made later does not.
  void lose_track() noexcept;
  bool lost(std::span<const MemoryRange> ranges) const;  // one of them is of such memory

 private:
  struct Skip {
    std::string name;
    std::uint64_t needed = 0;
    std::string parameter;  // by which it was needed; may be empty
    std::vector<std::uint64_t> produced;
    Propagation how = Propagation::Skipped;
  };
  struct Node {
    Error error;
    std::uint64_t tagged = 0;
    std::deque<Skip> skipped;  // newest kKeptSkips, oldest first
    std::uint64_t skipped_total = 0;
  };
  class Tags;
  // Holds the lock and leaves quiet_ right.
  class Change {
   public:
    explicit Change(FailureStore& store) : store_(store), lock_(store.mutex_) {}
    ~Change() { store_.quiet_.store(store_.claims_.empty() && store_.lost_below_ == 0, std::memory_order_release); }
    Change(const Change&) = delete;

   private:
    FailureStore& store_;
    std::lock_guard<std::mutex> lock_;
  };

  void lose() noexcept;
  bool is_lost(const MemoryRange& range) const { return range.memory < lost_below_ && !range.empty(); }
  void give_number(Claimed& claimed);
  void end_claims(Stamp stamp, std::span<const MemoryRange> covers) noexcept;
  std::optional<Claimed> find(std::span<const MemoryRange> ranges, Stamp before) const;
  Error describe(FailureId failure, std::uint64_t memory) const;
  FailureId mint(Error error);
  void add_skip(FailureId failure, std::string_view name, std::uint64_t needed, const std::string* parameter,
                std::span<const MemoryRange> produced, Propagation how);
  void put(FailureId failure, std::span<const MemoryRange> ranges, Stamp stamp);
  void drop_if_bare(FailureId failure);

  alignas(64) std::atomic<Stamp> clock_{0};  // every thread writes it; what all of them read lies elsewhere
  alignas(64) mutable std::mutex mutex_;
  FailureId last_failure_ = 0;
  const std::atomic<std::uint64_t>* const next_memory_;
  std::uint64_t lost_below_ = 0;   // memory of a lower number
  std::atomic<bool> quiet_{true};  // nothing is claimed: operations need not look
  std::map<FailureId, Node> nodes_;
  ClaimMap claims_;
};

// The error of bytes whose scope was left before it settled.
const Error& torn_down();
// "matmul@tile=16" of "ns::matmul@tile=16".
std::string_view short_name(std::string_view kernel);

}  // namespace kiln::rt
