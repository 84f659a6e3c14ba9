// ExecuteScope: the one way by which an operation that writes device memory runs, so that no failure of it can be read as data.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "failure_store.h"
#include "io_sets.h"

namespace kiln::rt {

// Hears of failures and skips, so that a measurement in progress is not taken for one. Called without a lock; must not throw.
class ScopeObserver {
 public:
  virtual ~ScopeObserver() = default;
  virtual void on_failure(const Error& error) noexcept = 0;
};

enum class OutcomeKind : std::uint8_t {
  Executed,  // the body ran and succeeded
  Failed,    // the body ran and failed: W is claimed by its error
  Skipped,   // the body did not run: an input was claimed, and W carries that failure
};

template <class T>
struct Outcome {
  OutcomeKind kind;
  Result<T> result;  // Executed: the value; Failed: the error; Skipped: an error of code Skipped whose cause is the root
};

// The way of one operation over its write set:
//
//   ExecuteScope scope = ExecuteScope::launching(store, name, sets, observer);
//   Outcome<void> outcome = scope.execute([&]() -> Result<void> { ...enqueue... });
//
// A scope is entered or skipped from construction on. An entered scope holds a provisional claim on W: if it goes away before execute()
// came to an end (an exception of the body, or no execute() at all) W is claimed as TornDown. execute() settles it: success ends the
// provisional claim, and older claims within C only; failure claims W with the error. Claims that other operations hold on W outside C are
// not touched by success. The provisional claim is the scope's own: other threads see it only once it has become a claim, since until then
// their operations count as earlier.
//
// The name, the ranges and the store must outlive the scope. A scope is used by one thread; scopes of several threads may be open at a
// time. Entering and success allocate nothing. Where the order of enqueueing matters (the launch log), hold the device's enqueue lock from
// construction until the log has its entry.
class ExecuteScope {
 public:
  // Always enters. C is a part of W.
  static ExecuteScope over(FailureStore& store, std::span<const MemoryRange> writes, std::span<const MemoryRange> covers,
                           ScopeObserver* observer = nullptr);
  // Skips when R is claimed. `name` is for the record ("skipped `name`: ...").
  static ExecuteScope launching(FailureStore& store, std::string_view name, std::span<const MemoryRange> reads,
                                std::span<const MemoryRange> writes, std::span<const MemoryRange> covers,
                                ScopeObserver* observer = nullptr);
  // With a stamp that was set aside for it (FailureStore::take_stamps); 0: with one of its own.
  static ExecuteScope launching_at(Stamp stamp, FailureStore& store, std::string_view name, std::span<const MemoryRange> reads,
                                   std::span<const MemoryRange> writes, std::span<const MemoryRange> covers);
  static ExecuteScope launching(FailureStore& store, std::string_view name, const IoSets& sets, ScopeObserver* observer = nullptr) {
    return launching(store, name, sets.reads, sets.writes, sets.covers, observer);
  }
  // Claims W with an error that is known before anything could run (the kernel does not compile). Returns the error.
  static Error failed_writing(FailureStore& store, std::span<const MemoryRange> writes, Error error, ScopeObserver* observer = nullptr);

  ExecuteScope(const ExecuteScope&) = delete;
  ExecuteScope& operator=(const ExecuteScope&) = delete;
  ~ExecuteScope();

  bool entered() const { return !claimed_; }
  bool skipped() const { return claimed_.has_value(); }
  Stamp stamp() const { return stamp_; }  // of the operation, for the launch log
  // Skipped: what the launch needed, as an error of code Skipped. Precondition: skipped().
  Error skip_error() const;

  // Runs body() -> Result<T> and settles. At most once. An exception of the body goes through and leaves W claimed as TornDown.
  template <class Body>
  auto execute(Body&& body) -> Outcome<typename std::invoke_result_t<Body>::value_type> {
    using T = typename std::invoke_result_t<Body>::value_type;
    if (skipped()) return {OutcomeKind::Skipped, Result<T>(skip_error())};
    Result<T> result = std::forward<Body>(body)();
    if (result.has_value()) {
      settle_success();
      return {OutcomeKind::Executed, std::move(result)};
    }
    settle_failure(result.error());
    return {OutcomeKind::Failed, std::move(result)};
  }

 private:
  ExecuteScope(FailureStore& store, std::string_view name, std::span<const MemoryRange> reads, std::span<const MemoryRange> writes,
               std::span<const MemoryRange> covers, ScopeObserver* observer, Stamp stamp = 0)
      : store_(store), name_(name), writes_(writes), covers_(covers), observer_(observer), stamp_(stamp) {
    if (store_.enter(stamp_)) pass_on(reads);
  }
  void pass_on(std::span<const MemoryRange> reads);
  void settle_success() {
    open_ = false;
    store_.succeed(stamp_, covers_);
  }
  void settle_failure(const Error& error);
  void tear_down() noexcept;

  FailureStore& store_;
  std::string_view name_;
  std::span<const MemoryRange> writes_, covers_;
  ScopeObserver* observer_;
  Stamp stamp_;
  std::optional<Claimed> claimed_;
  bool open_ = true;  // the provisional claim is held
};

inline ExecuteScope ExecuteScope::over(FailureStore& store, std::span<const MemoryRange> writes, std::span<const MemoryRange> covers,
                                       ScopeObserver* observer) {
  return ExecuteScope(store, {}, {}, writes, covers, observer);
}
inline ExecuteScope ExecuteScope::launching(FailureStore& store, std::string_view name, std::span<const MemoryRange> reads,
                                            std::span<const MemoryRange> writes, std::span<const MemoryRange> covers,
                                            ScopeObserver* observer) {
  return ExecuteScope(store, name, reads, writes, covers, observer);
}
inline ExecuteScope ExecuteScope::launching_at(Stamp stamp, FailureStore& store, std::string_view name, std::span<const MemoryRange> reads,
                                               std::span<const MemoryRange> writes, std::span<const MemoryRange> covers) {
  return ExecuteScope(store, name, reads, writes, covers, nullptr, stamp);
}
inline ExecuteScope::~ExecuteScope() {
  if (open_) tear_down();
}

}  // namespace kiln::rt
