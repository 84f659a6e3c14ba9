// Rows of the case lists (docs/cases.md) with exactly their inputs and results, where the tests by topic use others.
#include <utility>

#include "conformance/everywhere.h"
#include "conformance/made_of.h"

using namespace kiln;
using namespace kiln::test;

namespace {

enum class Tag : u32 { Zero, Other };
struct TagCfg {
  Tag tag = Tag::Zero;
};
KILN_CONFIG(TagCfg, tag)

// An enum whose variants have a number with them: known to the host, or to the kernel alone.
enum class Kind : u32 { First, Second };
struct VariantCfg {
  Kind kind = Kind::First;
  i32 with = 0;
};
KILN_CONFIG(VariantCfg, kind, with)

// Two results of one helper.
template <class T>
std::pair<Val<T>, Val<T>> around(const Val<T>& x) {
  return {x + 1, x - 1};
}

// One atomic_min and one atomic_max over all of x.
template <class T>
void check_fold_of_nothing(T low, T high) {
  const auto k = kernel("fold_of_nothing", [](In<T> x, InOut<T> least, InOut<T> most) {
    for (auto i : range(thread_id().x, x.size(), block_dim().x)) {
      least.atomic_min(0, x[i]);
      most.atomic_max(0, x[i]);
    }
  });
  const auto outcomes = run_everywhere(*k, {{1}, {128}}, {buffer<T>({}), buffer<T>({low}), buffer<T>({high})});
  expect<T>(outcomes, 1, {low});
  expect<T>(outcomes, 2, {high});
}

}  // namespace

TEST_CASE("one outlier among the lanes of a warp is its maximum, its minimum, and decides its votes") {
  const auto k = kernel("outlier", [](In<i32> high, In<i32> low, In<i32> ten, Out<i32> most, Out<i32> least, Out<u32> all, Out<u32> any) {
    auto t = thread_id().x;
    most[t] = warp::max(high[t]);
    least[t] = warp::min(low[t]);
    all[t] = cast<u32>(warp::all(ten[t] < 5));
    any[t] = cast<u32>(warp::any(ten[t] == 10));
  });
  std::vector<i32> high(32), low(32), ten(32);
  for (i32 t = 0; t < 32; ++t) high[t] = t, low[t] = t, ten[t] = t % 5;
  high[16] = 999, low[16] = -5, ten[16] = 10;
  const auto outcomes = run_everywhere(
      *k, {{1}, {32}},
      {buffer(high), buffer(low), buffer(ten), filled<i32>(32, 99), filled<i32>(32, 99), filled<u32>(32, 99), filled<u32>(32, 99)});
  expect(outcomes, 3, std::vector<i32>(32, 999));
  expect(outcomes, 4, std::vector<i32>(32, -5));
  expect(outcomes, 5, std::vector<u32>(32, 0));
  expect(outcomes, 6, std::vector<u32>(32, 1));
}

TEST_CASE("what stands under a left side that is false has its effect only there") {
  // left != 0 || effect(): the side channel counts the elements whose left side did not decide.
  const auto k = kernel("or_effect", [](In<i32> left, InOut<u32> side, Out<i32> out) {
    auto t = global_id().x;
    If (t < left.size()) {
      Var<bool> either = left[t] != 0;
      If (!either) { either = side.atomic_add(0, 1) < 1000; }
      out[t] = cast<i32>(either);
    }
  });
  auto outcomes = run_everywhere(*k, {{1}, {33}}, {buffer<i32>({1}), filled<u32>(1, 0), filled<i32>(1, 99)});
  expect<u32>(outcomes, 1, {0});
  expect<i32>(outcomes, 2, {1});
  outcomes = run_everywhere(*k, {{1}, {33}}, {buffer<i32>({1, 0, 3, 0, 0}), filled<u32>(1, 0), filled<i32>(5, 99)});
  expect<u32>(outcomes, 1, {3});
  expect<i32>(outcomes, 2, {1, 1, 1, 1, 1});
}

