// The programs of one device in memory: what each variant needs for a launch, and its compiled code, each made once.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "kiln/runtime/compiler.h"
#include "src/device.h"
#include "src/launch_facts.h"
#include "src/requirements.h"

namespace kiln::rt {

// A compiled kernel on the device. Lives as long as its Programs.
struct Program {
  std::shared_ptr<const std::string> name;  // of the kernel, for reports
  std::unique_ptr<DeviceProgram> code;
  std::vector<ir::FaultSite> sites;
  std::vector<ir::LogSite> logs;  // not empty: its launches have a log
  std::uint32_t log_stride = 0;
};

// All that a launch needs of a variant in a mode, besides its code. Lives as long as its Programs.
struct LaunchPlan {
  LaunchFacts facts;
  std::shared_ptr<const std::string> name;
  std::optional<Error> error;  // the kernel could not be recorded or prepared; what follows is empty then
  Requirements requirements;
  std::vector<ir::Visibility> io;
  ir::ParamLayout layout;

 private:
  friend class Programs;
  struct Entry {
    std::array<std::uint32_t, 3> block;
    bool aligned16;
    std::shared_ptr<const Result<const Program*>> outcome;  // shared with all of equal key
  };
  std::uint64_t key_ = 0;                            // of the variant and the mode
  std::deque<Entry> entries_;                        // guarded by Programs; an entry stays where it is
  mutable std::atomic<const Entry*> last_{nullptr};  // the one asked for last
};

// Thread-safe. No lock is held while anything is prepared or compiled.
class Programs {
 public:
  // `compiler` null: the process's code generator.
  Programs(Device& device, Compiler* compiler) : device_(device), compiler_(compiler) {}

  // Never fails: what is wrong with the kernel is in the plan. O(1) and without allocation after the first time.
  const LaunchPlan& plan(const Variant& variant, ir::PrepareOptions::Mode mode);

  // The program for a block shape and the alignment of the arguments. Equal kernels share one; who asks for a program that is being
  // compiled waits for it. A failure is kept and given again, unless it was
  // one of room on the device, which may be there the next time. `variant` and `mode` are those of the plan. O(1) and without allocation
  // after the first time.
  Result<const Program*> get(const LaunchPlan& plan, const Variant& variant, ir::PrepareOptions::Mode mode, const Dim3& block,
                             bool aligned16);

  std::uint64_t compilations() const { return compilations_.load(std::memory_order_relaxed); }

 private:
  using Outcome = Result<const Program*>;
  struct Flight {
    explicit Flight(Outcome abandoned) : outcome(std::move(abandoned)) {}
    bool landed = false;  // guarded by flight_mutex_
    Outcome outcome;      // constant once landed
  };

  std::shared_ptr<const Outcome> compiled(const ir::Prepared& prepared, const LaunchPlan& plan, CompileOptions options);
  Outcome compile(const ir::Prepared& prepared, const LaunchPlan& plan, const CompileOptions& options);

  Device& device_;
  Compiler* compiler_;
  static constexpr std::size_t kRecent = 256;
  std::array<std::atomic<const LaunchPlan*>, kRecent> recent_{};          // by key, so that a launch takes no lock to find its plan
  std::shared_mutex mutex_;                                               // plans and their entries
  std::unordered_map<std::uint64_t, std::unique_ptr<LaunchPlan>> plans_;  // by variant and mode
  std::mutex flight_mutex_;
  std::condition_variable landed_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;  // by serialised key
  std::vector<std::unique_ptr<Program>> programs_;                    // guarded by flight_mutex_
  std::atomic<std::uint64_t> compilations_{0};
};

}  // namespace kiln::rt
