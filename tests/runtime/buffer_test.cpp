#include "kiln/runtime/buffer.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cpu/cpu_device.h"
#include "src/server.h"
#include "support/each_client.h"

using namespace kiln;

namespace {

template <class F>
std::string rule_of(F&& f) {
  try {
    f();
  } catch (const Exception& e) {
    CHECK(std::string(e.what()) == e.error().text());
    return e.error().rule().empty() ? std::string(name(e.error().code())) : e.error().rule();
  }
  return "none";
}

// Not one of those that tests run on.
Client another_device() {
  static const Client client(rt::make_server(rt::make_cpu_device({}).value()));
  return client;
}

}  // namespace

TEST_CASE_TEMPLATE("a buffer gives back the bits it was given", T, i8, u8, i16, u16, i32, u32, i64, u64, f32, f64) {
  const std::vector<T> host{T(0), T(1), T(100), std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest()};
  Buffer<T> b(host);
  CHECK(b.size() == 5);
  CHECK(b.extent(0) == 5);
  CHECK(b.read().value() == host);
  CHECK(b.arg().type == ir_type<T>);
}

TEST_CASE("a buffer of bool holds a byte an element") {
  const std::vector<bool> host{true, false, false, true, true};
  Buffer<bool> b(host);
  CHECK(b.binding().range == ByteRange{0, 5});
  CHECK(b.read().value() == host);
  REQUIRE(b.write({false, true, false, true, false}).has_value());
  CHECK(b.slice(1, 2).read().value() == std::vector<bool>{true, false});
}

TEST_CASE("NaN payloads and negative zero survive") {
  Buffer<f32> b({-0.0f, std::nanf("0x12345")});
  const auto back = b.read().value();
  CHECK(std::signbit(back[0]));
  CHECK(std::bit_cast<std::uint32_t>(back[1]) == std::bit_cast<std::uint32_t>(std::nanf("0x12345")));
}

TEST_CASE("views and slices are the same memory, and keep it alive") {
  const Client client = Client::default_client();
  Buffer<u32, 1> slice = [&] {
    Buffer<u32> b({0, 1, 2, 3, 4, 5});
    Buffer<u32, 2> v = b.view(2, 3);
    CHECK(v.extents() == std::array<std::uint64_t, 2>{2, 3});
    CHECK(v.read().value() == std::vector<u32>{0, 1, 2, 3, 4, 5});
    CHECK(v.view(6).slice(1, 2).read().value() == std::vector<u32>{1, 2});
    Buffer<u32> copy = b;
    REQUIRE(copy.slice(4, 1).write({40}).has_value());
    CHECK(b.read().value() == std::vector<u32>{0, 1, 2, 3, 40, 5});
    return b.slice(3, 3);
  }();
  CHECK(slice.slice(1, 2).read().value() == std::vector<u32>{40, 5});
  CHECK(slice.slice(3, 0).read().value().empty());
  CHECK(rule_of([&] { slice.slice(2, 2); }) == "SliceRange");
  CHECK(rule_of([&] { slice.slice(~std::uint64_t{0}, 2); }) == "SliceRange");
  CHECK(rule_of([&] { slice.view(2, 2); }) == "ViewSize");
  CHECK(rule_of([&] { slice.view(-3, -1); }) == "ExtentOutOfRange");
}

TEST_CASE("zeroed buffers read as zero, of any rank; extents take any host integer") {
  const Client client = test::each_client();
  const auto b = Buffer<f64, 3>::zeroed(client, 2, 3u, std::int64_t{4}).value();
  CHECK(b.size() == 24);
  CHECK(b.read().value() == std::vector<f64>(24, 0.0));
  CHECK(Buffer<i32, 2>::uninitialised(client, 5, 7).value().size() == 35);
}

TEST_CASE("empty buffers have no memory; reading and writing them does nothing") {
  const Client client = test::each_client();
  Buffer<f32> none(std::vector<f32>{});
  CHECK(none.size() == 0);
  CHECK(none.binding().memory == nullptr);
  CHECK(none.read().value().empty());
  CHECK(none.write({}).has_value());
  const auto flat = Buffer<f32, 2>::zeroed(client, 0, 7).value();
  CHECK(flat.size() == 0);
  CHECK(flat.extent(1) == 7);
  CHECK(flat.read().value().empty());
}

