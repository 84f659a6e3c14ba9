#include "src/failure/failure_store.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <vector>

using namespace kiln;
using namespace kiln::rt;

namespace {

using Ranges = std::vector<MemoryRange>;

Error boom(const std::string& text = "boom") { return Error(ErrorCode::LaunchUnknown, text); }
MemoryRange mem(std::uint64_t memory, std::uint64_t begin = 0, std::uint64_t end = 100) { return {memory, {begin, end}}; }

FailureId claim_new(FailureStore& store, const Ranges& ranges, const std::string& text = "boom") {
  const FailureId failure = store.insert(boom(text));
  store.taint(failure, ranges);
  return failure;
}

}  // namespace

TEST_CASE("failures are numbered from 1 on and no number comes twice") {
  FailureStore store;
  const FailureId first = store.insert(boom());
  CHECK(first == 1);
  store.prune(first);
  CHECK(store.insert(boom()) == 2);
}

TEST_CASE("a failure lives as long as some allocation carries it") {
  FailureStore store;
  const FailureId failure = claim_new(store, {mem(1), mem(2), mem(2)});
  CHECK(store.tagged(failure) == 2);
  store.taint(failure, Ranges{mem(1)});
  CHECK(store.tagged(failure) == 2);
  store.prune(failure);
  REQUIRE(store.error(failure));
  store.written(Ranges{mem(1)});
  CHECK(store.tagged(failure) == 1);
  store.clear(2);
  CHECK_FALSE(store.error(failure));
  CHECK(store.empty());
}

TEST_CASE("a failure on no bytes is forgotten by prune and can be given no bytes afterwards") {
  FailureStore store;
  const FailureId failure = store.insert(boom());
  store.taint(failure, Ranges{mem(1, 5, 5), MemoryRange{}});
  CHECK(store.size() == 1);
  store.prune(failure);
  CHECK(store.empty());
  store.taint(failure, Ranges{mem(1)});
  CHECK_FALSE(store.read_failure(Ranges{mem(1)}));
}

TEST_CASE("replace changes the error of a known failure and does nothing for one that is gone") {
  FailureStore store;
  const FailureId failure = claim_new(store, {mem(1)}, "old");
  store.replace(failure, boom("new"));
  CHECK(store.error(failure)->text() == "new");
  store.clear(1);
  store.replace(failure, boom("newer"));
  CHECK_FALSE(store.error(failure));
}

TEST_CASE("the examples of claims, asked of the store") {
  FailureStore store;
  const FailureId f1 = claim_new(store, {mem(1)});
  store.written(Ranges{mem(1, 40, 60)});
  CHECK(store.ranges(f1, 1) == std::vector<ByteRange>{{0, 40}, {60, 100}});
  const FailureId f2 = store.insert(boom());
  for (const MemoryRange& range : {mem(2, 0, 10), mem(2, 20, 30), mem(2, 10, 20)}) store.taint(f2, Ranges{range});
  CHECK(store.ranges(f2, 2) == std::vector<ByteRange>{{0, 30}});
  CHECK(store.tagged(f2) == 1);
  const FailureId f3 = claim_new(store, {mem(3)}), f4 = claim_new(store, {mem(3, 50, 80)});
  CHECK(store.ranges(f3, 3) == std::vector<ByteRange>{{0, 50}, {80, 100}});
  CHECK(store.ranges(f4, 3) == std::vector<ByteRange>{{50, 80}});
}

TEST_CASE("read_failure gives the first claim in the order of the ranges") {
  FailureStore store;
  CHECK_FALSE(store.read_failure(Ranges{mem(1)}));
  claim_new(store, {mem(1)}, "first");
  const FailureId second = claim_new(store, {mem(2, 10, 20)}, "second");
  const auto claimed = store.read_failure(Ranges{mem(3), mem(2, 0, 10), mem(2), mem(1)});
  REQUIRE(claimed);
  CHECK(claimed->failure == second);
  CHECK(claimed->memory == 2);
  CHECK(claimed->error.text() == "second");
}

