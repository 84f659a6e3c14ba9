// Faults that users of other systems met, where they concern launching: each case with the right answer. Compiled kernels, on each
// device.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "kiln/ir/text.h"
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/client.h"
#include "support/devices.h"
#include "support/each_client.h"
#include "support/sim.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// One block reverses x through dynamic shared memory, with a static word beside it.
ir::Kernel reverse() {
  return ir::parse_kernel(R"kir(kir 1
kernel "reverse" {
  block_size 1024, 1, 1
  buffer x : f32[*] in
  buffer y : f32[*] out
  shared word : i32[1]
  shared tile : f32[dynamic]
  body {
    %n = size y
    %t = thread_id.x
    %step = const 1024 : u32
    %zero = const 0 : u32
    %first = eq %t, %zero
    if %first {
      %one = const 1 : i32
      store word[%zero], %one
    }
    for %i = %t, %n, %step : u32 {
      %v = load x[%i]
      store tile[%i], %v
    }
    barrier
    %w = load word[%zero]
    %wu = cast %w : u32
    %last = sub %n, %wu
    for %j = %t, %n, %step : u32 {
      %k = sub %last, %j
      %r = load tile[%k]
      store y[%j], %r
    }
  }
}
)kir");
}

// y[i] = i over an axis of the grid.
ir::Kernel number(const std::string& axis) {
  return ir::parse_kernel("kir 1\nkernel \"number_" + axis + "\" {\n  buffer y : u32[*] out\n  body {\n    %i = global_id." + axis +
                          "\n    %n = size y\n    %in = lt %i, %n\n    if %in {\n      store y[%i], %i\n    }\n  }\n}\n");
}

std::vector<f32> ramp(std::size_t n) {
  std::vector<f32> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<f32>(i);
  return v;
}

Result<void> run_reverse(const Client& client, const Variant& variant, const Buffer<f32>& x, const Buffer<f32>& y, std::uint32_t shared) {
  const LaunchArg args[] = {x.arg(), y.arg()};
  LaunchRequest request{&variant, {}, args};
  request.config.block = Dim3(1024);
  request.config.shared_bytes = shared;
  return launch(client.default_stream(), request);
}

}  // namespace

TEST_CASE(
    "dynamic shared memory of 48 KiB and more, beside static, in any order of sizes and from two threads; too much is refused by the "
    "numbers") {
  const Client client = test::each_client();
  const Variant variant(reverse());
  const auto reversed = [&](std::uint32_t bytes) {
    const std::size_t n = bytes / 4;
    const auto x = Buffer<f32>::from_host(client, ramp(n)).value();
    const auto y = Buffer<f32>::uninitialised(client, n).value();
    CHECK(run_reverse(client, variant, x, y, bytes).has_value());
    const std::vector<f32> got = y.read().value();
    bool right = true;
    for (std::size_t i = 0; i < n; ++i) right = right && got[i] == static_cast<f32>(n - 1 - i);
    return right;
  };
  const std::uint32_t most = client.properties().max_dynamic_shared, large = std::min(65536u, most - 16),
                      larger = std::min(100000u, most - 16);
  CHECK(reversed(49152));
  for (const std::uint32_t bytes : {large, 1024u, large}) CHECK(reversed(bytes));
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i)
        for (const std::uint32_t bytes : {large, 1024u, larger}) CHECK(reversed(bytes));
    });
  }
  for (std::thread& t : threads) t.join();
  const auto x = Buffer<f32>::from_host(client, ramp(16)).value();
  const auto y = Buffer<f32>::from_host(client, ramp(16)).value();
  const auto refused = run_reverse(client, variant, x, y, most);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().rule() == "DeviceSharedMemoryExceeded");
  CHECK(refused.error().data().limit == most);
  CHECK(refused.error().data().requested == most + 16);
  CHECK_FALSE(y.read().has_value());  // a declared Out that nobody wrote
  CHECK(x.read().value() == ramp(16));
  CHECK(reversed(most - 16));
}

TEST_CASE("the limit of dynamic shared memory is asked for once a kernel, so that no launch takes it from another") {
  const Client client(make_sim_server());
  const SimScript once(R"({"calls": [{"name": "cuFuncSetAttribute", "n": 2, "code": "CUDA_ERROR_INVALID_VALUE"}]})");
  const Variant variant(reverse());
  for (const std::uint32_t bytes : {49152u, 1024u, 65536u, 100000u, 49152u}) {
    CAPTURE(bytes);
    const std::size_t n = bytes / 4;
    const auto x = Buffer<f32>::from_host(client, ramp(n)).value();
    const auto y = Buffer<f32>::uninitialised(client, n).value();
    CHECK(run_reverse(client, variant, x, y, bytes).has_value());
    CHECK(y.slice(0, 1).read().value() == std::vector<f32>{static_cast<f32>(n - 1)});
  }
}

