#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "support/ptx_thread.h"

namespace kiln::test::ptx {
namespace {

using Source = std::function<Bits(const Thread&)>;

class Decoder {
 public:
  Decoder(const Module& module, const Function& function) : m_(module), f_(function), code_(std::make_unique<Code>()) {
    code_->function = &function;
  }

  std::unique_ptr<Code> run() {
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

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::string text;
    for (const std::string& part : s_->op) text += (text.empty() ? "" : ".") + part;
    throw Error("PTX line " + std::to_string(s_->line) + ": " + text + ": " + what);
  }

  // --- operands -------------------------------------------------------------------------------------------------------

  std::uint32_t reg(const std::string& name) {
    if (name.empty() || name[0] != '%') fail("'" + name + "' is not a register");
    return code_->registers.try_emplace(name, static_cast<std::uint32_t>(code_->registers.size())).first->second;
  }
  std::uint32_t dest(std::size_t n) { return reg(s_->operands.at(n)); }
  static void put(Thread& t, std::uint32_t r, Kind k, Bits v) { t.frame().registers[r] = v & k.mask(); }

  static Source special(const std::string& name) {
    const unsigned axis = name.back() - 'x';
    if (name.rfind("%tid.", 0) == 0) return [axis](const Thread& t) -> Bits { return t.id[axis]; };
    if (name.rfind("%ntid.", 0) == 0) return [axis](const Thread& t) -> Bits { return t.block->dim[axis]; };
    if (name.rfind("%ctaid.", 0) == 0) return [axis](const Thread& t) -> Bits { return t.block->index[axis]; };
    if (name.rfind("%nctaid.", 0) == 0) return [axis](const Thread& t) -> Bits { return t.block->grid[axis]; };
    if (name == "%laneid") return [](const Thread& t) -> Bits { return t.lane(); };
    if (name == "%dynamic_smem_size") return [](const Thread& t) -> Bits { return t.block->dynamic_bytes; };
    return {};
  }

  static Source fixed(Bits v) {
    return [v](const Thread&) { return v; };
  }

