#include "src/failure/scope.h"

#include <doctest/doctest.h>

#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "support/allocations.h"

using namespace kiln;
using namespace kiln::rt;

namespace {

using Ranges = std::vector<MemoryRange>;

MemoryRange mem(std::uint64_t memory, std::uint64_t begin = 0, std::uint64_t end = 100) { return {memory, {begin, end}}; }
Error boom(const std::string& text = "boom") { return Error(ErrorCode::LaunchUnknown, text); }
Result<void> good() { return {}; }

// The text of the root that lies on the range, "" for none.
std::string root(const FailureStore& store, const MemoryRange& range) {
  const auto claimed = store.read_failure(Ranges{range});
  return claimed ? claimed->error.text() : "";
}
void fail_on(FailureStore& store, const MemoryRange& range, const std::string& text) {
  ExecuteScope::failed_writing(store, Ranges{range}, boom(text));
}

struct Heard : ScopeObserver {
  std::vector<std::string> texts;
  void on_failure(const Error& error) noexcept override { texts.push_back(error.text()); }
};

}  // namespace

static_assert(!std::is_copy_constructible_v<ExecuteScope> && !std::is_move_constructible_v<ExecuteScope>);

TEST_CASE("success leaves no failure behind and hands the value on") {
  FailureStore store;
  const Ranges writes{mem(1)};
  ExecuteScope scope = ExecuteScope::over(store, writes, writes);
  CHECK(scope.entered());
  const Outcome<int> outcome = scope.execute([]() -> Result<int> { return 42; });
  CHECK(outcome.kind == OutcomeKind::Executed);
  CHECK(outcome.result.value() == 42);
  CHECK(store.empty());
}

TEST_CASE("failure claims W with the real error, not with 'torn down'") {
  FailureStore store;
  Heard heard;
  {
    const Ranges writes{mem(1), mem(2, 10, 20)};
    ExecuteScope scope = ExecuteScope::launching(store, "k", Ranges{mem(3)}, writes, {}, &heard);
    const Outcome<void> outcome = scope.execute([]() -> Result<void> { return boom(); });
    CHECK(outcome.kind == OutcomeKind::Failed);
    CHECK(outcome.result.error().text() == "boom");
  }
  CHECK(root(store, mem(1)) == "boom");
  CHECK(root(store, mem(2)) == "boom");
  CHECK(root(store, mem(2, 20, 30)) == "");
  CHECK(root(store, mem(3)) == "");
  CHECK(store.size() == 1);
  CHECK(heard.texts == std::vector<std::string>{"boom"});
}

TEST_CASE("a scope that is lost leaves W claimed as torn down") {
  FailureStore store;
  Heard heard;
  const Ranges writes{mem(1)};
  SUBCASE("by an exception of the body") {
    const auto run = [&] {
      ExecuteScope scope = ExecuteScope::over(store, writes, writes, &heard);
      scope.execute([]() -> Result<void> { throw std::runtime_error("out"); });
    };
    CHECK_THROWS_WITH(run(), "out");
  }
  SUBCASE("by never executing") { ExecuteScope::over(store, writes, writes, &heard); }
  const auto claimed = store.read_failure(writes);
  REQUIRE(claimed);
  CHECK(claimed->error.code() == ErrorCode::TornDown);
  CHECK(heard.texts.size() == 1);
  // and it is repaired like every other failure
  CHECK(ExecuteScope::over(store, writes, writes).execute(good).kind == OutcomeKind::Executed);
  CHECK(store.empty());
}

TEST_CASE("an empty write set mints nothing, whatever happens") {
  FailureStore store;
  const Ranges empty{mem(1, 5, 5), MemoryRange{}};
  CHECK(ExecuteScope::over(store, {}, {}).execute([]() -> Result<void> { return boom(); }).kind == OutcomeKind::Failed);
  CHECK(ExecuteScope::over(store, empty, empty).execute([]() -> Result<void> { return boom(); }).kind == OutcomeKind::Failed);
  { ExecuteScope lost = ExecuteScope::over(store, empty, {}); }
  CHECK(store.empty());
  fail_on(store, mem(1), "the first failure that lies on bytes");
  CHECK(store.error(1));
}

