#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "failure_device.h"
#include "src/failure/launch_log.h"
#include "support/allocations.h"

using namespace kiln;
using namespace kiln::rt;
using namespace kiln::test;
using Bytes = std::vector<std::uint8_t>;

namespace {

MemoryRange mem(std::uint64_t memory, std::uint64_t begin = 0, std::uint64_t end = 100) { return {memory, {begin, end}}; }
const auto kName = std::make_shared<const std::string>("ns::kernel");

LogNote note(LogKind kind, Stamp stamp, std::span<const MemoryRange> reads, std::span<const MemoryRange> writes,
             std::span<const MemoryRange> covers, std::uint32_t slot = kNoSlot) {
  return {.kind = kind,
          .name = kName,
          .stamp = stamp,
          .reads = reads,
          .writes = writes,
          .covers = covers,
          .stream = 3,
          .position = 5,
          .slot = slot};
}
Verdict clean(const LogView&) { return Verdict::clean(); }

}  // namespace

TEST_CASE("a bounds fault of A found late claims the output of B that was queued behind it, but not what the host wrote after A") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(100), b = d.allocate(100), other = d.allocate(100);
  d.launch("A", {out(a.all())}, Fate::FaultsLate);
  d.launch("ns::B", {in(a.all()), out(b.all())});
  d.launch("unrelated", {out(other.all())});
  d.write(a.part(0, 50), 9);
  CHECK(d.check({a.all(), b.all()}));  // not known yet
  CHECK(d.confirm() == 1);
  CHECK(d.read(a.part(0, 50)).value() == Bytes(50, 9));
  CHECK_FALSE(d.read(a.part(49, 51)));
  CHECK(d.read(other.all()));
  const std::string text = text_of(d.read(b.all()));
  CHECK(text ==
        "The memory cannot be read\n"
        "  cause: The bytes were never written (failure #1, still claiming 2 buffers)\n"
        "    voided `B`: it had been enqueued, and read memory 1, which carried the failure\n"
        "    cause: `A` failed\n"
        "      kernel: A");
  CHECK(d.log.size() == 0);
}

TEST_CASE("a launch that read only what the host wrote after the fault is not concerned") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(100), b = d.allocate(100), c = d.allocate(100);
  d.launch("A", {out(a.all())}, Fate::FaultsLate);
  d.write(a.part(0, 50), 9);
  d.launch("B", {in(a.part(0, 50)), out(b.all())});
  d.launch("C", {in(a.part(0, 51)), out(c.all())});
  d.confirm();
  CHECK(d.read(b.all()));
  CHECK_FALSE(d.read(c.all()));
}

TEST_CASE("what a voided launch was to overwrite is not released by it") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(8), b = d.allocate(8);
  d.launch("old", {out(b.all())}, Fate::Fails);
  d.launch("A", {out(a.all())}, Fate::FaultsLate);
  d.launch("B", {in(a.all()), out(b.all())});  // ends the claim of `old`, as far as anybody knows
  CHECK(d.check({b.all()}));
  d.confirm();
  CHECK(text_of(d.read(b.all())).find("`A` failed") != std::string::npos);
}

TEST_CASE("the fault of a launch that ran on claimed bytes is a consequence, and the root is reported") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(8), b = d.allocate(8);
  d.launch("A", {out(a.all())}, Fate::FaultsLate);
  d.launch("B", {in(a.all()), out(b.all())}, Fate::FaultsLate);
  CHECK(d.confirm() == 1);
  const std::string text = text_of(d.read(b.all()));
  CHECK(text.find("`A` failed") != std::string::npos);
  CHECK(text.find("`B` failed") == std::string::npos);
  CHECK(d.store.size() == 1);
}

TEST_CASE("faults that are independent of each other are all reported") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(8), b = d.allocate(8);
  d.launch("A", {out(a.all())}, Fate::FaultsLate);
  d.launch("B", {out(b.all())}, Fate::FaultsLate);
  CHECK(d.confirm() == 2);
  CHECK(text_of(d.read(a.all())).find("`A` failed") != std::string::npos);
  CHECK(text_of(d.read(b.all())).find("`B` failed") != std::string::npos);
}

TEST_CASE("a fault keeps its place in the order: later failures keep their bytes, older ones lose them") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(100);
  d.launch("older", {out(a.part(0, 60))}, Fate::Fails);
  d.launch("A", {strided_out(a.all())}, Fate::FaultsLate);
  d.launch("newer", {out(a.part(50, 100))}, Fate::Fails);
  d.confirm();
  CHECK(text_of(d.read(a.part(0, 50))).find("`A` failed") != std::string::npos);
  CHECK(text_of(d.read(a.part(50, 100))).find("`newer` failed") != std::string::npos);
  CHECK(d.store.size() == 2);
}

