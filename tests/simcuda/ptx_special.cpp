#include "simcuda/ptx_special.h"

#include <array>
#include <chrono>
#include <utility>

#include "simcuda/ptx_block.h"

namespace kiln::simcuda::ptx {
namespace {

constexpr std::array<std::pair<std::string_view, Special>, 49> kNames{{
    {"%tid.x", Special::TidX},
    {"%tid.y", Special::TidY},
    {"%tid.z", Special::TidZ},
    {"%ntid.x", Special::NtidX},
    {"%ntid.y", Special::NtidY},
    {"%ntid.z", Special::NtidZ},
    {"%ctaid.x", Special::CtaidX},
    {"%ctaid.y", Special::CtaidY},
    {"%ctaid.z", Special::CtaidZ},
    {"%nctaid.x", Special::NctaidX},
    {"%nctaid.y", Special::NctaidY},
    {"%nctaid.z", Special::NctaidZ},
    {"%laneid", Special::LaneId},
    {"%warpid", Special::WarpId},
    {"%nwarpid", Special::NwarpId},
    {"%smid", Special::SmId},
    {"%nsmid", Special::NsmId},
    {"%gridid", Special::GridId},
    {"%lanemask_eq", Special::LanemaskEq},
    {"%lanemask_le", Special::LanemaskLe},
    {"%lanemask_lt", Special::LanemaskLt},
    {"%lanemask_ge", Special::LanemaskGe},
    {"%lanemask_gt", Special::LanemaskGt},
    {"%clock", Special::Clock},
    {"%clock_hi", Special::ClockHi},
    {"%clock64", Special::Clock64},
    {"%globaltimer", Special::GlobalTimer},
    {"%globaltimer_lo", Special::GlobalTimerLo},
    {"%globaltimer_hi", Special::GlobalTimerHi},
    {"%dynamic_smem_size", Special::DynamicSmem},
    {"%total_smem_size", Special::TotalSmem},
    {"%aggr_smem_size", Special::AggrSmem},
    {"%clusterid.x", Special::ClusterIdX},
    {"%clusterid.y", Special::ClusterIdY},
    {"%clusterid.z", Special::ClusterIdZ},
    {"%nclusterid.x", Special::NclusterIdX},
    {"%nclusterid.y", Special::NclusterIdY},
    {"%nclusterid.z", Special::NclusterIdZ},
    {"%cluster_ctaid.x", Special::ClusterCtaidX},
    {"%cluster_ctaid.y", Special::ClusterCtaidY},
    {"%cluster_ctaid.z", Special::ClusterCtaidZ},
    {"%cluster_nctaid.x", Special::ClusterNctaidX},
    {"%cluster_nctaid.y", Special::ClusterNctaidY},
    {"%cluster_nctaid.z", Special::ClusterNctaidZ},
    {"%cluster_ctarank", Special::ClusterCtaRank},
    {"%cluster_nctarank", Special::ClusterNctaRank},
    {"%is_explicit_cluster", Special::IsExplicitCluster},
    {"%current_graph_exec", Special::GraphExec},
    {"%reserved_smem_offset_begin", Special::ReservedSmem},
}};

}  // namespace

std::optional<Special> special_by_name(std::string_view name) {
  for (const auto& [text, special] : kNames)
    if (text == name) return special;
  if (name.starts_with("%envreg")) return Special::EnvReg;
  if (name.starts_with("%pm") && name.size() > 3 && name[3] >= '0' && name[3] <= '7') return Special::Pm;
  if (name.starts_with("%reserved_smem_offset")) return Special::ReservedSmem;
  return std::nullopt;
}

Type type_of(Special s) {
  switch (s) {
    case Special::Clock64:
    case Special::GlobalTimer:
    case Special::GridId:
    case Special::GraphExec: return Type::U64;
    case Special::IsExplicitCluster: return Type::Pred;
    default: return Type::U32;
  }
}

std::uint64_t value_of(Special s, const Warp& w, unsigned lane) {
  const Block& b = *w.block;
  const Launch& l = *b.launch->launch;
  const auto axis = [&](Special first) { return static_cast<std::size_t>(s) - static_cast<std::size_t>(first); };
  const auto now = [] {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
  };
  if (s <= Special::TidZ) return w.tid[lane][axis(Special::TidX)];
  if (s <= Special::NtidZ) return l.block[axis(Special::NtidX)];
  if (s <= Special::CtaidZ) return b.index[axis(Special::CtaidX)];
  if (s <= Special::NctaidZ) return l.grid[axis(Special::NctaidX)];
  if (s >= Special::ClusterIdX && s <= Special::ClusterIdZ)
    return b.index[axis(Special::ClusterIdX)] / l.cluster[axis(Special::ClusterIdX)];
  if (s >= Special::NclusterIdX && s <= Special::NclusterIdZ)
    return l.grid[axis(Special::NclusterIdX)] / l.cluster[axis(Special::NclusterIdX)];
  if (s >= Special::ClusterCtaidX && s <= Special::ClusterCtaidZ)
    return b.index[axis(Special::ClusterCtaidX)] % l.cluster[axis(Special::ClusterCtaidX)];
  if (s >= Special::ClusterNctaidX && s <= Special::ClusterNctaidZ) return l.cluster[axis(Special::ClusterNctaidX)];
  const std::uint64_t bit = std::uint64_t{1} << lane;
  switch (s) {
    case Special::LaneId: return lane;
    case Special::WarpId: return w.index;
    case Special::NwarpId: return (b.threads + 31) / 32;
    case Special::SmId: return 0;
    case Special::NsmId: return 1;
    case Special::GridId: return b.launch->grid_id;
    case Special::LanemaskEq: return bit;
    case Special::LanemaskLe: return bit | (bit - 1);
    case Special::LanemaskLt: return bit - 1;
    case Special::LanemaskGe: return 0xffffffffu & ~(bit - 1);
    case Special::LanemaskGt: return 0xffffffffu & ~(bit | (bit - 1));
    case Special::Clock: return b.instructions & 0xffffffffu;
    case Special::ClockHi: return b.instructions >> 32;
    case Special::Clock64: return b.instructions;
    case Special::GlobalTimer: return now();
    case Special::GlobalTimerLo: return now() & 0xffffffffu;
    case Special::GlobalTimerHi: return now() >> 32;
    case Special::DynamicSmem: return l.dynamic_shared;
    case Special::TotalSmem:
    case Special::AggrSmem: return b.launch->shared_bytes;
    case Special::ClusterCtaRank: {
      const auto rank = [&](std::size_t k) { return b.index[k] % l.cluster[k]; };
      return rank(0) + l.cluster[0] * (rank(1) + l.cluster[1] * rank(2));
    }
    case Special::ClusterNctaRank: return l.cluster[0] * l.cluster[1] * l.cluster[2];
    case Special::IsExplicitCluster: return l.cluster != std::array<std::uint32_t, 3>{1, 1, 1};
    default: return 0;
  }
}

}  // namespace kiln::simcuda::ptx
