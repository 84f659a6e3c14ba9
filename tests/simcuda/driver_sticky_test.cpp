// Faults: a context that failed answers with what it failed of, for ever; other devices go on.
#include <doctest/doctest.h>

#include <functional>

#include "simcuda/driver_ptx.h"
#include "support/process.h"

using namespace kiln::simcuda::test;

namespace {

const char* const kFaults = R"({"kernels": [{"name": "none", "fault": "illegal_address"}], "devices": ["h200", "t4"]})";

}  // namespace

TEST_CASE("each injected fault arrives where something waits, with its code") {
  struct Row {
    const char* fault;
    CUresult code;
  };
  for (const Row& row : {Row{"illegal_address", CUDA_ERROR_ILLEGAL_ADDRESS}, Row{"misaligned", CUDA_ERROR_MISALIGNED_ADDRESS},
                         Row{"launch_failure", CUDA_ERROR_LAUNCH_FAILED}, Row{"hang", CUDA_ERROR_LAUNCH_TIMEOUT},
                         Row{"trap", CUDA_ERROR_ILLEGAL_INSTRUCTION}, Row{"assert", CUDA_ERROR_ASSERT}}) {
    CAPTURE(row.fault);
    const DeviceSession session("{\"kernels\": {\"name\": \"none\", \"n\": 2, \"timeout_ms\": 20, \"fault\": \"" + std::string(row.fault) +
                                "\"}}");
    const CUfunction none = get(load(), "none");
    const CUstream stream = make_stream();
    KILN_CALL(launch(none, config(1, 1, stream)), CUDA_SUCCESS);
    KILN_CALL(library().cuStreamSynchronize(stream), CUDA_SUCCESS);
    KILN_CALL(launch(none, config(1, 1, stream)), CUDA_SUCCESS);  // enqueued: that is all that success means
    KILN_CALL(library().cuStreamSynchronize(stream), row.code);
    CHECK(std::string(library().last_report()).find("'none'") != std::string::npos);
  }
}

TEST_CASE("every call on a failed context answers with its failure, and destroying still destroys") {
  const DeviceSession session(kFaults);
  Library& lib = library();
  const CUmodule module = load();
  const CUfunction none = get(module, "none");
  const CUstream stream = make_stream(), other = make_stream();
  const CUevent event = make_event(CU_EVENT_DEFAULT), second = make_event(CU_EVENT_DEFAULT);
  const CUdeviceptr a = allocate(16);
  void* pinned = allocate_pinned(16);
  KILN_OK(lib.cuEventRecord(event, stream));
  KILN_OK(lib.cuEventRecord(second, stream));
  KILN_OK(lib.cuStreamSynchronize(stream));
  KILN_OK(launch(none, config(1, 1, stream)));
  constexpr CUresult sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  KILN_CALL(lib.cuStreamSynchronize(stream), sticky);
  CUdeviceptr p = 0;
  void* h = nullptr;
  std::size_t bytes = 0;
  CUstream s = nullptr;
  CUevent e = nullptr;
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  CUcontext c = nullptr;
  CUgraph graph = nullptr;
  CUdevice device = -1;
  float ms = 0;
  int n = 0;
  const CUlaunchConfig how = config();
  struct Row {
    const char* what;
    std::function<CUresult()> call;
  };
  const Row rows[] = {
      {"cuStreamSynchronize of another stream", [&] { return lib.cuStreamSynchronize(other); }},
      {"cuStreamQuery", [&] { return lib.cuStreamQuery(other); }},
      {"cuStreamCreate", [&] { return lib.cuStreamCreate(&s, 0); }},
      {"cuStreamWaitEvent", [&] { return lib.cuStreamWaitEvent(other, event, 0); }},
      {"cuStreamBeginCapture", [&] { return lib.cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_GLOBAL); }},
      {"cuStreamEndCapture", [&] { return lib.cuStreamEndCapture(other, &graph); }},
      {"cuEventQuery of a done event", [&] { return lib.cuEventQuery(event); }},
      {"cuEventSynchronize", [&] { return lib.cuEventSynchronize(event); }},
      {"cuEventRecord", [&] { return lib.cuEventRecord(event, other); }},
      {"cuEventElapsedTime", [&] { return lib.cuEventElapsedTime(&ms, event, second); }},
      {"cuEventCreate", [&] { return lib.cuEventCreate(&e, 0); }},
      {"cuCtxSynchronize", [&] { return lib.cuCtxSynchronize(); }},
      {"cuMemAlloc", [&] { return lib.cuMemAlloc(&p, 4); }},
      {"cuMemFree", [&] { return lib.cuMemFree(a); }},
      {"cuMemHostAlloc", [&] { return lib.cuMemHostAlloc(&h, 4, 0); }},
      {"cuMemFreeHost", [&] { return lib.cuMemFreeHost(pinned); }},
      {"cuMemGetInfo", [&] { return lib.cuMemGetInfo(&bytes, &bytes); }},
      {"cuMemcpyHtoDAsync", [&] { return lib.cuMemcpyHtoDAsync(a, &n, 4, other); }},
      {"cuMemcpyDtoHAsync", [&] { return lib.cuMemcpyDtoHAsync(&n, a, 4, other); }},
      {"cuMemsetD8Async", [&] { return lib.cuMemsetD8Async(a, 0, 4, other); }},
      {"cuModuleLoadDataEx", [&] { return lib.cuModuleLoadDataEx(&m, kernels_ptx().c_str(), 0, nullptr, nullptr); }},
      {"cuModuleGetFunction", [&] { return lib.cuModuleGetFunction(&f, module, "fill"); }},
      {"cuFuncGetAttribute", [&] { return lib.cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, none); }},
      {"cuLaunchKernelEx", [&] { return lib.cuLaunchKernelEx(&how, none, nullptr, nullptr); }},
      {"cuLaunchHostFunc", [&] { return lib.cuLaunchHostFunc(other, [](void*) {}, nullptr); }},
      {"cuDevicePrimaryCtxRetain", [&] { return lib.cuDevicePrimaryCtxRetain(&c, 0); }},
      {"cuEventDestroy", [&] { return lib.cuEventDestroy(event); }},
      {"cuStreamDestroy", [&] { return lib.cuStreamDestroy(other); }},
      {"cuModuleUnload", [&] { return lib.cuModuleUnload(module); }},
  };
  for (const Row& row : rows) CHECK_MESSAGE(row.call() == sticky, row.what);
  CHECK(lib.count("events") == 1);
  CHECK(lib.count("streams") == 1);
  CHECK(lib.count("modules") == 0);
  KILN_CALL(lib.cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuCtxGetDevice(&device), CUDA_SUCCESS);  // what the host alone knows
  KILN_CALL(lib.cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_SUCCESS);
}

