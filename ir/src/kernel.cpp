#include "kiln/ir/kernel.h"

namespace kiln::ir {
namespace {

// Keeps only what is reachable from the body, numbered in program order; files and texts in the order of their first use.
class Compactor {
 public:
  explicit Compactor(Kernel& k) : k_(k), new_id_(k.ops.size(), kNone), done_(k.regions.size(), false) {}

  void run() {
    regions_.reserve(k_.regions.size());
    copy_region(0);
    for (Op& op : ops_) {
      for (ValueId& v : op.operands) v = v < new_id_.size() ? new_id_[v] : kNone;
    }
    k_.ops = std::move(ops_);
    k_.regions = std::move(regions_);
    renumber_files();
    renumber_texts();
  }

 private:
  // A region named twice or out of range is the verifier's to report; here it must only not loop.
  RegionId copy_region(RegionId old) {
    if (old >= k_.regions.size() || done_[old]) return kNone;
    done_[old] = true;
    const auto fresh = static_cast<RegionId>(regions_.size());
    regions_.emplace_back();
    for (const OpId id : k_.regions[old].ops) {
      if (id >= k_.ops.size() || new_id_[id] != kNone) continue;
      const auto new_id = static_cast<OpId>(ops_.size());
      new_id_[id] = new_id;
      ops_.push_back(std::move(k_.ops[id]));
      regions_[fresh].ops.push_back(new_id);
      const std::size_t count = ops_[new_id].regions.size();
      for (std::size_t r = 0; r < count; ++r) {
        const RegionId below = copy_region(ops_[new_id].regions[r]);
        ops_[new_id].regions[r] = below;
      }
    }
    return fresh;
  }

  void renumber_files() {
    std::vector<std::uint32_t> fresh(k_.files.size(), kNone);
    std::vector<std::string> files;
    const auto renumber = [&](Loc& loc) {
      if (loc.line == 0 || loc.file >= fresh.size()) {
        loc = Loc{};
        return;
      }
      std::uint32_t& number = fresh[loc.file];
      if (number == kNone) {
        number = static_cast<std::uint32_t>(files.size());
        files.push_back(k_.files[loc.file]);
      }
      loc.file = number;
    };
    renumber(k_.loc);
    for (Mem& m : k_.mems) renumber(m.loc);
    for (Op& op : k_.ops) renumber(op.loc);
    k_.files = std::move(files);
  }

  // One text for each operation that has one, in their order.
  void renumber_texts() {
    std::vector<std::string> texts;
    for (Op& op : k_.ops) {
      if (!has_text(op.code) || op.imm >= k_.texts.size()) continue;
      texts.push_back(k_.texts[op.imm]);
      op.imm = texts.size() - 1;
    }
    k_.texts = std::move(texts);
  }

  Kernel& k_;
  std::vector<OpId> new_id_;
  std::vector<bool> done_;
  std::vector<Op> ops_;
  std::vector<Region> regions_;
};

}  // namespace

std::string to_string(const Kernel& k, Loc loc) {
  if (loc.line == 0 || loc.file >= k.files.size()) return "?";
  return k.files[loc.file] + ":" + std::to_string(loc.line);
}

void compact(Kernel& k) {
  if (k.regions.empty()) k.regions.emplace_back();
  Compactor(k).run();
}

}  // namespace kiln::ir
