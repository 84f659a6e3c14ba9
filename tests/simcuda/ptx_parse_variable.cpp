// Declarations of variables with their initialisers, and constant expressions.
#include <bit>

#include "simcuda/ptx_parser.h"

namespace kiln::simcuda::ptx {
namespace {

struct Binary {
  char op;
  int level;
};
// From loose to tight. '<' and '>' stand for the shifts.
constexpr std::uint64_t kMostAlign = 512;
constexpr Binary kBinary[] = {{'|', 1}, {'^', 2}, {'&', 3}, {'<', 4}, {'>', 4}, {'+', 5}, {'-', 5}, {'*', 6}, {'/', 6}, {'%', 6}};

}  // namespace

std::int64_t Parser::constant_primary() {
  const Level level(*this);
  if (take('-')) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(constant_primary()));
  if (take('+')) return constant_primary();
  if (take('~')) return ~constant_primary();
  if (take('!')) return constant_primary() == 0 ? 1 : 0;
  if (take('(')) {
    const std::int64_t v = constant();
    expect(')');
    return v;
  }
  return static_cast<std::int64_t>(unsigned_number());
}

std::int64_t Parser::constant(int level) {
  std::int64_t left = constant_primary();
  for (;;) {
    const Binary* found = nullptr;
    for (const Binary& b : kBinary)
      if (punct(b.op) && b.level > level) found = &b;
    if (found == nullptr) return left;
    const char op = found->op;
    advance();
    if (op == '<' || op == '>') expect(op);
    const std::int64_t right = constant(found->level);
    const auto a = static_cast<std::uint64_t>(left), b = static_cast<std::uint64_t>(right);
    switch (op) {
      case '|': left = left | right; break;
      case '^': left = left ^ right; break;
      case '&': left = left & right; break;
      case '<': left = static_cast<std::int64_t>(b >= 64 ? 0 : a << b); break;
      case '>': left = left >> (b >= 64 ? 63 : b); break;
      case '+': left = static_cast<std::int64_t>(a + b); break;
      case '-': left = static_cast<std::int64_t>(a - b); break;
      case '*': left = static_cast<std::int64_t>(a * b); break;
      default:
        if (right == 0 || right == -1) {
          if (right == 0) error(last_line_, "Division by zero in constant expression");
          left = op == '/' ? static_cast<std::int64_t>(0 - a) : 0;
        } else {
          left = op == '/' ? left / right : left % right;
        }
    }
  }
}

std::unique_ptr<Variable> Parser::declarator(Space space, bool is_param, std::uint64_t* element_bytes) {
  auto v = std::make_unique<Variable>();
  v->space = space;
  unsigned vector = 1;
  bool typed = false;
  std::uint64_t align = 0;
  while (t_.kind == Token::Kind::Dotted) {
    const std::string_view name = t_.text;
    const unsigned line = t_.line;
    if (name == "align") {
      advance();
      const std::uint64_t a = unsigned_number();
      if (!std::has_single_bit(a) || a > std::uint64_t{1} << 31) {
        error(line, "Alignment must be a power of two");
      } else if (a > kMostAlign && (!typed || !is_param)) {
        error(line, "Alignment " + std::to_string(a) + " is not known to the simulated driver, whose memory is aligned to " +
                        std::to_string(kMostAlign));
      } else if (!typed || !is_param) {  // behind .ptr it is that of what the pointer points to
        align = a;
      }
      continue;
    }
    if (name == "attribute") {
      advance();
      while (t_.kind != Token::Kind::End && !punct(')')) advance();
      expect(')');
      continue;
    }
    advance();
    if (name == "v2" || name == "v4") {
      vector = name == "v2" ? 2 : 4;
    } else if (const auto type = type_by_name(name)) {
      v->type = *type;
      typed = true;
    } else if (name == "ptr" || name == "global" || name == "shared" || name == "const" || name == "local" || name == "generic") {
      if (!is_param) throw SyntaxError{line, "Parsing error near '." + std::string(name) + "': syntax error"};
    } else {
      error(line, "Unknown modifier '." + std::string(name) + "'");
    }
  }
  v->line = t_.line;
  if (is_param && t_.kind == Token::Kind::Identifier && t_.text == "_") {
    advance();  // of a prototype
  } else {
    v->name = std::string(identifier());
  }
  if (!typed) error(v->line, "Missing type of variable '" + v->name + "'");
  if (v->type == Type::Pred) error(v->line, "Type .pred is not allowed for variable '" + v->name + "'");
  const std::uint64_t element = std::uint64_t{bytes_of(v->type)} * vector;
  v->align = align != 0 ? align : element;
  v->bytes = element;
  if (element_bytes != nullptr) *element_bytes = element;
  dimensions(*v);
  if (!is_param && typed && v->bytes == 0 && !v->unsized) error(v->line, "Non-external variable '" + v->name + "' has incomplete type");
  return v;
}

