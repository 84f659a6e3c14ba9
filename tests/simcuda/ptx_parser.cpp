// The module's level of PTX text: what is declared.
#include "simcuda/ptx_parser.h"

#include <algorithm>
#include <charconv>

namespace kiln::simcuda::ptx {
namespace {

constexpr std::uint64_t kTooLarge = std::uint64_t{1} << 62;  // for any space

}  // namespace

bool Parser::take(char c) {
  if (!punct(c)) return false;
  advance();
  return true;
}

void Parser::expect(char c) {
  if (!take(c)) syntax_error();
}

std::string_view Parser::identifier() {
  if (t_.kind != Token::Kind::Identifier) syntax_error();
  const std::string_view name = t_.text;
  advance();
  return name;
}

void Parser::syntax_error() const {
  std::string near(t_.text);
  if (t_.kind == Token::Kind::Dotted) near = "." + near;
  if (t_.kind == Token::Kind::End) near = "EOF";
  throw SyntaxError{t_.line, "Parsing error near '" + near + "': syntax error"};
}

std::uint64_t Parser::unsigned_number() {
  if (t_.kind != Token::Kind::Int) syntax_error();
  const std::uint64_t v = t_.value;
  advance();
  return v;
}

std::uint32_t Parser::number32() {
  const unsigned line = t_.line;
  const std::uint64_t v = unsigned_number();
  if (v > ~std::uint32_t{0}) error(line, "Constant overflow");
  return static_cast<std::uint32_t>(v);
}

void Parser::deeper() {
  constexpr unsigned kDeepest = 1000;
  if (++depth_ <= kDeepest) return;
  --depth_;
  throw SyntaxError{t_.line, "Parsing error near '" + std::string(t_.text) + "': memory exhausted"};
}

void Parser::module() {
  if (!dotted("version")) { throw SyntaxError{t_.line, "Missing .version directive at start of file '<input>'"}; }
  version();
  if (!dotted("target")) throw SyntaxError{t_.line, "Missing .target directive at start of file '<input>'"};
  target();
  while (t_.kind != Token::Kind::End) directive();
}

void Parser::version() {
  advance();
  // "9.0" reads as a decimal number.
  if (t_.kind != Token::Kind::Float) syntax_error();
  const std::string_view text = t_.text;
  const std::size_t dot = text.find('.');
  unsigned major = 0, minor = 0;
  const auto read = [&](std::string_view part, unsigned& to) {
    const auto r = std::from_chars(part.data(), part.data() + part.size(), to);
    if (r.ec != std::errc() || r.ptr != part.data() + part.size() || to > 999) syntax_error();
  };
  read(text.substr(0, dot), major);
  if (dot == std::string_view::npos) syntax_error();
  read(text.substr(dot + 1), minor);
  m_.version = major * 10 + minor;
  advance();
}

void Parser::target() {
  advance();
  for (bool more = true; more; more = take(',')) {
    const unsigned line = t_.line;
    const std::string_view name = identifier();
    if (name.starts_with("sm_")) {
      std::size_t end = 3;
      while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
      const bool suffixed = end + 1 == name.size() && (name[end] == 'a' || name[end] == 'f');
      if (end == 3 || end > 6 || (end != name.size() && !suffixed)) {
        error(line, "Unrecognized target '" + std::string(name) + "'");
      } else {
        m_.arch = static_cast<unsigned>(std::stoul(std::string(name.substr(3, end - 3))));
        m_.arch_suffix = suffixed ? name[end] : '\0';
      }
    } else if (name == "debug") {
      m_.debug = true;
    } else if (name != "texmode_unified" && name != "texmode_independent") {
      error(line, "Unrecognized target '" + std::string(name) + "'");
    }
  }
}

void Parser::directive() {
  if (t_.kind == Token::Kind::Punct && punct(';')) {
    advance();
    return;
  }
  if (t_.kind != Token::Kind::Dotted) syntax_error();
  const std::string_view name = t_.text;
  if (name == "address_size") {
    advance();
    const unsigned line = t_.line;
    if (unsigned_number() != 64) error(line, "Only .address_size 64 is supported");
  } else if (name == "file") {
    file();
  } else if (name == "section") {
    section();
  } else if (name == "alias") {
    alias();
  } else if (name == "pragma") {
    while (t_.kind != Token::Kind::End && !punct(';')) advance();
    expect(';');
  } else if (name == "extern" || name == "visible" || name == "weak" || name == "common") {
    external_ = name == "extern";
    visible_ = name == "visible" || name == "weak";
    weak_ = name == "weak" || name == "common";
    advance();
    if (t_.kind != Token::Kind::Dotted) syntax_error();
    return;  // kept for the declaration that follows
  } else if (name == "entry" || name == "func") {
    advance();
    function(name == "entry");
  } else if (name == "global" || name == "const" || name == "shared" || name == "tex" || name == "local") {
    advance();
    variables(name == "global" ? Space::Global : name == "const" ? Space::Const : name == "shared" ? Space::Shared : Space::Global);
  } else {
    syntax_error();
  }
  external_ = visible_ = weak_ = false;
}

void Parser::file() {
  advance();
  const std::uint32_t index = number32();
  if (t_.kind != Token::Kind::String) syntax_error();
  m_.files[index] = std::string(t_.text);
  advance();
  while (take(',')) unsigned_number();
}

void Parser::section() {
  while (t_.kind != Token::Kind::End && !punct('{')) advance();
  if (t_.kind == Token::Kind::End) syntax_error();
  lexer_.skip_block();
  advance();
}

void Parser::alias() {
  advance();
  const unsigned line = t_.line;
  const std::string_view name = identifier();
  expect(',');
  const std::string_view target = identifier();
  expect(';');
  const auto it = m_.function_by_name.find(target);
  if (it == m_.function_by_name.end()) {
    error(line, "Unknown symbol '" + std::string(target) + "'");
    return;
  }
  m_.function_by_name[std::string(name)] = it->second;
}

std::array<std::uint32_t, 3> Parser::three(std::string_view directive) {
  std::array<std::uint32_t, 3> v{1, 1, 1};
  std::size_t i = 0;
  for (bool more = true; more && i < 3; more = take(',')) {
    v[i] = number32();
    if (v[i++] == 0) error(last_line_, "Positive non-zero value expected for " + std::string(directive));
  }
  return v;
}

void Parser::function_attributes(FunctionDecl& f) {
  while (t_.kind == Token::Kind::Dotted) {
    const std::string_view name = t_.text;
    const unsigned line = t_.line;
    advance();
    if (name == "reqntid") {
      f.reqntid = three(name);
    } else if (name == "maxntid") {
      f.maxntid = three(name);
    } else if (name == "reqnctapercluster") {
      f.reqnctapercluster = three(name);
    } else if (name == "minnctapersm") {
      f.minnctapersm = number32();
    } else if (name == "maxnctapersm" || name == "maxclusterrank") {
      unsigned_number();
    } else if (name == "maxnreg") {
      f.maxnreg = number32();
    } else if (name == "noreturn") {
      f.noreturn = true;
    } else if (name == "abi_preserve" || name == "abi_preserve_control") {
      unsigned_number();
    } else if (name == "pragma") {
      while (t_.kind != Token::Kind::End && !punct(';')) advance();
      expect(';');
    } else if (name != "explicitcluster" && name != "blocksareclusters") {
      throw SyntaxError{line, "Parsing error near '." + std::string(name) + "': syntax error"};
    }
  }
  if (f.reqntid && f.maxntid) error(f.line, "Entry function '" + f.name + "' has both .reqntid and .maxntid");
}

std::vector<std::unique_ptr<Variable>> Parser::params() {
  std::vector<std::unique_ptr<Variable>> list;
  expect('(');
  if (take(')')) return list;
  std::uint64_t offset = 0;
  for (bool more = true; more; more = take(',')) {
    if (dotted("reg")) {
      advance();  // a parameter in a register: a .param of its type does the same
    } else if (dotted("param")) {
      advance();
    } else {
      syntax_error();
    }
    auto v = declarator(Space::Param, true);
    offset = (offset + v->align - 1) / v->align * v->align;
    v->offset = offset;
    if (__builtin_add_overflow(offset, v->bytes, &offset)) offset = kTooLarge;
    list.push_back(std::move(v));
  }
  expect(')');
  return list;
}

void Parser::entry_params(const FunctionDecl& f) {
  std::uint64_t bytes = 0;
  for (const auto& p : f.params) {
    bytes = std::max(bytes, p->offset + p->bytes);
    if (p->bytes == 0) error(f.line, "Parameter to entry function cannot be an incomplete array.");
  }
  const std::uint64_t most = m_.version >= 81 ? 0x7ffc : 0x1100;
  if (bytes <= most) return;
  const auto hex = [](std::uint64_t v) {
    std::array<char, 16> digits{};
    return "0x" + std::string(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), v, 16).ptr);
  };
  error(f.line, "Entry function '" + f.name + "' uses too much parameter space (" + hex(bytes) + " bytes, " + hex(most) + " max).");
}

