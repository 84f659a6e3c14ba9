#include "fuzz/generator_impl.h"

namespace kiln::fuzz {

using ir::Opcode;
using ir::Type;

Generator::Generator(std::uint64_t seed, const Shape& shape) : r_(seed), shape_(shape), b_(case_.kernel) {
  case_.kernel.name = "random" + std::to_string(seed);
  b_.loc = {b_.file("random.cpp"), 1};
}

Case Generator::run() {
  faults_ = shape_.faults && r_.chance(45);
  dear_ = static_cast<int>(r_.below(3));
  choose_types();
  choose_launch();
  declare();
  head();
  arithmetic();
  budget_ = static_cast<int>(shape_.statements);
  if (faults_ && r_.chance(25)) check_statement();  // where threads have not left yet, and no fault came before
  block(shape_.depth, Context{}, budget_);
  results();
  case_.kernel.options.contraction = r_.chance(70);
  case_.kernel.options.fast_math = r_.chance(25);
  return std::move(case_);
}

// Wide and narrow values have a word each, so that most of the trace is cheap: lanes of 64 bits cost twice as much code. The step is a
// bijection of the word, and so loses nothing.
void Generator::fold(ir::ValueId v) {
  const Type t = b_.type(v);
  const bool wide = ir::bit_width(t) == 64;
  const Type word = wide ? Type::U64 : Type::U32;
  ValueId bits = v;
  if (ir::is_float8(t)) {
    bits = b_.cast(word, b_.bit_cast(Type::U8, v));
  } else if (ir::is_float(t)) {  // the bits of a NaN are not specified
    const ValueId number = b_.binary(Opcode::Eq, v, v);
    bits = b_.bit_cast(ir::is_half(t) ? Type::U16 : word, v);
    if (ir::is_half(t)) bits = b_.cast(word, bits);
    bits = b_.select(number, bits, b_.constant(word, wide ? 0x7ff8000000000000ull : 0x7fc00000u));
  } else if (t != word) {
    bits = b_.cast(word, v);
  }
  const std::uint32_t slot = wide ? trace64_ : trace32_;
  const ValueId scaled = b_.binary(Opcode::Mul, b_.get(slot), b_.constant(word, 31));
  b_.set(slot, b_.binary(Opcode::Add, scaled, bits));
}

void Generator::write_trace() {
  const ValueId high = b_.binary(Opcode::Mul, b_.get(trace64_), b_.const_u64(0x9e3779b97f4a7c15ull));
  b_.store(trace_, {linear_}, b_.binary(Opcode::Xor, high, b_.cast(Type::U64, b_.get(trace32_))));
}

void Generator::results() {
  ++b_.loc.line;
  for (const Slot& s : slots_) fold(b_.get(s.id));
  if (local_.mem != ir::kNone) fold(b_.load(local_.mem, {b_.const_u32(r_.below(8))}));
  if (!shared_accumulators_.empty()) {
    b_.barrier();
    for (const Accumulator& a : shared_accumulators_) fold(b_.load(a.mem, {b_.binary(Opcode::And, linear_, b_.const_u32(7))}));
  }
  write_trace();
}

Case generate(std::uint64_t seed, const Shape& shape) { return Generator(seed, shape).run(); }

}  // namespace kiln::fuzz
