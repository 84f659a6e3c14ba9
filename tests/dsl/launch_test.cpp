// The typed launch: what it takes, what it refuses, where failures stay.
#include "recording.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "cpu/cpu_device.h"
#include "kiln/runtime/compiler.h"
#include "src/server.h"
#include "support/allocations.h"
#include "support/comma_locale.h"
#include "support/each_client.h"

using namespace kiln;

namespace {

KILN_KERNEL(add_to, (In<f32> x, InOut<f32> y, Val<f32> a, Val<u32> n)) {
  auto i = global_id().x;
  If (i < n && i < x.size() && i < y.size()) { y[i] += a * x[i]; }
}
KILN_KERNEL(transposing, (In<i32, 2, Strided> x, Out<i32, 2> y)) {
  auto [c, r, z] = global_id();
  If (r < y.extent(0) && c < y.extent(1) && r < x.extent(0) && c < x.extent(1)) { y[r, c] = x[r, c]; }
}
KILN_KERNEL(broken, (In<f32> x, Out<f32> y)) { y[-1] = x[0]; }
KILN_KERNEL(bool_scalar, (Out<u32> y, Val<bool> flag, Val<i64> wide)) { y[0] = select(flag, cast<u32>(wide), 7); }

struct Size {
  u32 n = 4;
};
KILN_CONFIG(Size, n)
KILN_KERNEL(filled, (const Size& size, Out<u32> y), space<Size>().axis("n", &Size::n, {4, 8})) {
  for (u32 i = 0; i < size.n; ++i) y[i] = size.n;
}

Client cpu() {
  static const Client client = Client::open("cpu").value();
  return client;
}
template <class T>
Buffer<T> on(const Client& client, const std::vector<T>& host) { return Buffer<T>::from_host(client, host).value(); }
template <class T>
Buffer<T> on_cpu(const std::vector<T>& host) { return on(cpu(), host); }

}  // namespace

TEST_CASE("a launch takes host numbers that fit their parameter, whatever their type") {
  const Client client = test::each_client();
  const auto x = on<f32>(client, {1, 2, 3, 4});
  auto y = on<f32>(client, {1, 1, 1, 1});
  const Stream stream = client.stream();
  CHECK(add_to(stream, for_num_elems(4), x, y, 2.0f, 4u).has_value());
  CHECK(stream.sync().has_value());
  CHECK(add_to({{1}, {32}}, x, y, 0.5, std::size_t{3}).has_value());
  CHECK(add_to({{1ull, 1}, {32l, 1, 1}}, x, y, 1, 2ll).has_value());
  CHECK(y.read().value() == std::vector<f32>{4.5f, 8, 8.5f, 9});
}

KILN_KERNEL(two_outputs, (InOut<u32> kept, Out<u32> made, Val<u32> n)) {
  kept[0] += n;
  made[0] = n;
}

TEST_CASE("a launch refused for a number that does not fit leaves an InOut as it was and an Out without data") {
  auto kept = on_cpu<u32>({3}), made = on_cpu<u32>({4});
  REQUIRE(!two_outputs({{1}, {1}}, kept, made, -1).has_value());
  CHECK(kept.read().value() == std::vector<u32>{3});
  auto read = made.read();
  REQUIRE(!read.has_value());
  HAS(read.error().text(), "argument 3 ('n') is -1, which does not fit Val<u32>: it takes 0 to 4294967295");
  CHECK(two_outputs({{1}, {1}}, kept, made, 1).has_value());
  CHECK(kept.read().value() == std::vector<u32>{4});
  CHECK(made.read().value() == std::vector<u32>{1});
}

TEST_CASE("a launch refused for memory of another device leaves its Out without data, on the device that has it") {
  const Client other(rt::make_server(std::move(*rt::make_cpu_device({}))));
  auto here = on_cpu<u32>({3});
  auto made = Buffer<u32>::from_host(other, {4}).value();
  // The first buffer says which device runs the launch: here the Out is the foreign one, then the InOut.
  const auto launched = two_outputs({{1}, {1}}, here, made, 1);
  REQUIRE(!launched.has_value());
  CHECK(launched.error().code() == ErrorCode::ForeignHandle);
  CHECK(here.read().value() == std::vector<u32>{3});
  CHECK(!made.read().has_value());
  auto own = on_cpu<u32>({5});
  auto foreign = Buffer<u32>::from_host(other, {6}).value();
  CHECK(!two_outputs(cpu().stream(), {{1}, {1}}, foreign, own, 1).has_value());
  CHECK(foreign.read().value() == std::vector<u32>{6});
  CHECK(!own.read().has_value());
}