TEST_CASE("a fault found after a later launch was confirmed still concerns it") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(8), b = d.allocate(8);
  d.launch("A", {out(a.all())}, Fate::FaultsLate);
  d.launch("B", {in(a.all()), out(b.all())});
  CHECK(d.confirm_if([](const LogView& view) { return *view.name == "B"; }) == 0);
  CHECK(d.log.size() == 2);  // kept as long as something before it is in doubt
  CHECK(d.check({b.all()}));
  CHECK(d.confirm() == 1);
  CHECK_FALSE(d.check({b.all()}));
  CHECK(d.log.size() == 0);
}

TEST_CASE("a fault found while later launches are still running concerns them at once, and their own outcome changes nothing") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(8), b = d.allocate(8), c = d.allocate(8);
  d.launch("A", {out(a.all())}, Fate::FaultsLate);
  d.launch("B", {in(a.all()), out(b.all())}, Fate::FaultsLate);
  CHECK(d.confirm_if([](const LogView& view) { return *view.name == "A"; }) == 1);
  CHECK_FALSE(d.check({b.all()}));
  CHECK(d.launch("C", {in(b.all()), out(c.all())}) == OutcomeKind::Skipped);
  CHECK(d.confirm() == 0);
  CHECK(text_of(d.read(c.all())).find("`A` failed") != std::string::npos);
  CHECK(d.store.size() == 1);
}

TEST_CASE("a read of bytes that carry a failure already names those found late, too, and the newer one of two on the same bytes") {
  FakeDevice device;
  const FakeBuffer x = device.allocate(16);
  device.launch("known", {out(x.all())}, Fate::Fails);
  device.launch("late", {inout(x.part(0, 4))}, Fate::FaultsLate, 7, {ir::Visibility::WriteOnly});
  const rt::LogRead some(device.log, x.all()), first(device.log, x.part(0, 4)), rest(device.log, x.part(4, 16));
  device.launch("behind", {inout(x.part(4, 8))}, Fate::FaultsLate, 7, {ir::Visibility::WriteOnly});
  CHECK(device.confirm() == 2);
  const auto roots = [](const rt::LogRead& read) {
    std::string all;
    const Error error = read.verdict().error();
    for (const Error& cause : error.causes()) all += cause.causes().at(0).kernel() + " ";
    return all;
  };
  CHECK(roots(some) == "late known ");
  CHECK(roots(first) == "late ");
  CHECK(roots(rest) == "known ");
}

TEST_CASE("confirm goes up to the ticket it is given") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(8), b = d.allocate(8);
  d.launch("A", {out(a.all())});
  const Ticket first = d.log.last();
  d.launch("B", {out(b.all())});
  CHECK(first == 1);
  CHECK(d.log.last() == 2);
  std::vector<Ticket> asked;
  d.log.confirm(
      [&](const LogView& view) {
        asked.push_back(view.ticket);
        return Verdict::clean();
      },
      first);
  CHECK(asked == std::vector<Ticket>{1});
  CHECK(d.log.size() == 1);
}

TEST_CASE("the inspector sees what was noted, and each entry's verdict is asked for once") {
  FailureStore store;
  LaunchLog log(store);
  const MemoryRange w[] = {mem(1)};
  CHECK(log.append(note(LogKind::Launch, store.next_stamp(), {}, w, w, 11)) == 1);
  CHECK(log.append(note(LogKind::HostWrite, store.next_stamp(), {}, w, w)) == 2);
  CHECK(log.append(note(LogKind::Graph, store.next_stamp(), {}, w, {}, 12)) == 3);
  log.freed(8);
  std::vector<std::uint32_t> slots;
  const auto inspect = [&](const LogView& view) {
    slots.push_back(view.slot);
    CHECK(*view.name == "ns::kernel");
    CHECK(view.stream == 3);
    CHECK(view.position == 5);
    return view.slot == 12 ? Verdict::clean() : Verdict::pending();
  };
  log.confirm(inspect);
  CHECK(slots == std::vector<std::uint32_t>{11, 12});  // neither the host write nor the free
  log.confirm(inspect);
  CHECK(slots == std::vector<std::uint32_t>{11, 12, 11});
  CHECK(log.size() == 4);
  log.confirm(clean);
  CHECK(log.size() == 0);
}

