// Launching compiled kernels: which thread is which, limits, many host threads, variants that differ in one constant.
#include <atomic>
#include <thread>

#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct AddCfg {
  i32 k = 1;
};
KILN_CONFIG(AddCfg, k)
struct FloatCfg {
  f32 value = 0;
};
KILN_CONFIG(FloatCfg, value)
struct HelperCfg {
  bool square = false;
  u32 length = 4;
};
KILN_CONFIG(HelperCfg, square, length)

Val<i32> twice_of(const Val<i32>& x) { return x * 2; }
Val<i32> square_of(const Val<i32>& x) { return x * x; }

const auto& own_row() {
  static const auto k = kernel("own_row", [](Out<u32> out) {
    auto [x, y, z] = global_id();
    auto i = x + y + z;
    If (i < out.size()) { out[i] = i; }
  });
  return k;
}

}  // namespace

TEST_CASE("threads and blocks are numbered x fastest, in one, two and three dimensions") {
  const auto k = kernel("topology", [](Out<u32> out, Out<u32> parts) {
    auto [bx, by, bz] = block_id();
    auto [dx, dy, dz] = block_dim();
    (void)dz;
    auto [gx, gy, gz] = grid_dim();
    (void)gz;
    auto [x, y, z] = global_id();
    auto [tx, ty, tz] = thread_id();
    Val<u32> width = gx * dx, height = gy * dy, i = x + y * width + z * width * height;
    out[i] = i;
    parts[i] = tx | ty << 4 | tz << 8 | bx << 12 | by << 16 | bz << 20 | (lane_id() & 7) << 24 | warp_id() << 27;  // 4 bits each
  });
  for (const auto& [grid, block] :
       {std::pair<Dim3, Dim3>{{3, 5, 7}, {2, 2, 1}}, {{4}, {13}}, {{2, 3}, {16, 9}}, {{2, 3}, {5, 7}}, {{1, 2, 3}, {4, 4, 2}}}) {
    CAPTURE(shown(grid));
    CAPTURE(shown(block));
    const u32 width = grid.x * block.x, height = grid.y * block.y, depth = grid.z * block.z;
    std::vector<u32> ids, packed;
    for (u32 z = 0; z < depth; ++z) {
      for (u32 y = 0; y < height; ++y) {
        for (u32 x = 0; x < width; ++x) {
          ids.push_back(static_cast<u32>(ids.size()));
          const u32 tx = x % block.x, ty = y % block.y, tz = z % block.z, linear = tx + ty * block.x + tz * block.x * block.y;
          packed.push_back(tx | ty << 4 | tz << 8 | x / block.x << 12 | y / block.y << 16 | z / block.z << 20 | (linear % 32 & 7) << 24 |
                           linear / 32 << 27);
        }
      }
    }
    const auto outcomes = run_everywhere(*k, {grid, block}, {filled<u32>(ids.size(), 99), filled<u32>(ids.size(), 99)});
    expect(outcomes, 0, ids);
    expect(outcomes, 1, packed);
  }
}

TEST_CASE("64-bit global ids are those of 32 bits where those exist") {
  const auto k = kernel("wide_ids", [](Out<u64> out) {
    auto [x, y, z] = global_id64();
    (void)y;
    (void)z;
    If (x < out.size64()) { out[x] = x * x; }
  });
  std::vector<u64> wanted;
  for (u64 i = 0; i < 100; ++i) wanted.push_back(i * i);
  check_run(*k, {{4}, {33}}, {filled<u64>(100, 99)}, 0, wanted);
}

