// Special registers.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "simcuda/ptx_types.h"

namespace kiln::simcuda::ptx {

struct Warp;

enum class Special : std::uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  Clock,
  ClockHi,
  Clock64,
  GlobalTimer,
  GlobalTimerLo,
  GlobalTimerHi,
  DynamicSmem,
  TotalSmem,
  AggrSmem,
  ReservedSmem,
  EnvReg,
  Pm,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NclusterIdX,
  NclusterIdY,
  NclusterIdZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtaRank,
  ClusterNctaRank,
  IsExplicitCluster,
  GraphExec,
};

std::optional<Special> special_by_name(std::string_view name);  // "%tid.x"
Type type_of(Special s);
std::uint64_t value_of(Special s, const Warp& warp, unsigned lane);

}  // namespace kiln::simcuda::ptx
