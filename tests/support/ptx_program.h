// PTX text as statements. Private to the PTX machine.
#pragma once
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::test::ptx {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Statement {
  int line = 0;
  std::string guard;  // "%p1" of "@%p1" and "@!%p1"; empty: always
  bool guard_negated = false;
  std::vector<std::string> op;        // "setp", "lt", "u32"
  std::vector<std::string> operands;  // "%r1", "[%rd1+4]", "{%r1, %r2}", "($a, b)", "-1", "$L__BB0_1"
  bool has(const std::string& part) const;
};

struct Function {
  std::string name;
  bool entry = false;
  std::vector<std::uint32_t> param_offset, param_size;
  std::map<std::string, std::size_t> params;  // name -> number
  std::uint32_t param_bytes = 0;
  std::map<std::string, std::uint64_t> locals;  // .local symbols -> offset
  std::uint64_t local_bytes = 0;
  std::vector<Statement> code;
  std::map<std::string, std::size_t> labels;               // -> index into code
  std::map<std::string, std::vector<std::string>> tables;  // .branchtargets
};

struct Module {
  std::map<std::string, Function> functions;
  std::map<std::string, std::uint64_t> shared;  // static symbols -> offset; the dynamic one lies behind them
  std::uint64_t static_shared = 0;
  std::string dynamic_shared;  // its name, or empty
};

Module parse(const std::string& text);  // throws Error

}  // namespace kiln::test::ptx
