// What the work under a mode override triggered: which kernels were obtained, which tunes were measured. Counted by the code that does it.
#pragma once
#include <cstdint>
#include <memory>

#include "kiln/runtime/error.h"

namespace kiln {

// Kernels that had to be obtained: each counts once when it is first asked for, and once more when it is settled.
struct CompilationStatistics {
  std::uint64_t registered = 0;
  std::uint64_t compiled = 0;   // settled: compiled by this request
  std::uint64_t loaded = 0;     // settled: had without compiling, from a store or because an equal kernel was compiled
  std::uint64_t failed = 0;     // settled: did not compile
  std::uint64_t abandoned = 0;  // settled: given up before anybody compiled it
  std::uint64_t refused = 0;    // of the failed: the error was a refusal (Error::is_refusal())
  std::uint64_t stored = 0;     // of the compiled: kept for later processes
  std::uint64_t settled() const { return compiled + loaded + failed + abandoned; }  // never above registered
  bool operator==(const CompilationStatistics&) const = default;
};

struct AutotuneStatistics {
  std::uint64_t registered = 0;
  std::uint64_t measured = 0;   // settled: a winner was measured
  std::uint64_t failed = 0;     // settled: no candidate could be measured
  std::uint64_t abandoned = 0;  // settled: given up before that
  std::uint64_t persisted = 0;  // of the measured: kept for later processes
  std::uint64_t settled() const { return measured + failed + abandoned; }
  bool operator==(const AutotuneStatistics&) const = default;
};

struct ExecutionStatistics {
  CompilationStatistics compilation;
  AutotuneStatistics autotune;
  bool operator==(const ExecutionStatistics&) const = default;
};

namespace rt {
class StatisticsState;
}

// Reads what a collector has counted so far, from any thread: all numbers are of one moment. Cheap to copy; may outlive the collector.
class StatisticsReader {
 public:
  StatisticsReader(const StatisticsReader&) = default;  // moving copies, as the collector does
  StatisticsReader& operator=(const StatisticsReader&) = default;
  ExecutionStatistics read() const;

 private:
  friend class StatisticsCollector;
  explicit StatisticsReader(std::shared_ptr<rt::StatisticsState> state) : state_(std::move(state)) {}
  std::shared_ptr<rt::StatisticsState> state_;
};

// What a ProcessModeOverride counts into. Copies are the same collector. Thread-safe.
class StatisticsCollector {
 public:
  StatisticsCollector();
  // Moving copies: a collector that was moved from is still one.
  StatisticsCollector(const StatisticsCollector&) = default;
  StatisticsCollector& operator=(const StatisticsCollector&) = default;
  StatisticsReader reader() const { return StatisticsReader(state_); }
  bool operator==(const StatisticsCollector&) const = default;
  const std::shared_ptr<rt::StatisticsState>& state() const { return state_; }  // for the runtime

 private:
  std::shared_ptr<rt::StatisticsState> state_;
};

// One kernel that somebody has to obtain, counted to the override that was open when it was made; to none where none with a collector was.
// What goes away unsettled counts as abandoned. Used by whoever obtains the kernel: one thread at a time.
class KernelRegistration {
 public:
  KernelRegistration();  // registers with the override that is open now
  KernelRegistration(KernelRegistration&&) noexcept = default;
  KernelRegistration& operator=(KernelRegistration&& other) noexcept;
  ~KernelRegistration();
  // The first of these settles it; later ones change nothing.
  void compiled(bool stored = false) noexcept;
  void loaded() noexcept;
  void failed(const Error& error) noexcept;

 private:
  std::shared_ptr<rt::StatisticsState> state_;  // null: settled, or counted nowhere
};

// The same of one tune.
class TuneRegistration {
 public:
  TuneRegistration();
  TuneRegistration(TuneRegistration&&) noexcept = default;
  TuneRegistration& operator=(TuneRegistration&& other) noexcept;
  ~TuneRegistration();
  void measured(bool persisted = false) noexcept;
  void failed() noexcept;

 private:
  std::shared_ptr<rt::StatisticsState> state_;
};

}  // namespace kiln
