// Loads, stores and atomics, and where they land.
#include <cstring>

#include "support/ptx_decoder.h"

namespace kiln::test::ptx {

std::string Decoder::space() const {
  for (const char* const name : {"param", "global", "shared", "local"}) {
    if (s_->has(name)) return name;
  }
  if (s_->has("shared__cta")) return "shared";
  fail("a generic address");
}

// Generic addresses of a space lie in a window of their own, so that one used as an address of the space, or the other way round, is out
// of range. Global memory is where it is.
void Decoder::convert_address(Instruction& i) {
  const std::string from = space();
  const Bits window = from == "local" ? Bits{1} << 62 : from == "shared" ? Bits{1} << 61 : 0;
  const bool to_space = s_->has("to");
  const Kind k{'b', 64};
  unary(i, k, k, [=](Bits a) { return to_space ? a - window : a + window; });
}

void Decoder::access(Instruction& i) {
  const Kind k = type();
  const bool load = s_->op[0] == "ld";
  const std::string where = space();
  const std::string& value = s_->operands.at(load ? 0 : 1);
  const std::string& at = s_->operands.at(load ? 1 : 0);
  const std::vector<std::string> values = value[0] == '{' ? list(value) : std::vector<std::string>{value};
  const std::uint64_t size = k.width / 8;
  if (where == "param" && !load) {  // an argument of a call
    const std::string name = at.substr(1, at.size() - 2);
    const Source v = source(value, k);
    i.run = [=](Thread& t) { t.frame().outgoing[name] = v(t); };
    return;
  }
  const Source address_of = address(at);
  const std::uint64_t total = size * values.size();
  if (load) {
    std::vector<std::uint32_t> regs;
    for (const std::string& v : values) regs.push_back(v == "_" ? 0xffffffffu : reg(v));
    i.run = [=](Thread& t) {
      const std::uint8_t* const from = locate(t, where, address_of(t), total);
      for (std::size_t n = 0; n < regs.size(); ++n) {
        Bits v = 0;
        std::memcpy(&v, from + n * size, size);
        if (regs[n] != 0xffffffffu) put(t, regs[n], {'b', 64}, k.is_signed() ? static_cast<Bits>(as_signed(k, v)) : v);
      }
    };
  } else {
    std::vector<Source> sources;
    for (const std::string& v : values) sources.push_back(source(v, k));
    i.run = [=](Thread& t) {
      std::uint8_t* const to = locate(t, where, address_of(t), total);
      for (std::size_t n = 0; n < sources.size(); ++n) {
        const Bits v = sources[n](t);
        std::memcpy(to + n * size, &v, size);
      }
    };
  }
}

void Decoder::atomic(Instruction& i) {
  const Kind k = type();
  const std::string where = space();
  const bool red = s_->op[0] == "red";
  const std::size_t first = red ? 0 : 1;
  const std::uint32_t d = red ? 0xffffffffu : s_->operands[0] == "_" ? 0xffffffffu : dest(0);
  const Source address_of = address(s_->operands.at(first));
  const Source a = source(first + 1, k);
  const bool cas = s_->has("cas");
  const Source b = cas ? source(first + 2, k) : fixed(0);
  std::string how;
  for (const char* const name : {"add", "min", "max", "and", "or", "xor", "exch", "cas"}) {
    if (s_->has(name)) how = name;
  }
  const bool flush = k.is_float() && k.width == 32 && where == "global";
  const auto combine = [=](Bits old, Bits x, Bits y) -> Bits {
    if (how == "cas") return old == x ? y : old;
    if (how == "exch") return x;
    if (how == "and") return old & x;
    if (how == "or") return old | x;
    if (how == "xor") return old ^ x;
    if (how == "add" && k.is_float()) {
      const auto sum = [](auto p, auto q, auto) { return p + q; };
      if (!flush) return floats(k, sum, sum, old, x);
      return flushed(floats(k, sum, sum, flushed(old), flushed(x)));
    }
    if (how == "add") return old + x;
    const bool less = k.is_signed() ? as_signed(k, old) < as_signed(k, x) : old < x;
    return less == (how == "min") ? old : x;
  };
  i.run = [=](Thread& t) {
    std::uint8_t* const at = locate(t, where, address_of(t), k.width / 8);
    Bits old = 0;
    std::memcpy(&old, at, k.width / 8);
    const Bits updated = combine(old, a(t), b(t));
    std::memcpy(at, &updated, k.width / 8);
    if (d != 0xffffffffu) put(t, d, k, old);
  };
}

std::uint8_t* locate(Thread& t, const std::string& space, std::uint64_t address, std::uint64_t bytes) {
  if (address % bytes != 0) throw Error(space + " access of " + std::to_string(bytes) + " bytes at a misaligned address");
  const auto inside = [&](std::vector<std::uint8_t>& memory) -> std::uint8_t* {
    if (address > memory.size() || bytes > memory.size() - address)
      throw Error(space + " access out of range, at byte " + std::to_string(address));
    return memory.data() + address;
  };
  if (space == "param") return inside(t.frame().params);
  if (space == "shared") return inside(t.block->shared);
  if (space == "local") return inside(t.local);
  for (const Allocation& a : *t.block->memory) {
    if (address < a.address || address >= a.address + a.bytes + 64) continue;
    if (address + bytes > a.address + a.bytes)
      throw Error("global access " + std::to_string(address - a.address) + " bytes into '" + a.name + "', which has " +
                  std::to_string(a.bytes));
    return a.data + (address - a.address);
  }
  throw Error("global access at an address of no buffer");
}

}  // namespace kiln::test::ptx
