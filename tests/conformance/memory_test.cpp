// Buffers, views, shared and local memory: where an access lands, what lies around it, and nothing at all.
#include <numeric>
#include <thread>

#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

template <class T>
std::vector<T> iota(std::size_t n, T first = 0) {
  std::vector<T> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

}  // namespace

TEST_CASE("a view that starts one element later is read and written where it is, and nothing around it is touched") {
  // Four elements a thread, out = in + 1: aligned, then shifted by one, then rows of an odd length.
  const auto k = kernel("add_one", [](In<f32> in, Out<f32> out) {
    auto first = global_id().x * 4;
    for (u32 j = 0; j < 4; ++j) {
      If (first + j < out.size()) { out[first + j] = in[first + j] + 1; }
    }
  });
  const auto x = iota<f32>(1100);
  std::vector<f32> wanted(1100, -1);
  for (u32 i = 0; i < 1024; ++i) wanted[i] = x[i] + 1;
  check_run(*k, {{8}, {33}}, {view(x, 0, {1024}), view(std::vector<f32>(1100, -1), 0, {1024})}, 1, wanted);
  wanted.assign(1100, -1);
  for (u32 i = 0; i < 1000; ++i) wanted[i + 1] = x[i + 1] + 1;
  CHECK(wanted[1] == 2);
  CHECK(wanted[1000] == 1001);
  for (u32 block : {32u, 45u, 128u})
    check_run(*k, {{8}, {block}}, {view(x, 1, {1000}), view(std::vector<f32>(1100, -1), 1, {1000})}, 1, wanted);

  const u32 rows = 3, stride = 1185, columns = 1000;
  const auto strided = kernel("add_one_rows", [](In<f32, 2, Strided> in, Out<f32, 2, Strided> out) {
    auto first = global_id().x * 4, r = global_id().y;
    for (u32 j = 0; j < 4; ++j) {
      If (r < out.extent(0) && first + j < out.extent(1)) { out[r, first + j] = in[r, first + j] + 1; }
    }
  });
  const auto y = iota<f32>(rows * stride + 5);
  Arg in = view(y, 3, {rows, columns}), out = view(std::vector<f32>(y.size(), -1), 2, {rows, columns});
  in.strides = out.strides = {stride, 1};
  wanted.assign(y.size(), -1);
  for (u32 r = 0; r < rows; ++r) {
    for (u32 c = 0; c < columns; ++c) wanted[2 + r * stride + c] = y[3 + r * stride + c] + 1;
  }
  check_run(*strided, {{9, rows}, {33, 1}}, {in, out}, 1, wanted);
}

TEST_CASE("strides reach columns, transposes, and the same element again") {
  const auto k = kernel("copy_strided", [](In<i32, 2, Strided> in, Out<i32, 2> out) {
    auto [c, r, z] = global_id();
    (void)z;
    If (r < out.extent(0) && c < out.extent(1)) { out[r, c] = in[r, c]; }
  });
  const auto x = iota<i32>(60);
  struct Row {
    std::vector<u64> extents, strides;
    u64 first;
  };
  for (const Row& row : {Row{{6, 10}, {10, 1}, 0},
                         {{10, 6}, {1, 10}, 0},
                         {{6, 3}, {10, 3}, 1},
                         {{4, 5}, {0, 1}, 7},
                         {{5, 4}, {12, 0}, 2},
                         {{1, 1}, {0, 0}, 59}}) {
    Arg in = view(x, row.first, row.extents);
    in.strides = row.strides;
    std::vector<i32> wanted;
    for (u64 r = 0; r < row.extents[0]; ++r) {
      for (u64 c = 0; c < row.extents[1]; ++c) wanted.push_back(x[row.first + r * row.strides[0] + c * row.strides[1]]);
    }
    check_run(*k, {{1, 2}, {33, 7}}, {in, buffer(std::vector<i32>(wanted.size(), -1), row.extents)}, 1, wanted);
  }
}

