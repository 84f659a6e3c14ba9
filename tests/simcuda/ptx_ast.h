// PTX text as declarations and instructions, names resolved except for labels. Views refer to the module's own copy of the text.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simcuda/ptx_types.h"

namespace kiln::simcuda::ptx {

struct FunctionDecl;

// A variable of any space but registers. An initialiser is bytes with places where an address goes.
struct Variable {
  std::string name;
  Space space = Space::Global;
  Type type = Type::B8;
  unsigned line = 0;
  std::uint64_t align = 1, bytes = 0;
  bool external = false, unsized = false, visible = false;
  std::vector<std::uint8_t> init;  // empty: zero
  struct Patch {
    std::uint64_t offset = 0;
    unsigned bytes = 8;  // how many bytes of the address
    unsigned shift = 0;  // from which bit on
    std::int64_t add = 0;
    std::string symbol;
    bool generic = false;
  };
  std::vector<Patch> patches;
  std::uint64_t offset = 0;  // within its space: shared, local, param
};

struct Register {  // one that the body names
  std::string_view name;
  Type type = Type::B32;
};

struct Operand {
  enum class Kind : std::uint8_t {
    Register,
    Special,
    Int,
    Float,
    Variable,
    Function,
    Name,
    Vector,
    Address,
    Sink,
    Pair,
    List
  } kind = Kind::Sink;
  bool negated = false;     // !p
  bool is_double = false;   // Float: written 0d or decimal, `bits` are those of a double; else those of a float
  bool is_decimal = false;  // Float: written as a decimal number, which goes with either type
  bool unsigned_literal = false;
  std::uint32_t index = 0;  // of a Register
  std::int64_t value = 0;   // Int; Address and Variable: what is added
  std::uint64_t bits = 0;   // Float
  std::string_view name;    // Name, Special ("%tid.x"), also of the others for messages
  const Variable* variable = nullptr;
  const FunctionDecl* function = nullptr;
  std::vector<Operand>
      parts;  // Vector, Pair, List; Address: its base (Register, Variable, Int or Name), and an mbarrier or coordinate list
};

struct Loc {
  std::uint32_t file = 0, line = 0, column = 0;
};

struct Instruction {
  unsigned line = 0;
  std::uint32_t loc = 0;    // index into FunctionDecl::locs, 0: none
  std::uint32_t scope = 0;  // for labels
  std::int32_t guard = -1;  // register index
  bool guard_negated = false;
  std::string_view op;                 // "ld"
  std::vector<std::string_view> mods;  // "global", "u32"
  std::vector<Operand> operands;
};

struct Prototype {
  std::vector<Variable> results, params;
};

// Of .branchtargets: to be used behind its declaration only.
struct Table {
  std::uint32_t from = 0;
  std::vector<std::string_view> names;
};

struct FunctionDecl {
  std::string name;
  unsigned line = 0;
  bool entry = false, defined = false, external = false, visible = false, noreturn = false;
  std::vector<std::unique_ptr<Variable>> results, params;
  std::optional<std::array<std::uint32_t, 3>> reqntid, maxntid, reqnctapercluster;
  std::uint32_t minnctapersm = 0, maxnreg = 0;
  std::vector<Register> registers;
  std::vector<std::unique_ptr<Variable>> locals;  // .local and .param (of calls) of the body; .shared ones are the module's
  std::vector<const Variable*> shared;            // .shared variables of the body
  std::vector<Instruction> code;
  std::vector<Loc> locs{1};
  std::vector<std::uint32_t> scope_parent{0};
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> labels;  // (scope, name) -> index into code
  std::map<std::pair<std::uint32_t, std::string_view>, Table> tables;
  std::map<std::string_view, Prototype> prototypes;
};

struct ModuleDecl {
  std::string text;      // the image
  unsigned version = 0;  // 90 for 9.0
  unsigned arch = 0;     // 90 for sm_90
  char arch_suffix = 0;  // 'a', 'f' or 0
  bool debug = false;
  std::map<std::uint32_t, std::string> files;
  std::vector<std::unique_ptr<Variable>> variables;      // global, const and shared of the module and of bodies
  std::vector<std::unique_ptr<FunctionDecl>> functions;  // in the order of their first declaration
  // With names of their own: a definition replaces what was declared before it, its name too.
  std::map<std::string, Variable*, std::less<>> variable_by_name;
  std::map<std::string, FunctionDecl*, std::less<>> function_by_name;
};

// What is wrong with a text, in the words of the driver's assembler.
struct Diagnostic {
  unsigned line = 0;
  std::string text;
  bool fatal = false;  // a syntax error: nothing after it was looked at
};

struct Parsed {
  std::unique_ptr<ModuleDecl> module;  // always there, incomplete when there are errors
  std::vector<Diagnostic> errors;
};
Parsed parse(std::string text);

}  // namespace kiln::simcuda::ptx
