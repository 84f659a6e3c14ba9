// Entry points: modules, functions and what is known of them, occupancy.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "simcuda/driver_launch.h"
#include "simcuda/driver_state.h"

namespace kiln::simcuda {
namespace {

// The buffers that the caller gives for the JIT's messages.
class Logs {
 public:
  CUresult read(unsigned count, CUjit_option* options, void** values) {
    if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    constexpr int kOptions = 35;  // CU_JIT_NUM_OPTIONS of 13.0
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] < 0 || options[i] >= kOptions) return CUDA_ERROR_INVALID_VALUE;
      if (options[i] == CU_JIT_INFO_LOG_BUFFER) info_.buffer = static_cast<char*>(values[i]);
      if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_.size = &values[i];
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER) error_.buffer = static_cast<char*>(values[i]);
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) error_.size = &values[i];
      if (options[i] == CU_JIT_LOG_VERBOSE) verbose_ = values[i] != nullptr;
    }
    if ((info_.buffer != nullptr && info_.size == nullptr) || (error_.buffer != nullptr && error_.size == nullptr))
      return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  }
  bool verbose() const { return verbose_; }
  void info(const std::string& text) { info_.write(text); }
  void error(const std::string& text) { error_.write(text); }

 private:
  struct Log {
    char* buffer = nullptr;
    void** size = nullptr;  // in: of the buffer; out: of the text
    void write(const std::string& text) const {
      if (size == nullptr) return;
      std::size_t room = 0;
      std::memcpy(&room, size, sizeof room);
      std::size_t n = 0;
      if (buffer != nullptr && room != 0) {
        n = std::min(text.size(), room - 1);
        std::memcpy(buffer, text.data(), n);
        buffer[n] = '\0';
      }
      std::memcpy(size, &n, sizeof n);
    }
  };
  Log info_, error_;
  bool verbose_ = false;
};

// 90 for ".version 9.0".
int version_of(const std::string& ptx) {
  const std::size_t at = ptx.find(".version");
  if (at == std::string::npos) return 0;
  int major = 0, minor = 0;
  if (std::sscanf(ptx.c_str() + at, ".version %d.%d", &major, &minor) != 2) return 0;
  return major * 10 + minor;
}

struct Image {
  std::string ptx;
  std::optional<LoadFailure> failure;
};

// Text is PTX; what else a driver takes (cubin, fat binary) has no engine here.
Image read_image(const void* image, const Context& context) {
  const auto* bytes = static_cast<const unsigned char*>(image);
  const std::string sm = "sm_" + std::to_string(context.description.arch());
  if (bytes[0] == 0x7f && bytes[1] == 'E')
    return {"", LoadFailure{CUDA_ERROR_NO_BINARY_FOR_GPU,
                            "simulated driver: the image is a cubin, and the simulated device (" + sm + ") executes PTX only; load PTX"}};
  if (bytes[0] == 0x50 && bytes[1] == 0xed)
    return {"", LoadFailure{CUDA_ERROR_NO_BINARY_FOR_GPU, "simulated driver: the image is a fat binary, and the simulated device (" + sm +
                                                              ") executes PTX only; load PTX"}};
  if (bytes[0] == 0 || (bytes[0] < 0x20 && std::isspace(bytes[0]) == 0) || bytes[0] >= 0x80)
    return {"", LoadFailure{CUDA_ERROR_INVALID_IMAGE, "simulated driver: the image is neither PTX nor a binary"}};
  return {reinterpret_cast<const char*>(bytes), std::nullopt};
}

unsigned ptx_version(Driver& driver, const Context& context) {
  if (driver.script.driver_version.has_value()) return ptx_version_of(*driver.script.driver_version);
  return context.description.ptx_version.value_or(ptx_version_of(driver.driver_version()));
}

std::string info_log(const LoadedModule& module, const Context& context, bool verbose) {
  std::string text;
  if (!verbose) return text;
  for (const EntryInfo& e : entries(*module.code)) {
    text += "ptxas info    : Compiling entry function '" + e.name + "' for 'sm_" + std::to_string(context.description.arch()) + "'\n";
    text += "ptxas info    : Used " + std::to_string(e.registers) + " registers, " + std::to_string(e.static_shared) + " bytes smem\n";
  }
  return text;
}

