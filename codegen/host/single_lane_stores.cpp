#include "host/single_lane_stores.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <vector>

namespace kiln::codegen::host {
namespace {

std::optional<unsigned> only_lane(const llvm::Constant& mask) {
  std::optional<unsigned> lane;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask.getType())->getNumElements();
  for (unsigned l = 0; l < lanes; ++l) {
    const llvm::Constant* const bit = mask.getAggregateElement(l);
    if (bit == nullptr || !(bit->isNullValue() || bit->isOneValue())) return std::nullopt;
    if (bit->isNullValue()) continue;
    if (lane) return std::nullopt;
    lane = l;
  }
  return lane;
}

}  // namespace

void store_single_lanes(llvm::Module& module) {
  std::vector<llvm::IntrinsicInst*> stores;
  for (llvm::Function& f : module) {
    for (llvm::BasicBlock& block : f) {
      for (llvm::Instruction& instruction : block) {
        auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        if (call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::masked_store) stores.push_back(call);
      }
    }
  }
  for (llvm::IntrinsicInst* const call : stores) {
    const auto* const mask = llvm::dyn_cast<llvm::Constant>(call->getArgOperand(call->arg_size() - 1));
    const std::optional<unsigned> lane = mask != nullptr ? only_lane(*mask) : std::nullopt;
    if (!lane) continue;
    llvm::Value* const value = call->getArgOperand(0);
    llvm::Type* const element = value->getType()->getScalarType();
    llvm::IRBuilder<> b(call);
    llvm::Value* const place = b.CreateConstGEP1_32(element, call->getArgOperand(1), *lane);
    llvm::StoreInst* const store =
        b.CreateAlignedStore(b.CreateExtractElement(value, std::uint64_t{*lane}), place, llvm::Align(element->getScalarSizeInBits() / 8));
    store->copyMetadata(*call);
    call->eraseFromParent();
  }
}

}  // namespace kiln::codegen::host
