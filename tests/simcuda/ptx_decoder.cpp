#include "simcuda/ptx_decoder.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "simcuda/ptx_live.h"

namespace kiln::simcuda::ptx {

const DecodeTable& decode_table() {
  static const DecodeTable table = [] {
    DecodeTable t;
    for (const auto add :
         {add_integer, add_bits, add_float, add_compare, add_convert, add_move, add_memory, add_atomic, add_control, add_together})
      add(t);
    return t;
  }();
  return table;
}

Decoder::Decoder(DecodeContext& context, Function& function) : context_(context), function_(function) {
  const auto& registers = function_.decl->registers;
  const Liveness live = liveness(*function_.decl);
  slot_of_.assign(registers.size(), 0);
  for (std::uint32_t r = 0; r < registers.size(); ++r) unread_.push_back(live.first[r] == live.last[r]);
  std::vector<std::uint32_t> order;  // of those that may share a slot, by where they begin to live
  for (std::uint32_t r = 0; r < registers.size(); ++r) {
    if (registers[r].type == Type::Pred) {
      slot_of_[r] = static_cast<Slot>(function_.predicates++);
    } else if (registers[r].type == Type::B128) {
      slot_of_[r] = scratch(2);
    } else if (live.first[r] != Liveness::kNever) {
      order.push_back(r);
    }
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) { return live.first[x] < live.first[y]; });
  // A slot is free again behind the instruction where its register is last used: an instruction never writes a slot that it reads for
  // another register.
  std::priority_queue<std::pair<std::uint32_t, Slot>, std::vector<std::pair<std::uint32_t, Slot>>, std::greater<>> busy;
  for (const std::uint32_t r : order) {
    if (!busy.empty() && busy.top().first < live.first[r]) {
      slot_of_[r] = busy.top().second;
      busy.pop();
    } else {
      slot_of_[r] = scratch();
    }
    busy.emplace(live.last[r], slot_of_[r]);
  }
  for (const std::uint32_t r : live.undefined) {
    if (registers[r].type == Type::Pred) continue;
    function_.undefined.push_back(static_cast<std::uint32_t>(slot_of_[r]));
  }
  function_.registers = live.words + 8;  // and some for addresses and the like
  layout();
}

bool Decoder::unread(const Operand& o) const { return o.kind == Operand::Kind::Sink || (is_register(o) && unread_[o.index]); }

// Where variables lie in the function's frame.
void Decoder::layout() {
  constexpr std::uint64_t kMostLocal = std::uint64_t{1} << 24;  // no device has as much for a thread
  std::uint64_t at = 0;
  bool too_large = false;
  const auto place = [&](const Variable& v) {
    at = (at + v.align - 1) / v.align * v.align;
    frame_offsets_[&v] = static_cast<std::uint32_t>(at);
    too_large = too_large || v.bytes > kMostLocal || (at += v.bytes) > kMostLocal;
    return Function::Piece{frame_offsets_[&v], static_cast<std::uint32_t>(v.bytes)};
  };
  for (const auto& v : function_.decl->results) function_.results.push_back(place(*v));
  if (!function_.decl->entry)
    for (const auto& v : function_.decl->params) function_.params.push_back(place(*v));
  for (const auto& v : function_.decl->locals) place(*v);
  if (too_large) {
    context_.errors->push_back(
        {function_.decl->line,
         "Function '" + function_.decl->name + "' uses too much local data (" + std::to_string(kMostLocal) + " bytes max)", false});
    at = 0;
  }
  function_.frame_bytes = static_cast<std::uint32_t>((at + 15) / 16 * 16);
}

void Decoder::run() {
  function_.ops.reserve(function_.decl->code.size() + 1);
  for (const Instruction& i : function_.decl->code) {
    one(i);
    if (!emitted_) emit();
  }
  op = Op{};  // falling off the end returns
  op.flow = Flow::Return;
  op.source = static_cast<std::uint32_t>(function_.decl->code.empty() ? 0 : function_.decl->code.size() - 1);
  emit();
}

