// Source lines of the IR as LLVM debug locations: .file and .loc in the PTX, and nothing else (no debug sections, ptxas optimises as
// always).
#pragma once
#include <llvm/IR/DIBuilder.h>

#include <memory>

#include "kiln/ir/kernel.h"

namespace kiln::codegen::nvptx {

class Lines {
 public:
  // `enabled` false: every location is empty.
  Lines(llvm::Module& module, const ir::Kernel& kernel, bool enabled);
  void begin(llvm::Function& function);
  llvm::DebugLoc at(ir::Loc loc);
  void finish();

 private:
  llvm::DIFile* file(std::uint32_t index);

  llvm::Module& module_;
  const ir::Kernel& kernel_;
  std::unique_ptr<llvm::DIBuilder> builder_;  // null: off
  std::vector<llvm::DIFile*> files_;          // per file of the kernel
  llvm::DISubprogram* subprogram_ = nullptr;
  std::uint32_t home_ = 0;              // the file of the subprogram
  std::vector<llvm::DIScope*> scopes_;  // per file: the subprogram, or a block of it in another file
};

}  // namespace kiln::codegen::nvptx
