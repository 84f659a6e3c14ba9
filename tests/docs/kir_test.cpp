// The kernels that docs/kir.md shows.
#include "docs/examples.h"
#include "kiln/ir/text.h"
#include "support/process.h"

using namespace kiln;
using namespace kiln::test;

namespace {

const std::string kRoot = KILN_SOURCE_DIR;

}  // namespace

TEST_CASE("docs/kir: the kernels run, and are the same when they are printed and parsed") {
  const std::string saxpy = read_file(kRoot + "/samples/kir/saxpy.kir"), flow = read_file(kRoot + "/tests/docs/files/control_flow.kir");
  check_run<f32>(*from_text(saxpy), {{1}, {32}}, {filled<f32>(5, 1), filled<f32>(5, 2), scalar<f32>(3)}, 1, std::vector<f32>(5, 5));
  // 0 + 1 + 2 + 4, doubled until it is 10 or more.
  check_run<u32>(*from_text(flow), {{1}, {32}}, {filled<u32>(4, 0), scalar<u32>(7)}, 0, std::vector<u32>(4, 14));
  for (const std::string& text : {saxpy, flow}) {
    const std::string printed = ir::print(std::vector{from_text(text)->recorded()});
    CHECK(ir::print(std::vector{from_text(printed)->recorded()}) == printed);
  }
}
