#include "text_names.h"
#include "verify_impl.h"

namespace kiln::ir::verifier {
namespace {

// The text form's limits, so that what is verified can be printed and read back.
constexpr unsigned kMaxDepth = 200;
constexpr std::size_t kMaxOperations = 1'000'000;

class Structure {
 public:
  Structure(const Kernel& k, Findings& findings) : k_(k), out_(findings), region_seen_(k.regions.size()), op_seen_(k.ops.size()) {}

  void run() {
    if (k_.regions.empty()) {
      out_.at_kernel("the kernel has no body");
      return;
    }
    region(0, kNone, 1);
    if (count_ > kMaxOperations) out_.at_kernel("more than 1000000 operations");
  }

 private:
  void region(RegionId r, OpId owner, unsigned depth) {
    if (r >= k_.regions.size()) return out_.at_op(owner, mnemonic(owner) + " names region " + std::to_string(r) + ", which does not exist");
    if (region_seen_[r]) return out_.at_op(owner, mnemonic(owner) + " names region " + std::to_string(r) + ", which already has a place");
    if (depth > kMaxDepth) return out_.at_op(owner, mnemonic(owner) + ": more than 200 blocks inside each other");
    region_seen_[r] = true;
    for (const OpId id : k_.regions[r].ops) operation(id, depth);
  }

  void operation(OpId id, unsigned depth) {
    if (id >= k_.ops.size()) return out_.at_op(id, "a region names operation " + std::to_string(id) + ", which does not exist");
    if (op_seen_[id]) return out_.at_op(id, mnemonic(id) + " stands in two places");
    op_seen_[id] = true;
    ++count_;
    const Op& op = k_.op(id);
    if (op.loc.file != kNone && op.loc.file >= k_.files.size())
      out_.at_op(id, mnemonic(id) + ": its place names a file that is not declared");
    for (const ValueId v : op.operands) {
      if (v >= k_.ops.size()) out_.at_op(id, mnemonic(id) + " names value " + std::to_string(v) + ", which does not exist");
    }
    const std::size_t wanted = regions_wanted(op);
    if (op.regions.size() != wanted)
      out_.at_op(id, mnemonic(id) + " has " + std::to_string(op.regions.size()) + " regions, " + std::to_string(wanted) + " expected");
    if (op.code != Opcode::Switch && !op.cases.empty()) out_.at_op(id, mnemonic(id) + " has cases; only a switch can");
    count_ += op.cases.size();
    for (const RegionId r : op.regions) region(r, id, depth + 1);
  }

  static std::size_t regions_wanted(const Op& op) {
    switch (op.code) {
      case Opcode::If:
      case Opcode::While: return 2;
      case Opcode::For: return 1;
      case Opcode::Switch: return op.cases.size() + 1;
      default: return 0;
    }
  }

  std::string mnemonic(OpId id) const { return id < k_.ops.size() ? std::string(info(k_.op(id).code).mnemonic) : "the kernel"; }

  const Kernel& k_;
  Findings& out_;
  std::vector<bool> region_seen_, op_seen_;
  std::size_t count_ = 0;
};

}  // namespace

void check_structure(const Kernel& k, Findings& findings) { Structure(k, findings).run(); }

}  // namespace kiln::ir::verifier
