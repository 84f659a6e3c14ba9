// Where the host has no memory: reads, writes, and operations that go on on threads of the runtime.
#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "cpu/cpu_device.h"
#include "kiln/runtime/operation.h"
#include "kiln/runtime/strided.h"
#include "src/server.h"
#include "support/allocations.h"
#include "support/each_client.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// The calling thread, one of the runtime's, has memory for so many allocations more, for good.
void starve_this_thread(std::uint64_t after) {
  alignas(NoMemory) static thread_local std::byte room[sizeof(NoMemory)];
  new (room) NoMemory(after);
}
// Where it runs dry is a thread of the runtime: whoever waits for the operation has memory.
Operation<void> starving(std::uint64_t after) {
  return op::call([] {}).and_then([after] {
    Operation<void> next = op::nothing();
    starve_this_thread(after);
    return next;
  });
}
Operation<u32> reads_twice(Buffer<u32> b, std::uint64_t after) {
  (co_await starving(after)).value();
  const std::vector<u32> first = (co_await op::read(b)).value();
  const std::vector<u32> second = (co_await op::read(b)).value();
  co_return first[0] + second[3];
}
bool is_out_of_memory(const Error& error) { return error.root().code() == ErrorCode::OutOfMemory; }

}  // namespace

TEST_CASE("an operation that runs out of host memory on a thread of the runtime comes to its end and says so, wherever that is") {
  if (!allocations_counted()) return;
  using Make = std::function<Operation<u32>(const Buffer<u32>&, std::uint64_t)>;
  const std::pair<const char*, Make> rows[] = {
      {"a read",
       [](const Buffer<u32>& b, std::uint64_t n) {
         return starving(n).and_then([b] { return op::read(b); }).map([](const std::vector<u32>& v) { return v[0] + v[3]; });
       }},
      {"a call", [](const Buffer<u32>&, std::uint64_t n) { return starving(n).and_then([] { return op::call([] { return 14u; }); }); }},
      {"one after the other",
       [](const Buffer<u32>& b, std::uint64_t n) {
         return starving(n)
             .and_then([b] { return op::zip(op::read(b), op::call([] { return 7u; }), op::nothing()); })
             .map([](const std::vector<u32>& v, u32 c, std::monostate) { return v[0] + c; });
       }},
      {"at a time",
       [](const Buffer<u32>& b, std::uint64_t n) {
         return starving(n)
             .and_then([b] { return op::when_all(op::read(b), op::call([] { return 7u; }), op::nothing()); })
             .map([](const std::vector<u32>& v, u32 c, std::monostate) { return v[0] + c; });
       }},
      {"shared",
       [](const Buffer<u32>& b, std::uint64_t n) {
         auto shared = op::share(starving(n).and_then([b] { return op::read(b); }));
         return op::when_all(shared.get(), shared.get()).map([](const auto& x, const auto& y) { return (*x)[0] + (*y)[3]; });
       }},
      {"a coroutine", [](const Buffer<u32>& b, std::uint64_t n) { return reads_twice(b, n); }},
  };
  for (const auto& [what, make] : rows) {
    CAPTURE(what);
    bool went_well = false;
    for (std::uint64_t after = 0; after < 200 && !went_well; ++after) {
      CAPTURE(after);
      const Client client(rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}}).value()));  // its threads end with it
      const auto b = Buffer<u32>::from_host(client, std::vector<u32>(4, 7)).value();
      const auto result = make(b, after).sync(client.stream());
      went_well = result.has_value();
      if (went_well) CHECK(*result == 14);
      else CHECK_MESSAGE(is_out_of_memory(result.error()), result.error().text());
    }
    CHECK(went_well);
  }
}

TEST_CASE("a read or a write of elements that the host has no memory for is an error, no exception, and a write claims its target") {
  if (!allocations_counted()) return;
  const Client client = each_client();
  const std::vector<bool> bits(40, true);
  auto b = Buffer<bool>::from_host(client, bits).value();
  auto v = StridedView<bool, 1>(b);
  REQUIRE(client.sync().has_value());
  Result<std::vector<bool>> read = bits, part = bits;
  Result<void> written, part_written;
  {
    const NoMemory none;
    read = b.read();
    part = v.read();
  }
  for (const auto* result : {&read, &part}) {
    REQUIRE_FALSE(result->has_value());
    CHECK(is_out_of_memory(result->error()));
  }
  CHECK(b.read().value() == bits);
  {
    const NoMemory none(1);  // for none of the bytes, had they to be copied first
    written = b.write(bits);
  }
  if (!written.has_value()) {
    CHECK(is_out_of_memory(written.error()));
    CHECK_FALSE(b.read().has_value());
  }
}
