#include "kiln/dsl/text.h"

#include "source_text.h"

namespace kiln {
namespace {

std::vector<ir::ValueId> ids(std::initializer_list<dsl::Operand> values) {
  std::vector<ir::ValueId> all;
  for (const dsl::Operand& v : values) all.push_back(v.id);
  return all;
}

}  // namespace

void dsl::check(const Operand& condition, const char* text, std::initializer_list<Operand> values) {
  Recorder::current(condition.where).at(condition.where).check(condition.id, text, ids(values));
}

void dsl::log_text(const char* text, std::initializer_list<Operand> values, const Where& where) {
  Recorder::current(where).at(where).log_text(text, ids(values));
}

void trap(std::string_view text, dsl::Where w) {
  dsl::Recorder& r = dsl::Recorder::current(w);
  r.at(w).trap(std::string(text));
  r.unreachable();
}

void assume(Use<bool> c) {
  dsl::Recorder& r = dsl::Recorder::current(c.where);
  ir::Builder& b = r.at(c.where);
  b.assume(c.id, dsl::source_text(r.kernel(), c.id));
}

}  // namespace kiln
