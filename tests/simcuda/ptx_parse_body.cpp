// Bodies of functions: scopes, registers, labels, instructions and their operands.
#include <bit>
#include <charconv>

#include "simcuda/ptx_parser.h"
#include "simcuda/ptx_special.h"

namespace kiln::simcuda::ptx {
namespace {

constexpr std::size_t kDeepestScope = 1000;  // every name is looked for in all of them

}  // namespace

void Parser::body(FunctionDecl& f) {
  expect('{');
  f_ = &f;
  loc_ = 0;
  scopes_.clear();
  scopes_.push_back({});
  for (const auto* list : {&f.results, &f.params})
    for (const auto& p : *list) {
      if (!p->name.empty() && !scopes_.back().variables.emplace(p->name, p.get()).second) {
        error(p->line, "Duplicate definition of variable '" + p->name + "'");
      }
    }
  while (!scopes_.empty()) {
    if (t_.kind == Token::Kind::End) syntax_error();
    if (take('{')) {
      if (scopes_.size() > kDeepestScope) throw SyntaxError{t_.line, "Parsing error near '{': memory exhausted"};
      Scope s;
      s.id = static_cast<std::uint32_t>(f.scope_parent.size());
      f.scope_parent.push_back(scopes_.back().id);
      scopes_.push_back(std::move(s));
    } else if (punct('}')) {
      scopes_.pop_back();
      if (scopes_.empty()) f_ = nullptr;
      advance();
    } else {
      statement();
    }
  }
}

void Parser::statement() {
  const Level level(*this);
  if (t_.kind == Token::Kind::Dotted) {
    const std::string_view name = t_.text;
    if (name == "reg") {
      advance();
      registers();
    } else if (name == "loc") {
      loc();
    } else if (name == "local" || name == "shared" || name == "param" || name == "global" || name == "const") {
      advance();
      variables(name == "local"    ? Space::Local
                : name == "shared" ? Space::Shared
                : name == "param"  ? Space::Param
                : name == "global" ? Space::Global
                                   : Space::Const);
    } else if (name == "pragma") {
      while (t_.kind != Token::Kind::End && !punct(';')) advance();
      expect(';');
    } else if (name == "file") {
      file();
    } else if (name == "extern") {
      advance();
      external_ = true;
      statement();
      external_ = false;
    } else {
      syntax_error();
    }
    return;
  }
  if (t_.kind == Token::Kind::Identifier || punct('@')) {
    instruction();
    return;
  }
  syntax_error();
}

void Parser::registers() {
  Type type = Type::None;
  unsigned vector = 1;
  while (t_.kind == Token::Kind::Dotted) {
    if (const auto found = type_by_name(t_.text)) {
      if (*found == Type::BF16 || *found == Type::TF32 || (is_packed(*found) && *found != Type::F16x2)) syntax_error();
      type = *found;
    } else if (t_.text == "v2" || t_.text == "v4") {
      vector = t_.text == "v2" ? 2 : 4;
    } else {
      error(t_.line, "Unknown modifier '." + std::string(t_.text) + "'");
    }
    advance();
  }
  if (type == Type::None) error(t_.line, "Missing type of register");
  if (vector != 1) error(t_.line, "Vector registers are not known to the simulated driver");
  do {
    const unsigned line = t_.line;
    const std::string_view name = identifier();
    Scope& scope = scopes_.back();
    if (take('<')) {
      const std::uint32_t count = number32();
      expect('>');
      if (!scope.ranges.emplace(name, Range{type, count}).second) {
        error(line, "Duplicate definition of variable '" + std::string(name) + "0'");
      }
    } else {
      bool duplicate = scope.registers.contains(name);
      std::size_t stem = name.size();
      while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9') --stem;
      const auto range = scope.ranges.find(name.substr(0, stem));
      if (range != scope.ranges.end() && stem < name.size()) {
        std::uint32_t number = 0;
        std::from_chars(name.data() + stem, name.data() + name.size(), number);
        duplicate = duplicate || number < range->second.count;
      }
      if (duplicate) error(line, "Duplicate definition of variable '" + std::string(name) + "'");
      scope.registers.emplace(name, static_cast<std::uint32_t>(f_->registers.size()));
      f_->registers.push_back({name, type});
    }
  } while (take(','));
  expect(';');
}

void Parser::loc() {
  advance();
  Loc l;
  l.file = number32();
  l.line = number32();
  l.column = number32();
  // ", function_name label[+n], inlined_at file line column": the innermost place is what is kept.
  while (take(',')) {
    const std::string_view what = identifier();
    if (what == "function_name") {
      identifier();
      if (take('+')) unsigned_number();
    } else if (what == "inlined_at") {
      for (int i = 0; i < 3; ++i) unsigned_number();
    } else {
      syntax_error();
    }
  }
  loc_ = static_cast<std::uint32_t>(f_->locs.size());
  f_->locs.push_back(l);
}

void Parser::branch_targets(std::string_view label) {
  advance();
  std::vector<std::string_view> names;
  do names.push_back(identifier());
  while (take(','));
  expect(';');
  f_->tables[{scopes_.back().id, label}] = {static_cast<std::uint32_t>(f_->code.size()), std::move(names)};
}

void Parser::call_prototype(std::string_view label) {
  advance();
  Prototype p;
  const auto list = [&](std::vector<Variable>& out) {
    for (auto& v : params()) out.push_back(std::move(*v));
  };
  if (punct('(')) list(p.results);
  identifier();  // "_"
  if (punct('(')) list(p.params);
  while (t_.kind == Token::Kind::Dotted) {  // .noreturn and ABI directives
    advance();
    if (t_.kind == Token::Kind::Int) advance();
  }
  expect(';');
  f_->prototypes[label] = std::move(p);
}

void Parser::instruction() {
  Instruction i;
  i.line = t_.line;
  i.scope = scopes_.back().id;
  i.loc = loc_;
  if (take('@')) {
    i.guard_negated = take('!');
    const unsigned line = t_.line;
    const std::string_view name = identifier();
    const auto r = find_register(name);
    if (!r) {
      error(line, "Unknown symbol '" + std::string(name) + "'");
    } else if (f_->registers[*r].type != Type::Pred) {
      error(line, "Predicate expression expected");
    } else {
      i.guard = static_cast<std::int32_t>(*r);
    }
    i.line = t_.line;
  }
  const std::string_view name = identifier();
  if (punct(':') && i.guard < 0) {
    advance();
    if (dotted("branchtargets")) {
      branch_targets(name);
    } else if (dotted("callprototype")) {
      call_prototype(name);
    } else if (dotted("calltargets")) {
      while (t_.kind != Token::Kind::End && !punct(';')) advance();
      expect(';');
    } else if (!f_->labels.emplace(std::pair{i.scope, name}, static_cast<std::uint32_t>(f_->code.size())).second) {
      error(i.line, "Duplicate definition of label '" + std::string(name) + "'");
    }
    return;
  }
  i.op = op_ = name;
  while (t_.kind == Token::Kind::Dotted) {
    i.mods.push_back(t_.text);
    advance();
  }
  if (!punct(';')) {
    do i.operands.push_back(operand());
    while (take(','));
  }
  expect(';');
  f_->code.push_back(std::move(i));
}

std::optional<std::uint32_t> Parser::find_register(std::string_view name) {
  std::size_t stem = name.size();
  while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9') --stem;
  std::uint32_t number = 0;
  const bool numbered = stem < name.size() && (name[stem] != '0' || stem + 1 == name.size()) &&
                        std::from_chars(name.data() + stem, name.data() + name.size(), number).ec == std::errc();
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto it = scope->registers.find(name); it != scope->registers.end()) return it->second;
    if (!numbered) continue;
    const auto it = scope->ranges.find(name.substr(0, stem));
    if (it == scope->ranges.end() || number >= it->second.count) continue;
    const auto index = static_cast<std::uint32_t>(f_->registers.size());
    scope->registers.emplace(name, index);
    f_->registers.push_back({name, it->second.type});
    return index;
  }
  return std::nullopt;
}