TEST_CASE("wherever the host's memory ends on the way of a launch, it is an error, and what was there before cannot be read as its output") {
  if (!test::allocations_counted()) return;
  REQUIRE(code_generator().compiler != nullptr);  // opened before: what LLVM's libraries do as they are loaded cannot fail
  bool done = false;
  for (std::uint64_t after = 0; !done; ++after) {
    CAPTURE(after);
    const Client client(rt::make_server(std::move(*rt::make_cpu_device({}))));  // of its own: it may lose track of what is written
    auto out = Buffer<u32>::from_host(client, {7}).value();
    const auto kernel = local_kernel("fresh", [](Out<u32> y, Val<u32> n) {
      If (global_id().x < y.size()) { y[global_id().x] = n; }
    });
    std::optional<Result<void>> result;
    std::exception_ptr thrown;
    {
      const test::NoMemory from_here(after);
      try {
        result = kernel({{1}, {32}}, out, 9);
      } catch (...) { thrown = std::current_exception(); }
    }
    REQUIRE(thrown == nullptr);
    if (!result->has_value()) CHECK(result->error().code() == ErrorCode::OutOfMemory);
    const auto read = out.read();
    done = read.has_value();  // a launch that was enqueued, but not noted, has run and cannot be read
    if (done) {
      CHECK(result->has_value());
      CHECK(*read == std::vector<u32>{9});
    }
    REQUIRE(after < 100000);
  }
}

TEST_CASE("a kernel that could not be recorded or compiled for want of host memory runs once there is some") {
  if (!test::allocations_counted()) return;
  REQUIRE(code_generator().compiler != nullptr);  // opened before: what LLVM's libraries do as they are loaded cannot fail
  bool done = false;
  for (std::uint64_t after = 1; !done; after += 7) {
    CAPTURE(after);
    const auto kernel = local_kernel("again", [](Out<u32> y, Val<u32> n) {
      If (global_id().x < y.size()) { y[global_id().x] = n; }
    });
    {
      const Client client(rt::make_server(std::move(*rt::make_cpu_device({}))));
      auto out = Buffer<u32>::from_host(client, {7}).value();
      const test::NoMemory from_here(after);
      done = kernel({{1}, {32}}, out, 9).has_value();
    }
    auto out = on_cpu<u32>({7});
    CHECK(kernel({{1}, {32}}, out, 9).has_value());
    CHECK(out.read().value() == std::vector<u32>{9});
  }
}

KILN_KERNEL(signed_scalar, (InOut<i8> y, Val<i8> v)) { y[0] = v; }

TEST_CASE("a launch refuses a number that does not fit, and says which, whose it is and what would fit") {
  const Client client = test::each_client();
  const auto x = on<f32>(client, {1, 2});
  const std::pair<double, const char*> cases[] = {
      {1e39, "argument 3 ('a') is 1e+39, which does not fit Val<f32>: it takes numbers up to 3.4028235e+38"},
      {-1e300, "argument 3 ('a') is -1e+300, which does not fit Val<f32>: it takes numbers up to 3.4028235e+38"}};
  for (const auto& [a, message] : cases) {
    auto y = on<f32>(client, {1, 1});
    auto r = add_to(for_num_elems(2), x, y, a, 2);
    REQUIRE(!r.has_value());
    CHECK(r.error().data().message == message);
  }
  auto y = on<f32>(client, {1, 1});
  const auto message = [](const auto& result) { return result.error().data().message; };
  const std::string not_u32 = ", which does not fit Val<u32>: it takes 0 to 4294967295";
  CHECK(message(add_to(for_num_elems(2), x, y, 1, -1)) == "argument 4 ('n') is -1" + not_u32);
  CHECK(message(add_to(for_num_elems(2), x, y, 1, 1ull << 32)) == "argument 4 ('n') is 4294967296" + not_u32);
  CHECK(message(add_to(for_num_elems(2), x, y, -1e300, -1)).starts_with("argument 3 ('a') is -1e+300, "));  // the first of them
  CHECK(message(add_to(for_num_elems(2), x, y, 16777217, 1)) ==
        "argument 3 ('a') is 16777217, which does not fit Val<f32>: it takes integers that are exact in it, such as all up to 2^24");
  auto narrow = on<i8>(client, {0});
  CHECK(message(signed_scalar(for_num_elems(1), narrow, 300)) == "argument 2 ('v') is 300, which does not fit Val<i8>: it takes -128 to 127");
  CHECK(message(signed_scalar(for_num_elems(1), narrow, -129)) == "argument 2 ('v') is -129, which does not fit Val<i8>: it takes -128 to 127");
  auto b = on<u32>(client, {0});
  CHECK(bool_scalar(for_num_elems(1), b, true, -3).has_value());
  CHECK(b.read().value() == std::vector<u32>{static_cast<u32>(-3)});
}