TEST_CASE("what cannot be a buffer is an error with the numbers, and the next one works") {
  const Client client = test::each_client();
  const auto code = [](const auto& result) { return result.has_value() ? std::string("none") : std::string(name(result.error().code())); };
  CHECK(code(Buffer<f32>::zeroed(client, -1)) == "Validation");
  CHECK(code(Buffer<f32, 2>::zeroed(client, std::uint64_t{1} << 32, std::uint64_t{1} << 32)) == "BufferTooBig");
  CHECK(code(Buffer<f64>::zeroed(client, std::uint64_t{1} << 61)) == "BufferTooBig");  // the bytes do not fit 64 bits
  const auto huge = Buffer<u8>::uninitialised(client, std::uint64_t{1} << 60);
  REQUIRE_FALSE(huge.has_value());
  CHECK(huge.error().code() == ErrorCode::BufferTooBig);
  CHECK(huge.error().data().requested == std::uint64_t{1} << 60);
  CHECK(huge.error().data().limit.has_value());
  CHECK_FALSE(huge.error().may_succeed_after_reclaim());
  const auto wrong = Buffer<u32, 2>::from_host(client, {1, 2, 3}, {2, 2});
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().rule() == "BufferSize");
  CHECK(wrong.error().data().requested == 3);
  CHECK(wrong.error().data().limit == 4);
  CHECK(wrong.error().numbers() == "given: 3, expected: 4");
  Buffer<u32> b({1, 2, 3});
  const auto short_write = b.write({1, 2});
  REQUIRE_FALSE(short_write.has_value());
  CHECK(short_write.error().rule() == "BufferSize");
  CHECK(rule_of([] { Buffer<u32, 2>(std::vector<u32>{1, 2, 3}, {2, 2}); }) == "BufferSize");
}

TEST_CASE("untyped copies and fills refuse ranges that do not fit, do not match or overlap") {
  const Client client = test::each_client();
  const Stream stream = client.stream();
  const Memory a = rt::allocate(client, 100).value(), b = rt::allocate(client, 100).value();
  const auto rule = [](const Result<void>& r) { return r.has_value() ? std::string("none") : r.error().rule(); };
  CHECK(rule(rt::copy(stream, {a, {0, 100}}, {b, {0, 100}})) == "none");
  CHECK(rule(rt::copy(stream, {a, {0, 50}}, {a, {50, 100}})) == "none");
  CHECK(rule(rt::copy(stream, {a, {0, 51}}, {a, {49, 100}})) == "CopyOverlap");
  CHECK(rule(rt::copy(stream, {a, {0, 51}}, {b, {0, 50}})) == "CopySize");
  CHECK(rule(rt::copy(stream, {a, {1, 101}}, {b, {0, 100}})) == "BindingRange");
  CHECK(rule(rt::fill_zero(stream, {a, {100, 101}})) == "BindingRange");
  CHECK(rule(rt::fill_zero(stream, {nullptr, {0, 1}})) == "BindingRange");
  CHECK(rule(rt::fill_zero(stream, {nullptr, {}})) == "none");
  CHECK(rule(rt::fill_zero(stream, {a, {70, 70}})) == "none");
}

TEST_CASE("a write, a fill or a copy that is refused leaves its target unreadable until it is written, and loses nothing else") {
  const Client client = test::each_client();
  const Stream stream = client.stream();
  const std::vector<u32> numbers{1, 2, 3, 4}, others{5, 6, 7, 8};
  auto a = Buffer<u32>::from_host(client, numbers).value(), b = Buffer<u32>::from_host(client, others).value();
  const auto root = [](const Buffer<u32>& buffer) {
    const auto read = buffer.read();
    return read.has_value() ? std::string("none") : read.error().causes().at(0).causes().at(0).rule();
  };
  const auto repair = [&] { CHECK(a.write(numbers).has_value()); };

  CHECK(a.write({1, 2, 3}).error().rule() == "BufferSize");
  CHECK(root(a) == "BufferSize");
  repair();
  CHECK(a.read().value() == numbers);

  CHECK(a.slice(1, 2).write({9}).error().rule() == "BufferSize");  // its own bytes only
  CHECK(a.slice(0, 1).read().value() == std::vector<u32>{1});
  CHECK(root(a) == "BufferSize");
  repair();

  CHECK(rt::copy(stream, a.binding(), {b.binding().memory, {0, 12}}).error().rule() == "CopySize");
  CHECK(root(a) == "CopySize");
  CHECK(b.read().value() == others);
  CHECK(rt::copy(stream, a.binding(), b.binding()).has_value());
  CHECK(a.read().value() == others);

  CHECK(rt::fill_zero(stream, {a.binding().memory, {8, 20}}).error().rule() == "BindingRange");
  CHECK(a.slice(0, 2).read().value() == std::vector<u32>{5, 6});
  CHECK(root(a) == "BindingRange");
  repair();

  // Where the target is the source too, nothing is lost.
  CHECK(rt::copy(stream, {a.binding().memory, {0, 12}}, {a.binding().memory, {4, 16}}).error().rule() == "CopyOverlap");
  CHECK(a.read().value() == numbers);

  // A target on another device is claimed there.
  const Client other = another_device();
  auto c = Buffer<u32>::from_host(other, numbers).value();
  CHECK(rt::copy(stream, c.binding(), a.binding()).error().rule() == "ForeignHandle");
  CHECK(root(c) == "ForeignHandle");
  CHECK(rt::copy(other.stream(), c.binding(), a.binding()).error().rule() == "ForeignHandle");
  CHECK(a.read().value() == numbers);
}

