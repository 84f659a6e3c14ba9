// DLPack's tensors, in and out.
#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <optional>

#include "cpu/cpu_device.h"
#include "kiln/runtime/cuda.h"
#include "kiln/runtime/interop.h"
#include "runtime/refusals.h"
#include "src/server.h"
#include "support/each_client.h"
#include "support/sim.h"

using namespace kiln;
using test::rule_of;

// The layout that dlpack.h of version 1.0 gives on 64 bits.
static_assert(sizeof(dlpack::Device) == 8 && sizeof(dlpack::DataType) == 4 && sizeof(dlpack::Tensor) == 48);
static_assert(offsetof(dlpack::Tensor, device) == 8 && offsetof(dlpack::Tensor, rank) == 16 && offsetof(dlpack::Tensor, type) == 20);
static_assert(offsetof(dlpack::Tensor, shape) == 24 && offsetof(dlpack::Tensor, strides) == 32 &&
              offsetof(dlpack::Tensor, byte_offset) == 40);
static_assert(sizeof(dlpack::ManagedTensor) == 64 && offsetof(dlpack::ManagedTensor, context) == 48 &&
              offsetof(dlpack::ManagedTensor, deleter) == 56);
static_assert(sizeof(dlpack::ManagedTensorVersioned) == 80 && offsetof(dlpack::ManagedTensorVersioned, context) == 8 &&
              offsetof(dlpack::ManagedTensorVersioned, deleter) == 16 && offsetof(dlpack::ManagedTensorVersioned, flags) == 24 &&
              offsetof(dlpack::ManagedTensorVersioned, tensor) == 32);

namespace {

std::vector<u32> numbers(std::size_t n, u32 first = 0) {
  std::vector<u32> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

// A tensor of somebody else's, which counts its deleter's calls.
template <class Managed>
struct Foreign {
  std::vector<u32> data = numbers(24);
  std::vector<std::int64_t> shape{4, 6}, strides{6, 1};
  Managed managed{};
  int ended = 0;
  Foreign() {
    managed.tensor = {data.data(), {dlpack::kCpu, 0}, 2, {dlpack::kUInt, 32, 1}, shape.data(), strides.data(), 0};
    managed.context = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->context)->ended; };
  }
};
using Versioned = Foreign<dlpack::ManagedTensorVersioned>;
using Old = Foreign<dlpack::ManagedTensor>;

Client cpu() { return Client(rt::make_server(rt::make_cpu_device({.workers = 2, .arch = {}, .number = 0}).value())); }

}  // namespace

TEST_CASE_TEMPLATE("a tensor is used where it lies, and its deleter is called once, when nothing uses it any more", F, Versioned, Old) {
  const Client client = cpu();
  F foreign;
  {
    auto view = from_dlpack<u32, 2>(client, &foreign.managed).value();
    CHECK(view.read().value() == numbers(24));
    REQUIRE(view.box({1, 1}, {1, 2}).write({100, 101}).has_value());
    CHECK(foreign.data[7] == 100);
    CHECK(foreign.ended == 0);
    const auto copy = view.transposed();
    CHECK(copy.extent(0) == 6);
  }
  REQUIRE(client.sync().has_value());
  CHECK(foreign.ended == 1);

  F plain;  // no strides: dense; and an offset
  plain.managed.tensor.strides = nullptr;
  plain.managed.tensor.byte_offset = 8;
  plain.shape = {2, 3};
  plain.managed.tensor.shape = plain.shape.data();
  CHECK(from_dlpack<u32, 2>(client, &plain.managed).value().read().value() == numbers(6, 2));

  F turned;
  turned.shape = {6, 4};
  turned.strides = {1, 6};
  CHECK(from_dlpack<u32, 2>(client, &turned.managed).value().read().value()[1] == 6);

  F repeated;  // a dimension of stride 0
  repeated.strides = {0, 1};
  CHECK(from_dlpack<u32, 2>(client, &repeated.managed).value().read().value()[6] == 0);

  F none;
  none.shape = {0, 6};
  none.managed.tensor.data = nullptr;
  CHECK(from_dlpack<u32, 2>(client, &none.managed).value().size() == 0);
  CHECK(none.ended == 1);
  F immortal;
  immortal.managed.deleter = nullptr;
  CHECK(from_dlpack<u32, 2>(client, &immortal.managed).has_value());
}

TEST_CASE("a tensor that does not fit is refused and stays its maker's") {
  const Client client = cpu();
  struct Case {
    const char* rule;
    void (*change)(Versioned&);
  };
  const Case cases[] = {
      {"none", [](Versioned&) {}},
      {"DlpackVersion", [](Versioned& f) { f.managed.version.major = 2; }},
      {"none", [](Versioned& f) { f.managed.version.minor = 7; }},
      {"DlpackDevice", [](Versioned& f) { f.managed.tensor.device.type = dlpack::kCuda; }},
      {"none", [](Versioned& f) { f.managed.tensor.device.type = dlpack::kCudaHost; }},
      {"DlpackType", [](Versioned& f) { f.managed.tensor.type.code = dlpack::kInt; }},
      {"DlpackType", [](Versioned& f) { f.managed.tensor.type.bits = 64; }},
      {"DlpackType", [](Versioned& f) { f.managed.tensor.type.lanes = 4; }},
      {"DlpackRank", [](Versioned& f) { f.managed.tensor.rank = 1; }},
      {"DlpackShape", [](Versioned& f) { f.shape[0] = -1; }},
      {"DlpackShape", [](Versioned& f) { f.managed.tensor.data = nullptr; }},
      {"DlpackShape", [](Versioned& f) { f.managed.tensor.shape = nullptr; }},
      {"NegativeStride", [](Versioned& f) { f.strides[1] = -1; }},
      {"ElementAlignment", [](Versioned& f) { f.managed.tensor.byte_offset = 2; }},
      {"BufferTooBig", [](Versioned& f) { f.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40}; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.rule);
    Versioned foreign;
    c.change(foreign);
    {
      const auto view = from_dlpack<u32, 2>(client, &foreign.managed);
      CHECK(rule_of(view) == c.rule);
    }
    REQUIRE(client.sync().has_value());
    CHECK(foreign.ended == (std::string(c.rule) == "none" ? 1 : 0));
  }
  CHECK(rule_of(from_dlpack<u32, 2>(client, static_cast<dlpack::ManagedTensor*>(nullptr))) == "DlpackShape");
  Versioned foreign, over;
  const auto held = from_dlpack<u32, 2>(client, &foreign.managed).value();
  over.managed.tensor.data = foreign.data.data() + 1;
  over.shape = {1, 6};
  CHECK(rule_of(from_dlpack<u32, 2>(client, &over.managed)) == "AliasingArguments");
  CHECK(over.ended == 0);
}