TEST_CASE("a kernel sees the extents of each of its buffers, of every rank, and the strides of strided ones") {
  const auto shapes = kernel("shapes", [](In<f32, 4> a, In<u32, 4> b, In<f64, 4> c, In<i32> d, Out<u64> out) {
    u32 o = 0;
    for (unsigned i = 0; i < 4; ++i) out[o++] = cast<u64>(a.extent(i));
    for (unsigned i = 0; i < 4; ++i) out[o++] = b.extent64(i);
    for (unsigned i = 0; i < 4; ++i) out[o++] = cast<u64>(c.extent(i));
    out[o++] = a.size64();
    out[o++] = cast<u64>(b.size());
    out[o++] = c.size64();
    out[o++] = cast<u64>(d.size());
  });
  check_run<u64>(*shapes, {{1}, {1}},
                 {buffer(std::vector<f32>(120), {2, 3, 4, 5}), buffer(std::vector<u32>(3024), {9, 8, 7, 6}),
                  buffer(std::vector<f64>(17160), {10, 11, 12, 13}), buffer<i32>({}), filled<u64>(16, 99)},
                 4, {2, 3, 4, 5, 9, 8, 7, 6, 10, 11, 12, 13, 120, 3024, 17160, 0});
  const auto strides = from_text(R"(kir 1
kernel "strides" {
  buffer x : f32[*, *, *] in strided
  buffer out : u64[*] out
  body {
    %a = stride x.0 : u64
    %b = stride x.1 : u64
    %c = stride x.2 : u64
    %0 = const 0 : u32
    %1 = const 1 : u32
    %2 = const 2 : u32
    store out[%0], %a
    store out[%1], %b
    store out[%2], %c
  }
}
)");
  Arg x = buffer(std::vector<f32>(14), {2, 2, 3});
  x.strides = {2, 1, 4};
  check_run<u64>(*strides, {{1}, {1}}, {x, filled<u64>(3, 99)}, 1, {2, 1, 4});
}

TEST_CASE("a subscript takes any integer type") {
  const auto k = kernel("subscripts", [](In<i32> x, In<i32> i32s, In<i64> i64s, In<u64> u64s, Out<i32> out) {
    auto t = thread_id().x, n = x.size();
    If (t < n) {
      out[t] = x[i32s[t]];
      out[cast<i64>(t + n)] = x[i64s[t]];
      out[cast<u64>(t + 2 * n)] = x[u64s[t]];
    }
  });
  std::vector<i32> x = iota<i32>(7, 100), wanted;
  std::vector<i32> a{3, 0, 6, 1, 2, 5, 4};
  for (int copy = 0; copy < 3; ++copy) {
    for (i32 i : a) wanted.push_back(100 + i);
  }
  check_run(*k, {{1}, {33}},
            {buffer(x), buffer(a), buffer(std::vector<i64>(a.begin(), a.end())), buffer(std::vector<u64>(a.begin(), a.end())),
             filled<i32>(21, 99)},
            4, wanted);
}

TEST_CASE("an access out of range is reported with the coordinate that is out, of the type it has") {
  struct Row {
    i64 row, column;
    u32 dimension;
    u64 index;
  };
  const auto k = made(record("outside", [](InOut<u32, 2> m, In<i64> at) { m[at[0], at[1]] = 1; }, "(m, at)"));
  for (const Row& row : {Row{3, 0, 0, 3},
                         {0, 4, 1, 4},
                         {-1, 0, 0, ~u64{0}},
                         {2, -5, 1, u64(-5)},
                         {i64{1} << 32, 1, 0, u64{1} << 32},
                         {0, i64{1} << 32, 1, u64{1} << 32},
                         {2, 3, 9, 0}}) {
    for (const Outcome& o :
         run_everywhere(*k, {{1}, {1}}, {buffer(std::vector<u32>(12), {3, 4}), buffer<i64>({row.row, row.column})}, {.unchecked = false})) {
      CAPTURE(o.where);
      CAPTURE(row.row);
      CAPTURE(row.column);
      REQUIRE(o.fault.has_value() == (row.dimension < 2));
      if (!o.fault) continue;
      CHECK(o.fault->memory == "m");
      CHECK(o.fault->operation == "store");
      CHECK(o.fault->place.find("memory_test.cpp:") != std::string::npos);
      CHECK(o.fault->dimension == row.dimension);
      CHECK(o.fault->index == row.index);
      CHECK(o.fault->index_signed);
      CHECK(o.fault->extent == (row.dimension == 0 ? 3u : 4u));
    }
  }
}

