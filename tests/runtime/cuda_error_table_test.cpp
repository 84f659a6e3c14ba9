// What people do wrong with a CUDA device and what drivers answer to it, a row each: which structured error arrives, with cause and remedy,
// that the process and its CPU device go on, and that the GPU does unless the fault loses it. Over the simulated driver.
#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "kiln/runtime/buffer.h"
#include "kiln/runtime/cuda.h"
#include "kiln/runtime/memory.h"
#include "runtime/add_one.h"
#include "support/misused_ptx.h"
#include "support/sim.h"

using namespace std::string_literals;
using namespace kiln;
using cuda::LoadedModule;
using cuda::Param;
using test::add_one;
using test::make_sim_server;

namespace {

Result<void> run_own(const Stream& stream, const Buffer<u32>& y, const LaunchConfig& config) {
  const LaunchArg args[] = {y.arg()};
  return launch(stream, {&add_one(), config, args, {}});
}

// What a row has to work with.
struct World {
  explicit World(const rt::CudaOptions& options = {}) : client(make_sim_server(test::kSimH200, options)) {}
  // Of an entry over a new buffer of 256 words; Ok is an error of its own, so that a row that provokes nothing fails.
  Error launched(const std::string& entry, const LaunchConfig& config) {
    const auto module = LoadedModule::from_memory(client, test::misused_ptx(), "made up");
    if (!module.has_value()) return module.error();
    const auto y = Buffer<u32>::zeroed(client, 256);
    if (!y.has_value()) return y.error();
    const Param args[] = {Param::inout(*y)};
    return of(module->launch(client.default_stream(), entry, config, args));
  }
  // The same at an address, and then a wait.
  Error waited(const std::string& entry, std::uint64_t address, const LaunchConfig& config = {}) {
    const auto module = LoadedModule::from_memory(client, test::misused_ptx(), "made up");
    if (!module.has_value()) return module.error();
    const Param args[] = {Param::value(address)};
    const auto enqueued = module->launch(client.default_stream(), entry, config, args);
    return enqueued.has_value() ? of(client.sync()) : enqueued.error();  // a fault that comes at once is known before the launch returns
  }
  Error loaded(const std::string& image) {
    const auto module = LoadedModule::from_memory(client, image, "made up");
    return module.has_value() ? none() : module.error();
  }
  template <class R>
  static Error of(const R& result) {
    return result.has_value() ? none() : result.error();
  }
  static Error none() { return Error(ErrorCode::Generic, "nothing went wrong"); }

  Client client;
};

struct Row {
  std::string what;
  const char* script;  // of the driver's faults; "" without
  std::function<Error(World&)> provoke;
  ErrorCode code;
  const char* rule;                // of the error or of its first cause
  std::vector<const char*> words;  // cause and remedy
  bool lost = false;               // the device, to this process
};

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }
bool has_rule(const Error& error, const std::string& rule) {
  if (error.rule() == rule) return true;
  for (const Error& cause : error.causes())
    if (has_rule(cause, rule)) return true;
  return false;
}

void check_row(const Row& row) {
  CAPTURE(row.what);
  {
    const std::string script = std::string(R"({"quiet": true)") + (*row.script != 0 ? ", " : "") + row.script + "}";
    const test::SimScript faults(script);
    World world;
    const Error error = row.provoke(world);
    CAPTURE(error.text());
    CHECK((error.code() == row.code || (row.lost && error.code() == ErrorCode::LaunchDevicePoisoned)));
    CHECK(has_rule(error, row.rule));
    for (const std::string word : row.words) CHECK_MESSAGE(says(error.text(), word), word);
    CHECK(error.is_device_poisoned() == row.lost);
    // The device says so at once from then on, or works.
    const Error again = world.launched("add", {{1}, {1}});
    CHECK(again.is_device_poisoned() == row.lost);
    if (row.lost) {
      CHECK(has_rule(again, row.rule));
      CHECK(says(again.text(), "new process"));
      CHECK(has_rule(World::of(Buffer<u32>::zeroed(world.client, 4)), row.rule));
      CHECK(has_rule(World::of(world.client.sync()), row.rule));
    } else {
      CHECK(says(again.text(), "nothing went wrong"));
      CHECK(world.client.sync().has_value());
    }
  }
  if (row.lost) test::renew_sim();
  const Client cpu = Client::open("cpu").value();
  const auto y = Buffer<u32>::from_host(cpu, {6, 6, 6}).value();
  CHECK(run_own(cpu.default_stream(), y, for_num_elems(3)).has_value());
  CHECK(y.read().value() == std::vector<u32>{7, 7, 7});
}

