#include "kiln/ir/builder.h"

#include <algorithm>
#include <bit>

namespace kiln::ir {
namespace {

void set_extents(Mem& mem, const std::vector<std::uint64_t>& extents) {
  mem.rank = static_cast<std::uint8_t>(std::min<std::size_t>(extents.size(), 255));
  std::copy_n(extents.begin(), std::min<std::size_t>(extents.size(), kMaxRank), mem.extents.begin());
}

}  // namespace

RegionId Builder::new_region() {
  k_->regions.emplace_back();
  return static_cast<RegionId>(k_->regions.size() - 1);
}

std::uint32_t Builder::file(std::string_view path) {
  const auto it = std::find(k_->files.begin(), k_->files.end(), path);
  if (it != k_->files.end()) return static_cast<std::uint32_t>(it - k_->files.begin());
  k_->files.emplace_back(path);
  return static_cast<std::uint32_t>(k_->files.size() - 1);
}

// --- declarations -----------------------------------------------------------------------------------------------

std::uint32_t Builder::buffer(std::string name, Type element, unsigned rank, Access access, bool strided) {
  const auto mem = static_cast<std::uint32_t>(k_->mems.size());
  k_->params.push_back({.name = name, .is_buffer = true, .mem = mem});
  Mem m;
  m.space = Space::Global;
  m.name = std::move(name);
  m.element = element;
  m.rank = static_cast<std::uint8_t>(std::min(rank, 255u));
  m.access = access;
  m.strided = strided;
  m.loc = loc;
  k_->mems.push_back(std::move(m));
  return mem;
}

std::uint32_t Builder::scalar(std::string name, Type type) {
  k_->params.push_back({.name = std::move(name), .type = type});
  return static_cast<std::uint32_t>(k_->params.size() - 1);
}

static std::uint32_t add_memory(Builder& b, Space space, std::string name, Type element) {
  Mem m;
  m.space = space;
  m.name = std::move(name);
  m.element = element;
  m.loc = b.loc;
  b.kernel().mems.push_back(std::move(m));
  return static_cast<std::uint32_t>(b.kernel().mems.size() - 1);
}

std::uint32_t Builder::shared(std::string name, Type element, std::vector<std::uint64_t> extents) {
  const std::uint32_t mem = add_memory(*this, Space::Shared, std::move(name), element);
  set_extents(k_->mems[mem], extents);
  return mem;
}

std::uint32_t Builder::dynamic_shared(std::string name, Type element) {
  const std::uint32_t mem = add_memory(*this, Space::Shared, std::move(name), element);
  k_->mems[mem].dynamic = true;
  return mem;
}

std::uint32_t Builder::local(std::string name, Type element, std::vector<std::uint64_t> extents) {
  const std::uint32_t mem = add_memory(*this, Space::Local, std::move(name), element);
  set_extents(k_->mems[mem], extents);
  return mem;
}

std::uint32_t Builder::slot(std::string name, Type type) {
  k_->slots.push_back({std::move(name), type});
  return static_cast<std::uint32_t>(k_->slots.size() - 1);
}

// --- values -------------------------------------------------------------------------------------------------------

OpId Builder::append(Op op) {
  if (op.loc == Loc{}) op.loc = loc;
  const auto id = static_cast<OpId>(k_->ops.size());
  k_->ops.push_back(std::move(op));
  k_->regions[region_].ops.push_back(id);
  return id;
}

ValueId Builder::constant(Type type, std::uint64_t bits) {
  return append({.code = Opcode::Const, .type = type, .imm = bits & value_mask(type)});
}
ValueId Builder::const_f32(float v) { return constant(Type::F32, std::bit_cast<std::uint32_t>(v)); }
ValueId Builder::const_f64(double v) { return constant(Type::F64, std::bit_cast<std::uint64_t>(v)); }
ValueId Builder::param(std::uint32_t number) { return append({.code = Opcode::Param, .type = k_->params[number].type, .index = number}); }
ValueId Builder::extent(std::uint32_t mem, unsigned dimension, Type type) {
  return append({.code = Opcode::Extent, .type = type, .attr = static_cast<std::uint8_t>(dimension), .index = mem});
}
ValueId Builder::size(std::uint32_t mem, Type type) { return append({.code = Opcode::Size, .type = type, .index = mem}); }
ValueId Builder::query(Opcode code, unsigned axis, Type type) {
  return append({.code = code, .type = type, .attr = static_cast<std::uint8_t>(axis)});
}
ValueId Builder::unary(Opcode code, ValueId a) { return append({.code = code, .type = type(a), .operands = {a}}); }
ValueId Builder::binary(Opcode code, ValueId a, ValueId b) {
  const Type result = info(code).form == Form::Compare ? Type::Bool : type(a);
  return append({.code = code, .type = result, .operands = {a, b}});
}
ValueId Builder::fma(ValueId a, ValueId b, ValueId c) { return append({.code = Opcode::Fma, .type = type(a), .operands = {a, b, c}}); }
ValueId Builder::select(ValueId cond, ValueId a, ValueId b) {
  return append({.code = Opcode::Select, .type = type(a), .operands = {cond, a, b}});
}
ValueId Builder::cast(Type to, ValueId a) { return append({.code = Opcode::Cast, .type = to, .operands = {a}}); }
ValueId Builder::bit_cast(Type to, ValueId a) { return append({.code = Opcode::BitCast, .type = to, .operands = {a}}); }

// --- locals and memory ----------------------------------------------------------------------------------------------

ValueId Builder::get(std::uint32_t slot) { return append({.code = Opcode::Get, .type = k_->slots[slot].type, .index = slot}); }
void Builder::set(std::uint32_t slot, ValueId v) { append({.code = Opcode::Set, .index = slot, .operands = {v}}); }
ValueId Builder::load(std::uint32_t mem, std::vector<ValueId> coordinates) {
  return append({.code = Opcode::Load, .type = k_->mems[mem].element, .index = mem, .operands = std::move(coordinates)});
}
void Builder::store(std::uint32_t mem, std::vector<ValueId> coordinates, ValueId v) {
  coordinates.push_back(v);
  append({.code = Opcode::Store, .index = mem, .operands = std::move(coordinates)});
}
ValueId Builder::atomic(Opcode code, std::uint32_t mem, std::vector<ValueId> coordinates, ValueId v) {
  coordinates.push_back(v);
  return append({.code = code, .type = k_->mems[mem].element, .index = mem, .operands = std::move(coordinates)});
}
ValueId Builder::atomic_cas(std::uint32_t mem, std::vector<ValueId> coordinates, ValueId expected, ValueId desired) {
  coordinates.push_back(expected);
  coordinates.push_back(desired);
  return append({.code = Opcode::AtomicCas, .type = k_->mems[mem].element, .index = mem, .operands = std::move(coordinates)});
}

// --- block and warp -------------------------------------------------------------------------------------------------

void Builder::barrier() { append({.code = Opcode::Barrier}); }
ValueId Builder::block_vote(Opcode code, ValueId cond) {
  return append({.code = code, .type = code == Opcode::BarrierCount ? Type::U32 : Type::Bool, .operands = {cond}});
}
ValueId Builder::block_uniform(ValueId v) { return append({.code = Opcode::BlockUniform, .type = type(v), .operands = {v}}); }
ValueId Builder::shuffle(Opcode code, ValueId v, ValueId lane) { return append({.code = code, .type = type(v), .operands = {v, lane}}); }
ValueId Builder::warp_vote(Opcode code, ValueId cond) {
  return append({.code = code, .type = code == Opcode::Ballot ? Type::U32 : Type::Bool, .operands = {cond}});
}
ValueId Builder::warp_combine(Opcode code, Combine how, ValueId v) {
  return append({.code = code, .type = type(v), .attr = static_cast<std::uint8_t>(how), .operands = {v}});
}
void Builder::warp_sync() { append({.code = Opcode::WarpSync}); }

// --- control flow ---------------------------------------------------------------------------------------------------

OpId Builder::if_(ValueId cond) {
  const RegionId then_region = new_region(), else_region = new_region();
  return append({ .code = Opcode::If, .operands = {cond}, .regions = { then_region, else_region } });
}
OpId Builder::for_(ValueId lo, ValueId hi, ValueId step) {
  const RegionId body = new_region();
  return append({.code = Opcode::For, .type = type(lo), .operands = {lo, hi, step}, .regions = {body}});
}
OpId Builder::while_() {
  const RegionId condition = new_region(), body = new_region();
  return append({.code = Opcode::While, .regions = {condition, body}});
}
OpId Builder::switch_(ValueId v, std::vector<std::uint64_t> cases) {
  std::vector<RegionId> regions;
  for (std::size_t i = 0; i <= cases.size(); ++i) regions.push_back(new_region());
  return append({.code = Opcode::Switch, .operands = {v}, .regions = std::move(regions), .cases = std::move(cases)});
}
void Builder::yield(ValueId cond) { append({.code = Opcode::Yield, .operands = {cond}}); }
void Builder::leave(Opcode code) { append({.code = code}); }
void Builder::check(ValueId cond, std::string text, std::vector<ValueId> values) {
  k_->texts.push_back(std::move(text));
  values.insert(values.begin(), cond);
  append({.code = Opcode::Check, .imm = k_->texts.size() - 1, .operands = std::move(values)});
}
void Builder::assume(ValueId cond, std::string text) {
  k_->texts.push_back(std::move(text));
  append({.code = Opcode::Assume, .imm = k_->texts.size() - 1, .operands = {cond}});
}
void Builder::log_text(std::string text, std::vector<ValueId> values) {
  k_->texts.push_back(std::move(text));
  append({.code = Opcode::LogText, .imm = k_->texts.size() - 1, .operands = std::move(values)});
}
void Builder::trap(std::string text) {
  k_->texts.push_back(std::move(text));
  append({.code = Opcode::Trap, .imm = k_->texts.size() - 1});
  leave(Opcode::Return);
}
void Builder::require(ValueId cond, std::string text) {
  k_->texts.push_back(std::move(text));
  append({.code = Opcode::Require, .imm = k_->texts.size() - 1, .operands = {cond}});
}

}  // namespace kiln::ir