TEST_CASE("shared and local arrays are checked too, and empty buffers have nothing in range") {
  const auto shared = made(record("outside_shared", [](In<u32> i, Out<u32> out) {
    Shared<u32> scratch(8);
    scratch[thread_id().x] = 1;
    out[0] = scratch[i[0]];
  }));
  const auto local = made(record("outside_local", [](In<u32> i, Out<u32> out) {
    Local<u32, 5> mine;
    for (u32 j = 0; j < 5; ++j) mine[j] = j;
    out[0] = mine[i[0]];
  }));
  const auto empty = made(record("outside_empty", [](In<u32> i, Out<u32> out) { out[0] = i[0]; }));
  struct Row {
    std::shared_ptr<const Variant> kernel;
    std::vector<u32> at;
    u64 index, extent;
  };
  for (const Row& row : {Row{shared, {8}, 8, 8}, {local, {7}, 7, 5}, {empty, {}, 0, 0}}) {
    for (const Outcome& o : run_everywhere(*row.kernel, {{1}, {1}}, {buffer(row.at), filled<u32>(1, 99)}, {.unchecked = false})) {
      CAPTURE(o.where);
      REQUIRE(o.fault);
      CHECK(o.fault->operation == "load");
      CHECK(o.fault->index == row.index);
      CHECK(o.fault->extent == row.extent);
    }
  }
}

TEST_CASE("dynamic shared memory at, below and above 48 KiB reverses a buffer, beside static memory") {
  const auto k = kernel("reverse", [](In<f32> in, Out<f32> out) {
    DynamicShared<f32> s;
    Shared<i32> beside(1);
    auto t = thread_id().x, n = in.size();
    If (t == 0) { beside[0] = 7; }
    for (auto i : range(t, n, block_dim().x)) { s[i] = in[i]; }
    barrier();
    for (auto i : range(t, n, block_dim().x)) { out[i] = s[n - 1 - i] + cast<f32>(beside[0] - 7); }
  });
  const auto check_size = [&](u32 bytes, u32 block) {
    CAPTURE(bytes);
    const u32 n = bytes / 4;
    const auto x = iota<f32>(n);
    check_run(*k, {{1}, {block}, bytes}, {buffer(x), filled<f32>(n, -1)}, 1, std::vector<f32>(x.rbegin(), x.rend()),
              {.shared_bytes = bytes + 16});
  };
  for (u32 bytes : {49152u, 64u * 1024 - 16, 1024u, 65536u, 227u * 1024 - 16}) check_size(bytes, 96);
  check_size(49152, 45);

  // From two host threads at once, each with another size.
  for (const Client& client : devices()) {
    const auto run = [&](u32 bytes, int& wrong) {
      const u32 n = bytes / 4;
      const auto x = iota<f32>(n);
      for (int i = 0; i < 20; ++i) {
        auto in = Buffer<f32>::from_host(client, x).value();
        auto out = Buffer<f32>::uninitialised(client, n).value();
        const LaunchArg args[] = {in.arg(), out.arg()};
        if (!launch(client.default_stream(), {k.get(), {{1}, {96}, bytes}, args, {}}).has_value() ||
            out.read().value() != std::vector<f32>(x.rbegin(), x.rend()))
          ++wrong;
      }
    };
    int wrong[2] = {};
    std::thread other([&] { run(1024, wrong[0]); });
    run(64 * 1024 - 16, wrong[1]);
    other.join();
    CHECK(wrong[0] == 0);
    CHECK(wrong[1] == 0);

    // Above the limit: refused with request and limit, and the next launch works.
    auto in = Buffer<f32>::zeroed(client, 4).value(), out = Buffer<f32>::zeroed(client, 4).value();
    const LaunchArg args[] = {in.arg(), out.arg()};
    const u32 limit = client.properties().max_dynamic_shared;
    const auto refused = launch(client.default_stream(), {k.get(), {{1}, {96}, limit}, args, {}});
    REQUIRE(!refused.has_value());
    CHECK(refused.error().rule() == "DeviceSharedMemoryExceeded");
    CHECK(refused.error().data().requested == limit + 16);
    CHECK(refused.error().data().limit == limit);
    CHECK(refused.error().is_refusal());
    CHECK(launch(client.default_stream(), {k.get(), {{1}, {96}, 16}, args, {}}).has_value());
    CHECK(out.read().value() == std::vector<f32>(4, 0));
  }
}