TEST_CASE("two buffers of different types are added in one of them") {
  const auto k = kernel("many_types", [](In<f32> a, In<u32> b, Out<f32> out) {
    auto i = global_id().x;
    If (i < out.size()) { out[i] = a[i] + cast<f32>(b[i]); }
  });
  check_run<f32>(*k, {{1}, {7}}, {buffer<f32>({0, 1}), buffer<u32>({5, 6}), filled<f32>(2, -1)}, 2, {5, 7});
}

TEST_CASE("eight elements that a host loop unrolls, and a list that a host loop sums") {
  const auto k = kernel("unrolled", [](In<u32> x, Out<u32> y, Out<u32> listed) {
    for (u32 i = 0; i < 8; ++i) y[i] = x[i] + 3;
    const std::vector<Val<u32>> list{x[2], x[4]};
    listed[0] = list[0] + list[1];
    listed[1] = list[1];
  });
  const auto outcomes =
      run_everywhere(*k, {{1}, {1}}, {buffer(made_of<u32>(8, [](auto i) { return i; })), filled<u32>(8, 99), filled<u32>(2, 99)});
  expect<u32>(outcomes, 1, {3, 4, 5, 6, 7, 8, 9, 10});
  expect<u32>(outcomes, 2, {6, 4});
}

TEST_CASE("a tag of the config chooses between two kernels") {
  const auto tagged = [](Tag tag) {
    return kernel("tagged", [](const TagCfg& cfg, Out<u32> out) { out[0] = cfg.tag == Tag::Zero ? 0 : 1; }, TagCfg{tag});
  };
  check_run<u32>(*tagged(Tag::Zero), {{1}, {1}}, {filled<u32>(1, 99)}, 0, {0});
  check_run<u32>(*tagged(Tag::Other), {{1}, {1}}, {filled<u32>(1, 99)}, 0, {1});
}

TEST_CASE("an enum is a tag and the number with it: taken apart by the kernel, by the host, in an array, and as an option") {
  const auto taken = kernel("variant_of_kernel", [](In<u32> tag, In<u32> bits, Out<i32> which, Out<f32> number) {
    auto i = thread_id().x;
    If (i < tag.size()) {
      Var<i32> w = 0;
      Var<f32> n = 0;
      Switch(tag[i]) {
        Case(0) {  // a float
          w = 10;
          n = bit_cast<f32>(bits[i]);
        }
        Case(1) {  // an integer
          w = 20;
          n = cast<f32>(bit_cast<i32>(bits[i]));
        }
        Default { w = 5; }
      }
      which[i] = w;
      number[i] = n;
    }
  });
  const auto outcomes =
      run_everywhere(*taken, {{1}, {7}},
                     {buffer<u32>({0, 1, 7, 1}), buffer<u32>({0x41200000, 20, 3, 0xFFFFFFF6}), filled<i32>(4, 99), filled<f32>(4, 99)});
  expect<i32>(outcomes, 2, {10, 20, 5, 20});
  expect<f32>(outcomes, 3, {10, 20, 0, -10});
  const auto known = [](Kind kind, i32 with) {
    return kernel(
        "variant_of_host",
        [](const VariantCfg& cfg, Out<i32> out) {
          if (cfg.kind == Kind::First) out[0] = cfg.with;
          else out[0] = 2 * cfg.with;
        },
        VariantCfg{kind, with});
  };
  check_run<i32>(*known(Kind::First, 5), {{1}, {1}}, {filled<i32>(1, 99)}, 0, {5});
  check_run<i32>(*known(Kind::Second, 5), {{1}, {1}}, {filled<i32>(1, 99)}, 0, {10});
  const auto option = kernel("option", [](In<bool> some, In<f32> value, Out<f32> out) {
    auto i = thread_id().x;
    If (i < some.size()) { out[i] = select(some[i], value[i], 999); }
  });
  check_run<f32>(*option, {{1}, {7}}, {buffer<bool>({true, false}), buffer<f32>({3.5f, 3.5f}), filled<f32>(2, 99)}, 2, {3.5f, 999});
}

