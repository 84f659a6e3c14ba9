// Errors of the language: a rule, what happened, the kernel and the line.
#pragma once
#include <string>
#include <utility>

#include "kiln/runtime/error.h"

namespace kiln::dsl {

inline Error make_error(ErrorCode code, std::string rule, std::string message, std::string kernel = {}, std::string place = {}) {
  Error::Data data;
  data.code = code;
  data.rule = std::move(rule);
  data.message = std::move(message);
  data.kernel = std::move(kernel);
  data.place = std::move(place);
  return Error(std::move(data));
}

}  // namespace kiln::dsl
