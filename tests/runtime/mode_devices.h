// Servers of the test's own on the CPU and on the simulated GPU, with the real code generator and a count of what it is asked for.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cpu/cpu_device.h"
#include "kiln/ir/text.h"
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/modes.h"
#include "src/local_server.h"
#include "support/sim.h"

namespace kiln::test {

// Hands on to the process's code generator; refuses kernels whose names begin with "bad".
class CountingCompiler final : public Compiler {
 public:
  std::atomic<int> compilations{0};
  std::atomic<int> now{0}, most{0};     // at the same time
  std::atomic<int> meet{0};             // each compilation waits until so many are under way
  std::atomic<bool> mended{false};      // the bad ones are good
  std::set<std::thread::id> threads();  // that compiled so far

  CompiledCode compile(const ir::Prepared& kernel, const CompileOptions& options) override {
    compilations.fetch_add(1);
    {
      const std::lock_guard lock(mutex_);
      threads_.insert(std::this_thread::get_id());
    }
    const int under_way = now.fetch_add(1) + 1;
    for (int seen = most.load(); seen < under_way && !most.compare_exchange_weak(seen, under_way);) {}
    while (most.load() < meet.load()) std::this_thread::yield();
    const struct Less {
      std::atomic<int>& n;
      ~Less() { n.fetch_sub(1); }
    } less{now};
    if (kernel.kernel.name.starts_with("bad") && !mended.load()) throw CompileError("this target has no luck", true);
    return code_generator().compiler->compile(kernel, options);
  }
  std::string llvm_ir(const ir::Prepared& kernel, const CompileOptions& options) override {
    return code_generator().compiler->llvm_ir(kernel, options);
  }
  const std::vector<std::string>& ptx_architectures() const override { return code_generator().compiler->ptx_architectures(); }
  std::string llvm_version() const override { return code_generator().compiler->llvm_version(); }

 private:
  std::mutex mutex_;
  std::set<std::thread::id> threads_;
};
inline std::set<std::thread::id> CountingCompiler::threads() {
  const std::lock_guard lock(mutex_);
  return threads_;
}

struct ModeDevice {
  std::string name;
  CountingCompiler compiler;  // outlives the server
  std::shared_ptr<Server> server;
  Client client;
  rt::LocalServer& local() { return static_cast<rt::LocalServer&>(*server); }

  ModeDevice(std::string called, std::unique_ptr<rt::Device> device)
      : name(std::move(called)), server(rt::make_server(std::move(device), &compiler)), client(server) {}
};
inline std::unique_ptr<ModeDevice> mode_device(bool simulated) {
  return std::make_unique<ModeDevice>(simulated ? "cuda sim h200" : "cpu", simulated
                                                                               ? rt::make_cuda_device(sim_driver(), kSimH200).value()
                                                                               : rt::make_cpu_device({.workers = 2, .arch = {}}).value());
}

// Writes `value` to each element of y, an Out.
inline std::shared_ptr<const Variant> writes(const std::string& name, u32 value) {
  return std::make_shared<const Variant>(ir::parse_kernel("kir 1\nkernel \"" + name + R"(" {
  buffer y : u32[*] out
  body {
    %i = global_id.x
    %n = size y
    %in = lt %i, %n
    if %in {
      %v = const )" + std::to_string(value) + R"( : u32
      store y[%i], %v
    }
  }
}
)"));
}

inline Result<void> go(const Stream& stream, const Variant& variant, const Buffer<u32>& y) {
  const LaunchArg args[] = {y.arg()};
  LaunchRequest request;
  request.variant = &variant;
  request.args = args;
  request.config.grid = Dim3(1);
  request.config.block = Dim3(32);
  return launch(stream, request);
}

// A variable of the environment while one lives.
class WithVariable {
 public:
  WithVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old, had_ = true;
    setenv(name, value.c_str(), 1);
  }
  ~WithVariable() {
    if (had_) setenv(name_, old_.c_str(), 1);
    else unsetenv(name_);
  }
  WithVariable(const WithVariable&) = delete;

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

}  // namespace kiln::test