TEST_CASE("sizes of buffers of rank 4, 3 and 2, and their strides in any order") {
  const auto sizes = kernel("sizes", [](In<f32, 4> a, In<f32, 3> b, In<f32, 2> c, Out<u64> out) {
    out[0] = a.size64();
    out[1] = b.size64();
    out[2] = c.size64();
  });
  check_run<u64>(*sizes, {{1}, {1}},
                 {buffer(std::vector<f32>(120), {2, 3, 4, 5}), buffer(std::vector<f32>(504), {9, 8, 7}),
                  buffer(std::vector<f32>(110), {10, 11}), filled<u64>(3, 99)},
                 3, {120, 504, 110});
  std::string text =
      "kir 1\nkernel \"strides\" {\n  buffer a : f32[*, *, *, *] in strided\n  buffer b : f32[*, *, *] in strided\n"
      "  buffer c : f32[*, *] in strided\n  buffer out : u64[*] out\n  body {\n";
  int slot = 0;
  for (const auto& [name, rank] : {std::pair{"a", 4}, {"b", 3}, {"c", 2}}) {
    for (int d = 0; d < rank; ++d, ++slot) {
      const std::string n = std::to_string(slot);
      text += "    %s" + n + " = stride " + name + "." + std::to_string(d) + " : u64\n    %i" + n + " = const " + n +
              " : u32\n    store out[%i" + n + "], %s" + n + "\n";
    }
  }
  Arg a = buffer(std::vector<f32>(40), {2, 2, 2, 2}), b = buffer(std::vector<f32>(40), {2, 2, 2}), c = buffer(std::vector<f32>(40), {2, 2});
  a.strides = {1, 2, 3, 4}, b.strides = {4, 5, 6}, c.strides = {3, 2};
  check_run<u64>(*from_text(text + "  }\n}\n"), {{1}, {1}}, {a, b, c, filled<u64>(9, 99)}, 3, {1, 2, 3, 4, 4, 5, 6, 3, 2});
}

TEST_CASE("a total that all threads read after a barrier is the length of each one's own loop") {
  // The sum of i % 3 over 1024 threads is 1023; 0 + 1 + ... + 1022 is 522753.
  const auto k = kernel("total_as_length", [](Out<u32> total, Out<u32> out) {
    Shared<u32> sum(1);
    auto t = thread_id().x;
    If (t == 0) { sum[0] = 0; }
    barrier();
    sum.atomic_add(0, t % 3);
    barrier();
    Var<u32> mine = 0;
    for (auto j : range(sum[0])) { mine += j; }
    If (t % 256 == 255) { out[t / 256] = mine; }
    If (t == 0) { total[0] = sum[0]; }
  });
  const auto outcomes = run_everywhere(*k, {{1}, {1024}}, {filled<u32>(1, 99), filled<u32>(4, 99)});
  expect<u32>(outcomes, 0, {1023});
  expect<u32>(outcomes, 1, {522753, 522753, 522753, 522753});
}

TEST_CASE("complex sums, and z * z + c of one number") {
  const auto sum = kernel("complex_sum", [](In<f32, 2> a, In<f32, 2> b, Out<f32, 2> out) {
    auto i = global_id().x;
    If (i < out.extent(0)) {
      out[i, 0] = a[i, 0] + b[i, 0];
      out[i, 1] = a[i, 1] + b[i, 1];
    }
  });
  check_run<f32>(*sum, {{1}, {7}},
                 {buffer<f32>({1, 2, 3, 4}, {2, 2}), buffer<f32>({5, 6, 7, 8}, {2, 2}), buffer(std::vector<f32>(4, -1), {2, 2})}, 2,
                 {6, 8, 10, 12});
  const auto square = kernel("complex_square", [](In<f32> z, In<f32> c, Out<f32> out) {
    out[0] = z[0] * z[0] - z[1] * z[1] + c[0];
    out[1] = 2.0f * z[0] * z[1] + c[1];
  });
  check_run<f32>(*square, {{1}, {1}}, {buffer<f32>({0.5f, 0}), buffer<f32>({0.5f, 0}), filled<f32>(2, -1)}, 2, {0.75f, 0});
}

