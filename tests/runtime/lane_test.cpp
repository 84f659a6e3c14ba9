// Launches that come often, on streams of their own: what they cost less must not show. Enough of them are issued for the lanes of the
// lock of enqueueing to open (src/enqueue_lock.h), and for what was checked once not to be checked again (src/checked_before.h).
#include <doctest/doctest.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/fake_kernels.h"
#include "src/allocation.h"
#include "src/enqueue_lock.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr u32 kOften = 40;

void often(const Stream& stream, const Variant& add, const Buffer<u32>& x) {
  for (u32 i = 0; i < kOften; ++i) REQUIRE(run(stream, add, x.arg(), scalar(1)).has_value());
}

// All of the stream is over, and nobody has looked at what it left.
void over_by_now(const Stream& stream) {
  const Event last = stream.record();
  while (!last.done()) std::this_thread::yield();
}

void carries_the_fault(const Buffer<u32>& b) {
  const auto read = b.read();
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().root().code() == ErrorCode::Bounds);
}

}  // namespace

TEST_CASE("a fault among many launches of a stream is found by another stream, with what was made of it, and nothing else is") {
  FakeServer s;
  const Stream a = s.client.stream();
  Buffer<u32> y = s.buffer({0, 0}), made = s.buffer({0, 0}), over = s.buffer({0, 0}), other = s.buffer({0});
  often(a, s.add, other);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(run(a, s.fill, y.arg(), scalar(1)).has_value());
    REQUIRE(run(a, s.copy, y.arg(), made.arg()).has_value());
    REQUIRE(run(a, s.copy, y.arg(), over.arg()).has_value());
  }
  REQUIRE(run(a, s.fault, y.arg(), scalar(1)).has_value());
  REQUIRE(run(a, s.copy, y.arg(), made.arg()).has_value());
  REQUIRE(run(a, s.copy, y.arg(), over.arg()).has_value());
  REQUIRE(run(a, s.fill, over.arg(), scalar(3)).has_value());
  for (int i = 0; i < 5; ++i) REQUIRE(run(a, s.add, other.arg(), scalar(1)).has_value());
  carries_the_fault(made);
  carries_the_fault(y);
  CHECK(over.read().value() == std::vector<u32>{3, 3});
  CHECK(other.read().value() == std::vector<u32>{kOften + 5});
  CHECK(s.local().unconfirmed() == 0);
  CHECK(s.local().fault_slots().used() == 0);
}

TEST_CASE("a fault among many launches of a stream is found however many come behind it, with all that was made of it") {
  FakeServer s;
  const Stream a = s.client.stream();
  Buffer<u32> y = s.buffer({0, 0}), made = s.buffer({0, 0}), other = s.buffer({0});
  for (u32 round = 0; round < 20; ++round) {
    for (int i = 0; i < 20; ++i) {
      REQUIRE(run(a, s.fill, y.arg(), scalar(1)).has_value());
      REQUIRE(run(a, s.copy, y.arg(), made.arg()).has_value());
    }
    for (u32 i = 0; i < round; ++i) REQUIRE(run(a, s.add, other.arg(), scalar(1)).has_value());
    REQUIRE(run(a, s.fault, y.arg(), scalar(1)).has_value());
    REQUIRE(run(a, s.copy, y.arg(), made.arg()).has_value());
    for (int i = 0; i < 5; ++i) {
      over_by_now(a);
      often(a, s.add, other);
    }
    carries_the_fault(made);
    carries_the_fault(y);
  }
  REQUIRE(run(a, s.fill, y.arg(), scalar(1)).has_value());
  REQUIRE(run(a, s.fill, made.arg(), scalar(1)).has_value());
  REQUIRE(s.client.sync().has_value());
  CHECK(s.local().failures().empty());
  CHECK(s.local().unconfirmed() == 0);
  CHECK(s.local().fault_slots().used() == 0);
}

TEST_CASE("what is made of another stream's faulty memory carries the failure, though many launches lie between and all were over") {
  FakeServer s;
  const Stream a = s.client.stream(), b = s.client.stream();
  Buffer<u32> wrong = s.buffer({0, 0}), first = s.buffer({0, 0}), last = s.buffer({0, 0}), other = s.buffer({0});
  for (int round = 0; round < 10; ++round) {
    often(a, s.add, other);
    REQUIRE(run(a, s.fill, first.arg(), scalar(1)).has_value());
    REQUIRE(run(a, s.fill, last.arg(), scalar(1)).has_value());
    REQUIRE(run(b, s.fill, wrong.arg(), scalar(1)).has_value());
    CHECK(wrong.read().has_value());  // whatever it was is confirmed
    CHECK(last.read().has_value());
    REQUIRE(run(b, s.fault, wrong.arg(), scalar(1)).has_value());
    (void)run(a, s.copy, wrong.arg(), first.arg());
    for (int i = 0; i < 10; ++i) REQUIRE(run(a, s.add, other.arg(), scalar(1)).has_value());  // of one stream alone again
    (void)run(a, s.copy, first.arg(), last.arg());  // or it is skipped, where that is known already
    for (int i = 0; i < 25; ++i) REQUIRE(run(a, s.add, other.arg(), scalar(1)).has_value());
    over_by_now(a);
    often(a, s.add, other);
    carries_the_fault(last);
    carries_the_fault(first);
  }
}