TEST_CASE("for_num_elems covers its elements and no more than the guard lets through") {
  const auto k = kernel("one_each", [](InOut<u32> out) {
    auto i = global_id().x;
    If (i < out.size()) { out[i] += 1; }
  });
  for (u32 n : {1u, 255u, 256u, 257u, 512u, 1000u, 1025u}) {
    const LaunchConfig config = for_num_elems(n);
    CHECK(config.grid.x == (n + 255) / 256);
    check_run(*k, config, {filled<u32>(n, 5)}, 0, std::vector<u32>(n, 6));
  }
  const auto image = kernel("one_each_pixel", [](InOut<u32, 2> out) {
    auto [x, y, z] = global_id();
    (void)z;
    If (y < out.extent(0) && x < out.extent(1)) { out[y, x] += x + 100 * y; }
  });
  for (const auto& [columns, rows] : {std::pair{1u, 1u}, {17u, 16u}, {19u, 41u}}) {
    std::vector<u32> wanted;
    for (u32 i = 0; i < rows * columns; ++i) wanted.push_back(i % columns + 100 * (i / columns));
    check_run(*image, cover({columns, rows}, {16, 16}), {buffer(std::vector<u32>(rows * columns, 0), {rows, columns})}, 0, wanted);
  }
}

TEST_CASE("more rows than a grid axis holds are refused with axis, number and limit, and nothing is written silently") {
  std::vector<u32> wanted(65535);
  for (u32 i = 0; i < 65535; ++i) wanted[i] = i;
  check_run(*own_row(), {{1, 65535}, {1}}, {filled<u32>(65535, 0xeeee)}, 0, wanted, {.unchecked = false});
  check_run(*own_row(), {{1, 1, 65535}, {1}}, {filled<u32>(65535, 0xeeee)}, 0, wanted, {.checked = false, .interpreter = false});
  for (const Client& client : devices()) {
    for (const auto& [grid, requested] : {std::pair<Dim3, u32>{{1, 70000}, 70000}, {{1, 65536}, 65536}, {{1, 1, 65536}, 65536}}) {
      CAPTURE(shown(grid));
      auto out = Buffer<u32>::from_host(client, std::vector<u32>(70000, 5)).value();
      const LaunchArg args[] = {out.arg()};
      const auto refused = launch(client.default_stream(), {own_row().get(), {grid, {1}}, args, {}});
      REQUIRE(!refused.has_value());
      CHECK(refused.error().rule() == "DeviceDimensionExceeded");
      CHECK(refused.error().kernel() == "own_row");
      CHECK(refused.error().data().requested == requested);
      CHECK(refused.error().data().limit == 65535);
      const std::string text = refused.error().text();
      CHECK(text.find(grid.y > 1 ? "y" : "z") != std::string::npos);
      CHECK(text.find(std::to_string(requested)) != std::string::npos);
      CHECK(text.find("65535") != std::string::npos);
      // No rows can be read as if they had been written, and the next launch works: 70000 rows as 35000 x 2.
      CHECK_FALSE(out.read().has_value());
      launch(client.default_stream(), {own_row().get(), {{1, 35000}, {1, 2}}, args, {}}).value();
      CHECK(out.read().value()[69999] == 69999);
    }
  }
}

TEST_CASE("blocks beyond the device's limits are refused with what was asked and what there is") {
  struct Row {
    Dim3 block;
    const char* rule;
    u64 requested, limit;
  };
  for (const Client& client : devices()) {
    const Dim3 most = client.properties().max_block;
    for (const Row& row : {Row{{1, 1, most.z + 1}, "DeviceDimensionExceeded", most.z + 1, most.z},
                           {{most.x + 1}, "DeviceDimensionExceeded", most.x + 1, most.x},
                           {{32, 33}, "DeviceThreadsPerBlockExceeded", 1056, 1024}}) {
      auto out = Buffer<u32>::zeroed(client, 4).value();
      const LaunchArg args[] = {out.arg()};
      const auto refused = launch(client.default_stream(), {own_row().get(), {{1}, row.block}, args, {}});
      REQUIRE(!refused.has_value());
      CHECK(refused.error().rule() == row.rule);
      CHECK(refused.error().data().requested == row.requested);
      CHECK(refused.error().data().limit == row.limit);
      CHECK(refused.error().is_refusal());
      CHECK(!refused.error().is_device_poisoned());
      launch(client.default_stream(), {own_row().get(), {{1}, {1024}}, args, {}}).value();
      CHECK(out.read().value() == std::vector<u32>{0, 1, 2, 3});
    }
  }
}

