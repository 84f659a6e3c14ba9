// Faults that users of CUDA met, where they concern the driver itself: each case with the right answer, over the simulated driver.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "cuda/program.h"
#include "kiln/ir/text.h"
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/cuda.h"
#include "runtime/add_one.h"
#include "support/process.h"
#include "support/sim.h"

using namespace kiln;
using test::add_one;
using test::kSimH200;
using test::kSimT4;
using test::make_sim_server;

namespace {

// Stores at y[at].
const Variant& stray() {
  static const Variant& variant = *new Variant(ir::parse_kernel(R"kir(kir 1
kernel "stray" {
  buffer y : u32[*] inout
  scalar at : u64
  body {
    %i = param at
    %seven = const 7 : u32
    store y[%i], %seven
  }
}
)kir"));
  return variant;
}

// Stores 7 in each of y, whatever the other axes of the grid.
const Variant& sevens() {
  static const Variant& variant = *new Variant(ir::parse_kernel(R"kir(kir 1
kernel "sevens" {
  buffer y : u32[*] inout
  body {
    %i = global_id.x
    %n = size y
    %in = lt %i, %n
    if %in {
      %seven = const 7 : u32
      store y[%i], %seven
    }
  }
}
)kir"));
  return variant;
}

Result<void> run(const Stream& stream, const Variant& variant, const Buffer<u32>& y, std::optional<u64> at = {},
                 ir::PrepareOptions::Mode mode = ir::PrepareOptions::Mode::AsKernel) {
  std::vector<LaunchArg> args{y.arg()};
  if (at) {
    args.emplace_back();
    args.back().type = ir::Type::U64;
    args.back().bits = *at;
  }
  return launch(stream, {&variant, for_num_elems(at ? 1 : y.size()), args, mode});
}

bool says(const Error& error, const std::string& what) { return error.text().find(what) != std::string::npos; }

}  // namespace

TEST_CASE("64 MiB that are dropped while another stream still has to read them are not overwritten, 20 times of 20") {
  constexpr std::size_t kElements = (std::size_t{64} << 20) / sizeof(u32);
  const std::vector<u32> wanted(kElements, 3);
  const cuda::DriverEntries& call = test::sim_driver().call;
  const test::CurrentContext current(test::kSimH200);
  cuda::CUstream held = nullptr;  // until the gate of a round opens
  REQUIRE(call.cuStreamCreate(&held, cuda::CU_STREAM_NON_BLOCKING) == cuda::CUDA_SUCCESS);
  for (const bool by_another_thread : {false, true}) {
    const Client client(make_sim_server());
    const Stream s1 = client.stream(), s2 = cuda::adopt_stream(client, held).value();
    const Buffer<u32> b = Buffer<u32>::uninitialised(client, kElements).value();
    const Buffer<u32> threes = Buffer<u32>::from_host(client, std::vector<u32>(kElements, 3)).value(),
                      sevens = Buffer<u32>::from_host(client, std::vector<u32>(kElements, 7)).value();
    for (int round = 0; round < 10; ++round) {
      CAPTURE(round);
      std::optional<Buffer<u32>> a = Buffer<u32>::uninitialised(client, kElements).value();
      REQUIRE(rt::copy(s1, a->binding(), threes.binding()).has_value());
      REQUIRE(s1.sync().has_value());
      std::latch gate(1);
      REQUIRE(call.cuLaunchHostFunc(held, [](void* g) { static_cast<std::latch*>(g)->wait(); }, &gate) == cuda::CUDA_SUCCESS);
      REQUIRE(rt::copy(s2, b.binding(), a->binding()).has_value());
      if (by_another_thread) std::thread([&] { a.reset(); }).join();
      else a.reset();
      const Buffer<u32> c = Buffer<u32>::uninitialised(client, kElements).value();
      REQUIRE(rt::copy(s1, c.binding(), sevens.binding()).has_value());
      gate.count_down();
      CHECK((b.read(s1).value() == wanted));
      CHECK(c.slice(kElements - 5, 5).read(s1).value() == std::vector<u32>(5, 7));
    }
    CHECK(cuda::release_stream(s2).has_value());
  }
  call.cuStreamDestroy(held);
}

TEST_CASE("fresh threads launch on two devices at the same time, and each keeps the context that it had") {
  const Client clients[] = {Client(make_sim_server(kSimH200)), Client(make_sim_server(kSimT4))};
  const cuda::DriverEntries& call = test::sim_driver().call;
  cuda::CUcontext contexts[2] = {};
  for (int d = 0; d < 2; ++d) REQUIRE(call.cuDevicePrimaryCtxRetain(&contexts[d], d == 0 ? kSimH200 : kSimT4) == cuda::CUDA_SUCCESS);
  std::vector<Buffer<u32>> buffers;
  for (std::size_t t = 0; t < 8; ++t) buffers.push_back(Buffer<u32>::zeroed(clients[t % 2], 1000).value());
  for (std::size_t d = 0; d < 2; ++d) {  // the only compilation
    REQUIRE(run(clients[d].default_stream(), add_one(), buffers[d]).has_value());
    REQUIRE(clients[d].sync().has_value());
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      // None, its own device's, or the other one's.
      const cuda::CUcontext before = t < 2 ? nullptr : contexts[t / 4];
      if (before != nullptr) call.cuCtxPushCurrent(before);
      cuda::CUcontext now = nullptr;
      {
        const Stream stream = clients[t % 2].stream();
        for (int i = 0; i < 100; ++i) {
          wrong += run(stream, add_one(), buffers[t]).has_value() ? 0 : 1;
          call.cuCtxGetCurrent(&now);
          wrong += now == before ? 0 : 1;
        }
        if (t % 3 == 0) wrong += stream.sync().has_value() ? 0 : 1;
      }
      call.cuCtxGetCurrent(&now);
      wrong += now == before ? 0 : 1;
      if (before != nullptr) call.cuCtxPopCurrent(&now);
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  for (std::size_t t = 0; t < 8; ++t) CHECK(buffers[t].read().value() == std::vector<u32>(1000, t < 2 ? 101 : 100));
  call.cuDevicePrimaryCtxRelease(kSimH200);
  call.cuDevicePrimaryCtxRelease(kSimT4);
}

TEST_CASE(
    "after a store far outside its buffer the device is lost, names the kernel, lets nothing look well, and everything goes quietly") {
  const test::SimScript quiet(R"({"quiet": true})");
  {
    const Client client(make_sim_server());
    const Stream stream = client.stream(), other = client.stream();
    const Buffer<u32> bad = Buffer<u32>::zeroed(client, 100).value(), good = Buffer<u32>::zeroed(client, 100).value();
    REQUIRE(run(other, add_one(), good).has_value());
    REQUIRE(client.sync().has_value());
    // The device may have failed before the launch has returned.
    const auto strayed = run(stream, stray(), bad, u64{1} << 32, ir::PrepareOptions::Mode::Unchecked);
    const auto first = stream.sync();
    REQUIRE_FALSE(first.has_value());
    for (const Error& error : {first.error(), strayed.has_value() ? first.error() : strayed.error()}) {
      CHECK(error.is_device_poisoned());
      for (const char* word : {"stray", "CUDA_ERROR_ILLEGAL_ADDRESS (700)", "new process"}) CHECK_MESSAGE(says(error, word), word);
    }
    const auto fast = run(other, add_one(), good);
    REQUIRE_FALSE(fast.has_value());
    CHECK(fast.error().code() == ErrorCode::LaunchDevicePoisoned);
    for (const char* word : {"first failure", "stray"}) CHECK_MESSAGE(says(fast.error(), word), word);
    CHECK_FALSE(good.read().has_value());
    CHECK_FALSE(client.sync().has_value());  // whether it can still be used
    // Nothing looks successful, though nothing was to be done.
    const LaunchArg args[] = {good.arg()};
    const Binding nothing;
    u32 word = 0;
    const std::pair<const char*, Result<void>> later[] = {
        {"an empty grid", launch(other, {&add_one(), for_num_elems(0), args, {}})},
        {"a wrong launch", launch(other, {&add_one(), {{1}, {0}}, args, {}})},
        {"a write", rt::write(other, good.slice(0, 1).binding(), &word)},
        {"a write of nothing", rt::write(other, nothing, &word)},
        {"a fill", rt::fill_zero(other, good.binding())},
        {"a fill of nothing", rt::fill_zero(other, nothing)},
        {"a copy", rt::copy(other, good.binding(), bad.binding())},
        {"a copy of nothing", rt::copy(other, nothing, nothing)},
        {"a read", rt::read(other, good.slice(0, 1).binding(), &word)},
        {"a read of nothing", rt::read(other, nothing, &word)},
        {"waiting for a stream", other.sync()},
    };
    for (const auto& [what, result] : later) {
      CAPTURE(std::string(what));
      CHECK_FALSE(result.has_value());
      if (!result.has_value() && what != std::string("a wrong launch")) CHECK(says(result.error(), "stray"));
    }
    CHECK_FALSE(rt::allocate(client, 16).has_value());
    CHECK_FALSE(rt::allocate(client, 0).has_value());
    CHECK_FALSE(Buffer<u32>::from_host(client, {}).has_value());
  }
  test::renew_sim();
  const Client cpu = Client::open("cpu").value();
  const Buffer<u32> y = Buffer<u32>::zeroed(cpu, 100).value();
  CHECK(run(cpu.default_stream(), add_one(), y).has_value());
  CHECK(y.read().value() == std::vector<u32>(100, 1));
}

TEST_CASE("clusters and cooperative launches run as far as the device takes them, and what is one too many is refused by the numbers") {
  const Client client(make_sim_server());
  struct Row {
    const char* what;
    LaunchConfig config;
    const char* rule;
    std::optional<std::uint64_t> requested, limit;
  };
  const Row rows[] = {
      {"a cluster", {{4}, {32}, 0, {2}}, "none", {}, {}},
      {"the largest on every device", {{16}, {32}, 0, {8}}, "none", {}, {}},
      {"along all axes", {{4, 2, 2}, {32}, 0, {2, 2, 2}}, "none", {}, {}},
      {"twice that", {{16}, {32}, 0, {16}}, "ClusterSizeExceeded", 16, 8},
      {"more along all axes", {{4, 4, 2}, {32}, 0, {4, 4, 1}}, "ClusterSizeExceeded", 16, 8},
      // Two blocks of 1024 threads on each of 132 multiprocessors; with more than half of the shared memory one.
      {"all blocks at a time", {{264}, {1024}, 0, {1, 1, 1}, true}, "none", {}, {}},
      {"one more", {{265}, {1024}, 0, {1, 1, 1}, true}, "CooperativeGridTooLarge", 265, 264},
      {"all blocks with shared memory", {{132}, {32}, 120 * 1024, {1, 1, 1}, true}, "none", {}, {}},
      {"one more of those", {{133}, {32}, 120 * 1024, {1, 1, 1}, true}, "CooperativeGridTooLarge", 133, 132},
      {"in clusters and at a time", {{264}, {1024}, 0, {8}, true}, "none", {}, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const Buffer<u32> y = Buffer<u32>::zeroed(client, 40).value();
    const LaunchArg args[] = {y.arg()};
    const auto result = launch(client.default_stream(), {&sevens(), row.config, args, {}});
    CHECK((result.has_value() ? "none" : result.error().rule()) == row.rule);
    if (!result.has_value()) {
      CHECK(result.error().is_refusal());
      CHECK(result.error().data().requested == row.requested);
      CHECK(result.error().data().limit == row.limit);
      CHECK(y.read().value() == std::vector<u32>(40, 0));
      REQUIRE(launch(client.default_stream(), {&sevens(), for_num_elems(40), args, {}}).has_value());
    }
    CHECK(y.read().value() == std::vector<u32>(40, 7));
  }
}

TEST_CASE("streams of the three priorities ask the driver for its lowest, its middle and its highest") {
  struct Asked {
    decltype(cuda::DriverEntries::cuStreamCreateWithPriority) real = nullptr;
    decltype(cuda::DriverEntries::cuCtxGetStreamPriorityRange) range = nullptr;
    std::vector<std::pair<int, unsigned>> priorities;  // with the flags
  };
  static Asked& asked = *new Asked;
  const auto changed = [](bool none) {
    cuda::Driver driver = test::sim_driver();
    asked.real = driver.call.cuStreamCreateWithPriority;
    driver.call.cuStreamCreateWithPriority = +[](cuda::CUstream* stream, unsigned flags, int priority) {
      asked.priorities.emplace_back(priority, flags);
      return asked.real(stream, flags, priority);
    };
    if (none) {
      driver.call.cuCtxGetStreamPriorityRange = +[](int* least, int* greatest) {
        *least = *greatest = 0;
        return cuda::CUDA_SUCCESS;
      };
    }
    return driver;
  };
  static const cuda::Driver &ordinary = *new cuda::Driver(changed(false)), &without = *new cuda::Driver(changed(true));
  int least = 0, greatest = 0;
  {
    const test::CurrentContext current(kSimH200);
    REQUIRE(ordinary.call.cuCtxGetStreamPriorityRange(&least, &greatest) == cuda::CUDA_SUCCESS);
  }
  REQUIRE(greatest < least);  // the lower the number, the higher the priority
  for (const bool none : {false, true}) {
    CAPTURE(none);
    const Client client(rt::make_server(rt::make_cuda_device(none ? without : ordinary, kSimH200).value()));
    const Memory memory = rt::allocate(client, 64).value();
    const std::pair<StreamPriority, int> rows[] = {
        {StreamPriority::Low, least}, {StreamPriority::Normal, (least + greatest) / 2}, {StreamPriority::High, greatest}};
    for (const auto& [priority, number] : rows) {
      asked.priorities.clear();
      const Stream stream = client.stream(priority);
      REQUIRE(rt::fill_zero(stream, {memory, {0, 64}}).has_value());
      REQUIRE(asked.priorities.size() == 1);
      CHECK(asked.priorities[0].first == (none ? 0 : number));
      CHECK(asked.priorities[0].second == cuda::CU_STREAM_NON_BLOCKING);
      REQUIRE(rt::fill_zero(stream, {memory, {0, 64}}).has_value());
      CHECK(asked.priorities.size() == 1);  // once
    }
  }
}

TEST_CASE("clusters and cooperation are attributes of the driver's launch, and only where they were asked for") {
  cuda::CUlaunchAttribute attributes[2];
  const auto config = [&](std::array<std::uint32_t, 3> cluster, bool cooperative) {
    return cuda::driver_config({6, 5, 4}, {3, 2, 1}, cluster, cooperative, 77, nullptr, attributes);
  };
  const cuda::CUlaunchConfig plain = config({1, 1, 1}, false);
  CHECK(plain.numAttrs == 0);
  CHECK((plain.attrs == nullptr));
  CHECK(std::array{plain.gridDimX, plain.gridDimY, plain.gridDimZ, plain.blockDimX, plain.blockDimY, plain.blockDimZ,
                   plain.sharedMemBytes} == std::array{6u, 5u, 4u, 3u, 2u, 1u, 77u});
  CHECK(config({3, 1, 2}, false).numAttrs == 1);
  CHECK(attributes[0].id == cuda::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  CHECK(std::array{attributes[0].value.clusterDim.x, attributes[0].value.clusterDim.y, attributes[0].value.clusterDim.z} ==
        std::array{3u, 1u, 2u});
  CHECK(config({1, 1, 1}, true).numAttrs == 1);
  CHECK(attributes[0].id == cuda::CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  CHECK(attributes[0].value.cooperative == 1);
  CHECK(config({1, 2, 1}, true).numAttrs == 2);
}

TEST_CASE("what a lesser device lacks is said when it is opened or at the launch that needs it") {
  // An H200 of one multiprocessor, one without cooperative launches, and one of an older architecture than Kiln compiles for.
  const std::string h200 = test::read_file(KILN_SOURCE_DIR "/tests/simcuda/devices/h200.json");
  test::TempFolder folder;
  const auto with = [&](const std::string& name, std::string text, const std::string& attribute, const std::string& value) {
    const std::size_t at = text.find("\"" + attribute + "\":"), colon = text.find(':', at), end = text.find_first_of(",\n", colon);
    REQUIRE(at != std::string::npos);
    return folder.write(name, text.replace(colon + 1, end - colon - 1, " " + value));
  };
  const std::string single = with("single.json", h200, "MULTIPROCESSOR_COUNT", "1"),
                    alone = with("alone.json", h200, "COOPERATIVE_LAUNCH", "0"),
                    old = with("old.json", h200, "COMPUTE_CAPABILITY_MAJOR", "7");
  {
    const test::SimScript devices("{\"devices\": [\"" + single + "\", \"" + alone + "\", \"" + old + "\"]}");
    test::renew_sim();
    const auto refused = [](const Client& client, const LaunchConfig& config) {
      const Buffer<u32> y = Buffer<u32>::zeroed(client, 100).value();
      const LaunchArg args[] = {y.arg()};
      const auto result = launch(client.default_stream(), {&add_one(), config, args, {}});
      const std::string rule = result.has_value() ? "none" : result.error().rule();
      CHECK(launch(client.default_stream(), {&add_one(), for_num_elems(100), args, {}}).has_value());
      CHECK(y.read().value() == std::vector<u32>(100, 1));
      return rule;
    };
    const Client one(make_sim_server(0));
    CHECK(refused(one, {{8}, {1024}, 0, {8}}) == "ClusterHasNoResidency");
    CHECK(refused(one, {{3}, {1024}, 0, {1, 1, 1}, true}) == "CooperativeGridTooLarge");
    CHECK(refused(Client(make_sim_server(1)), {{1}, {32}, 0, {1, 1, 1}, true}) == "CooperativeLaunchUnsupported");
    const auto too_old = rt::make_cuda_device(test::sim_driver(), 2);
    REQUIRE_FALSE(too_old.has_value());
    CHECK(too_old.error().rule() == "ComputeCapabilityTooLow");
    for (const char* word : {"7.0", "7.5 or newer"}) CHECK_MESSAGE(says(too_old.error(), word), word);
  }
  test::renew_sim();
}
