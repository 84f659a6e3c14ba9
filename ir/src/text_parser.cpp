#include "text_parser.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kiln/ir/decimal.h"
#include "kiln/ir/floats.h"
#include "kiln/ir/text.h"
#include "text_names.h"

namespace kiln::ir::text {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_hex_literal(std::string_view s) { return s.size() > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'); }

// Decimal or 0x; nothing when it is not a number or has more than 64 bits.
bool read_unsigned(std::string_view s, std::uint64_t& v) {
  const bool hex = is_hex_literal(s);
  if (hex) s.remove_prefix(2);
  const auto r = std::from_chars(s.data(), s.data() + s.size(), v, hex ? 16 : 10);
  return r.ec == std::errc{} && r.ptr == s.data() + s.size();
}

template <class T>
bool read_float(std::string_view s, T& v) {
  const auto r = std::from_chars(s.data(), s.data() + s.size(), v);
  if (r.ptr != s.data() + s.size()) return false;
  if (r.ec != std::errc::result_out_of_range) return r.ec == std::errc{};
  // Too large, which is refused, or too small, which rounds.
  const std::string text(s);
  if constexpr (std::is_same_v<T, float>) v = to_f32(text);
  else v = to_f64(text);
  return !std::isinf(v);
}

}  // namespace

// --- tokens -----------------------------------------------------------------------------------------------------------

void Parser::fail(const Token& at, const std::string& message) const {
  throw IrError({{in_kernel_ ? k_.name : "", "line " + std::to_string(at.line) + ", column " + std::to_string(at.column), message}});
}

void Parser::expected(const std::string& what) const {
  if (token_.kind == Kind::Bad) fail(token_, "expected " + what + ", found " + describe(token_) + ": " + std::string(token_.problem));
  fail(token_, "expected " + what + ", found " + (token_.first_on_line && token_.kind != Kind::End ? "the end of the line before " : "") +
                   describe(token_));
}

void Parser::advance() { token_ = lexer_.next(); }

bool Parser::here(std::string_view word) const {
  return !token_.first_on_line && (token_.kind == Kind::Word || token_.kind == Kind::Punct) && token_.text == word;
}

bool Parser::accept(std::string_view word) {
  if (!here(word)) return false;
  advance();
  return true;
}

void Parser::expect(std::string_view word) {
  if (!accept(word)) expected("'" + std::string(word) + "'");
}

Token Parser::take(Kind kind, const std::string& what) {
  if (token_.first_on_line || token_.kind != kind) expected(what);
  const Token t = token_;
  advance();
  return t;
}

void Parser::end_of_statement() {
  if (!token_.first_on_line && token_.kind != Kind::End && !at_block_end()) expected("the end of the line");
}

std::string Parser::string() { return decode(take(Kind::String, "a string in double quotes")); }

std::string Parser::decode(const Token& token) const {
  std::string out;
  const std::string_view s = token.text.substr(1, token.text.size() - 2);
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\') {
      out += s[i];
      continue;
    }
    const char c = i + 1 < s.size() ? s[++i] : '\0';
    const int high = c == 'x' && i + 2 < s.size() ? hex_digit(s[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(s[i + 2]) : -1;
    if (c == 'n') {
      out += '\n';
    } else if (c == 't') {
      out += '\t';
    } else if (c == '"' || c == '\\') {
      out += c;
    } else if (low >= 0) {
      out += static_cast<char>(16 * high + low);
      i += 2;
    } else {
      fail(token, "a backslash in a string starts one of \\\" \\\\ \\n \\t \\xHH");
    }
  }
  return out;
}

std::uint64_t Parser::unsigned_number(std::uint64_t max, const std::string& what) {
  const Token t = take(Kind::Number, what);
  std::uint64_t v = 0;
  if (!read_unsigned(t.text, v)) fail(t, "expected " + what + ", found " + describe(t));
  if (v > max) fail(t, what + " is at most " + std::to_string(max) + ", found " + describe(t));
  return v;
}

// A constant: bits in hexadecimal for every type; true and false; decimal integers in the range of the type; decimal floats, inf, nan.
std::uint64_t Parser::literal(Type t) {
  if (token_.first_on_line || (token_.kind != Kind::Number && token_.kind != Kind::Word))
    expected("a constant of type " + std::string(name(t)));
  const Token at = token_;
  advance();
  const std::string_view s = at.text;
  std::uint64_t bits = 0;
  if (is_hex_literal(s)) {
    if (!read_unsigned(s, bits) || (bits & ~value_mask(t)) != 0)
      fail(at, describe(at) + " does not fit in the " + std::to_string(bit_width(t)) + " bits of " + std::string(name(t)));
    return bits;
  }
  if (is_bool(t)) {
    if (s == "true" || s == "false") return s == "true";
    fail(at, "expected true or false, found " + describe(at));
  }
  if (is_integer(t)) {
    const bool negative = s[0] == '-';
    if (!read_unsigned(s.substr(negative ? 1 : 0), bits))
      fail(at, "expected an integer of type " + std::string(name(t)) + ", found " + describe(at));
    const std::uint64_t top = value_mask(t) >> (is_signed(t) ? 1 : 0);
    const std::uint64_t limit = negative ? (is_signed(t) ? top + 1 : 0) : top;
    if (bits > limit) fail(at, describe(at) + " is out of the range of " + std::string(name(t)));
    return (negative ? 0 - bits : bits) & value_mask(t);
  }
  const bool negative = s[0] == '-';
  const std::string_view magnitude = s.substr(negative ? 1 : 0);
  if (t == Type::F32) {
    float v = 0;
    if (magnitude == "nan") return 0x7fc00000u | (negative ? 0x80000000u : 0u);
    if (read_float(s, v)) return std::bit_cast<std::uint32_t>(v);
  } else if (t == Type::F64) {
    double v = 0;
    if (magnitude == "nan") return 0x7ff8000000000000u | (negative ? std::uint64_t{1} << 63 : 0u);
    if (read_float(s, v)) return std::bit_cast<std::uint64_t>(v);
  } else {
    const NarrowFormat f = narrow_format(t);
    const std::uint64_t sign = negative ? f.sign() : 0;
    double v = 0;
    if (magnitude == "nan") return f.nan | sign;
    if (magnitude == "inf" && f.infinity != 0) return f.infinity | sign;
    if (magnitude != "inf" && read_float(s, v)) {
      if (const auto rounded = to_narrow(t, std::string(s))) return *rounded;
    }
  }
  fail(at, "expected a number that " + std::string(name(t)) + " can hold, found " + describe(at));
}

Type Parser::type() {
  const Token t = take(Kind::Word, "a type");
  const std::optional<Type> parsed = parse_type(t.text);
  if (!parsed) fail(t, "there is no type " + describe(t) + "; the types are bool, i8 ... u64, f16, bf16, f32, f64, e4m3, e5m2");
  return *parsed;
}

Loc Parser::file_and_line() {
  const Token at = token_;
  const std::uint64_t file = unsigned_number(kNone - 1, "a file's number");
  if (file >= k_.files.size())
    fail(at, "there is no file " + std::to_string(file) + "; " + std::to_string(k_.files.size()) + " are declared before this line");
  expect(":");
  return {static_cast<std::uint32_t>(file), static_cast<std::uint32_t>(unsigned_number(kNone, "a line number"))};
}

Loc Parser::place(const Token& statement) { return accept("@") ? file_and_line() : own_place(statement); }

// A line of this text, whose file gets its number when all others are declared.
Loc Parser::own_place(const Token& statement) const { return own_.empty() ? Loc{} : Loc{kNone, statement.line}; }

void Parser::name_own_places() {
  const auto file = static_cast<std::uint32_t>(k_.files.size());
  bool any = false;
  const auto name = [&](Loc& loc) {
    if (loc.file != kNone || loc.line == 0) return;
    loc.file = file;
    any = true;
  };
  name(k_.loc);
  for (Mem& mem : k_.mems) name(mem.loc);
  for (Op& op : k_.ops) name(op.loc);
  if (any) k_.files.emplace_back(own_);
}

// --- declarations -------------------------------------------------------------------------------------------------------

std::vector<Kernel> Parser::file() {
  if (token_.kind != Kind::Word || token_.text != "kir") expected("the header 'kir 1'");
  advance();
  const Token version = take(Kind::Number, "the version 1");
  if (version.text != "1") fail(version, "this text is of version " + describe(version) + "; version 1 is read here");
  end_of_statement();
  std::vector<Kernel> kernels;
  while (token_.kind != Kind::End) {
    if (token_.kind != Kind::Word || token_.text != "kernel" || !token_.first_on_line) expected("'kernel'");
    const Token at = token_;
    kernels.push_back(kernel());
    for (std::size_t i = 0; i + 1 < kernels.size(); ++i)
      if (kernels[i].name == kernels.back().name)
        fail(at, "there is a kernel '" + kernels.back().name + "' in this text already; names are unique");
  }
  return kernels;
}

Kernel Parser::kernel() {
  k_ = Kernel{};
  labels_.clear();
  values_.clear();
  advance();
  const Token name_token = token_;
  k_.loc = own_place(name_token);
  k_.name = string();
  if (k_.name.empty()) fail(name_token, "a kernel needs a name");
  in_kernel_ = true;
  expect("{");
  for (;;) {
    const Token word = token_;
    if (word.kind != Kind::Word) expected("a declaration or 'body'");
    advance();
    if (word.text == "body") {
      expect("{");
      block(0, 1);
      break;
    }
    declaration(word);
    end_of_statement();
  }
  if (!at_block_end()) expected("'}' after the body");
  advance();
  in_kernel_ = false;
  name_own_places();
  compact(k_);
  return std::move(k_);
}

void Parser::declaration(const Token& word) {
  const std::string_view w = word.text;
  if (w == "file") {
    k_.files.push_back(string());
  } else if (w == "loc") {
    if (!accept("@")) expected("'@FILE:LINE'");
    k_.loc = file_and_line();
  } else if (w == "options") {
    while (!token_.first_on_line && token_.kind == Kind::Word) {
      const Token option = token_;
      advance();
      bool* flag = option.text == "checked"       ? &k_.options.checked
                   : option.text == "contraction" ? &k_.options.contraction
                   : option.text == "fast_math"   ? &k_.options.fast_math
                                                  : nullptr;
      if (flag == nullptr) fail(option, "there is no option " + describe(option) + "; the options are checked, contraction, fast_math");
      expect("=");
      *flag = literal(Type::Bool) != 0;
    }
  } else if (w == "block_size") {
    for (int axis = 0; axis < 3; ++axis) {
      if (axis > 0) expect(",");
      k_.block_size[axis] = static_cast<std::uint32_t>(unsigned_number(kNone, "a block size"));
    }
    if (k_.block_size[0] == 0 && k_.block_size[1] == 0 && k_.block_size[2] == 0)
      fail(word, "a block has threads, so block_size is not 0; leave it out where it is not declared");
  } else if (w == "max_threads") {
    k_.max_threads = static_cast<std::uint32_t>(unsigned_number(kNone, "a number of threads"));
    if (k_.max_threads == 0) fail(word, "a block has threads, so max_threads is not 0; leave it out where it is not declared");
  } else if (w == "in_place") {
    const std::uint32_t first = param_label();
    expect(",");
    k_.in_place.emplace_back(first, param_label());
  } else if (w == "buffer" || w == "global" || w == "shared" || w == "local") {
    memory(word);
  } else if (w == "scalar") {
    Param p;
    p.name = declare({LabelKind::Param, kNone, static_cast<std::uint32_t>(k_.params.size()), kNone});
    expect(":");
    p.type = type();
    k_.params.push_back(std::move(p));
  } else if (w == "param") {
    Param p;
    p.is_buffer = true;
    p.name = declare({LabelKind::Param, kNone, static_cast<std::uint32_t>(k_.params.size()), kNone});
    expect("=");
    p.mem = mem_label();
    k_.params.push_back(std::move(p));
  } else if (w == "slot") {
    Slot s;
    s.name = declare({LabelKind::Slot, kNone, kNone, static_cast<std::uint32_t>(k_.slots.size())});
    expect(":");
    s.type = type();
    k_.slots.push_back(std::move(s));
  } else {
    fail(
        word,
        "there is no declaration " + describe(word) +
            "; expected file, loc, options, block_size, max_threads, in_place, buffer, scalar, shared, local, slot, global, param or body");
  }
}

// LABEL ["name"]
std::string Parser::declare(Label what) {
  const Token t = take(Kind::Word, "a name");
  if (!labels_.emplace(t.text, what).second) fail(t, describe(t) + " is declared twice");
  if (!token_.first_on_line && token_.kind == Kind::String) return string();
  return std::string(t.text);
}

void Parser::memory(const Token& word) {
  Mem m;
  const bool is_param = word.text == "buffer";
  m.space = word.text == "shared" ? Space::Shared : word.text == "local" ? Space::Local : Space::Global;
  const auto number = static_cast<std::uint32_t>(k_.mems.size());
  const auto param = static_cast<std::uint32_t>(k_.params.size());
  m.name = declare({is_param ? LabelKind::Buffer : LabelKind::Mem, number, is_param ? param : kNone, kNone});
  expect(":");
  m.element = type();
  extents(m);
  if (m.space == Space::Global) {
    const Token t = take(Kind::Word, "in, out or inout");
    if (t.text != "in" && t.text != "out" && t.text != "inout") fail(t, "expected in, out or inout, found " + describe(t));
    m.access = t.text == "in" ? Access::In : t.text == "out" ? Access::Out : Access::InOut;
    m.strided = accept("strided");
  }
  m.loc = place(word);
  if (is_param) k_.params.push_back({.name = m.name, .is_buffer = true, .mem = number});
  k_.mems.push_back(std::move(m));
}

// [*, *] of a global memory, [16, 17] or [dynamic] of the others.
void Parser::extents(Mem& m) {
  expect("[");
  m.rank = 0;
  do {
    if (m.rank == kMaxRank) fail(token_, "a memory has at most 4 dimensions");
    if (m.space == Space::Global) {
      expect("*");
    } else if (m.space == Space::Shared && m.rank == 0 && accept("dynamic")) {
      m.dynamic = true;
      m.rank = 1;
      break;
    } else {
      m.extents[m.rank] = unsigned_number(std::numeric_limits<std::uint64_t>::max(), "an extent");
    }
    ++m.rank;
  } while (accept(","));
  expect("]");
}

// --- references to declarations -----------------------------------------------------------------------------------------

const Parser::Label& Parser::label(LabelKind wanted, const std::string& what) {
  const Token t = take(Kind::Word, "the name of " + what);
  const auto it = labels_.find(t.text);
  if (it == labels_.end()) fail(t, describe(t) + " is not declared; expected the name of " + what);
  const LabelKind kind = it->second.kind;
  const bool fits = kind == wanted || (kind == LabelKind::Buffer && (wanted == LabelKind::Mem || wanted == LabelKind::Param));
  if (!fits) fail(t, describe(t) + " is not " + what);
  return it->second;
}

std::uint32_t Parser::mem_label() { return label(LabelKind::Mem, "a buffer, shared or local memory").mem; }
std::uint32_t Parser::param_label() { return label(LabelKind::Param, "a parameter").param; }
std::uint32_t Parser::slot_label() { return label(LabelKind::Slot, "a slot").slot; }

}  // namespace kiln::ir::text

namespace kiln::ir {

std::vector<Kernel> parse(std::string_view text, std::string_view own_name) {
  if (text.size() > text::kMaxBytes)
    throw IrError({{"", "", "the text has " + std::to_string(text.size()) + " bytes; at most 64 MiB are read"}});
  return text::Parser(text, own_name).file();
}

Kernel parse_kernel(std::string_view text) {
  std::vector<Kernel> kernels = parse(text);
  if (kernels.size() != 1) throw IrError({{"", "", "expected one kernel in the text, found " + std::to_string(kernels.size())}});
  return std::move(kernels.front());
}

}  // namespace kiln::ir