void Decoder::one(const Instruction& i) {
  i_ = &i;
  op = Op{};
  op.source = static_cast<std::uint32_t>(&i - function_.decl->code.data());
  op.line = i.line;
  used_.assign(i.mods.size(), false);
  failed_ = emitted_ = false;
  if (i.guard >= 0) op.guard = slot_of_[static_cast<std::size_t>(i.guard)] * 2 + (i.guard_negated ? 1 : 0);
  const auto& table = decode_table();
  const auto it = table.find(i.op);
  if (it == table.end()) {
    // Tensor cores, bulk copies, textures and the like: right PTX, but not for us.
    constexpr std::string_view kOthers[] = {"mma",       "wmma",     "wgmma",    "ldmatrix",  "stmatrix", "movmatrix",
                                            "mbarrier",  "tcgen05",  "multimem", "tensormap", "tex",      "tld4",
                                            "txq",       "suld",     "sust",     "sured",     "suq",      "vadd",
                                            "vsub",      "vabsdiff", "vmin",     "vmax",      "vshl",     "vshr",
                                            "vmad",      "vset",     "vadd2",    "vsub2",     "vavrg2",   "vabsdiff2",
                                            "vmin2",     "vmax2",    "vset2",    "vadd4",     "vsub4",    "vavrg4",
                                            "vabsdiff4", "vmin4",    "vmax4",    "vset4",     "istypep",  "clusterlaunchcontrol"};
    for (const std::string_view other : kOthers)
      if (i.op == other) return unknown("Instruction '" + std::string(i.op) + "'");
    error("Not a name of any known instruction: '" + std::string(i.op) + "'");
    return;
  }
  it->second(*this);
  for (std::size_t k = 0; k < used_.size() && !failed_; ++k) {
    if (used_[k]) continue;
    const std::string text = "." + std::string(i.mods[k]);
    if (type_by_name(i.mods[k])) {
      error("Unexpected instruction types specified for '" + std::string(i.op) + "'");
    } else {
      error("Illegal modifier '" + text + "' for instruction '" + std::string(i.op) + "'");
    }
  }
}

bool Decoder::take(std::string_view modifier) {
  for (std::size_t k = 0; k < used_.size(); ++k)
    if (!used_[k] && i_->mods[k] == modifier) {
      used_[k] = true;
      return true;
    }
  return false;
}

bool Decoder::has(std::string_view modifier) const { return std::find(i_->mods.begin(), i_->mods.end(), modifier) != i_->mods.end(); }

std::string_view Decoder::take_any(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view m : modifiers)
    if (take(m)) return m;
  return {};
}

bool Decoder::take_prefix(std::string_view prefix) {
  bool any = false;
  for (std::size_t k = 0; k < used_.size(); ++k)
    if (!used_[k] && i_->mods[k].starts_with(prefix)) used_[k] = any = true;
  return any;
}

Type Decoder::take_type() {
  for (std::size_t k = 0; k < used_.size(); ++k) {
    if (used_[k]) continue;
    if (const auto t = type_by_name(i_->mods[k])) {
      used_[k] = true;
      return *t;
    }
  }
  return Type::None;
}

Round Decoder::take_round(std::string_view allowed) {
  constexpr std::pair<std::string_view, Round> kModes[] = {
      {"rn", Round::Nearest}, {"rz", Round::Zero}, {"rm", Round::Down}, {"rp", Round::Up}};
  for (const auto& [text, mode] : kModes)
    if (allowed.find(text[1]) != std::string_view::npos && take(text)) return mode;
  return Round::None;
}

std::size_t Decoder::modifiers_left() const { return static_cast<std::size_t>(std::count(used_.begin(), used_.end(), false)); }

void Decoder::error(std::string text) {
  if (failed_) return;
  failed_ = true;
  context_.errors->push_back({i_->line, std::move(text), false});
}

void Decoder::mismatch() {
  // An unknown name is what is wrong, whatever else does not fit.
  const auto unknown_name = [&](const auto& self, const Operand& o) -> const Operand* {
    if (o.kind == Operand::Kind::Name) return &o;
    for (const Operand& part : o.parts)
      if (const Operand* found = self(self, part)) return found;
    return nullptr;
  };
  for (const Operand& o : i_->operands)
    if (const Operand* found = unknown_name(unknown_name, o)) {
      error("Unknown symbol '" + std::string(found->name) + "'");
      return;
    }
  error("Arguments mismatch for instruction '" + std::string(i_->op) + "'");
}