TEST_CASE("a declared block shape is exact, a declared maximum is a maximum, a requirement is asked at launch") {
  const auto exact = kernel("exact_block", [](Out<u32> out) {
    block_size(32, 4);
    out[linear_thread()] = linear_thread();
  });
  const auto most = kernel("most_threads", [](Out<u32> out) {
    max_threads(256);
    If (linear_thread() < out.size()) { out[linear_thread()] = linear_thread(); }
  });
  const auto needs = kernel("needs", [](Out<u32> out, Val<u32> n) {
    require(out.size() >= n * 2, "the output holds two numbers for each of n");
    If (global_id().x < 2 * n) { out[global_id().x] = n; }
  });
  std::vector<u32> wanted(128);
  for (u32 i = 0; i < 128; ++i) wanted[i] = i;
  check_run(*exact, {{1}, {32, 4}}, {filled<u32>(128, 99)}, 0, wanted);
  check_run(*most, {{1}, {16, 16}}, {filled<u32>(128, 99)}, 0, wanted);
  check_run<u32>(*needs, {{1}, {45}}, {filled<u32>(6, 99), scalar<u32>(3)}, 0, {3, 3, 3, 3, 3, 3});
  for (const Client& client : devices()) {
    auto out = Buffer<u32>::zeroed(client, 128).value();
    const auto refused = [&](const Variant& variant, const LaunchConfig& config, std::vector<LaunchArg> args) {
      const auto result = launch(client.default_stream(), {&variant, config, args, {}});
      REQUIRE(!result.has_value());
      CHECK(result.error().kernel() == variant.name());
      CHECK_FALSE(out.read().has_value());  // an Out that nobody wrote
      return result.error();
    };
    CHECK(refused(*exact, {{1}, {64, 2}}, {out.arg()}).rule() == "BlockShapeMismatch");
    CHECK(refused(*exact, {{1}, {4, 32}}, {out.arg()}).rule() == "BlockShapeMismatch");
    const Error above = refused(*most, {{1}, {17, 16}}, {out.arg()});
    CHECK(above.rule() == "BlockThreadsExceedContract");
    CHECK(above.data().requested == 272);
    CHECK(above.data().limit == 256);
    LaunchArg n;
    n.type = ir::Type::U32;
    n.bits = 65;
    const Error violated = refused(*needs, {{1}, {45}}, {out.arg(), n});
    CHECK(violated.text().find("the output holds two numbers for each of n") != std::string::npos);
    CHECK(violated.text().find("128") != std::string::npos);
    CHECK(violated.text().find("130") != std::string::npos);
  }
}

TEST_CASE("kernels of one text that differ in a captured constant are different programs") {
  const auto add = [](i32 k) { return kernel("addk", [](const AddCfg& cfg, In<i32> x, Out<i32> y) { y[0] = x[0] + cfg.k; }, AddCfg{k}); };
  for (const auto& [k, wanted] : {std::pair{4, 5}, {8, 9}, {4, 5}})
    check_run<i32>(*add(k), {{1}, {1}}, {buffer<i32>({1}), filled<i32>(1, 99)}, 1, {wanted});

  // 0.0 and -0.0 compare equal and are different constants.
  for (f32 v : {0.0f, -0.0f, 0.0f}) {
    const auto k = kernel("signed_zero", [](const FloatCfg& cfg, Out<f32> y) { y[0] = Val<f32>(cfg.value); }, FloatCfg{v});
    check_run<f32>(*k, {{1}, {1}}, {filled<f32>(1, 99)}, 0, {v});
  }
  // 1 as i32 and as i64.
  const auto narrow = kernel("one", [](In<i32> x, Out<i32> y) { y[0] = (x[0] + 1) / 2; });
  const auto wide = kernel("one", [](In<i64> x, Out<i64> y) { y[0] = (x[0] + 1) / 2; });
  check_run<i32>(*narrow, {{1}, {1}}, {buffer<i32>({0x7fffffff}), filled<i32>(1, 99)}, 1, {-0x40000000});
  check_run<i64>(*wide, {{1}, {1}}, {buffer<i64>({0x7fffffff}), filled<i64>(1, 99)}, 1, {0x40000000});
  // A helper and a length.
  for (const auto& [cfg, wanted] :
       {std::pair<HelperCfg, i32>{{false, 4}, 6 * 4}, {{true, 4}, 9 * 4}, {{false, 7}, 6 * 7}, {{true, 7}, 9 * 7}, {{false, 4}, 24}}) {
    const auto k = kernel(
        "helper",
        [](const HelperCfg& c, In<i32> x, Out<i32> y) {
          Var<i32> sum = 0;
          for (u32 i = 0; i < c.length; ++i) sum += c.square ? square_of(x[0]) : twice_of(x[0]);
          y[0] = sum;
        },
        cfg);
    check_run<i32>(*k, {{1}, {1}}, {buffer<i32>({3}), filled<i32>(1, 99)}, 1, {wanted});
  }
}

