// Random operations whose failures are known at once, against one value and one failure a byte.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "failure_device.h"

using namespace kiln;
using namespace kiln::test;
using kiln::rt::OutcomeKind;

namespace {

struct Byte {
  std::uint8_t value = 0;
  std::string failed;  // name of the launch at the root, "" for none
};

class Run {
 public:
  explicit Run(unsigned seed) : random_(seed) {}

  void step(int number) {
    const std::uint64_t what = below(100);
    if (what < 20) return allocate();
    if (buffers_.empty()) return;
    if (what < 40) return launch("bad" + std::to_string(number), below(4) == 0 ? Fate::Throws : Fate::Fails);
    if (what < 60) return launch("good" + std::to_string(number), Fate::Good);
    if (what < 70) return host_write();
    if (what < 90) return read();
    if (what < 96) return free(below(buffers_.size()));
    device_.confirm();  // a cleanup: what is done is forgotten
  }

  void finish() {
    while (!buffers_.empty()) free(buffers_.size() - 1);
    device_.confirm();
    CHECK(device_.store.empty());
    CHECK(device_.log.size() == 0);
  }

  bool ok() const { return ok_; }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  void expect(bool holds) { ok_ = ok_ && holds; }

  void allocate() {
    if (buffers_.size() == 9) free(below(9));
    const FakeBuffer buffer = device_.allocate(32 * (1 + below(64)));
    buffers_.push_back(buffer);
    model_[buffer.memory].resize(buffer.bytes);
  }

  void free(std::uint64_t i) {
    model_.erase(buffers_[i].memory);
    device_.free(buffers_[i]);
    buffers_.erase(buffers_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  rt::MemoryRange some_range() {
    const FakeBuffer& buffer = buffers_[below(buffers_.size())];
    if (below(2) == 0) return buffer.all();
    const std::uint64_t a = below(buffer.bytes + 1), b = below(buffer.bytes + 1);
    return buffer.part(std::min(a, b), std::max(a, b));
  }

  // The root on the first claimed byte, "" for none.
  std::string failed(const rt::MemoryRange& where) {
    for (std::uint64_t i = where.range.begin; i < where.range.end; ++i)
      if (!model_[where.memory][i].failed.empty()) return model_[where.memory][i].failed;
    return "";
  }
  void set(const rt::MemoryRange& where, const std::string& root) {
    for (std::uint64_t i = where.range.begin; i < where.range.end; ++i) model_[where.memory][i].failed = root;
  }
  void fill(const rt::MemoryRange& where, std::uint8_t value) {
    for (std::uint64_t i = where.range.begin; i < where.range.end; ++i) model_[where.memory][i].value = value;
  }

  void launch(const std::string& name, Fate fate) {
    std::vector<rt::BufferUse> uses;
    std::vector<ir::Visibility> proven;
    for (std::uint64_t n = 1 + below(3); n > 0; --n) {
      rt::BufferUse use{some_range(), std::nullopt, below(5) == 0};
      const std::uint64_t declared = below(8);  // mostly Out
      if (declared < 4) use.declared = ir::Access::Out;
      if (declared == 4 || declared == 5) use.declared = ir::Access::In;
      if (declared == 6) use.declared = ir::Access::InOut;
      uses.push_back(use);
    }
    if (below(2) == 0)
      for (std::size_t i = 0; i < uses.size(); ++i) proven.push_back(static_cast<ir::Visibility>(below(4)));

    // what must happen, said once more without io_sets
    std::string root;
    const auto reads = [&](std::size_t i) { return proven.empty() ? uses[i].declared != ir::Access::Out : ir::reads(proven[i]); };
    const auto writes = [&](std::size_t i) { return proven.empty() ? uses[i].declared != ir::Access::In : ir::writes(proven[i]); };
    for (std::size_t i = 0; i < uses.size() && root.empty(); ++i)
      if (reads(i)) root = failed(uses[i].where);
    const bool skipped = !root.empty();
    if (!skipped && fate == Fate::Fails) root = "`" + name + "` failed";
    if (!skipped && fate == Fate::Throws) root = "torn down";
    const std::uint8_t value = static_cast<std::uint8_t>(below(256));
    OutcomeKind outcome = OutcomeKind::Executed;
    try {
      outcome = device_.launch(name, uses, fate, value, proven);
      expect(outcome == (skipped ? OutcomeKind::Skipped : fate == Fate::Good ? OutcomeKind::Executed : OutcomeKind::Failed));
    } catch (const std::exception&) { expect(fate == Fate::Throws && !skipped); }
    for (std::size_t i = 0; i < uses.size(); ++i) {
      if (!writes(i)) continue;
      if (!root.empty()) set(uses[i].where, root);
      if (root.empty()) fill(uses[i].where, value);
      if (root.empty() && uses[i].declared == ir::Access::Out && !uses[i].strided) set(uses[i].where, "");
    }
  }

  void host_write() {
    const rt::MemoryRange where = some_range();
    const std::uint8_t value = static_cast<std::uint8_t>(below(256));
    expect(device_.write(where, value) == OutcomeKind::Executed);
    fill(where, value);
    set(where, "");
  }

  void read() {
    const rt::MemoryRange where = some_range();
    const auto result = device_.read(where);
    std::set<std::string> roots;
    std::vector<std::uint8_t> values;
    for (std::uint64_t i = where.range.begin; i < where.range.end; ++i) {
      if (!model_[where.memory][i].failed.empty()) roots.insert(model_[where.memory][i].failed);
      values.push_back(model_[where.memory][i].value);
    }
    expect(result.has_value() == roots.empty());
    if (result) {
      expect(*result == values);
      return;
    }
    expect(result.error().code() == ErrorCode::Several);
    std::set<std::string> reported;
    for (const Error& unwritten : result.error().causes()) {
      expect(unwritten.code() == ErrorCode::Unwritten);
      const Error& root = unwritten.causes().at(0);
      reported.insert(root.code() == ErrorCode::TornDown ? "torn down" : root.data().message);
    }
    expect(reported == roots);
  }

  std::mt19937 random_;
  FakeDevice device_;
  std::vector<FakeBuffer> buffers_;
  std::map<std::uint64_t, std::vector<Byte>> model_;
  bool ok_ = true;
};

}  // namespace

TEST_CASE("random operations read as data exactly what was written and fail exactly where a failure lies, and at the end nothing is left") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Run run(seed);
    for (int i = 0; i < 300 && run.ok(); ++i) {
      CAPTURE(i);
      run.step(i);
      CHECK(run.ok());
    }
    run.finish();
  }
}
