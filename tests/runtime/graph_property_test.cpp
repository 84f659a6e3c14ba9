// Random programs captured and replayed leave the same bytes as issuing them.
#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <vector>

#include "runtime/graph_devices.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr std::size_t kBuffers = 4, kElements = 12;

// One world of buffers; a program is a list of functions of it and a stream.
struct World {
  std::vector<Buffer<u32>> buffers;
  explicit World(const Client& client) {
    for (std::size_t b = 0; b < kBuffers; ++b) buffers.push_back(made(client, of(kElements, static_cast<u32>(b))));
  }
};
using Step = std::function<void(World&, const Stream&)>;

struct Random {
  std::mt19937 engine;
  std::size_t below(std::size_t n) { return engine() % n; }
  // A part of a buffer.
  struct Part {
    std::size_t buffer, first, count;
    Buffer<u32> of(const World& w) const { return w.buffers[buffer].slice(first, count); }
  };
  Part part(std::size_t count) { return {below(kBuffers), below(kElements - count + 1), count}; }

  Step step() {
    const std::size_t count = 1 + below(kElements);
    const Part to = part(count);
    Part from = part(count);
    if (from.buffer == to.buffer) from.buffer = (from.buffer + 1) % kBuffers;
    const u32 value = static_cast<u32>(engine());
    switch (below(6)) {
      case 0: return [=](World& w, const Stream& s) { run(s, kernels().fill, to.of(w).arg(), scalar(value)).value(); };
      case 1: return [=](World& w, const Stream& s) { run(s, kernels().add, to.of(w).arg(), scalar(value)).value(); };
      case 2: return [=](World& w, const Stream& s) { run(s, kernels().copy, from.of(w).arg(), to.of(w).arg()).value(); };
      case 3: return [=](World& w, const Stream& s) { rt::copy(s, to.of(w).binding(), from.of(w).binding()).value(); };
      case 4: return [=](World& w, const Stream& s) { rt::fill_zero(s, to.of(w).binding()).value(); };
      default: return [=](World& w, const Stream& s) { to.of(w).write(s, of_rising(count, value)).value(); };
    }
  }
  static std::vector<u32> of_rising(std::size_t count, u32 first) {
    std::vector<u32> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = first + static_cast<u32>(i);
    return all;
  }
};

}  // namespace

TEST_CASE("random programs captured and replayed on any stream leave the bytes that issuing them leaves") {
  const Client client = graph_client();
  const bool simulated = client.properties().kind == "cuda";
  for (unsigned seed = 0; seed < (simulated ? 12u : 120u); ++seed) {
    CAPTURE(seed);
    Random random{std::mt19937(seed)};
    World issued(client), replayed(client);
    const Stream streams[] = {client.stream(), client.stream(), client.stream()};
    std::vector<std::vector<Step>> programs;
    std::vector<Graph> graphs;
    for (std::size_t p = 1 + random.below(3); p-- > 0;) {
      std::vector<Step>& program = programs.emplace_back();
      for (std::size_t n = 1 + random.below(12); n-- > 0;) program.push_back(random.step());
      const Stream& stream = streams[random.below(3)];
      const auto graph = capture(stream, [&] {
        for (const Step& step : program) step(replayed, stream);
      });
      REQUIRE(graph.has_value());
      graphs.push_back(*graph);
    }
    for (std::size_t round = 1 + random.below(10); round-- > 0;) {
      const std::size_t p = random.below(programs.size());
      for (const Step& step : programs[p]) step(issued, streams[0]);
      REQUIRE(graphs[p].replay(streams[random.below(3)]).has_value());
      if (random.below(3) != 0) continue;
      const Step between = random.step();
      between(issued, streams[0]);
      between(replayed, streams[random.below(3)]);
    }
    for (std::size_t b = 0; b < kBuffers; ++b) CHECK(issued.buffers[b].read().value() == replayed.buffers[b].read().value());
  }
  CHECK(local(client).failures().empty());
}