TEST_CASE("as much shared memory as there is: two static arrays and the rest dynamic") {
  const auto k = kernel("all_shared", [](InOut<u32> out) {
    constexpr u32 n = 24 * 1024 / 4;
    Shared<u32> s1(n), s2(n);
    DynamicShared<u32> rest;
    auto u = thread_id().x;
    for (auto i : range(u, n, block_dim().x)) {
      s1[i] = 0;
      s2[i] = 0;
    }
    barrier();
    s1[n - u - 1] = out[u];
    If (u > 0) { s2[n - u - 1] = out[8 - u]; }
    rest[rest.size() - u - 1] = u;
    barrier();
    out[u] = s1[n - u - 2] + s2[n - u - 1] + rest[rest.size() - u - 1] - u;
  });
  // What the device with the least has, and the CPU and the largest GPUs.
  for (const u32 kib : {64u, 227u}) {
    check_run<u32>(*k, {{1}, {8}, (kib - 48) * 1024}, {buffer(iota<u32>(8))}, 0, {1, 9, 9, 9, 9, 9, 9, 1}, {.shared_bytes = kib * 1024});
  }
}

TEST_CASE("shared arrays of any types and lengths do not overlap and are aligned for their elements") {
  const auto k = kernel("layout", [](Out<f64> out, Out<u32> flags) {
    Shared<u8> three(3);
    Shared<f64> wide(4);
    Shared<bool> flag(3);
    Shared<u32> one(1);
    Shared<u64, 2> table(3, 5);
    auto t = thread_id().x;
    If (t < 3) {
      three[t] = cast<u8>(t) + 100;
      flag[t] = t != 1;
    }
    If (t < 4) { wide[t] = cast<f64>(t) + 0.5; }
    If (t == 4) { one[0] = 42; }
    If (t < 15) { table[t / 5, t % 5] = cast<u64>(t) << 33; }
    barrier();
    If (t < 4) { out[t] = wide[t] + cast<f64>(one[0]) + cast<f64>(table[2, t] >> 33); }
    If (t < 3) { flags[t] = cast<u32>(three[t]) * 2 + cast<u32>(flag[t]); }
  });
  const auto prepared = k->prepared();
  REQUIRE(prepared.has_value());
  for (const u64 offset : (*prepared)->shared.offset) {
    if (offset != ~u64{0}) CHECK(offset % 16 == 0);
  }
  const auto outcomes = run_everywhere(*k, {{1}, {33}}, {filled<f64>(4, 99), filled<u32>(3, 99)});
  expect<f64>(outcomes, 0, {52.5, 54.5, 56.5, 58.5});
  expect<u32>(outcomes, 1, {201, 202, 205});
}

TEST_CASE("nothing to do: no elements, no blocks, no memory, and the next launch is right") {
  const auto sum = kernel("sum", [](In<i32> x, InOut<i32> total) {
    for (auto i : range(thread_id().x, x.size(), block_dim().x)) { total.atomic_add(0, x[i]); }
  });
  const auto guarded = kernel("guarded", [](In<i32> x, Out<i32> y) {
    auto i = global_id().x;
    If (i < x.size()) { y[i] = x[i] + 1; }
  });
  check_run<i32>(*sum, {{1}, {128}}, {buffer<i32>({}), filled<i32>(1, 0)}, 1, {0});
  check_run<i32>(*guarded, {{1}, {128}}, {buffer<i32>({}), buffer<i32>({})}, 1, {});
  // A grid of 0 along any axis: the buffers stay as they are.
  for (const Dim3& grid : {Dim3(0), Dim3(3, 0), Dim3(3, 2, 0)}) {
    check_run<i32>(*guarded, {grid, {128}}, {buffer<i32>({7, 8}), buffer<i32>({7, 8})}, 1, {7, 8}, {.interpreter = false});
  }
  for (const Client& client : devices()) {
    auto empty = Buffer<f32>::from_host(client, {}).value();
    CHECK(empty.size() == 0);
    CHECK(empty.read().value().empty());
    CHECK(empty.write({}).has_value());
    CHECK(Buffer<f32>::zeroed(client, 0).value().read().value().empty());
    CHECK(Buffer<f32, 2>::uninitialised(client, 0, 5).value().view(0).read().value().empty());
    CHECK(client.sync().has_value());
  }
  check_run<i32>(*guarded, {{1}, {128}}, {buffer<i32>({7, 8}), buffer<i32>({0, 0})}, 1, {8, 9});
  check_run<i32>(*sum, {{1}, {45}}, {buffer(iota<i32>(100)), filled<i32>(1, 0)}, 1, {4950});
}