TEST_CASE("streams that work on memory of their own need not take turns, until somebody holds the lock of enqueueing as a whole") {
  rt::FailureStore store;
  rt::LaunchLog log(store);
  rt::EnqueueLock lock(store, log);
  const auto launched = [&](std::uint32_t queue, bool alone) {
    const std::lock_guard whole(lock);
    lock.launched(queue, alone);
  };
  for (int i = 0; i < 100; ++i) launched(1, true), launched(2, true);
  launched(3, true);
  for (int again = 0; again < 3; ++again) {
    CHECK(lock.opens(1));
    CHECK(lock.opens(2));
    CHECK_FALSE(lock.opens(3));  // it did so once
    {
      const rt::EnqueueLock::InLane one(lock, 1), two(lock, 2);
      REQUIRE(static_cast<bool>(one));
      REQUIRE(static_cast<bool>(two));
      // Of one thread, which takes several at a time: later than what the other lane has, and than all before.
      const rt::Stamp before = store.now(), first = lock.stamp_in(*one), second = lock.stamp_in(*two);
      CHECK(first > before);
      CHECK(second > first);
    }
    const std::lock_guard whole(lock);
    CHECK_FALSE(static_cast<bool>(rt::EnqueueLock::InLane(lock, 1)));
    CHECK_FALSE(static_cast<bool>(rt::EnqueueLock::InLane(lock, 2)));
    CHECK(store.next_stamp() > 0);
  }
  launched(2, false);
  CHECK(lock.opens(1));
  CHECK_FALSE(lock.opens(2));
}

TEST_CASE("a launch in a lane has a later stamp than all that was enqueued on its memory before, by whichever thread") {
  rt::FailureStore store;
  rt::LaunchLog log(store);
  rt::EnqueueLock lock(store, log);
  {
    const std::lock_guard whole(lock);
    for (int i = 0; i < 100; ++i) lock.launched(1, true);
  }
  rt::Stamp last = 0;
  const auto in_lane = [&] {
    if (!lock.opens(1)) return false;
    const rt::EnqueueLock::InLane in(lock, 1);
    const rt::Stamp stamp = lock.stamp_in(*in);
    const bool later = stamp > last;
    last = stamp;
    return later;
  };
  for (int i = 0; i < 50; ++i) {
    for (int k = 0; k < i; ++k) CHECK(in_lane());
    bool later = false;
    std::thread([&] { later = in_lane() && in_lane(); }).join();
    CHECK(later);
    CHECK(in_lane());
    const std::lock_guard whole(lock);
    const rt::Stamp alone = store.next_stamp();
    CHECK(alone > last);
    last = alone;
  }
}

TEST_CASE("memory that is freed before its launches are confirmed leaves no failure and no record") {
  FakeServer s;
  const Stream a = s.client.stream();
  Buffer<u32> other = s.buffer({0});
  for (int i = 0; i < 30; ++i) {
    Buffer<u32> lost = s.buffer({0, 0});
    for (int k = 0; k < 12; ++k) REQUIRE(run(a, s.add, lost.arg(), scalar(1)).has_value());
    REQUIRE(run(a, s.fault, lost.arg(), scalar(1)).has_value());
  }
  often(a, s.add, other);
  REQUIRE(s.client.sync().has_value());
  CHECK(s.local().failures().empty());
  CHECK(s.local().unconfirmed() == 0);
  CHECK(s.local().fault_slots().used() == 0);
  Buffer<u32> anew = s.buffer({5, 5});
  CHECK(anew.read().value() == std::vector<u32>{5, 5});
}

TEST_CASE("a buffer that goes to and fro between streams which have much to do of their own is written in the order of issue") {
  FakeServer s;
  const Stream a = s.client.stream(), b = s.client.stream();
  Buffer<u32> x = s.buffer({0}), y = s.buffer({0}), own_a = s.buffer({0}), own_b = s.buffer({0});
  for (u32 i = 0; i < 30; ++i) {
    often(a, s.add, own_a);
    often(b, s.add, own_b);
    REQUIRE(run(a, s.fill, x.arg(), scalar(i)).has_value());
    REQUIRE(run(b, s.add, x.arg(), scalar(100)).has_value());
    REQUIRE(run(a, s.copy, x.arg(), y.arg()).has_value());
    REQUIRE(run(b, s.fill, x.arg(), scalar(0)).has_value());
    if (i % 3 == 0) CHECK(y.read().value() == std::vector<u32>{i + 100});
  }
  CHECK(y.read(b).value() == std::vector<u32>{129});
  CHECK(own_a.read().value() == std::vector<u32>{30 * kOften});
  CHECK(own_b.read().value() == std::vector<u32>{30 * kOften});
}

