// Tables of kernels whose accesses say what is expected of them: `proven` or `checked`. For the tests of the bounds prover.
#pragma once
#include "kiln/ir/verify.h"
#include "pass_fixture.h"

namespace kiln::ir::test {

struct Row {
  const char *title, *declarations, *body;
};

template <std::size_t N>
void check_rows(const Row (&rows)[N], const std::string& common = "") {
  for (const Row& row : rows) {
    CAPTURE(std::string(row.title));
    Kernel k = kernel_of(common + row.declarations, row.body);
    REQUIRE(to_string(verify(k)) == "");
    std::vector<std::pair<OpId, Bounds>> expected;
    for (OpId id = 0; id < k.ops.size(); ++id) {
      if (!is_access(k.op(id).code)) continue;
      REQUIRE(k.op(id).bounds != Bounds::Undecided);
      expected.emplace_back(id, k.op(id).bounds);
      k.op(id).bounds = Bounds::Undecided;
    }
    const std::size_t checked = decide_bounds(k);
    std::size_t expected_checked = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK((k.op(expected[i].first).bounds == Bounds::Proven) == (expected[i].second == Bounds::Proven));
      expected_checked += expected[i].second == Bounds::Checked;
    }
    CHECK(checked == expected_checked);
  }
}

}  // namespace kiln::ir::test
