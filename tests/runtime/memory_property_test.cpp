// Random steps on memory, held against a model that knows every byte that is given out, who must come after whom, and what a graph has.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "runtime/memory_device.h"

using namespace kiln;
using namespace kiln::test;
using rt::After;

namespace {

class Model {
 public:
  explicit Model(std::uint32_t seed) : random_(seed), m_(64, layout(seed)) {
    m_.device.traits.alignment = 64;
    m_.device.on_retire = [this](const rt::Storage& block) {
      const auto begin = reinterpret_cast<std::uint64_t>(block.data);
      bool used = false;
      for (const auto& [at, live] : live_) used = used || (at >= begin && at < begin + block.bytes);
      for (const Pinned& p : pinned_) used = used || (p.begin >= begin && p.begin < begin + block.bytes);
      if (used) ++wrong_;
      for (const auto& busy : busy_)
        if (busy.begin >= begin && busy.begin < begin + block.bytes && !m_.device.done(busy.event)) ++wrong_;
      std::erase_if(busy_, [&](const Busy& b) { return b.begin >= begin && b.begin < begin + block.bytes; });
    };
  }
  ~Model() {
    graphs_.clear();
    m_.device.on_retire = nullptr;
    for (auto& [begin, live] : live_) m_.drop(std::move(live.storage), live.events);
    m_.device.finish_all();
  }

  void step() {
    const auto pick = below(1000);
    if (pick < 420) allocate();
    else if (pick < 780) drop_any();
    else if (pick < 930) use();
    else if (pick < 960) finish();
    else if (pick < 970) cleanup();
    else if (pick < 985) capture();
    else if (pick < 990) persistent();
    else if (pick < 992) install();
    else move();
  }
  void check() {
    std::uint64_t in_use = 0, taken = 0, end = 0;
    for (const auto& [begin, live] : live_) {
      REQUIRE(begin >= end);
      REQUIRE(begin % 64 == 0);
      end = begin + live.storage->bytes;
      in_use += live.storage->bytes;
      taken += live.storage->slice->bytes;
      REQUIRE(holds(begin, live));
    }
    const MemoryReport r = m_.report();
    REQUIRE(r.total.allocations == live_.size());
    REQUIRE(r.total.bytes_in_use == in_use);
    REQUIRE(r.total.bytes_padding == taken - in_use);
    REQUIRE(r.total.bytes_reserved + r.bytes_leaving == m_.device.block_bytes());
    REQUIRE(r.total.bytes_reserved >= taken);
    MemoryUsage sum;
    for (const PoolReport& p : r.pools) {
      sum.allocations += p.usage.allocations;
      sum.bytes_in_use += p.usage.bytes_in_use;
      sum.bytes_padding += p.usage.bytes_padding;
      sum.bytes_reserved += p.usage.bytes_reserved;
      REQUIRE((p.cap == 0 || p.usage.bytes_reserved <= p.cap));
      REQUIRE(p.pages <= p.pages_peak);
    }
    REQUIRE(sum == r.total);
    MemoryUsage streams;
    for (std::uint64_t s = 0; s < kStreams; ++s) {
      const auto of = m_.manager->report(s);
      if (!of.has_value()) continue;
      streams.allocations += of->total.allocations;
      streams.bytes_in_use += of->total.bytes_in_use;
      streams.bytes_padding += of->total.bytes_padding;
    }
    REQUIRE(streams.allocations == sum.allocations);
    REQUIRE(streams.bytes_in_use == sum.bytes_in_use);
    REQUIRE(streams.bytes_padding == sum.bytes_padding);
    REQUIRE(wrong_ == 0);
  }
  // All is given back, and nothing is left.
  void end() {
    pinned_.clear();
    pin_later_.clear();
    graphs_.clear();
    while (!live_.empty()) drop(live_.begin());
    m_.manager->cleanup().value();
    check();
    CHECK(m_.total() == MemoryUsage{});
    CHECK(m_.device.blocks() == 0);
  }
  std::uint64_t refused() const { return refused_; }
  std::uint64_t moved() const { return moved_; }
  std::uint64_t pins() const { return pins_; }