void Parser::function(bool entry) {
  auto f = std::make_unique<FunctionDecl>();
  f->entry = entry;
  f->external = external_;
  f->visible = visible_;
  while (dotted("attribute")) {
    advance();
    while (t_.kind != Token::Kind::End && !punct(')')) advance();
    expect(')');
  }
  if (!entry && punct('(')) f->results = params();
  f->line = t_.line;
  f->name = std::string(identifier());
  if (punct('(')) f->params = params();
  function_attributes(*f);
  if (entry) entry_params(*f);

  const auto known = m_.function_by_name.find(f->name);
  FunctionDecl* target = nullptr;
  if (known != m_.function_by_name.end()) {
    target = known->second;
    const auto sizes = [](const FunctionDecl& g) {
      std::vector<std::uint64_t> v;
      for (const auto& p : g.results) v.push_back(p->bytes);
      v.push_back(~std::uint64_t{0});
      for (const auto& p : g.params) v.push_back(p->bytes);
      return v;
    };
    if (target->entry != f->entry || sizes(*target) != sizes(*f)) {
      error(f->line, "Inconsistent redefinition of function '" + f->name + "'");
    }
    if (punct('{') && target->defined) error(f->line, "Duplicate definition of function '" + f->name + "'");
    if (punct('{') && !target->defined) {
      f->external = f->external || false;
      *target = std::move(*f);
    }
  } else {
    if (m_.variable_by_name.contains(f->name)) error(f->line, "Duplicate definition of symbol '" + f->name + "'");
    target = f.get();
    m_.functions.push_back(std::move(f));
    m_.function_by_name.emplace(target->name, target);
  }
  if (take(';')) return;
  if (!punct('{')) syntax_error();
  if (target->defined) {  // reported above; its text is skipped
    lexer_.skip_block();
    advance();
    return;
  }
  target->defined = true;
  target->external = false;
  body(*target);
}

Parsed parse(std::string text) {
  Parsed p;
  p.module = std::make_unique<ModuleDecl>();
  p.module->text = std::move(text);
  try {
    Parser(*p.module, p.errors).module();
  } catch (const SyntaxError& e) { p.errors.push_back({e.line, e.text, true}); }
  return p;
}

}  // namespace kiln::simcuda::ptx
