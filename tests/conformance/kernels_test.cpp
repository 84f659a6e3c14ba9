// Small whole kernels as people write them, with results that plain C++ says.
#include <array>
#include <complex>

#include "conformance/everywhere.h"
#include "conformance/made_of.h"

using namespace kiln;
using namespace kiln::test;

namespace {

template <class T>
void check_scale(T bias, T factor) {
  const auto k = kernel("scale", [](In<T> x, Out<T> y, Val<T> b, Val<T> f) {
    auto i = global_id().x;
    If (i < y.size()) { y[i] = (x[i] + b) * f; }
  });
  const auto x = made_of<T>(1024, [](auto i) { return i; });
  check_run(*k, {{8}, {129}}, {buffer(x), filled<T>(1024, T(-1)), scalar<T>(bias), scalar<T>(factor)}, 1,
            made_of<T>(1024, [&](auto i) { return (static_cast<T>(i) + bias) * factor; }));
}

struct TileCfg {
  u32 tile = 8;
};
KILN_CONFIG(TileCfg, tile)

}  // namespace

TEST_CASE("one thread writes a constant") {
  const auto k = kernel("constant", [](Out<u32> out) { out[0] = 42; });
  check_run<u32>(*k, {{1}, {1}}, {filled<u32>(1, 0)}, 0, {42});
}

TEST_CASE("vector addition, and a kernel template for two types") {
  const auto k = kernel("vecadd", [](In<f32> a, In<f32> b, Out<f32> c) {
    auto i = global_id().x;
    If (i < c.size()) { c[i] = a[i] + b[i]; }
  });
  const auto a = made_of<f32>(1024, [](auto i) { return i; }), b = made_of<f32>(1024, [](auto i) { return 2 * i; });
  check_run(*k, for_num_elems(1024), {buffer(a), buffer(b), filled<f32>(1024, -1)}, 2, made_of<f32>(1024, [](auto i) { return 3 * i; }));
  check_scale<f32>(1.25f, 2.5f);
  check_scale<i32>(7, 3);
  check_scale<f64>(-0.5, 1.0 / 3);
  check_scale<u64>(u64{1} << 40, 5);
}

TEST_CASE("a value chosen at run time is added for each type, and rows of another rank are added element by element") {
  const auto add5 = [](auto zero) {
    using T = decltype(zero);
    const auto k = kernel("plus_five", [](InOut<T> x) {
      auto i = global_id().x;
      If (i < x.size()) { x[i] += 5; }
    });
    check_run<T>(*k, {{1}, {7}}, {buffer<T>({0, 1})}, 0, {5, 6});
  };
  add5(f32{}), add5(f64{}), add5(i32{}), add5(u32{}), add5(i64{}), add5(u64{});
  const auto k = kernel("ranks", [](In<f32> a, In<f32, 2> b, Out<f32> out) {
    auto i = global_id().x;
    If (i < out.size()) { out[i] = a[i] + b[i / b.extent(1), i % b.extent(1)]; }
  });
  check_run<f32>(*k, {{1}, {33}},
                 {buffer(made_of<f32>(8, [](auto i) { return i; })), buffer(made_of<f32>(8, [](auto i) { return i + 3; }), {2, 4}),
                  filled<f32>(8, -1)},
                 2, {3, 5, 7, 9, 11, 13, 15, 17});
}

TEST_CASE("a parameter list of buffers and scalars, with an index per element") {
  // in[i] * scale + bias + extra + off[i], off = i % 5.
  const auto k = kernel("mixed_abi", [](In<f32> in, Val<f32> scale, Val<f64> bias, In<u32> off, Val<i32> extra, Out<f32> out) {
    auto i = global_id().x;
    If (i < out.size()) { out[i] = in[i] * scale + cast<f32>(bias) + cast<f32>(extra) + cast<f32>(off[i]); }
  });
  const auto in = made_of<f32>(1024, [](auto i) { return i; });
  const auto off = made_of<u32>(1024, [](auto i) { return i % 5; });
  check_run(*k, {{8}, {128}}, {buffer(in), scalar<f32>(2), scalar<f64>(0.5), buffer(off), scalar<i32>(-3), filled<f32>(1024, -1)}, 5,
            made_of<f32>(1024, [&](auto i) { return in[i] * 2 + 0.5f - 3 + static_cast<f32>(off[i]); }));
}

TEST_CASE("each element gets the length, and only the elements") {
  const auto k = kernel("length", [](Out<u32> out) {
    auto i = global_id().x;
    If (i < out.size()) { out[i] = out.size(); }
  });
  std::vector<u32> wanted(300, 7);
  for (u32 i = 0; i < 257; ++i) wanted[i] = 257;
  check_run(*k, {{2}, {256}}, {view(std::vector<u32>(300, 7), 0, {257})}, 0, wanted);
}

