// What a user sees of failures, on a device that is nothing but the bookkeeping. Most scenarios hold however the launch goes wrong: at
// enqueue, late, or torn down.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "failure_device.h"

using namespace kiln;
using namespace kiln::test;
using kiln::rt::OutcomeKind;
using Bytes = std::vector<std::uint8_t>;

namespace {

struct Way {
  const char* name;
  Fate fate;
  const char* root;  // what the report names
};
constexpr Way kWays[] = {{"fails at enqueue", Fate::Fails, "`bad` failed"},
                         {"faults late", Fate::FaultsLate, "`bad` failed"},
                         {"throws", Fate::Throws, "torn down"}};

void launch_bad(FakeDevice& device, std::vector<rt::BufferUse> uses, const Way& way, std::vector<ir::Visibility> proven = {}) {
  if (way.fate == Fate::Throws) CHECK_THROWS(device.launch("bad", uses, way.fate, 9, proven));
  else device.launch("bad", uses, way.fate, 9, proven);
}

void in_every_way(const std::function<void(FakeDevice&, const Way&)>& scenario) {
  for (const Way& way : kWays) {
    CAPTURE(way.name);
    FakeDevice device;
    scenario(device, way);
  }
}

}  // namespace

TEST_CASE("a healthy chain and a failing chain in turns do not touch each other") {
  in_every_way([](FakeDevice& d, const Way& way) {
    const FakeBuffer a = d.allocate(8), b = d.allocate(8), c = d.allocate(8), x = d.allocate(8), y = d.allocate(8);
    d.launch("fill", {out(a.all())});
    launch_bad(d, {out(x.all())}, way);
    d.copy(a.all(), b.all());
    d.copy(x.all(), y.all());
    d.copy(b.all(), c.all());
    CHECK(text_of(d.read(y.all())).find(way.root) != std::string::npos);
    CHECK(d.read(c.all()).value() == Bytes(8, 7));
    CHECK_FALSE(d.read(x.all()));
    CHECK_FALSE(d.read(y.all()));
    CHECK(d.read(c.all()).value() == Bytes(8, 7));
  });
}

TEST_CASE("every read of failed bytes fails, not only the first, and other buffers are as they were") {
  in_every_way([](FakeDevice& d, const Way& way) {
    const FakeBuffer x = d.allocate(8), other = d.allocate(8);
    d.write(other.all(), 7);
    launch_bad(d, {out(x.all())}, way);
    CHECK_FALSE(d.read(x.all()));
    CHECK_FALSE(d.read(x.all()));
    CHECK(d.read(other.all()).value() == Bytes(8, 7));
  });
}

TEST_CASE("operations of one order overwrite each other in that order") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(4);
  d.launch("fill", {out(a.all())});
  d.write(a.all(), 9);
  CHECK(d.read(a.all()).value() == Bytes(4, 9));
}

TEST_CASE("a kernel that never compiles claims what it declares to write and nothing else") {
  FakeDevice d;
  const FakeBuffer input = d.allocate(4), output = d.allocate(4);
  d.write(input.all(), 7);
  const std::vector<rt::BufferUse> uses{in(input.all()), out(output.all())};
  rt::IoSets sets;
  rt::io_sets(uses, {}, sets);
  rt::ExecuteScope::failed_writing(d.store, sets.writes, FakeDevice::failure_of("bad", ErrorCode::CompileGeneric));
  CHECK(d.read(input.all()).value() == Bytes(4, 7));
  const auto failed = d.read(output.all());
  REQUIRE_FALSE(failed);
  CHECK(failed.error().is_refusal());
  d.write(output.all(), 9);
  CHECK(d.read(output.all()).value() == Bytes(4, 9));
  CHECK(d.store.empty());
}

TEST_CASE("a kernel in place that never compiles claims the buffer that is its input too") {
  FakeDevice d;
  const FakeBuffer x = d.allocate(4);
  const std::vector<rt::BufferUse> uses{in(x.all()), out(x.all())};
  rt::IoSets sets;
  rt::io_sets(uses, {}, sets);
  rt::ExecuteScope::failed_writing(d.store, sets.writes, FakeDevice::failure_of("bad"));
  CHECK_FALSE(d.read(x.all()));
  // its input is not trustworthy, so running it again repairs nothing
  CHECK(d.launch("again", uses) == OutcomeKind::Skipped);
  CHECK_FALSE(d.read(x.all()));
}

