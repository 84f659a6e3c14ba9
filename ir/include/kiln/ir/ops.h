// The operation table: one row per opcode, from ops.def.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "kiln/ir/type.h"

namespace kiln::ir {

enum class Opcode : std::uint8_t {
#define KILN_OP(E, ...) E,
#include "kiln/ir/ops.def"
};

// Shape of operands, attributes and result. The verifier, the printer and the parser switch over this, not over opcodes.
enum class Form : std::uint8_t {
  Const,         // () -> T, imm
  Query,         // () -> T, index and/or attr
  Unary,         // T -> T
  Binary,        // T, T -> T
  Ternary,       // T, T, T -> T
  IntegerPower,  // T, i32 -> T
  Compare,       // T, T -> bool
  Select,        // bool, T, T -> T
  Convert,       // S -> T
  SlotGet,       // () -> slot type
  SlotSet,       // T -> void
  Load,          // coordinates -> element
  Store,         // coordinates, element -> void
  Atomic,        // coordinates, element -> element
  AtomicCas,     // coordinates, element, element -> element
  Barrier,       // () -> void
  BlockVote,     // bool -> bool or u32
  WarpVote,      // bool -> bool or u32
  Shuffle,       // T, u32 -> T
  WarpCombine,   // T -> T, attr: Combine
  If,
  For,
  While,
  Switch,
  Yield,
  Leave,
  Check,  // bool, at most kCheckValues values -> void, imm: text
  Text,   // at most kLogValues values -> void, imm: text
  Require
};
// A failed check goes into a fault record, which has room for two numbers.
inline constexpr unsigned kCheckValues = 2;
inline constexpr unsigned kLogValues = 8;

enum class Effect : std::uint8_t { None, Read, Write, ReadWrite, Slot, Sync, Control, Report, Time, Host };

// How many threads are known to hold the same value. Ordered: a smaller enumerator is more uniform.
enum class Level : std::uint8_t { Grid, Block, Warp, Thread };
enum class UniformityRule : std::uint8_t { Operands, Grid, Block, Warp, Thread, Memory, Slots };

// How warp reductions and scans combine (attr of WarpReduce, WarpScan, WarpScanExclusive).
// And/Or/Xor: bool and integers; the others: integers and floats.
// Identities of an inactive lane: Add -0.0 / 0, Mul 1, Min and Max of floats NaN, of integers the type's extreme, And all ones, Or and Xor
// 0.
enum class Combine : std::uint8_t { Add, Mul, Min, Max, And, Or, Xor };
std::string_view name(Combine c);  // "add", "mul", ...
std::optional<Combine> parse_combine(std::string_view text);

struct OpInfo {
  std::string_view mnemonic;
  Form form;
  std::uint8_t types;  // mask of kBool, kInteger, kFloat, kStored
  Effect effect;
  UniformityRule uniformity;
};
inline constexpr std::uint8_t kBoolClass = 1, kIntegerClass = 2, kFloatClass = 4, kStoredClass = 8;

const OpInfo& info(Opcode code);                            // O(1)
std::optional<Opcode> parse_opcode(std::string_view text);  // by mnemonic
inline constexpr int kOpcodeCount = 0
#define KILN_OP(...) +1
#include "kiln/ir/ops.def"
    ;

constexpr std::uint8_t type_class(Type t) {
  return is_bool(t)      ? kBoolClass
         : is_integer(t) ? kIntegerClass
         : is_float(t)   ? kFloatClass
         : is_float8(t)  ? kStoredClass
                         : std::uint8_t{0};
}
// Whether cast or bit_cast goes from one type to another: bit_cast between types of one width, cast between all but that the floats of 8
// bits convert from and to floats only.
bool converts(Opcode code, Type from, Type to);
// Pure: may be folded, merged, moved and dropped.
inline bool is_pure(Opcode c) { return info(c).effect == Effect::None; }
inline bool is_atomic(Opcode c) { return info(c).form == Form::Atomic || info(c).form == Form::AtomicCas; }
inline bool is_access(Opcode c) { return info(c).form == Form::Load || info(c).form == Form::Store || is_atomic(c); }
// The operation carries a text of Kernel::texts.
inline bool has_text(Opcode c) { return info(c).form == Form::Check || info(c).form == Form::Text || info(c).form == Form::Require; }
inline bool is_math_function(Opcode c) { return c >= Opcode::Exp && c <= Opcode::Rsqrt; }
// A barrier of the block, in any of its forms.
inline bool is_block_barrier(Opcode c) { return c == Opcode::Barrier || info(c).form == Form::BlockVote || c == Opcode::BlockUniform; }
// An operation that communicates among the active lanes of a warp (warp_sync included).
inline bool is_warp_op(Opcode c) {
  const Form f = info(c).form;
  return f == Form::WarpVote || f == Form::Shuffle || f == Form::WarpCombine || c == Opcode::WarpSync;
}

}  // namespace kiln::ir