TEST_CASE("rows keep their own width, and sentinels stay") {
  constexpr u32 sentinel = 0xDEADBEEF;
  const auto k = kernel("rows", [](Out<u32, 2> a, Out<u32, 2> b) {
    auto [c, r, z] = global_id();
    (void)z;
    If (r < a.extent(0) && c < a.extent(1)) { a[r, c] = r * a.extent(1) + c; }
    If (r < b.extent(0) && c < b.extent(1)) { b[r, c] = r * b.extent(1) + c; }
  });
  const auto check_widths = [&](u32 ra, u32 wa, u32 rb, u32 wb) {
    const auto wanted = [](u32 rows, u32 width) {
      return made_of<u32>(rows * width + 20,
                          [=](auto i) { return i < 10 || i >= 10 + rows * width ? sentinel : static_cast<u32>(i) - 10; });
    };
    const auto outcomes = run_everywhere(
        *k, cover({128, 8}, {45, 2}),
        {view(std::vector<u32>(ra * wa + 20, sentinel), 10, {ra, wa}), view(std::vector<u32>(rb * wb + 20, sentinel), 10, {rb, wb})});
    expect(outcomes, 0, wanted(ra, wa));
    expect(outcomes, 1, wanted(rb, wb));
  };
  check_widths(8, 37, 8, 37);
  check_widths(6, 5, 3, 100);
}

TEST_CASE("runs of four elements a thread, the last one clipped, and a stride over the grid") {
  constexpr u32 n = 4093;
  const auto x = made_of<f32>(n, [](auto i) { return i; });
  const auto runs = kernel("runs", [](In<f32> in, Out<f32> out, InOut<u32> clipped) {
    auto first = global_id().x * 4, length = out.size();
    If (first < length) {
      If (first + 4 > length) { clipped.atomic_add(length - first, 1); }
      for (auto i : range(first, min(first + 4, length))) { out[i] = in[i] * 2; }
    }
  });
  auto outcomes = run_everywhere(*runs, {{(n / 4 + 100) / 100}, {100}}, {buffer(x), filled<f32>(n, -1), filled<u32>(4, 0)});
  expect(outcomes, 1, made_of<f32>(n, [](auto i) { return 2 * i; }));
  expect<u32>(outcomes, 2, {0, 1, 0, 0});
  const auto stride = kernel("stride", [](In<f32> in, Out<f32> out) {
    for (auto i : range(global_id().x, out.size(), block_dim().x * grid_dim().x)) { out[i] = in[i] + 1; }
  });
  check_run(*stride, {{2}, {128}}, {buffer(x), filled<f32>(n, -1)}, 1, made_of<f32>(n, [](auto i) { return i + 1; }));
  check_run(*stride, {{3}, {45}}, {buffer(x), filled<f32>(n, -1)}, 1, made_of<f32>(n, [](auto i) { return i + 1; }));
}

TEST_CASE("complex numbers as pairs: sum, product, conjugate, z * z + c") {
  const auto k = kernel("complex", [](In<f32, 2> a, In<f32, 2> b, Out<f32, 2> out) {
    auto i = global_id().x, n = a.extent(0);
    If (i < n) {
      Val<f32> ar = a[i, 0], ai = a[i, 1], br = b[i, 0], bi = b[i, 1];
      out[i, 0] = ar + br;
      out[i, 1] = ai + bi;
      out[i + n, 0] = ar * br - ai * bi;
      out[i + n, 1] = ar * bi + ai * br;
      out[i + 2 * n, 0] = ar;
      out[i + 2 * n, 1] = -ai;
    }
  });
  check_run<f32>(*k, {{1}, {7}},
                 {buffer<f32>({1, 2, 3, 4}, {2, 2}), buffer<f32>({3, 4, 5, 6}, {2, 2}), buffer(std::vector<f32>(12, -1), {6, 2})}, 2,
                 {4, 6, 8, 10, -5, 10, -9, 38, 1, -2, 3, -4});
}

TEST_CASE("a neighbour's element by shared memory, and two arrays") {
  const auto k = kernel("next", [](In<f32> x, Out<f32> y, Out<f32> both) {
    block_size(256);
    Shared<f32> a(256), b(256);
    auto t = thread_id().x;
    a[t] = x[t];
    b[t] = x[t] + 100;
    barrier();
    y[t] = a[(t + 1) % 256];
    both[t] = a[(t + 1) % 256] + b[(t + 1) % 256];
  });
  const auto outcomes =
      run_everywhere(*k, {{1}, {256}}, {buffer(made_of<f32>(256, [](auto i) { return i; })), filled<f32>(256, -1), filled<f32>(256, -1)});
  expect(outcomes, 1, made_of<f32>(256, [](auto i) { return (i + 1) % 256; }));
  expect(outcomes, 2, made_of<f32>(256, [](auto i) { return 2 * ((i + 1) % 256) + 100; }));
}