KILN_KERNEL(scale_f16, (InOut<f16> y, Val<f16> a, Val<bf16> b)) {
  auto i = global_id().x;
  If (i < y.size()) { y[i] = y[i] * a + cast<f16>(b); }
}

TEST_CASE("f16 and bf16 are elements and scalar arguments; host numbers become them, rounded once, or are refused") {
  const Client client = test::each_client();
  auto y = on<f16>(client, {f16(1), f16(0.5), f16(0x1p-24), f16(65504)});
  CHECK(scale_f16(for_num_elems(4), y, 3, 0.25f).has_value());
  CHECK(y.read().value() == std::vector<f16>{f16(3.25), f16(1.75), f16(0.25), f16::from_bits(0x7c00)});
  CHECK(scale_f16(for_num_elems(4), y, f16(2), bf16(1)).has_value());
  CHECK(y.read().value()[0] == 7.5f);
  const auto message = [](const auto& result) { return result.error().data().message; };
  CHECK(message(scale_f16(for_num_elems(4), y, 2049, 1)) ==
        "argument 2 ('a') is 2049, which does not fit Val<f16>: it takes integers that are exact in it, such as all up to 2^11");
  CHECK(message(scale_f16(for_num_elems(4), y, 65520.0, 1)) ==
        "argument 2 ('a') is 65520, which does not fit Val<f16>: it takes numbers up to 65504");
  CHECK(message(scale_f16(for_num_elems(4), y, 1, 257)) ==
        "argument 3 ('b') is 257, which does not fit Val<bf16>: it takes integers that are exact in it, such as all up to 2^8");
}

KILN_KERNEL(scale_e4m3, (InOut<e4m3> y, Val<e4m3> a, Val<e5m2> b)) {
  auto i = global_id().x;
  If (i < y.size()) { y[i] = cast<e4m3>(cast<f32>(y[i]) * cast<f32>(a) + cast<f32>(b)); }
}

TEST_CASE("e4m3 and e5m2 are elements and scalar arguments; host numbers become them, rounded once, or are refused") {
  const Client client = test::each_client();
  auto y = on<e4m3>(client, {e4m3(1), e4m3(0.5), e4m3(0x1p-9), e4m3(448)});
  CHECK(scale_e4m3(for_num_elems(4), y, 3, 0.25f).has_value());
  CHECK(y.read().value() == std::vector<e4m3>{e4m3(3.25), e4m3(1.75), e4m3(0.25), e4m3(448)});
  CHECK(scale_e4m3(for_num_elems(4), y, e4m3(2), e5m2::from_bits(0x7c)).has_value());
  CHECK(y.read().value() == std::vector<e4m3>(4, e4m3(448)));
  CHECK(scale_e4m3(for_num_elems(4), y, 17, 1).error().data().message ==
        "argument 2 ('a') is 17, which does not fit Val<e4m3>: it takes integers that are exact in it, such as all up to 2^4");
  CHECK(scale_e4m3(for_num_elems(4), y, 465.0, 1).error().data().message ==
        "argument 2 ('a') is 465, which does not fit Val<e4m3>: it takes numbers up to 448");
  CHECK(scale_e4m3(for_num_elems(4), y, 1, 61440.f).error().data().message ==
        "argument 3 ('b') is 61440, which does not fit Val<e5m2>: it takes numbers up to 57344");
}

