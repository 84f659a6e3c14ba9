#include "src/bundle/choose.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace kiln::rt {
namespace {

using Block = std::array<std::uint32_t, 3>;
constexpr Block kAny{0, 0, 0}, kRow{0, 1, 1};
constexpr std::uint32_t kLongestRow = 1024;

struct Sm {
  unsigned number = 0;  // 90 of sm_90a
  char suffix = 0;
};
std::optional<Sm> read_sm(std::string_view arch) {
  if (!arch.starts_with("sm_")) return std::nullopt;
  arch.remove_prefix(3);
  Sm sm;
  if (arch.ends_with('a') || arch.ends_with('f')) {
    sm.suffix = arch.back();
    arch.remove_suffix(1);
  }
  const auto end = std::from_chars(arch.data(), arch.data() + arch.size(), sm.number);
  if (arch.empty() || end.ec != std::errc() || end.ptr != arch.data() + arch.size()) return std::nullopt;
  return sm;
}

// 1 for x86-64 up to 4 for x86-64-v4; 0: no level that there is.
unsigned level(std::string_view arch) {
  constexpr std::string_view levels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  for (unsigned i = 0; i < std::size(levels); ++i)
    if (arch == levels[i]) return i + 1;
  return 0;
}

std::string sm_text(unsigned number) { return "sm_" + std::to_string(number); }
std::string version_text(std::uint32_t version) { return std::to_string(version / 10) + "." + std::to_string(version % 10); }
std::string block_text(const Block& b) {
  return "(" + std::to_string(b[0]) + ", " + std::to_string(b[1]) + ", " + std::to_string(b[2]) + ")";
}

std::string why_not_gpu(const BundleInfo::Item& item, const BundleTarget& target) {
  const CompileOptions& o = item.options;
  const std::optional<Sm> sm = read_sm(o.arch);
  if (!sm) return "its architecture is none of a GPU";
  if (item.kind == BundleItem::Kind::Cubin) {
    if (sm->number != target.capability) return "machine code runs on its own architecture only";
  } else {
    if (sm->number > target.capability) return "it needs " + sm_text(sm->number) + " or newer";
    if (sm->suffix == 'a' && sm->number != target.capability) return "it is for " + o.arch + " only";
    if (sm->suffix == 'f' && sm->number / 10 != target.capability / 10) return "it is for the family of " + sm_text(sm->number) + " only";
    if (target.options.ptx_version != 0 && item.code.ptx_version > target.options.ptx_version)
      return "it is PTX " + version_text(item.code.ptx_version) + ", and the driver reads up to " +
             version_text(target.options.ptx_version);
  }
  if (o.block != kAny && o.block != target.options.block) return "it is for blocks of " + block_text(o.block);
  if (o.block_multiple_of_32 && !target.options.block_multiple_of_32) return "it is for blocks of whole warps";
  return {};
}

std::string why_not_cpu(const BundleInfo::Item& item, const BundleTarget& target) {
  const CompileOptions& o = item.options;
  const unsigned its = level(o.arch);
  if (its == 0) return "its architecture is none of a CPU";
  if (its > level(target.options.arch)) return "it needs " + o.arch + " or newer";
  const Block& wanted = target.options.block;
  if (o.block == kRow) {
    if (wanted[1] != 1 || wanted[2] != 1 || wanted[0] == 0 || wanted[0] > kLongestRow) return "it is for rows of threads";
  } else if (o.block != kAny && o.block != wanted) {
    return "it is for blocks of " + block_text(o.block);
  }
  return {};
}

}  // namespace

std::array<unsigned, 7> rank(const BundleInfo::Item& item) {
  const CompileOptions& o = item.options;
  if (item.kind == BundleItem::Kind::Object) {
    const unsigned block = o.block == kAny ? 0 : o.block == kRow ? 1 : 2;
    return {level(o.arch), block, o.aligned16, o.line_info, 0, 0, 0};
  }
  const Sm sm = read_sm(o.arch).value_or(Sm{});
  return {item.kind == BundleItem::Kind::Cubin,
          sm.number,
          sm.suffix == 'a'   ? 2u
          : sm.suffix == 'f' ? 1u
                             : 0u,
          o.aligned16,
          o.block_multiple_of_32,
          item.code.ptx_version,
          o.line_info};
}

std::string why_not(const BundleInfo::Item& item, const BundleTarget& target) {
  if (item.options.target != target.options.target)
    return target.options.target == TargetKind::Host ? "it is for a GPU" : "it is for a CPU";
  std::string why = item.kind == BundleItem::Kind::Object ? why_not_cpu(item, target) : why_not_gpu(item, target);
  if (why.empty() && item.options.aligned16 && !target.options.aligned16) why = "it is for arguments that lie at multiples of 16 bytes";
  return why;
}

std::vector<std::size_t> choose(std::span<const BundleInfo::Item* const> items, const BundleTarget& target) {
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (why_not(*items[i], target).empty()) fitting.push_back(i);
  std::stable_sort(fitting.begin(), fitting.end(), [&](std::size_t a, std::size_t b) { return rank(*items[a]) > rank(*items[b]); });
  return fitting;
}

}  // namespace kiln::rt