TEST_CASE("host writes and frees are not even noted while nothing is in doubt") {
  FailureStore store;
  LaunchLog log(store);
  const MemoryRange w[] = {mem(1)};
  for (int i = 0; i < 100; ++i) {
    log.append(note(LogKind::HostWrite, store.next_stamp(), {}, w, w));
    log.freed(2);
  }
  CHECK(log.size() == 0);
}

TEST_CASE("an inspector that throws loses nothing of what was found before it") {
  FailureStore store;
  LaunchLog log(store);
  const MemoryRange a[] = {mem(1)}, b[] = {mem(2)};
  log.append(note(LogKind::Launch, store.next_stamp(), {}, a, a, 1));
  log.append(note(LogKind::Launch, store.next_stamp(), a, b, b, 2));
  CHECK_THROWS_WITH(log.confirm([](const LogView& view) -> Verdict {
    if (view.slot == 2) throw std::runtime_error("out");
    return Verdict::faulted(Error(ErrorCode::Bounds, "found"));
  }),
                    "out");
  CHECK(store.read_failure(a));
  CHECK(store.read_failure(b));
  log.confirm(clean);
  CHECK(log.size() == 0);
}

TEST_CASE("a fault without an error, and one that wrote nothing, are no trouble") {
  FailureStore store;
  LaunchLog log(store);
  const MemoryRange a[] = {mem(1)};
  log.append(note(LogKind::Launch, store.next_stamp(), {}, a, a));
  log.append(note(LogKind::Launch, store.next_stamp(), {}, {}, {}));
  CHECK(log.confirm([](const LogView&) { return Verdict{Verdict::Kind::Faulted, std::nullopt}; }) == 2);
  CHECK(store.read_failure(a)->error.text() == "The operation failed on the device");
  CHECK(store.size() == 1);
}

TEST_CASE("memory that was freed before the fault was found carries nothing, but what read it before does") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(8), b = d.allocate(8);
  d.launch("A", {out(a.all())}, Fate::FaultsLate);
  d.launch("B", {in(a.all()), out(b.all())});
  d.free(a);
  d.confirm();
  CHECK_FALSE(d.check({b.all()}));
  CHECK(d.store.tagged(1) == 1);
  d.free(b);
  CHECK(d.store.empty());
}