TEST_CASE("another device goes on, and a failed one stays failed when its context is released") {
  const DeviceSession session(kFaults);
  Library& lib = library();
  KILN_OK(launch(get(load(), "none"), config()));
  KILN_CALL(lib.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUcontext t4 = nullptr, again = nullptr, popped = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&t4, 1));
  KILN_OK(lib.cuCtxPushCurrent(t4));
  const CUdeviceptr a = allocate(16);
  KILN_OK(launch(get(load(), "fill"), config(1, 4), a, 1u));
  KILN_CALL(lib.cuCtxSynchronize(), CUDA_SUCCESS);
  KILN_OK(lib.cuCtxPopCurrent(&popped));
  KILN_CALL(lib.cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  KILN_CALL(lib.cuDevicePrimaryCtxRetain(&again, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("what a stream had before the fault is done, what comes after is not") {
  const DeviceSession session(R"({"kernels": [{"name": "none", "fault": "launch_failure"}]})");
  Library& lib = library();
  const CUfunction none = get(load(), "none");
  const CUstream stream = make_stream(), waiting = make_stream();
  const CUevent event = make_event();
  auto* host = static_cast<std::uint32_t*>(allocate_pinned(8));
  host[0] = host[1] = 0;
  const CUdeviceptr a = allocate(4);
  KILN_OK(lib.cuMemsetD32Async(a, 6, 1, stream));
  KILN_OK(lib.cuMemcpyDtoHAsync(&host[0], a, 4, stream));
  KILN_OK(launch(none, config(1, 1, stream)));
  lib.cuEventRecord(event, stream);  // these may already be refused
  lib.cuStreamWaitEvent(waiting, event, 0);
  lib.cuMemcpyDtoHAsync(&host[1], a, 4, waiting);
  lib.cuMemcpyDtoHAsync(&host[1], a, 4, stream);
  KILN_CALL(lib.cuStreamSynchronize(waiting), CUDA_ERROR_LAUNCH_FAILED);
  CHECK(host[0] == 6);
  CHECK(host[1] == 0);
}

TEST_CASE("a kernel that leaves its memory is reported with its place") {
  for (const char* what : {"beyond the end", "misaligned", "freed", "null"}) {
    CAPTURE(what);
    const DeviceSession session;
    Library& lib = library();
    const CUfunction poke = get(load(), "poke");
    const CUdeviceptr a = allocate(16);
    CUdeviceptr at = a + 16;
    if (std::string(what) == "misaligned") at = a + 2;
    if (std::string(what) == "null") at = 0;
    if (std::string(what) == "freed") {
      at = a;
      KILN_OK(lib.cuMemFree(a));
    }
    KILN_OK(launch(poke, config(), at, 1u));
    KILN_CALL(lib.cuCtxSynchronize(), std::string(what) == "misaligned" ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(std::string(lib.last_report()).find("poke") != std::string::npos);
  }
}

TEST_CASE("another device's memory is out of a kernel's range") {
  const DeviceSession session(R"({"devices": ["h200", "t4"]})");
  Library& lib = library();
  CUcontext t4 = nullptr, popped = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&t4, 1));
  KILN_OK(lib.cuCtxPushCurrent(t4));
  const CUdeviceptr there = allocate(16);
  KILN_OK(lib.cuCtxPopCurrent(&popped));
  KILN_OK(launch(get(load(), "poke"), config(), there, 1u));
  KILN_CALL(lib.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("page-locked memory is accessible to kernels of every device") {
  const DeviceSession session(R"({"devices": ["h200", "t4"]})");
  Library& lib = library();
  auto* host = static_cast<std::uint32_t*>(allocate_pinned(16));
  CUcontext t4 = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&t4, 1));  // after the memory was made
  KILN_OK(launch(get(load(), "poke"), config(), reinterpret_cast<CUdeviceptr>(host), 21u));
  KILN_CALL(lib.cuCtxSynchronize(), CUDA_SUCCESS);
  CHECK(host[0] == 21);
  KILN_OK(lib.cuCtxPushCurrent(t4));
  KILN_OK(launch(get(load(), "poke"), config(), reinterpret_cast<CUdeviceptr>(host) + 4, 22u));
  KILN_CALL(lib.cuCtxSynchronize(), CUDA_SUCCESS);
  CHECK(host[1] == 22);
}

TEST_CASE("a kernel that does not end is ended by the limit of instructions") {
  const DeviceSession session(R"({"instruction_limit": 100000})");
  Library& lib = library();
  const CUdeviceptr flag = allocate(4);
  KILN_OK(lib.cuMemsetD32Async(flag, 0, 1, nullptr));
  KILN_OK(launch(get(load(), "spin"), config(), flag));
  KILN_CALL(lib.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST_CASE("a graph's kernels fail as their launches do") {
  const DeviceSession session(R"({"kernels": [{"name": "no*", "n": 2, "fault": "misaligned"}]})");
  Library& lib = library();
  const CUfunction none = get(load(), "none");
  const CUstream stream = make_stream();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  KILN_OK(lib.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  KILN_OK(launch(none, config(1, 1, stream)));
  KILN_OK(lib.cuStreamEndCapture(stream, &graph));
  KILN_OK(lib.cuGraphInstantiate(&exec, graph, 0));
  KILN_OK(lib.cuGraphLaunch(exec, stream));
  KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_SUCCESS);
  KILN_OK(lib.cuGraphLaunch(exec, stream));
  KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_ERROR_MISALIGNED_ADDRESS);
  KILN_CALL(lib.cuGraphLaunch(exec, stream), CUDA_ERROR_MISALIGNED_ADDRESS);
  KILN_CALL(lib.cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

TEST_CASE("a fault after the work leaves what the kernel wrote") {
  const DeviceSession session(R"({"kernels": [{"name": "poke", "fault": "launch_failure", "runs": true}]})");
  auto* host = static_cast<std::uint32_t*>(allocate_pinned(4));
  *host = 0;
  KILN_OK(launch(get(load(), "poke"), config(), reinterpret_cast<CUdeviceptr>(host), 4u));
  KILN_CALL(library().cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  CHECK(*host == 4);
}

TEST_CASE("an entry point can poison the context by the script") {
  const DeviceSession session(R"({"calls": [{"name": "cuMemcpyHtoDAsync", "n": 1, "code": 214, "sticky": true}]})");
  const CUdeviceptr a = allocate(4);
  int word = 0;
  KILN_CALL(library().cuMemcpyHtoDAsync(a, &word, 4, nullptr), CUDA_ERROR_ECC_UNCORRECTABLE);
  KILN_CALL(library().cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE);
}

TEST_CASE("reports go to a file, too") {
  const kiln::test::TempFolder folder;
  const std::string file = folder.file("report");
  {
    const DeviceSession session("{\"kernels\": [{\"name\": \"none\", \"fault\": \"trap\"}], \"report\": \"" + file + "\"}");
    KILN_OK(launch(get(load(), "none"), config()));
    KILN_CALL(library().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_INSTRUCTION);
    CHECK(library().count("reports") == 1);
  }
  CHECK(kiln::test::read_file(file).find("CUDA_ERROR_ILLEGAL_INSTRUCTION") != std::string::npos);
}
