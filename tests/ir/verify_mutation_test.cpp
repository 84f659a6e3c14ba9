// Kernels changed at random below the text: the verifier, the printer and compact take anything; what the verifier accepts, prepare takes.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "kiln/ir/passes.h"
#include "kiln/ir/text.h"
#include "kiln/ir/verify.h"

using namespace kiln::ir;

namespace {

class Mutator {
 public:
  Mutator(Kernel& k, std::uint64_t seed) : k_(k), state_(seed) {}

  void change() {
    if (k_.ops.empty()) return;
    Op& op = k_.ops[below(k_.ops.size())];
    switch (below(16)) {
      case 0: op.code = static_cast<Opcode>(below(kOpcodeCount)); break;
      case 1: op.type = static_cast<Type>(below(kTypeCount)); break;
      case 2: op.attr = static_cast<std::uint8_t>(below(9)); break;
      case 3: op.index = below(10) == 0 ? kNone : static_cast<std::uint32_t>(below(k_.mems.size() + 2)); break;
      case 4: op.imm = next(); break;
      case 5:
      case 6:
      case 7:
        if (!op.operands.empty()) op.operands[below(op.operands.size())] = static_cast<ValueId>(below(k_.ops.size() + 1));
        break;
      case 8: op.operands.push_back(static_cast<ValueId>(below(k_.ops.size()))); break;
      case 9:
        if (!op.operands.empty()) op.operands.pop_back();
        break;
      case 10:
        if (!op.regions.empty()) op.regions[below(op.regions.size())] = static_cast<RegionId>(below(k_.regions.size() + 1));
        break;
      case 11: op.regions.push_back(static_cast<RegionId>(below(k_.regions.size()))); break;
      case 12: op.cases.push_back(next() >> below(64)); break;
      case 13: {
        std::vector<OpId>& ops = k_.regions[below(k_.regions.size())].ops;
        if (ops.size() > 1) std::swap(ops[below(ops.size())], ops[below(ops.size())]);
        break;
      }
      case 14: {
        std::vector<OpId>& ops = k_.regions[below(k_.regions.size())].ops;
        if (!ops.empty()) ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(below(ops.size())));
        break;
      }
      default: declaration();
    }
  }

  std::size_t below(std::size_t n) { return n == 0 ? 0 : next() % n; }

 private:
  void declaration() {
    if (k_.mems.empty() || k_.params.empty()) return;
    Mem& m = k_.mems[below(k_.mems.size())];
    Param& p = k_.params[below(k_.params.size())];
    switch (below(9)) {
      case 0: m.rank = static_cast<std::uint8_t>(below(7)); break;
      case 1: m.space = static_cast<Space>(below(3)); break;
      case 2: m.element = static_cast<Type>(below(kTypeCount)); break;
      case 3: m.access = static_cast<Access>(below(3)); break;
      case 4: m.dynamic = !m.dynamic; break;
      case 5: m.extents[below(kMaxRank)] = next() >> below(64); break;
      case 6: p.is_buffer = !p.is_buffer; break;
      case 7: p.mem = static_cast<std::uint32_t>(below(k_.mems.size() + 1)); break;
      default: p.type = static_cast<Type>(below(kTypeCount)); break;
    }
  }

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  Kernel& k_;
  std::uint64_t state_;
};

}  // namespace

TEST_CASE("kernels changed at random are verified without a crash, and good ones can be prepared and printed") {
  std::ifstream in(KILN_SOURCE_DIR "/tests/ir/forms.kir", std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  const Kernel original = parse(text.str())[0];
  int good = 0, bad = 0;
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    CAPTURE(seed);
    Kernel k = original;
    Mutator mutator(k, seed);
    for (std::size_t i = 1 + mutator.below(3); i > 0; --i) mutator.change();
    const Diagnostics found = verify(k);
    const std::string printed = print(k);
    REQUIRE_FALSE(printed.empty());
    if (!found.empty()) {
      ++bad;
      continue;
    }
    ++good;
    REQUIRE(print(parse_kernel(printed)) == printed);
    Prepared p;
    REQUIRE_NOTHROW(p = prepare(k));
    REQUIRE(verify(p.kernel).empty());
  }
  CHECK(good > 300);
  CHECK(bad > 2000);
}