TEST_CASE("ensure_written wraps even one failure in Several and names each failure once, in the order found") {
  FailureStore store;
  CHECK(store.ensure_written({}));
  CHECK(store.ensure_written(Ranges{mem(1), MemoryRange{}}));
  const FailureId f1 = claim_new(store, {mem(1), mem(2, 0, 10)}, "first");
  const Result<void> one = store.ensure_written(Ranges{mem(1)});
  REQUIRE_FALSE(one);
  CHECK(one.error().code() == ErrorCode::Several);
  REQUIRE(one.error().causes().size() == 1);
  const Error& unwritten = one.error().causes()[0];
  CHECK(unwritten.code() == ErrorCode::Unwritten);
  CHECK(unwritten.data().message == "The bytes were never written (failure #1, still claiming 2 buffers)");
  CHECK(unwritten.data().failure == f1);
  CHECK(unwritten.data().claimed_buffers == 2);
  CHECK(unwritten.data().chain.empty());
  REQUIRE(unwritten.causes().size() == 1);
  CHECK(unwritten.causes()[0].text() == "first");

  const FailureId f2 = claim_new(store, {mem(2, 10, 20)}, "second");
  const Result<void> two = store.ensure_written(Ranges{mem(2), mem(1), mem(2)});
  REQUIRE_FALSE(two);
  REQUIRE(two.error().causes().size() == 2);
  CHECK(two.error().causes()[0].data().failure == f1);
  CHECK(two.error().causes()[1].data().failure == f2);
  CHECK(store.ensure_written(Ranges{mem(2, 20, 100)}));
}

TEST_CASE("memory that was never allocated reports its failure, else that it is not there") {
  FailureStore store;
  const MemoryRange memory{9, {0, 4}, false};
  CHECK_FALSE(store.read_failure(Ranges{memory}));
  const Result<void> missing = store.ensure_written(Ranges{memory, memory});
  REQUIRE_FALSE(missing);
  REQUIRE(missing.error().causes().size() == 1);
  CHECK(missing.error().causes()[0].code() == ErrorCode::NotFound);
  CHECK(missing.error().causes()[0].text() == "Memory 9 was never allocated: the reservation behind it failed");

  const FailureId failure = claim_new(store, {memory}, "no memory");
  CHECK(store.tagged(failure) == 1);
  CHECK(store.read_failure(Ranges{{9, {50, 60}, false}}));
  const Result<void> claimed = store.ensure_written(Ranges{memory});
  REQUIRE_FALSE(claimed);
  CHECK(claimed.error().causes()[0].causes()[0].text() == "no memory");
  store.clear(9);  // bound at last, or given up
  CHECK(store.empty());
}

TEST_CASE("a report walks the skips from the memory read back to the root, nearest first") {
  FailureStore store;
  const FailureId failure = claim_new(store, {mem(1)}, "root cause");
  CHECK(store.enter("ns::first", Ranges{mem(1)}, Ranges{mem(2)}).claimed);
  CHECK(store.enter("elsewhere", Ranges{mem(1)}, Ranges{mem(7)}).claimed);
  CHECK(store.enter("second@tile=a::b", Ranges{mem(5), mem(2)}, Ranges{mem(3)}).claimed);
  const Error report = store.report(failure, 3);
  CHECK(report.data().claimed_buffers == 4);
  CHECK(report.text() ==
        "The bytes were never written (failure #1, still claiming 4 buffers)\n"
        "  skipped `second@tile=a::b`: it needed memory 2, which carried the failure\n"
        "  skipped `first`: it needed memory 1, which carried the failure\n"
        "  cause: root cause");
  CHECK(store.report(failure, 1).data().chain.empty());
}

TEST_CASE("a report names the parameter by which a launch needed the memory") {
  FailureStore store;
  const std::string x = "x", y = "y";
  const auto as = [](std::uint64_t memory, const std::string& parameter) {
    MemoryRange range = mem(memory);
    range.parameter = &parameter;
    return range;
  };
  const FailureId failure = claim_new(store, {mem(1)}, "root cause");
  CHECK(store.enter("first", Ranges{as(8, y), as(1, x)}, Ranges{as(2, y)}).claimed->parameter == &x);
  CHECK(store.reconsider("second", Ranges{as(2, x)}, Ranges{as(3, y)}, {}, store.next_stamp()));
  CHECK(store.report(failure, 3).data().chain ==
        std::vector<std::string>{"voided `second`: it had been enqueued, and read 'x' (memory 2), which carried the failure",
                                 "skipped `first`: it needed 'x' (memory 1), which carried the failure"});
}

