// Strided views and pitched buffers: which bytes they touch, against a naive model, on every device.
#include "kiln/runtime/strided.h"

#include <doctest/doctest.h>

#include <numeric>
#include <random>

#include "cpu/cpu_device.h"
#include "kiln/runtime/graph.h"
#include "kiln/runtime/layout.h"
#include "kiln/runtime/staging.h"
#include "runtime/refusals.h"
#include "src/server.h"
#include "src/strided.h"
#include "support/each_client.h"

using namespace kiln;
using test::rule_of;
using test::thrown_rule;

namespace {

std::vector<u32> numbers(std::size_t n, u32 first = 0) {
  std::vector<u32> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}
Error some_failure(const char* text = "it was not to be") { return Error(ErrorCode::Generic, text); }

// Where each element of a view lies in its memory, row-major.
template <class T, unsigned R>
std::vector<std::size_t> places(const StridedView<T, R>& view) {
  std::vector<std::size_t> all;
  std::array<std::uint64_t, R> at{};
  for (std::uint64_t i = 0; i < view.size(); ++i) {
    std::uint64_t place = view.binding().range.begin / sizeof(T);
    for (unsigned d = 0; d < R; ++d) place += at[d] * view.stride(d);
    all.push_back(place);
    for (unsigned d = R; d-- > 0 && ++at[d] == view.extent(d);) at[d] = 0;
  }
  return all;
}

}  // namespace

TEST_CASE("a view names the elements that its steps, boxes and exchanged dimensions say, and keeps the memory") {
  const Client client = test::each_client();
  auto b = Buffer<u32, 2>::from_host(client, numbers(24), {4, 6}).value();
  const StridedView view(b);
  CHECK(view.read().value() == numbers(24));
  CHECK(view.transposed().range(1, 1, 2).read().value() == std::vector<u32>{6, 12, 7, 13, 8, 14, 9, 15, 10, 16, 11, 17});
  CHECK(view.range(1, 1, 3, 2).read().value() == std::vector<u32>{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23});
  CHECK(view.box({1, 2}, {2, 3}).read().value() == std::vector<u32>{8, 9, 10, 14, 15, 16});
  CHECK(view.box({1, 2}, {2, 3}).transposed().read().value() == std::vector<u32>{8, 14, 9, 15, 10, 16});
  CHECK(view.box({3, 5}, {1, 1}).broadcast(0, 3).read().value() == std::vector<u32>{23, 23, 23});
  CHECK(view.range(0, 2, 1).broadcast(0, 2).range(1, 0, 2).read().value() == std::vector<u32>{12, 13, 12, 13});
  CHECK(view.range(0, 4, 0).read().value().empty());
  CHECK(view.range(0, 4, 0).binding().memory == nullptr);
  CHECK(view.box({1, 2}, {2, 3}).binding().range == ByteRange{8 * 4, 17 * 4});
}

