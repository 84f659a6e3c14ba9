// What every operation of the server goes through: the body of LocalServer::enter, for the files that have operations.
#pragma once
#include <new>

#include "src/local_server.h"

namespace kiln::rt {

template <class Operation, class Claim>
auto LocalServer::enter(Operation&& operation, Claim&& claim_writes) -> decltype(operation()) try {
  if (auto ok = same_process(); !ok.has_value()) return ok.error();
  auto result = operation();
  logs_.deliver();
  if (!result.has_value()) note_failure(result.error());
  return result;
} catch (const std::bad_alloc&) {
  claim_writes();
  return no_host_memory();
}

}  // namespace kiln::rt
