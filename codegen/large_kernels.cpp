#include "large_kernels.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <iterator>
#include <vector>

namespace kiln::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;

// Register allocation splits and spills a value that lives through many blocks again and again and looks at all of its uses each time;
// passes that work on one block do the same inside it.
constexpr std::size_t kLongLife = 64;  // blocks
constexpr std::size_t kManyInstructions = 4096, kLongBlock = 512;

// Where `use` needs the value: a phi needs it at the end of the block that it comes from.
BasicBlock* needed_in(const llvm::Use& use) {
  auto* const user = llvm::cast<Instruction>(use.getUser());
  if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(user)) return phi->getIncomingBlock(use);
  return user->getParent();
}

bool lives_long(const Instruction& value) {
  const BasicBlock* const home = value.getParent();
  llvm::SmallPtrSet<const BasicBlock*, 32> seen;
  llvm::SmallVector<const BasicBlock*, kLongLife> work;
  for (const llvm::Use& use : value.uses()) {
    const BasicBlock* const b = needed_in(use);
    if (b != home && seen.insert(b).second) work.push_back(b);
    if (seen.size() > kLongLife) return true;
  }
  while (!work.empty()) {
    for (const BasicBlock* const before : llvm::predecessors(work.pop_back_val())) {
      if (before != home && seen.insert(before).second) work.push_back(before);
    }
    if (seen.size() > kLongLife) return true;
  }
  return false;
}

// An address in the frame costs nothing to make again.
bool is_frame_address(const Instruction& value) {
  const auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(&value);
  return address != nullptr && llvm::isa<llvm::AllocaInst>(address->getPointerOperand()) && address->hasAllConstantIndices();
}

void keep_in_memory(Instruction& value) {
  const bool again = is_frame_address(value);
  llvm::AllocaInst* variable = nullptr;
  if (!again) {
    BasicBlock& entry = value.getFunction()->getEntryBlock();
    variable = new llvm::AllocaInst(value.getType(), 0, "kept", entry.begin());
  }
  std::vector<llvm::Use*> uses;
  for (llvm::Use& use : value.uses()) {
    if (needed_in(use) != value.getParent()) uses.push_back(&use);
  }
  // The first user in each block, before which the value comes back; the end of the block where only phis behind it ask.
  llvm::DenseMap<BasicBlock*, Instruction*> first;
  for (const llvm::Use* const use : uses) {
    auto* const user = llvm::cast<Instruction>(use->getUser());
    BasicBlock* const b = needed_in(*use);
    Instruction* const at = llvm::isa<llvm::PHINode>(user) ? b->getTerminator() : user;
    Instruction*& f = first[b];
    if (f == nullptr || at->comesBefore(f)) f = at;
  }
  llvm::DenseMap<BasicBlock*, Instruction*> back;
  for (llvm::Use* const use : uses) {
    BasicBlock* const b = needed_in(*use);
    Instruction*& loaded = back[b];
    if (loaded == nullptr) {
      if (again) {
        loaded = value.clone();
        loaded->insertBefore(first[b]->getIterator());
      } else {
        loaded = new llvm::LoadInst(value.getType(), variable, "", first[b]->getIterator());
      }
    }
    use->set(loaded);
  }
  if (again) return;
  const auto behind = value.getInsertionPointAfterDef();
  new llvm::StoreInst(&value, variable, *behind);
}

}  // namespace

bool is_large(const llvm::Module& module, std::size_t many_blocks) {
  for (const llvm::Function& f : module) {
    if (f.size() > many_blocks || (!f.isDeclaration() && f.getInstructionCount() > kManyInstructions)) return true;
  }
  return false;
}

void split_long_blocks(llvm::Function& f) {
  std::vector<BasicBlock*> blocks;
  for (BasicBlock& block : f) blocks.push_back(&block);
  for (BasicBlock* block : blocks) {
    while (block->size() > kLongBlock) {
      auto at = std::next(block->getFirstNonPHIOrDbgOrAlloca(), kLongBlock / 2);
      block = block->splitBasicBlock(at);
    }
  }
}

void shorten_lives(llvm::Function& f) {
  std::vector<Instruction*> values;
  for (BasicBlock& block : f) {
    for (Instruction& i : block) {
      if (!llvm::isa<llvm::AllocaInst>(i) && !i.getType()->isVoidTy() && !i.getType()->isTokenTy() && lives_long(i)) values.push_back(&i);
    }
  }
  for (Instruction* const value : values) keep_in_memory(*value);
}

}  // namespace kiln::codegen