TEST_CASE("what is no view of a memory is refused with its rule") {
  const Client client = test::each_client();
  auto b = Buffer<u32, 2>::from_host(client, numbers(24), {4, 6}).value();
  const StridedView view(b);
  CHECK(thrown_rule([&] { (void)view.transposed(0, 2); }) == "ViewDimension");
  CHECK(thrown_rule([&] { (void)view.range(2, 0, 1); }) == "ViewDimension");
  CHECK(thrown_rule([&] { (void)view.range(0, 0, 1, 0); }) == "ViewStep");
  CHECK(thrown_rule([&] { (void)view.range(0, 0, 5); }) == "ViewRange");
  CHECK(thrown_rule([&] { (void)view.range(0, 4, 1); }) == "ViewRange");
  CHECK(thrown_rule([&] { (void)view.range(1, 0, 3, 3); }) == "ViewRange");
  CHECK(thrown_rule([&] { (void)view.range(1, 1, 2, ~std::uint64_t{0}); }) == "ViewRange");
  CHECK(thrown_rule([&] { (void)view.box({3, 0}, {2, 1}); }) == "ViewRange");
  CHECK(thrown_rule([&] { (void)view.broadcast(0, 2); }) == "ViewBroadcast");

  using View = StridedView<u32, 2>;
  const Memory memory = b.binding().memory;
  CHECK(rule_of(View::over(client, memory, {4, 6}, {6, 1})) == "none");
  CHECK(rule_of(View::over(client, memory, {4, 6}, {-6, 1})) == "NegativeStride");
  CHECK(View::over(client, memory, {4, 6}, {-6, 1}).error().code() == ErrorCode::UnsupportedStrides);
  CHECK(rule_of(View::over(client, memory, {5, 6}, {6, 1})) == "BindingRange");
  CHECK(rule_of(View::over(client, memory, {4, 6}, {6, 1}, 4)) == "BindingRange");
  CHECK(rule_of(View::over(client, memory, {4, 5}, {6, 1}, 4)) == "none");
  CHECK(rule_of(View::over(client, memory, {4, 5}, {6, 1}, 2)) == "ElementAlignment");
  CHECK(rule_of(View::over(client, memory, {1u << 31, 1u << 31}, {std::int64_t{1} << 40, 1})) == "BufferTooBig");
  CHECK(rule_of(View::over(client, memory, {0, 1u << 31}, {std::int64_t{1} << 62, 1})) == "none");
  const Client other(rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}, .number = 0}).value()));
  CHECK(rule_of(View::over(other, memory, {4, 6}, {6, 1})) == "ForeignHandle");

  // Elements that are named twice are there to be read.
  View twice = View::over(client, memory, {3, 2}, {1, 1}).value();
  CHECK(twice.read().value() == std::vector<u32>{0, 1, 1, 2, 2, 3});
  const auto written = twice.write({1, 2, 3, 4, 5, 6});
  CHECK(written.error().code() == ErrorCode::UnsupportedStrides);
  CHECK(written.error().rule() == "OverlappingStrides");
  CHECK_FALSE(twice.read().has_value());
  CHECK(view.range(0, 1, 3).read().has_value());  // nothing else is lost
  CHECK(rule_of(twice.copy_from(View::over(client, memory, {3, 2}, {2, 1}, 48).value())) == "OverlappingStrides");
  View line = View::over(client, memory, {1, 6}, {7, 1}).value();
  CHECK(rule_of(line.write({1, 2, 3})) == "BufferSize");
  CHECK_FALSE(line.read().has_value());
  CHECK(line.write({1, 2, 3, 4, 5, 6}).has_value());
  CHECK(rule_of(line.copy_from(View::over(client, memory, {1, 5}, {7, 1}, 48).value())) == "CopySize");
  CHECK(rule_of(line.copy_from(View::over(client, memory, {1, 6}, {7, 2}).value())) == "CopyOverlap");
}

TEST_CASE("a read fails for its elements only, a write ends claims on its elements only") {
  const Client client = test::each_client();
  auto b = Buffer<u32, 2>::from_host(client, numbers(24), {4, 6}).value();
  const Memory memory = b.binding().memory;
  const auto byte_of = [](std::uint64_t row, std::uint64_t column) { return (row * 6 + column) * 4; };
  const auto claim = [&](std::uint64_t row, std::uint64_t column) {
    rt::claim({memory, {byte_of(row, column), byte_of(row, column) + 4}}, some_failure());
  };
  StridedView<u32, 2> columns = StridedView(b).range(1, 1, 2, 3);  // 1 and 4
  claim(0, 0);
  claim(1, 2);
  claim(2, 3);
  claim(3, 5);
  CHECK(columns.read().value() == std::vector<u32>{1, 4, 7, 10, 13, 16, 19, 22});
  CHECK(columns.transposed().read().value() == std::vector<u32>{1, 7, 13, 19, 4, 10, 16, 22});
  CHECK_FALSE(b.read().has_value());
  claim(2, 4);
  const auto refused = columns.read();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().root().data().message == "it was not to be");
  REQUIRE(columns.write({100, 101, 102, 103, 104, 105, 106, 107}).has_value());
  CHECK(columns.read().value() == numbers(8, 100));
  CHECK_FALSE(StridedView(b).box({2, 3}, {1, 1}).read().has_value());  // not what lies between

  // A copy from claimed elements does not run: the target carries the failure, and what lies between does not.
  auto to = Buffer<u32, 2>::from_host(client, numbers(24), {4, 6}).value();
  StridedView<u32, 2> right = StridedView(to).range(1, 1, 2, 3);
  REQUIRE(right.copy_from(columns).has_value());
  CHECK(right.read().value() == numbers(8, 100));
  claim(0, 1);
  CHECK_FALSE(right.copy_from(columns).has_value());
  CHECK(right.read().error().root().data().message == "it was not to be");
  CHECK(StridedView(to).range(1, 2, 2).read().value() == std::vector<u32>{2, 3, 8, 9, 14, 15, 20, 21});
}