TEST_CASE("offsets above 2^31 elements land where they belong") {
  // 36864 x 65536 bytes are 2.3 GiB, of which few pages are ever touched. Rows around 2^31, and the last.
  constexpr u32 rows = 36864, columns = 65536;
  constexpr u32 touched[] = {0, 1, 32767, 32768, 32769, 36863};
  const auto value = [](u32 r) { return static_cast<u8>(r % 251); };
  CHECK(value(32767) == 137);
  CHECK(value(32768) == 138);
  CHECK(value(36863) == 217);
  const auto two_d = kernel("far_rows", [](InOut<u8, 2> m, In<u32> at) {
    auto i = global_id().x;
    If (i < at.size()) { m[at[i], 0] = cast<u8>(at[i] % 251); }
  });
  const auto by_u64 = kernel("far_u64", [](InOut<u8> m, In<u32> at) {
    auto i = global_id().x;
    If (i < at.size()) { m[cast<u64>(at[i]) * columns] = cast<u8>(at[i] % 251); }
  });
  const auto by_u32 = kernel("far_u32", [](InOut<u8> m, In<u32> at) {
    auto i = global_id().x;
    If (i < at.size()) { m[at[i] * columns] = cast<u8>(at[i] % 251); }
  });
  const auto by_i32 = made(record("far_i32", [](InOut<u8> m, In<u32> at) {
    auto i = global_id().x;
    If (i < at.size()) { m[cast<i32>(at[i]) * static_cast<i32>(columns)] = cast<u8>(at[i] % 251); }
  }));
  for (const Client& client : devices()) {
    auto made_buffer = Buffer<u8, 2>::uninitialised(client, rows, columns);
    if (!made_buffer.has_value()) {  // a machine with less memory than that says so
      CHECK(made_buffer.error().data().requested == u64{rows} * columns);
      continue;
    }
    auto matrix = std::move(*made_buffer);
    auto flat = matrix.view(u64{rows} * columns);
    const auto at = Buffer<u32>::from_host(client, {std::begin(touched), std::end(touched)}).value();
    const auto around = [&](u32 r) { return r == 0 ? flat.slice(0, 3) : flat.slice(u64{r} * columns - 1, 3); };
    struct Way {
      const Variant* variant;
      LaunchArg matrix;
    };
    for (const auto& [variant, m] : {Way{two_d.get(), matrix.arg()}, {by_u64.get(), flat.arg()}, {by_u32.get(), flat.arg()}}) {
      CAPTURE(variant->name());
      for (auto mode : {ir::PrepareOptions::Mode::Checked, ir::PrepareOptions::Mode::Unchecked}) {
        for (u32 r : touched) around(r).write({0, 0, 0}).value();
        const LaunchArg args[] = {m, at.arg()};
        launch(client.default_stream(), {variant, {{1}, {33}}, args, mode}).value();
        for (u32 r : touched)
          CHECK(around(r).read().value() == (r == 0 ? std::vector<u8>{value(r), 0, 0} : std::vector<u8>{0, value(r), 0}));
      }
    }
    // A product in i32 wraps to a negative subscript, which is out of range and not somewhere else.
    const auto last = Buffer<u32>::from_host(client, {36863}).value();
    const LaunchArg args[] = {flat.arg(), last.arg()};
    launch(client.default_stream(), {by_i32.get(), {{1}, {1}}, args, {}}).value();
    const auto read = around(0).read();
    REQUIRE(!read.has_value());
    CHECK(read.error().text().find("-1879113728") != std::string::npos);
  }
}

