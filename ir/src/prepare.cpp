// From a recorded kernel to what every backend takes: the one place where the order of the passes is written down.
#include <span>
#include <utility>

#include "kiln/ir/passes.h"
#include "kiln/ir/verify.h"

namespace kiln::ir {
namespace {

// Declared In, yet written. The verifier refuses such an access where it is recorded; this is the same rule on what the passes left, so
// that no later change to either can let a write to read-only memory through.
void refuse_contradictions(const Kernel& k, const std::vector<Visibility>& io) {
  Diagnostics found;
  std::size_t buffer = 0;
  for (const Param& p : k.params) {
    if (!p.is_buffer) continue;
    const Visibility v = io[buffer++];
    if (k.mems[p.mem].access != Access::In || !writes(v)) continue;
    walk(k, 0, [&](OpId id) {
      const Op& op = k.op(id);
      if (!is_access(op.code) || op.index != p.mem || info(op.code).form == Form::Load) return;
      found.push_back({k.name, to_string(k, op.loc),
                       std::string(info(op.code).mnemonic) + " writes to '" + p.name +
                           "', which the signature declares as In: declare it Out or InOut"});
    });
  }
  if (!found.empty()) throw IrError(std::move(found));
}

void number_sites(Prepared& p) {
  Kernel& k = p.kernel;
  std::vector<FaultSite>& sites = p.sites;
  const auto types = [&](std::span<const ValueId> values) {
    std::vector<Type> all;
    for (const ValueId v : values) all.push_back(k.op(v).type);
    return all;
  };
  walk(k, 0, [&](OpId id) {
    Op& op = k.op(id);
    if (op.code == Opcode::LogText) {
      op.site = static_cast<std::uint32_t>(p.logs.size());
      const bool known = op.loc.line != 0 && op.loc.file < k.files.size();
      p.logs.push_back({known ? k.files[op.loc.file] : "", known ? op.loc.line : 0, k.texts[op.imm], types(op.operands)});
      return;
    }
    if (op.code == Opcode::Check || op.code == Opcode::Assume || op.code == Opcode::Trap) {
      FaultSite site{{}, std::string(info(op.code).mnemonic), to_string(k, op.loc), {}, {}, k.texts[op.imm], {}};
      if (op.code == Opcode::Check) site.values = types(std::span(op.operands).subspan(1));
      op.site = static_cast<std::uint32_t>(sites.size());
      sites.push_back(std::move(site));
      return;
    }
    if (!is_access(op.code) || op.bounds != Bounds::Checked) return;
    const Mem& mem = k.mems[op.index];
    FaultSite site{mem.name, std::string(info(op.code).mnemonic), to_string(k, op.loc), {}, {}, {}, {}};
    if (mem.space != Space::Global && mem.loc.line != 0) site.declared = to_string(k, mem.loc);
    for (unsigned d = 0; d < mem.rank; ++d) site.signed_index[d] = is_signed(k.op(op.operands[d]).type);
    op.site = static_cast<std::uint32_t>(sites.size());
    sites.push_back(std::move(site));
  });
}

void simplify_all(Kernel& k) {
  fold_and_simplify(k);
  eliminate_common(k);
  fold_and_simplify(k);  // what is the same by now meets itself: x - x, branches on one condition, slots set to what they hold
  eliminate_dead(k);
}

}  // namespace

Prepared prepare(const Kernel& recorded, const PrepareOptions& options) {
  verify_or_throw(recorded);
  Prepared p;
  p.kernel = recorded;
  Kernel& k = p.kernel;
  if (options.mode != PrepareOptions::Mode::AsKernel) k.options.checked = options.mode == PrepareOptions::Mode::Checked;
  contract(k);
  simplify_all(k);
  const std::size_t before = k.ops.size();
  expand_math(k);
  expand_float8(k);
  expand_halves(k);
  if (k.ops.size() != before) simplify_all(k);  // constants and repetitions inside the expansions
  compact(k);
  decide_bounds(k);
  eliminate_dead(k);  // unused loads that are proven; the others stay for their report
  compact(k);
  p.io = analyze_visibility(k);  // bounds are marks on the accesses, so this is what the author's accesses do
  refuse_contradictions(k, p.io);
  number_sites(p);
  p.shared = layout_shared(k);
  p.requirement = analyze_requirements(k);
  p.index_use = analyze_index_use(k);
  verify_or_throw(k, Stage::Transformed);
  return p;
}

}  // namespace kiln::ir
