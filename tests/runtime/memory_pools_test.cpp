// The memory manager over a device of memory only: the figures of pools, caps, alignment, layouts, deferred frees, reclaiming.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <thread>

#include "runtime/memory_device.h"
#include "src/memory/drop_queue.h"

using namespace kiln;
using namespace kiln::test;
using rt::After;
using rt::DropQueue;

namespace {

bool says(const Error& error, const std::string& what) { return error.text().find(what) != std::string::npos; }
After after(rt::Event e) {
  After a;
  a.add(e);
  return a;
}

}  // namespace

TEST_CASE("what pools take and reserve") {
  struct Row {
    const char* name;
    std::uint64_t alignment;
    std::vector<PoolConfig> pools;
    std::vector<std::uint64_t> sizes;  // all live at once
    MemoryUsage expected;
  };
  const Row rows[] = {
      {"two pieces share a page", 1, {sliced(2048)}, {512, 512}, {2, 1024, 0, 2048}},
      {"what does not fit gets another page", 1, {sliced(1024)}, {768, 768}, {2, 1536, 0, 2048}},
      {"alignment is padding", 50, {sliced(1000)}, {40, 40}, {2, 80, 20, 1000}},
      {"each size goes to the first pool that takes it",
       10,
       {sliced(100), sliced(200), sliced(300), sliced(400)},
       {50, 150, 250, 350},
       {4, 800, 0, 1000}},
      {"exclusive pages are not shared", 1, {exclusive()}, {512, 512}, {2, 1024, 0, 1024}},
      {"a full pool spills to the next", 1, {sliced(1024, 1024), sliced(1024)}, {1024, 1024}, {2, 2048, 0, 2048}},
      {"one arena takes all sizes", 1, {sliced(1 << 20)}, {4096, 512 << 10}, {2, 4096 + (512 << 10), 0, 1 << 20}},
      {"what is larger than a page goes to a pool that takes any size", 32, {sliced(2048, 0), direct()}, {256, 4096}, {2, 4352, 0, 6144}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    MemoryBench m(row.alignment, row.pools);
    std::vector<MemoryBench::Block> all;
    for (const std::uint64_t size : row.sizes) all.push_back(m.get(size));
    CHECK(m.total().allocations == row.expected.allocations);
    CHECK(m.total().bytes_in_use == row.expected.bytes_in_use);
    CHECK(m.total().bytes_padding == row.expected.bytes_padding);
    CHECK(m.total().bytes_reserved == row.expected.bytes_reserved);
    CHECK(m.device.block_bytes() == row.expected.bytes_reserved);
    for (auto& block : all) m.drop(std::move(block));
    CHECK(m.total().allocations == 0);
    CHECK(m.total().bytes_in_use == 0);
    CHECK(m.total().bytes_padding == 0);
    m.manager->cleanup().value();
    CHECK(m.total() == MemoryUsage{});
    CHECK(m.device.blocks() == 0);
  }
}

TEST_CASE("memory that was freed is given out again") {
  MemoryBench m(1, {sliced(512)});
  auto first = m.get(512);
  void* const at = first->data;
  m.drop(std::move(first));
  auto again = m.get(512);
  CHECK(again->data == at);
  CHECK(m.total() == MemoryUsage{1, 512, 0, 512});
  m.drop(std::move(again));
  SUBCASE("in one arena, whatever the sizes") {
    MemoryBench arena(1, {sliced(1 << 20)});
    arena.drop(arena.get(4096));
    auto large = arena.get(512 << 10);
    CHECK(arena.total() == MemoryUsage{1, 512 << 10, 0, 1 << 20});
    arena.drop(std::move(large));
  }
  SUBCASE("the same sizes again in exclusive pages take nothing more") {
    MemoryBench pages(1, {exclusive()});
    MemoryUsage before;
    for (int round = 0; round < 3; ++round) {
      std::vector<MemoryBench::Block> all;
      for (std::uint64_t i = 1; i <= 5; ++i) all.push_back(pages.get(1000 * i));
      if (round > 0) CHECK(pages.total() == before);
      before = pages.total();
      CHECK(pages.device.allocations() == 5);
      for (auto& block : all) pages.drop(std::move(block));
    }
  }
}

TEST_CASE("a pool honours its cap") {
  MemoryBench m(1, {sliced(1024, 2048)});
  for (int round = 0; round < 2; ++round) {
    auto a = m.get(1024), b = m.get(1024);
    const auto third = m.take(1024);
    REQUIRE_FALSE(third.has_value());
    CHECK(third.error().code() == ErrorCode::PoolCapacityExceeded);
    CHECK(third.error().data().limit == 2048u);
    CHECK(third.error().data().requested == 1024u);
    CHECK(m.total().bytes_reserved == 2048);
    m.drop(std::move(a));
    a = m.get(1024);
    CHECK(m.total().bytes_reserved == 2048);
    m.drop(std::move(a));
    m.drop(std::move(b));
    CHECK(m.manager->cleanup().value() == 2048);
    CHECK(m.total().bytes_reserved == 0);
  }
  SUBCASE("and spills to the next pool, each with its peak") {
    MemoryBench two(1, {sliced(1024, 1024), sliced(1024)});
    auto a = two.get(1024), b = two.get(1024);
    CHECK(two.pool(0).usage.bytes_in_use == 1024);
    CHECK(two.pool(1).usage.bytes_in_use == 1024);
    CHECK(two.total().bytes_reserved == 2048);
    two.drop(std::move(a));
    two.drop(std::move(b));
    two.manager->cleanup().value();
    CHECK(two.pool(0).pages == 0);
    CHECK(two.pool(0).pages_peak == 1);
    CHECK(two.pool(1).pages_peak == 1);
    CHECK(two.report().bytes_in_use_peak == 2048);
    CHECK(two.report().bytes_reserved_peak == 2048);
  }
  SUBCASE("memory that others are at work on, rather than none") {
    MemoryBench open(1, {sliced(1024, 1024)});
    const rt::Event busy = open.device.start(7);
    open.drop(open.get(1024), after(busy));
    auto block = open.get(1024);
    CHECK(block->after.has(7));
    CHECK(open.device.waits == 0);
    open.drop(std::move(block));
    open.device.finish_all();
  }
  SUBCASE("an empty page of another size makes room") {
    MemoryBench pages(1, {exclusive(kAnySize, 4096)});
    pages.drop(pages.get(3000));
    auto block = pages.get(4000);
    CHECK(pages.total().bytes_reserved <= 4096);
    pages.drop(std::move(block));
  }
}

TEST_CASE("a cap below the size of a page bounds the pages") {
  rt::SliceNodes nodes;
  MemoryDevice device;
  const rt::EventsOver over(device);
  struct Row {
    std::uint64_t page, cap, alignment, size;
    bool takes;
  };
  for (const Row& row : {Row{2048, 512, 1, 256, true}, Row{2048, 512, 1, 512, true}, Row{2048, 512, 1, 1024, false},
                         Row{2048, 16, 32, 32, false}, Row{2048, 16, 32, 1, false}, Row{2048, 100, 32, 96, true}}) {
    CAPTURE(row.size);
    rt::PagePool pool(0, sliced(row.page, row.cap), row.alignment, 0, nodes, over);
    const std::uint64_t rounded = rt::round_up_to(row.size, row.alignment);
    CHECK(pool.takes(rounded) == row.takes);
    if (!row.takes) continue;
    CHECK(pool.page_for(rounded, false) <= row.cap);
    CHECK(pool.has_room(pool.page_for(rounded, false)));
    pool.expect(pool.page_for(rounded, false));
    CHECK_FALSE(pool.has_room(pool.page_for(rounded, false)));
  }
}

TEST_CASE("cleaning up leaves what lives where it is") {
  MemoryBench m(1, {exclusive()});
  auto a = m.get(1024), b = m.get(1024), c = m.get(1024);
  void* const at = b->data;
  std::memset(b->data, 0x5a, 1024);
  m.drop(std::move(a));
  m.drop(std::move(c));
  CHECK(m.manager->cleanup().value() == 2048);
  CHECK(m.total() == MemoryUsage{1, 1024, 0, 1024});
  CHECK(b->data == at);
  CHECK(std::all_of(static_cast<unsigned char*>(at), static_cast<unsigned char*>(at) + 1024, [](unsigned char v) { return v == 0x5a; }));
  m.drop(std::move(b));
}

TEST_CASE("a layout that cannot be is refused by name, and nothing changes") {
  struct Row {
    const char* rule;
    std::vector<PoolConfig> pools;
    std::optional<std::uint64_t> requested, limit;
  };
  const std::vector<PoolConfig> many(255, sliced(1024));
  const Row rows[] = {
      {"EmptyPoolList", {}, {}, {}},
      {"ZeroSize", {sliced(1024), sliced(0)}, {}, {}},
      {"ZeroSize", {sliced(kAnySize)}, {}, {}},
      {"ZeroSize", {exclusive(0)}, {}, {}},
      {"SliceLargerThanPage", {sliced(1024, 0, 2048)}, 2048, 1024},
      {"CapSmallerThanPage", {sliced(2048, 1024)}, 2048, 1024},
      {"TooManyPages", {sliced(1024, std::uint64_t{64} << 30)}, 67108864, 65536},
      {"TooManyPools", many, 255, 254},
      {"PersistentPool", {{PoolKind::Persistent, 1024, 0, 0, 0}}, {}, {}},
      {"UnknownPoolKind", {{static_cast<PoolKind>(77), 1024, 0, 0, 0}}, {}, {}},
  };
  MemoryBench m(32, {sliced(4096)});
  const MemoryReport before = m.report();
  for (const Row& row : rows) {
    CAPTURE(row.rule);
    const auto result = m.manager->install({row.pools, {}, PersistentPolicy::Enabled});
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code() == ErrorCode::Validation);
    CHECK(result.error().rule() == row.rule);
    CHECK(result.error().data().requested == row.requested);
    CHECK(result.error().data().limit == row.limit);
    CHECK(m.report() == before);
  }
  CHECK(m.manager->install({std::vector<PoolConfig>(254, sliced(1024)), {}, PersistentPolicy::Enabled}).has_value());
  REQUIRE(m.manager->install({{sliced(1000)}, {}, PersistentPolicy::Enabled}).has_value());
  CHECK(m.pool(0).page_bytes == 1024);  // rounded up to the alignment
  DeviceProperties device;
  device.memory_bytes = std::uint64_t{16} << 30;
  CHECK(m.manager->install(MemoryPools::sub_slices(device)).has_value());
  CHECK(m.manager->install(MemoryPools::exclusive_pages()).has_value());
}