constexpr const char* kLaunch1 = R"("calls": [{"name": "cuLaunchKernelEx", "n": 1, "code": "CUDA_ERROR_INVALID_VALUE"}])";
constexpr const char* kLaunch701 = R"("calls": [{"name": "cuLaunchKernelEx", "n": 1, "code": "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}])";
constexpr const char* kLaunch912 = R"("calls": [{"name": "cuLaunchKernelEx", "n": 1, "code": "CUDA_ERROR_INVALID_CLUSTER_SIZE"}])";
constexpr const char* kClusters912 =
    R"("calls": [{"name": "cuOccupancyMaxActiveClusters", "n": 1, "code": "CUDA_ERROR_INVALID_CLUSTER_SIZE"}])";
constexpr const char* kLaunch720 = R"("calls": [{"name": "cuLaunchKernelEx", "n": 1, "code": "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"}])";
constexpr const char* kLaunch400 = R"("calls": [{"name": "cuLaunchKernelEx", "n": 1, "code": "CUDA_ERROR_INVALID_HANDLE"}])";
constexpr const char* kLaunch201 = R"("calls": [{"name": "cuLaunchKernelEx", "n": 1, "code": "CUDA_ERROR_INVALID_CONTEXT"}])";
constexpr const char* kLoad209 = R"("loads": [{"n": 1, "code": "CUDA_ERROR_NO_BINARY_FOR_GPU"}])";
constexpr const char* kLoad218 = R"("loads": [{"n": 1, "code": "CUDA_ERROR_INVALID_PTX", "log": "ptxas fatal : SM version"}])";
constexpr const char* kLoad222 = R"("loads": [{"n": 1, "code": "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}])";

Row at_launch(const char* what, const char* entry, const LaunchConfig& config, const char* rule, std::vector<const char*> words,
              ErrorCode code = ErrorCode::TooManyResources, const char* script = "") {
  return {what, script, [entry, config](World& w) { return w.launched(entry, config); }, code, rule, std::move(words)};
}
Row at_load(const char* what, const std::function<std::string()>& image, const char* rule, std::vector<const char*> words,
            const char* script = "") {
  return {what, script, [image](World& w) { return w.loaded(image()); }, ErrorCode::CompileUnsupported, rule, std::move(words)};
}
Row fault(const char* what, const char* entry, std::uint64_t address, const char* rule, std::vector<const char*> words,
          const char* script) {
  return {what, script, [entry, address](World& w) { return w.waited(entry, address); }, ErrorCode::DevicePoisoned, rule, std::move(words),
          true};
}

std::string damaged() {
  std::string text = test::misused_ptx();
  return text.replace(text.find("add.s32"), 7, "mud.s32");
}

}  // namespace

