// Odd uses of kiln/runtime/cuda.h: wrong order, captures, files that are none, and no memory of the host at any point, over the simulated
// driver.
#include <doctest/doctest.h>

#include <atomic>
#include <exception>
#include <optional>
#include <thread>

#include "kiln/runtime/buffer.h"
#include "kiln/runtime/cuda.h"
#include "src/local_server.h"
#include "support/allocations.h"
#include "support/process.h"
#include "support/sim.h"

using namespace kiln;
using cuda::LoadedModule;
using cuda::Param;
using test::make_sim_server;
using test::sim_driver;

namespace {

// add(u32* y, u32 v): y[tid] += v.
const char* const kAdd = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 y, .param .u32 v)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [y];
  ld.param.u32 %r1, [v];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.u32 %r3, [%rd1];
  add.s32 %r3, %r3, %r1;
  st.global.u32 [%rd1], %r3;
  ret;
}
)";

std::vector<Param> add_args(const Buffer<u32>& y, u32 v = 1) { return {Param::inout(y), Param::value(v)}; }
LaunchConfig one_block(const Buffer<u32>& y) { return {{1}, {static_cast<u32>(y.size())}}; }

// The driver as a library with memory of its own: what fails for want of memory is the runtime.
template <class F>
struct Wrapped;
template <class... A>
struct Wrapped<cuda::CUresult (*)(A...)> {
  template <auto Entry>
  static cuda::CUresult call(A... arguments) {
    const test::MemoryAgain own;
    return (sim_driver().call.*Entry)(arguments...);
  }
};
const cuda::Driver& driver_with_own_memory() {
  static const cuda::Driver& wrapped = *new cuda::Driver([] {
    cuda::Driver d = sim_driver();
#define KILN_WRAP(entry, exported, since, params) \
  if (d.call.entry != nullptr) d.call.entry = &Wrapped<decltype(d.call.entry)>::call<&cuda::DriverEntries::entry>;
    KILN_CUDA_ENTRIES(KILN_WRAP)
#undef KILN_WRAP
    return d;
  }());
  return wrapped;
}

// Runs `operation() -> Result<...>` with memory for 0, 1, 2, ... allocations until it has enough: each time an error or success, never an
// exception. `check(whether it was a success)` says whether that was all.
template <class Operation, class Check>
void with_little_memory(Operation&& operation, Check&& check) {
  bool done = false;
  for (std::uint64_t after = 0; !done; ++after) {
    CAPTURE(after);
    REQUIRE(after < 10000);
    std::optional<Error> error;
    bool thrown = false;
    {
      const test::NoMemory from_here(after);
      try {
        auto result = operation();
        if (!result.has_value()) error = result.error();
      } catch (...) { thrown = true; }
    }
    CHECK_FALSE(thrown);
    if (thrown) return;
    if (error) CHECK(error->code() == ErrorCode::OutOfMemory);
    done = check(!error);
  }
}

}  // namespace

TEST_CASE("a module that was moved from is still one") {
  const Client client(make_sim_server());
  LoadedModule module = LoadedModule::from_memory(client, kAdd).value();
  const LoadedModule moved = std::move(module);
  const auto y = Buffer<u32>::from_host(client, {5}).value();
  CHECK(moved.launch(client.default_stream(), "add", one_block(y), add_args(y)).has_value());
  CHECK(module.launch(client.default_stream(), "add", one_block(y), add_args(y)).has_value());
  LoadedModule assigned = LoadedModule::from_memory(client, kAdd).value();
  assigned = std::move(module);
  CHECK(module.launch(client.default_stream(), "add", one_block(y), add_args(y)).has_value());
  CHECK(y.read().value() == std::vector<u32>{8});
}

TEST_CASE("a file that cannot be read, or has no end, is an error that names it") {
  const Client client(make_sim_server());
  const test::TempFolder folder;
  for (const std::string& path :
       {std::string("/"), folder.path(), std::string("/dev/zero"), std::string("/dev/null"), std::string(), folder.path() + "/none.ptx"}) {
    CAPTURE(path);
    std::optional<Error> error;
    try {
      if (const auto module = LoadedModule::from_file(client, path); !module.has_value()) error = module.error();
    } catch (const std::exception& e) { FAIL_CHECK(e.what()); }
    REQUIRE(error.has_value());
    CHECK(error->rule() == "NoSuchFile");
    CHECK(error->text().find("'" + path + "'") != std::string::npos);
  }
}