void Parser::dimensions(Variable& v) {
  while (take('[')) {
    if (take(']')) {
      v.unsized = true;
      v.bytes = 0;
      continue;
    }
    const unsigned line = t_.line;
    if (__builtin_mul_overflow(v.bytes, unsigned_number(), &v.bytes)) error(line, "Constant overflow");
    expect(']');
  }
}

void Parser::initialiser_item(Variable& v, std::uint64_t& at, unsigned element) {
  const Level level(*this);
  if (take('{')) {
    if (take('}')) return;
    for (bool more = true; more; more = take(',')) initialiser_item(v, at, element);
    expect('}');
    return;
  }
  const auto store = [&](std::uint64_t bits) {
    if (v.unsized) v.bytes = std::max<std::uint64_t>(v.bytes, at + element);
    if (at + element > v.bytes) {
      error(last_line_, "Too many initializers for variable '" + v.name + "'");
      return;
    }
    if (v.init.size() < at + element) v.init.resize(at + element);  // what is behind it is zero
    for (unsigned i = 0; i < element && i < 8; ++i) v.init[at + i] = static_cast<std::uint8_t>(bits >> (8 * i));
  };
  const auto symbol = [&](unsigned shift) {
    Variable::Patch p;
    p.offset = at;
    p.bytes = element;
    p.shift = shift;
    std::string_view name = identifier();
    if (name == "generic") {
      p.generic = true;
      expect('(');
      name = identifier();
      expect(')');
    }
    p.symbol = std::string(name);
    if (punct('+') || punct('-')) p.add = constant(4);
    v.patches.push_back(std::move(p));
  };
  if (t_.kind == Token::Kind::Identifier) {
    store(0);
    symbol(0);
  } else if (t_.kind == Token::Kind::Float || (punct('-') && v.type >= Type::F16)) {
    const bool minus = take('-');
    std::uint64_t bits = t_.value;
    if (t_.kind == Token::Kind::Int) {
      bits = std::bit_cast<std::uint64_t>(static_cast<double>(t_.value));
    } else if (t_.kind != Token::Kind::Float) {
      syntax_error();
    }
    const bool is_double = t_.kind == Token::Kind::Int || t_.is_double;
    advance();
    if (v.type == Type::F32 && is_double) bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    if (v.type == Type::F64 && !is_double) {
      bits = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
    }
    if (minus) bits ^= std::uint64_t{1} << (bits_of(v.type) - 1);
    store(bits);
  } else {
    const auto value = static_cast<std::uint64_t>(constant());
    store(value);
    if (take('(')) {  // a mask that picks one byte of an address: 0xFF00(symbol)
      symbol(value == 0 ? 0 : static_cast<unsigned>(std::countr_zero(value)));
      expect(')');
      store(0);
    }
  }
  at += element;
}

void Parser::initialiser(Variable& v) {
  std::uint64_t at = 0;
  initialiser_item(v, at, bytes_of(v.type));
  if (v.unsized && v.bytes > 0) v.unsized = false;
}

void Parser::add_module_variable(std::unique_ptr<Variable> v) {
  const auto known = m_.variable_by_name.find(v->name);
  if (known != m_.variable_by_name.end()) {
    if (known->second->external && !v->external) {
      *known->second = std::move(*v);
    } else if (!v->external) {
      error(v->line, "Duplicate definition of variable '" + v->name + "'");
    }
    return;
  }
  Variable* p = v.get();
  m_.variables.push_back(std::move(v));
  m_.variable_by_name.emplace(p->name, p);
}

void Parser::variables(Space space) {
  const bool external = external_, visible = visible_;
  std::uint64_t element = 0;  // of all that are declared at once
  auto v = declarator(space, false, &element);
  for (;;) {
    v->external = external;
    v->visible = visible;
    if (take('=')) {
      if (space != Space::Global && space != Space::Const) { error(v->line, "Initializer not allowed for variable '" + v->name + "'"); }
      initialiser(*v);
    }
    const Type type = v->type;
    const std::uint64_t align = v->align;
    if (f_ == nullptr) {
      add_module_variable(std::move(v));
    } else {
      const std::string_view name = v->name;
      if (scopes_.back().variables.contains(name)) error(v->line, "Duplicate definition of variable '" + std::string(name) + "'");
      const Variable* p = v.get();
      if (space == Space::Local || space == Space::Param) {
        f_->locals.push_back(std::move(v));
      } else {
        if (space == Space::Shared) f_->shared.push_back(p);
        m_.variables.push_back(std::move(v));
      }
      scopes_.back().variables.emplace(p->name, p);
    }
    if (!take(',')) break;
    v = std::make_unique<Variable>();
    v->space = space;
    v->type = type;
    v->align = align;
    v->line = t_.line;
    v->name = std::string(identifier());
    v->bytes = element;
    dimensions(*v);
  }
  expect(';');
}

}  // namespace kiln::simcuda::ptx