TEST_CASE("bad shapes and sizes are refused before the driver is asked; where only it knows, its answer has cause and remedy") {
  const std::vector<Row> rows = {
      at_launch("a block extent of 0", "add", {{1}, {0}}, "ZeroDimension", {"block", "x is 0"}, ErrorCode::Validation),
      at_launch("a block of more than 1024 threads", "add", {{1}, {32, 33}}, "DeviceThreadsPerBlockExceeded", {"1056", "at most 1024"}),
      at_launch("a block extent over the limit", "add", {{1}, {1, 1, 65}}, "DeviceDimensionExceeded", {"block's z", "65", "at most 64"}),
      at_launch("a grid extent over the limit", "add", {{1, 65536}, {1}}, "DeviceDimensionExceeded", {"grid's y", "65536", "65535"}),
      at_launch("the driver refuses a dimension", "add", {{1}, {1}}, "CUDA_ERROR_INVALID_VALUE",
                {"dimension of zero or beyond", "kiln devices", "at most 1024 threads"}, ErrorCode::TooManyResources, kLaunch1),
      at_launch("too much shared memory", "add", {{1}, {1}, 300 * 1024}, "DeviceSharedMemoryExceeded", {"307200", "232448"}),
      at_launch("shared memory that the driver refuses", "add", {{1}, {1}, 40 * 1024}, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                {"registers, threads or shared memory", "less shared memory", "max_threads(n)"}, ErrorCode::TooManyResources, kLaunch701),
      at_launch("and that it calls an invalid value", "add", {{1}, {1}, 40 * 1024}, "CUDA_ERROR_INVALID_VALUE",
                {"too much shared memory", "kiln devices"}, ErrorCode::TooManyResources, kLaunch1),
      at_launch("too many registers for the block", "hungry", {{1}, {1024}}, "FunctionThreadsPerBlockExceeded",
                {"1024 threads", "registers", "smaller blocks"}),
      at_launch("another shape than .reqntid", "shaped", {{1}, {64, 2}}, "CUDA_ERROR_INVALID_VALUE", {".reqntid", "compare grid, block"}),
      at_launch("more than .reqntid", "shaped", {{1}, {32, 5}}, "FunctionThreadsPerBlockExceeded",
                {"160", "at most 128", "declared bounds"}),
      at_launch("more than .maxntid", "narrow", {{1}, {65}}, "FunctionThreadsPerBlockExceeded", {"65", "at most 64", "declared bounds"}),
      at_launch("clusters that do not divide the grid", "add", {{5}, {1}, 0, {2}}, "ClusterDoesNotDivideGrid", {"5 blocks along x", "2"},
                ErrorCode::Validation),
      at_launch("clusters of no size that there is", "add", {{32}, {1}, 0, {32}}, "ClusterSizeExceeded", {"32 blocks", "8"}),
      at_launch("other clusters than the entry's", "clustered", {{8}, {1}, 0, {4}}, "FunctionClusterShapeMismatch",
                {"clusters of (2, 1, 1)", "(4, 1, 1)"}),
      at_launch("the driver refuses the cluster", "add", {{4}, {1}, 0, {2}}, "CUDA_ERROR_INVALID_CLUSTER_SIZE",
                {"does not divide the grid", "at most 8 blocks", "multiple"}, ErrorCode::TooManyResources, kLaunch912),
      {"clusters where there are none",
       "",
       [](World&) {
         const Client t4(make_sim_server(test::kSimT4));
         const auto y = Buffer<u32>::zeroed(t4, 4).value();
         return World::of(run_own(t4.default_stream(), y, {{2}, {1}, 0, {2}}));
       },
       ErrorCode::TooManyResources,
       "ClusterLaunchUnsupported",
       {"clusters of (2, 1, 1)", "T4"}},
      {"a cooperative launch that does not fit",
       "",
       [](World& w) { return w.launched("add", {{1 << 20}, {256}, 0, {1, 1, 1}, true}); },
       ErrorCode::TooManyResources,
       "CooperativeGridTooLarge",
       {"1048576 blocks", "at a time"}},
      at_launch("and that the driver refuses", "add", {{2}, {1}, 0, {1, 1, 1}, true}, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
                {"more blocks than fit", "fewer or smaller blocks"}, ErrorCode::TooManyResources, kLaunch720),
  };
  for (const Row& row : rows) check_row(row);
}

TEST_CASE("of two things that the loaded function rules out the one that comes first in the table is told") {
  constexpr Dim3 all{1, 1, 1};
  const std::vector<Row> rows = {
      at_launch("its threads, then the cluster", "narrow", {{32}, {65}, 0, {32}}, "FunctionThreadsPerBlockExceeded", {"65", "at most 64"}),
      at_launch("its threads, then the blocks at a time", "hungry", {{1 << 20}, {1024}, 0, all, true}, "FunctionThreadsPerBlockExceeded",
                {"1024 threads"}),
      at_launch("its own clusters, then their size", "clustered", {{32}, {1}, 0, {32}}, "FunctionClusterShapeMismatch", {"(32, 1, 1)"}),
      at_launch("its own clusters, then the blocks at a time", "clustered", {{1 << 20}, {256}, 0, {4}, true},
                "FunctionClusterShapeMismatch", {"(4, 1, 1)"}),
      at_launch("the size of the cluster, then the blocks at a time", "add", {{1 << 20}, {256}, 0, {32}, true}, "ClusterSizeExceeded",
                {"32 blocks"}),
  };
  for (const Row& row : rows) check_row(row);
}