TEST_CASE("a fault found while a launch was being enqueued is not missed by it") {
  FailureStore store;
  LaunchLog log(store);
  const MemoryRange a[] = {mem(1)}, b[] = {mem(2)};
  log.append(note(LogKind::Launch, store.next_stamp(), {}, a, a, 1));
  const auto find = [&] { log.confirm([](const LogView&) { return Verdict::faulted(Error(ErrorCode::Bounds, "found")); }); };
  SUBCASE("one that reads the claimed bytes") {
    ExecuteScope scope = ExecuteScope::launching(store, "late", a, b, b);
    scope.execute([&]() -> Result<void> {
      find();
      return {};
    });
    log.append(note(LogKind::Launch, scope.stamp(), a, b, b, 2));
    CHECK(store.read_failure(b));
    // it counts as claimed in later findings too
    CHECK(log.confirm([](const LogView&) { return Verdict::faulted(Error(ErrorCode::Bounds, "consequence")); }) == 0);
    CHECK(store.size() == 1);
  }
  SUBCASE("one that overwrites them, and settles before the finding") {
    ExecuteScope scope = ExecuteScope::over(store, a, a);
    scope.execute([]() -> Result<void> { return {}; });
    find();
    CHECK(store.read_failure(a));
    log.append(note(LogKind::HostWrite, scope.stamp(), {}, a, a));
    CHECK_FALSE(store.read_failure(a));
    CHECK(store.empty());
  }
  SUBCASE("a claim that is newer than it stays") {
    ExecuteScope scope = ExecuteScope::launching(store, "late", a, b, b);
    scope.execute([]() -> Result<void> { return {}; });
    find();
    store.clear(1);
    ExecuteScope::failed_writing(store, a, Error(ErrorCode::Generic, "newer"));
    log.append(note(LogKind::Launch, scope.stamp(), a, b, b, 2));
    CHECK_FALSE(store.read_failure(b));
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KILN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define KILN_SANITIZED 1
#endif
#endif
#ifndef KILN_SANITIZED
TEST_CASE("without a sanitizer allocations are counted, so the tests that need it do run") {
  REQUIRE(allocations_counted());
  const std::uint64_t before = allocations();
  const auto p = std::make_unique<std::string>(100, 'x');
  CHECK(allocations() == before + 2);
}
#endif

TEST_CASE("healthy operations allocate nothing once the log has its room, and its room does not grow") {
  if (!allocations_counted()) return;
  FailureStore store;
  LaunchLog log(store);
  IoSets sets;
  const BufferUse uses[] = {in(mem(1)), in(mem(2)), inout(mem(3)), out(mem(4)), strided_out(mem(5))};
  const auto work = [&](int launches) {
    for (int i = 0; i < launches; ++i) {
      io_sets(uses, {}, sets);
      ExecuteScope scope = ExecuteScope::launching(store, *kName, sets);
      scope.execute([]() -> Result<void> { return {}; });
      log.append(note(LogKind::Launch, scope.stamp(), sets.reads, sets.writes, sets.covers, static_cast<std::uint32_t>(i)));
    }
  };
  const auto round = [&](int i) {
    work(20 + i % 7);
    const MemoryRange w[] = {mem(6)};
    ExecuteScope scope = ExecuteScope::over(store, w, w);
    scope.execute([]() -> Result<void> { return {}; });
    log.append(note(LogKind::HostWrite, scope.stamp(), {}, w, w));
    log.freed(7);
    log.confirm([&](const LogView& view) { return view.slot < 13 ? Verdict::clean() : Verdict::pending(); });
    if (i % 3 == 2) log.confirm(clean);
  };
  for (int i = 0; i < 30; ++i) round(i);
  const std::uint64_t before = allocations();
  const std::size_t room = log.capacity();
  for (int i = 0; i < 3000; ++i) round(i);
  CHECK(allocations() == before);
  CHECK(log.capacity() == room);
  CHECK(room <= 128);
  CHECK(log.last() > 60000);
  CHECK(store.empty());
}

TEST_CASE("what cannot be noted or found for lack of memory is not read as data") {
  if (!allocations_counted()) return;
  FailureStore store;
  LaunchLog log(store);
  const MemoryRange a[] = {mem(1)}, b[] = {mem(2)};
  SUBCASE("an entry for which there is no room") {
    const Stamp stamp = store.next_stamp();
    Ticket ticket = 1;
    {
      const NoMemory none;
      ticket = log.append(note(LogKind::Launch, stamp, {}, a, a));
    }
    CHECK(ticket == 0);
    CHECK(log.size() == 0);
  }
  SUBCASE("a fault for whose claim there is none") {
    log.append(note(LogKind::Launch, store.next_stamp(), {}, a, a));
    const Error error(ErrorCode::Bounds, "found");
    const NoMemory none;
    log.confirm([&](const LogView&) { return Verdict::faulted(error); });
  }
  CHECK_FALSE(store.ensure_written(a));
  CHECK_FALSE(store.ensure_written(b));
}

TEST_CASE("threads that launch, fail, fault, read and free at the same time leave an empty store") {
  FailureStore store;
  LaunchLog log(store);
  constexpr int kThreads = 4, kRounds = 300;
  const auto inspect = [](const LogView& view) {
    return view.slot % 5 == 0   ? Verdict::faulted(Error(ErrorCode::Bounds, "late"))
           : view.slot % 3 == 0 ? Verdict::pending()
                                : Verdict::clean();
  };
  const MemoryRange shared[] = {mem(1)};
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads, 0);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const std::uint64_t own = static_cast<std::uint64_t>(100 + t * kRounds + i);
        const MemoryRange w[] = {mem(own), mem(1, static_cast<std::uint64_t>(t) * 10, static_cast<std::uint64_t>(t) * 10 + 15)};
        ExecuteScope scope = ExecuteScope::launching(store, "k", shared, w, std::span(w, 1));
        const auto outcome = scope.execute([&]() -> Result<void> {
          if (i % 7 == 0) return Error(ErrorCode::Generic, "at enqueue");
          return {};
        });
        if (outcome.kind == OutcomeKind::Executed)
          log.append(note(LogKind::Launch, scope.stamp(), shared, w, std::span(w, 1), static_cast<std::uint32_t>(i)));
        if (i % 4 == 0) log.confirm(inspect);
        const bool claimed = !store.ensure_written(std::span(w, 1));
        if (outcome.kind != OutcomeKind::Executed && !claimed) ++wrong[static_cast<std::size_t>(t)];
        if (i % 11 == 0) store.written(shared);
        log.freed(own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  log.confirm(clean);
  log.freed(1);
  CHECK(wrong == std::vector<int>(kThreads, 0));
  CHECK(log.size() == 0);
  CHECK(store.empty());
}