TEST_CASE("a helper that gives two values, and one that captures a factor") {
  const auto k = kernel("helpers", [](In<i32> x, Out<i32> both, Out<i32> scaled) {
    auto i = global_id().x;
    const auto times = [factor = 3](const Val<i32>& v) { return v * factor; };
    If (i < x.size()) {
      const auto [above, below] = around<i32>(x[i]);
      both[i] = above + below;
      scaled[i] = times(x[i]);
    }
  });
  const auto outcomes =
      run_everywhere(*k, {{1}, {33}}, {buffer(made_of<i32>(16, [](auto i) { return i; })), filled<i32>(16, -1), filled<i32>(16, -1)});
  expect(outcomes, 1, made_of<i32>(16, [](auto i) { return 2 * i; }));
  expect(outcomes, 2, made_of<i32>(16, [](auto i) { return 3 * i; }));
}

TEST_CASE("copies: an image of constant size, an overlapping shift, and a mask over bits") {
  const auto image = kernel("copy_image", [](In<f32, 2> in, Out<f32, 2> out) {
    auto [c, r, z] = global_id();
    (void)z;
    If (r < 16 && c < 8 && r < in.extent(0) && c < in.extent(1)) { out[r, c] = in[r, c]; }
  });
  const auto pixels = made_of<f32>(128, [](auto i) { return static_cast<f32>(i) * 0.25f; });
  check_run(*image, cover({8, 16}, {33, 2}), {buffer(pixels, {16, 8}), buffer(std::vector<f32>(128, -1), {16, 8})}, 1, pixels);
  // Every thread reads before any writes: a shift by one within the same memory.
  const auto shift = kernel("shift", [](InOut<u32> x, In<u32> mask) {
    auto t = thread_id().x;
    Var<u32> v = 0;
    If (t + 1 < x.size()) { v = x[t]; }
    barrier();
    If (t + 1 < x.size()) { x[t + 1] = v ^ mask[0]; }
  });
  std::vector<u32> wanted(96);
  for (u32 i = 1; i < 96; ++i) wanted[i] = (i - 1) ^ 0x5a5a5a5au;
  check_run(*shift, {{1}, {96}}, {buffer(made_of<u32>(96, [](auto i) { return i; })), buffer<u32>({0x5a5a5a5au})}, 0, wanted);
}

TEST_CASE("loops of twelve, of three by six, of four by thirteen, and the sum below ten") {
  const auto k = kernel("trips", [](Out<u32> out) {
    auto t = thread_id().x;
    Var<u32> full = t, nested = t, many = t, part = 0;
    for (auto i : range(12)) {
      (void)i;
      full += 1;
    }
    for (auto i : range(3)) {
      for (auto j : range(6)) {
        (void)i, (void)j;
        nested += 1;
      }
    }
    for (u32 i = 0; i < 4; ++i) {
      for (auto j : range(13)) {
        (void)j;
        many += 1;
      }
    }
    for (auto i : range(10)) { part += i; }
    out[4 * t] = full;
    out[4 * t + 1] = nested;
    out[4 * t + 2] = many;
    out[4 * t + 3] = part;
  });
  std::vector<u32> wanted;
  for (u32 t = 0; t < 32; ++t) {
    for (u32 v : {t + 12, t + 18, t + 52, 45u}) wanted.push_back(v);
  }
  check_run(*k, {{1}, {32}}, {filled<u32>(128, 99)}, 0, wanted);
}

TEST_CASE("the least and the most of no elements is what was there") {
  check_fold_of_nothing<i32>(7, -7);
  check_fold_of_nothing<f32>(std::numeric_limits<f32>::infinity(), -std::numeric_limits<f32>::infinity());
}

TEST_CASE("threads write through a table of places, and what no place names stays") {
  const auto k = kernel("permute", [](In<u32> at, InOut<u32> out) {
    auto t = thread_id().x;
    out[at[t]] = t;
  });
  check_run<u32>(*k, {{1}, {2}}, {buffer<u32>({1, 2}), filled<u32>(4, 9)}, 1, {9, 0, 1, 9});
  check_run<u32>(*k, {{1}, {2}}, {buffer<u32>({3, 0}), filled<u32>(4, 9)}, 1, {1, 9, 9, 0});
}