TEST_CASE("a report of a skip in place does not walk in circles") {
  FailureStore store;
  const FailureId failure = claim_new(store, {mem(1)});
  for (int i = 0; i < 5; ++i) store.enter("again", Ranges{mem(1)}, Ranges{mem(1)});
  CHECK(store.report(failure, 1).data().chain.size() == 5);
}

TEST_CASE("only the newest 16 skips are kept, and the report says how many are not") {
  FailureStore store;
  const FailureId failure = claim_new(store, {mem(1)});
  for (std::uint64_t i = 1; i < 16; ++i) store.enter("k", Ranges{mem(i)}, Ranges{mem(i + 1)});
  const auto whole = store.report(failure, 16).data().chain;
  CHECK(whole.size() == 15);
  for (std::uint64_t i = 16; i < 20; ++i) store.enter("k", Ranges{mem(i)}, Ranges{mem(i + 1)});
  const auto cut = store.report(failure, 20).data().chain;
  REQUIRE(cut.size() == 17);
  CHECK(cut[0] == "skipped `k`: it needed memory 19, which carried the failure");
  CHECK(cut[16] == "(3 older skip records were dropped; the walk may stop before the root)");
  CHECK(store.report(failure, 1).data().chain.empty());
}

TEST_CASE("a report of a failure that is gone says so") {
  FailureStore store;
  const FailureId failure = claim_new(store, {mem(1)});
  store.clear(1);
  CHECK(store.report(failure, 1).data().message == "Failure #1 lies on no bytes any more");
}

TEST_CASE("a store that has lost track lets nothing be read or launched on") {
  FailureStore store;
  store.lose_track();
  CHECK(store.read_failure(Ranges{mem(1)}));
  const Result<void> written = store.ensure_written(Ranges{mem(1), mem(2)});
  REQUIRE_FALSE(written);
  CHECK(written.error().causes().size() == 1);
  CHECK(written.error().causes()[0].causes()[0].code() == ErrorCode::OutOfMemory);
  CHECK(store.ensure_written(Ranges{mem(1, 3, 3)}));
  CHECK(store.enter("k", Ranges{mem(1)}, Ranges{mem(2)}).claimed);
}

TEST_CASE("memory that is made after a store has lost track is read and launched on as ever, and carries what is passed on to it") {
  std::atomic<std::uint64_t> next{3};
  FailureStore store(&next);
  store.lose_track();
  CHECK_FALSE(store.ensure_written(Ranges{mem(2)}));
  CHECK(store.ensure_written(Ranges{mem(3)}));
  CHECK_FALSE(store.enter("k", Ranges{mem(3)}, Ranges{mem(4)}).claimed);
  const auto skipped = store.enter("k", Ranges{mem(3), mem(2)}, Ranges{mem(4)});
  REQUIRE(skipped.claimed);
  CHECK(skipped.claimed->failure != 0);
  const Result<void> read = store.ensure_written(Ranges{mem(4)});
  REQUIRE_FALSE(read);
  CHECK(read.error().root().code() == ErrorCode::OutOfMemory);
  store.written(Ranges{mem(4)});
  CHECK(store.ensure_written(Ranges{mem(4)}));
  CHECK(store.empty());
  next = 5;
  store.lose_track();
  CHECK_FALSE(store.ensure_written(Ranges{mem(4)}));
}

TEST_CASE("the short name of a kernel has no namespaces but keeps its config") {
  CHECK(short_name("saxpy") == "saxpy");
  CHECK(short_name("a::b::saxpy") == "saxpy");
  CHECK(short_name("a::matmul@tile=x::y") == "matmul@tile=x::y");
  CHECK(short_name("") == "");
}
