// The programs of one device in memory: what each variant needs for a launch, and its compiled code, each made once.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "kiln/runtime/compiler.h"
#include "kiln/runtime/statistics.h"
#include "src/device.h"
#include "src/launch_facts.h"
#include "src/requirements.h"

namespace kiln::rt {

class Environment;

// A compiled kernel on the device. Lives as long as its Programs.
struct Program {
  std::shared_ptr<const std::string> name;  // of the kernel, for reports
  std::string place;                        // where it is defined; may be empty
  std::unique_ptr<DeviceProgram> code;
  std::vector<ir::FaultSite> sites;
  std::vector<ir::LogSite> logs;  // not empty: its launches have a log
  std::uint32_t log_stride = 0;
};

// All that a launch needs of a variant in a mode, besides its code. Lives as long as its Programs.
struct LaunchPlan {
  std::uint64_t number = 0;  // among the plans of the process, from 1 on; never used again
  LaunchFacts facts;
  std::shared_ptr<const std::string> name;
  std::optional<Error> error;  // the kernel could not be recorded or prepared; what follows is empty then
  Requirements requirements;
  std::vector<ir::Visibility> io;
  struct Use {
    std::uint32_t param = 0;
    bool reads = false, writes = false, covers = false;
    std::uint32_t element_bytes = 0;    // of a dense view of rank 1, which has no more to it than its elements; else 0
    const std::string* name = nullptr;  // of the parameter
  };
  std::vector<Use> uses;  // of the buffers that it reads or writes
  ir::ParamLayout layout;
  // The same, sorted by what has to be done for a field.
  struct Fields {
    struct Number {
      std::uint32_t param = 0, dimension = 0, offset = 0;
    };
    struct Scalar {
      std::uint32_t param = 0, offset = 0, size = 0;
      std::uint64_t mask = 0;
    };
    std::vector<Number> pointers, extents, strides;
    std::vector<Scalar> scalars;
    std::optional<std::uint32_t> fault, log;  // their offsets
  } fields;

 private:
  friend class Programs;
  using Outcome = Result<const Program*>;
  // Which of its programs: what decides the code beside the variant and the mode.
  struct Shape {
    std::array<std::uint32_t, 3> block;
    bool aligned16;
    bool operator==(const Shape&) const = default;
  };
  struct Entry {
    Shape shape;
    std::shared_ptr<const Outcome> outcome;  // shared with all of equal key
  };
  std::uint64_t key_ = 0;                            // of the variant and the mode
  std::deque<Entry> entries_;                        // guarded by Programs; an entry stays where it is
  mutable std::atomic<const Entry*> last_{nullptr};  // the one asked for last
  std::vector<Shape> queued_;                        // guarded by Programs
  std::vector<Entry> unreported_;                    // failures of queued programs, each for one launch; guarded by Programs
};

// The one place that obtains a program, and the compile queue. Thread-safe. No lock is held while anything is prepared or compiled.
class Programs {
 public:
  // `compiler` null: the process's code generator.
  Programs(Device& device, Compiler* compiler) : device_(device), compiler_(compiler) {}

  // Never fails: what is wrong with the kernel is in the plan. O(1) and without allocation after the first time.
  const LaunchPlan& plan(const Variant& variant, ir::PrepareOptions::Mode mode);

  // The program for a block shape and the alignment of the arguments. Equal kernels share one; who asks for a program that is being
  // compiled waits for it. Where it has to be compiled, all that is queued is compiled with it. A failure is kept and given again, unless
  // it was one of room on the device, which may be there the next time, or the program was queued: then it is given once to each kernel
  // that asked, and the next one compiles anew. `variant` and `mode` are those of the plan. O(1) and without allocation after the first
  // time.
  Result<const Program*> get(const LaunchPlan& plan, const Variant& variant, ir::PrepareOptions::Mode mode, const Dim3& block,
                             bool aligned16);

  // The same program, to be compiled later. Nothing happens where it is there or queued already; what is known of an older failure while
  // queued is forgotten. Whether it was queued now. The variant need not live on. O(1) and without allocation where nothing happens.
  bool queue(const LaunchPlan& plan, const Variant& variant, ir::PrepareOptions::Mode mode, const Dim3& block, bool aligned16);
  // Compiles what is queued, on as many threads as the configuration says; waits for those that are being compiled.
  void compile_queued();

