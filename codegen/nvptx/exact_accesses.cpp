#include "exact_accesses.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Pass.h>

namespace kiln::codegen::nvptx {
namespace {

// Elements [first, first + count) of the vector, as one access.
struct Part {
  unsigned first = 0, count = 0;
  llvm::Align align;
};

// What the mask has, in as few naturally aligned accesses of a power of two elements as there can be.
std::vector<Part> parts_of(const llvm::Constant& mask, unsigned elements, std::uint64_t element_bytes, llvm::Align align) {
  std::vector<Part> parts;
  const auto has = [&](unsigned i) { return i < elements && !mask.getAggregateElement(i)->isNullValue(); };
  for (unsigned at = 0; at < elements;) {
    if (!has(at)) {
      ++at;
      continue;
    }
    Part part{at, 1, llvm::commonAlignment(align, at * element_bytes)};
    const auto whole = [&](unsigned count) {
      for (unsigned i = at; i < at + count; ++i)
        if (!has(i)) return false;
      return part.align.value() >= count * element_bytes;
    };
    while (whole(part.count * 2)) part.count *= 2;
    parts.push_back(part);
    at += part.count;
  }
  return parts;
}

class ExactAccesses final : public llvm::FunctionPass {
 public:
  static char ID;
  ExactAccesses() : FunctionPass(ID) {}

  llvm::StringRef getPassName() const override { return "Kiln exact accesses"; }
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override { usage.setPreservesCFG(); }

  bool runOnFunction(llvm::Function& function) override {
    std::vector<llvm::IntrinsicInst*> masked;
    for (llvm::Instruction& i : llvm::instructions(function)) {
      auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
      if (call == nullptr) continue;
      if (call->getIntrinsicID() == llvm::Intrinsic::masked_load || call->getIntrinsicID() == llvm::Intrinsic::masked_store)
        masked.push_back(call);
    }
    for (llvm::IntrinsicInst* const call : masked) replace(*call);
    return !masked.empty();
  }

 private:
  static void replace(llvm::IntrinsicInst& call) {
    const bool is_load = call.getIntrinsicID() == llvm::Intrinsic::masked_load;
    const unsigned pointer_at = is_load ? 0 : 1, mask_at = is_load ? 1 : 2;
    llvm::Value* const pointer = call.getArgOperand(pointer_at);
    const auto* const mask = llvm::cast<llvm::Constant>(call.getArgOperand(mask_at));
    auto* const type = llvm::cast<llvm::FixedVectorType>(is_load ? call.getType() : call.getArgOperand(0)->getType());
    llvm::Type* const element = type->getElementType();
    const std::uint64_t bytes = call.getModule()->getDataLayout().getTypeStoreSize(element);
    llvm::IRBuilder<> builder(&call);
    llvm::Value* value = is_load ? call.getArgOperand(2) : call.getArgOperand(0);
    for (const Part& part : parts_of(*mask, type->getNumElements(), bytes, call.getParamAlign(pointer_at).valueOrOne())) {
      llvm::Value* const address = part.first == 0 ? pointer : builder.CreateConstInBoundsGEP1_64(element, pointer, part.first);
      llvm::Type* const part_type = part.count == 1 ? element : llvm::FixedVectorType::get(element, part.count);
      if (is_load) {
        llvm::LoadInst* const load = builder.CreateAlignedLoad(part_type, address, part.align);
        load->copyMetadata(call);
        for (unsigned i = 0; i < part.count; ++i) {
          llvm::Value* const one = part.count == 1 ? load : builder.CreateExtractElement(load, i);
          value = builder.CreateInsertElement(value, one, part.first + i);
        }
      } else {
        llvm::Value* stored = llvm::PoisonValue::get(part_type);
        for (unsigned i = 0; i < part.count; ++i) {
          llvm::Value* const one = builder.CreateExtractElement(value, part.first + i);
          stored = part.count == 1 ? one : builder.CreateInsertElement(stored, one, i);
        }
        builder.CreateAlignedStore(stored, address, part.align)->copyMetadata(call);
      }
    }
    if (is_load) {
      value->takeName(&call);
      call.replaceAllUsesWith(value);
    }
    call.eraseFromParent();
  }
};

char ExactAccesses::ID = 0;

}  // namespace

llvm::Pass* make_exact_accesses_pass() { return new ExactAccesses; }

}  // namespace kiln::codegen::nvptx