TEST_CASE("a size that no pool takes is an error that names it, and one beyond the device another") {
  MemoryBench m(1, {sliced(1024)});
  const auto none = m.take(2048);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code() == ErrorCode::PageSizesExhausted);
  CHECK(none.error().data().requested == 2048u);
  const auto never = m.take(std::uint64_t{2} << 40);
  REQUIRE_FALSE(never.has_value());
  CHECK(never.error().code() == ErrorCode::BufferTooBig);
  CHECK_FALSE(never.error().may_succeed_after_reclaim());
  CHECK(m.device.allocations() == 0);
  m.drop(m.get(1024));
}

TEST_CASE("windows of persistent memory nest, are a thread's own, and their memory stays") {
  MemoryBench m(1, {sliced(1024)});
  m.manager->enter_persistent();
  m.manager->enter_persistent();
  m.manager->leave_persistent();
  auto weights = m.get(1024);
  CHECK(m.persistent().usage.bytes_in_use == 1024);
  CHECK(m.pool(0).pages_peak == 0);
  std::thread([&] { m.drop(m.get(512)); }).join();
  CHECK(m.pool(0).pages_peak == 1);
  CHECK(m.persistent().usage.bytes_in_use == 1024);
  m.manager->leave_persistent();
  auto other = m.get(1024);
  CHECK(m.persistent().usage.allocations == 1);
  m.drop(std::move(other));
  m.drop(std::move(weights));
  CHECK(m.persistent().pages == 1);  // kept until a cleanup
  struct Row {
    PersistentPolicy policy;
    bool window;
    std::uint64_t bytes;
    bool persistent;
  };
  for (const Row& row : {Row{PersistentPolicy::Enabled, true, 1024, true}, Row{PersistentPolicy::Enabled, false, 1024, false},
                         Row{PersistentPolicy::SizeMatch, false, 1024, true}, Row{PersistentPolicy::SizeMatch, false, 1000, false},
                         Row{PersistentPolicy::Disabled, true, 1024, false}, Row{PersistentPolicy::Enforced, false, 700, true}}) {
    CAPTURE(static_cast<int>(row.policy));
    CAPTURE(row.bytes);
    REQUIRE(m.manager->install({{sliced(1024)}, {}, row.policy}).has_value());
    if (row.window) m.manager->enter_persistent();
    auto block = m.get(row.bytes);
    if (row.window) m.manager->leave_persistent();
    CHECK(m.persistent().usage.allocations == (row.persistent ? 1 : 0));
    m.drop(std::move(block));
  }
  m.manager->cleanup().value();
  CHECK(m.persistent().pages == 0);
}

