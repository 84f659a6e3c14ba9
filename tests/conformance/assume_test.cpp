// The author's word, on every device: tested in checked kernels, built on in unchecked ones.
#include "conformance/everywhere.h"
#include "kiln/ir/text.h"

using namespace kiln;
using namespace kiln::test;

namespace {

const ir::Opcode kBranch = ir::parse_opcode("if").value();  // its name is a macro here

const Error& root(const Error& error) { return error.causes().empty() ? error : root(error.causes().front()); }

// y[i] = x[i] + 1, whose author says that the index is in range.
std::shared_ptr<const Variant> trusting() {
  return kernel("trusting", [](In<u32> x, InOut<u32> y) {
    auto i = global_id().x;
    assume(i < x.size() && x[i] > 0);
    If (i < x.size()) { y[i] = x[i] + 1; }
  });
}

std::size_t count(const ir::Kernel& k, ir::Opcode code) {
  std::size_t n = 0;
  ir::walk(k, 0, [&](ir::OpId id) { n += k.op(id).code == code; });
  return n;
}

}  // namespace

TEST_CASE("what holds changes nothing, checked or not") {
  std::vector<u32> x(64), wanted(64);
  for (u32 i = 0; i < 64; ++i) x[i] = i + 1, wanted[i] = i + 2;
  check_run(*trusting(), {{2}, {32}}, {buffer(x), filled<u32>(64, 0)}, 1, wanted);
}

TEST_CASE("where it does not hold a checked launch fails with the condition, line and thread; the device is well") {
  const auto k = trusting();
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    std::vector<u32> numbers(64, 5);
    numbers[33] = 0;
    const auto x = Buffer<u32>::from_host(client, numbers).value(), y = Buffer<u32>::zeroed(client, 64).value();
    const LaunchArg args[] = {x.arg(), y.arg()};
    REQUIRE(launch(client.default_stream(), {k.get(), {{2}, {32}}, args, {}}).has_value());
    const auto read = y.read();
    REQUIRE_FALSE(read.has_value());
    const Error& failed = root(read.error());
    CHECK(failed.code() == ErrorCode::CheckFailed);
    CHECK(failed.data().message ==
          "the assumption does not hold: (global_id().x < p0.size()) && (p0[global_id().x] > 0), in thread (1, 0, 0) of block (1, 0, 0)");
    CHECK(failed.data().place.find("assume_test.cpp:18") != std::string::npos);
    CHECK(failed.data().bounds->operation == "assume");
    CHECK_FALSE(failed.is_device_poisoned());
    CHECK(Buffer<u32>::zeroed(client, 1).value().read().value() == std::vector<u32>{0});
  }
}

TEST_CASE("a checked access is tested whatever is assumed about it: a word that is false leads to no access out of range") {
  const auto k = kernel("false_word", [](In<u32> at, InOut<u32> y) {
    auto i = thread_id().x;
    Val<u32> place = at[i];
    assume(place < y.size());
    y[place] = 1;
  });
  const auto checked = k->prepared(ir::PrepareOptions::Mode::Checked);
  bool tested = false;
  ir::walk((*checked)->kernel, 0, [&](ir::OpId id) {
    const ir::Op& op = (*checked)->kernel.op(id);
    if (op.code == ir::Opcode::Store) tested = op.bounds == ir::Bounds::Checked;
  });
  CHECK(tested);
  std::vector<u32> at(32);
  for (u32 i = 0; i < 32; ++i) at[i] = i == 7 ? 4'000'000'000u : i;
  for (const Outcome& o : run_everywhere(*k, {{1}, {32}}, {buffer(at), view(std::vector<u32>(40, 0), 4, {32})}, {.unchecked = false}))
    CHECK_MESSAGE(o.fault.has_value(), o.where);
}

TEST_CASE("an unchecked kernel builds on it: branches that it decides are gone, and nothing is left of it") {
  const auto k = kernel("decided", [](In<u32> x, InOut<u32> y) {
    auto i = global_id().x;
    assume(i < y.size() && !(x.size() == 0));
    If (i < y.size()) {
      If (x.size() == 0) { y[i] = 7; }
      Else { y[i] = 8; }
    }
  });
  const ir::Kernel& unchecked = (*k->prepared(ir::PrepareOptions::Mode::Unchecked))->kernel;
  CAPTURE(ir::print(unchecked));
  CHECK(count(unchecked, ir::Opcode::Assume) == 0);
  CHECK(count(unchecked, kBranch) == 0);
  CHECK(count(unchecked, ir::Opcode::Lt) == 0);
  CHECK(count(unchecked, ir::Opcode::Store) == 1);
  const ir::Kernel& checked = (*k->prepared(ir::PrepareOptions::Mode::Checked))->kernel;
  CHECK(count(checked, ir::Opcode::Assume) == 1);
  CHECK(count(checked, kBranch) >= 1);
  check_run(*k, {{1}, {32}}, {filled<u32>(3, 1), filled<u32>(32, 0)}, 1, std::vector<u32>(32, 8));
}

TEST_CASE("what is assumed in a branch holds there only") {
  const auto k = kernel("branch", [](In<u32> x, InOut<u32> y) {
    auto i = thread_id().x;
    Val<bool> small = x[i] < 10;
    Var<u32> r = 0;
    If (i % 2 == 0) {
      assume(small);
      If (small) { r = 1; }
      Else { r = 2; }
    }
    If (small) { r += 10; }
    y[i] = r;
  });
  std::vector<u32> x(32), wanted(32);
  for (u32 i = 0; i < 32; ++i) {
    const bool small = i % 2 == 0 || i % 3 == 0;
    x[i] = small ? i % 10 : 10 + i;
    wanted[i] = (i % 2 == 0 ? 1 : 0) + (small ? 10 : 0);
  }
  check_run(*k, {{1}, {32}}, {buffer(x), filled<u32>(32, 0)}, 1, wanted);
}