TEST_CASE("a recording error is what every launch reports, and it stays on the outputs only") {
  const Client client = test::each_client();
  const auto x = on<f32>(client, {1, 2});
  auto y = on<f32>(client, {1, 1});
  auto z = on<f32>(client, {1, 1});
  for (Buffer<f32>* out : {&y, &z}) {
    auto r = broken(for_num_elems(2), x, *out);
    REQUIRE(!r.has_value());
    HAS(r.error().text(), "the index -1 is negative");
    HAS(r.error().text(), "launch_test.cpp:");
  }
  auto read = y.read();
  REQUIRE(!read.has_value());
  REQUIRE(read.error().causes().size() == 1);
  CHECK(read.error().causes()[0].code() == ErrorCode::Unwritten);
  HAS(read.error().text(), "the index -1 is negative");
  CHECK(x.read().has_value());
}

TEST_CASE("a refused config is reported by the launch and stays on its outputs") {
  const Client client = test::each_client();
  auto y = on<u32>(client, std::vector<u32>(8));
  CHECK(filled.with({.n = 8})({{1}, {1}}, y).has_value());
  CHECK(y.read().value() == std::vector<u32>(8, 8));
  auto r = filled.with({.n = 5})({{1}, {1}}, y);
  REQUIRE(!r.has_value());
  CHECK(r.error().data().message == "n=5 is not in the space; it has 4, 8");
  CHECK(!y.read().has_value());
  CHECK(filled({{1}, {1}}, y).has_value());  // the default config; an Out is repaired by the launch that writes it
  CHECK(y.read().value()[3] == 4);
}

TEST_CASE("modes: checked finds an access out of range, unchecked takes the author's word") {
  const Client client = test::each_client();
  auto y = on<u32>(client, std::vector<u32>(4));
  filled.with({.n = 8}).checked()({{1}, {1}}, y);
  auto read = y.read();
  REQUIRE(!read.has_value());
  HAS(read.error().text(), "launch_test.cpp:");
  auto big = on<u32>(client, std::vector<u32>(8));
  CHECK(filled.with({.n = 8}).unchecked()({{1}, {1}}, big).has_value());
  CHECK(big.read().value() == std::vector<u32>(8, 8));
}

