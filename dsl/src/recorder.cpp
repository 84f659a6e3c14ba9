#include "kiln/dsl/recorder.h"

#include <atomic>
#include <cstring>
#include <new>

#include "errors.h"

namespace kiln::dsl {
namespace {

constexpr std::size_t kMaxOperations = 1'000'000;  // as the text form has it; far above what compiles in reasonable time
constexpr std::size_t kMaxNesting = 190;           // below the 200 of the text form

constinit thread_local Recorder* current_recorder [[gnu::tls_model("initial-exec")]] = nullptr;

std::atomic<std::uint32_t> recordings{0};

Error error_of(std::string message, std::string kernel, std::string where) {
  return make_error(ErrorCode::CompileValidation, "Recording", std::move(message), std::move(kernel), std::move(where));
}

}  // namespace

std::string place(const Where& where) { return std::string(where.file_name()) + ":" + std::to_string(where.line()); }

void fail(std::string message, const Where& where) {
  if (current_recorder) current_recorder->fail(std::move(message), where);
  throw Exception(error_of(std::move(message), "", place(where)));
}

Recorder::Recorder(ir::Kernel& kernel) : kernel_(kernel), builder_(kernel), outer_(current_recorder), number_(++recordings) {
  open_.push_back(1);
  scopes_.push_back({0, 0});
  builder_.set_region(0);
  builder_.loc = kernel.loc;
  current_recorder = this;
}

Recorder::~Recorder() { current_recorder = outer_; }

bool Recorder::active() { return current_recorder != nullptr; }

Recorder& Recorder::current(const Where& where) {
  if (!current_recorder)
    dsl::fail("this is kernel code, but no kernel is being recorded; it belongs into the body of a KILN_KERNEL", where);
  return *current_recorder;
}

ir::Builder& Recorder::at(const Where& where) {
  if (exhausted_) throw std::bad_alloc();
  if (kernel_.ops.size() >= kMaxOperations) {
    fail("the kernel has more than " + std::to_string(kMaxOperations) +
             " operations; a C++ loop unrolls, use for (auto i : range(n)) for a loop in the kernel",
         where);
  }
  settle();
  last_ = origin_ = where;
  if (where.file_name() != last_file_) {
    last_file_ = where.file_name();
    last_file_index_ = builder_.file(last_file_);
  }
  builder_.loc = {last_file_index_, where.line()};
  return builder_;
}

void Recorder::fail(std::string message, const Where& where) {
  Error error = error_of(std::move(message), kernel_.name, place(where));
  if (!failure_) failure_ = error;
  throw Exception(std::move(error));
}

void Recorder::fail(std::string message, ir::Loc loc) {
  Error error = error_of(std::move(message), kernel_.name, ir::to_string(kernel_, loc));
  if (!failure_) failure_ = error;
  throw Exception(std::move(error));
}

void Recorder::fail_later(std::string message, ir::Loc loc) {
  if (!failure_) failure_ = error_of(std::move(message), kernel_.name, ir::to_string(kernel_, loc));
}

// --- regions and visibility -------------------------------------------------------------------------------------------

ir::Builder& Recorder::somewhere() {
  settle();
  origin_ = Where{};
  return builder_;
}

// Operations made since the last call belong to the region and the place being recorded.
void Recorder::settle() {
  while (region_of_.size() < kernel_.ops.size()) {
    region_of_.push_back(scopes_.back().insertion);
    origin_of_.push_back(origin_);
  }
}

void Recorder::enter_region(ir::RegionId region) {
  if (scopes_.size() >= kMaxNesting) fail("control flow is nested deeper than " + std::to_string(kMaxNesting), builder_.loc);
  settle();
  open_.resize(kernel_.regions.size(), 0);
  open_[region] = 1;
  scopes_.push_back({region, region});
  builder_.set_region(region);
}

void Recorder::leave_region() noexcept {
  try {
    settle();
  } catch (const std::bad_alloc&) { exhaust(); }
  open_[scopes_.back().region] = 0;
  open_[scopes_.back().insertion] = 0;
  scopes_.pop_back();
  builder_.set_region(scopes_.back().insertion);
}

void Recorder::unreachable() {
  settle();
  const ir::RegionId nowhere = builder_.new_region();
  open_.resize(kernel_.regions.size(), 0);
  open_[scopes_.back().insertion] = 1;
  open_[nowhere] = 1;
  scopes_.back().insertion = nowhere;
  builder_.set_region(nowhere);
}

ir::ValueId Recorder::use(Handle value, const Where& where) {
  if (value.recording != number_) fail("this value belongs to another kernel; values cannot be kept from one recording to the next", where);
  settle();
  for (auto moved = moved_.find(value.id); moved != moved_.end(); moved = moved_.find(value.id)) hoist(value.id, moved->second);
  const ir::Op& op = kernel_.ops[value.id];
  const ir::RegionId home = op.code == ir::Opcode::For ? op.regions[0] : region_of_[value.id];
  if (!open_[home]) {
    fail("this value was computed at " + ir::to_string(kernel_, op.loc) +
             " inside a branch or loop that has ended; declare a Var before it, assign inside, and use that",
         where);
  }
  return value.id;
}

std::uint32_t Recorder::use_slot(Handle slot, const Where& where) {
  if (slot.recording != number_) fail("this Var belongs to another kernel; it cannot be kept from one recording to the next", where);
  return slot.id;
}

Recorder::Mark Recorder::mark() const { return {builder_.region(), kernel_.regions[builder_.region()].ops.size()}; }

// --- operations ---------------------------------------------------------------------------------------------------------

Operand use(Handle value, const Where& where) { return {Recorder::current(where).use(value, where), where}; }

Handle constant(ir::Type type, std::uint64_t bits, const Where& where) {
  Recorder& r = Recorder::current(where);
  return r.handle(r.at(where).constant(type, bits));
}
Handle unary(ir::Opcode code, const Operand& a) {
  Recorder& r = Recorder::current(a.where);
  return r.handle(r.at(a.where).unary(code, a.id));
}
Handle binary(ir::Opcode code, const Operand& a, const Operand& b) {
  Recorder& r = Recorder::current(a.where);
  ir::Builder& builder = r.at(a.where);
  return r.handle(ir::info(code).form == ir::Form::Shuffle ? builder.shuffle(code, a.id, b.id) : builder.binary(code, a.id, b.id));
}
Handle ternary(ir::Opcode code, const Operand& a, const Operand& b, const Operand& c) {
  Recorder& r = Recorder::current(a.where);
  ir::Builder& builder = r.at(a.where);
  return r.handle(code == ir::Opcode::Select ? builder.select(a.id, b.id, c.id) : builder.fma(a.id, b.id, c.id));
}
Handle convert(ir::Opcode code, ir::Type to, const Operand& a) {
  Recorder& r = Recorder::current(a.where);
  ir::Builder& builder = r.at(a.where);
  return r.handle(code == ir::Opcode::Cast ? builder.cast(to, a.id) : builder.bit_cast(to, a.id));
}
Handle query(ir::Opcode code, unsigned axis, ir::Type type, const Where& where) {
  Recorder& r = Recorder::current(where);
  return r.handle(r.at(where).query(code, axis, type));
}

Handle new_slot(ir::Type type, const Operand& initial) {
  Recorder& r = Recorder::current(initial.where);
  ir::Builder& builder = r.at(initial.where);
  const std::uint32_t slot = builder.slot("v" + std::to_string(r.kernel().slots.size()), type);
  builder.set(slot, initial.id);
  return r.handle(slot);
}
Operand get_slot(Handle slot, const Where& where) {
  Recorder& r = Recorder::current(where);
  const std::uint32_t index = r.use_slot(slot, where);
  return {r.at(where).get(index), where};
}
void set_slot(Handle slot, const Operand& value) {
  Recorder& r = Recorder::current(value.where);
  const std::uint32_t index = r.use_slot(slot, value.where);
  r.at(value.where).set(index, value.id);
}
Handle step_slot(Handle slot, ir::Opcode code) {
  Recorder& r = Recorder::current(Where::current());
  const std::uint32_t index = r.use_slot(slot, r.last());
  ir::Builder& builder = r.somewhere();
  const ir::ValueId old = builder.get(index);
  builder.set(index, builder.binary(code, old, builder.constant(builder.type(old), 1)));
  return r.handle(old);
}

}  // namespace kiln::dsl