TEST_CASE("dynamic shared memory is parted by offsets, beside static memory") {
  const auto k = kernel("parts", [](Out<u32> out) {
    DynamicShared<u32> s;
    Shared<u32> fixed(64);
    auto t = thread_id().x, n = block_dim().x;
    s[t] = t;
    s[n + t] = t * 10;
    s[2 * n + t] = s.size();
    fixed[t] = t * 100;
    barrier();
    auto r = n - 1 - t;
    out[t] = s[r] + s[n + r] + fixed[r] + s[2 * n + r];
  });
  for (u32 n : {1u, 33u, 64u})
    check_run(*k, {{1}, {n}, 3 * n * 4}, {filled<u32>(n, 99)}, 0, made_of<u32>(n, [&](auto t) { return (n - 1 - t) * 111 + 3 * n; }));
}

TEST_CASE("a transpose through shared memory, with a padded tile") {
  const auto k = kernel("transpose", [](In<f32, 2> in, Out<f32, 2> out) {
    Shared<f32, 2> tile(32, 33);
    auto [tx, ty, tz] = thread_id();
    auto [bx, by, bz] = block_id();
    (void)tz;
    (void)bz;
    for (u32 j = 0; j < 32; j += 8) {
      auto r = by * 32 + ty + j, c = bx * 32 + tx;
      If (r < in.extent(0) && c < in.extent(1)) { tile[ty + j, tx] = in[r, c]; }
    }
    barrier();
    for (u32 j = 0; j < 32; j += 8) {
      auto r = bx * 32 + ty + j, c = by * 32 + tx;
      If (r < out.extent(0) && c < out.extent(1)) { out[r, c] = tile[tx, ty + j]; }
    }
  });
  for (const auto& [rows, columns] : {std::pair{32u, 32u}, {45u, 70u}}) {
    const u32 r = rows, c = columns;
    check_run(*k, {{(c + 31) / 32, (r + 31) / 32}, {32, 8}},
              {buffer(made_of<f32>(r * c, [](auto i) { return i; }), {r, c}), buffer(std::vector<f32>(r * c, -1), {c, r})}, 1,
              made_of<f32>(r * c, [&](auto i) { return i % r * c + i / r; }));
  }
}

TEST_CASE("tiles of two sizes are two kernels with one result: a * b scaled, plus c scaled") {
  constexpr u32 m = 128, n = 96, depth = 64;
  const auto a = made_of<f32>(m * depth, [](auto i) { return static_cast<int>(i * 7 % 13) - 6; }),
             b = made_of<f32>(depth * n, [](auto i) { return static_cast<int>(i * 5 % 11) - 5; });
  const auto c = made_of<f32>(m * n, [](auto i) { return i % 9; });
  std::vector<f32> wanted(m * n);
  for (u32 i = 0; i < m; ++i) {
    for (u32 j = 0; j < n; ++j) {
      f32 sum = 0;  // small integers: exact in any order
      for (u32 k = 0; k < depth; ++k) sum += a[i * depth + k] * b[k * n + j];
      wanted[i * n + j] = 1.5f * sum + 0.5f * c[i * n + j];
    }
  }
  for (u32 tile : {8u, 16u}) {
    const auto k = kernel(
        "gemm",
        [](const TileCfg& cfg, In<f32, 2> x, In<f32, 2> y, InOut<f32, 2> z, Val<f32> alpha, Val<f32> beta) {
          block_size(cfg.tile, cfg.tile);
          Shared<f32, 2> xs(cfg.tile, cfg.tile), ys(cfg.tile, cfg.tile);
          auto [tx, ty, tz] = thread_id();
          auto [column, row, plane] = global_id();
          (void)tz;
          (void)plane;
          Var<f32> sum = 0;
          for (auto k0 : range(0, x.extent(1), cfg.tile)) {
            xs[ty, tx] = x[row, k0 + tx];
            ys[ty, tx] = y[k0 + ty, column];
            barrier();
            for (u32 i = 0; i < cfg.tile; ++i) sum += xs[ty, i] * ys[i, tx];
            barrier();
          }
          z[row, column] = alpha * sum + beta * z[row, column];
        },
        TileCfg{tile});
    check_run(*k, cover({n, m}, {tile, tile}),
              {buffer(a, {m, depth}), buffer(b, {depth, n}), buffer(c, {m, n}), scalar<f32>(1.5f), scalar<f32>(0.5f)}, 2, wanted);
  }
}