TEST_CASE("a stream is released once, and only one that was adopted") {
  const Client client(make_sim_server());
  const Stream adopted = cuda::adopt_stream(client, nullptr).value();
  CHECK(cuda::release_stream(adopted).has_value());
  for (const Stream& stream : {adopted, client.stream(), Stream(client, std::uint64_t{1} << 63), Stream(client, ~std::uint64_t{0})}) {
    const auto again = cuda::release_stream(stream);
    REQUIRE_FALSE(again.has_value());
    CHECK(again.error().rule() == "NotAdopted");
  }
  const auto y = Buffer<u32>::from_host(client, {5}).value();
  CHECK(y.read().value() == std::vector<u32>{5});
}

TEST_CASE("memory that is adopted anew comes after the work that it was given before") {
  const Client client(make_sim_server());
  const cuda::DriverEntries& call = sim_driver().call;
  const test::CurrentContext current(test::kSimH200);
  cuda::CUdeviceptr theirs = 0;
  REQUIRE(call.cuMemAlloc(&theirs, 512) == cuda::CUDA_SUCCESS);
  cuda::CUstream held = nullptr;
  REQUIRE(call.cuStreamCreate(&held, cuda::CU_STREAM_NON_BLOCKING) == cuda::CUDA_SUCCESS);
  REQUIRE(call.cuMemsetD8Async(theirs, 1, 512, held) == cuda::CUDA_SUCCESS);
  REQUIRE(call.cuStreamSynchronize(held) == cuda::CUDA_SUCCESS);
  std::atomic<bool> open{false}, anew{false};
  {
    const Stream behind = cuda::adopt_stream(client, held).value(), other = client.stream();
    const auto nines = Buffer<u8>::from_host(client, std::vector<u8>(512, 9)).value();
    const auto seen = Buffer<u8>::zeroed(client, 512).value();
    REQUIRE(client.sync().has_value());
    REQUIRE(call.cuLaunchHostFunc(
                held,
                [](void* gate) {
                  while (!*static_cast<std::atomic<bool>*>(gate)) std::this_thread::yield();
                },
                &open) == cuda::CUDA_SUCCESS);
    REQUIRE(rt::copy(behind, {cuda::adopt_memory(client, theirs, 512).value(), {0, 512}}, nines.binding()).has_value());
    std::thread opener([&] {
      while (!anew) std::this_thread::yield();
      for (int i = 0; i < 10000; ++i) std::this_thread::yield();
      open = true;
    });
    anew = true;
    CHECK(rt::copy(other, seen.binding(), {cuda::adopt_memory(client, theirs, 512).value(), {0, 512}}).has_value());
    CHECK(open);
    opener.join();
    CHECK(seen.read().value() == std::vector<u8>(512, 9));
    CHECK(cuda::release_stream(behind).has_value());
  }
  call.cuStreamDestroy(held);
  CHECK(call.cuMemFree(theirs) == cuda::CUDA_SUCCESS);
}

