#include "lines.h"

#include <llvm/IR/DebugInfoMetadata.h>

namespace kiln::codegen::nvptx {

Lines::Lines(llvm::Module& module, const ir::Kernel& kernel, bool enabled) : module_(module), kernel_(kernel) {
  if (enabled && !kernel.files.empty()) builder_ = std::make_unique<llvm::DIBuilder>(module);
  files_.resize(kernel.files.size());
  scopes_.resize(kernel.files.size());
}

llvm::DIFile* Lines::file(std::uint32_t index) {
  if (files_[index] == nullptr) {
    std::string name = kernel_.files[index];
    for (char& c : name) {
      if (c < ' ' || c > '~' || c == '"' || c == '\\') c = '_';  // ptxas reads no escapes
    }
    files_[index] = builder_->createFile(name, "");
  }
  return files_[index];
}

void Lines::begin(llvm::Function& function) {
  if (!builder_) return;
  module_.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  home_ = kernel_.loc.file < kernel_.files.size() ? kernel_.loc.file : 0;
  llvm::DIFile* const home = file(home_);
  // DebugDirectivesOnly: anything more puts `debug` into .target, and ptxas then stops optimising.
  builder_->createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C_plus_plus_14), home, "kiln", true, "", 0, "",
                              llvm::DICompileUnit::DebugDirectivesOnly);
  subprogram_ =
      builder_->createFunction(home, function.getName(), function.getName(), home, kernel_.loc.line,
                               builder_->createSubroutineType(builder_->getOrCreateTypeArray({})), kernel_.loc.line, llvm::DINode::FlagZero,
                               llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  function.setSubprogram(subprogram_);
}

llvm::DebugLoc Lines::at(ir::Loc loc) {
  if (!builder_ || loc.line == 0 || loc.file >= files_.size()) return {};
  llvm::DIScope*& scope = scopes_[loc.file];
  if (scope == nullptr) {
    scope = subprogram_;
    if (loc.file != home_) scope = builder_->createLexicalBlockFile(subprogram_, file(loc.file));
  }
  return llvm::DILocation::get(module_.getContext(), loc.line, 0, scope);
}

void Lines::finish() {
  if (builder_) builder_->finalize();
}

}  // namespace kiln::codegen::nvptx