TEST_CASE("the coordinates of an offset in a view of any strides") {
  // Of element i in dimension d: i / stride(d) % extent(d).
  std::string text =
      "kir 1\nkernel \"coordinates\" {\n  buffer a : f32[*, *, *] in strided\n  buffer out : u64[*, *] out\n  body {\n"
      "    %i = thread_id.x : u32\n    %wide = cast %i : u64\n";
  for (const std::string d : {"0", "1", "2"}) {
    text += "    %d" + d + " = const " + d + " : u32\n    %s" + d + " = stride a." + d + " : u64\n    %e" + d + " = extent a." + d +
            " : u64\n    %q" + d + " = div %wide, %s" + d + "\n    %c" + d + " = rem %q" + d + ", %e" + d + "\n    store out[%d" + d +
            ", %i], %c" + d + "\n";
  }
  Arg a = buffer(std::vector<f32>(12), {2, 2, 3});
  a.strides = {2, 1, 4};
  std::vector<u64> wanted;
  for (u64 i = 0; i < 12; ++i) wanted.push_back(i / 2 % 2);
  for (u64 i = 0; i < 12; ++i) wanted.push_back(i % 2);
  for (u64 i = 0; i < 12; ++i) wanted.push_back(i / 4);
  check_run(*from_text(text + "  }\n}\n"), {{1}, {12}}, {a, buffer(std::vector<u64>(36, 99), {3, 12})}, 1, wanted);
}

TEST_CASE("a permuted view is copied into dense memory, also of eight numbers of four bits in a word") {
  const auto k = kernel("contiguous", [](In<u32, 3, Strided> in, Out<u32, 3> out) {
    auto [c, r, p] = global_id();
    If (p < out.extent(0) && r < out.extent(1) && c < out.extent(2)) { out[p, r, c] = in[p, r, c]; }
  });
  // Rows of `columns` numbers of four bits; out has the columns as rows.
  const auto packed = kernel("contiguous_packed", [](In<u32, 2> in, Out<u32, 2> out) {
    auto [w, r, z] = global_id();
    (void)z;
    If (r < out.extent(0) && w < out.extent(1)) {
      Var<u32> word = 0;
      for (u32 j = 0; j < 8; ++j) word |= (in[w * 8 + j, r / 8] >> r % 8 * 4 & 0xf) << j * 4;
      out[r, w] = word;
    }
  });
  struct Shape {
    u32 planes, rows, columns;
    Ways ways;
  };
  const Ways fewer{.checked = false, .interpreter = false, .ptx = Ptx::Sm90, .levels = false};  // a million elements
  for (const auto& [planes, rows, columns, ways] :
       {Shape{1, 8, 16, {}}, {1, 8, 8, {}}, {1, 4096, 256, fewer}, {1, 8192, 32, fewer}, {3, 5, 7, {}}}) {
    CAPTURE(rows);
    CAPTURE(columns);
    const std::size_t n = std::size_t{planes} * rows * columns;
    const auto x = made_of<u32>(n, [](auto i) { return i * 2654435761u; });
    // The last two dimensions are exchanged.
    Arg in = buffer(x, {planes, columns, rows});
    in.strides = {u64{rows} * columns, 1, columns};
    check_run(*k, {{(rows + 31) / 32, columns, planes}, {32}}, {in, buffer(std::vector<u32>(n, 9), {planes, columns, rows})}, 1,
              made_of<u32>(n, [&](auto i) { return x[i / (rows * columns) * rows * columns + i % rows * columns + i / rows % columns]; }),
              ways);
    if (rows % 8 != 0 || columns % 8 != 0) continue;
    const auto nibble = [](u32 r, u32 c) { return (r * 7 + c * 3 + r * c) & 0xf; };
    std::vector<u32> words(rows * columns / 8), wanted(words.size());
    for (u32 r = 0; r < rows; ++r) {
      for (u32 c = 0; c < columns; ++c) {
        words[r * (columns / 8) + c / 8] |= nibble(r, c) << c % 8 * 4;
        wanted[c * (rows / 8) + r / 8] |= nibble(r, c) << r % 8 * 4;
      }
    }
    check_run(*packed, {{(rows / 8 + 31) / 32, columns}, {32}},
              {buffer(words, {rows, columns / 8}), buffer(std::vector<u32>(words.size(), 9), {columns, rows / 8})}, 1, wanted, ways);
  }
}