TEST_CASE("memory whose work is open is its stream's at once, others' after that work, and the device's when it is over") {
  MemoryBench m(1, {sliced(1024)});
  const std::uint64_t mine = 3, theirs = 4;
  const rt::Event busy = m.device.start(rt::queue_of(mine));
  auto first = m.get(1024, mine);
  void* const at = first->data;
  m.drop(std::move(first), after(busy));
  SUBCASE("the queue that it waits for has it at once") {
    auto again = m.get(1024, mine);
    CHECK(again->data == at);
    CHECK(again->after.has(busy.queue));
    m.drop(std::move(again));
  }
  SUBCASE("another one has memory of its own") {
    auto again = m.get(1024, theirs);
    CHECK(again->data != at);
    CHECK(again->after.empty());
    m.drop(std::move(again));
  }
  SUBCASE("unless memory is dear") {
    m.device.traits.reuse_first = true;
    m.device.traits.pools.pools = {exclusive()};
    rt::MemoryManager dear(m.device);
    auto block = dear.allocate(1 << 20, {theirs, false}).value();
    const void* was = block->data;
    dear.retire(std::move(block), after(busy));
    block = dear.allocate(1 << 20, {mine + 107, false}).value();
    CHECK(block->data == was);
    CHECK(block->after.has(busy.queue));
    dear.retire(std::move(block), after(busy));
    {
      const rt::InHostCall here;  // where the work may be behind this very call
      auto other = dear.allocate(1 << 20, {mine + 107, false}).value();
      CHECK(other->data != was);
      dear.retire(std::move(other), {});
    }
    dear.cleanup().value();
    m.device.finish_all();
  }
  SUBCASE("a cleanup waits for it") {
    CHECK(m.device.waits == 0);
    CHECK(m.manager->cleanup().value() == 1024);
    CHECK(m.device.waits == 1);
  }
  SUBCASE("what is over is anybody's, though nobody told the manager") {
    m.device.finish_all();
    auto again = m.get(1024, theirs);
    CHECK(again->data == at);
    CHECK(again->after.empty());
    m.drop(std::move(again));
  }
  m.device.finish_all();
}