TEST_CASE("a strided parameter takes a dense buffer and a transposed view") {
  const Client client = test::each_client();
  const auto x = Buffer<i32, 2>::from_host(client, {1, 2, 3, 4, 5, 6}, {2, 3}).value();
  auto y = Buffer<i32, 2>::zeroed(client, 2, 3).value();
  CHECK(transposing(cover({3, 2}, {8, 8}), x, y).has_value());
  CHECK(y.read().value() == std::vector<i32>{1, 2, 3, 4, 5, 6});
  auto t = Buffer<i32, 2>::zeroed(client, 3, 2).value();
  CHECK(transposing(cover({2, 3}, {8, 8}), StridedView<i32, 2>(x).transposed(), t).has_value());
  CHECK(t.read().value() == std::vector<i32>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("a launch inside a body is a recording error") {
  static auto y = on_cpu<u32>({0});
  auto kernel = record("k", [](Out<u32> a) {
    a[0] = 1;
    filled({{1}, {1}}, y);
  });
  REQUIRE(!kernel.has_value());
  HAS(kernel.error().text(), "filled' is launched inside the body of a kernel");
  HAS(kernel.error().text(), "launch_test.cpp:");
}

TEST_CASE("a launch as the first thing of a body is at the kernel's line") {
  static auto y = on_cpu<u32>({0});
  constexpr unsigned line = __LINE__ + 1;
  const auto kernel = record("k", [](Out<u32>) { filled({{1}, {1}}, y); });
  REQUIRE(!kernel.has_value());
  HAS(kernel.error().text(), "launched inside the body of a kernel");
  CHECK(kernel.error().data().place.ends_with("launch_test.cpp:" + std::to_string(line)));
}

static Buffer<u32>& any_buffer() {
  static auto y = on_cpu<u32>({0});
  return y;
}
void launch_itself();
void variant_of_itself();
KILN_KERNEL(recursive, (Out<u32> a)) {
  a[0] = 1;
  launch_itself();
}
KILN_KERNEL(curious, (Out<u32> a)) {
  a[0] = 1;
  variant_of_itself();
}
void launch_itself() { recursive({{1}, {1}}, any_buffer()); }
void variant_of_itself() { (void)curious.variant(""); }

TEST_CASE("a requirement that does not hold is told in the same numbers where the process's decimal separator is a comma") {
  const auto kernel = local_kernel("k", [](Out<u32> a, Val<f64> d) {
    require(d > 2.5);
    a[0] = 1;
  });
  const kiln::test::CommaLocale comma;
  const auto launched = kernel({{1}, {1}}, any_buffer(), 1.25);
  REQUIRE(!launched.has_value());
  HAS(launched.error().text(), "1.25 > 2.5 is false");
}

TEST_CASE("a kernel that launches itself, or asks for its own variant, is a recording error and does not wait for itself") {
  const auto launched = recursive({{1}, {1}}, any_buffer());
  REQUIRE(!launched.has_value());
  HAS(launched.error().text(), "'recursive' is launched inside the body of a kernel");
  const auto asked = curious({{1}, {1}}, any_buffer());
  REQUIRE(!asked.has_value());
  HAS(asked.error().text(), "'curious' is launched inside the body of a kernel");
}

TEST_CASE("a refused launch names the kernel and where it is defined") {
  const Client client = test::each_client();
  constexpr unsigned line = __LINE__ + 1;
  const auto kernel = local_kernel("refused", [](Out<u32> a) { a[0] = 1; }, "(a)");
  auto y = on<u32>(client, {0});
  const auto refused = kernel({{1}, {0}}, y);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().rule() == "ZeroDimension");
  CHECK(refused.error().kernel() == "refused");
  CHECK(refused.error().data().place.ends_with("launch_test.cpp:" + std::to_string(line)));
}

TEST_CASE("an access out of range in shared memory tells where the memory is declared") {
  const Client client = test::each_client();
  constexpr unsigned line = __LINE__ + 2;
  const auto kernel = local_kernel("wild", [](Out<u32> a, Val<u32> n) {
    Shared<u32> tile(4);
    tile[0] = 2;
    tile[n] = 1;
    a[0] = tile[0];
  }, "(a, n)");
  auto y = on<u32>(client, {0});
  CHECK(kernel({{1}, {1}}, y, 7).has_value());
  const auto read = y.read();
  REQUIRE(!read.has_value());
  HAS(read.error().text(), "launch_test.cpp:" + std::to_string(line) + ") at index 7");
}

TEST_CASE("threads that use a kernel first at the same time record it once") {
  static std::atomic<int> recorded{0};
  const auto kernel = local_kernel("once", [](Out<u32> a) {
    ++recorded;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    a[0] = 1;
  });
  std::vector<std::thread> threads;
  std::vector<const Variant*> seen(8);
  for (int i = 0; i < 8; ++i) threads.emplace_back([&, i] { seen[i] = &kernel.checked().variant(); });
  for (std::thread& t : threads) t.join();
  CHECK(recorded == 1);
  for (const Variant* v : seen) CHECK(v == seen[0]);
}

TEST_CASE("a launch allocates nothing after the first, of a family's variant neither") {
  if (!test::allocations_counted()) return;
  const auto x = on_cpu<f32>(std::vector<f32>(64, 1));
  auto y = on_cpu<f32>(std::vector<f32>(64, 1));
  auto z = on_cpu<u32>(std::vector<u32>(8));
  const Stream stream = cpu().stream();
  const auto launch = [&] {
    add_to(stream, for_num_elems(64), x, y, 2.0f, 64u);
    filled.with({.n = 8})(stream, {{1}, {1}}, z);
    stream.sync();
  };
  for (int i = 0; i < 20; ++i) launch();
  const std::uint64_t before = test::allocations();
  for (int i = 0; i < 10; ++i) launch();
  CHECK(test::allocations() == before);
}
