// A device's primary context and its fate: what all parts of the CUDA device share.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cuda/driver.h"
#include "cuda/errors.h"

namespace kiln::cuda {

// Thread-safe.
class Session {
 public:
  // Retains the primary context of the device. The driver is ok and outlives the session.
  static Result<std::unique_ptr<Session>> open(const Driver& driver, int ordinal);
  ~Session();  // releases it
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Driver& driver() const { return driver_; }
  const DriverEntries& call() const { return driver_.call; }
  CUdevice device() const { return device_; }
  CUcontext context() const { return context_; }
  const std::string& name() const { return name_; }
  std::string label() const { return name_ + " (cuda:" + std::to_string(device_) + ")"; }
  int attribute(CUdevice_attribute attribute) const;  // 0 where the driver does not know it

  // Makes the context current for the thread; at the end of the scope what was current is so again. What others capture into graphs
  // meanwhile does not forbid the calls in it (of memory, modules and events of ours), and is not broken by them. `Enqueueing`: only calls
  // that no capture forbids, and one less to be made.
  enum class Calls { Any, Enqueueing };
  class Current {
   public:
    explicit Current(const Session& session, Calls calls = Calls::Any) : call_(session.call()) {
      if (calls == Calls::Any) relaxed_ = call_.cuThreadExchangeStreamCaptureMode(&capture_mode_) == CUDA_SUCCESS;
      CUcontext now = nullptr;
      if (call_.cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == session.context()) return;
      pushed_ = call_.cuCtxPushCurrent(session.context()) == CUDA_SUCCESS;
    }
    ~Current() {
      CUcontext ours = nullptr;
      if (pushed_) call_.cuCtxPopCurrent(&ours);
      if (relaxed_) call_.cuThreadExchangeStreamCaptureMode(&capture_mode_);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const DriverEntries& call_;
    bool pushed_ = false, relaxed_ = false;
    CUstreamCaptureMode capture_mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // of the thread, once exchanged
  };

  // The error for a result that is none of success. The first sticky one poisons the device; once it is poisoned every error says so.
  Error failed(CUresult result, Phase phase, const std::string& doing, const std::string& kernel = {});
  // The same, and the device is poisoned whatever the result is: what it does is not known any more.
  Error fatal(CUresult result, Phase phase, const std::string& doing);

  bool poisoned() const { return poisoned_.load(std::memory_order_acquire); }
  std::optional<Error> first_failure() const;  // set once poisoned
  Error lost(Phase phase) const;               // of an operation that is not even tried. Precondition: poisoned()

  // Asked once, when the device is poisoned, under the session's lock: the kernels that may have been running, first submitted first.
  void on_poison(std::function<std::vector<std::string>()> suspects) {
    const std::lock_guard lock(mutex_);
    suspects_ = std::move(suspects);
  }
  // And the trap that did it, where a kernel left word of one.
  void ask_for_trap(std::function<std::optional<Error>()> trap) {
    const std::lock_guard lock(mutex_);
    trap_ = std::move(trap);
  }

 private:
  Session(const Driver& driver, CUdevice device) : driver_(driver), device_(device) {}
  void poison(CUresult result, const std::string& doing);

  const Driver& driver_;
  const CUdevice device_;
  CUcontext context_ = nullptr;
  std::string name_;
  std::atomic<bool> poisoned_{false};
  mutable std::mutex mutex_;
  // Guarded by it; the first two are emptied while threads of the device still run.
  std::function<std::vector<std::string>()> suspects_;
  std::function<std::optional<Error>()> trap_;
  std::optional<Error> first_;
};

}  // namespace kiln::cuda
