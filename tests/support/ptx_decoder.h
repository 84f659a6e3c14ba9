// Statements made executable, one at a time; the parts are in ptx_decode*.cpp. Private to the PTX machine.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/ptx_thread.h"

namespace kiln::test::ptx {

using Source = std::function<Bits(const Thread&)>;

class Decoder {
 public:
  Decoder(const Module& module, const Function& function) : m_(module), f_(function), code_(std::make_unique<Code>()) {
    code_->function = &function;
  }
  std::unique_ptr<Code> run();

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void instruction(Instruction& i);

  // Operands, and the forms of operations on registers.
  std::uint32_t reg(const std::string& name);
  std::uint32_t dest(std::size_t n) { return reg(s_->operands.at(n)); }
  static void put(Thread& t, std::uint32_t r, Kind k, Bits v) { t.frame().registers[r] = v & k.mask(); }
  static Source fixed(Bits v) {
    return [v](const Thread&) { return v; };
  }
  static Source special(const std::string& name);
  Source source(const std::string& text, Kind k);
  Source source(std::size_t n, Kind k) { return source(s_->operands.at(n), k); }
  Source address(const std::string& text);
  std::vector<std::string> list(const std::string& text) const;
  Kind type(std::size_t from_end = 0) const;
  void unary(Instruction& i, Kind to, Kind from, std::function<Bits(Bits)> f);
  void binary(Instruction& i, Kind to, Kind x, Kind y, std::function<Bits(Bits, Bits)> f);
  void ternary(Instruction& i, Kind to, Kind x, Kind y, Kind z, std::function<Bits(Bits, Bits, Bits)> f);

  // Arithmetic, comparisons, conversions, moves.
  void arithmetic(Instruction& i);
  void carrying(Instruction& i, Kind k);
  static Bits reversed(Bits v);
  bool float_arithmetic(Instruction& i, const std::string& name, Kind k);
  void funnel(Instruction& i);
  void move(Instruction& i);
  void compare(Instruction& i);
  void select(Instruction& i);
  void convert(Instruction& i);

  // Loads, stores, atomics, addresses.
  std::string space() const;
  void convert_address(Instruction& i);
  void access(Instruction& i);
  void atomic(Instruction& i);

  // Branches and calls; shuffles, votes, reductions and barriers.
  std::size_t label(const std::string& name) const;
  void branch(Instruction& i);
  void branch_table(Instruction& i);
  void leave(Instruction& i);
  void call(Instruction& i);
  std::function<std::uint32_t(const Thread&)> mask_of(std::size_t operand);
  void shuffle(Instruction& i);
  void vote(Instruction& i);
  void redux(Instruction& i);
  void barrier(Instruction& i);

  const Module& m_;
  const Function& f_;
  std::unique_ptr<Code> code_;
  const Statement* s_ = nullptr;  // the one being decoded
};

}  // namespace kiln::test::ptx