void Decoder::bad_type() { error("Unexpected instruction types specified for '" + std::string(i_->op) + "'"); }

void Decoder::unknown(const std::string& what) { error(what + " is not known to the simulated driver"); }

void Decoder::need(unsigned arch, unsigned version, std::string_view what) {
  const ModuleDecl& m = *context_.module;
  const std::string text = what.empty() ? "Instruction '" + std::string(i_->op) + "'" : "Feature '" + std::string(what) + "'";
  if (m.version < version) {
    error(text + " requires PTX ISA .version " + std::to_string(version / 10) + "." + std::to_string(version % 10) + " or later");
  } else if (m.arch < arch) {
    error(text + " requires .target sm_" + std::to_string(arch) + " or higher");
  }
}

bool Decoder::count(std::size_t n) { return count(n, n); }

bool Decoder::count(std::size_t least, std::size_t most) {
  if (operands() >= least && operands() <= most) return true;
  mismatch();
  return false;
}

Type Decoder::register_type(const Operand& o) const {
  return o.kind == Operand::Kind::Register ? function_.decl->registers[o.index].type : Type::None;
}

Slot Decoder::out(const Operand& o, Type type, Width width) {
  if (o.kind == Operand::Kind::Sink) return scratch(type == Type::B128 ? 2 : 1);
  if (o.kind != Operand::Kind::Register) {
    if (o.kind == Operand::Kind::Name) return missing();
    error("Result register required for instruction '" + std::string(i_->op) + "'");
    return 0;
  }
  return in(o, type, width);
}

Slot Decoder::in(const Operand& o, Type type, Width width) {
  switch (o.kind) {
    case Operand::Kind::Register: {
      const Type have = register_type(o);
      const bool wider = width == Width::AtLeast && bits_of(have) > bits_of(type) && bits_of(have) <= 64 && alike(have, type);
      if (o.negated || (!compatible(have, type) && !wider)) return missing();
      return slot_of_[o.index];
    }
    case Operand::Kind::Int: {
      if (!is_int(type) && !is_untyped(type)) return missing();
      const auto v = static_cast<std::uint64_t>(o.value);
      if (type == Type::B128) return wide_constant(v, o.value < 0 ? ~std::uint64_t{0} : 0);
      const unsigned bits = bits_of(type);
      return constant(bits >= 64 ? v : v & ((std::uint64_t{1} << bits) - 1));
    }
    case Operand::Kind::Float: {
      const unsigned bits = bits_of(type);
      // An untyped place takes a float of its own size only.
      const bool fits = type == Type::F32 || type == Type::F64 || (type == Type::B32 && !o.is_double) || (type == Type::B64 && o.is_double);
      if (!fits) return missing();
      if (bits == 32) {
        if (!o.is_double) return constant(o.bits);
        return constant(std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.bits))));
      }
      if (o.is_double) return constant(o.bits);
      return constant(std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(o.bits)))));
    }
    case Operand::Kind::Special: error("Special register argument not allowed for instruction '" + std::string(i_->op) + "'"); return 0;
    default: return missing();
  }
}

Predicate Decoder::predicate_out(const Operand& o) {
  if (o.kind == Operand::Kind::Sink) return kTrue;
  if (register_type(o) != Type::Pred || o.negated) {
    mismatch();
    return kTrue;
  }
  return slot_of_[o.index] * 2;
}

Predicate Decoder::predicate_in(const Operand& o) {
  if (o.kind == Operand::Kind::Int) return o.value != 0 ? kTrue : kFalse;
  if (register_type(o) != Type::Pred) {
    mismatch();
    return kTrue;
  }
  return slot_of_[o.index] * 2 + (o.negated ? 1 : 0);
}

Slot Decoder::constant(std::uint64_t value) {
  const auto [it, fresh] = constant_slots_.emplace(value, 0);
  if (fresh) {
    it->second = ~static_cast<Slot>(function_.constants.size() / 32);
    function_.constants.insert(function_.constants.end(), 32, value);
  }
  return it->second;
}

