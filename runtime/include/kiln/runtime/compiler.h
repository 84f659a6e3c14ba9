// What the runtime asks of a code generator. The one header that codegen/ includes from here. A code generator is a shared library
// opened by name; it turns a prepared kernel into bytes and returns nothing live.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/ir/passes.h"

namespace kiln {

enum class TargetKind : std::uint8_t { Ptx, Host };

// Everything that decides the bytes, next to the IR. The cache key is made of all of it (one serialiser: runtime/src/program_key.cpp).
struct CompileOptions {
  TargetKind target = TargetKind::Host;
  std::string arch;               // Ptx: "sm_80"; Host: "x86-64-v3", "x86-64-v4", "x86-64-v2", "x86-64"
  std::uint32_t ptx_version = 0;  // Ptx: 0 = the lowest that has what the kernel uses; else e.g. 78, an upper bound
  // Host: the exact block shape; or {0,1,1}, a row of threads that each launch says the length of; or {0,0,0}, any shape, which each
  // launch says. Nothing else. A kernel that declares its block is compiled for that one only. Ptx: {0,0,0} unless the kernel declares one.
  std::array<std::uint32_t, 3> block{0, 0, 0};
  bool block_multiple_of_32 = false;  // Ptx
  bool aligned16 = false;             // every buffer pointer is 16-byte aligned
  bool line_info = true;              // Ptx: .loc lines
};

// A compiled kernel. `code` is PTX text or an ELF relocatable object that imports at most memcpy, memmove and memset.
struct CompiledCode {
  std::string code;
  std::string symbol;             // the entry
  std::uint32_t ptx_version = 0;  // Ptx: what .version says, e.g. 63
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t context_bytes = 0;           // Host: extra scratch of one block (values carried over barriers), after shared memory
  std::uint64_t context_bytes_per_warp = 0;  // and so much more for each warp of the launch's block, a partial one too; an exact block: 0
};

// Why code for a target is as it is, told by what decides it.
struct TargetReasons {
  struct Choice {                                      // an operation that became an instruction which older architectures lack
    std::string operation, place, instruction, since;  // "warp_reduce.add u32", "file.cpp:12", "redux.sync", "sm_80"
  };
  std::string lowest_arch, lowest_arch_reason;  // the oldest that the kernel can be compiled for; the operation and place that need it
  std::uint32_t ptx_version = 0;                // Ptx: what compile() would say in .version
  std::string ptx_version_reason;               // Ptx
  std::vector<Choice> choices;                  // in program order, each operation once
};

// Signature of a Host entry. Runs blocks [first, last) in ascending linear order (x fastest) on the calling thread.
//   params   one block laid out by ir::param_layout(kernel, kernel.options.checked)
//   scratch  64-byte aligned: static shared bytes rounded up to 16, then dynamic shared bytes rounded up to 64, then context_bytes, then
//   context_bytes_per_warp for each warp of the block; contents arbitrary
//   grid     global_time gives nanoseconds that never run backwards; only kernels with that operation call it. block is the launch's: 1 to
//   1024 in x and y, 1 to 64 in z, at most 1024 threads, y and z 1 where the code is for a row; code for an exact block does not look.
struct HostGrid {
  std::uint32_t grid[3];
  std::uint32_t dynamic_shared_bytes;
  std::uint64_t (*global_time)() = nullptr;
  std::uint32_t block[3] = {};
};
using HostEntry = void (*)(const void* params, const HostGrid* grid, std::uint64_t first, std::uint64_t last, void* scratch);

class CompileError : public std::runtime_error {
 public:
  CompileError(std::string what, bool unsupported) : std::runtime_error(std::move(what)), unsupported_(unsupported) {}
  bool unsupported() const { return unsupported_; }  // the target lacks something the kernel needs

 private:
  bool unsupported_;
};

// The host lacked what compiling takes (a thread); the same compilation may work later.
class CompileResourceError : public CompileError {
 public:
  explicit CompileResourceError(std::string what) : CompileError(std::move(what), false) {}
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  // Thread-safe. Throws CompileError: unknown arch (with the list), arch below the kernel's requirement (with the operation and line), a
  // symbol too long, ...; std::bad_alloc.
  virtual CompiledCode compile(const ir::Prepared& kernel, const CompileOptions& options) = 0;
  // The LLVM IR text that the same compile would hand to the backend, after our pipeline.
  virtual std::string llvm_ir(const ir::Prepared& kernel, const CompileOptions& options) = 0;
  // What compile() with the same arguments decides, and why. Throws what it would throw before it hands anything to LLVM's backend.
  virtual TargetReasons reasons(const ir::Prepared&, const CompileOptions&) {
    throw CompileError("this code generator does not tell its reasons", true);
  }
  // Architectures that compile() accepts for Ptx, ascending.
  virtual const std::vector<std::string>& ptx_architectures() const = 0;
  virtual std::string llvm_version() const = 0;
};

// What both sides must agree on before a pointer is used. Filled from constants compiled into each side.
struct CodegenIdentity {
  std::uint32_t interface_version = 3;
  char build_id[64] = {};
  char llvm_version[16] = {};
};
extern "C" {
// The two symbols a code generator library exports.
using CodegenIdentityFn = const CodegenIdentity* (*)();  // "kiln_codegen_identity"
using CodegenCreateFn = Compiler* (*)();                 // "kiln_codegen_create"; owned by the caller, never unloaded
}
// This side's identity.
const CodegenIdentity& expected_codegen_identity();

// The process's code generator, opened on first use: KILN_CODEGEN if set, else libkiln_codegen.so beside the file that contains the
// runtime, else by the loader's search. Thread-safe; a failure is remembered and says every path tried. Never throws.
struct CodegenHandle {
  Compiler* compiler = nullptr;  // null: see error
  std::string error, path;
};
const CodegenHandle& code_generator();

}  // namespace kiln
