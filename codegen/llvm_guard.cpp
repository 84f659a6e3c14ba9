#include "llvm_guard.h"

#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>

#include "big_stack.h"

namespace kiln::codegen {
namespace {

// Leaves LLVM from inside its fatal error handler. Not derived from anything that LLVM or a lowering might catch.
struct FatalError {
  std::string reason;
};

// Another user of the same libLLVM in this process must not get our exceptions: the handler throws only on a thread that is inside
// guarded().
thread_local bool inside_guard = false;

void on_fatal_error(void*, const char* reason, bool) {
  if (inside_guard) throw FatalError{reason};
  std::fprintf(stderr, "LLVM ERROR: %s\n", reason);  // what LLVM does without a handler; then it exits
}

// Where LLVM cannot get memory it would end the process, too.
void on_bad_alloc(void*, const char* reason, bool) {
  if (inside_guard) throw std::bad_alloc();
  std::fprintf(stderr, "LLVM ERROR: out of memory: %s\n", reason);
  std::abort();  // as LLVM does without a handler
}

// Keeps error diagnostics; remarks and warnings are dropped.
class Collector final : public llvm::DiagnosticHandler {
 public:
  explicit Collector(std::string* errors) : errors_(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      if (!errors_->empty()) *errors_ += "; ";
      llvm::raw_string_ostream out(*errors_);
      llvm::DiagnosticPrinterRawOStream printer(out);
      info.print(printer);
    }
    return true;
  }

 private:
  std::string* errors_;
};

std::string blame(const std::string& kernel, const std::string& what) {
  return "kernel '" + kernel + "': LLVM refuses the generated code: " + what +
         " (a defect of the code generator; please report it with the kernel's IR)";
}

struct InsideGuard {
  InsideGuard() { inside_guard = true; }
  ~InsideGuard() { inside_guard = false; }
};

}  // namespace

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::remove_fatal_error_handler();
    llvm::install_fatal_error_handler(on_fatal_error);
    llvm::remove_bad_alloc_error_handler();
    llvm::install_bad_alloc_error_handler(on_bad_alloc);
  });
}

namespace {

void guarded_here(const std::string& kernel, const std::function<void(llvm::LLVMContext&)>& work) {
  initialise_llvm();
  std::string errors;
  try {
    const InsideGuard inside;
    llvm::LLVMContext context;
    context.setDiagnosticHandler(std::make_unique<Collector>(&errors));
    work(context);
  } catch (const FatalError& fatal) { throw CompileError(blame(kernel, fatal.reason), false); }
  if (!errors.empty()) throw CompileError(blame(kernel, errors), false);
}

}  // namespace

// On a stack of its own: LLVM recurses with the nesting of loops, and a caller's stack may be small.
void guarded(const std::string& kernel, const std::function<void(llvm::LLVMContext&)>& work) {
  std::exception_ptr thrown;
  const int no_thread = on_big_stack([&] {
    try {
      guarded_here(kernel, work);
    } catch (...) { thrown = std::current_exception(); }
  });
  if (no_thread != 0) {
    throw CompileResourceError("kernel '" + kernel + "': no thread with a stack of " + std::to_string(kBigStackBytes >> 20) +
                               " MiB could be started to compile on (" + std::strerror(no_thread) +
                               "); the limit of threads (ulimit -u) or of address space (ulimit -v) is too low");
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace kiln::codegen
