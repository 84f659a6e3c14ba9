// Making a bundle.
#include <algorithm>
#include <tuple>

#include "kiln/ir/param_layout.h"
#include "kiln/ir/text.h"
#include "src/bundle/builds.h"
#include "src/bundle/format.h"
#include "src/make_error.h"
#include "src/server.h"

namespace kiln {
namespace {

using rt::BundlePiece;

// Of two items with equal ones a launch could not tell which to take.
auto order_of(const BundleItem& item) {
  const CompileOptions& o = item.options;
  // sm_100 after sm_90: by length first.
  return std::tuple(item.kind, o.arch.size(), o.arch, o.block, o.aligned16, o.block_multiple_of_32, o.ptx_version, o.line_info);
}

Error refused(const std::string& kernel, const std::string& why) {
  return make_error(ErrorCode::Validation, "BundleItems", "no bundle can be made: " + why, {.kernel = kernel});
}

std::string wrong_with(const BundleItem& item) {
  const std::string what = std::string("the ") + name(item.kind) + " for " + item.options.arch;
  if (item.options.arch.empty()) return "an item does not say its architecture";
  if ((item.kind == BundleItem::Kind::Object) != (item.options.target == TargetKind::Host))
    return what + " was compiled for the other target";
  if (item.code.code.empty()) return what + " is empty";
  if (item.code.symbol.empty()) return what + " does not say its entry";
  if (item.code.code.size() > rt::kMostInBundle)
    return what + " has " + std::to_string(item.code.code.size()) + " bytes, and an item has at most " + std::to_string(rt::kMostInBundle);
  return {};
}

std::vector<BundleParam> params_of(const ir::Kernel& kernel, const std::vector<ir::Visibility>& io) {
  std::vector<BundleParam> all;
  std::size_t buffer = 0;
  for (const ir::Param& param : kernel.params) {
    BundleParam& p = all.emplace_back();
    p.name = param.name;
    p.is_buffer = param.is_buffer;
    p.type = param.type;
    if (!param.is_buffer) continue;
    const ir::Mem& mem = kernel.mems.at(param.mem);
    p.type = mem.element;
    p.rank = mem.rank;
    p.access = mem.access;
    p.strided = mem.strided;
    if (buffer < io.size()) p.proven = io[buffer];
    ++buffer;
  }
  return all;
}

std::vector<std::string> requirements_of(const ir::Kernel& kernel) {
  std::vector<std::string> all;
  for (const ir::OpId id : kernel.regions.at(0).ops) {
    const ir::Op& op = kernel.op(id);
    if (op.code == ir::Opcode::Require && op.imm < kernel.texts.size()) all.push_back(kernel.texts[static_cast<std::size_t>(op.imm)]);
  }
  return all;
}

void put_number(std::string& out, std::uint64_t v) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(v >> (8 * i) & 0xff);
}

}  // namespace

Result<std::string> write_bundle(const Variant& variant, ir::PrepareOptions::Mode mode, std::vector<BundleItem> items) {
  return rt::or_no_memory([&]() -> Result<std::string> {
    const auto prepared = variant.prepared(mode);
    if (!prepared.has_value()) return prepared.error();
    const ir::Kernel& kernel = (*prepared)->kernel;
    if (items.empty()) return refused(kernel.name, "there is no code in it");
    for (const BundleItem& item : items)
      if (std::string wrong = wrong_with(item); !wrong.empty()) return refused(kernel.name, wrong);
    std::stable_sort(items.begin(), items.end(), [](const BundleItem& a, const BundleItem& b) { return order_of(a) < order_of(b); });
    for (std::size_t i = 1; i < items.size(); ++i) {
      if (order_of(items[i - 1]) == order_of(items[i]))
        return refused(kernel.name, std::string("two items are ") + name(items[i].kind) + " for " + items[i].options.arch +
                                        " compiled with the same options");
    }

    rt::BundleTable table;
    BundleInfo& info = table.info;
    const CodegenIdentity& own = expected_codegen_identity();
    info.kernel = kernel.name;
    if (kernel.loc.line != 0) info.place = ir::to_string(kernel, kernel.loc);
    info.checked = kernel.options.checked;
    info.interface_version = own.interface_version;
    info.build_id = own.build_id;
    info.llvm_version = own.llvm_version;
    info.kiln_version = rt::own_kiln_version();
    info.params = params_of(kernel, (*prepared)->io);
    info.block_size = kernel.block_size;
    info.max_threads = kernel.max_threads;
    info.static_shared_bytes = (*prepared)->shared.static_bytes;
    info.parameter_bytes = ir::param_layout(kernel, kernel.options.checked).bytes;
    info.requirements = requirements_of(kernel);
    info.min_sm = (*prepared)->requirement.min_sm;
    info.min_sm_reason = (*prepared)->requirement.reason;

    std::string payload;
    const auto add = [&](std::string_view plain) {
      const std::string packed = rt::pack(plain);
      payload += packed;
      return BundlePiece{packed.size(), plain.size(), rt::digest(packed)};
    };
    const std::string recorded = ir::print(variant.recorded());
    if (recorded.size() > rt::kMostInBundle) return refused(kernel.name, "its text is too long");
    table.recorded_digest = rt::digest(recorded);
    table.recorded = add(recorded);
    for (BundleItem& item : items) {
      table.items.push_back(add(item.code.code));
      const std::uint64_t bytes = item.code.code.size();
      item.code.code.clear();
      info.items.push_back({item.kind, std::move(item.options), std::move(item.code), bytes});
    }

    const std::string fields = rt::serialise(table);
    std::uint64_t size = rt::kBundleHead + fields.size() + payload.size();
    size = (size + rt::kBundleAlignment - 1) / rt::kBundleAlignment * rt::kBundleAlignment;
    std::string out(rt::kBundleMagic);
    put_number(out, rt::kBundleFormat);
    put_number(out, size);
    put_number(out, fields.size());
    const rt::Digest digest = rt::digest(out + fields);
    out += rt::view(digest);
    out += fields;
    out += payload;
    out.resize(static_cast<std::size_t>(size), '\0');
    return out;
  });
}

}  // namespace kiln