TEST_CASE("what is written, copied and uploaded while a stream is recorded is a part of the graph") {
  const Client client = test::each_client();
  const Stream stream = client.stream();
  auto a = Buffer<u32, 2>::from_host(client, numbers(24), {4, 6}).value(),
       b = Buffer<u32, 2>::from_host(client, numbers(24), {4, 6}).value();
  StridedView<u32, 2> left = StridedView(a).range(1, 0, 2, 2), right = StridedView(b).range(1, 1, 2, 3);
  auto host = HostBuffer<u32>::make(client, 6).value();
  auto row = b.view(24).slice(0, 6);
  const auto graph = capture(stream, [&] {
    std::ranges::copy(numbers(6, 50), host.write().value().begin());
    REQUIRE(host.upload(stream, row).has_value());
    REQUIRE(left.write(stream, numbers(8, 100)).has_value());
    REQUIRE(right.copy_from(stream, left).has_value());
  });
  REQUIRE(graph.has_value());
  std::ranges::copy(numbers(6, 70), host.write().value().begin());
  CHECK(a.read().value() == numbers(24));  // nothing ran
  CHECK(b.read().value() == numbers(24));
  for (int replay = 0; replay < 2; ++replay) {
    REQUIRE(b.write(std::vector<u32>(24)).has_value());
    REQUIRE(graph->replay(stream).has_value());
    CHECK(left.read().value() == numbers(8, 100));
    CHECK(right.read().value() == numbers(8, 100));
    CHECK(row.read().value() == std::vector<u32>{50, 100, 52, 53, 101, 55});
  }
}

TEST_CASE("random views of random layouts read, write and copy what a naive model does") {
  const Client client = test::each_client();
  constexpr std::size_t kWords = 600;
  std::vector<u32> model[2] = {numbers(kWords), numbers(kWords, 1000)};
  Buffer<u32> buffers[2] = {Buffer<u32>::from_host(client, model[0]).value(), Buffer<u32>::from_host(client, model[1]).value()};
  const Stream streams[2] = {client.stream(), client.stream()};
  std::mt19937 random(7);
  const auto pick = [&](std::uint64_t below) { return below == 0 ? 0 : random() % below; };
  // A view with the extents, on a memory of kWords.
  const auto view_of = [&](std::size_t which, const std::array<std::uint64_t, 3>& extents) {
    for (;;) {
      unsigned order[3] = {0, 1, 2};
      std::shuffle(order, order + 3, random);
      std::array<std::int64_t, 3> strides{};
      std::uint64_t reach = 1;
      for (const unsigned d : order) {  // innermost first, with room between at times
        strides[d] = static_cast<std::int64_t>(reach + (pick(3) == 0 ? pick(4) : 0));
        reach = (extents[d] - 1) * static_cast<std::uint64_t>(strides[d]) + reach;
      }
      if (reach > kWords) continue;
      return StridedView<u32, 3>::over(client, buffers[which].binding().memory, extents, strides, 4 * pick(kWords - reach + 1)).value();
    }
  };
  for (int step = 0; step < 400; ++step) {
    CAPTURE(step);
    const std::array<std::uint64_t, 3> extents{1 + pick(5), 1 + pick(6), 1 + pick(7)};
    const std::size_t which = pick(2);
    StridedView<u32, 3> view = view_of(which, extents);
    const auto at = places(view);
    const Stream& stream = streams[pick(2)];
    switch (pick(3)) {
      case 0: {
        std::vector<u32> expected;
        for (const std::size_t p : at) expected.push_back(model[which][p]);
        REQUIRE(view.read(stream).value() == expected);
        break;
      }
      case 1: {
        const auto host = numbers(view.size(), static_cast<u32>(step) * 10000);
        for (std::size_t i = 0; i < at.size(); ++i) model[which][at[i]] = host[i];
        REQUIRE(view.write(stream, host).has_value());
        break;
      }
      default: {
        const StridedView<u32, 3> from = view_of(1 - which, extents);
        const auto of = places(from);
        for (std::size_t i = 0; i < at.size(); ++i) model[which][at[i]] = model[1 - which][of[i]];
        REQUIRE(view.copy_from(stream, from).has_value());
      }
    }
  }
  CHECK(buffers[0].read().value() == model[0]);
  CHECK(buffers[1].read().value() == model[1]);
}