CUresult load_image(Driver& driver, Lock& lock, Context& context, const void* image, Logs& logs, CUmodule* result) {
  if (const simcuda::LoadFault* fault = due(driver.script.loads, [](const auto&) { return true; }); fault != nullptr) {
    logs.info("");
    logs.error(fault->log);
    return fault->code;
  }
  Image text = read_image(image, context);
  auto module = std::make_shared<LoadedModule>();
  if (!text.failure.has_value()) {
    module->context = &context;
    module->memory = context.memory;
    module->ptx_version = version_of(text.ptx);
    const Target target{context.description.arch(), ptx_version(driver, context)};
    lock.unlock();  // compiling takes its time
    LoadResult loaded = load(text.ptx, target, *module->memory);
    lock.lock();
    if (loaded.module == nullptr) text.failure = std::move(loaded.failure);
    module->code = std::move(loaded.module);
  }
  if (text.failure.has_value()) {
    logs.info("");
    logs.error(text.failure->log);
    return text.failure->code;
  }
  logs.info(info_log(*module, context, logs.verbose()));
  logs.error("");
  if (module->memory != context.memory) return CUDA_ERROR_CONTEXT_IS_DESTROYED;  // meanwhile
  module->handle = driver.modules.add(module);
  *result = module->handle;
  return CUDA_SUCCESS;
}

int attribute_of(const Function& f, CUfunction_attribute attribute, bool& known) {
  const EntryInfo& info = f.info();
  known = true;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return static_cast<int>(max_threads(f));
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return static_cast<int>(info.static_shared);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return 0;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return static_cast<int>(info.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return static_cast<int>(registers(f));
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: return f.module->ptx_version;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return static_cast<int>(f.module->context->description.arch());
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return f.max_dynamic_shared;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: return f.required_cluster[0] != 0;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: return f.required_cluster[0];
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: return f.required_cluster[1];
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return f.required_cluster[2];
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return f.non_portable_cluster;
  }
  known = false;
  return 0;
}

std::shared_ptr<Function> make_function(std::shared_ptr<LoadedModule> module, std::size_t entry) {
  auto f = std::make_shared<Function>();
  f->module = std::move(module);
  f->entry = entry;
  const EntryInfo& info = f->info();
  const int portable = f->module->context->description.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  f->max_dynamic_shared = std::max(0, portable - static_cast<int>(info.static_shared));
  if (info.reqnctapercluster.has_value()) {
    f->cluster_is_compiled = true;
    for (std::size_t d = 0; d < 3; ++d) f->required_cluster[d] = static_cast<int>((*info.reqnctapercluster)[d]);
  }
  return f;
}

}  // namespace
}  // namespace kiln::simcuda

namespace kiln::cuda {
using namespace kiln::simcuda;

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
  return context_entry_point(Entry::cuModuleLoadDataEx, [&](Driver& driver, Lock& lock, Context& context) -> CUresult {
    if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Logs logs;
    KILN_SIMCUDA_TRY(logs.read(count, options, values));
    KILN_SIMCUDA_TRY(driver.unsafe_call());
    return load_image(driver, lock, context, image, logs, module);
  });
}