TEST_CASE("scalar parameters of mixed size arrive whatever stands in front of them") {
  struct Row {
    const char* type;
    Arg value;
    f64 arrives;
  };
  const Row rows[] = {{"u8", scalar<u8>(7), 7},
                      {"f64", scalar<f64>(2.5), 2.5},
                      {"i16", scalar<i16>(-3), -3},
                      {"u64", scalar<u64>(11), 11},
                      {"u64", scalar<u64>(12), 12},
                      {"u8", scalar<u8>(9), 9},
                      {"f32", scalar<f32>(0.5f), 0.5},
                      {"bool", scalar<bool>(true), 1},
                      {"i64", scalar<i64>(-1), -1},
                      {"f16", scalar<f16>(f16(-1.5)), -1.5},
                      {"u8", scalar<u8>(200), 200},
                      {"i16", scalar<i16>(-300), -300},
                      {"u32", scalar<u32>(7), 7},
                      {"f64", scalar<f64>(2.5), 2.5},
                      {"i8", scalar<i8>(-5), -5},
                      {"i32", scalar<i32>(-3), -3},
                      {"u64", scalar<u64>(u64{11} << 40), static_cast<f64>(u64{11} << 40)},
                      {"bool", scalar<bool>(true), 1},
                      {"f32", scalar<f32>(0.5f), 0.5},
                      {"u16", scalar<u16>(65535), 65535},
                      {"bool", scalar<bool>(false), 0},
                      {"i64", scalar<i64>(-1), -1}};
  for (u32 extra : {0u, 1u, 40u}) {
    CAPTURE(extra);
    std::string heads, body;
    std::vector<Arg> args;
    std::vector<f64> wanted;
    for (u32 i = 0; i < extra; ++i) {
      heads += "  scalar e" + std::to_string(i) + " : u8\n";
      args.push_back(scalar<u8>(static_cast<u8>(200 + i)));
    }
    for (const Row& row : rows) {
      const std::string n = std::to_string(wanted.size()), type(row.type);
      heads += "  scalar p" + n + " : " + type + "\n";
      body += "    %p" + n + " = param p" + n + " : " + type + "\n    %i" + n + " = const " + n + " : u32\n";
      if (type != "f64") body += "    %v" + n + " = cast %p" + n + " : f64\n";
      body += "    store out[%i" + n + "], " + (type == "f64" ? "%p" : "%v") + n + "\n";
      args.push_back(row.value);
      wanted.push_back(row.arrives);
    }
    args.push_back(filled<f64>(wanted.size(), 99));
    const auto k = from_text("kir 1\nkernel \"mixed\" {\n" + heads + "  buffer out : f64[*] out\n  body {\n" + body + "  }\n}\n");
    check_run<f64>(*k, {{1}, {1}}, args, args.size() - 1, wanted);
  }
}

TEST_CASE("inputs may be the same memory, and an output may be an input where the kernel says so") {
  const auto twice = kernel("twice", [](In<i32> a, In<i32> b, Out<i32> out) {
    auto i = global_id().x;
    If (i < out.size()) { out[i] = a[i] + 10 * b[i]; }
  });
  Arg b = buffer(iota<i32>(45));
  b.shares = 0;
  std::vector<i32> wanted;
  for (i32 i = 0; i < 45; ++i) wanted.push_back(11 * i);
  check_run(*twice, {{1}, {45}}, {buffer(iota<i32>(45)), b, filled<i32>(45, -1)}, 2, wanted);
  const auto negate = kernel("negate", [](In<i32> x, Out<i32> y) {
    in_place(y, x);
    auto i = global_id().x;
    If (i < y.size()) { y[i] = -x[i]; }
  });
  wanted.clear();
  for (i32 i = 0; i < 45; ++i) wanted.push_back(-i);
  check_run(*negate, {{2}, {33}}, {buffer(iota<i32>(45)), b}, 0, wanted);
}

TEST_CASE("bools are bytes of 0 and 1 in buffers") {
  const auto k = kernel("flip", [](In<bool> x, Out<bool> y, Out<u32> count) {
    auto i = global_id().x;
    If (i < x.size()) { y[i] = x[i] ^ true; }
    If (i == 0) {
      Var<u32> n = 0;
      for (auto j : range(x.size())) { n += cast<u32>(x[j]); }
      count[0] = n;
    }
  });
  std::vector<bool> x(45), wanted(45);
  u32 n = 0;
  for (u32 i = 0; i < 45; ++i) x[i] = i % 3 == 0, wanted[i] = !x[i], n += x[i];
  const auto outcomes = run_everywhere(*k, {{1}, {45}}, {buffer(x), filled<bool>(45, true), filled<u32>(1, 99)});
  expect(outcomes, 1, wanted);
  expect<u32>(outcomes, 2, {n});
}
