// Memory of captured graphs: what is pinned, what a warm-up keeps, what a window forbids.
#include <doctest/doctest.h>

#include "kiln/runtime/client.h"
#include "runtime/memory_device.h"

using namespace kiln;
using namespace kiln::test;
using rt::MemoryCapture;

namespace {

constexpr std::uint64_t kStream = 3;
const std::vector<PoolConfig> kPages{sliced(1024)};

}  // namespace

TEST_CASE("what is allocated in a capture is the graph's until the graph goes") {
  MemoryBench m(1, kPages);
  m.drop(m.get(1024, kStream));
  MemoryCapture first(*m.manager, kStream), second(*m.manager, kStream);
  REQUIRE(first.begin().has_value());
  auto block = m.get(1024, kStream);
  const void* const at = block->data;
  m.drop(std::move(block));
  first.end();
  CHECK(first.pinned() == 1);
  m.drop(m.get(1024, kStream));  // grows
  CHECK(m.total().bytes_reserved == 2048);
  REQUIRE(second.begin().has_value());
  m.drop(m.get(1024, kStream));
  second.end();
  CHECK(second.pinned() == 1);
  CHECK(m.total().bytes_reserved == 2048);
  block = m.get(1024, kStream);
  CHECK(m.total().bytes_reserved == 3072);
  m.drop(std::move(block));
  SUBCASE("a cleanup leaves it") {
    CHECK(m.manager->cleanup().value() == 1024);
    CHECK(m.total().bytes_reserved == 2048);
  }
  SUBCASE("and then others have it, after the replays") {
    m.manager->cleanup().value();
    rt::After replays;
    const rt::Event replay = m.device.start(rt::queue_of(kStream));
    replays.add(replay);
    first.release(replays);
    CHECK(first.pinned() == 0);
    auto again = m.get(1024, kStream);
    CHECK(again->data == at);
    CHECK(again->after.has(replay.queue));
    m.drop(std::move(again), replays);
    m.device.finish_all();
  }
}

TEST_CASE("beginning once more while it records keeps what was pinned") {
  MemoryBench m(1, {sliced(4096)});
  m.drop(m.get(10, kStream));
  MemoryCapture capture(*m.manager, kStream);
  REQUIRE(capture.begin().has_value());
  m.drop(m.get(1024, kStream));
  REQUIRE(capture.begin().has_value());
  m.drop(m.get(1024, kStream));
  capture.end();
  CHECK(capture.pinned() == 2);
}

TEST_CASE("free memory that a capture did not touch is not pinned, and what is freed in its window is") {
  MemoryBench m(1, kPages);
  auto a = m.get(1024, kStream), b = m.get(1024, kStream), c = m.get(1024, kStream + 1);
  m.drop(m.get(1024, kStream));  // free, and stays so
  MemoryCapture capture(*m.manager, kStream);
  REQUIRE(capture.begin().has_value());
  m.drop(std::move(a));  // from before, of this stream
  m.drop(std::move(c));  // of another stream
  capture.end();
  CHECK(capture.pinned() == 1);
  m.manager->cleanup().value();
  CHECK(m.total().bytes_reserved == 2048);  // a's and b's
  m.drop(std::move(b));
  capture.release({});
  m.manager->cleanup().value();
  CHECK(m.total().bytes_reserved == 0);
}

