// The fault records of launches, apart from any device: what a device that is being lost asks them for, while others go on with them.
#include "src/fault_slots.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace kiln;
using namespace kiln::rt;

namespace {

// A launch's record as kernels leave it: all its numbers are n.
void trap_in(ir::FaultRecord& record, std::uint32_t n) {
  const auto put = [](auto& field, std::uint32_t value) { std::atomic_ref(field).store(value, std::memory_order_release); };
  put(record.kind, 1);
  put(record.index, n);
  put(record.extent, n);
  for (unsigned d = 0; d < 3; ++d) {
    put(record.thread[d], n);
    put(record.block[d], n);
  }
  put(record.state, 2);
  put(record.trapped, 1);
}

bool of_one_launch(const Error& error) {
  if (!error.data().bounds) return false;
  const BoundsFault& fault = *error.data().bounds;
  const auto n = static_cast<std::uint32_t>(fault.index);
  const std::array<std::uint32_t, 3> all{n, n, n};
  return n != 0 && fault.extent == n && fault.thread == all && fault.block == all;
}

}  // namespace

TEST_CASE("the trap of a launch that is told of while its record goes to the next one is of one launch only") {
  constexpr std::uint64_t kTold = 20000;
  std::vector<ir::FaultRecord> records(1);
  FaultSlots slots(records);
  Program program;
  program.name = std::make_shared<const std::string>("kernel");
  program.sites.push_back({.memory = "", .operation = "trap", .place = "here:1", .declared = ""});

  std::atomic<std::uint64_t> told{0}, wrong{0};
  std::thread asks([&] {
    while (told < kTold) {
      const auto trap = slots.trap();
      if (trap && !of_one_launch(*trap)) ++wrong;
      if (trap) ++told;
    }
  });
  bool all_cleared = true;
  for (std::uint32_t n = 1; told < kTold; ++n) {
    const auto slot = slots.take(&program);
    all_cleared = all_cleared && slots.left_nothing(*slot) && records[0].kind == 0 && records[0].extent == 0 && records[0].block[2] == 0;
    trap_in(records[0], n);
    for (std::uint32_t look = n % 32; look != 0; --look) (void)told.load();  // for as long as the other may need, or not
    slots.give_back({&*slot, 1});
  }
  asks.join();
  const auto slot = slots.take(&program);
  trap_in(records[*slot], 7);
  CHECK(all_cleared);
  CHECK(wrong == 0);
  CHECK(slots.trap()->data().bounds->thread[1] == 7);
  slots.give_back({&*slot, 1});
  CHECK_FALSE(slots.trap().has_value());
}