TEST_CASE("nothing to do: zero elements up, down, filled and launched over, and a launch with an empty buffer behind a guard") {
  const Client client = test::each_client();
  const Stream stream = client.default_stream();
  const Variant variant(number("x"));
  Buffer<u32> none = Buffer<u32>::from_host(client, {}).value();
  CHECK(none.read().value().empty());
  CHECK(none.write({}).has_value());
  CHECK(rt::fill_zero(stream, none.binding()).has_value());
  const LaunchArg args[] = {none.arg()};
  LaunchRequest request{&variant, for_num_elems(0), args};
  CHECK(launch(stream, request).has_value());
  request.config.grid = Dim3(1);
  request.config.block = Dim3(128);
  CHECK(launch(stream, request).has_value());
  CHECK(client.sync().has_value());
  const Binding binding = none.binding();
  CHECK(rt::check(client, {&binding, 1}).has_value());
  Buffer<u32> some = Buffer<u32>::zeroed(client, 3).value();
  const LaunchArg good[] = {some.arg()};
  request.args = good;
  REQUIRE(launch(stream, request).has_value());
  CHECK(some.read().value() == std::vector<u32>{0, 1, 2});
}

TEST_CASE("65535 blocks along y or z run; one more is refused by axis, value and limit, and the next launch works") {
  const Client client = test::each_client();
  for (const std::string axis : {"y", "z"}) {
    CAPTURE(axis);
    const Variant variant(number(axis));
    const Buffer<u32> y = Buffer<u32>::zeroed(client, 70000).value();
    const LaunchArg args[] = {y.arg()};
    const auto launch_over = [&](std::uint32_t n) {
      LaunchRequest request{&variant, {}, args};
      request.config.grid = axis == "y" ? Dim3(1, n) : Dim3(1, 1, n);
      return launch(client.default_stream(), request);
    };
    for (const std::uint32_t n : {65536u, 70000u}) {
      const auto refused = launch_over(n);
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().rule() == "DeviceDimensionExceeded");
      CHECK(refused.error().data().requested == n);
      CHECK(refused.error().data().limit == 65535);
      CHECK(refused.error().data().message.find("grid's " + axis) != std::string::npos);
    }
    REQUIRE(launch_over(65535).has_value());
    const std::vector<u32> got = y.read().value();
    bool right = true;
    for (u32 i = 0; i < 70000; ++i) right = right && got[i] == (i < 65535 ? i : 0);
    CHECK(right);
  }
}

TEST_CASE("one thread launches first; then eight new threads launch the same kernel on existing buffers, each on a stream of its own") {
  const Client client = test::each_client();
  const Variant variant(number("x"));
  std::vector<Buffer<u32>> buffers;
  for (int t = 0; t < 8; ++t) buffers.push_back(Buffer<u32>::zeroed(client, 1000).value());
  const auto fill = [&](const Stream& stream, const Buffer<u32>& y) {
    const LaunchArg args[] = {y.arg()};
    return launch(stream, {&variant, for_num_elems(1000), args});
  };
  REQUIRE(fill(client.default_stream(), buffers[0]).has_value());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const Stream stream = client.stream();
      for (int i = 0; i < 100; ++i) CHECK(fill(stream, buffers[static_cast<std::size_t>(t)]).has_value());
      CHECK(stream.sync().has_value());
    });
  }
  for (std::thread& t : threads) t.join();
  for (const Buffer<u32>& b : buffers) {
    const std::vector<u32> got = b.read().value();
    bool right = true;
    for (u32 i = 0; i < 1000; ++i) right = right && got[i] == i;
    CHECK(right);
  }
}

TEST_CASE("memory that is dropped while another stream still reads it is not handed out before") {
  const Client client = test::each_client();
  const Stream first = client.stream(), second = client.stream();
  for (int round = 0; round < 5; ++round) {
    constexpr std::size_t n = (16u << 20) / 4;
    const Buffer<u32> b = Buffer<u32>::uninitialised(client, n).value();
    {
      const Buffer<u32> a = Buffer<u32>::from_host(client, std::vector<u32>(n, 3)).value();
      REQUIRE(rt::copy(second, b.binding(), a.binding()).has_value());
    }
    Buffer<u32> c = Buffer<u32>::uninitialised(client, n).value();
    REQUIRE(c.write(first, std::vector<u32>(n, 7)).has_value());
    CHECK(b.read(second).value() == std::vector<u32>(n, 3));
    CHECK(c.read(first).value() == std::vector<u32>(n, 7));
  }
}

