// Kernels that are launched by their bundle: how they are found, and what is wrong when they are not.
#include <doctest/doctest.h>

#include <memory>
#include <optional>

#include "bundle/made_up.h"
#include "bundle/module.h"
#include "kiln/kiln.h"
#include "support/allocations.h"

using namespace kiln;
using namespace kiln::test;

namespace {

const int anchor = 0;

std::string bundle_of(const std::string& name, unsigned k = 1, Mode mode = Mode::AsKernel) {
  return write_bundle(adding(name, k), mode, {ptx_item("sm_999a", 99)}).value();
}

// A launch that fails: its error, after it was seen that what it was to write carries it.
template <class K>
Error failure(const K& kernel) {
  const Client client = Client::open("cpu").value();
  auto y = Buffer<u32>::from_host(client, {1, 2, 3}).value();
  const Result<void> launched = kernel(for_num_elems(3), y, 7u);
  REQUIRE(!launched.has_value());
  const auto read = y.read();
  REQUIRE(!read.has_value());
  CHECK(read.error().root().data().message == launched.error().data().message);
  return launched.error();
}

struct TileCfg {
  std::uint32_t tile = 8;
  bool fast = false;
};
KILN_CONFIG(TileCfg, tile, fast)

}  // namespace

TEST_CASE("a kernel that is not embedded is an error that lists those that are, until its library is opened") {
  const EmbeddedKernel<InOut<u32>, Val<u32>> kernel{"ns::adding", &anchor};
  Error none = failure(kernel);
  CHECK(none.rule() == "NotEmbedded");
  CHECK(none.code() == ErrorCode::NotFound);
  CHECK(none.kernel() == "ns::adding");
  CHECK(none.data().message == "no kernel is embedded in this process: the program or library that has it was linked without its bundles");
  {
    const Module others(bundle_of("b") + bundle_of("a"));
    CHECK(failure(kernel).data().message == "no kernel of that name is embedded in this process; those that are: a, b");
    const Module family(bundle_of("ns::adding@tile=8"));
    CHECK(failure(kernel).data().message == "no kernel of that name is embedded in this process, but variants of it: tile=8");
  }
  CHECK(failure(kernel).data().message == none.data().message);
  const Module there(bundle_of("ns::adding", 5));
  const Client client = Client::open("cpu").value();
  auto y = Buffer<u32>::from_host(client, {1, 2, 3}).value();
  kernel(for_num_elems(3), y, 7u).value();
  CHECK(y.read().value() == std::vector<u32>{6, 7, 8});
}

TEST_CASE("a variant that is not embedded is an error that lists the variants that are") {
  const EmbeddedFamily<TileCfg, InOut<u32>, Val<u32>> family{"ns::tiled", &anchor};
  const Module there(bundle_of("ns::tiled@tile=16,fast=true", 3) + bundle_of("ns::tiled@tile=8,fast=false", 2) + bundle_of("ns::tiledup"));
  const Error error = failure(family.with({.tile = 32}));
  CHECK(error.rule() == "NotEmbedded");
  CHECK(error.kernel() == "ns::tiled@tile=32,fast=false");
  CHECK(error.data().message ==
        "the variant 'tile=32,fast=false' is not embedded in this process; those that are: tile=16,fast=true, tile=8,fast=false");
  const Client client = Client::open("cpu").value();
  auto y = Buffer<u32>::from_host(client, {1, 2, 3}).value();
  family.with({.tile = 16, .fast = true})(for_num_elems(3), y, 7u).value();
  family(for_num_elems(3), y, 7u).value();
  CHECK(y.read().value() == std::vector<u32>{6, 7, 8});
}

TEST_CASE("a header whose signature is not the bundle's is an error that tells both") {
  const Module there(bundle_of("ns::adding"));
  const EmbeddedKernel<Out<u32>, Val<u32>> other{"ns::adding", &anchor};
  const Error error = failure(other);
  CHECK(error.rule() == "EmbeddedSignature");
  CHECK(error.kernel() == "ns::adding");
  CHECK(error.data().message ==
        "the kernel that is embedded takes (InOut<u32>, Val<u32>), and this program calls it as (Out<u32>, Val<u32>): the header and the "
        "bundles were not made together; build both anew");
}

TEST_CASE("two modules with a kernel of one name and different text are an error that names both; with the same text they are not") {
  const EmbeddedKernel<InOut<u32>, Val<u32>> kernel{"ns::adding", &anchor};
  const Module one(bundle_of("ns::adding", 1));
  {
    const Module other(bundle_of("ns::adding", 2));
    const Error error = failure(kernel);
    CHECK(error.rule() == "EmbeddedClash");
    CHECK(error.data().message.find("two kernels of that name with different text are embedded, in '") == 0);
  }
  const Module same(bundle_of("ns::adding", 1));
  const Client client = Client::open("cpu").value();
  auto y = Buffer<u32>::from_host(client, {1}).value();
  CHECK(kernel(for_num_elems(1), y, 7u).has_value());
}