CUresult cuModuleUnload(CUmodule handle) {
  return entry_point(Entry::cuModuleUnload, [&](Driver& driver, Lock& lock) -> CUresult {
    const std::shared_ptr<LoadedModule> module = driver.modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    Context* current = nullptr;
    const CUresult code = driver.current(current);
    if (code == CUDA_ERROR_INVALID_CONTEXT) return code;
    if (code == CUDA_SUCCESS && current != module->context) return CUDA_ERROR_INVALID_CONTEXT;
    if (code == CUDA_SUCCESS) KILN_SIMCUDA_TRY(driver.unsafe_call());
    driver.scheduler.wait(lock, driver.all_work(*module->context));
    for (const auto& [name, function] : module->functions) driver.functions.remove(function);
    module->unloaded = true;
    return driver.modules.remove(handle) ? module->context->poison : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  return context_entry_point(Entry::cuModuleGetFunction, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<LoadedModule> module = driver.modules.find(handle);
    if (module == nullptr || module->context != &context) return CUDA_ERROR_INVALID_HANDLE;
    if (const auto known = module->functions.find(name); known != module->functions.end()) {
      *function = known->second;
      return CUDA_SUCCESS;
    }
    const auto& all = entries(*module->code);
    const auto it = std::find_if(all.begin(), all.end(), [&](const EntryInfo& e) { return e.name == name; });
    if (it == all.end()) return CUDA_ERROR_NOT_FOUND;
    *function = driver.functions.add(make_function(module, static_cast<std::size_t>(it - all.begin())));
    module->functions.emplace(name, *function);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule handle, const char* name) {
  return context_entry_point(Entry::cuModuleGetGlobal, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const LoadedModule* module = driver.modules.look(handle);
    if (module == nullptr || module->context != &context) return CUDA_ERROR_INVALID_HANDLE;
    const std::optional<Global> found = global(*module->code, name);
    if (!found.has_value()) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = found->address;
    if (bytes != nullptr) *bytes = found->bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return entry_point(Entry::cuFuncGetAttribute, [&](Driver& driver, Lock&) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Function* function = nullptr;
    KILN_SIMCUDA_TRY(driver.function(handle, function));
    bool known = false;
    const int answer = attribute_of(*function, attribute, known);
    if (!known) return CUDA_ERROR_INVALID_VALUE;
    *value = answer;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return entry_point(Entry::cuFuncSetAttribute, [&](Driver& driver, Lock&) -> CUresult {
    Function* function = nullptr;
    KILN_SIMCUDA_TRY(driver.function(handle, function));
    const auto& device = function->module->context->description;
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
        const std::int64_t total = std::int64_t{value} + function->info().static_shared;
        if (value < 0 || total > device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)) return CUDA_ERROR_INVALID_VALUE;
        function->max_dynamic_shared = value;
        return CUDA_SUCCESS;
      }
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (function->cluster_is_compiled) return CUDA_ERROR_NOT_PERMITTED;
        if (value < 0) return CUDA_ERROR_INVALID_VALUE;
        function->required_cluster[static_cast<std::size_t>(attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)] = value;
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        if (value != 0 && value != 1) return CUDA_ERROR_INVALID_VALUE;
        function->non_portable_cluster = value == 1;
        return CUDA_SUCCESS;
      default: return CUDA_ERROR_INVALID_VALUE;  // the others can only be read
    }
  });
}

CUresult cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  return entry_point(Entry::cuFuncGetParamInfo, [&](Driver& driver, Lock&) -> CUresult {
    Function* function = nullptr;
    KILN_SIMCUDA_TRY(driver.function(handle, function));
    const auto& params = function->info().params;
    if (offset == nullptr || index >= params.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = params[index].offset;
    if (size != nullptr) *size = params[index].size;
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int block_size, std::size_t dynamic_shared) {
  return entry_point(Entry::cuOccupancyMaxActiveBlocksPerMultiprocessor, [&](Driver& driver, Lock&) -> CUresult {
    Function* function = nullptr;
    KILN_SIMCUDA_TRY(driver.function(handle, function));
    if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = static_cast<int>(resident_blocks(*function, static_cast<std::uint64_t>(block_size), dynamic_shared));
    return CUDA_SUCCESS;
  });
}

// As the toolkit's documentation has it: the largest of the block sizes, in whole warps, with which most threads are resident.
CUresult cuOccupancyMaxPotentialBlockSize(int* blocks, int* block_size, CUfunction handle, CUoccupancyB2DSize shared_of_block,
                                          std::size_t dynamic_shared, int limit) {
  return entry_point(Entry::cuOccupancyMaxPotentialBlockSize, [&](Driver& driver, Lock&) -> CUresult {
    Function* function = nullptr;
    KILN_SIMCUDA_TRY(driver.function(handle, function));
    if (blocks == nullptr || block_size == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
    const auto& device = function->module->context->description;
    const int warp = device.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    int most = static_cast<int>(max_threads(*function));
    if (limit != 0 && limit < most) most = limit;
    std::uint64_t best = 0;
    int best_size = 0, best_blocks = 0;
    for (int aligned = (most + warp - 1) / warp * warp; aligned > 0; aligned -= warp) {
      const int size = aligned < most ? aligned : most;
      const std::size_t shared = shared_of_block != nullptr ? shared_of_block(size) : dynamic_shared;
      const std::uint64_t resident = resident_blocks(*function, static_cast<std::uint64_t>(size), shared);
      if (resident * static_cast<std::uint64_t>(size) <= best) continue;
      best = resident * static_cast<std::uint64_t>(size);
      best_size = size;
      best_blocks = static_cast<int>(resident);
    }
    *block_size = best_size;
    *blocks = best_blocks * device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle, const CUlaunchConfig* config) {
  return entry_point(Entry::cuOccupancyMaxPotentialClusterSize, [&](Driver& driver, Lock&) -> CUresult {
    Function* function = nullptr;
    KILN_SIMCUDA_TRY(driver.function(handle, function));
    if (size == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (function->module->context->description.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) return CUDA_ERROR_NOT_SUPPORTED;
    const auto& r = function->required_cluster;
    *size = r[0] != 0 ? r[0] * r[1] * r[2] : static_cast<int>(max_cluster(*function));
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle, const CUlaunchConfig* config) {
  return entry_point(Entry::cuOccupancyMaxActiveClusters, [&](Driver& driver, Lock&) -> CUresult {
    Function* function = nullptr;
    KILN_SIMCUDA_TRY(driver.function(handle, function));
    if (clusters == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LaunchShape shape;
    KILN_SIMCUDA_TRY(read_shape(*config, *function, shape));
    if (!shape.has_cluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    KILN_SIMCUDA_TRY(check_cluster(*function, shape));
    const std::uint64_t in_cluster = std::uint64_t{shape.cluster[0]} * shape.cluster[1] * shape.cluster[2];
    *clusters = static_cast<int>(capacity(*function, shape) / in_cluster);
    return CUDA_SUCCESS;
  });
}

}  // namespace kiln::cuda