TEST_CASE("parameters of every size in one list reach the kernel at their own places") {
  // Of sizes 1, 8, 4, 1, 4, 8, the pointer and extent of the output, 1 and 8.
  const Variant variant(ir::parse_kernel(R"kir(kir 1
kernel "abi" {
  scalar a : bool
  scalar b : f64
  scalar c : i32
  scalar d : bool
  scalar e : f32
  scalar f : u64
  buffer y : f64[*] out
  scalar g : bool
  scalar h : i64
  body {
    %a = param a
    %b = param b
    %c = param c
    %d = param d
    %e = param e
    %f = param f
    %g = param g
    %h = param h
    %i0 = const 0 : u32
    %i1 = const 1 : u32
    %i2 = const 2 : u32
    %i3 = const 3 : u32
    %i4 = const 4 : u32
    %i5 = const 5 : u32
    %i6 = const 6 : u32
    %i7 = const 7 : u32
    %fa = cast %a : f64
    %fc = cast %c : f64
    %fd = cast %d : f64
    %fe = cast %e : f64
    %ff = cast %f : f64
    %fg = cast %g : f64
    %fh = cast %h : f64
    store y[%i0], %fa
    store y[%i1], %b
    store y[%i2], %fc
    store y[%i3], %fd
    store y[%i4], %fe
    store y[%i5], %ff
    store y[%i6], %fg
    store y[%i7], %fh
  }
}
)kir"));
  const std::vector<Arg> args{value(true),
                              value(2.5),
                              value(std::int32_t{-3}),
                              value(false),
                              value(0.5f),
                              value(std::uint64_t{1} << 40),
                              room(ir::Type::F64, {8}),
                              value(true),
                              value(std::int64_t{-1})};
  const auto outcomes = run_everywhere(variant, {}, args, {.all_levels = true});
  CHECK(differences(outcomes, args) == "");
  for (const DeviceOutcome& o : outcomes) {
    CAPTURE(o.device);
    CHECK(elements<f64>(o, 6) == std::vector<f64>{1, 2.5, -3, 0, 0.5, 1099511627776.0, 1, -1});
  }
}

TEST_CASE("4096 bytes of parameters reach a kernel, and one of more is refused with both numbers") {
  const Client client = test::each_client();
  // Of 8 bytes each, with the output's 16 and the 8 of the fault record.
  const auto run = [&](std::size_t scalars) {
    std::string text = "kir 1\nkernel \"many\" {\n  buffer y : u64[*] out\n";
    for (std::size_t i = 0; i < scalars; ++i) text += "  scalar a" + std::to_string(i) + " : u64\n";
    text += "  body {\n    %i = const 0 : u32\n    %v = param a" + std::to_string(scalars - 1) + "\n    store y[%i], %v\n  }\n}\n";
    const Variant variant(ir::parse_kernel(text));
    const Buffer<u64> y = Buffer<u64>::zeroed(client, 1).value();
    std::vector<LaunchArg> args(scalars + 1);
    args[0] = y.arg();
    for (std::size_t i = 1; i <= scalars; ++i) {
      args[i].type = ir::Type::U64;
      args[i].bits = i;
    }
    const auto launched = launch(client.default_stream(), {&variant, {{1}, {1}}, args, {}});
    if (!launched.has_value()) return launched.error().text();
    return std::to_string(y.read().value()[0]);
  };
  CHECK(run(509) == "509");
  const std::string refused = run(510);
  CAPTURE(refused);
  CHECK(refused.find("4104 bytes") != std::string::npos);
  CHECK(refused.find("at most 4096") != std::string::npos);
}

TEST_CASE("kernels with names that PTX cannot hold are launched, and errors tell the name as it was given") {
  const Client client = test::each_client();
  const std::string long_name(300, 'x');
  const std::vector<std::string> names{"scale.v1", "scale-v1", "scale v1",      "scale<float, 3>", "9lives",
                                       "\xce\xbb", long_name,  long_name + "y", "scale_v1"};
  u32 wanted = 1;
  for (const std::string& name : names) {
    CAPTURE(name);
    const Variant variant(ir::parse_kernel("kir 1\nkernel \"" + name +
                                           "\" {\n  buffer y : u32[*] out\n  body {\n    %i = global_id.x\n    %v = const " +
                                           std::to_string(wanted) + " : u32\n    store y[%i], %v\n  }\n}\n"));
    const Buffer<u32> y = Buffer<u32>::zeroed(client, 3).value();
    const LaunchArg args[] = {y.arg()};
    REQUIRE(launch(client.default_stream(), {&variant, {{1}, {3}}, args, {}}).has_value());
    CHECK(y.read().value() == std::vector<u32>(3, wanted++));
    REQUIRE(launch(client.default_stream(), {&variant, {{1}, {4}}, args, {}}).has_value());
    const auto beyond = y.read();
    REQUIRE_FALSE(beyond.has_value());
    CHECK(beyond.error().text().find(name) != std::string::npos);
  }
}