  Source source(const std::string& text, Kind k) {
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
  Source source(std::size_t n, Kind k) { return source(s_->operands.at(n), k); }

  // "[%rd1+4]", "[$shared_2]", "[k_param_0]" (then `param` is set)
  Source address(const std::string& text) {
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

  std::vector<std::string> list(const std::string& text) const {
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

  Kind type(std::size_t from_end = 0) const {
    std::size_t seen = 0;
    for (std::size_t i = s_->op.size(); i-- > 1;) {
      if (is_kind(s_->op[i]) && seen++ == from_end) return kind(s_->op[i]);
    }
    fail("no type");
  }

  // --- forms ----------------------------------------------------------------------------------------------------------

  void unary(Instruction& i, Kind to, Kind from, std::function<Bits(Bits)> f) {
    const std::uint32_t d = dest(0);
    const Source a = source(1, from);
    i.run = [=](Thread& t) { put(t, d, to, f(a(t))); };
  }
  void binary(Instruction& i, Kind to, Kind x, Kind y, std::function<Bits(Bits, Bits)> f) {
    const std::uint32_t d = dest(0);
    const Source a = source(1, x), b = source(2, y);
    i.run = [=](Thread& t) { put(t, d, to, f(a(t), b(t))); };
  }
  void ternary(Instruction& i, Kind to, Kind x, Kind y, Kind z, std::function<Bits(Bits, Bits, Bits)> f) {
    const std::uint32_t d = dest(0);
    const Source a = source(1, x), b = source(2, y), c = source(3, z);
    i.run = [=](Thread& t) { put(t, d, to, f(a(t), b(t), c(t))); };
  }

  template <class F, class D>
  std::function<Bits(Bits, Bits, Bits)> float_operation(Kind k, F f, D d) {
    const bool ftz = s_->has("ftz");
    return [=](Bits a, Bits b, Bits c) {
      if (ftz) a = flushed(a), b = flushed(b), c = flushed(c);
      const Bits r = floats(k, f, d, a, b, c);
      return ftz ? flushed(r) : r;
    };
  }

  void instruction(Instruction& i) {
    const std::string& name = s_->op[0];
    if (name == "bra") return branch(i);
    if (name == "ret" || name == "exit") return leave(i);
    if (name == "brx") return branch_table(i);
    if (name == "call") return call(i);
    if (name == "mov") return move(i);
    if (name == "ld" || name == "st") return access(i);
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

  void arithmetic(Instruction& i) {
    const std::string& name = s_->op[0];
    const Kind k = type();
    const bool wide = s_->has("wide");
    const Kind to = wide ? Kind{k.letter, 2 * k.width} : k;
    const Kind count{'u', 32};
    const auto extended = [k](Bits v) { return k.is_signed() ? static_cast<Bits>(as_signed(k, v)) : v; };
    if (k.is_float() && float_arithmetic(i, name, k)) return;
    if (s_->has("cc") || name == "addc" || name == "subc") return carrying(i, k);
    if (name == "add") return binary(i, k, k, k, [](Bits a, Bits b) { return a + b; });
    if (name == "sub") return binary(i, k, k, k, [](Bits a, Bits b) { return a - b; });
    if (name == "mul" && s_->has("hi")) return binary(i, k, k, k, [k](Bits a, Bits b) { return multiply_high(k, a, b); });
    if (name == "mul") return binary(i, to, k, k, [=](Bits a, Bits b) { return extended(a) * extended(b); });
    if (name == "mad") return ternary(i, to, k, k, to, [=](Bits a, Bits b, Bits c) { return extended(a) * extended(b) + c; });
    if (name == "div" || name == "rem") {
      const bool rem = name == "rem";
      return binary(i, k, k, k, [=](Bits a, Bits b) { return divide(k, rem, a, b); });
    }
    if (name == "neg") return unary(i, k, k, [](Bits a) { return 0 - a; });
    if (name == "abs") return unary(i, k, k, [k](Bits a) { return as_signed(k, a) < 0 ? 0 - a : a; });
    if (name == "min" || name == "max") {
      const bool max = name == "max";
      return binary(i, k, k, k, [=](Bits a, Bits b) {
        const bool less = k.is_signed() ? as_signed(k, a) < as_signed(k, b) : a < b;
        return less != max ? a : b;
      });
    }
    if (name == "and") return binary(i, k, k, k, [](Bits a, Bits b) { return a & b; });
    if (name == "or") return binary(i, k, k, k, [](Bits a, Bits b) { return a | b; });
    if (name == "xor") return binary(i, k, k, k, [](Bits a, Bits b) { return a ^ b; });
    if (name == "not") return unary(i, k, k, [](Bits a) { return ~a; });
    if (name == "shl") return binary(i, k, k, count, [k](Bits a, Bits n) { return clamp_shift(k, true, a, n); });
    if (name == "shr") return binary(i, k, k, count, [k](Bits a, Bits n) { return clamp_shift(k, false, a, n); });
    if (name == "shf") return funnel(i);
    if (name == "popc") return unary(i, count, k, [](Bits a) { return static_cast<Bits>(std::popcount(a)); });
    if (name == "clz") return unary(i, count, k, [k](Bits a) { return static_cast<Bits>(std::countl_zero(a)) - (64 - k.width); });
    if (name == "brev") return unary(i, k, k, [k](Bits a) { return reversed(a) >> (64 - k.width); });
    if (name == "bfind") {
      return unary(i, count, k, [](Bits a) { return a == 0 ? 0xffffffffu : 63 - static_cast<Bits>(std::countl_zero(a)); });
    }
    if (name == "bfe") {
      return ternary(i, k, k, count, count, [k](Bits a, Bits at, Bits n) -> Bits {
        at &= 255, n &= 255;
        const Bits bits = at >= k.width ? 0 : (a & k.mask()) >> at;
        const Bits field = n >= 64 ? bits : bits & ((Bits{1} << n) - 1);
        if (!k.is_signed() || n == 0) return field;
        const Bits top = std::min<Bits>(at + n - 1, k.width - 1);
        const bool negative = (a >> top) & 1;
        return negative && n < 64 ? field | (~Bits{0} << std::min<Bits>(n, 63)) : field;
      });
    }
    if (name == "prmt" && s_->op.size() == 2) {
      return ternary(i, k, k, k, k, [](Bits a, Bits b, Bits how) {
        const Bits both = (a & 0xffffffffu) | b << 32;
        Bits r = 0;
        for (unsigned n = 0; n < 4; ++n) {
          const Bits pick = how >> (4 * n);
          Bits byte = (both >> (8 * (pick & 7))) & 255;
          if (pick & 8) byte = byte & 128 ? 255 : 0;
          r |= byte << (8 * n);
        }
        return r;
      });
    }
    fail("an instruction that the PTX machine does not know");
  }

  // Sums over several words: the carry, or borrow, goes on in a flag of the thread.
  void carrying(Instruction& i, Kind k) {
    const std::string& name = s_->op[0];
    const bool takes = name == "addc" || name == "subc", gives = s_->has("cc"), subtracts = name[0] == 's';
    const std::uint32_t d = dest(0);
    const Source a = source(1, k), b = source(2, k);
    i.run = [=](Thread& t) {
      const unsigned __int128 x = a(t), y = b(t) + static_cast<unsigned __int128>(takes ? t.carry : 0);
      if (gives) t.carry = subtracts ? x < y : x + y > k.mask();
      put(t, d, k, static_cast<Bits>(subtracts ? x - y : x + y));
    };
  }

  static Bits reversed(Bits v) {
    Bits r = 0;
    for (int n = 0; n < 64; ++n) r |= ((v >> n) & 1) << (63 - n);
    return r;
  }

  bool float_arithmetic(Instruction& i, const std::string& name, Kind k) {
    const auto three = [&](auto f) { return float_operation(k, f, f); };
    const auto on_two = [&](auto f) {
      const auto g = three(f);
      binary(i, k, k, k, [g](Bits a, Bits b) { return g(a, b, 0); });
      return true;
    };
    const auto on_one = [&](auto f) {
      const auto g = three(f);
      unary(i, k, k, [g](Bits a) { return g(a, 0, 0); });
      return true;
    };
    if (!s_->has("rn") &&
        (name == "add" || name == "sub" || name == "mul" || name == "div" || name == "sqrt" || name == "fma" || name == "rcp")) {
      if (!s_->has("approx")) fail("a float operation without .rn: ptxas may fuse it");
    }
    if (name == "add") return on_two([](auto a, auto b, auto) { return a + b; });
    if (name == "sub") return on_two([](auto a, auto b, auto) { return a - b; });
    if (name == "mul") return on_two([](auto a, auto b, auto) { return a * b; });
    if (name == "div") return on_two([](auto a, auto b, auto) { return a / b; });
    if (name == "sqrt") return on_one([](auto a, auto, auto) { return std::sqrt(a); });
    if (name == "rcp") return on_one([](auto a, auto, auto) { return decltype(a)(1) / a; });
    if (name == "fma") {
      const auto g = three([](auto a, auto b, auto c) { return std::fma(a, b, c); });
      ternary(i, k, k, k, k, g);
      return true;
    }
    if (name == "neg") return on_one([](auto a, auto, auto) { return -a; });  // NaN: canonical, as the ISA allows
    if (name == "abs") return on_one([](auto a, auto, auto) { return std::fabs(a); });
    if (name == "min" || name == "max") {
      const bool max = name == "max", nan = s_->has("NaN"), ftz = s_->has("ftz");
      binary(i, k, k, k,
             [=](Bits a, Bits b) { return ftz ? float_min_max(k, max, nan, flushed(a), flushed(b)) : float_min_max(k, max, nan, a, b); });
      return true;
    }
    if (name == "copysign") {  // the sign of the first on the second
      const Bits sign = Bits{1} << (k.width - 1);
      binary(i, k, k, k, [sign](Bits a, Bits b) { return (b & ~sign) | (a & sign); });
      return true;
    }
    return false;
  }

  void funnel(Instruction& i) {
    const bool left = s_->has("l"), wrap = s_->has("wrap");
    const Kind k{'b', 32};
    ternary(i, k, k, k, k, [=](Bits low, Bits high, Bits n) {
      n = wrap ? n & 31 : std::min<Bits>(n, 32);
      const Bits both = low | high << 32;
      return left ? (n == 32 ? low : (both << n) >> 32) : both >> n;
    });
  }

  void move(Instruction& i) {
    const Kind k = type();
    const std::string &to = s_->operands.at(0), &from = s_->operands.at(1);
    if (to[0] == '{') {
      const std::vector<std::string> parts = list(to);
      std::vector<std::uint32_t> regs;
      for (const std::string& part : parts) regs.push_back(part == "_" ? 0xffffffffu : reg(part));
      const Source a = source(from, k);
      const unsigned width = k.width / static_cast<unsigned>(parts.size());
      i.run = [=](Thread& t) {
        const Bits v = a(t);
        for (std::size_t n = 0; n < regs.size(); ++n) {
          if (regs[n] != 0xffffffffu) put(t, regs[n], {'b', width}, v >> (n * width));
        }
      };
    } else if (from[0] == '{') {
      const std::vector<std::string> parts = list(from);
      const unsigned width = k.width / static_cast<unsigned>(parts.size());
      std::vector<Source> sources;
      for (const std::string& part : parts) sources.push_back(source(part, {'b', width}));
      const std::uint32_t d = reg(to);
      i.run = [=](Thread& t) {
        Bits v = 0;
        for (std::size_t n = 0; n < sources.size(); ++n) v |= sources[n](t) << (n * width);
        put(t, d, k, v);
      };
    } else {
      unary(i, k, k, [](Bits a) { return a; });
    }
  }

  void compare(Instruction& i) {
    const Kind k = type();
    const std::string how = s_->op.at(1);
    const bool unordered = k.is_float() && how.size() == 3 && how[2] == 'u';
    const bool ftz = s_->has("ftz");
    const std::string base = unordered     ? how.substr(0, 2)
                             : how == "lo" ? "lt"
                             : how == "ls" ? "le"
                             : how == "hi" ? "gt"
                             : how == "hs" ? "ge"
                                           : how;
    const auto ordered = [base](auto a, auto b) {
      if (base == "eq") return a == b;
      if (base == "ne") return a != b;
      if (base == "lt") return a < b;
      if (base == "le") return a <= b;
      if (base == "gt") return a > b;
      return a >= b;
    };
    if (s_->op.at(2) == "and" || s_->op.at(2) == "or" || s_->op.at(2) == "xor" || s_->operands.at(0).find('|') != std::string::npos)
      fail("unknown form");
    const Kind p{'p', 1};
    binary(i, p, k, k, [=](Bits a, Bits b) -> Bits {
      if (ftz) a = flushed(a), b = flushed(b);
      if (k.is_float()) {
        const bool nan = is_nan(k, a) || is_nan(k, b);
        if (how == "nan") return nan;
        if (how == "num") return !nan;
        if (nan) return unordered;
        return ordered(as_double(k, a), as_double(k, b));
      }
      return k.is_signed() ? ordered(as_signed(k, a), as_signed(k, b)) : ordered(a, b);
    });
  }

  void select(Instruction& i) {
    const Kind k = type();
    ternary(i, k, k, k, {'p', 1}, [](Bits a, Bits b, Bits p) { return p ? a : b; });
  }

  void convert(Instruction& i) {
    const Kind to = type(1), from = type(0);
    const bool ftz = s_->has("ftz");
    const auto rounded = [op = *s_](double v) {
      if (op.has("rmi") || op.has("rm")) return std::floor(v);
      if (op.has("rpi") || op.has("rp")) return std::ceil(v);
      if (op.has("rni") || op.has("rn")) return std::nearbyint(v);
      return std::trunc(v);
    };
    const bool to_integral = s_->has("rmi") || s_->has("rpi") || s_->has("rni") || s_->has("rzi");
    const bool sat = s_->has("sat");
    if (sat && to.is_float()) fail("unknown form");
    unary(i, to, from, [=](Bits a) -> Bits {
      if (from.is_float() && from.width == 32 && ftz) a = flushed(a);
      if (from.is_float() && to.is_float()) {
        double v = as_double(from, a);
        if (std::isnan(v)) return nan_bits(to);
        if (to_integral) v = rounded(v);
        const Bits r = to.width == 32 ? from_float(static_cast<float>(v)) : from_double(v);
        return ftz && to.width == 32 ? flushed(r) : r;
      }
      if (from.is_float()) return float_to_int(to, from, rounded(as_double(from, a)));
      if (to.is_float()) {
        if (from.is_signed())
          return to.width == 32 ? from_float(static_cast<float>(as_signed(from, a))) : from_double(static_cast<double>(as_signed(from, a)));
        return to.width == 32 ? from_float(static_cast<float>(a)) : from_double(static_cast<double>(a));
      }
      return from.is_signed() ? static_cast<Bits>(as_signed(from, a)) : a;
    });
  }

  // --- memory ---------------------------------------------------------------------------------------------------------

  std::string space() const {
    for (const char* const name : {"param", "global", "shared", "local"}) {
      if (s_->has(name)) return name;
    }
    if (s_->has("shared__cta")) return "shared";
    fail("a generic address");
  }

  void access(Instruction& i) {
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

  void atomic(Instruction& i) {
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

  // --- control --------------------------------------------------------------------------------------------------------

  std::size_t label(const std::string& name) const {
    const auto it = f_.labels.find(name);
    if (it == f_.labels.end()) fail("no label '" + name + "'");
    return it->second;
  }
  void branch(Instruction& i) {
    const std::size_t to = label(s_->operands.at(0));
    i.run = [to](Thread& t) { t.frame().pc = to - 1; };
  }
  void branch_table(Instruction& i) {
    const Source index = source(0, {'u', 32});
    std::vector<std::size_t> to;
    for (const std::string& name : f_.tables.at(s_->operands.at(1))) to.push_back(label(name));
    i.run = [=](Thread& t) {
      const Bits n = index(t);
      if (n >= to.size()) throw Error("brx.idx: index out of range");
      t.frame().pc = to[n] - 1;
    };
  }
  void leave(Instruction& i) {
    const bool exits = s_->op[0] == "exit";
    i.run = [exits](Thread& t) {
      if (t.frames.size() > 1 && !exits) {
        t.frames.pop_back();
      } else {
        t.state = Thread::State::Exited;
      }
    };
  }
  void call(Instruction& i) {
    const std::string callee = s_->operands.at(0);
    const auto it = m_.functions.find(callee);
    if (it == m_.functions.end()) fail("no function '" + callee + "'");
    const Function* const f = &it->second;
    const std::vector<std::string> arguments = list(s_->operands.at(1));
    if (arguments.size() != f->param_offset.size()) fail("wrong number of arguments");
    i.run = [=](Thread& t) {
      Frame frame;
      frame.code = t.block->codes->at(callee).get();
      frame.pc = static_cast<std::size_t>(-1);  // the step after a call moves on in the new frame
      frame.registers.resize(frame.code->registers.size());
      frame.params.resize(f->param_bytes);
      for (std::size_t n = 0; n < arguments.size(); ++n) {
        const Bits v = t.frame().outgoing.at(arguments[n]);
        std::memcpy(&frame.params[f->param_offset[n]], &v, f->param_size[n]);
      }
      t.frames.push_back(std::move(frame));
    };
  }

  // --- meetings -------------------------------------------------------------------------------------------------------

  std::function<std::uint32_t(const Thread&)> mask_of(std::size_t operand) {
    const Source m = source(operand, {'b', 32});
    return [m](const Thread& t) { return static_cast<std::uint32_t>(m(t)); };
  }

  void shuffle(Instruction& i) {
    if (s_->op.at(1) != "sync") fail("a shuffle without a mask");
    const std::string how = s_->op.at(2);
    const Kind k{'b', 32};
    const std::uint32_t d = dest(0);
    const Source a = source(1, k), b = source(2, k), c = source(3, k);
    i.meeting = Instruction::Meeting::Warp;
    i.mask = mask_of(4);
    i.meet = [=](const std::vector<Thread*>& lanes) {
      std::vector<Bits> in(32), out(32);
      for (unsigned l = 0; l < 32; ++l) {
        if (lanes[l] != nullptr) in[l] = a(*lanes[l]);
      }
      for (unsigned l = 0; l < 32; ++l) {
        if (lanes[l] == nullptr) continue;
        const unsigned distance = b(*lanes[l]) & 31, clamp = c(*lanes[l]) & 31, segment = (c(*lanes[l]) >> 8) & 31;
        const unsigned last = (l & segment) | (clamp & ~segment & 31), base = l & segment;
        int j = 0;
        bool in_range = false;
        if (how == "up") j = static_cast<int>(l) - static_cast<int>(distance), in_range = j >= static_cast<int>(last);
        if (how == "down") j = static_cast<int>(l + distance), in_range = j <= static_cast<int>(last);
        if (how == "bfly") j = static_cast<int>(l ^ distance), in_range = j <= static_cast<int>(last);
        if (how == "idx") j = static_cast<int>(base | (distance & ~segment & 31)), in_range = j <= static_cast<int>(last);
        if (!in_range) j = static_cast<int>(l);
        if (lanes[static_cast<std::size_t>(j)] == nullptr)
          throw Error("shfl: lane " + std::to_string(l) + " reads lane " + std::to_string(j) + ", which is not there");
        out[l] = in[static_cast<std::size_t>(j)];
      }
      for (unsigned l = 0; l < 32; ++l) {
        if (lanes[l] != nullptr) put(*lanes[l], d, k, out[l]);
      }
    };
  }

  void vote(Instruction& i) {
    if (s_->op.at(1) != "sync") fail("a vote without a mask");
    const std::string how = s_->op.at(2);
    const std::uint32_t d = dest(0);
    const Source a = source(1, {'p', 1});
    i.meeting = Instruction::Meeting::Warp;
    i.mask = mask_of(2);
    i.meet = [=](const std::vector<Thread*>& lanes) {
      std::uint32_t yes = 0, all = 0;
      for (unsigned l = 0; l < 32; ++l) {
        if (lanes[l] == nullptr) continue;
        all |= 1u << l;
        if (a(*lanes[l]) != 0) yes |= 1u << l;
      }
      const Bits result = how == "ballot" ? yes : how == "any" ? yes != 0 : yes == all;
      for (Thread* const t : lanes) {
        if (t != nullptr) put(*t, d, {'b', 32}, result);
      }
    };
  }

  void redux(Instruction& i) {
    const Kind k = type();
    const std::string how = s_->op.at(2);
    const std::uint32_t d = dest(0);
    const Source a = source(1, k);
    i.meeting = Instruction::Meeting::Warp;
    i.mask = mask_of(2);
    i.meet = [=](const std::vector<Thread*>& lanes) {
      Bits r = 0;
      bool first = true;
      for (Thread* const t : lanes) {
        if (t == nullptr) continue;
        const Bits v = a(*t);
        const bool less = k.is_signed() ? as_signed(k, v) < as_signed(k, r) : v < r;
        if (first) r = v;
        else if (how == "add") r += v;
        else if (how == "and") r &= v;
        else if (how == "or") r |= v;
        else if (how == "xor") r ^= v;
        else r = less == (how == "min") ? v : r;
        first = false;
      }
      for (Thread* const t : lanes) {
        if (t != nullptr) put(*t, d, k, r);
      }
    };
  }

  void barrier(Instruction& i) {
    if (s_->op.at(1) == "warp") {
      i.meeting = Instruction::Meeting::Warp;
      i.mask = mask_of(0);
      i.meet = [](const std::vector<Thread*>&) {};
      return;
    }
    i.meeting = Instruction::Meeting::Barrier;
    i.aligned = s_->op[0] == "bar" || s_->has("aligned");
    if (!s_->has("red")) {
      if (s_->operands.size() != 1) fail("a barrier with a count");
      i.meet = [](const std::vector<Thread*>&) {};
      return;
    }
    const bool popc = s_->has("popc"), any = s_->has("or");
    const std::uint32_t d = dest(0);
    const Source p = source(2, {'p', 1});
    i.meet = [=](const std::vector<Thread*>& threads) {
      Bits n = 0;
      for (Thread* const t : threads) n += p(*t);
      const Bits r = popc ? n : any ? n != 0 : n == threads.size();
      for (Thread* const t : threads) put(*t, d, {'b', 32}, r);
    };
  }

  const Module& m_;
  const Function& f_;
  std::unique_ptr<Code> code_;
  const Statement* s_ = nullptr;
};

}  // namespace

std::unique_ptr<Code> decode(const Module& module, const Function& function) { return Decoder(module, function).run(); }

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
