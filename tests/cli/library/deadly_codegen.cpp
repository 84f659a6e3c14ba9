// A code generator in whose hands kernels of certain names come to harm, each in its own way; every other one becomes a text.
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/runtime/compiler.h"

namespace {

using namespace kiln;

// Memory that is used, until there is no more.
void eat() {
  std::vector<char*> all;
  while (true) {
    constexpr std::size_t kPiece = std::size_t{8} << 20;
    all.push_back(new char[kPiece]);
    std::memset(all.back(), 1, kPiece);
  }
}

// The same behind the back of the allocator: nobody is told when it ends.
void map_all() {
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  while (true) {
    void* const piece = mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(piece, 1, kPiece);  // MAP_FAILED: a crash
  }
}

void loop_for_ever() {
  volatile bool for_ever = true;
  while (for_ever) {}
}

void come_to_harm(const std::string& kernel) {
  if (kernel == "crash") raise(SIGSEGV);
  if (kernel == "abort") {
    std::fprintf(stderr, "the generator says why\n");
    std::abort();
  }
  if (kernel == "exit") std::exit(0);
  if (kernel == "hang") loop_for_ever();
  if (kernel == "sleep")
    while (true) pause();
  if (kernel == "eat") eat();
  if (kernel == "map") map_all();
  if (kernel == "throw") throw std::runtime_error("thrown by the generator");
  if (kernel == "throw_number") throw 42;
  if (kernel == "refuse") throw CompileError("refused by the generator", true);
  if (kernel == "close")
    for (int fd = 0; fd < 200; ++fd) close(fd);
  if (kernel == "talk") {
    std::printf("to the standard output\n");
    std::fflush(stdout);
    std::fprintf(stderr, "to the standard error\n");
  }
}

class Deadly final : public Compiler {
 public:
  CompiledCode compile(const ir::Prepared& kernel, const CompileOptions& options) override {
    come_to_harm(kernel.kernel.name);
    CompiledCode code;
    code.code = "code of " + kernel.kernel.name + " for " + options.arch + "\n";
    code.symbol = kernel.kernel.name;
    code.ptx_version = 63;
    return code;
  }
  std::string llvm_ir(const ir::Prepared& kernel, const CompileOptions&) override {
    come_to_harm(kernel.kernel.name);
    return "no LLVM here\n";
  }
  const std::vector<std::string>& ptx_architectures() const override {
    static const std::vector<std::string> all{"sm_75", "sm_80", "sm_90"};
    return all;
  }
  std::string llvm_version() const override { return "none"; }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const kiln::CodegenIdentity* kiln_codegen_identity() {
  return &kiln::expected_codegen_identity();
}
extern "C" __attribute__((visibility("default"))) kiln::Compiler* kiln_codegen_create() { return new Deadly; }
