// Random operations whose faults show late, confirmed bit by bit in any order, against a byte model that goes through the whole history
// again with what is known. What the bookkeeping says must be what it would say had each fault been known when its operation was enqueued.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/failure/launch_log.h"
#include "src/failure/scope.h"

using namespace kiln;
using namespace kiln::rt;

namespace {

using Label = std::uint32_t;  // number of the operation at the root, 0 for none
using State = std::map<std::uint64_t, std::vector<Label>>;

struct Operation {
  LogKind kind = LogKind::Launch;
  IoSets sets;
  std::uint64_t memory = 0;  // Free
  bool fails = false;        // at enqueue
  bool faults = false;       // late
  bool fault_known = false;
  bool alloc = false;
  Label sticky = 0;  // carried since it became known: what a report names
  std::unique_ptr<LogRead> read;
};

Label lowest(const State& state, const std::vector<MemoryRange>& ranges) {
  for (const MemoryRange& range : ranges)
    for (std::uint64_t i = range.range.begin; i < range.range.end; ++i)
      if (const Label label = state.at(range.memory)[i]) return label;
  return 0;
}
void set(State& state, const std::vector<MemoryRange>& ranges, Label label) {
  for (const MemoryRange& range : ranges)
    std::fill(state.at(range.memory).begin() + static_cast<std::ptrdiff_t>(range.range.begin),
              state.at(range.memory).begin() + static_cast<std::ptrdiff_t>(range.range.end), label);
}

class Run {
 public:
  explicit Run(unsigned seed) : random_(seed) {}

  void step() {
    const std::uint64_t what = below(100);
    if (what < 15 || alive_.empty()) return allocate();
    if (what < 60) return operation(LogKind::Launch);
    if (what < 68) return operation(LogKind::Copy);
    if (what < 76) return operation(LogKind::HostWrite);
    if (what < 80) return free(below(alive_.size()));
    if (what < 84) return confirm(0);
    if (what < 90) return read();
    confirm(below(100));
  }

  void finish() {
    confirm(0);
    while (!alive_.empty()) free(alive_.size() - 1);
    CHECK(store_.empty());
    CHECK(log_.size() == 0);
  }

  bool ok() const { return ok_; }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  void expect(bool holds) { ok_ = ok_ && holds; }

  void allocate() {
    if (alive_.size() == 6) free(below(6));
    Operation op;
    op.alloc = true;
    op.memory = ++last_memory_;
    sizes_[op.memory] = 1 + below(40);
    alive_.push_back(op.memory);
    history_.push_back(std::move(op));
  }

  void free(std::uint64_t i) {
    Operation op;
    op.kind = LogKind::Free;
    op.memory = alive_[i];
    log_.freed(op.memory);
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(i));
    history_.push_back(std::move(op));
  }

  MemoryRange some_range() {
    const std::uint64_t memory = alive_[below(alive_.size())], bytes = sizes_[memory];
    if (below(3) == 0) return {memory, {0, bytes}};
    const std::uint64_t a = below(bytes + 1), b = below(bytes + 1);
    return {memory, {std::min(a, b), std::max(a, b)}};
  }

  void read() {
    Operation op;
    op.kind = LogKind::Read;
    op.sets.reads.push_back(some_range());
    op.read = std::make_unique<LogRead>(log_, op.sets.reads.back());
    history_.push_back(std::move(op));
    compare();
  }

