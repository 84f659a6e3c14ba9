// PTX made executable: what instructions are decoded to. Registers are slots of 32 lanes of 64 bits, predicates slots of 32 bits; constants
// are slots of their own. An Op carries the function that executes it for the lanes of a mask.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simcuda/memory.h"
#include "simcuda/ptx_ast.h"

namespace kiln::simcuda::ptx {

using Mask = std::uint32_t;  // a bit for each lane
struct Warp;
struct Op;
struct Function;
using Execute = void (*)(Warp& warp, const Op& op, Mask lanes);

// A register or constant operand: >= 0 a slot of registers, < 0 the bitwise complement of a slot of constants.
using Slot = std::int32_t;
// A predicate operand: slot * 2 + negated; kTrue stands for "always true" and "no result".
using Predicate = std::int32_t;
inline constexpr Predicate kTrue = -1, kFalse = -2;

// The second slot of a 128-bit operand.
constexpr Slot next(Slot s) { return s >= 0 ? s + 1 : s - 1; }

// How an instruction goes on. What is not Plain is done by the scheduler of the warp.
enum class Flow : std::uint8_t { Plain, Branch, Table, Call, Return, Exit, Barrier, Together, Stop, Sleep };

enum class WarpSync : std::uint8_t { Shuffle, VoteAll, VoteAny, VoteUniform, VoteBallot, MatchAny, MatchAll, Reduce, Barrier, Elect };

struct Op {
  Execute execute = nullptr;
  void (*compare)() = nullptr;  // setp and set: the comparison, of a type that only they know
  Slot d = 0, a = 0, b = 0, c = 0;
  Predicate p = kTrue, q = kTrue;  // results of setp; the second one also a source
  Predicate guard = kTrue;
  Flow flow = Flow::Plain;
  Space space = Space::Generic;
  bool entry_param = false;            // Space::Param: the launch's parameters; else of the function's frame
  bool memory = false;                 // `target` numbers it among the entry's memory instructions
  bool in_frame = false;               // Space::Local and Param: relative to the function's frame
  bool sign = false;                   // loads: elements are sign-extended
  bool atomic = false, fence = false;  // of memory: relaxed or stronger; orders
  bool overwrites = false;             // atomics: what was there before is not looked at
  bool aligned = false;                // barriers
  std::uint8_t bytes = 0;              // of an element in memory
  std::uint8_t count = 1;              // elements of a vector
  std::uint8_t bits = 0;               // of the destination register
  std::uint8_t code = 0;               // which operation of a family
  std::uint8_t type = 0;               // Type, where the function needs it
  std::uint32_t target = 0;            // branch target; index of a table, call or vector; memory operation's number
  std::int64_t imm = 0;
  std::array<Slot, 16> v{};  // elements of a vector; from 8 on: results of a vector atomic
  std::uint32_t source = 0;  // the instruction's number in its function's text
  std::uint32_t line = 0;    // of the text
};

// A call: where its arguments and results lie in the caller's frame, and who is called.
struct Call {
  enum class Kind : std::uint8_t { Direct, Indirect, Print, AssertFail } kind = Kind::Direct;
  const Function* callee = nullptr;
  Slot address = 0;  // Indirect
  struct Item {
    std::uint32_t offset = 0, bytes = 0;
    bool is_register = false;
    Slot slot = 0;
  };
  std::vector<Item> arguments, results;
};

struct Function {
  const FunctionDecl* decl = nullptr;
  std::vector<Op> ops;
  std::uint32_t slots = 0, predicates = 0;
  std::vector<std::uint64_t> constants;  // 32 equal lanes each
  std::uint32_t frame_bytes = 0;         // .local variables and .param variables of calls and, in a .func, its own
  struct Piece {
    std::uint32_t offset = 0, bytes = 0;
  };
  std::vector<Piece> params, results;  // of a .func, in its frame
  std::vector<std::vector<std::uint32_t>> tables;
  std::vector<Call> calls;
  std::vector<std::uint32_t> undefined;  // slots that may be read before they are written
  std::uint64_t address = 0;             // what a pointer to it holds
  std::uint32_t registers = 0;           // live at most, in 32-bit registers
  // Of what it does itself, for the tables of a launch:
  std::uint32_t memory_ops = 0;
  std::uint32_t shared_granule = 16, any_granule = 16;  // the smallest access that may reach shared memory, any memory
  bool fences = false, warp_syncs = false, recursive = false, clusters = false;
  bool decoded = false;
};

// Address windows of the generic space. Device and host addresses lie below.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 48, kLocalWindow = std::uint64_t{2} << 48,
                               kParamWindow = std::uint64_t{3} << 48, kWindowMask = (std::uint64_t{1} << 48) - 1;
inline constexpr std::uint64_t kCodeBase = std::uint64_t{8} << 48;  // addresses of functions

}  // namespace kiln::simcuda::ptx