const Variable* Parser::find_variable(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto it = scope->variables.find(name); it != scope->variables.end()) return it->second;
  const auto it = m_.variable_by_name.find(name);
  return it == m_.variable_by_name.end() ? nullptr : it->second;
}

Operand Parser::named() {
  Operand o;
  o.name = t_.text;
  const char* begin = t_.text.data();
  advance();
  if (o.name == "_") {
    o.kind = Operand::Kind::Sink;
    return o;
  }
  if (const auto r = find_register(o.name)) {
    o.kind = Operand::Kind::Register;
    o.index = *r;
  } else if (o.name.starts_with('%')) {
    if (t_.kind == Token::Kind::Dotted && !t_.spaced) {
      o.name = {begin, static_cast<std::size_t>(t_.text.data() + t_.text.size() - begin)};
      advance();
    }
    o.kind = special_by_name(o.name) ? Operand::Kind::Special : Operand::Kind::Name;
  } else if (o.name == "WARP_SZ") {
    o.kind = Operand::Kind::Int;
    o.value = 32;
  } else if ((o.variable = find_variable(o.name)) != nullptr) {
    o.kind = Operand::Kind::Variable;
  } else if (const auto f = m_.function_by_name.find(o.name); f != m_.function_by_name.end()) {
    o.kind = Operand::Kind::Function;
    o.function = f->second;
  } else {
    o.kind = Operand::Kind::Name;
  }
  return o;
}

