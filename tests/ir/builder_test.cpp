#include "kiln/ir/builder.h"

#include <doctest/doctest.h>

#include "kiln/ir/diagnostic.h"

using namespace kiln::ir;

TEST_CASE("the op table names every operation once and finds it by its name") {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto code = static_cast<Opcode>(i);
    CHECK(parse_opcode(info(code).mnemonic) == code);
  }
  CHECK_FALSE(parse_opcode("").has_value());
  CHECK_FALSE(parse_opcode("addd").has_value());
  CHECK(info(Opcode::Store).effect == Effect::Write);
  CHECK(info(Opcode::BarrierCount).form == Form::BlockVote);
  CHECK(is_math_function(Opcode::Exp));
  CHECK(is_math_function(Opcode::Rsqrt));
  CHECK_FALSE(is_math_function(Opcode::Get));
}

TEST_CASE("type names read back and sizes are those of the table") {
  for (int i = 0; i < kTypeCount; ++i) CHECK(parse_type(name(static_cast<Type>(i))) == static_cast<Type>(i));
  CHECK_FALSE(parse_type("f23").has_value());
  CHECK(byte_size(Type::Bool) == 1);
  CHECK(byte_size(Type::BF16) == 2);
  CHECK(value_mask(Type::I32) == 0xffffffffu);
  CHECK(sign_extend(Type::I8, 0x80) == -128);
  for (const Combine c : {Combine::Add, Combine::Mul, Combine::Min, Combine::Max, Combine::And, Combine::Or, Combine::Xor})
    CHECK(parse_combine(name(c)) == c);
}

TEST_CASE("the builder gives results the types of the op table") {
  Kernel k;
  k.name = "k";
  Builder b(k);
  b.loc = {b.file("a.cpp"), 7};
  CHECK(b.file("a.cpp") == 0);
  CHECK(b.file("b.cpp") == 1);
  const auto x = b.buffer("x", Type::F64, 1, Access::In);
  const auto n = b.scalar("n", Type::I64);
  const auto s = b.slot("s", Type::Bool);
  const ValueId i = b.query(Opcode::GlobalId);
  const ValueId v = b.load(x, {i});
  CHECK(b.type(v) == Type::F64);
  CHECK(b.type(b.binary(Opcode::Lt, v, v)) == Type::Bool);
  CHECK(b.type(b.binary(Opcode::Add, v, v)) == Type::F64);
  CHECK(b.type(b.param(n)) == Type::I64);
  CHECK(b.type(b.get(s)) == Type::Bool);
  CHECK(b.type(b.block_vote(Opcode::BarrierCount, b.const_bool(true))) == Type::U32);
  CHECK(b.type(b.warp_vote(Opcode::Ballot, b.const_bool(true))) == Type::U32);
  CHECK(b.type(b.warp_vote(Opcode::VoteAny, b.const_bool(true))) == Type::Bool);
  CHECK(b.type(b.cast(Type::I32, v)) == Type::I32);
  CHECK(k.op(v).loc == Loc{0, 7});
  CHECK(to_string(k, k.op(v).loc) == "a.cpp:7");
  CHECK(to_string(k, Loc{}) == "?");
  CHECK(k.ops[b.const_i32(-1)].imm == 0xffffffffu);
  const OpId sw = b.switch_(i, {1, 5});
  CHECK(k.op(sw).regions.size() == 3);
}

TEST_CASE("compact drops what no region names and numbers in program order") {
  Kernel k;
  k.name = "k";
  Builder b(k);
  const ValueId dropped = b.const_u32(1);
  const ValueId c = b.const_bool(true);
  const OpId i = b.if_(c);
  const ValueId after = b.const_u32(3);
  b.set_region(k.op(i).regions[1]);
  b.leave(Opcode::Return);
  b.set_region(k.op(i).regions[0]);
  b.binary(Opcode::Add, after, after);
  std::erase(k.regions[0].ops, dropped);
  std::swap(k.regions[0].ops[1], k.regions[0].ops[2]);  // the constant before the if
  b.new_region();
  compact(k);
  REQUIRE(k.ops.size() == 5);
  CHECK(k.regions.size() == 3);
  CHECK(k.regions[0].ops == std::vector<OpId>{0, 1, 2});
  CHECK(k.op(1).imm == 3);
  CHECK(k.op(2).code == Opcode::If);
  CHECK(k.op(2).operands == std::vector<ValueId>{0});
  CHECK(k.op(3).operands == std::vector<ValueId>{1, 1});
  CHECK(k.op(4).code == Opcode::Return);
  CHECK(k.regions[k.op(2).regions[0]].ops == std::vector<OpId>{3});
}

TEST_CASE("diagnostics print place, kernel and message, one a line") {
  const Diagnostics d{{"k", "a.cpp:3", "one"}, {"", "", "two"}};
  CHECK(to_string(d) == "a.cpp:3: kernel 'k': one\ntwo");
  CHECK(std::string(IrError(d).what()) == to_string(d));
}
