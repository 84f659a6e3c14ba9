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

template <class Operation, class Claim>
auto LocalServer::enter_on(std::uint64_t stream, Operation&& operation, Claim&& claim_writes) -> decltype(operation()) {
  auto result = enter(operation, claim_writes);
  if (!result.has_value() && !forked()) profiler_.failed(queue_of(stream), result.error());
  return result;
}

}  // namespace kiln::rt
