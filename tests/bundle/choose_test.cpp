// Which embedded item a device gets: the rules as a table, over items and devices that nothing made.
#include "src/bundle/choose.h"

#include <doctest/doctest.h>

#include "bundle/made_up.h"

using namespace kiln;
using namespace kiln::test;

namespace {

using Block = std::array<std::uint32_t, 3>;

BundleInfo::Item info(const BundleItem& item) { return {item.kind, item.options, item.code, 1}; }

rt::BundleTarget gpu(std::uint32_t capability, std::uint32_t ptx, bool aligned = true, bool warps = true) {
  rt::BundleTarget target;
  target.options.target = TargetKind::Ptx;
  target.options.arch = "sm_" + std::to_string(capability);
  target.options.ptx_version = ptx;
  target.options.aligned16 = aligned;
  target.options.block_multiple_of_32 = warps;
  target.capability = capability;
  return target;
}
rt::BundleTarget cpu(const std::string& level, Block block, bool aligned = true) {
  rt::BundleTarget target;
  target.options.target = TargetKind::Host;
  target.options.arch = level;
  target.options.block = block;
  target.options.aligned16 = aligned;
  return target;
}

BundleItem with(BundleItem item, bool aligned, bool warps = false) {
  item.options.aligned16 = aligned;
  item.options.block_multiple_of_32 = warps;
  return item;
}
BundleItem for_block(BundleItem item, Block block) {
  item.options.block = block;
  return item;
}

// The chosen items as a text, the best first.
std::string chosen(const std::vector<BundleItem>& items, const rt::BundleTarget& target) {
  std::vector<BundleInfo::Item> infos;
  for (const BundleItem& item : items) infos.push_back(info(item));
  std::vector<const BundleInfo::Item*> all;
  for (const BundleInfo::Item& item : infos) all.push_back(&item);
  std::string text;
  for (const std::size_t i : rt::choose(all, target)) text += (text.empty() ? "" : "; ") + to_string(infos[i]);
  return text;
}

}  // namespace