TEST_CASE("what others capture into a graph meanwhile is neither broken nor in the way, by whichever thread") {
  const Client client(make_sim_server());
  const cuda::DriverEntries& call = sim_driver().call;
  const test::CurrentContext current(test::kSimH200);
  cuda::CUstream theirs = nullptr;
  REQUIRE(call.cuStreamCreate(&theirs, cuda::CU_STREAM_NON_BLOCKING) == cuda::CUDA_SUCCESS);
  {
    const auto use = [&] {
      const auto module = LoadedModule::from_memory(client, kAdd);
      const auto y = Buffer<u32>::from_host(client, std::vector<u32>(1000, 5));
      REQUIRE(module.has_value());
      REQUIRE(y.has_value());
      CHECK(module->launch(client.stream(), "add", one_block(*y), add_args(*y)).has_value());
      CHECK(y->read().value() == std::vector<u32>(1000, 6));
      CHECK(client.sync().has_value());
    };
    cuda::CUgraph graph = nullptr;
    REQUIRE(call.cuStreamBeginCapture(theirs, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL) == cuda::CUDA_SUCCESS);
    use();
    std::thread(use).join();
    CHECK(call.cuStreamEndCapture(theirs, &graph) == cuda::CUDA_SUCCESS);
    // The thread is as before: what was forbidden still is.
    cuda::CUdeviceptr memory = 0;
    REQUIRE(call.cuStreamBeginCapture(theirs, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL) == cuda::CUDA_SUCCESS);
    CHECK(call.cuMemAlloc(&memory, 16) == cuda::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(call.cuStreamEndCapture(theirs, &graph) == cuda::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    // Work of Kiln's is not captured: it would not run.
    const Stream adopted = cuda::adopt_stream(client, theirs).value();
    const auto from = Buffer<u32>::from_host(client, {5}).value(), to = Buffer<u32>::from_host(client, {7}).value();
    REQUIRE(call.cuStreamBeginCapture(theirs, cuda::CU_STREAM_CAPTURE_MODE_RELAXED) == cuda::CUDA_SUCCESS);
    const auto refused = rt::copy(adopted, to.binding(), from.binding());
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().rule() == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
    CHECK(call.cuStreamEndCapture(theirs, &graph) == cuda::CUDA_SUCCESS);
    CHECK(rt::copy(adopted, to.binding(), from.binding()).has_value());
    CHECK(to.read().value() == std::vector<u32>{5});
    CHECK(cuda::release_stream(adopted).has_value());
    CHECK(client.sync().has_value());
  }
  call.cuStreamDestroy(theirs);
}

TEST_CASE(
    "wherever the host's memory ends, what is asked of others' modules, streams and memory is an error, and works once there is some") {
  if (!test::allocations_counted()) return;
  const auto server = rt::make_server(rt::make_cuda_device(driver_with_own_memory(), test::kSimH200).value());
  const Client client(server);
  const std::string image = kAdd;
  SUBCASE("opening") {
    with_little_memory([&] { return rt::make_cuda_device(driver_with_own_memory(), test::kSimT4); }, [](bool good) { return good; });
  }
  SUBCASE("loading") {
    with_little_memory([&] { return LoadedModule::from_memory(client, image); }, [](bool good) { return good; });
  }
  SUBCASE("launching") {
    std::optional<LoadedModule> module;
    std::optional<Buffer<u32>> y;
    std::vector<Param> args;
    const std::string entry = "add";
    const auto prepare = [&] {
      // Of its own: without memory to note what was to be written, all of a device's memory counts as unwritten.
      const Client fresh(rt::make_server(rt::make_cuda_device(driver_with_own_memory(), test::kSimH200).value()));
      module = LoadedModule::from_memory(fresh, image).value();
      y = Buffer<u32>::from_host(fresh, {5}).value();
      args = add_args(*y);
    };
    prepare();
    with_little_memory([&] { return module->launch(y->client().default_stream(), entry, one_block(*y), args); },
                       [&](bool launched) {
                         const auto read = y->read();
                         const bool whole = launched && read.has_value();  // one that could not be noted has run, and cannot be read
                         if (read.has_value()) CHECK(*read == std::vector<u32>{launched ? 6u : 5u});
                         prepare();
                         return whole;
                       });
  }
  SUBCASE("streams and memory") {
    const auto kept = Buffer<u32>::from_host(client, {5}).value();
    with_little_memory(
        [&]() -> Result<void> {
          const auto stream = cuda::adopt_stream(client, nullptr);
          if (!stream.has_value()) return stream.error();
          return cuda::release_stream(*stream);
        },
        [](bool good) { return good; });
  }
  SUBCASE("buffers") {
    with_little_memory(
        [&]() -> Result<void> {
          const auto memory = rt::allocate(client, 3000);
          if (!memory.has_value()) return memory.error();
          return {};
        },
        [](bool good) { return good; });
  }
  CHECK(client.sync().has_value());
}

TEST_CASE("a buffer that the host has no memory to note is not lost to the device") {
  if (!test::allocations_counted()) return;
  const Client client(rt::make_server(rt::make_cuda_device(driver_with_own_memory(), test::kSimTiny).value()));
  const std::uint64_t most = client.properties().memory_bytes / 2;
  for (std::uint64_t after = 0; after < 20; ++after) {
    CAPTURE(after);
    {
      const test::NoMemory from_here(after);
      auto memory = rt::allocate(client, most);
    }
    const auto memory = rt::allocate(client, most);
    CHECK(memory.has_value());
  }
}