TEST_CASE("failed bytes are repaired by what overwrites them whole, and by nothing else") {
  struct Row {
    const char* what;
    std::function<OutcomeKind(FakeDevice&, const FakeBuffer&)> repair;
    OutcomeKind outcome;
    bool repaired;
  };
  using V = ir::Visibility;
  const Row rows[] = {
      {"a host write", [](FakeDevice& d, const FakeBuffer& x) { return d.write(x.all(), 7); }, OutcomeKind::Executed, true},
      {"a failing host write", [](FakeDevice& d, const FakeBuffer& x) { return d.write(x.all(), 7, Fate::Fails); }, OutcomeKind::Failed,
       false},
      {"a copy onto it",
       [](FakeDevice& d, const FakeBuffer& x) {
         const FakeBuffer from = d.allocate(x.bytes);
         d.write(from.all(), 7);
         return d.copy(from.all(), x.all());
       },
       OutcomeKind::Executed, true},
      {"a launch that declares it Out", [](FakeDevice& d, const FakeBuffer& x) { return d.launch("fix", {out(x.all())}); },
       OutcomeKind::Executed, true},
      {"a launch that declares it Out and is proven to write it",
       [](FakeDevice& d, const FakeBuffer& x) { return d.launch("fix", {out(x.all())}, Fate::Good, 7, {V::WriteOnly}); },
       OutcomeKind::Executed, true},
      {"a launch that declares it Out, of which nothing is written",
       [](FakeDevice& d, const FakeBuffer& x) { return d.launch("fix", {out(x.all())}, Fate::Good, 7, {V::Dead}); }, OutcomeKind::Executed,
       false},
      {"a launch that declares it InOut", [](FakeDevice& d, const FakeBuffer& x) { return d.launch("fix", {inout(x.all())}); },
       OutcomeKind::Skipped, false},
      {"a launch that declares it InOut and is proven only to write it",
       [](FakeDevice& d, const FakeBuffer& x) { return d.launch("fix", {inout(x.all())}, Fate::Good, 7, {V::WriteOnly}); },
       OutcomeKind::Executed, false},
      {"a launch that declares nothing", [](FakeDevice& d, const FakeBuffer& x) { return d.launch("fix", {undeclared(x.all())}); },
       OutcomeKind::Skipped, false},
      {"a launch through a strided view", [](FakeDevice& d, const FakeBuffer& x) { return d.launch("fix", {strided_out(x.all())}); },
       OutcomeKind::Executed, false},
      {"a launch that only reads it", [](FakeDevice& d, const FakeBuffer& x) { return d.launch("fix", {in(x.all())}); },
       OutcomeKind::Skipped, false},
      {"a launch that faults late", [](FakeDevice& d, const FakeBuffer& x) { return d.launch("fix", {out(x.all())}, Fate::FaultsLate); },
       OutcomeKind::Executed, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    in_every_way([&](FakeDevice& d, const Way& way) {
      const FakeBuffer x = d.allocate(16);
      launch_bad(d, {out(x.all())}, way);
      d.confirm();
      CHECK(row.repair(d, x) == row.outcome);
      CHECK(d.read(x.all()).has_value() == row.repaired);
      if (row.repaired) CHECK(d.read(x.all()).value() == Bytes(16, 7));
      // The same with the fault of the first launch not known yet when the repair is enqueued: it runs in any case.
      if (way.fate != Fate::FaultsLate) return;
      const FakeBuffer late = d.allocate(16);
      launch_bad(d, {out(late.all())}, way);
      CHECK(row.repair(d, late) == (row.outcome == OutcomeKind::Skipped ? OutcomeKind::Executed : row.outcome));
      CHECK(d.read(late.all()).has_value() == row.repaired);
      d.free(x);
      d.free(late);
      CHECK(d.store.empty());
    });
  }
}

TEST_CASE("a repair of a part leaves the rest claimed") {
  in_every_way([](FakeDevice& d, const Way& way) {
    const FakeBuffer x = d.allocate(100);
    launch_bad(d, {out(x.all())}, way);
    d.write(x.part(40, 60), 7);
    CHECK(d.read(x.part(40, 60)).value() == Bytes(20, 7));
    CHECK_FALSE(d.read(x.part(39, 41)));
    CHECK_FALSE(d.read(x.part(59, 60 + 1)));
    CHECK(d.launch("reader", {in(x.part(45, 50))}) == OutcomeKind::Executed);
    CHECK(d.launch("reader", {in(x.part(45, 61))}) == OutcomeKind::Skipped);
  });
}

TEST_CASE("success of a launch in C's absence keeps older claims, also those in the middle of W") {
  FakeDevice d;
  const FakeBuffer x = d.allocate(100);
  d.launch("bad", {out(x.part(20, 40))}, Fate::Fails);
  CHECK(d.launch("scatter", {strided_out(x.all())}) == OutcomeKind::Executed);
  CHECK_FALSE(d.read(x.part(20, 40)));
  CHECK(d.read(x.part(0, 20)));
  CHECK(d.read(x.part(40, 100)));
}

TEST_CASE("a read at the end of a chain names the root, every skip between, and the number of the failure") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(4), b = d.allocate(4), c = d.allocate(4);
  d.launch("bad", {out(a.all())}, Fate::Fails);
  d.copy(a.all(), b.all());
  d.copy(b.all(), c.all());
  const std::string text = text_of(d.read(c.all()));
  CAPTURE(text);
  CHECK(text.find("`bad` failed") != std::string::npos);
  CHECK(count(text, "skipped `") == 2);
  CHECK(text.find("failure #") != std::string::npos);
}