TEST_CASE("out of memory: what is unused goes back and it is tried once more, once") {
  MemoryBench m(1, {exclusive()});
  m.device.room = 10000;
  auto first = m.get(3000);
  m.drop(m.get(3000), after(m.device.start(5)));
  auto large = m.get(6000);  // fits once the second one is gone
  CHECK(m.device.waits == 1);
  CHECK(m.total().bytes_in_use == 9000);
  const auto before = m.device.allocations();
  unsigned asked = 0;
  m.device.on_allocate = [&](std::uint64_t) {
    ++asked;
    return std::nullopt;
  };
  const auto impossible = m.take(5000);
  REQUIRE_FALSE(impossible.has_value());
  CHECK(impossible.error().code() == ErrorCode::OutOfMemory);
  CHECK(asked == 2);
  CHECK(m.device.allocations() == before);
  for (const char* word : {"5000 bytes", "free:", "pooled:", "given back before the second attempt: 0"})
    CHECK(says(impossible.error(), word));
  m.drop(m.get(500));
  // What cannot be helped by it is not tried again.
  asked = 0;
  m.device.on_allocate = [&](std::uint64_t) -> std::optional<Error> {
    ++asked;
    return Error(ErrorCode::BufferTooBig, "never");
  };
  CHECK_FALSE(m.take(100).has_value());
  CHECK(asked == 1);
  m.device.on_allocate = nullptr;
  m.drop(std::move(first));
  m.drop(std::move(large));
  m.device.finish_all();
}

