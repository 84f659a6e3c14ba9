// The examples of docs/language/device-text.md.
#include "cpu/cpu_device.h"
#include "docs/examples.h"
#include "src/server.h"

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

// example: assume
KILN_KERNEL(coarsened, (In<f32> x, Out<f32> y, Val<u32> factor))
{
  assume(factor > 0);
  auto i = global_id().x;
  If (i < y.size()) {
    Var<f32> sum = 0;
    for (auto n : range(factor)) {
      Val<u32> at = i * factor + n;
      If (at < x.size()) { sum += x[at]; }
    }
    y[i] = sum;
  }
}
// end

// example: trap
KILN_KERNEL(dispatch, (In<u32> codes, InOut<u32> y))
{
  auto i = global_id().x;
  If (i < y.size() && i < codes.size()) {
    Switch(codes[i]) {
      Case(0) { y[i] += 1; }
      Case(1) { y[i] *= 2; }
      Default { trap("there is no such code"); }
    }
  }
}
// end

// example: log
KILN_KERNEL(normalised, (In<f32> x, InOut<f32> y))
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) {
    Val<f32> v = x[i];
    If (abs(v) > 1000) { log("x[{}] = {:.1f}, bits {:08x}", i, v, bit_cast<u32>(v)); }
    y[i] = v / (1 + abs(v));
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
  check_example<f32>(docs_device_text::coarsened, {{1}, {2}}, {buffer<f32>({1, 2, 3}), filled<f32>(2, 0), scalar<u32>(2)}, 1, {3, 3});
  check_example<u32>(docs_device_text::dispatch, {{1}, {3}}, {buffer<u32>({0, 1, 0}), buffer<u32>({5, 5, 5})}, 1, {6, 10, 6});
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto x = Buffer<f32>::from_host(client, {1, -2e6f, 3}).value();
    auto y = Buffer<f32>::zeroed(client, 3).value();
    docs_device_text::coarsened({{1}, {1}}, x, y, 0);
    check_text("assume", y.read().error().text());
    y.write({0, 0, 0});
    std::vector<Line> lines;
    const Listening listening(client, lines);
    docs_device_text::normalised({{1}, {3}}, x, y);
    CHECK(y.read().value()[0] == 0.5f);
    REQUIRE(lines.size() == 1);
    check_text("log", lines[0].text);
  }
  // What it says is the same on all devices; this one is nobody else's.
  const Client client(rt::make_server(rt::make_cpu_device().value()));
  const auto codes = Buffer<u32>::from_host(client, {0, 7}).value();
  auto y = Buffer<u32>::zeroed(client, 2).value();
  docs_device_text::dispatch({{1}, {2}}, codes, y);
  const auto read = y.read();
  REQUIRE_FALSE(read.has_value());
  check_text("trap", read.error().causes().at(0).text());
}