TEST_CASE("threads on streams of their own leave what one alone would, while others read, copy, free and call the host") {
  FakeServer s;
  constexpr u32 kThreads = 4, kRounds = 25;
  Buffer<u32> shared = s.buffer({7});
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(kThreads);
  for (u32 t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Stream stream = s.client.stream();
      Buffer<u32> x = s.buffer({0}), seen = s.buffer({0});
      u32 sum = 0, called = 0;
      const auto must = [&](const Result<void>& result) {
        if (!result.has_value()) wrong[t] = result.error().text();
      };
      for (u32 round = 0; round < kRounds; ++round) {
        for (u32 i = 0; i < kOften; ++i) must(run(stream, s.add, x.arg(), scalar(i)));
        sum += kOften * (kOften - 1) / 2;
        switch ((round + t) % 4) {
          case 0:
            if (const auto read = x.read(stream); !read.has_value() || read->at(0) != sum) wrong[t] = "a wrong sum was read";
            break;
          case 1: must(run(stream, s.copy, shared.arg(), seen.arg())); break;
          case 2: {
            Buffer<u32> lost = s.buffer({0});
            must(run(stream, s.fault, lost.arg(), scalar(1)));
            break;
          }
          default: must(stream.call([&called] { ++called; }));
        }
      }
      must(stream.sync());
      if (x.read(stream).value() != std::vector<u32>{sum}) wrong[t] = "a wrong sum was left";
      if (seen.read(stream).value() != std::vector<u32>{7}) wrong[t] = "the shared buffer was seen as it never was";
      if (called < kRounds / 4) wrong[t] = "a call was not made";
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : wrong) CHECK(text == "");
  REQUIRE(s.client.sync().has_value());
  CHECK(s.local().failures().empty());
  CHECK(s.local().unconfirmed() == 0);
  CHECK(s.local().fault_slots().used() == 0);
}

TEST_CASE("memory of another device is refused, also where it has the number of memory that was launched on before") {
  FakeServer s, t;
  Buffer<u32> ours = s.buffer({1, 2}), theirs = t.buffer({1, 2});
  REQUIRE(ours.binding().memory->id == theirs.binding().memory->id);
  const Stream stream = s.client.stream();
  for (int i = 0; i < 3; ++i) REQUIRE(run(stream, s.fill, ours.arg(), scalar(1)).has_value());
  const auto refused = run(stream, s.fill, theirs.arg(), scalar(1));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == ErrorCode::ForeignHandle);
}

TEST_CASE("a launch that was right before is refused where anything about it is wrong now") {
  FakeServer s;
  Buffer<u32> x = s.buffer({1, 2, 3, 4}), y = s.buffer({0, 0, 0, 0});
  const Stream stream = s.client.stream();
  for (int i = 0; i < 3; ++i) REQUIRE(run(stream, s.copy, x.arg(), y.arg()).has_value());
  std::string rule;
  LaunchArg from = x.arg(), to = y.arg();
  LaunchConfig config;
  config.grid = Dim3(4);
  SUBCASE("extents") { rule = "ArgumentExtents", to.extents[0] = 5; }
  SUBCASE("range") { rule = "ArgumentExtents", to.binding.range.end -= 4; }
  SUBCASE("place") { rule = "ArgumentAlignment", to.binding.range.begin += 1, to.extents[0] = 3; }
  SUBCASE("type") { rule = "ArgumentType", to.type = ir::Type::F32; }
  SUBCASE("rank") { rule = "ArgumentRank", to.rank = 2; }
  SUBCASE("kind") { rule = "ArgumentKind", to.is_buffer = false; }
  SUBCASE("memory") { rule = "AliasingArguments", to.binding = x.binding(); }
  SUBCASE("none") { rule = "ArgumentExtents", to.binding.memory = nullptr; }
  SUBCASE("block") { rule = "ZeroDimension", config.block = Dim3(0); }
  SUBCASE("grid") { rule = "DeviceDimensionExceeded", config.grid = Dim3(1, 0x80000000u); }
  const LaunchArg args[] = {from, to};
  LaunchRequest request{&s.copy, config, args};
  const auto refused = launch(stream, request);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().rule() == rule);
}