TEST_CASE("a launch with a claimed input is skipped: its body does not run, W carries the same failure, no failure is minted") {
  FailureStore store;
  Heard heard;
  fail_on(store, mem(1, 0, 10), "root");
  const Ranges writes{mem(2), mem(3)};
  bool ran = false;
  {
    ExecuteScope scope = ExecuteScope::launching(store, "ns::k", Ranges{mem(4), mem(1)}, writes, writes, &heard);
    CHECK(scope.skipped());
    const Outcome<void> outcome = scope.execute([&]() -> Result<void> {
      ran = true;
      return {};
    });
    CHECK(outcome.kind == OutcomeKind::Skipped);
    CHECK(outcome.result.error().code() == ErrorCode::Skipped);
    CHECK(outcome.result.error().kernel() == "ns::k");
    CHECK(outcome.result.error().text() == "Skipped `k`: it needs memory 1, which carries failure #1\n  kernel: ns::k\n  cause: root");
  }
  CHECK_FALSE(ran);
  CHECK(store.size() == 1);
  CHECK(store.tagged(1) == 3);
  CHECK(root(store, mem(2)) == "root");
  CHECK(root(store, mem(3)) == "root");
  CHECK(store.report(1, 3).data().chain == std::vector<std::string>{"skipped `k`: it needed memory 1, which carried the failure"});
  CHECK(heard.texts == std::vector<std::string>{"root"});
}

TEST_CASE("a launch beside the claimed bytes of its input is not skipped") {
  FailureStore store;
  fail_on(store, mem(1, 0, 10), "root");
  const Ranges writes{mem(2)};
  CHECK(ExecuteScope::launching(store, "k", Ranges{mem(1, 10, 20)}, writes, writes).execute(good).kind == OutcomeKind::Executed);
  CHECK(root(store, mem(2)) == "");
}