TEST_CASE("a check fails without waiting and without copying; it may miss what is not confirmed") {
  FakeDevice d;
  const FakeBuffer x = d.allocate(4), late = d.allocate(4);
  d.launch("bad", {out(x.all())}, Fate::Fails);
  d.launch("bad", {out(late.all())}, Fate::FaultsLate);
  CHECK_FALSE(d.check({x.all()}));
  CHECK(d.check({late.all()}));
  CHECK(d.log.size() == 1);
  d.confirm();
  CHECK_FALSE(d.check({late.all()}));
  const Result<void> both = d.check({late.all(), x.all()});
  REQUIRE_FALSE(both);
  CHECK(both.error().causes().size() == 2);
}

TEST_CASE("a launch whose size comes from a claimed buffer is skipped: size and output both report") {
  in_every_way([](FakeDevice& d, const Way& way) {
    const FakeBuffer size = d.allocate(12), output = d.allocate(4);
    launch_bad(d, {out(size.all())}, way);
    d.confirm();
    // the runtime adds the buffer of the size to R
    CHECK(d.launch("dynamic", {in(size.all()), out(output.all())}) == OutcomeKind::Skipped);
    CHECK(text_of(d.read(size.all())).find(way.root) != std::string::npos);
    CHECK(text_of(d.read(output.all())).find(way.root) != std::string::npos);
  });
}

TEST_CASE("freeing failed memory ends its claims and keeps those that passed on") {
  in_every_way([](FakeDevice& d, const Way& way) {
    const FakeBuffer a = d.allocate(4), b = d.allocate(4);
    launch_bad(d, {out(a.all())}, way);
    d.copy(a.all(), b.all());
    d.free(a);
    d.confirm();
    CHECK(text_of(d.read(b.all())).find(way.root) != std::string::npos);
    CHECK(d.store.size() == 1);
    CHECK(d.store.tagged(1) == 1);
    d.free(b);
    CHECK(d.store.empty());
    CHECK(d.log.size() == 0);
  });
}

TEST_CASE("several host writes: each has a scope of its own, so one that fails does not stop the others") {
  FakeDevice d;
  const FakeBuffer a = d.allocate(4), b = d.allocate(4), c = d.allocate(4);
  d.write(a.all(), 1);
  d.write(b.all(), 2, Fate::Fails);
  d.write(c.all(), 3);
  CHECK(d.read(a.all()).value() == Bytes(4, 1));
  CHECK_FALSE(d.read(b.all()));
  CHECK(d.read(c.all()).value() == Bytes(4, 3));
}