  std::uint64_t compilations() const { return compilations_.load(std::memory_order_relaxed); }

 private:
  using Outcome = LaunchPlan::Outcome;
  using Shape = LaunchPlan::Shape;
  using Entry = LaunchPlan::Entry;
  // A program of a plan that is to be had from a job.
  struct Asked {
    const LaunchPlan* plan;
    Shape shape;
    std::optional<KernelRegistration> registration;
    bool queued;  // its launch was dropped: a failure is kept for the next one
  };
  // One program to be compiled.
  struct Flight;
  struct Job {
    std::shared_ptr<Flight> flight;
    std::string key;  // serialised
    CompileOptions options;
    std::shared_ptr<const ir::Prepared> prepared;
    std::string recorded;                // the text that was recorded, where some bundle has a kernel of its name
    std::vector<Asked> asked;            // not empty; those after the first share the program
    bool found = false, stored = false;  // it was had without compiling; it is kept in the environment
  };
  struct Flight {
    explicit Flight(Outcome abandoned) : outcome(std::move(abandoned)) {}
    // All guarded by flight_mutex_.
    bool landed = false;
    bool was_queued = false;
    Job* waiting = nullptr;  // in the queue; null: it is being compiled, or has landed
    const LaunchPlan* first_plan = nullptr;
    Shape first_shape{};
    Outcome outcome;  // constant once landed
  };

  const Entry* find(const LaunchPlan& plan, const Shape& shape) const;                         // under mutex_
  std::shared_ptr<const Outcome> take_unreported(const LaunchPlan& plan, const Shape& shape);  // under mutex_, unique
  LaunchPlan& own(const LaunchPlan& plan) { return *plans_.at(plan.key_); }                    // under mutex_, unique
  std::unique_ptr<Job> make_job(std::string key, CompileOptions options, std::shared_ptr<const ir::Prepared> prepared, std::string recorded,
                                const LaunchPlan& plan, const Shape& shape, bool queued);
  void start(std::vector<std::unique_ptr<Job>>& batch) noexcept;  // under flight_mutex_: takes the queue
  void run(std::vector<std::unique_ptr<Job>>& batch) noexcept;
  void run_one(Job& job) noexcept;
  void hand_out(Job& job);
  void settle(Job& job) noexcept;
  void share(const LaunchPlan& plan, const Shape& shape, const std::shared_ptr<Flight>& flight);  // landed, and not may_change
  Outcome obtain(Job& job);
  // From the bundles of the process, the environment, the code generator. Null: nothing there; `error`: what is there is refused.
  std::unique_ptr<Program> embedded(Job& job, std::vector<std::string>& why_not, std::optional<Error>& error);
  std::unique_ptr<Program> stored(Job& job, Environment& environment);
  std::unique_ptr<Program> compiled(Job& job, Compiler& compiler, Environment* environment, std::optional<Error>& error);
  Outcome keep(std::unique_ptr<Program> program);
  std::unique_ptr<Program> loaded(const Job& job, const CompiledCode& code, std::optional<Error>& error);

  Device& device_;
  Compiler* compiler_;
  static constexpr std::size_t kRecent = 256;
  std::array<std::atomic<const LaunchPlan*>, kRecent> recent_{};          // by key, so that a launch takes no lock to find its plan
  mutable std::shared_mutex mutex_;                                       // plans, their entries, queued_ and unreported_
  std::unordered_map<std::uint64_t, std::unique_ptr<LaunchPlan>> plans_;  // by variant and mode
  std::vector<LaunchPlan*> unreported_;                                   // plans that have any; guarded by mutex_
  std::mutex flight_mutex_;                                               // never held together with mutex_
  std::condition_variable landed_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;  // by serialised key
  std::vector<std::unique_ptr<Job>> queue_;
  std::size_t flying_ = 0;                          // jobs that were taken out of the queue and have not landed
  std::vector<std::unique_ptr<Program>> programs_;  // guarded by flight_mutex_
  std::atomic<std::uint64_t> compilations_{0};
};

}  // namespace kiln::rt
