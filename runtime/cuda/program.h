// A loaded module with one entry, and what the driver says of it.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/session.h"
#include "src/device.h"

namespace kiln::cuda {

// What a launch is checked against, beside what the kernel says.
struct DeviceLimits {
  unsigned capability = 0;        // 90 for 9.0
  std::uint32_t ptx_version = 0;  // of the driver's compiler
  std::uint32_t portable_shared = 48 * 1024, most_shared = 48 * 1024;
  std::uint32_t multiprocessors = 1;
  bool cooperative = false, clusters = false;
};

// Loads PTX or a cubin. Errors: what it needs and what there is, before the driver is asked; else the driver's answer with the log of its
// compiler.
class Module {
 public:
  static Result<std::unique_ptr<Module>> load(Session& session, const DeviceLimits& limits, const std::string& image,
                                              const std::string& what);
  ~Module();  // its work must be over
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Result<CUfunction> function(const std::string& entry, const std::string& what) const;

 private:
  explicit Module(Session& session) : session_(session) {}
  Session& session_;
  CUmodule module_ = nullptr;
};

// Where the parameters of an entry lie in its parameter block: from the driver where it tells (12.4), else from the PTX, `image`.
struct ParamPlace {
  std::uint32_t offset = 0, size = 0;
};
Result<std::vector<ParamPlace>> parameters(Session& session, CUfunction function, const std::string& image, const std::string& entry);

// An entry that can be launched. Thread-safe.
class Program final : public rt::DeviceProgram {
 public:
  // `offsets` are those of the parameters in the block that launches bring.
  static Result<std::unique_ptr<Program>> make(Session& session, const DeviceLimits& limits, std::shared_ptr<const Module> module,
                                               const std::string& entry, std::string kernel, std::vector<std::uint32_t> offsets);

  std::uint64_t number() const { return number_; }  // among those of the process, from 1 on; never used again
  const std::string& kernel() const { return kernel_; }
  CUfunction function() const { return function_; }
  const std::vector<std::uint32_t>& offsets() const { return offsets_; }
  int attribute(CUfunction_attribute attribute) const;
  // The rows of the validation table that need the loaded function. Raises its limit of dynamic shared memory where the launch needs more
  // than every device has; it is never lowered, so that no launch takes it from another.
  std::optional<Error> prepare(const LaunchConfig& config) const;
  // Threads of a block with which most are resident; a warp where none are, and the launch will tell why. Kept for the last question.
  Result<std::uint32_t> best_block(std::uint32_t dynamic_shared, std::uint32_t most) const;

 private:
  Program(Session& session, const DeviceLimits& limits);
  std::optional<Error> raise_shared(const LaunchConfig& config) const;
  std::optional<Error> check_clusters(const LaunchConfig& config) const;
  std::optional<Error> check_cooperative(const LaunchConfig& config, std::uint64_t blocks, std::uint64_t threads) const;
  Error refused(const char* rule, std::string message, std::optional<std::uint64_t> requested = {},
                std::optional<std::uint64_t> limit = {}) const;

  const std::uint64_t number_;
  Session& session_;
  const DeviceLimits& limits_;
  std::shared_ptr<const Module> module_;
  CUfunction function_ = nullptr;
  std::string kernel_;
  std::vector<std::uint32_t> offsets_;
  std::uint32_t max_threads_ = 1024, static_shared_ = 0;
  std::array<std::uint32_t, 3> required_cluster_{0, 0, 0};
  mutable std::mutex raising_;
  mutable std::atomic<std::uint32_t> dynamic_shared_{0};  // the limit as it is now
  mutable std::atomic<std::uint64_t> best_{0};            // shared, then in 16 bits each the question's limit and the answer; 0: none
};

// The launch configuration as the driver takes it. `attributes` has room for two.
CUlaunchConfig driver_config(const std::array<std::uint32_t, 3>& grid, const std::array<std::uint32_t, 3>& block,
                             const std::array<std::uint32_t, 3>& cluster, bool cooperative, std::uint32_t dynamic_shared, CUstream stream,
                             CUlaunchAttribute* attributes);

}  // namespace kiln::cuda
