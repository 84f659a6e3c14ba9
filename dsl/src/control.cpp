#include "kiln/dsl/control.h"

#include <algorithm>
#include <exception>

namespace kiln {
namespace dsl {
namespace {

ir::Loc location(Recorder& recorder, const Where& where) {
  recorder.at(where);
  return recorder.here().loc;
}

}  // namespace

// --- bodies -----------------------------------------------------------------------------------------------------------------

Body::Body(const char* what, ir::RegionId region, ir::Loc loc, bool loop)
    : recorder_(Recorder::current(Where::current())), what_(what), loc_(loc), exceptions_(std::uncaught_exceptions()), loop_(loop) {
  recorder_.enter_region(region);
  recorder_.loops += loop_;
}

Body::~Body() {
  recorder_.loops -= loop_;
  recorder_.leave_region();
  if (!finished_ && std::uncaught_exceptions() == exceptions_) {
    try {
      recorder_.fail_later(std::string("C++ break, return or goto left the body of ") + what_ + "; use Break(), Continue() or Return()",
                           loc_);
    } catch (const std::bad_alloc&) { recorder_.exhaust(); }
  }
}

// --- If ------------------------------------------------------------------------------------------------------------------------

IfScope::IfScope(Where w) : recorder_(Recorder::current(w)), marks_(recorder_.marks.size()), loc_(location(recorder_, w)) {
  recorder_.marks.push_back(recorder_.mark());
}

IfScope::~IfScope() { recorder_.marks.resize(std::min(recorder_.marks.size(), marks_)); }

bool IfScope::begin(Use<bool> condition) {
  recorder_.marks.resize(marks_);
  loc_ = location(recorder_, condition.where);
  op_ = recorder_.here().if_(condition.id);
  step_ = 1;
  body_.emplace("If", recorder_.kernel().ops[op_].regions[0], loc_, false);
  return true;
}

bool IfScope::next() {
  if (body_) body_->finish();
  body_.reset();
  if (step_ == 2) return false;
  step_ = 2;
  body_.emplace("Else", recorder_.kernel().ops[op_].regions[1], loc_, false);
  return true;
}

// --- While ---------------------------------------------------------------------------------------------------------------------

WhileScope::WhileScope(Where w)
    : recorder_(Recorder::current(w)), marks_(recorder_.marks.size()), depth_(recorder_.depth()), loc_(location(recorder_, w)) {
  op_ = recorder_.here().while_();
  recorder_.enter_region(recorder_.kernel().ops[op_].regions[0]);
  recorder_.marks.push_back(recorder_.mark());
}

WhileScope::~WhileScope() {
  body_.reset();
  while (recorder_.depth() > depth_) recorder_.leave_region();
  recorder_.marks.resize(std::min(recorder_.marks.size(), marks_));
}

bool WhileScope::open() {
  if (step_ == 0) return true;
  body_->finish();
  body_.reset();
  return false;
}

bool WhileScope::begin(Use<bool> condition) {
  recorder_.marks.resize(marks_);
  loc_ = location(recorder_, condition.where);
  recorder_.here().yield(condition.id);
  recorder_.leave_region();
  step_ = 1;
  body_.emplace("While", recorder_.kernel().ops[op_].regions[1], loc_, true);
  return true;
}

// --- for over a range -------------------------------------------------------------------------------------------------------------

ForScope::ForScope(ir::Type, const Operand& lo, const Operand& hi, const Operand& step)
    : lo_(lo), hi_(hi), step_(step), loc_(location(Recorder::current(hi.where), hi.where)) {
  Recorder& r = Recorder::current(step.where);
  const ir::Op& op = r.kernel().ops[step.id];
  if (op.code != ir::Opcode::Const) return;
  if (op.imm == 0 || (ir::is_signed(op.type) && ir::sign_extend(op.type, op.imm) < 0)) {
    r.fail("the step of range must be above 0; to count down, count up and subtract", step.where);
  }
}

Handle ForScope::begin() {
  Recorder& r = Recorder::current(hi_.where);
  if (body_) r.fail("a range is one loop; write range(...) again for another", hi_.where);
  r.at(hi_.where);
  const ir::OpId op = r.here().for_(lo_.id, hi_.id, step_.id);
  body_.emplace("for (... : range(...))", r.kernel().ops[op].regions[0], loc_, true);
  return r.handle(op);
}

void ForScope::end() {
  body_->finish();
  body_.reset();
}

// --- Switch ------------------------------------------------------------------------------------------------------------------------

SwitchScope::SwitchScope(ir::Type type, const Operand& value)
    : recorder_(Recorder::current(value.where)), type_(type), loc_(location(recorder_, value.where)) {
  parent_ = recorder_.here().region();
  op_ = recorder_.here().switch_(value.id, {});
}

SwitchScope::~SwitchScope() {
  if (step_ == 1) std::erase(recorder_.switches, this);
}

bool SwitchScope::once() {
  if (step_ == 0) {
    step_ = 1;
    between_ = recorder_.here().new_region();
    body_.emplace("Switch", between_, loc_, false);
    recorder_.switches.push_back(this);
    return true;
  }
  step_ = 2;
  body_->finish();
  body_.reset();
  std::erase(recorder_.switches, this);
  const auto& stray = recorder_.kernel().regions[between_].ops;
  if (!stray.empty()) {
    recorder_.fail("kernel code stands in a Switch outside of its cases; put it into Case (...) { } or before the Switch",
                   recorder_.kernel().ops[stray.front()].loc);
  }
  return false;
}

CaseScope::CaseScope(std::initializer_list<CaseLabel> labels, Where w) {
  Recorder& r = Recorder::current(w);
  if (r.switches.empty() || r.here().region() != r.switches.back()->between_) r.fail("Case and Default belong directly into a Switch", w);
  SwitchScope& s = *r.switches.back();
  r.at(w);
  const ir::Loc loc = r.here().loc;
  ir::Kernel& k = r.kernel();
  if (labels.size() == 0) {
    if (s.default_seen_) r.fail("a Switch has one Default", w);
    s.default_seen_ = true;
    body_.emplace("Default", k.ops[s.op_].regions.back(), loc, false);
    return;
  }
  std::uint64_t first = 0;
  for (const CaseLabel& label : labels) {
    const std::uint64_t bits =
        label.negative ? signed_literal(s.type_, static_cast<std::int64_t>(label.value), w) : unsigned_literal(s.type_, label.value, w);
    if (std::find(s.seen_.begin(), s.seen_.end(), bits) != s.seen_.end()) {
      r.fail("the Switch has the label " +
                 (label.negative ? std::to_string(static_cast<std::int64_t>(label.value)) : std::to_string(label.value)) + " already",
             w);
    }
    s.seen_.push_back(bits);
    if (&label == labels.begin()) {
      first = bits;
      const ir::RegionId region = r.here().new_region();
      ir::Op& op = k.ops[s.op_];
      op.cases.push_back(bits);
      op.regions.insert(op.regions.end() - 1, region);
      continue;
    }
    // Another label of the same body: such values become the first label before the switch looks at them.
    const ir::RegionId back = r.here().region();
    auto& before = k.regions[s.parent_].ops;
    before.pop_back();  // the switch, the last operation there
    r.here().set_region(s.parent_);
    const ir::ValueId value = k.ops[s.op_].operands[0];
    const ir::ValueId equal = r.here().binary(ir::Opcode::Eq, value, r.here().constant(s.type_, bits));
    const ir::ValueId mapped = r.here().select(equal, r.here().constant(s.type_, first), value);
    k.ops[s.op_].operands[0] = mapped;
    k.regions[s.parent_].ops.push_back(s.op_);
    r.here().set_region(back);
  }
  const ir::Op& op = k.ops[s.op_];
  body_.emplace("Case", op.regions[op.regions.size() - 2], loc, false);
}

bool CaseScope::once() {
  if (step_++ == 0) return true;
  body_->finish();
  body_.reset();
  return false;
}

}  // namespace dsl

// --- leaving --------------------------------------------------------------------------------------------------------------------------

static void leave(ir::Opcode code, const char* what, const dsl::Where& w) {
  dsl::Recorder& r = dsl::Recorder::current(w);
  if (code != ir::Opcode::Return && r.loops == 0) {
    r.fail(std::string(what) + " outside of a loop of the kernel; a C++ loop is unrolled and knows only C++'s break and continue", w);
  }
  r.at(w).leave(code);
  r.unreachable();
}
void Break(dsl::Where w) { leave(ir::Opcode::Break, "Break()", w); }
void Continue(dsl::Where w) { leave(ir::Opcode::Continue, "Continue()", w); }
void Return(dsl::Where w) { leave(ir::Opcode::Return, "Return()", w); }

}  // namespace kiln
