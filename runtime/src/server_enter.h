// What every operation of the server goes through: the body of LocalServer::enter, for the files that have operations.
#pragma once
#include <concepts>
#include <new>
#include <type_traits>

#include "src/local_server.h"

namespace kiln::rt {

// In the place of what claims the writes.
struct LocalServer::EnqueuesNothing {
  void operator()(const Error&) const {}
};

template <class Operation, class Claim>
auto LocalServer::enter(Operation&& operation, Claim&& claim_writes) -> decltype(operation()) try {
  if (forked()) return same_process().error();
  if constexpr (!std::same_as<std::remove_cvref_t<Claim>, EnqueuesNothing>) {
    if (CallOrder::current() != nullptr) {
      if (auto ok = room_in_call(); !ok.has_value()) {
        claim_writes(ok.error());
        return ok.error();
      }
    }
  }
  auto result = operation();
  if (logs_.waiting()) logs_.deliver(CallOrder::current() == nullptr);  // a host call waits for nobody's sink
  if (!result.has_value()) note_failure(result.error());
  return result;
} catch (const std::bad_alloc&) {
  claim_writes(no_host_memory());
  return no_host_memory();
}

template <class Operation, class Claim>
auto LocalServer::enter_on(std::uint64_t stream, Operation&& operation, Claim&& claim_writes) -> decltype(operation()) {
  auto result = enter(operation, claim_writes);
  if (!result.has_value() && !forked()) profiler_.failed(queue_of(stream), result.error());
  return result;
}

}  // namespace kiln::rt
