// Kernels, and bundles of code that nothing compiled.
#pragma once
#include <string>
#include <vector>

#include "kiln/ir/text.h"
#include "kiln/runtime/bundle.h"
#include "kiln/runtime/variant.h"

namespace kiln::test {

using Mode = ir::PrepareOptions::Mode;

inline std::string adding_text(const std::string& name, unsigned k) {
  return "kir 1\nkernel \"" + name +
         "\" {\n  buffer y : u32[*] inout\n  scalar a : u32\n  body {\n    %i = global_id.x\n    %n = size y\n    %in = lt %i, %n\n    if "
         "%in {\n"
         "      %v = load y[%i]\n      %k = const " +
         std::to_string(k) + " : u32\n      %w = add %v, %k\n      store y[%i], %w\n    }\n  }\n}\n";
}
inline Variant adding(const std::string& name = "ns::adding", unsigned k = 1) { return Variant(ir::parse_kernel(adding_text(name, k))); }

inline BundleItem ptx_item(const std::string& arch, std::uint32_t version = 70, const std::string& code = ".version") {
  BundleItem item;
  item.kind = BundleItem::Kind::Ptx;
  item.options.target = TargetKind::Ptx;
  item.options.arch = arch;
  item.code.code = code;
  item.code.symbol = "entry";
  item.code.ptx_version = version;
  return item;
}
inline BundleItem cubin_item(const std::string& arch, const std::string& code = "cubin") {
  BundleItem item = ptx_item(arch, 70, code);
  item.kind = BundleItem::Kind::Cubin;
  return item;
}
inline BundleItem object_item(const std::string& level, std::array<std::uint32_t, 3> block = {0, 0, 0}, bool aligned = false,
                              const std::string& code = "object") {
  BundleItem item;
  item.kind = BundleItem::Kind::Object;
  item.options.target = TargetKind::Host;
  item.options.arch = level;
  item.options.block = block;
  item.options.aligned16 = aligned;
  item.code.code = code;
  item.code.symbol = "entry";
  item.code.static_shared_bytes = 1ull << 33;
  item.code.context_bytes = 64;
  item.code.context_bytes_per_warp = 128;
  return item;
}

}  // namespace kiln::test
