// Arithmetic, comparisons, conversions and moves.
#include <algorithm>

#include "support/ptx_decoder.h"

namespace kiln::test::ptx {

namespace {

template <class F, class D>
std::function<Bits(Bits, Bits, Bits)> float_operation(bool ftz, Kind k, F f, D d) {
  return [=](Bits a, Bits b, Bits c) {
    if (ftz) a = flushed(a), b = flushed(b), c = flushed(c);
    const Bits r = floats(k, f, d, a, b, c);
    return ftz ? flushed(r) : r;
  };
}

}  // namespace

void Decoder::arithmetic(Instruction& i) {
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
void Decoder::carrying(Instruction& i, Kind k) {
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

Bits Decoder::reversed(Bits v) {
  Bits r = 0;
  for (int n = 0; n < 64; ++n) r |= ((v >> n) & 1) << (63 - n);
  return r;
}

bool Decoder::float_arithmetic(Instruction& i, const std::string& name, Kind k) {
  const auto three = [&](auto f) { return float_operation(s_->has("ftz"), k, f, f); };
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

void Decoder::funnel(Instruction& i) {
  const bool left = s_->has("l"), wrap = s_->has("wrap");
  const Kind k{'b', 32};
  ternary(i, k, k, k, k, [=](Bits low, Bits high, Bits n) {
    n = wrap ? n & 31 : std::min<Bits>(n, 32);
    const Bits both = low | high << 32;
    return left ? (n == 32 ? low : (both << n) >> 32) : both >> n;
  });
}

void Decoder::move(Instruction& i) {
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

void Decoder::compare(Instruction& i) {
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

void Decoder::select(Instruction& i) {
  const Kind k = type();
  ternary(i, k, k, k, {'p', 1}, [](Bits a, Bits b, Bits p) { return p ? a : b; });
}

void Decoder::convert(Instruction& i) {
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

}  // namespace kiln::test::ptx
