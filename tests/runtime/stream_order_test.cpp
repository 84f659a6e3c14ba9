// A buffer orders the streams that use it, on each device: one stream is held back, so that the other one, which is free, would be first.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/graph_devices.h"
#include "runtime/held.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("whatever a free stream does with a buffer comes after what a held one was given to do with it, and waits for nothing else") {
  const Client client = graph_client();
  struct Operation {
    const char* name;
    bool writes;
    std::function<Result<void>(const Stream&, Buffer<u32>& shared, Buffer<u32>& other, u32 value)> issue;  // reads: shared -> other
  };
  const Operation operations[] = {
      {"a launch that reads", false,
       [](const Stream& s, auto& shared, auto& other, u32) { return run(s, kernels().copy, shared.arg(), other.arg()); }},
      {"a copy from it", false,
       [](const Stream& s, auto& shared, auto& other, u32) { return rt::copy(s, other.binding(), shared.binding()); }},
      {"a launch that writes", true,
       [](const Stream& s, auto& shared, auto&, u32 value) { return run(s, kernels().fill, shared.arg(), scalar(value)); }},
      {"a copy to it", true,
       [&](const Stream& s, auto& shared, auto&, u32 value) {
         const auto from = made(client, of(4, value));
         return rt::copy(s, shared.binding(), from.binding());
       }},
      {"a write from the host", true, [](const Stream& s, auto& shared, auto&, u32 value) { return shared.write(s, of(4, value)); }},
  };
  for (const Operation& first : operations)
    for (const Operation& second : operations) {
      CAPTURE(std::string(first.name));
      CAPTURE(std::string(second.name));
      const Stream slow = client.stream(), free = client.stream();
      auto shared = made(client, of(4, 1)), one = made(client, of(4, 0)), two = made(client, of(4, 0)), beside = made(client, of(4, 0));
      Held held(slow);
      REQUIRE(first.issue(slow, shared, one, 2).has_value());
      REQUIRE(second.issue(free, shared, two, 3).has_value());
      const Stream third = client.stream();
      REQUIRE(run(third, kernels().fill, beside.arg(), scalar(5)).has_value());
      CHECK(beside.read(third).value() == of(4, 5));  // while the first one is held
      held.open();
      const u32 after_first = first.writes ? 2 : 1, at_last = second.writes ? 3 : after_first;
      CHECK(shared.read(third).value() == of(4, at_last));
      if (!first.writes) CHECK(one.read(third).value() == of(4, 1));
      if (!second.writes) CHECK(two.read(third).value() == of(4, after_first));
    }
  CHECK(client.sync().has_value());
}