 private:
  static constexpr std::uint64_t kStreams = 4;
  struct Live {
    MemoryBench::Block storage;
    std::uint64_t stream = 0;
    std::uint8_t content = 0;
    After events;
    bool fixed = false;
  };
  struct Busy {
    std::uint64_t begin = 0, end = 0;
    rt::Event event;
  };
  struct Pinned {
    std::uint64_t begin = 0, end = 0;
    const void* graph = nullptr;
  };
  struct Graph {
    Graph(rt::MemoryManager& m, std::uint64_t s) : capture(m, s), stream(s) {}
    rt::MemoryCapture capture;
    std::uint64_t stream;
    int state = 0;  // 1 warm-up, 2 recording, 3 sealed
  };
  using At = std::map<std::uint64_t, Live>::iterator;

  static std::vector<PoolConfig> layout(std::uint64_t kind) {
    switch (kind % 4) {
      case 0: return {sliced(4096, 0, 1024), sliced(32768), exclusive()};
      case 1: return {exclusive()};
      case 2: return {sliced(1 << 16, 1 << 18), {PoolKind::Exclusive, kAnySize, 0, 1 << 19, 50}};
      default: return {sliced(8192), direct()};
    }
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  static bool holds(std::uint64_t begin, const Live& live) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(begin);
    const std::uint64_t n = live.storage->bytes;
    return bytes[0] == live.content && bytes[n - 1] == live.content && bytes[n / 2] == live.content;
  }
  Graph* open(std::uint64_t stream) {
    for (auto& g : graphs_)
      if (g->stream == stream && (g->state == 1 || g->state == 2)) return g.get();
    return nullptr;
  }