Operand Parser::simple_operand() {
  Operand o;
  if (t_.kind == Token::Kind::Identifier) {
    o = named();
    if ((o.kind == Operand::Kind::Variable || o.kind == Operand::Kind::Function) && (punct('+') || punct('-'))) {
      const bool minus = punct('-');
      advance();
      const std::int64_t v = constant(4);
      o.value = minus ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(v)) : v;
    }
    return o;
  }
  // Numbers. A minus before a float is part of it.
  const bool minus = punct('-');
  if (minus) advance();
  if (t_.kind == Token::Kind::Float) {
    o.kind = Operand::Kind::Float;
    o.bits = t_.value;
    o.is_double = t_.is_double;
    o.is_decimal = t_.is_decimal;
    if (minus) o.bits ^= std::uint64_t{1} << (o.is_double ? 63 : 31);
    advance();
    return o;
  }
  o.kind = Operand::Kind::Int;
  o.unsigned_literal = t_.is_unsigned;
  if (minus) {
    const std::int64_t v = constant_primary();
    o.value = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(v));
    if (punct('+') || punct('*') || punct('-')) syntax_error();
  } else {
    o.value = constant();
  }
  return o;
}

Operand Parser::address() {
  Operand o;
  o.kind = Operand::Kind::Address;
  if (punct('-') || t_.kind == Token::Kind::Int) {
    Operand base;
    base.kind = Operand::Kind::Int;
    base.value = constant();
    o.parts.push_back(base);
  } else {
    if (t_.kind != Token::Kind::Identifier) syntax_error();
    o.parts.push_back(named());
    if (take('+')) o.value = constant();  // a minus may only follow the plus
  }
  while (take(',')) o.parts.push_back(operand());
  expect(']');
  return o;
}

Operand Parser::operand() {
  const Level level(*this);
  Operand o;
  if (take('{')) {
    o.kind = Operand::Kind::Vector;
    do o.parts.push_back(operand());
    while (take(','));
    expect('}');
  } else if (take('[')) {
    o = address();
  } else if (op_ == "call" && take('(')) {
    o.kind = Operand::Kind::List;
    if (!punct(')')) {
      do o.parts.push_back(operand());
      while (take(','));
    }
    expect(')');
  } else if (take('!')) {
    if (t_.kind != Token::Kind::Identifier) syntax_error();
    o = named();
    o.negated = true;
  } else {
    o = simple_operand();
  }
  if (punct('|')) {
    advance();
    Operand pair;
    pair.kind = Operand::Kind::Pair;
    pair.parts.push_back(std::move(o));
    pair.parts.push_back(operand());
    return pair;
  }
  return o;
}

}  // namespace kiln::simcuda::ptx
