// Statements to instructions: operands, and which part of the decoder knows an operation.
#include <cstdlib>

#include "support/ptx_decoder.h"

namespace kiln::test::ptx {

std::unique_ptr<Code> Decoder::run() {
  for (const Statement& s : f_.code) {
    s_ = &s;
    Instruction i;
    i.statement = &s;
    if (!s.guard.empty()) {
      const std::uint32_t p = reg(s.guard);
      const bool wanted = !s.guard_negated;
      i.guard = [p, wanted](const Thread& t) { return (t.frame().registers[p] != 0) == wanted; };
    }
    instruction(i);
    code_->instructions.push_back(std::move(i));
  }
  return std::move(code_);
}

void Decoder::fail(const std::string& what) const {
  std::string text;
  for (const std::string& part : s_->op) text += (text.empty() ? "" : ".") + part;
  throw Error("PTX line " + std::to_string(s_->line) + ": " + text + ": " + what);
}

std::uint32_t Decoder::reg(const std::string& name) {
  if (name.empty() || name[0] != '%') fail("'" + name + "' is not a register");
  return code_->registers.try_emplace(name, static_cast<std::uint32_t>(code_->registers.size())).first->second;
}

Source Decoder::special(const std::string& name) {
  const unsigned axis = name.back() - 'x';
  if (name.rfind("%tid.", 0) == 0) return [axis](const Thread& t) -> Bits { return t.id[axis]; };
  if (name.rfind("%ntid.", 0) == 0) return [axis](const Thread& t) -> Bits { return t.block->dim[axis]; };
  if (name.rfind("%ctaid.", 0) == 0) return [axis](const Thread& t) -> Bits { return t.block->index[axis]; };
  if (name.rfind("%nctaid.", 0) == 0) return [axis](const Thread& t) -> Bits { return t.block->grid[axis]; };
  if (name == "%laneid") return [](const Thread& t) -> Bits { return t.lane(); };
  if (name == "%dynamic_smem_size") return [](const Thread& t) -> Bits { return t.block->dynamic_bytes; };
  return {};
}

Source Decoder::source(const std::string& text, Kind k) {
  if (text[0] == '!') {
    const Source of = source(text.substr(1), k);
    return [of](const Thread& t) -> Bits { return of(t) == 0; };
  }
  if (text[0] == '%') {
    if (Source s = special(text)) return s;
    const std::uint32_t r = reg(text);
    const Bits mask = k.mask();
    return [r, mask](const Thread& t) { return t.frame().registers[r] & mask; };
  }
  if (text.rfind("0f", 0) == 0 || text.rfind("0d", 0) == 0) return fixed(std::strtoull(text.c_str() + 2, nullptr, 16));
  if (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) {
    const Bits v = text[0] == '-' ? static_cast<Bits>(std::strtoll(text.c_str(), nullptr, 0)) : std::strtoull(text.c_str(), nullptr, 0);
    return fixed(v & k.mask());
  }
  if (const auto it = m_.shared.find(text); it != m_.shared.end()) return fixed(it->second);
  if (const auto it = f_.locals.find(text); it != f_.locals.end()) return fixed(it->second);
  if (!text.empty() && text == m_.dynamic_shared) return fixed((m_.static_shared + 15) / 16 * 16);
  fail("unknown operand '" + text + "'");
}

// "[%rd1+4]", "[$shared_2]", "[k_param_0]" (then `param` is set)
Source Decoder::address(const std::string& text) {
  std::string inner = text.substr(1, text.size() - 2);
  Bits offset = 0;
  if (const std::size_t plus = inner.rfind('+'); plus != std::string::npos) {
    offset = static_cast<Bits>(std::strtoll(inner.c_str() + plus + 1, nullptr, 0));
    inner.resize(plus);
  }
  if (const auto it = f_.params.find(inner); it != f_.params.end()) return fixed(f_.param_offset[it->second] + offset);
  const Source base = source(inner, {'b', 64});
  return [base, offset](const Thread& t) { return base(t) + offset; };
}

std::vector<std::string> Decoder::list(const std::string& text) const {
  std::vector<std::string> items;
  std::string item;
  for (const char c : text.substr(1, text.size() - 2)) {
    if (c == ',') {
      items.push_back(item);
      item.clear();
    } else if (c != ' ') {
      item += c;
    }
  }
  if (!item.empty()) items.push_back(item);
  return items;
}

Kind Decoder::type(std::size_t from_end) const {
  std::size_t seen = 0;
  for (std::size_t i = s_->op.size(); i-- > 1;) {
    if (is_kind(s_->op[i]) && seen++ == from_end) return kind(s_->op[i]);
  }
  fail("no type");
}

void Decoder::unary(Instruction& i, Kind to, Kind from, std::function<Bits(Bits)> f) {
  const std::uint32_t d = dest(0);
  const Source a = source(1, from);
  i.run = [=](Thread& t) { put(t, d, to, f(a(t))); };
}

void Decoder::binary(Instruction& i, Kind to, Kind x, Kind y, std::function<Bits(Bits, Bits)> f) {
  const std::uint32_t d = dest(0);
  const Source a = source(1, x), b = source(2, y);
  i.run = [=](Thread& t) { put(t, d, to, f(a(t), b(t))); };
}

void Decoder::ternary(Instruction& i, Kind to, Kind x, Kind y, Kind z, std::function<Bits(Bits, Bits, Bits)> f) {
  const std::uint32_t d = dest(0);
  const Source a = source(1, x), b = source(2, y), c = source(3, z);
  i.run = [=](Thread& t) { put(t, d, to, f(a(t), b(t), c(t))); };
}

void Decoder::instruction(Instruction& i) {
  const std::string& name = s_->op[0];
  if (name == "bra") return branch(i);
  if (name == "ret" || name == "exit") return leave(i);
  if (name == "brx") return branch_table(i);
  if (name == "call") return call(i);
  if (name == "mov") return move(i);
  if (name == "ld" || name == "st") return access(i);
  if (name == "cvta") return convert_address(i);
  if (name == "atom" || name == "red") return atomic(i);
  if (name == "setp") return compare(i);
  if (name == "selp") return select(i);
  if (name == "cvt") return convert(i);
  if (name == "shfl") return shuffle(i);
  if (name == "vote") return vote(i);
  if (name == "redux") return redux(i);
  if (name == "bar" || name == "barrier") return barrier(i);
  if (name == "fence" || name == "membar") {
    i.run = [](Thread&) {};
    return;
  }
  arithmetic(i);
}

std::unique_ptr<Code> decode(const Module& module, const Function& function) { return Decoder(module, function).run(); }

}  // namespace kiln::test::ptx
