// From parsed instructions to Ops: what the decoders of the instruction families share. A decoder reads the modifiers it knows, then the
// operands; what is left over is an error in the words of the driver's assembler.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simcuda/ptx_code.h"

namespace kiln::simcuda::ptx {

class Decoder;
using Decode = void (*)(Decoder&);
using DecodeTable = std::unordered_map<std::string_view, Decode>;

// The families of instructions, each in a file of its own.
void add_integer(DecodeTable& table);
void add_bits(DecodeTable& table);
void add_float(DecodeTable& table);
void add_compare(DecodeTable& table);
void add_convert(DecodeTable& table);
void add_move(DecodeTable& table);
void add_memory(DecodeTable& table);
void add_atomic(DecodeTable& table);
void add_control(DecodeTable& table);
void add_together(DecodeTable& table);

// Rounding to the nearest even, to zero, down, up; to the nearest, ties away.
enum class Round : std::uint8_t { None, Nearest, Zero, Down, Up, Away };

// A module's functions by declaration, while they are decoded.
struct DecodeContext {
  const ModuleDecl* module = nullptr;
  std::map<const FunctionDecl*, Function*> functions;
  std::map<const Variable*, std::uint64_t> addresses;  // of global and const variables; shared: offsets
  std::vector<Diagnostic>* errors = nullptr;
};

class Decoder {
 public:
  Decoder(DecodeContext& context, Function& function);
  void run();  // decodes the whole body

  // The instruction being decoded.
  const Instruction& instruction() const { return *i_; }
  Op op;
  std::string_view name() const { return i_->op; }
  const FunctionDecl& decl() const { return *function_.decl; }
  Function& function() { return function_; }
  DecodeContext& context() { return context_; }

  // Modifiers.
  bool take(std::string_view modifier);                                          // if it is there
  std::string_view take_any(std::initializer_list<std::string_view> modifiers);  // the first of them that is there, or empty
  bool has(std::string_view modifier) const;                                     // without taking it
  bool take_prefix(std::string_view prefix);                                     // every one that begins so
  Type take_type();                                                              // the next type; None when there is none
  Round take_round(std::string_view allowed = "nzmp");                           // .rn .rz .rm .rp
  std::size_t modifiers_left() const;

  // Errors. The first of an instruction counts.
  void error(std::string text);
  void mismatch();                        // Arguments mismatch for instruction 'add'
  void bad_type();                        // Unexpected instruction types specified for 'add'
  void unknown(const std::string& what);  // "... not known to the simulated driver"
  bool failed() const { return failed_; }
  void need(unsigned arch, unsigned version, std::string_view what = {});  // or: requires .target sm_80 or higher

  // Operands. Each checks and reports; after an error what they return does not matter.
  std::size_t operands() const { return i_->operands.size(); }
  const Operand& operand(std::size_t k) const { return i_->operands[k]; }
  bool count(std::size_t n);  // exactly n operands, or a mismatch
  bool count(std::size_t least, std::size_t most);
  enum class Width : std::uint8_t { Exact, AtLeast };                 // AtLeast: registers may be wider, as for ld, st and cvt
  Slot out(const Operand& o, Type type, Width width = Width::Exact);  // a sink gets a scratch slot
  Slot in(const Operand& o, Type type, Width width = Width::Exact);
  Slot out(std::size_t k, Type type, Width width = Width::Exact) { return k < operands() ? out(operand(k), type, width) : missing(); }
  Slot in(std::size_t k, Type type, Width width = Width::Exact) { return k < operands() ? in(operand(k), type, width) : missing(); }
  bool unread(const Operand& o) const;  // a result that nothing reads, or a sink
  Predicate predicate_out(const Operand& o);
  Predicate predicate_in(const Operand& o);
  Type register_type(const Operand& o) const;
  bool is_register(const Operand& o) const { return o.kind == Operand::Kind::Register; }
  Slot constant(std::uint64_t value);
  Slot wide_constant(std::uint64_t low, std::uint64_t high);
  std::optional<std::int64_t> integer(const Operand& o) const;  // of a literal
  Slot scratch(unsigned slots = 1);
  Predicate scratch_predicate();
  // [base + offset]: fills op.a, op.imm, op.space and op.entry_param for a state space that the instruction names (Generic: none).
  void address(const Operand& o, Space space, bool space_named);
  std::uint64_t address_of(const Variable& v, bool generic);
  Space space_of(const Variable& v) const { return v.space; }
  std::uint32_t frame_offset(const Variable& v);

  // Branch targets.
  std::optional<std::uint32_t> label(std::string_view name);
  const std::vector<std::string_view>* table(std::string_view name) const;

  void emit() { function_.ops.push_back(op); }  // the finished Op; run() emits unless a decoder already did
  void emitted() { emitted_ = true; }

 private:
  Slot missing() {
    mismatch();
    return 0;
  }
  void one(const Instruction& i);
  void layout();

  DecodeContext& context_;
  Function& function_;
  const Instruction* i_ = nullptr;
  std::vector<bool> used_;
  std::vector<bool> unread_;  // by register
  bool failed_ = false, emitted_ = false;
  std::vector<Slot> slot_of_;  // by register
  std::unordered_map<std::uint64_t, Slot> constant_slots_;
  std::map<const Variable*, std::uint32_t> frame_offsets_;
};

const DecodeTable& decode_table();

}  // namespace kiln::simcuda::ptx
