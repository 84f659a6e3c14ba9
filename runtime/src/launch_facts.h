// What the validation of a launch needs to know of a kernel: plain data, taken out of it once, so that a launch touches no IR.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kiln/ir/analysis.h"
#include "kiln/ir/passes.h"
#include "kiln/runtime/error.h"

namespace kiln::rt {

// One parameter of the signature.
struct ParamFacts {
  std::string name;
  bool is_buffer = false;
  ir::Type type = ir::Type::Void;  // element type of a buffer
  std::uint8_t rank = 0;
  ir::Access access = ir::Access::In;
  bool strided = false;
  std::array<bool, ir::kMaxRank> extent32{};  // the kernel reads this extent as 32 bit
  bool size32 = false;                        // and the number of elements
};

struct LaunchFacts {
  std::string kernel, place;  // where it is defined; may be empty
  std::vector<ParamFacts> params;
  std::array<std::uint32_t, 3> block_size{0, 0, 0};  // exact; {0,0,0}: not declared
  std::uint32_t max_threads = 0;                     // 0: not declared
  std::array<bool, 3> global_id32{};
  std::uint64_t static_shared = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> in_place;
};

// An error of a launch of this kernel has its name and, unless it tells of a line of its own, the place where it is defined.
Error of_launch(const LaunchFacts& facts, Error error);

// From the signature alone (a kernel that could not be prepared), or with what preparing found out.
LaunchFacts launch_facts(const ir::Kernel& recorded, const ir::Prepared* prepared);

}  // namespace kiln::rt
