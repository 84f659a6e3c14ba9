// The rule by which something was refused.
#pragma once
#include <string>

#include "kiln/runtime/error.h"

namespace kiln::test {

inline std::string rule_of(const Error& error) { return error.rule().empty() ? std::string(name(error.code())) : error.rule(); }
template <class T>
std::string rule_of(const Result<T>& result) {
  return result.has_value() ? std::string("none") : rule_of(result.error());
}
template <class F>
std::string thrown_rule(F&& f) {
  try {
    f();
  } catch (const Exception& e) { return rule_of(e.error()); }
  return "none";
}

}  // namespace kiln::test