TEST_CASE("small tables known while recording, and looked up at run time") {
  static constexpr std::array<i32, 8> table{3, 1, 4, 1, 5, 9, 2, 6};
  const auto unrolled = kernel("coefficients", [](In<i32> x, Out<i32> y) {
    auto i = global_id().x;
    If (i < x.size()) {
      Var<i32> sum = 0;
      for (u32 j = 0; j < table.size(); ++j) sum = sum * x[i] + table[j];
      y[i] = sum;
    }
  });
  const auto x = made_of<i32>(33, [](auto i) { return static_cast<int>(i) - 16; });
  check_run(*unrolled, {{1}, {45}}, {buffer(x), filled<i32>(33, -1)}, 1, made_of<i32>(33, [&](auto i) {
    u32 sum = 0;
    for (i32 t : table) sum = sum * static_cast<u32>(x[i]) + static_cast<u32>(t);
    return static_cast<i32>(sum);
  }));
  const auto looked_up = kernel("lookup", [](In<u32> at, Out<i32> y) {
    Local<i32, 8> local;
    for (u32 j = 0; j < table.size(); ++j) local[j] = table[j];
    auto i = global_id().x;
    If (i < at.size()) {
      local[at[i] % 8] += 100;
      y[i] = local[at[i] % 8] * 10 + local[(at[i] + 1) % 8];
    }
  });
  const auto at = made_of<u32>(45, [](auto i) { return i * 3 + 1; });
  check_run(*looked_up, {{1}, {45}}, {buffer(at), filled<i32>(45, -1)}, 1,
            made_of<i32>(45, [&](auto i) { return (table[at[i] % 8] + 100) * 10 + table[(at[i] + 1) % 8]; }));
}

TEST_CASE("slices: a part's elements, its length, and the sum over it") {
  const auto k = kernel("slice", [](In<i32> s, Out<i32> out) {
    out[0] = s[0];
    out[1] = cast<i32>(s.size());
    Var<i32> sum = 0;
    for (auto i : range(s.size())) { sum += s[i]; }
    out[2] = sum;
  });
  const std::vector<i32> x{0, 1, 2, 3, 4};
  check_run<i32>(*k, {{1}, {1}}, {view(x, 2, {1}), filled<i32>(3, -1)}, 1, {2, 1, 2});
  check_run<i32>(*k, {{1}, {1}}, {view(x, 2, {2}), filled<i32>(3, -1)}, 1, {2, 2, 5});
}

TEST_CASE("what was written is read back later, and bits go through untouched") {
  for (const Client& client : devices()) {
    const auto x = made_of<i32>(1024, [](auto i) { return i * 2654435761u; });
    auto b = Buffer<i32>::from_host(client, x).value();
    CHECK(b.read().value() == x);
    CHECK(b.read().value() == x);
  }
  const auto k = kernel("bit_copy", [](In<f32> x, Out<u32> bits, Out<f32> back) {
    auto i = global_id().x;
    If (i < x.size()) {
      bits[i] = bit_cast<u32>(x[i]) ^ 0x5a5a5a5au;
      back[i] = bit_cast<f32>(bit_cast<u32>(x[i]) ^ 0u);
    }
  });
  const std::vector<u32> patterns{0x7fc01234, 0x41440000, 0x00000001, 0xff800001, 0x80000000};
  std::vector<f32> x(patterns.size());
  std::memcpy(x.data(), patterns.data(), 4 * patterns.size());
  const auto outcomes = run_everywhere(*k, {{1}, {7}}, {buffer(x), filled<u32>(5, 99), filled<f32>(5, -1)});
  expect(outcomes, 1, made_of<u32>(5, [&](auto i) { return patterns[i] ^ 0x5a5a5a5au; }));
  for (const Outcome& o : outcomes) CHECK_MESSAGE(from_bytes<u32>(o.bytes.at(2)) == patterns, o.where);  // the payloads too
}

TEST_CASE("a list built while recording is a constant of the kernel") {
  const auto k = kernel("list", [](Out<u32> out) {
    std::vector<Val<u32>> list{Val<u32>(1), Val<u32>(4)};
    Var<u32> sum = 0;
    for (const auto& v : list) sum += v;
    out[0] = sum;
    out[1] = list[0] + 2 + list.size() * 0;
    out[2] = list[1];
  });
  check_run<u32>(*k, {{1}, {1}}, {filled<u32>(3, 99)}, 0, {5, 3, 4});
}