TEST_CASE("a buffer over memory that is there shares it, with elements of any type that fit, and keeps it alive") {
  const Client client = test::each_client();
  std::optional<Buffer<u32>> words(Buffer<u32>::from_host(client, {0x03020100, 0x07060504, 0x0b0a0908}).value());
  auto bytes = Buffer<u8>::over(client, words->binding().memory, {8}, 2).value();
  CHECK(bytes.read().value() == std::vector<u8>{2, 3, 4, 5, 6, 7, 8, 9});
  auto square = Buffer<u16, 2>::over(client, words->binding().memory, {2, 3}).value();
  CHECK(square.extent(1) == 3);
  REQUIRE(square.write({1, 2, 3, 4, 5, 6}).has_value());
  CHECK(words->read().value() == std::vector<u32>{0x00020001, 0x00040003, 0x00060005});
  const Memory memory = words->binding().memory;
  words.reset();
  CHECK(bytes.slice(0, 2).read().value() == std::vector<u8>{2, 0});

  const auto rule = [](const auto& made) { return made.has_value() ? std::string("none") : made.error().rule(); };
  CHECK(rule(Buffer<u32>::over(client, memory, {3})) == "none");
  CHECK(rule(Buffer<u32>::over(client, memory, {4})) == "BindingRange");
  CHECK(rule(Buffer<u32>::over(client, memory, {3}, 4)) == "BindingRange");
  CHECK(rule(Buffer<u32>::over(client, memory, {2}, 4)) == "none");
  CHECK(rule(Buffer<u32>::over(client, memory, {2}, 2)) == "ElementAlignment");
  CHECK(rule(Buffer<u8>::over(client, memory, {1}, 11)) == "none");
  CHECK(rule(Buffer<u8>::over(client, memory, {1}, ~std::uint64_t{0})) == "BufferTooBig");
  CHECK(rule(Buffer<u64, 2>::over(client, memory, {std::uint64_t{1} << 40, std::uint64_t{1} << 40})) == "BufferTooBig");
  CHECK(rule(Buffer<u8>::over(client, nullptr, {1})) == "BindingRange");
  CHECK(Buffer<u8>::over(client, nullptr, {0}).value().size() == 0);
  CHECK(rule(Buffer<u8>::over(another_device(), memory, {1})) == "ForeignHandle");
}

TEST_CASE("a range that ends before it begins is refused wherever bytes are named") {
  const Client client = Client::open("cpu").value();
  const Stream stream = client.stream();
  const Memory a = rt::allocate(client, 100).value();
  std::byte bytes[8] = {};
  const Binding bad{a, {60, 20}};
  const auto rule = [](const Result<void>& r) { return r.has_value() ? std::string("none") : r.error().rule(); };
  CHECK(rule(rt::read(stream, bad, bytes)) == "BindingRange");
  CHECK(rule(rt::read(stream, {nullptr, {60, 20}}, bytes)) == "BindingRange");
  CHECK(rule(rt::write(stream, bad, bytes)) == "BindingRange");
  CHECK(rule(rt::fill_zero(stream, bad)) == "BindingRange");
  CHECK(rule(rt::copy(stream, bad, bad)) == "BindingRange");
  CHECK(rule(rt::check(client, {&bad, 1})) == "BindingRange");
  CHECK(rule(rt::sync(client, {&bad, 1})) == "BindingRange");
  CHECK(rt::read(stream, bad, bytes).error().data().message == "what is read begins at byte 60 and ends before it, at byte 20");
}

TEST_CASE("large buffers are moved whole, by several threads at a time") {
  const Client client = test::each_client();
  const Stream stream = client.stream();
  std::vector<u32> host((5u << 20) / 4 + 3);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<u32>(i * 2654435761u);
  auto from = Buffer<u32>::from_host(client, host).value();
  auto to = Buffer<u32>::uninitialised(client, host.size()).value();
  REQUIRE(rt::copy(stream, to.binding(), from.binding()).has_value());
  CHECK(to.read(stream).value() == host);
  REQUIRE(rt::fill_zero(stream, from.binding()).has_value());
  CHECK(from.read().value() == std::vector<u32>(host.size(), 0));
}

TEST_CASE("a buffer, a stream and a client that were moved from can still be used") {
  Client client = test::each_client();
  Stream stream = client.stream();
  Buffer<u32> a = Buffer<u32>::from_host(client, {1, 2, 3}).value();
  Buffer<u32> b = std::move(a);
  Stream s = std::move(stream);
  Client c = std::move(client);
  CHECK(b.read(s).value() == std::vector<u32>{1, 2, 3});
  CHECK(a.read().value() == std::vector<u32>{1, 2, 3});
  CHECK(a.slice(1, 1).read(stream).value() == std::vector<u32>{2});
  CHECK(stream.sync().has_value());
  CHECK(client.sync().has_value());
  CHECK(c == client);
}
