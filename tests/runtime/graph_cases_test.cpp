// Faults that users of other systems met, where they concern graphs: each case with the right answer, on every device.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kiln/ir/text.h"
#include "kiln/kiln.h"
#include "runtime/graph_devices.h"
#include "support/each_client.h"

using namespace kiln;
using namespace kiln::test;

namespace graph_cases {

KILN_KERNEL(numbered, (Out<u32> y))
{
  auto i = global_id().x;
  If (i < y.size()) { y[i] = i + 1; }
}
KILN_KERNEL(summed, (In<u32> x, Out<u32> sum))
{
  Var<u32> s = 0u;
  for (auto i : range(x.size())) { s += x[i]; }
  sum[0] = s;
}

}  // namespace graph_cases

namespace {

template <class T>
LaunchArg number(T v) {
  LaunchArg a;
  a.type = ir_type<T>;
  std::memcpy(&a.bits, &v, sizeof v);
  return a;
}

// Nine scalars of mixed sizes, a struct of two 64-bit numbers as these, behind so many bytes; the kernel writes each to its own place, and
// the sum of the bytes behind them.
std::string mixed_parameters(unsigned before) {
  const char* const types[] = {"u8", "f64", "i16", "u64", "u64", "u8", "f32", "bool", "i64"};
  std::string text = "kir 1\nkernel \"mixed" + std::to_string(before) + "\" {\n", body;
  for (unsigned i = 0; i < before; ++i) text += "  scalar x" + std::to_string(i) + " : u8\n";
  for (unsigned i = 0; i < 9; ++i) text += "  scalar p" + std::to_string(i) + " : " + types[i] + "\n";
  text += "  buffer y : f64[*] out\n  body {\n    %sum0 = const 0.0 : f64\n";
  for (unsigned i = 0; i < before; ++i) {
    const std::string n = std::to_string(i);
    text += "    %x" + n + " = param x" + n + "\n    %c" + n + " = cast %x" + n + " : f64\n    %sum" + std::to_string(i + 1) +
            " = add %sum" + n + ", %c" + n + "\n";
  }
  for (unsigned i = 0; i < 9; ++i) {
    const std::string n = std::to_string(i);
    const bool f64 = std::string(types[i]) == "f64";
    text += "    %p" + n + " = param p" + n + "\n    %i" + n + " = const " + n + " : u32\n";
    if (!f64) text += "    %f" + n + " = cast %p" + n + " : f64\n";
    text += "    store y[%i" + n + "], %" + (f64 ? "p" : "f") + n + "\n";
  }
  return text + "    %last = const 9 : u32\n    store y[%last], %sum" + std::to_string(before) + "\n  }\n}\n";
}

}  // namespace

TEST_CASE("parameters of mixed sizes keep their places, behind 0, 1 and 40 bytes, launched and in a graph that is replayed") {
  const Client client = each_client();
  const Stream stream = client.stream();
  for (const unsigned before : {0u, 1u, 40u}) {
    CAPTURE(before);
    const Variant variant(ir::parse_kernel(mixed_parameters(before)));
    auto y = Buffer<f64>::zeroed(client, 10).value();
    std::vector<LaunchArg> args;
    f64 sum = 0;
    for (unsigned i = 0; i < before; ++i) {
      args.push_back(number(static_cast<u8>(200 + i)));
      sum += static_cast<u8>(200 + i);
    }
    for (const LaunchArg& a : {number(u8{7}), number(2.5), number(i16{-3}), number(u64{11}), number(u64{12}), number(u8{9}), number(0.5f),
                               number(true), number(i64{-1})})
      args.push_back(a);
    args.push_back(y.arg());
    const std::vector<f64> expected{7, 2.5, -3, 11, 12, 9, 0.5, 1, -1, sum};
    REQUIRE(launch(stream, {&variant, {{1}, {1}}, args}).has_value());
    CHECK(y.read(stream).value() == expected);
    const Graph graph = capture(stream, [&] { REQUIRE(launch(stream, {&variant, {{1}, {1}}, args}).has_value()); }).value();
    for (int round = 0; round < 3; ++round) {
      REQUIRE(rt::fill_zero(stream, y.binding()).has_value());
      for (LaunchArg& a : args)
        if (!a.is_buffer) a.bits = ~std::uint64_t{0};  // the graph has the numbers that were given then
      REQUIRE(graph.replay(stream).has_value());
      CHECK(y.read(stream).value() == expected);
    }
  }
}

TEST_CASE("nothing to do, inside a capture: zero elements up, down, filled, launched over and summed, and a normal launch behind them") {
  const Client client = each_client();
  const Stream stream = client.stream();
  Buffer<u32> none = Buffer<u32>::from_host(client, {}).value();
  auto sum = Buffer<u32>::from_host(client, {77}).value(), y = Buffer<u32>::from_host(client, {5, 5, 5}).value();
  const auto body = [&] {
    auto within = Buffer<u32>::zeroed(client, 0);  // allocated meanwhile
    REQUIRE(within.has_value());
    CHECK(none.write(stream, {}).has_value());
    CHECK(none.read(stream).value().empty());
    CHECK(rt::fill_zero(stream, none.binding()).has_value());
    CHECK(rt::copy(stream, none.binding(), within->binding()).has_value());
    CHECK(graph_cases::numbered(stream, for_num_elems(0), *within).has_value());
    CHECK(graph_cases::numbered(stream, {{1}, {128}}, none).has_value());
    CHECK(graph_cases::summed(stream, {{1}, {1}}, none, sum).has_value());
    CHECK(graph_cases::numbered(stream, for_num_elems(3), y).has_value());
  };
  auto graph = capture(stream, body);
  REQUIRE_MESSAGE(graph.has_value(), graph.error().text());
  CHECK(y.read().value() == std::vector<u32>{5, 5, 5});
  for (int round = 0; round < 2; ++round) {
    REQUIRE(graph->replay(stream).has_value());
    CHECK(y.read().value() == std::vector<u32>{1, 2, 3});
    CHECK(sum.read().value() == std::vector<u32>{0});
    REQUIRE(y.write({5, 5, 5}).has_value());
    REQUIRE(sum.write({77}).has_value());
  }
  CHECK(client.sync().has_value());
  CHECK(graph_cases::numbered(stream, for_num_elems(3), y).has_value());  // no error was left behind
  CHECK(y.read().value() == std::vector<u32>{1, 2, 3});
}