TEST_CASE("two kernels of one name and signature with different bodies are different programs") {
  const auto first = kernel("same_name", [](Out<u32> out) { out[0] = 1; });
  const auto second = kernel("same_name", [](Out<u32> out) { out[0] = 2; });
  for (int round = 0; round < 2; ++round) {
    check_run<u32>(*first, {{1}, {1}}, {filled<u32>(1, 99)}, 0, {1});
    check_run<u32>(*second, {{1}, {1}}, {filled<u32>(1, 99)}, 0, {2});
  }
}

TEST_CASE("fresh host threads launch a compiled kernel at the same time, each on a stream of its own") {
  const auto k = kernel("accumulate", [](InOut<u32> x, Val<u32> by) {
    auto i = global_id().x;
    If (i < x.size()) { x[i] += by; }
  });
  for (const Client& client : devices()) {
    constexpr u32 kThreads = 8, kLaunches = 100, kSize = 1000;
    std::vector<Buffer<u32>> buffers;
    for (u32 t = 0; t < kThreads; ++t) buffers.push_back(Buffer<u32>::zeroed(client, kSize).value());
    const auto launch_one = [&](const Stream& stream, u32 t) {
      LaunchArg by;
      by.type = ir::Type::U32;
      by.bits = t + 1;
      const LaunchArg args[] = {buffers[t].arg(), by};
      return launch(stream, {k.get(), {{8}, {129}}, args, {}}).has_value();
    };
    REQUIRE(launch_one(client.default_stream(), 0));
    std::atomic<u32> failures = 0;
    std::vector<std::thread> threads;
    for (u32 t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const Stream stream = client.stream();
        for (u32 i = 0; i < kLaunches; ++i) failures += launch_one(stream, t) ? 0 : 1;
        if (t % 2 == 0) failures += stream.sync().has_value() ? 0 : 1;
      });
    }
    for (std::thread& t : threads) t.join();
    CHECK(failures == 0);
    for (u32 t = 0; t < kThreads; ++t) {
      CAPTURE(t);
      CHECK(buffers[t].read().value() == std::vector<u32>(kSize, (t + 1) * kLaunches + (t == 0 ? 1 : 0)));
    }
  }
}

TEST_CASE("an impossible allocation says how much was asked for, and the device goes on") {
  for (const Client& client : devices()) {
    const u64 bytes = u64{1} << 40;
    const auto refused = Buffer<u32>::uninitialised(client, bytes / 4);
    REQUIRE(!refused.has_value());
    CHECK(refused.error().text().find("1099511627776") != std::string::npos);
    CHECK(!refused.error().is_device_poisoned());
    auto b = Buffer<u32>::from_host(client, {7, 7, 7, 7}).value();
    CHECK(b.read().value() == std::vector<u32>(4, 7));
  }
}