  void allocate() {
    const std::uint64_t stream = below(kStreams), bytes = below(8) == 0 ? 1 + below(60000) : 1 + below(2000);
    const auto before = m_.device.allocations();
    auto given = m_.take(bytes, stream);
    Graph* graph = open(stream);
    if (graph != nullptr && graph->state == 2) REQUIRE(m_.device.allocations() == before);
    if (!given.has_value()) {
      ++refused_;
      const bool known = given.error().code() == ErrorCode::PoolCapacityExceeded || given.error().code() == ErrorCode::OutOfMemory ||
                         given.error().code() == ErrorCode::PageUpdateForbidden || given.error().code() == ErrorCode::PageSizesExhausted;
      REQUIRE(known);
      return;
    }
    add(std::move(*given), stream, static_cast<std::uint8_t>(random_()), graph);
  }
  void add(MemoryBench::Block storage, std::uint64_t stream, std::uint8_t content, Graph* graph) {
    const auto begin = reinterpret_cast<std::uint64_t>(storage->data);
    const std::uint64_t end = begin + storage->bytes;
    const auto next = live_.lower_bound(begin);
    REQUIRE((next == live_.end() || end <= next->first));
    if (next != live_.begin()) REQUIRE(std::prev(next)->first + std::prev(next)->second.storage->bytes <= begin);
    for (const Pinned& p : pinned_) REQUIRE((end <= p.begin || p.end <= begin));
    // Who had it before is through with it, or the new one comes after.
    for (const Busy& b : busy_) {
      if (end <= b.begin || b.end <= begin || m_.device.done(b.event)) continue;
      bool comes_after = false;
      storage->after.for_each(
          [&](rt::Event e) { comes_after = comes_after || (e.queue == b.event.queue && e.position >= b.event.position); });
      REQUIRE(comes_after);
    }
    std::memset(storage->data, content, storage->bytes);
    Live live{std::move(storage), stream, content, {}, false};
    live.events = live.storage->after;
    if (graph != nullptr && graph->state == 2) {
      pin_later_.push_back({begin, graph});
      ++pins_;
    }
    live_.emplace(begin, std::move(live));
  }
  void drop_any() {
    if (live_.empty()) return;
    drop(std::next(live_.begin(), static_cast<std::ptrdiff_t>(below(live_.size()))));
  }
  void drop(At at) {
    Live& live = at->second;
    REQUIRE(holds(at->first, live));
    const std::uint64_t begin = at->first, end = begin + live.storage->bytes;
    live.events.for_each([&](rt::Event e) {
      if (!m_.device.done(e)) busy_.push_back({begin, end, e});
    });
    // What a graph uses, or was freed in its window, nobody gets before the graph goes.
    for (const auto& [where, graph] : pin_later_)
      if (where == begin) pinned_.push_back({begin, end, graph});
    std::erase_if(pin_later_, [&](const auto& p) { return p.first == begin; });
    if (Graph* graph = open(live.stream); graph != nullptr && graph->state == 2) pinned_.push_back({begin, end, graph});
    Live dropped = std::move(live);
    live_.erase(at);
    m_.drop(std::move(dropped.storage), dropped.events);
  }
  void use() {
    if (live_.empty()) return;
    Live& live = std::next(live_.begin(), static_cast<std::ptrdiff_t>(below(live_.size())))->second;
    live.events.add(m_.device.start(static_cast<std::uint32_t>(below(6))));
    if (below(20) == 0 && !live.fixed) {
      m_.manager->pin_address(*live.storage);
      live.fixed = true;
    }
  }
  void finish() {
    const auto queue = static_cast<std::uint32_t>(below(6));
    const rt::Event last = m_.device.last(queue);
    if (last.position != 0) m_.device.finish({queue, last.position - std::min(last.position, below(5))});
    std::erase_if(busy_, [&](const Busy& b) { return m_.device.done(b.event); });
  }
  void cleanup() {
    bool captured = false;
    for (const auto& g : graphs_) captured = captured || g->state == 1 || g->state == 2;
    const auto freed = m_.manager->cleanup();
    REQUIRE(freed.has_value() == !captured);
    if (captured) REQUIRE(freed.error().code() == ErrorCode::PageUpdateForbidden);
  }
  void persistent() {
    m_.manager->enter_persistent();
    for (int i = 0; i < 3; ++i) allocate();
    m_.manager->leave_persistent();
  }
  void install() {
    bool captured = false;
    for (const auto& g : graphs_) captured = captured || g->state == 1 || g->state == 2;
    const auto done = m_.manager->install(
        {layout(random_()), below(2) == 0 ? std::optional<std::uint64_t>(below(1 << 18)) : std::nullopt, PersistentPolicy::Enabled});
    REQUIRE(done.has_value() == !captured);
  }
  void capture() {
    const std::uint64_t stream = below(kStreams);
    Graph* graph = open(stream);
    if (graph == nullptr) {
      if (graphs_.size() >= 6) {  // one goes
        const auto victim = std::find_if(graphs_.begin(), graphs_.end(), [](const auto& g) { return g->state == 3; });
        if (victim == graphs_.end()) return;
        std::erase_if(pinned_, [&](const Pinned& p) { return p.graph == victim->get(); });
        std::erase_if(pin_later_, [&](const auto& p) { return p.second == victim->get(); });
        After replays;
        replays.add(m_.device.start(2));
        (*victim)->capture.release(replays);
        graphs_.erase(victim);
        return;
      }
      graph = graphs_.emplace_back(std::make_unique<Graph>(*m_.manager, stream)).get();
      REQUIRE((below(2) == 0 ? graph->capture.prime() : graph->capture.begin()).has_value());
      graph->state = 1;
      if (graph->capture.begin().has_value()) graph->state = 2;
      return;
    }
    if (graph->state == 2 && below(2) == 0 && !live_.empty()) {
      const At at = std::next(live_.begin(), static_cast<std::ptrdiff_t>(below(live_.size())));
      graph->capture.use(*at->second.storage);
      pin_later_.push_back({at->first, graph});
      ++pins_;
      return;
    }
    graph->capture.end();
    graph->state = 3;
  }
  // As a server moves memory: by a copy that comes after the work on it.
  void move() {
    if (live_.empty() || m_.manager->captured()) return;
    const At at = std::next(live_.begin(), static_cast<std::ptrdiff_t>(below(live_.size())));
    Live live = std::move(at->second);
    const std::uint64_t begin = at->first, end = begin + live.storage->bytes;
    auto fresh = m_.take(live.storage->bytes, live.stream);
    const bool pinned = std::any_of(pin_later_.begin(), pin_later_.end(), [&](const auto& p) { return p.first == begin; });
    if (!fresh.has_value()) {
      at->second = std::move(live);
      return;
    }
    const After before = (*fresh)->after;
    const bool moved = m_.manager->exchange(*live.storage, **fresh);
    REQUIRE(moved == (!live.fixed && !pinned));
    if (!moved) {
      at->second = std::move(live);
      m_.drop(std::move(*fresh), before);
      return;
    }
    ++moved_;
    live_.erase(at);
    const rt::Event copied = m_.device.start(1);
    After old = live.events;
    old.add(before);
    old.add(copied);
    busy_.push_back({begin, end, copied});
    live.events.for_each([&](rt::Event e) { busy_.push_back({begin, end, e}); });
    std::memcpy(live.storage->data, reinterpret_cast<const void*>(begin), live.storage->bytes);
    live.events = old;
    m_.drop(std::move(*fresh), old);
    const auto to = reinterpret_cast<std::uint64_t>(live.storage->data);
    REQUIRE(live_.emplace(to, std::move(live)).second);
  }