TEST_CASE("a GPU gets the cubin of its very architecture, else the highest PTX that it and its driver take") {
  const std::vector<BundleItem> items = {ptx_item("sm_75", 63),  ptx_item("sm_80", 70), ptx_item("sm_90", 78), ptx_item("sm_90a", 80),
                                         ptx_item("sm_100", 86), cubin_item("sm_80"),   cubin_item("sm_90"),   ptx_item("sm_100f", 88),
                                         ptx_item("sm_120", 87), object_item("x86-64"), cubin_item("sm_100a")};
  struct Row {
    std::uint32_t capability, ptx;
    const char* expected;
  };
  const Row rows[] = {
      {70, 88, ""},
      {75, 88, "PTX sm_75 (PTX 6.3)"},
      {80, 88, "cubin sm_80; PTX sm_80 (PTX 7.0); PTX sm_75 (PTX 6.3)"},
      {86, 88, "PTX sm_80 (PTX 7.0); PTX sm_75 (PTX 6.3)"},  // the cubin of 8.0 is no exact one
      {80, 63, "cubin sm_80; PTX sm_75 (PTX 6.3)"},
      {90, 88, "cubin sm_90; PTX sm_90a (PTX 8.0); PTX sm_90 (PTX 7.8); PTX sm_80 (PTX 7.0); PTX sm_75 (PTX 6.3)"},
      {90, 79, "cubin sm_90; PTX sm_90 (PTX 7.8); PTX sm_80 (PTX 7.0); PTX sm_75 (PTX 6.3)"},
      {100, 88,
       "cubin sm_100a; PTX sm_100f (PTX 8.8); PTX sm_100 (PTX 8.6); PTX sm_90 (PTX 7.8); PTX sm_80 (PTX 7.0); PTX sm_75 (PTX 6.3)"},
      {103, 88,
       "PTX sm_100f (PTX 8.8); PTX sm_100 (PTX 8.6); PTX sm_90 (PTX 7.8); PTX sm_80 (PTX 7.0); PTX sm_75 (PTX 6.3)"},  // the family
      {103, 87, "PTX sm_100 (PTX 8.6); PTX sm_90 (PTX 7.8); PTX sm_80 (PTX 7.0); PTX sm_75 (PTX 6.3)"},
      {120, 88, "PTX sm_120 (PTX 8.7); PTX sm_100 (PTX 8.6); PTX sm_90 (PTX 7.8); PTX sm_80 (PTX 7.0); PTX sm_75 (PTX 6.3)"},
      {120, 86, "PTX sm_100 (PTX 8.6); PTX sm_90 (PTX 7.8); PTX sm_80 (PTX 7.0); PTX sm_75 (PTX 6.3)"},
      {999, 99, "PTX sm_120 (PTX 8.7); PTX sm_100 (PTX 8.6); PTX sm_90 (PTX 7.8); PTX sm_80 (PTX 7.0); PTX sm_75 (PTX 6.3)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.capability);
    CAPTURE(row.ptx);
    CHECK(chosen(items, gpu(row.capability, row.ptx)) == row.expected);
  }
}

TEST_CASE("what assumes aligned arguments or whole warps is taken where the launch has them, and then first") {
  const BundleItem plain = ptx_item("sm_80"), aligned = with(plain, true), warps = with(plain, false, true), all = with(plain, true, true);
  const std::vector<BundleItem> items = {plain, aligned, warps, all};
  CHECK(chosen(items, gpu(80, 80, true, true)) ==
        "PTX sm_80 (PTX 7.0, whole warps, aligned arguments); PTX sm_80 (PTX 7.0, aligned arguments); PTX sm_80 (PTX 7.0, whole warps); "
        "PTX sm_80 "
        "(PTX 7.0)");
  CHECK(chosen(items, gpu(80, 80, false, true)) == "PTX sm_80 (PTX 7.0, whole warps); PTX sm_80 (PTX 7.0)");
  CHECK(chosen(items, gpu(80, 80, true, false)) == "PTX sm_80 (PTX 7.0, aligned arguments); PTX sm_80 (PTX 7.0)");
  CHECK(chosen(items, gpu(80, 80, false, false)) == "PTX sm_80 (PTX 7.0)");
  // The architecture counts for more.
  CHECK(chosen({aligned, ptx_item("sm_86")}, gpu(86, 80)) == "PTX sm_86 (PTX 7.0); PTX sm_80 (PTX 7.0, aligned arguments)");
}

TEST_CASE("PTX for a declared block is for that block only") {
  const BundleItem declared = for_block(ptx_item("sm_80"), {16, 16, 1});
  rt::BundleTarget target = gpu(80, 80);
  CHECK(chosen({declared}, target) == "");
  target.options.block = {16, 16, 1};
  CHECK(chosen({declared}, target) == "PTX sm_80 (PTX 7.0, 16x16x1)");
  target.options.block = {16, 8, 1};
  CHECK(chosen({declared}, target) == "");
}

TEST_CASE("the CPU gets the highest level that it has, then the exact block, a row, any block, then aligned arguments") {
  std::vector<BundleItem> items;
  for (const char* level : {"x86-64", "x86-64-v3", "x86-64-v4"})
    for (const Block& block : {Block{0, 0, 0}, Block{0, 1, 1}, Block{32, 1, 1}, Block{8, 8, 1}})
      for (const bool aligned : {false, true}) items.push_back(object_item(level, block, aligned));
  items.push_back(ptx_item("sm_80"));
  items.push_back(object_item("riscv"));

  const auto first = [&](const rt::BundleTarget& target) {
    const std::string text = chosen(items, target);
    return text.substr(0, text.find(';'));
  };
  struct Row {
    const char* level;
    Block block;
    bool aligned;
    const char* expected;
  };
  const Row rows[] = {
      {"x86-64-v4", {32, 1, 1}, true, "object x86-64-v4 (32x1x1, aligned arguments)"},
      {"x86-64-v4", {32, 1, 1}, false, "object x86-64-v4 (32x1x1)"},
      {"x86-64-v3", {32, 1, 1}, true, "object x86-64-v3 (32x1x1, aligned arguments)"},
      {"x86-64-v2", {32, 1, 1}, true, "object x86-64 (32x1x1, aligned arguments)"},
      {"x86-64", {33, 1, 1}, true, "object x86-64 (any row, aligned arguments)"},
      {"x86-64-v3", {1, 1, 1}, false, "object x86-64-v3 (any row)"},
      {"x86-64-v3", {1024, 1, 1}, false, "object x86-64-v3 (any row)"},
      {"x86-64-v3", {8, 8, 1}, false, "object x86-64-v3 (8x8x1)"},
      {"x86-64-v3", {8, 4, 1}, false, "object x86-64-v3 (any block)"},
      {"x86-64-v3", {1, 1, 2}, false, "object x86-64-v3 (any block)"},
      {"x86-64-v3", {32, 1, 2}, true, "object x86-64-v3 (any block, aligned arguments)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expected);
    CHECK(first(cpu(row.level, row.block, row.aligned)) == row.expected);
  }
  CHECK(chosen({object_item("x86-64", {32, 1, 1}), object_item("x86-64-v3")}, cpu("x86-64-v3", {32, 1, 1})) ==
        "object x86-64-v3 (any block); object x86-64 (32x1x1)");
  CHECK(chosen({object_item("x86-64-v4"), object_item("riscv"), object_item("x86-64", {0, 1, 1})}, cpu("x86-64-v3", {8, 2, 1})) == "");
}

TEST_CASE("of each item that a device does not run it is said why") {
  const auto why = [](const BundleItem& item, const rt::BundleTarget& target) { return rt::why_not(info(item), target); };
  const rt::BundleTarget h200 = gpu(90, 80, false, false), any = cpu("x86-64-v3", {8, 2, 1}, false);
  CHECK(why(ptx_item("sm_80"), h200) == "");
  CHECK(why(object_item("x86-64"), h200) == "it is for a CPU");
  CHECK(why(ptx_item("sm_80"), any) == "it is for a GPU");
  CHECK(why(ptx_item("sm_100"), h200) == "it needs sm_100 or newer");
  CHECK(why(ptx_item("sm_80a"), h200) == "it is for sm_80a only");
  CHECK(why(ptx_item("sm_80f"), h200) == "it is for the family of sm_80 only");
  CHECK(why(ptx_item("sm_90", 86), h200) == "it is PTX 8.6, and the driver reads up to 8.0");
  CHECK(why(cubin_item("sm_86"), h200) == "machine code runs on its own architecture only");
  CHECK(why(ptx_item("sm_x"), h200) == "its architecture is none of a GPU");
  CHECK(why(for_block(ptx_item("sm_80"), {8, 8, 1}), h200) == "it is for blocks of (8, 8, 1)");
  CHECK(why(with(ptx_item("sm_80"), false, true), h200) == "it is for blocks of whole warps");
  CHECK(why(with(ptx_item("sm_80"), true), h200) == "it is for arguments that lie at multiples of 16 bytes");
  CHECK(why(object_item("x86-64-v4"), any) == "it needs x86-64-v4 or newer");
  CHECK(why(object_item("mips"), any) == "its architecture is none of a CPU");
  CHECK(why(object_item("x86-64", {0, 1, 1}), any) == "it is for rows of threads");
  CHECK(why(object_item("x86-64", {32, 1, 1}), any) == "it is for blocks of (32, 1, 1)");
  CHECK(why(object_item("x86-64", {0, 0, 0}, true), any) == "it is for arguments that lie at multiples of 16 bytes");
}