TEST_CASE("success ends older claims within C only") {
  FailureStore store;
  struct Row {
    const char* what;
    Ranges writes, covers;
    std::vector<ByteRange> left;  // of a claim on 0 ... 100
  };
  const Row rows[] = {
      {"C is W", {mem(1)}, {mem(1)}, {}},
      {"C is a part of W", {mem(1)}, {mem(1, 40, 60)}, {{0, 40}, {60, 100}}},
      {"C is empty", {mem(1)}, {}, {{0, 100}}},
      {"W is a part of the claim", {mem(1, 0, 50)}, {mem(1, 0, 50)}, {{50, 100}}},
      {"two ranges of W, one in C", {mem(1, 0, 10), mem(1, 20, 30)}, {mem(1, 20, 30)}, {{0, 20}, {30, 100}}},
      {"C reaches over the claim", {mem(1, 90, 200)}, {mem(1, 90, 200)}, {{0, 90}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    fail_on(store, mem(1), "older");
    const auto claimed = store.read_failure(Ranges{mem(1)});
    REQUIRE(claimed);
    CHECK(ExecuteScope::over(store, row.writes, row.covers).execute(good).kind == OutcomeKind::Executed);
    CHECK(store.ranges(claimed->failure, 1) == row.left);
    store.clear(1);
    CHECK(store.empty());
  }
}

TEST_CASE("a failure over bytes that carry an older one takes them; the older one stays on the rest") {
  FailureStore store;
  fail_on(store, mem(1), "older");
  fail_on(store, mem(1, 20, 40), "newer");
  CHECK(root(store, mem(1, 0, 20)) == "older");
  CHECK(root(store, mem(1, 20, 40)) == "newer");
  CHECK(root(store, mem(1, 40, 100)) == "older");
}

TEST_CASE("failed_writing claims W with the error it is given and gives it back") {
  FailureStore store;
  Heard heard;
  const Error error = ExecuteScope::failed_writing(store, Ranges{mem(1)}, Error(ErrorCode::CompileGeneric, "does not compile"), &heard);
  CHECK(error.text() == "does not compile");
  CHECK(root(store, mem(1)) == "does not compile");
  CHECK(heard.texts == std::vector<std::string>{"does not compile"});
  ExecuteScope::failed_writing(store, {}, boom());
  CHECK(store.size() == 1);
}

TEST_CASE("while a scope is open its provisional claim is its own, and claims that come up meanwhile outlive its success") {
  FailureStore store;
  const Ranges writes{mem(1)};
  fail_on(store, mem(1, 0, 10), "older");
  ExecuteScope outer = ExecuteScope::over(store, writes, writes);
  outer.execute([&]() -> Result<void> {
    CHECK(root(store, mem(1, 10, 100)) == "");
    CHECK(ExecuteScope::launching(store, "other", Ranges{mem(1, 10, 100)}, Ranges{mem(2)}, {}).execute(good).kind == OutcomeKind::Executed);
    fail_on(store, mem(1, 50, 60), "newer");
    return {};
  });
  CHECK(root(store, mem(1, 0, 50)) == "");
  CHECK(root(store, mem(1, 50, 60)) == "newer");
}

TEST_CASE("an outer scope that fails because an inner one did keeps the inner error on the inner bytes") {
  FailureStore store;
  const Ranges writes{mem(1)};
  ExecuteScope outer = ExecuteScope::over(store, writes, writes);
  outer.execute([&]() -> Result<void> {
    fail_on(store, mem(1, 0, 50), "inner");
    return boom("outer");
  });
  CHECK(root(store, mem(1, 0, 50)) == "inner");
  CHECK(root(store, mem(1, 50, 100)) == "outer");
  ExecuteScope again = ExecuteScope::over(store, writes, {});
  again.execute([&]() -> Result<void> {
    fail_on(store, mem(1), "inner again");
    return boom("outer again");
  });
  CHECK(root(store, mem(1)) == "inner again");
  CHECK(store.size() == 1);
}

TEST_CASE("a failure that cannot be noted for lack of memory is not read as data either") {
  if (!test::allocations_counted()) return;
  FailureStore store;
  const Ranges writes{mem(1)}, beside{mem(2)};
  const Error error = boom();
  SUBCASE("of a body") {
    ExecuteScope scope = ExecuteScope::over(store, writes, writes);
    const test::NoMemory none;
    scope.execute([&]() -> Result<void> { return error; });
  }
  SUBCASE("of a scope that is lost") {
    std::optional<test::NoMemory> none;  // outlives the scope
    ExecuteScope scope = ExecuteScope::over(store, writes, writes);
    none.emplace();
  }
  SUBCASE("of a skip") {
    fail_on(store, mem(2), "root");
    bool threw = false;
    {
      const test::NoMemory none;
      try {
        ExecuteScope::launching(store, "a name that is too long to be kept in place", beside, writes, writes).execute(good);
      } catch (const std::bad_alloc&) {  // for the text of the skip
        threw = true;
      }
    }
    CHECK(threw);
  }
  const Result<void> read = store.ensure_written(writes);
  REQUIRE_FALSE(read);
  CHECK(read.error().text().find("no host memory left") != std::string::npos);
}

TEST_CASE("a success that cannot end a claim for lack of memory keeps it") {
  if (!test::allocations_counted()) return;
  FailureStore store;
  fail_on(store, mem(1), "older");
  const Ranges middle{mem(1, 40, 60)};
  {
    ExecuteScope scope = ExecuteScope::over(store, middle, middle);
    const test::NoMemory none;
    scope.execute(good);
  }
  CHECK(root(store, mem(1, 40, 60)) == "older");
  CHECK(ExecuteScope::over(store, middle, middle).execute(good).kind == OutcomeKind::Executed);
  CHECK(root(store, mem(1, 40, 60)) == "");
}