TEST_CASE("a kernel runs in its own mode, or in the one that it is embedded in") {
  const auto checked_in = [](const auto& kernel) { return kernel.target().mode; };
  const EmbeddedKernel<InOut<u32>, Val<u32>> both{"both", &anchor}, bare{"bare", &anchor};
  const Module there(bundle_of("both", 1, Mode::Checked) + bundle_of("both", 1, Mode::Unchecked) + bundle_of("bare", 1, Mode::Unchecked));
  CHECK(checked_in(both) == Mode::AsKernel);
  CHECK(checked_in(bare) == Mode::Unchecked);
  CHECK(bare.checked().target().mode == Mode::Checked);
}

TEST_CASE("what is embedded is listed with its module, and so is what cannot be read") {
  std::string bytes = bundle_of("a") + bundle_of("b") + bundle_of("c");
  const Module whole(bytes);
  bytes[bundle_of("a").size() + 60] ^= 1;
  const Module damaged(bytes);
  const std::vector<EmbeddedModule> modules = embedded_modules();
  REQUIRE(modules.size() == 2);
  REQUIRE(modules[0].bundles.size() == 3);
  CHECK(modules[0].bundles[1].kernel == "b");
  CHECK(modules[0].problems.empty());
  REQUIRE(modules[1].bundles.size() == 2);
  CHECK(modules[1].bundles[1].kernel == "c");
  CHECK(modules[1].problems == std::vector<std::string>{"at byte " + std::to_string(bundle_of("a").size()) +
                                                        ": the checksum of its table is not that of its bytes"});
}

TEST_CASE("an embedded kernel allocates nothing after its first launch, of a family either") {
  if (!allocations_counted()) return;
  const EmbeddedKernel<InOut<u32>, Val<u32>> kernel{"ns::adding", &anchor};
  const EmbeddedFamily<TileCfg, InOut<u32>, Val<u32>> family{"ns::tiled", &anchor};
  const Module there(bundle_of("ns::adding", 5) + bundle_of("ns::tiled@tile=16,fast=true", 3) +
                     bundle_of("ns::tiled@tile=8,fast=false", 2));
  const Client client = Client::open("cpu").value();
  auto y = Buffer<u32>::from_host(client, {1, 2, 3}).value();
  const auto launch_all = [&] {
    const bool good = kernel(for_num_elems(3), y, 7u).has_value() && family(for_num_elems(3), y, 7u).has_value() &&
                      family.with({.tile = 16, .fast = true})(for_num_elems(3), y, 7u).has_value();
    return client.sync().has_value() && good;
  };
  for (int i = 0; i < 20; ++i) REQUIRE(launch_all());
  const std::uint64_t before = allocations();
  for (int i = 0; i < 20; ++i) REQUIRE(launch_all());
  CHECK(allocations() == before);
}

TEST_CASE("where the host has no memory for it, the first launch of an embedded kernel is an error, and the next one is fine") {
  if (!allocations_counted()) return;
  const Module there(bundle_of("ns::adding", 5));
  const Client client = Client::open("cpu").value();
  {  // compiled, once
    const EmbeddedKernel<InOut<u32>, Val<u32>> kernel{"ns::adding", &anchor};
    auto y = Buffer<u32>::from_host(client, {1, 2, 3}).value();
    kernel(for_num_elems(3), y, 7u).value();
  }
  bool failed = false, launched = false;
  for (std::uint64_t after = 0; !launched && after < 5000; after += 1 + after / 20) {
    CAPTURE(after);
    const EmbeddedKernel<InOut<u32>, Val<u32>> kernel{"ns::adding", &anchor};
    auto y = Buffer<u32>::from_host(client, {1, 2, 3}).value();
    std::optional<Result<void>> result;
    {
      const NoMemory none(after);
      result = kernel(for_num_elems(3), y, 7u);
    }
    launched = result->has_value();
    failed = failed || !launched;
    if (!launched) CHECK(result->error().code() == ErrorCode::OutOfMemory);
    y = Buffer<u32>::from_host(client, {1, 2, 3}).value();
    REQUIRE(kernel(for_num_elems(3), y, 7u).has_value());
    CHECK(y.read().value() == std::vector<u32>{6, 7, 8});
  }
  CHECK(failed);
  CHECK(launched);
}