TEST_CASE_TEMPLATE("elements of every size go through views", T, bool, u8, f16, f32, f64) {
  const Client client = test::each_client();
  std::vector<T> host;
  for (int i = 0; i < 60; ++i) host.push_back(static_cast<T>(i % 7));
  auto p = PitchedBuffer<T, 3>::from_host(client, host, {3, 4, 5}).value();
  CHECK(p.read().value() == host);
  std::vector<T> turned;
  for (std::size_t c = 0; c < 5; ++c)
    for (std::size_t b = 0; b < 4; ++b)
      for (std::size_t a = 0; a < 3; ++a) turned.push_back(host[a * 20 + b * 5 + c]);
  CHECK(p.view().transposed(0, 2).read().value() == turned);
}

TEST_CASE("an optimised layout has rows at multiples of the device's alignment, where they are not so anyway") {
  const Client client = test::each_client();
  const std::uint64_t alignment = client.properties().kind == "cuda" ? 512 : 64;
  CHECK(rt::row_alignment(client) == alignment);
  struct Row {
    const char* what;
    LayoutPolicy policy;
    std::vector<std::uint64_t> extents, strides;
    std::uint64_t elements;
  };
  using enum LayoutPolicy;
  const Row rows[] = {
      // elements of 4 bytes, alignment 64
      {"contiguous", Contiguous, {3, 5}, {5, 1}, 15},
      {"rank 1 is packed", Optimised, {5}, {1}, 5},
      {"padded", Optimised, {3, 5}, {16, 1}, 48},
      {"aligned already", Optimised, {3, 32}, {32, 1}, 96},
      {"one more than aligned", Optimised, {2, 17}, {32, 1}, 64},
      {"rank 3", Optimised, {2, 3, 5}, {48, 16, 1}, 96},
      {"none", Optimised, {3, 0}, {0, 1}, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    std::vector<std::uint64_t> strides(row.extents.size());
    CHECK(rt::layout(row.policy, 64, 4, static_cast<unsigned>(row.extents.size()), row.extents.data(), strides.data()).value() ==
          row.elements);
    CHECK(strides == row.strides);
  }
  std::uint64_t strides[2], huge[2] = {std::uint64_t{1} << 40, (std::uint64_t{1} << 22) - 1};
  CHECK(rt::layout(Optimised, 512, 4, 2, huge, strides).error().code() == ErrorCode::BufferTooBig);

  const auto p = PitchedBuffer<f32, 2>::from_host(client, std::vector<f32>(3 * 5, 2), {3, 5}).value();
  CHECK(p.pitch_bytes() == alignment);
  CHECK(p.binding().range == ByteRange{0, 3 * alignment});
  CHECK(PitchedBuffer<f32, 2>::from_host(client, std::vector<f32>(15, 2), {3, 5}, Contiguous).value().pitch_bytes() == 20);
  CHECK(PitchedBuffer<f32, 2>::zeroed(client, {3, 5}).value().read().value() == std::vector<f32>(15, 0));
  CHECK(rule_of(PitchedBuffer<f32, 2>::from_host(client, {1, 2}, {3, 5})) == "BufferSize");
  CHECK(PitchedBuffer<f32, 2>::uninitialised(client, {3, 0}).value().read().value().empty());
}

TEST_CASE("copies between layouts stay on the device and keep the elements; large ones go whole") {
  const Client client = test::each_client();
  const std::uint64_t rows = 5000, columns = 130;  // more rows than one piece has
  const auto host = numbers(rows * columns);
  auto dense = Buffer<u32, 2>::from_host(client, host, {rows, columns}).value();
  auto pitched = PitchedBuffer<u32, 2>::uninitialised(client, {rows, columns}).value();
  REQUIRE(pitched.copy_from(dense).has_value());
  CHECK(pitched.read().value() == host);
  REQUIRE(dense.write(std::vector<u32>(rows * columns)).has_value());
  StridedView<u32, 2> back(dense);
  REQUIRE(back.copy_from(pitched).has_value());
  CHECK(dense.read().value() == host);
  REQUIRE(pitched.write(std::vector<u32>(rows * columns, 9)).has_value());
  CHECK(pitched.read().value() == std::vector<u32>(rows * columns, 9));
  const auto row = StridedView(dense).range(0, 7, 1).broadcast(0, 3);  // one row three times
  auto three = PitchedBuffer<u32, 2>::uninitialised(client, {3, columns}).value();
  REQUIRE(three.copy_from(row).has_value());
  const auto got = three.read().value();
  CHECK(std::equal(got.begin() + 2 * static_cast<std::ptrdiff_t>(columns), got.end(),
                   host.begin() + 7 * static_cast<std::ptrdiff_t>(columns)));
}

TEST_CASE("a walk over two sides takes together what is contiguous on both, and rows where it can") {
  struct Case {
    const char* what;
    std::vector<rt::PlaneWalk::Dimension> dimensions;
    std::size_t planes;
    std::uint64_t rows, width;  // of the first
  };
  const Case cases[] = {
      {"dense", {{4, 24, 24}, {6, 4, 4}}, 1, 1, 96},
      {"pitched", {{4, 64, 24}, {6, 4, 4}}, 1, 4, 24},
      {"pitched, rank 3", {{3, 256, 96}, {4, 64, 24}, {6, 4, 4}}, 1, 12, 24},
      {"columns", {{4, 24, 8}, {2, 12, 4}}, 1, 8, 4},
      {"transposed", {{6, 4, 16}, {4, 24, 4}}, 4, 6, 4},
      {"broadcast", {{3, 0, 24}, {6, 4, 4}}, 3, 1, 24},
      {"a single element", {{1, 0, 0}, {1, 4, 4}}, 1, 1, 4},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    std::vector<rt::Plane> planes;
    rt::PlaneWalk(4, c.dimensions).for_each(~std::uint64_t{0}, ~std::uint64_t{0}, [&](const rt::Plane& p) {
      planes.push_back(p);
      return true;
    });
    CHECK(planes.size() == c.planes);
    CHECK(planes.at(0).rows == c.rows);
    CHECK(planes.at(0).width == c.width);
  }
  std::uint64_t bytes = 0;
  std::size_t pieces = 0;
  rt::PlaneWalk(4, {{10, 100, 100}, {20, 4, 4}}).for_each(3, 50, [&](const rt::Plane& p) {  // a row has 80
    CHECK(p.rows * p.width <= 50);
    bytes += p.rows * p.width;
    ++pieces;
    return true;
  });
  CHECK(bytes == 800);
  CHECK(pieces == 20);
}