TEST_CASE("wrong programs, entries, arguments and handles are refused with cause and remedy") {
  const auto good = [] { return test::misused_ptx(); };
  const auto wrong_arguments = [](std::vector<Param> args) {
    return [args = std::move(args)](World& w) {
      const LoadedModule module = LoadedModule::from_memory(w.client, test::misused_ptx(), "made up").value();
      return World::of(module.launch(w.client.default_stream(), "add", {}, args));
    };
  };
  const std::vector<Row> rows = {
      {"an entry that is not in the module",
       "",
       [](World& w) { return w.launched("sub", {}); },
       ErrorCode::NotFound,
       "CUDA_ERROR_NOT_FOUND",
       {"'sub'", "no entry of that name", "check the name"}},
      at_load("a target newer than the device", [] { return test::ptx_header("8.6", "sm_100"); }, "TargetMismatch",
              {"sm_100", "compute capability 9.0", "compile for sm_90 or older"}),
      at_load("the driver has no binary", good, "CUDA_ERROR_NO_BINARY_FOR_GPU",
              {"another architecture", "compile it for this GPU (--arch)"}, kLoad209),
      at_load("and says that by its compiler", good, "CUDA_ERROR_INVALID_PTX",
              {"does not accept the PTX", "see its log below", "--arch", "ptxas fatal : SM version"}, kLoad218),
      at_load("a cubin of another architecture",
              [] {
                return "\x7f"
                       "ELF\2\1\1"s +
                       '\0' + " and no more";
              },
              "CUDA_ERROR_NO_BINARY_FOR_GPU", {"another architecture", "--arch"}),
      at_load("PTX newer than the driver", [] { return test::ptx_header("9.9", "sm_90"); }, "TargetMismatch",
              {"PTX 9.9", "PTX up to 9.0", "update the NVIDIA driver"}),
      at_load("and the driver says so", good, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
              {"newer version than this driver", "update the NVIDIA driver"}, kLoad222),
      at_load("damaged PTX", damaged, "CUDA_ERROR_INVALID_PTX", {"does not accept the PTX", "mud"}),
      at_load("no program at all", [] { return std::string("hello"); }, "NotAProgram", {"neither PTX", "nor a cubin"}),
      {"too few arguments", "", wrong_arguments({}), ErrorCode::Validation, "ArgumentCount", {"takes 1", "given 0"}},
      {"an argument of another size",
       "",
       wrong_arguments({Param::value(u32{1})}),
       ErrorCode::Validation,
       "ArgumentSize",
       {"argument 1 has 4 bytes", "has 8"}},
      {"another device's buffer",
       "",
       [](World& w) {
         const Client t4(make_sim_server(test::kSimT4));
         const auto y = Buffer<u32>::zeroed(t4, 4).value();
         return World::of(run_own(w.client.default_stream(), y, {}));
       },
       ErrorCode::ForeignHandle,
       "ForeignHandle",
       {"T4", "H200"}},
      {"a stream of another device",
       "",
       [](World& w) {
         const Client t4(make_sim_server(test::kSimT4));
         const LoadedModule module = LoadedModule::from_memory(w.client, test::misused_ptx(), "made up").value();
         const auto y = Buffer<u32>::zeroed(w.client, 4).value();
         const Param args[] = {Param::inout(y)};
         return World::of(module.launch(t4.default_stream(), "add", {}, args));
       },
       ErrorCode::ForeignHandle,
       "ForeignHandle",
       {"T4", "H200"}},
      {"a stream of another context",
       "",
       [](World& w) {
         const cuda::DriverEntries& call = test::sim_driver().call;
         cuda::CUcontext context = nullptr;
         cuda::CUstream theirs = nullptr;
         REQUIRE(call.cuDevicePrimaryCtxRetain(&context, test::kSimT4) == cuda::CUDA_SUCCESS);
         REQUIRE(call.cuCtxPushCurrent(context) == cuda::CUDA_SUCCESS);
         REQUIRE(call.cuStreamCreate(&theirs, cuda::CU_STREAM_NON_BLOCKING) == cuda::CUDA_SUCCESS);
         const Error error = World::of(cuda::adopt_stream(w.client, theirs));
         call.cuStreamDestroy(theirs);
         call.cuCtxPopCurrent(&context);
         call.cuDevicePrimaryCtxRelease(test::kSimT4);
         return error;
       },
       ErrorCode::ForeignHandle,
       "ContextMismatch",
       {"does not belong to the primary context", "create it there"}},
      at_launch("and the driver calls it an invalid handle", "add", {}, "CUDA_ERROR_INVALID_HANDLE",
                {"belongs to another device", "streams of this device only"}, ErrorCode::LaunchUnknown, kLaunch400),
      at_launch("or an invalid context", "add", {}, "CUDA_ERROR_INVALID_CONTEXT", {"another context", "of this device only"},
                ErrorCode::LaunchUnknown, kLaunch201),
  };
  for (const Row& row : rows) check_row(row);
}

