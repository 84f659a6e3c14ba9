// The one maker of the runtime's errors. What else an error can have (a fault, a chain of skips) is known in one place each:
// fault_slots.cpp and failure/failure_store.cpp; what goes on with another's error copies its data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/runtime/error.h"

namespace kiln {

// What is known beyond the code, the rule and the sentence.
struct ErrorFacts {
  std::string kernel = {}, place = {};
  std::optional<std::uint64_t> requested = {}, limit = {};
  Error::Numbers numbers = Error::Numbers::Beyond;
  std::vector<Error> causes = {};
};

// `rule` may be empty. Sentences are literals where this is called: the index of errors is held against them.
Error make_error(ErrorCode code, std::string rule, std::string message, ErrorFacts facts = {});

// The index of an access out of range; of an unsigned one that went below 0 also the number that it was: "4294967295 (-1 as i32)".
std::string index_text(const BoundsFault& access);

}  // namespace kiln