TEST_CASE("memory that a graph uses outlives its buffer, whoever allocated it and when") {
  MemoryBench m(1, kPages);
  auto block = m.get(1024, kStream + 7);
  const void* const at = block->data;
  MemoryCapture one(*m.manager, kStream), two(*m.manager, kStream + 1);
  REQUIRE(one.begin().has_value());
  REQUIRE(two.begin().has_value());
  for (int i = 0; i < 3; ++i) one.use(*block);
  two.use(*block);
  one.end();
  two.end();
  CHECK(one.pinned() == 1);
  m.drop(std::move(block));
  one.release({});
  auto other = m.get(1024);
  CHECK(other->data != at);
  m.drop(std::move(other));
  two.release({});
  m.manager->cleanup().value();
  CHECK(m.device.blocks() == 0);
  SUBCASE("also memory that somebody else allocated") {
    auto owner = std::make_shared<int>(1);
    const std::weak_ptr<int> alive = owner;
    auto storage = std::make_unique<rt::Storage>();
    int bytes = 0;
    storage->data = &bytes;
    storage->bytes = sizeof bytes;
    storage->owner = std::move(owner);
    MemoryCapture graph(*m.manager, kStream);
    REQUIRE(graph.begin().has_value());
    graph.use(*storage);
    graph.end();
    m.drop(std::move(storage));
    CHECK_FALSE(alive.expired());
    graph.release({});
    CHECK(alive.expired());
  }
  SUBCASE("and when its buffer still lives, it is only unpinned") {
    auto live = m.get(1024);
    MemoryCapture graph(*m.manager, kStream);
    REQUIRE(graph.begin().has_value());
    graph.use(*live);
    graph.end();
    graph.release({});
    m.drop(std::move(live));
    CHECK(m.total().allocations == 0);
  }
}

TEST_CASE("a warm-up provides for all that is live at once") {
  MemoryBench m(1, kPages);
  MemoryCapture capture(*m.manager, kStream);
  REQUIRE(capture.prime().has_value());
  for (int i = 0; i < 3; ++i) m.drop(m.get(1024, kStream));
  CHECK(m.total().bytes_reserved == 3072);  // none was given out twice
  m.drop(m.get(1024, kStream + 1));         // that is so on this stream only
  SUBCASE("begin gives it out") {
    REQUIRE(capture.begin().has_value());
    const auto before = m.device.allocations();
    auto a = m.get(1024, kStream), b = m.get(1024, kStream), c = m.get(1024, kStream);
    CHECK(m.device.allocations() == before);
    m.drop(std::move(a));
    m.drop(std::move(b));
    m.drop(std::move(c));
    capture.end();
    CHECK(capture.pinned() == 3);
  }
  SUBCASE("an end without a begin lets go of it") {
    capture.end();
    CHECK(capture.pinned() == 0);
    m.manager->cleanup().value();
    CHECK(m.total().bytes_reserved == 0);
  }
}

TEST_CASE("while a graph is captured its stream takes nothing from the device, and nothing is rearranged") {
  MemoryBench m(1, {sliced(1024), direct()});
  MemoryCapture capture(*m.manager, kStream), other(*m.manager, kStream);
  REQUIRE(capture.prime().has_value());
  CHECK(other.prime().error().rule() == "CaptureOpen");
  CHECK(other.begin().error().rule() == "CaptureOpen");
  CHECK(capture.prime().error().rule() == "CaptureOpen");
  CHECK(m.manager->cleanup().error().code() == ErrorCode::PageUpdateForbidden);
  REQUIRE(capture.begin().has_value());
  CHECK(m.manager->captured());
  const auto refused = m.take(1024, kStream);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == ErrorCode::PageUpdateForbidden);
  CHECK_FALSE(refused.error().may_succeed_after_reclaim());
  CHECK(m.device.allocations() == 0);
  CHECK(m.manager->cleanup().error().code() == ErrorCode::PageUpdateForbidden);
  CHECK(m.manager->install({kPages, {}, PersistentPolicy::Enabled}).error().code() == ErrorCode::PageUpdateForbidden);
  // Others go on, and what they give back waits.
  for (int i = 0; i < 100; ++i) m.drop(m.get(5000, kStream + 1));
  CHECK(m.device.blocks() == 100);
  capture.end();
  CHECK(m.device.blocks() == 0);
  CHECK_FALSE(m.manager->captured());
  CHECK(m.manager->cleanup().has_value());
  m.drop(m.get(1024, kStream));
  other.end();  // nothing
}