TEST_CASE("a read-only tensor can be read and copied from, and is exported so again") {
  const Client client = cpu();
  Versioned foreign;
  foreign.managed.flags = dlpack::kReadOnly;
  auto view = from_dlpack<u32, 2>(client, &foreign.managed).value();
  CHECK(view.read().value() == numbers(24));
  const auto exported = to_dlpack(view).value();
  CHECK(exported->flags == dlpack::kReadOnly);
  exported->deleter(exported);
  CHECK(rule_of(view.write(numbers(24, 1))) == "ReadOnlyMemory");
  CHECK(foreign.data == numbers(24));
}

TEST_CASE_TEMPLATE("an export has the type that DLPack calls so", T, bool, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64, e4m3,
                   e5m2) {
  const Client client = cpu();
  auto b = Buffer<T>::from_host(client, std::vector<T>{T(1), T(0), T(1)}).value();
  auto* const exported = to_dlpack(b).value();
  const std::uint8_t code = std::same_as<T, bool>       ? 6
                            : std::same_as<T, bf16>     ? 4
                            : std::same_as<T, e4m3>     ? 10
                            : std::same_as<T, e5m2>     ? 12
                            : std::signed_integral<T>   ? 0
                            : std::unsigned_integral<T> ? 1
                                                        : 2;
  CHECK(exported->tensor.type.code == code);
  CHECK(exported->tensor.type.bits == sizeof(T) * 8);
  CHECK(exported->tensor.type.lanes == 1);
  // And back: the memory that it was.
  const auto back = from_dlpack<T, 1>(client, exported).value();
  CHECK(back.binding().memory == b.binding().memory);
  CHECK(back.read().value() == b.read().value());
}

TEST_CASE("an export has the elements of its view, waits for them, keeps them, and is none where they carry a failure") {
  const Client client = test::each_client();
  auto b = std::make_optional(Buffer<u32, 2>::from_host(client, numbers(24), {4, 6}).value());
  const std::uint64_t address = cuda::device_address(b->binding());
  auto* const exported = to_dlpack(StridedView(*b).range(1, 1, 2, 3)).value();
  auto* const old = to_dlpack_unversioned(*b).value();
  CHECK(exported->version.major == 1);
  CHECK(exported->flags == 0);
  CHECK(exported->tensor.device.type == (client.properties().kind == "cpu" ? dlpack::kCpu : dlpack::kCuda));
  CHECK(reinterpret_cast<std::uint64_t>(exported->tensor.data) + exported->tensor.byte_offset == address + 4);
  CHECK(exported->tensor.rank == 2);
  CHECK(std::vector(exported->tensor.shape, exported->tensor.shape + 2) == std::vector<std::int64_t>{4, 2});
  CHECK(std::vector(exported->tensor.strides, exported->tensor.strides + 2) == std::vector<std::int64_t>{6, 3});
  auto* const to_read = to_dlpack(*b, true).value();
  CHECK(to_read->flags == dlpack::kReadOnly);
  to_read->deleter(to_read);
  const std::weak_ptr<Allocation> memory = b->binding().memory;
  // What lies between the elements does not matter.
  rt::claim({b->binding().memory, {0, 4}}, Error(ErrorCode::Generic, "it was not to be"));
  auto* const others = to_dlpack(StridedView(*b).range(1, 1, 2, 3)).value();
  others->deleter(others);
  const auto refused = to_dlpack(*b);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().root().data().message == "it was not to be");
  b.reset();
  CHECK_FALSE(memory.expired());
  old->deleter(old);
  const auto back = from_dlpack<u32, 2>(client, exported).value();
  CHECK(back.read().value() == std::vector<u32>{1, 4, 7, 10, 13, 16, 19, 22});
}

TEST_CASE("a tensor of a GPU goes to the client of that GPU only") {
  const Client h200 = test::sim_client(test::kSimH200), t4 = test::sim_client(test::kSimT4);
  auto b = Buffer<u32>::from_host(t4, numbers(24)).value();
  auto* const exported = to_dlpack(b).value();
  CHECK(exported->tensor.device.type == dlpack::kCuda);
  CHECK(exported->tensor.device.id == 1);
  CHECK(rule_of(from_dlpack<u32, 1>(h200, exported)) == "DlpackDevice");
  CHECK(rule_of(from_dlpack<u32, 1>(Client::open("cpu").value(), exported)) == "DlpackDevice");
  CHECK(from_dlpack<u32, 1>(t4, exported).value().read().value() == numbers(24));
}