TEST_CASE("no more empty pages are kept than is said, and none that nobody wants for long") {
  MemoryBench m(1, {exclusive()});
  REQUIRE(m.manager->install({{exclusive()}, 4096, PersistentPolicy::Enabled}).has_value());
  std::vector<MemoryBench::Block> all;
  for (int i = 0; i < 10; ++i) all.push_back(m.get(1024));
  for (auto& block : all) m.drop(std::move(block));
  CHECK(m.total().bytes_reserved == 4096);
  CHECK(m.report().bytes_leaving == 6 * 1024);
  m.manager->cleanup().value();
  CHECK(m.device.blocks() == 0);
  REQUIRE(m.manager->install({{{PoolKind::Exclusive, kAnySize, 0, 0, 100}}, {}, PersistentPolicy::Enabled}).has_value());
  m.drop(m.get(50000));
  for (int i = 0; i < 100; ++i) m.drop(m.get(1024));
  CHECK(m.pool(0).pages == 2);
  for (int i = 0; i < 10; ++i) m.drop(m.get(1024));
  CHECK(m.pool(0).pages == 1);
}

TEST_CASE("memory on its way to the device waits for company: 64 pieces or 64 MiB, behind fences") {
  MemoryDevice device;
  const auto block = [&](std::uint64_t bytes, After events = {}) {
    auto storage = std::make_unique<rt::Storage>();
    storage->bytes = bytes;
    storage->after = events;
    return storage;
  };
  const auto count = [](rt::Storage* list) {
    std::size_t n = 0;
    while (list != nullptr) {
      delete std::exchange(list, list->next);
      ++n;
    }
    return n;
  };
  unsigned asked = 0;
  bool over = true;
  const auto passed = [&](const After&) {
    ++asked;
    return over;
  };
  DropQueue queue;
  for (int i = 0; i < 63; ++i) queue.push(block(1000));
  CHECK_FALSE(queue.due());
  SUBCASE("by number") {
    queue.push(block(1));
    CHECK(queue.due());
  }
  SUBCASE("by size, in 64 bits") {
    queue.push(block(std::uint64_t{64} << 20));
    CHECK(queue.due());
    queue.push(block(std::uint64_t{1} << 33));
    queue.push(block(std::uint64_t{1} << 33));
    CHECK(queue.bytes() > std::uint64_t{1} << 34);
  }
  SUBCASE("whichever is first, and then it begins anew") {
    queue.push(block(std::uint64_t{100} << 20));
    CHECK(queue.due());
    CHECK(count(queue.flush(passed)) == 0);  // the first one makes a fence and asks for none
    CHECK(asked == 0);
    CHECK_FALSE(queue.due());
    CHECK(queue.buffers() == 0);
    CHECK(queue.fenced());
    queue.push(block(10));
    CHECK(count(queue.flush(passed)) == 64);  // the second one asks for the first one's
    CHECK(asked == 1);
    queue.push(block(10));
    over = false;
    CHECK(count(queue.flush(passed)) == 0);  // the third one for the second one's; both wait on
    CHECK(asked == 2);
    over = true;
    CHECK(count(queue.settle(passed)) == 2);
    CHECK(queue.empty());
  }
  SUBCASE("the fence is the events of what is behind it") {
    queue.push(block(10, after(device.start(2))));
    queue.push(block(10, after(device.start(9))));
    queue.flush(passed);
    bool has = false;
    CHECK(count(queue.settle([&](const After& fence) {
            has = fence.has(2) && fence.has(9);
            return true;
          })) == 65);
    CHECK(has);
  }
  const std::size_t waiting = queue.buffers() + (queue.fenced() ? 1 : 0);
  over = true;
  std::size_t left = count(queue.flush(passed));
  left += count(queue.settle(passed));
  CHECK(left >= (waiting == 0 ? 0 : 1));
  CHECK(queue.empty());
}

TEST_CASE("direct memory goes back to the device in batches, and only when its work is over") {
  MemoryBench m(1, {direct()});
  const rt::Event busy = m.device.start(1);
  for (int i = 0; i < 63; ++i) m.drop(m.get(100), after(busy));
  CHECK(m.device.blocks() == 63);
  CHECK(m.total() == MemoryUsage{});
  m.drop(m.get(100), after(busy));
  CHECK(m.device.blocks() == 64);  // fenced
  m.device.finish(busy);
  m.drop(m.get(100));
  CHECK(m.device.blocks() == 1);
  m.manager->cleanup().value();
  CHECK(m.device.blocks() == 0);
}