TEST_CASE("a fault of a kernel of others loses the device with cause and remedy, and the CPU device works") {
  const std::vector<Row> rows = {
      fault("a pointer to nowhere", "add", 0xdead0000, "CUDA_ERROR_ILLEGAL_ADDRESS",
            {"memory that is not its own", "a buffer that was freed", "run the kernel checked", "add"}, ""),
      {"a buffer that was freed",
       "",
       [](World& w) {
         const Client client(make_sim_server(test::kSimH200));
         std::uint64_t address = 0;
         {
           const auto y = Buffer<u32>::zeroed(client, 1 << 20).value();
           address = cuda::device_address(y.binding()) + (3 << 20);  // where no small buffer comes to lie meanwhile
           CHECK(client.sync().has_value());
         }
         CHECK(memory_cleanup(client).has_value());
         return w.waited("add", address);
       },
       ErrorCode::DevicePoisoned,
       "CUDA_ERROR_ILLEGAL_ADDRESS",
       {"memory that is not its own", "a buffer that was freed"},
       true},
      {"a wide access at an odd place",
       "",
       [](World& w) {
         const auto y = Buffer<u32>::zeroed(w.client, 256).value();
         return w.waited("wide", cuda::device_address(y.binding()) + 4);
       },
       ErrorCode::DevicePoisoned,
       "CUDA_ERROR_MISALIGNED_ADDRESS",
       {"no multiple of the access's size", "offsets and strides of views"},
       true},
      fault("a trap, as one driver tells it", "add", 0, "CUDA_ERROR_ILLEGAL_INSTRUCTION",
            {"reached a trap", "run the kernel checked", "restarted"}, R"("kernels": [{"n": 1, "fault": "trap"}])"),
      fault("a trap, as another one does", "trapped", 0, "CUDA_ERROR_LAUNCH_FAILED", {"a fault or a trap", "run the kernel checked"}, ""),
      {"an error that the GPU contained, told when a program is loaded",
       R"("loads": [{"n": 1, "code": "CUDA_ERROR_CONTAINED"}])",
       [](World& w) { return w.loaded(test::misused_ptx()); },
       ErrorCode::CompileDevicePoisoned,
       "CUDA_ERROR_CONTAINED",
       {"contained an error", "start a new process"},
       true},
      fault("an assertion", "add", 0, "CUDA_ERROR_ASSERT", {"an assertion in a kernel failed", "error output", "restarted"},
            R"("kernels": [{"n": 1, "fault": "assert"}])"),
  };
  for (const Row& row : rows) check_row(row);
}

TEST_CASE("a kernel of Kiln's own gets the same refusals, loses nothing by them and runs when it is launched as it should") {
  struct Wrong {
    LaunchConfig config;
    const char* rule;
  };
  for (const Wrong& wrong : {Wrong{{{1}, {8, 0}}, "ZeroDimension"},
                             {{{1}, {2048}}, "DeviceDimensionExceeded"},
                             {{{1}, {32}, 300 * 1024}, "DeviceSharedMemoryExceeded"}}) {
    CAPTURE(wrong.rule);
    const Client client(make_sim_server());
    const auto y = Buffer<u32>::from_host(client, {6, 6}).value();
    const Error error = World::of(run_own(client.default_stream(), y, wrong.config));
    CHECK(error.rule() == wrong.rule);
    CHECK(error.kernel() == "add_one");
    CHECK(y.read().value() == std::vector<u32>{6, 6});
    CHECK(run_own(client.default_stream(), y, {{1}, {32}}).has_value());
    CHECK(y.read().value() == std::vector<u32>{7, 7});
  }
}