  void operation(LogKind kind) {
    Operation op;
    op.kind = kind;
    if (kind == LogKind::Launch) {
      for (std::uint64_t n = below(3); n > 0; --n) op.sets.reads.push_back(some_range());
      for (std::uint64_t n = below(3); n > 0; --n) {
        MemoryRange range = some_range();
        op.sets.writes.push_back(range);
        if (below(4) == 0) op.sets.reads.push_back(range);  // in place
        if (below(2) == 0) continue;
        if (below(3) == 0) range.range.begin = (range.range.begin + range.range.end) / 2;  // C a part of W
        op.sets.covers.push_back(range);
      }
      op.fails = below(10) == 0;
      op.faults = !op.fails && below(4) == 0;
    } else {
      if (kind == LogKind::Copy) op.sets.reads.push_back(some_range());
      op.sets.writes.push_back(some_range());
      op.sets.covers = op.sets.writes;
      op.fails = below(15) == 0;
    }
    const Label number = static_cast<Label>(history_.size() + 1);
    const Label claimed = lowest(replay(true), op.sets.reads);
    ExecuteScope scope = ExecuteScope::launching(store_, "op", op.sets);
    const Outcome<void> outcome = scope.execute([&]() -> Result<void> {
      if (op.fails) return error(number);
      return {};
    });
    expect(outcome.kind == (claimed ? OutcomeKind::Skipped : op.fails ? OutcomeKind::Failed : OutcomeKind::Executed));
    if (claimed && outcome.kind == OutcomeKind::Skipped) expect(number_of(outcome.result.error().causes().at(0)) == claimed);
    if (outcome.kind == OutcomeKind::Executed)
      log_.append({.kind = kind,
                   .name = nullptr,
                   .stamp = scope.stamp(),
                   .reads = op.sets.reads,
                   .writes = op.sets.writes,
                   .covers = op.sets.covers,
                   .stream = 0,
                   .position = 0,
                   .slot = number});
    op.sticky = claimed ? claimed : op.fails ? number : 0;
    if (claimed) op.faults = false;  // did not run
    history_.push_back(std::move(op));
    compare();
  }

  void confirm(std::uint64_t percent_pending) {
    log_.confirm([&](const LogView& view) -> Verdict {
      if (below(100) < percent_pending) return Verdict::pending();
      Operation& op = history_[view.slot - 1];
      expect(!op.fault_known);
      if (!op.faults) return Verdict::clean();
      op.fault_known = true;
      return Verdict::faulted(error(view.slot));
    });
    compare();
  }

  // The state after the whole history with what is known. With `roots`, an operation that was known to carry a failure keeps that one (a
  // report does not change its mind when an earlier root turns up), and what is found now is remembered; without, everything is decided
  // afresh: perfect knowledge.
  State replay(bool roots) {
    State state;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      Operation& op = history_[i];
      const Label number = static_cast<Label>(i + 1);
      if (op.alloc) {
        state[op.memory].assign(sizes_[op.memory], 0);
      } else if (op.kind == LogKind::Free) {
        state.erase(op.memory);
      } else if (op.kind == LogKind::Read) {
        if (!roots) expect(op.read->verdict().has_value() == (lowest(state, op.sets.reads) == 0));
      } else {
        Label label = roots ? op.sticky : 0;
        if (!label) label = lowest(state, op.sets.reads);
        if (!label && (op.fails || (op.faults && op.fault_known))) label = number;
        if (label) set(state, op.sets.writes, label);
        else set(state, op.sets.covers, 0);
        if (roots) op.sticky = label;
      }
    }
    return state;
  }

  void compare() {
    const State named = replay(true), perfect = replay(false);
    std::set<Label> present;
    for (const auto& [memory, bytes] : named) {
      std::vector<Label> mine(bytes.size(), 0);
      for (const Claim& claim : store_.claims(memory))
        for (std::uint64_t i = claim.range.begin; i < claim.range.end; ++i) mine[i] = number_of(*store_.error(claim.failure));
      expect(mine == bytes);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        expect((mine[i] != 0) == (perfect.at(memory)[i] != 0));
        if (mine[i]) present.insert(mine[i]);
      }
    }
    expect(store_.size() == present.size());
  }

  static Error error(Label number) { return Error(ErrorCode::Bounds, std::to_string(number)); }
  static Label number_of(const Error& e) { return static_cast<Label>(std::stoul(e.data().message)); }

  std::mt19937 random_;
  FailureStore store_;
  LaunchLog log_{store_};
  std::vector<Operation> history_;
  std::vector<std::uint64_t> alive_;
  std::map<std::uint64_t, std::uint64_t> sizes_;
  std::uint64_t last_memory_ = 0;
  bool ok_ = true;
};

}  // namespace

TEST_CASE("late faults leave the claims that perfect knowledge would have left, whatever is confirmed when") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Run run(seed);
    for (int i = 0; i < 300 && run.ok(); ++i) {
      CAPTURE(i);
      run.step();
      CHECK(run.ok());
    }
    run.finish();
  }
}