Slot Decoder::wide_constant(std::uint64_t low, std::uint64_t high) {
  const Slot s = ~static_cast<Slot>(function_.constants.size() / 32);
  function_.constants.insert(function_.constants.end(), 32, low);
  function_.constants.insert(function_.constants.end(), 32, high);
  return s;
}

std::optional<std::int64_t> Decoder::integer(const Operand& o) const {
  if (o.kind != Operand::Kind::Int) return std::nullopt;
  return o.value;
}

Slot Decoder::scratch(unsigned slots) {
  const auto s = static_cast<Slot>(function_.slots);
  function_.slots += slots;
  return s;
}

Predicate Decoder::scratch_predicate() { return static_cast<Predicate>(function_.predicates++) * 2; }

std::uint32_t Decoder::frame_offset(const Variable& v) {
  const auto it = frame_offsets_.find(&v);
  if (it == frame_offsets_.end()) {
    mismatch();
    return 0;
  }
  return it->second;
}

std::uint64_t Decoder::address_of(const Variable& v, bool generic) {
  const auto it = context_.addresses.find(&v);
  if (it == context_.addresses.end()) {
    error("Unknown symbol '" + v.name + "'");
    return 0;
  }
  return it->second + (generic && v.space == Space::Shared ? kSharedWindow : 0);
}

void Decoder::address(const Operand& o, Space space, bool space_named) {
  if (o.kind != Operand::Kind::Address || o.parts.empty()) {
    mismatch();
    return;
  }
  op.space = space;
  op.imm = o.value;
  const Operand& base = o.parts[0];
  switch (base.kind) {
    case Operand::Kind::Register: {
      const Type t = register_type(base);
      if (is_float(t) || t == Type::Pred || bits_of(t) < 32 || bits_of(t) > 64) {
        mismatch();
        return;
      }
      if (bits_of(t) == 32 && space != Space::Shared && space != Space::Local && space != Space::Param && space != Space::Const) {
        error("Program uses 32-bit address on line '" + std::to_string(i_->line) + "' which is conflicting with .address_size 64");
        return;
      }
      op.a = slot_of_[base.index];
      if (space == Space::Param) {
        op.entry_param = decl().entry;
        if (!op.entry_param) op.space = Space::Local;
      }
      return;
    }
    case Operand::Kind::Int:
      op.a = constant(static_cast<std::uint64_t>(base.value));
      if (space == Space::Param) op.entry_param = decl().entry;
      return;
    case Operand::Kind::Variable: {
      const Variable& v = *base.variable;
      if (space_named && v.space != space) {
        error("State space of address '" + v.name + "' does not match that of instruction '" + std::string(i_->op) + "'");
        return;
      }
      op.space = v.space;
      if (v.space == Space::Param || v.space == Space::Local) {
        op.entry_param = v.space == Space::Param && decl().entry && !frame_offsets_.contains(&v);
        op.a = constant(0);
        op.imm = static_cast<std::int64_t>(static_cast<std::uint64_t>(op.imm) + (op.entry_param ? v.offset : frame_offset(v)));
        op.in_frame = !op.entry_param;
      } else {
        op.a = constant(address_of(v, false));
      }
      return;
    }
    default:
      if (base.kind == Operand::Kind::Name) {
        error("Unknown symbol '" + std::string(base.name) + "'");
      } else {
        mismatch();
      }
  }
}

std::optional<std::uint32_t> Decoder::label(std::string_view name) {
  for (std::uint32_t scope = i_->scope;; scope = decl().scope_parent[scope]) {
    const auto it = decl().labels.find({scope, name});
    if (it != decl().labels.end()) return it->second;
    if (scope == 0) break;
  }
  error("Unknown symbol '" + std::string(name) + "'");
  return std::nullopt;
}

const std::vector<std::string_view>* Decoder::table(std::string_view name) const {
  for (std::uint32_t scope = i_->scope;; scope = decl().scope_parent[scope]) {
    const auto it = decl().tables.find({scope, name});
    if (it != decl().tables.end()) return it->second.from <= op.source ? &it->second.names : nullptr;
    if (scope == 0) return nullptr;
  }
}

}  // namespace kiln::simcuda::ptx