  std::mt19937 random_;
  MemoryBench m_;
  std::map<std::uint64_t, Live> live_;
  std::vector<Busy> busy_;
  std::vector<Pinned> pinned_;
  std::vector<std::pair<std::uint64_t, const void*>> pin_later_;  // live memory that a graph uses
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::uint64_t wrong_ = 0, refused_ = 0, moved_ = 0, pins_ = 0;
};

}  // namespace

TEST_CASE("a hundred thousand random steps of allocating, freeing, using, cleaning up, capturing and moving keep every rule") {
  const char* more = std::getenv("KILN_MEMORY_STEPS");
  const std::uint64_t steps = more != nullptr ? std::strtoull(more, nullptr, 10) : 100'000;
  std::uint64_t refused = 0, moved = 0, pins = 0;
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    Model model(seed);
    for (std::uint64_t i = 0; i < steps / 8; ++i) {
      CAPTURE(i);
      model.step();
      if (i % 64 == 0) model.check();
    }
    model.check();
    refused += model.refused();
    moved += model.moved();
    pins += model.pins();
    model.end();
  }
  CHECK(refused > 0);  // the rare ways were gone, too
  CHECK(moved > 0);
  CHECK(pins > 0);
}

TEST_CASE("threads allocate and free at the same time, and nothing is given out twice") {
  MemoryBench m(64, {sliced(1 << 16, 0, 4096), exclusive()});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<std::pair<MemoryBench::Block, std::uint8_t>> mine;
      for (int i = 0; i < 5000; ++i) {
        if (mine.size() < 30 && random() % 2 == 0) {
          auto block = m.take(1 + random() % 6000, t);
          if (!block.has_value()) {
            ++wrong;
            continue;
          }
          const auto content = static_cast<std::uint8_t>(random());
          std::memset((*block)->data, content, (*block)->bytes);
          mine.emplace_back(std::move(*block), content);
        } else if (!mine.empty()) {
          auto [block, content] = std::move(mine[random() % mine.size()]);
          std::swap(mine.back(), *std::find_if(mine.begin(), mine.end(), [](const auto& each) { return each.first == nullptr; }));
          mine.pop_back();
          const auto* bytes = static_cast<const std::uint8_t*>(block->data);
          if (bytes[0] != content || bytes[block->bytes - 1] != content) ++wrong;
          After after;
          after.add(m.device.start(t));
          m.drop(std::move(block), after);
        } else {
          m.device.finish({t, m.device.last(t).position});
        }
        if (i % 500 == 0 && !m.manager->cleanup().has_value()) ++wrong;
        if (i % 100 == 0) (void)m.report();
      }
      for (auto& [block, content] : mine) m.drop(std::move(block));
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  m.device.finish_all();
  m.manager->cleanup().value();
  CHECK(m.total() == MemoryUsage{});
  CHECK(m.device.blocks() == 0);
}