TEST_CASE("memory for a dry run is counted and not taken until it is used") {
  MemoryBench m(1, {sliced(1024), exclusive()});
  m.manager->enter_lazy();
  auto a = m.get(512), b = m.get(512), c = m.get(100000);
  CHECK(m.device.allocations() == 0);
  CHECK(a->unmapped);
  CHECK(a->data == nullptr);
  CHECK(m.total().allocations == 3);
  CHECK(m.total().bytes_in_use == 101024);
  CHECK(m.total().bytes_reserved == 0);
  CHECK(m.pool(0).pages == 1);
  CHECK(m.pool(0).pages_unmapped == 1);
  CHECK(m.pool(1).pages_unmapped == 1);
  m.manager->leave_lazy();
  REQUIRE(m.manager->map(*b).has_value());
  CHECK(m.device.allocations() == 1);
  CHECK_FALSE(a->unmapped);  // they share a page
  CHECK(static_cast<std::byte*>(b->data) - static_cast<std::byte*>(a->data) == 512);
  CHECK(m.total().bytes_reserved == 1024);
  CHECK(m.pool(0).pages_unmapped == 0);
  REQUIRE(m.manager->map(*b).has_value());
  CHECK(m.device.allocations() == 1);
  m.device.room = 1024;
  const auto failed = m.manager->map(*c);
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().code() == ErrorCode::StorageMappingFailed);
  CHECK(failed.error().root().code() == ErrorCode::OutOfMemory);
  m.device.room = ~std::uint64_t{0};
  CHECK(m.manager->map(*c).has_value());
  m.drop(std::move(a));
  m.drop(std::move(b));
  m.drop(std::move(c));
  SUBCASE("and memory that is really needed is really taken, in such a page, too") {
    m.manager->cleanup().value();
    m.manager->enter_lazy();
    auto d = m.get(500);
    m.manager->leave_lazy();
    auto e = m.get(500);
    CHECK(e->data != nullptr);
    CHECK_FALSE(d->unmapped);
    m.drop(std::move(d));
    m.drop(std::move(e));
  }
}

TEST_CASE("streams have accounts of their own") {
  MemoryBench m(64, {sliced(4096)});
  auto a = m.get(100, 1), b = m.get(200, 2), c = m.get(300, 2);
  const MemoryReport two = m.manager->report(2).value();
  CHECK(two.total == MemoryUsage{2, 500, 76, 576});
  CHECK(two.pools.size() == 1);
  CHECK(two.pools[0].largest_allocation == 300);
  CHECK(m.manager->report(1).value().total == MemoryUsage{1, 100, 28, 128});
  CHECK(m.manager->report(3).error().code() == ErrorCode::NotFound);
  m.drop(std::move(c));
  CHECK(m.manager->report(2).value().total == MemoryUsage{1, 200, 56, 256});
  CHECK(m.manager->report(2).value().bytes_in_use_peak == 500);
  CHECK(m.manager->report(2).value().pools[0].bytes_in_use_peak == 500);
  m.drop(std::move(a));
  m.drop(std::move(b));
  // However many there are, what has nothing is forgotten.
  for (std::uint64_t s = 100; s < 5000; ++s) m.drop(m.get(10, s));
  CHECK(m.manager->report(2).error().code() == ErrorCode::NotFound);
  CHECK(m.manager->report(4999).has_value());
}

TEST_CASE("a lack of host memory or a failing device leaves nothing behind") {
  MemoryBench m(1, {sliced(1024, 1024)});
  m.device.on_allocate = [](std::uint64_t) -> std::optional<Error> { return Error(ErrorCode::IoUnknown, "no"); };
  CHECK_FALSE(m.take(10).has_value());
  m.device.on_allocate = [](std::uint64_t) -> std::optional<Error> { throw std::bad_alloc(); };
  CHECK_THROWS_AS((void)m.take(10), std::bad_alloc);
  m.device.on_allocate = nullptr;
  CHECK(m.total() == MemoryUsage{});
  auto block = m.get(1024);  // the cap counts neither of them
  m.drop(std::move(block));
}
