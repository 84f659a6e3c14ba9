// The examples of docs/language/device-text.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_device_text {

// example: check
KILN_KERNEL(gather, (In<f32> table, In<u32> rows, Out<f32> y))
{
  auto i = global_id().x;
  If (i < y.size() && i < rows.size()) {
    check(rows[i] < table.size(), "row {} of {}", rows[i], table.size());
    y[i] = table[min(rows[i], table.size() - 1)];
  }
}
// end

}  // namespace docs_device_text

TEST_CASE("docs/language/device-text") {
  check_example<f32>(docs_device_text::gather, {{1}, {3}}, {buffer<f32>({5, 6, 7}), buffer<u32>({2, 0, 1}), filled<f32>(3, 0)}, 2,
                     {7, 5, 6});
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto table = Buffer<f32>::zeroed(client, 100).value();
    const auto rows = Buffer<u32>::from_host(client, {3, 200, 4}).value();
    auto y = Buffer<f32>::zeroed(client, 3).value();
    docs_device_text::gather({{1}, {3}}, table, rows, y);
    check_text("check", y.read().error().text());
  }
}
