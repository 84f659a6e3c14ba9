// The kernel IR: one structured program with its parameters, memories and locals. A regular value type: copying a
// Kernel copies everything; ids stay valid in the copy. Not synchronised: share only as const.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kiln/ir/ops.h"
#include "kiln/ir/type.h"

namespace kiln::ir {

using OpId = std::uint32_t;  // index into Kernel::ops; the result of an operation is named by the operation's id
using ValueId = OpId;
using RegionId = std::uint32_t;  // index into Kernel::regions; region 0 is the body
inline constexpr std::uint32_t kNone = 0xffffffffu;
inline constexpr unsigned kMaxRank = 4;

// A place in the author's source. file: index into Kernel::files. line 0: unknown.
struct Loc {
  std::uint32_t file = kNone;
  std::uint32_t line = 0;
  bool operator==(const Loc&) const = default;
};

enum class Space : std::uint8_t { Global, Shared, Local };
enum class Access : std::uint8_t { In, Out, InOut };  // declared by the signature

// Whether an access is tested against the extents. Undecided is what recording leaves; the bounds pass decides.
enum class Bounds : std::uint8_t { Undecided, Checked, Proven };

// Something that loads, stores and atomics can name. Row-major; the last dimension is contiguous unless strided.
struct Mem {
  Space space = Space::Global;
  std::string name{};  // the parameter's or variable's name, for people
  Type element = Type::F32;
  std::uint8_t rank = 1;          // 1 ... kMaxRank
  Access access = Access::InOut;  // Global only
  bool strided = false;           // Global only: a run-time stride per dimension, in elements
  bool dynamic = false;           // Shared only, rank 1, at most one per kernel: extent = dynamic shared bytes / element size
  std::array<std::uint64_t, kMaxRank> extents{};  // Shared and Local, static
  Loc loc{};
};

struct Param {
  std::string name{};
  bool is_buffer = false;
  std::uint32_t mem = kNone;  // is_buffer: index into Kernel::mems
  Type type = Type::Void;     // scalar
};

struct Slot {
  std::string name{};
  Type type = Type::F32;
};

struct Op {
  Opcode code = Opcode::Const;
  Type type = Type::Void;             // of the result
  std::uint8_t attr = 0;              // axis, dimension or Combine
  Bounds bounds = Bounds::Undecided;  // accesses
  std::uint32_t index = kNone;        // mem, slot or parameter number
  std::uint32_t site = kNone;  // accesses with bounds == Checked, checks and traps: index into Prepared::sites; log_text: into ::logs
  std::uint64_t imm = 0;       // Const: bit pattern; has_text(): index into Kernel::texts
  Loc loc{};
  std::vector<ValueId> operands{};
  std::vector<RegionId> regions{};
  std::vector<std::uint64_t> cases{};  // Switch: bit patterns in the operand's type, distinct
};

struct Region {
  std::vector<OpId> ops{};
};

struct Options {
  bool checked = true;
  bool contraction = true;
  bool fast_math = false;
  bool operator==(const Options&) const = default;
};

struct Kernel {
  std::string name;  // qualified, with the variant: "ns::matmul@tile=16"; any bytes, not empty
  Loc loc;
  std::vector<std::string> files;
  std::vector<std::string> texts;
  std::vector<Param> params;  // in signature order
  std::vector<Mem> mems;
  std::vector<Slot> slots;  // zero before their first set
  std::vector<Op> ops;      // may hold operations that no region names (dropped by compact())
  std::vector<Region> regions{1};
  Options options;
  std::array<std::uint32_t, 3> block_size{0, 0, 0};               // exact; {0,0,0}: not declared
  std::uint32_t max_threads = 0;                                  // 0: not declared
  std::vector<std::pair<std::uint32_t, std::uint32_t>> in_place;  // parameter numbers that may alias

  const Op& op(OpId id) const { return ops[id]; }
  Op& op(OpId id) { return ops[id]; }
  bool has_block_size() const { return block_size[0] != 0; }
};

// "file.cpp:12", or "?" when unknown.
std::string to_string(const Kernel& k, Loc loc);

// The symbol of a kernel: letters, digits and _ stay, other bytes become $hh, a leading digit gets $ in front, over 200 bytes
// a prefix and a 128-bit hash. Distinct names give distinct symbols.
std::string symbol_name(const std::string& kernel_name);

// Drops unreachable operations and regions and renumbers in program order, files and texts (one an operation) by first use, so that equal
// programs have equal text. Declarations keep their numbers. Never fails: what the verifier would refuse stays refused.
void compact(Kernel& k);

// Calls f(OpId) for every operation of `region` and of the regions below it, in program order (an operation before its regions).
template <class F>
void walk(const Kernel& k, RegionId region, F&& f) {
  // By index and by value: f may append to k.ops, but must not edit the region lists being walked.
  for (std::size_t i = 0; i < k.regions[region].ops.size(); ++i) {
    const OpId id = k.regions[region].ops[i];
    f(id);
    for (std::size_t r = 0; r < k.ops[id].regions.size(); ++r) walk(k, k.ops[id].regions[r], f);
  }
}

}  // namespace kiln::ir
