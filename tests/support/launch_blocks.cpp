#include "support/launch_blocks.h"

#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>

#include "cpu/cpu_device.h"
#include "kiln/ir/text.h"
#include "kiln/runtime/compiler.h"
#include "src/server.h"

namespace kiln::test {
namespace {

// The process's code generator, asked for another block than the runtime asks it for.
class Rewriting final : public Compiler {
 public:
  explicit Rewriting(LaunchBlocks form) : form_(form) {}
  CompiledCode compile(const ir::Prepared& kernel, const CompileOptions& options) override {
    CompileOptions asked = options;
    if (!kernel.kernel.has_block_size()) {
      const bool row = form_ == LaunchBlocks::Rows && options.block[1] == 1 && options.block[2] == 1;
      asked.block = row ? std::array<std::uint32_t, 3>{0, 1, 1} : std::array<std::uint32_t, 3>{0, 0, 0};
    }
    const std::string key = asked.arch + (asked.aligned16 ? " aligned " : " ") + std::to_string(asked.block[0]) + "," +
                            std::to_string(asked.block[1]) + "," + std::to_string(asked.block[2]) + "\n" + ir::print(kernel.kernel);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = made_.find(key); found != made_.end()) return found->second;
    }
    compilations.fetch_add(1);
    CompiledCode code = generator().compile(kernel, asked);
    const std::lock_guard lock(mutex_);
    return made_.emplace(key, std::move(code)).first->second;
  }
  std::string llvm_ir(const ir::Prepared& kernel, const CompileOptions& options) override { return generator().llvm_ir(kernel, options); }
  const std::vector<std::string>& ptx_architectures() const override { return generator().ptx_architectures(); }
  std::string llvm_version() const override { return generator().llvm_version(); }
  std::atomic<int> compilations{0};

 private:
  static Compiler& generator() {
    const CodegenHandle& handle = code_generator();
    if (handle.compiler == nullptr) throw std::runtime_error(handle.error);
    return *handle.compiler;
  }
  const LaunchBlocks form_;
  std::mutex mutex_;
  std::map<std::string, CompiledCode> made_;  // guarded
};

Rewriting& compiler_of(LaunchBlocks form) {
  static Rewriting &rows = *new Rewriting(LaunchBlocks::Rows), &any = *new Rewriting(LaunchBlocks::Any);
  return form == LaunchBlocks::Rows ? rows : any;
}

}  // namespace

const Client& client_of(LaunchBlocks form) {
  const auto open = [](LaunchBlocks f) { return new Client(rt::make_server(rt::make_cpu_device().value(), &compiler_of(f))); };
  static const Client &rows = *open(LaunchBlocks::Rows), &any = *open(LaunchBlocks::Any);
  return form == LaunchBlocks::Rows ? rows : any;
}

int compilations(LaunchBlocks form) { return compiler_of(form).compilations.load(); }

}  // namespace kiln::test