TEST_CASE("one bad index among 1024 is found, and the clean ones are right") {
  const auto k = made(record(
      "gather",
      [](In<u32> at, In<f32> x, Out<f32> out) {
        auto i = global_id().x;
        If (i < out.size()) { out[i] = x[at[i]]; }
      },
      "(at, x, out)"));
  auto at = made_of<u32>(1024, [](auto i) { return 1023 - i; });
  const auto x = made_of<f32>(1024, [](auto i) { return i; });
  check_run(*k, {{8}, {129}}, {buffer(at), buffer(x), filled<f32>(1024, -1)}, 2, made_of<f32>(1024, [](auto i) { return 1023 - i; }));
  at[700] = 1024;
  for (const Outcome& o : run_everywhere(*k, {{8}, {129}}, {buffer(at), buffer(x), filled<f32>(1024, -1)}, {.unchecked = false})) {
    CAPTURE(o.where);
    REQUIRE(o.fault);
    CHECK(o.fault->memory == "x");
    CHECK(o.fault->index == 1024);
    CHECK(o.fault->extent == 1024);
    CHECK(o.fault->block[0] * 129 + o.fault->thread[0] == 700);
  }
}

TEST_CASE("scales of powers of two are made of the bits of floats, rounded up") {
  const auto k = kernel("power_scale", [](In<f32> in, Out<u8> out) {
    auto i = thread_id().x;
    out[i] = cast<u8>((bit_cast<u32>(in[i]) + 0x7fffff) >> 23);
  });
  check_run<u8>(*k, {{1}, {4}}, {buffer<f32>({2, 1024, 57312, 0x1p127f}), filled<u8>(4, 99)}, 1, {0x80, 0x89, 0x8F, 0xFE});
}

TEST_CASE("two bytes are an f16 and back, put together by shifts") {
  const auto k = kernel("bytes_as_f16", [](In<i8> in, Out<f16> number, Out<i8> back) {
    auto i = thread_id().x;
    const auto byte = [&](const Val<u32>& at) { return cast<u16>(bit_cast<u8>(in[at])); };
    Val<f16> x = bit_cast<f16>(byte(2 * i) | byte(2 * i + 1) << 8);
    number[i] = x;
    Val<u16> bits = bit_cast<u16>(x);
    back[2 * i] = bit_cast<i8>(cast<u8>(bits));
    back[2 * i + 1] = bit_cast<i8>(cast<u8>(bits >> 8));
  });
  const std::vector<i8> bytes{0, 60, 64, -56};
  const auto outcomes = run_everywhere(*k, {{1}, {2}}, {buffer(bytes), filled<f16>(2, 99), filled<i8>(4, 99)});
  expect<f16>(outcomes, 1, {f16(1), f16(-8.5)});
  expect(outcomes, 2, bytes);
}

TEST_CASE("words of eight signed numbers of 4 bits, times a scale") {
  const auto k = kernel("four_bits", [](In<u32> words, Val<f32> scale, Out<f32> out) {
    auto i = thread_id().x;
    Val<i32> at_top = bit_cast<i32>(words[i / 8] << (28 - i % 8 * 4));
    out[i] = cast<f32>(at_top >> 28) * scale;
  });
  std::vector<f32> wanted;
  for (i32 q = -8; q < 8; ++q) wanted.push_back(static_cast<f32>(q) * 3.4f);
  check_run(*k, {{1}, {16}}, {buffer<u32>({0xFEDCBA98, 0x76543210}), scalar(3.4f), filled<f32>(16, 99)}, 2, wanted);
}
