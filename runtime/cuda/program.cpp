#include "cuda/program.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "cuda/ptx_target.h"
#include "src/make_error.h"

namespace kiln::cuda {
namespace {

constexpr std::size_t kLogBytes = 8192;

std::string text(const Dim3& d) { return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")"; }

Error not_loadable(std::string message, const char* rule, ErrorCode code = ErrorCode::CompileUnsupported) {
  return make_error(code, rule, std::move(message));
}

}  // namespace

CUlaunchConfig driver_config(const std::array<std::uint32_t, 3>& grid, const std::array<std::uint32_t, 3>& block,
                             const std::array<std::uint32_t, 3>& cluster, bool cooperative, std::uint32_t dynamic_shared, CUstream stream,
                             CUlaunchAttribute* attributes) {
  unsigned count = 0;
  if (cluster[0] != 1 || cluster[1] != 1 || cluster[2] != 1) {
    attributes[count] = {};
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count++].value.clusterDim = {cluster[0], cluster[1], cluster[2]};
  }
  if (cooperative) {
    attributes[count] = {};
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[count++].value.cooperative = 1;
  }
  return {grid[0], grid[1], grid[2], block[0], block[1], block[2], dynamic_shared, stream, count != 0 ? attributes : nullptr, count};
}

// --- modules ---------------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Module>> Module::load(Session& session, const DeviceLimits& limits, const std::string& image,
                                             const std::string& what) {
  if (session.poisoned()) return session.lost(Phase::Load);
  if (!is_cubin(image)) {
    const auto header = read_ptx_header(image);
    if (!header) {
      return not_loadable("loading " + what + ": it is neither PTX (it does not begin with .version and .target) nor a cubin",
                          "NotAProgram");
    }
    if (const std::string why = why_not(*header, limits.capability, limits.ptx_version, session.name()); !why.empty())
      return not_loadable("loading " + what + ": " + why, "TargetMismatch");
  }
  std::array<char, kLogBytes> info{}, errors{};
  std::array<CUjit_option, 4> options{CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                                      CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 4> values{info.data(), reinterpret_cast<void*>(kLogBytes - 1), errors.data(), reinterpret_cast<void*>(kLogBytes - 1)};
  std::unique_ptr<Module> module(new Module(session));  // first: what the driver loads must not be lost
  const Session::Current current(session);
  const CUresult r = session.call().cuModuleLoadDataEx(&module->module_, image.c_str(), static_cast<unsigned>(options.size()),
                                                       options.data(), values.data());
  if (r == CUDA_SUCCESS) return module;
  module->module_ = nullptr;
  Error::Data data = session.failed(r, Phase::Load, "loading " + what).data();
  for (const char* log : {errors.data(), info.data()})
    if (*log != 0) data.message += std::string("\n") + log;
  while (!data.message.empty() && data.message.back() == '\n') data.message.pop_back();
  return Error(std::move(data));
}

Module::~Module() {
  if (module_ == nullptr) return;
  const Session::Current current(session_);
  session_.call().cuModuleUnload(module_);
}

Result<CUfunction> Module::function(const std::string& entry, const std::string& what) const {
  CUfunction function = nullptr;
  const Session::Current current(session_);
  const CUresult r = session_.call().cuModuleGetFunction(&function, module_, entry.c_str());
  if (r != CUDA_SUCCESS) return session_.failed(r, Phase::Load, "looking for entry '" + entry + "' in " + what);
  return function;
}

Result<std::vector<ParamPlace>> parameters(Session& session, CUfunction function, const std::string& image, const std::string& entry) {
  std::vector<ParamPlace> places;
  if (session.call().cuFuncGetParamInfo != nullptr) {
    const Session::Current current(session);
    for (std::size_t i = 0;; ++i) {
      std::size_t offset = 0, size = 0;
      const CUresult r = session.call().cuFuncGetParamInfo(function, i, &offset, &size);
      if (r == CUDA_ERROR_INVALID_VALUE) return places;  // one behind the last
      if (r != CUDA_SUCCESS) return session.failed(r, Phase::Load, "asking for the parameters of '" + entry + "'", entry);
      places.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
    }
  }
  const auto params = read_ptx_params(image, entry);
  if (!params) {
    return not_loadable(
        "the parameters of '" + entry + "' are not known: this driver does not tell them, and there is no PTX to read them from",
        "UnknownParameters");
  }
  std::uint32_t at = 0;
  for (const PtxParam& p : *params) {
    at = (at + p.align - 1) / p.align * p.align;
    places.push_back({at, p.size});
    at += p.size;
  }
  return places;
}

// --- programs --------------------------------------------------------------------------------------------------------------

Program::Program(Session& session, const DeviceLimits& limits)
    : number_([] {
        static std::atomic<std::uint64_t> last{0};
        return last.fetch_add(1, std::memory_order_relaxed) + 1;
      }()),
      session_(session),
      limits_(limits) {}

Result<std::unique_ptr<Program>> Program::make(Session& session, const DeviceLimits& limits, std::shared_ptr<const Module> module,
                                               const std::string& entry, std::string kernel, std::vector<std::uint32_t> offsets) {
  const auto function = module->function(entry, "'" + kernel + "'");
  if (!function.has_value()) return function.error();
  std::unique_ptr<Program> program(new Program(session, limits));
  program->module_ = std::move(module);
  program->function_ = *function;
  program->kernel_ = std::move(kernel);
  program->offsets_ = std::move(offsets);
  const auto value = [&](CUfunction_attribute attribute) { return static_cast<std::uint32_t>(std::max(0, program->attribute(attribute))); };
  if (const std::uint32_t threads = value(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK); threads != 0) program->max_threads_ = threads;
  program->static_shared_ = value(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  program->dynamic_shared_ = value(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  if (limits.clusters) {
    program->required_cluster_ = {value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH), value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
                                  value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
  }
  return program;
}

int Program::attribute(CUfunction_attribute attribute) const {
  int value = 0;
  const Session::Current current(session_);
  return session_.call().cuFuncGetAttribute(&value, attribute, function_) == CUDA_SUCCESS ? value : 0;
}

Error Program::refused(const char* rule, std::string message, std::optional<std::uint64_t> requested,
                       std::optional<std::uint64_t> limit) const {
  return make_error(ErrorCode::TooManyResources, rule, std::move(message), {.kernel = kernel_, .requested = requested, .limit = limit});
}

std::optional<Error> Program::prepare(const LaunchConfig& config) const {
  const std::uint64_t threads = std::uint64_t{config.block.x} * config.block.y * config.block.z;
  if (threads > max_threads_) {
    return refused("FunctionThreadsPerBlockExceeded",
                   "the block " + text(config.block) + " has " + std::to_string(threads) +
                       " threads, and the compiled kernel takes at most " + std::to_string(max_threads_) + " on " + session_.name() +
                       " (its registers, or its declared bounds); use smaller blocks, or declare max_threads(n)",
                   threads, max_threads_);
  }
  const bool clustered = config.cluster != Dim3(1, 1, 1);
  const bool required = required_cluster_[0] != 0;
  if (clustered && !limits_.clusters) {
    return refused("ClusterLaunchUnsupported", "clusters of " + text(config.cluster) + " blocks were asked for, and " + session_.name() +
                                                   " has none (they need compute capability 9.0)");
  }
  if (required && config.cluster != Dim3(required_cluster_[0], required_cluster_[1], required_cluster_[2])) {
    return refused("FunctionClusterShapeMismatch", "the compiled kernel has clusters of " +
                                                       text(Dim3(required_cluster_[0], required_cluster_[1], required_cluster_[2])) +
                                                       " blocks and was launched with " + text(config.cluster));
  }
  if (config.cooperative && !limits_.cooperative)
    return refused("CooperativeLaunchUnsupported", session_.name() + " has no cooperative launch");
  if (std::uint64_t{static_shared_} + config.shared_bytes > limits_.portable_shared &&
      config.shared_bytes > dynamic_shared_.load(std::memory_order_acquire)) {
    if (auto error = raise_shared(config)) return error;
  }
  if (clustered) {
    if (auto error = check_clusters(config)) return error;
  }
  if (config.cooperative) return check_cooperative(config, std::uint64_t{config.grid.x} * config.grid.y * config.grid.z, threads);
  return std::nullopt;
}

// To all that the device has beside the static part, once: what the launch takes then is up to the launch.
std::optional<Error> Program::raise_shared(const LaunchConfig& config) const {
  const std::uint64_t total = std::uint64_t{static_shared_} + config.shared_bytes;
  if (total > limits_.most_shared) {
    return refused("DeviceSharedMemoryExceeded",
                   std::to_string(static_shared_) + " bytes of static and " + std::to_string(config.shared_bytes) +
                       " of dynamic shared memory are more than the " + std::to_string(limits_.most_shared) + " a block of " +
                       session_.name() + " has",
                   total, limits_.most_shared);
  }
  const std::lock_guard lock(raising_);
  const std::uint32_t most = limits_.most_shared - static_shared_;
  if (dynamic_shared_.load(std::memory_order_relaxed) >= most) return std::nullopt;
  const Session::Current current(session_);
  const CUresult r = session_.call().cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(most));
  if (r != CUDA_SUCCESS)
    return session_.failed(r, Phase::Launch, "allowing " + std::to_string(most) + " bytes of dynamic shared memory", kernel_);
  dynamic_shared_.store(most, std::memory_order_release);
  return std::nullopt;
}

std::optional<Error> Program::check_clusters(const LaunchConfig& config) const {
  std::array<CUlaunchAttribute, 2> attributes;
  const CUlaunchConfig driver =
      driver_config({config.grid.x, config.grid.y, config.grid.z}, {config.block.x, config.block.y, config.block.z},
                    {config.cluster.x, config.cluster.y, config.cluster.z}, false, config.shared_bytes, nullptr, attributes.data());
  const std::uint64_t blocks = std::uint64_t{config.cluster.x} * config.cluster.y * config.cluster.z;
  const Session::Current current(session_);
  int most = 0, active = 0;
  if (session_.call().cuOccupancyMaxPotentialClusterSize(&most, function_, &driver) == CUDA_SUCCESS &&
      blocks > static_cast<unsigned>(most)) {
    return refused("ClusterSizeExceeded",
                   "a cluster " + text(config.cluster) + " of " + std::to_string(blocks) + " blocks is larger than the " +
                       std::to_string(most) + " that " + session_.name() + " can make of this kernel",
                   blocks, static_cast<std::uint64_t>(most));
  }
  const CUresult r = session_.call().cuOccupancyMaxActiveClusters(&active, function_, &driver);
  if (r == CUDA_ERROR_INVALID_CLUSTER_SIZE)
    return refused("ClusterShapeUnsupported", session_.name() + " makes no clusters of the shape " + text(config.cluster));
  if (r == CUDA_SUCCESS && active == 0) {
    return refused("ClusterHasNoResidency", "no cluster " + text(config.cluster) + " of this kernel fits " + session_.name() +
                                                " at all; use less shared memory or smaller blocks");
  }
  return std::nullopt;
}

Result<std::uint32_t> Program::best_block(std::uint32_t dynamic_shared, std::uint32_t most) const {
  const std::uint64_t question = std::uint64_t{dynamic_shared} << 32 | std::uint64_t{most} << 16;
  const std::uint64_t known = best_.load(std::memory_order_relaxed);
  if (most < 65536 && known != 0 && (known >> 16 << 16) == question) return static_cast<std::uint32_t>(known & 0xffff);
  int blocks = 0, threads = 0;
  const Session::Current current(session_);
  const CUresult r = session_.call().cuOccupancyMaxPotentialBlockSize(&blocks, &threads, function_, nullptr, dynamic_shared,
                                                                      static_cast<int>(std::min(most, 1u << 30)));
  if (r != CUDA_SUCCESS) return session_.failed(r, Phase::Launch, "asking for occupancy", kernel_);
  const auto best = threads > 0 ? static_cast<std::uint32_t>(threads) : std::min(32u, most);
  if (most < 65536 && best < 65536) best_.store(question | best, std::memory_order_relaxed);
  return best;
}

std::optional<Error> Program::check_cooperative(const LaunchConfig& config, std::uint64_t blocks, std::uint64_t threads) const {
  int each = 0;
  const Session::Current current(session_);
  const CUresult r =
      session_.call().cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, function_, static_cast<int>(threads), config.shared_bytes);
  if (r != CUDA_SUCCESS) return std::nullopt;  // the launch will tell
  const std::uint64_t capacity = static_cast<std::uint64_t>(std::max(0, each)) * limits_.multiprocessors;
  if (blocks <= capacity) return std::nullopt;
  return refused("CooperativeGridTooLarge",
                 "a cooperative launch of " + std::to_string(blocks) + " blocks does not fit " + session_.name() + ", which runs " +
                     std::to_string(capacity) + " of them at a time",
                 blocks, capacity);
}

}  // namespace kiln::cuda
