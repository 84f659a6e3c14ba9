#include "cpu/cpu_device.h"
#include "kiln/runtime/memory.h"
#include "measure.h"
#include "runtime_rows.h"
#include "src/memory/memory_manager.h"
#include "src/server.h"

namespace kiln::bench {

std::vector<Row> runtime_memory() {
  constexpr int kEach = 10'000;
  const auto row = [](const char* name, const char* why) {
    Row r;
    r.name = name;
    r.unit = "ns";
    r.why = why;
    return r;
  };
  std::vector<Row> rows;
  auto device = rt::make_cpu_device({.workers = 1, .arch = {}}).value();
  for (const std::uint64_t bytes : {std::uint64_t{4096}, std::uint64_t{1} << 20}) {
    rt::MemoryManager manager(*device);
    std::vector<std::unique_ptr<rt::Storage>> others;  // between whose memory it lies
    for (std::uint64_t i = 0; i < 100; ++i) others.push_back(manager.allocate(1000 + 777 * (i % 13), {i % 4, false}).value());
    Row pool = row(bytes == 4096 ? "memory: pool allocation and free, 4 KiB" : "memory: pool allocation and free, 1 MiB",
                   "the target is 200 at most");
    measure(pool, 100, 1e9 / kEach, 1,
            [&] {
              for (int i = 0; i < kEach; ++i) manager.retire(manager.allocate(bytes, {1, false}).value(), {});
            },
            {});
    rows.push_back(pool);
    for (auto& other : others) manager.retire(std::move(other), {});
  }
  const Client client(rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}}).value()));
  Row whole = row("memory: a Memory made and dropped, 4 KiB", "what a Buffer costs, claims and log told");
  measure(whole, 100, 1e9 / kEach, 1,
          [&] {
            for (int i = 0; i < kEach; ++i) (void)rt::allocate(client, 4096).value();
          },
          {});
  rows.push_back(whole);
  return rows;
}

}  // namespace kiln::bench
