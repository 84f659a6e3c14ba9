// Launches: what they compute, and what the driver refuses before anything runs.
#include <doctest/doctest.h>

#include <cstring>

#include "simcuda/driver_ptx.h"

using namespace kiln::simcuda::test;

namespace {

std::vector<std::uint32_t> read(CUdeviceptr from, std::size_t n, CUstream stream = nullptr) {
  std::vector<std::uint32_t> words(n);
  KILN_OK(library().cuMemcpyDtoHAsync(words.data(), from, n * 4, stream));
  return words;
}

}  // namespace

TEST_CASE("kernels of one stream run in order and see what was before them") {
  const DeviceSession session;
  const CUmodule module = load();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(4096), b = allocate(4096);
  KILN_OK(launch(get(module, "fill"), config(4, 256, stream), a, 100u));
  KILN_OK(launch(get(module, "fill"), config(4, 256, stream), b, 1u));
  KILN_OK(launch(get(module, "add"), config(4, 256, stream), a, b, 1000u));
  const auto words = read(a, 1024, stream);
  for (std::uint32_t i = 0; i < 1024; ++i) REQUIRE(words[i] == (i < 1000 ? 101 + 2 * i : 100 + i));
  CHECK(library().count("launches") == 3);
}

TEST_CASE("parameters have the layout of the entry and are copied at the call") {
  const DeviceSession session;
  Library& lib = library();
  const CUfunction wide = get(load(), "wide");
  const CUdeviceptr out = allocate(56);
  const CUstream stream = make_stream();
  std::uint8_t a = 0x11;
  std::uint64_t b = 0x2222222222222222, d[3] = {1, 2, 3};
  std::uint16_t c = 0x3333;
  std::uint32_t e = 0x44444444;
  CUdeviceptr to = out;
  void* params[] = {&a, &b, &c, d, &e, &to};
  const CUlaunchConfig how = config(1, 1, stream);
  {
    const Gate gate(stream);
    KILN_OK(lib.cuLaunchKernelEx(&how, wide, params, nullptr));
    a = 0, b = 0, c = 0, d[0] = d[1] = d[2] = 0, e = 0, to = 0;
  }
  std::uint64_t words[7] = {};
  KILN_OK(lib.cuMemcpyDtoHAsync(words, out, 56, stream));
  const std::uint64_t expected[7] = {0x11, 0x2222222222222222, 0x3333, 1, 2, 3, 0x44444444};
  for (int i = 0; i < 7; ++i) CHECK(words[i] == expected[i]);
}

TEST_CASE("parameters can come as one buffer") {
  const DeviceSession session;
  Library& lib = library();
  const CUfunction fill = get(load(), "fill");
  const CUdeviceptr a = allocate(16);
  struct {
    CUdeviceptr to;
    std::uint32_t value;
  } buffer{a, 8};
  std::size_t size = 12, small = 8;
  void* extra[] = {reinterpret_cast<void*>(1), &buffer, reinterpret_cast<void*>(2), &size, nullptr};
  const CUlaunchConfig how = config(1, 4);
  KILN_CALL(lib.cuLaunchKernelEx(&how, fill, nullptr, extra), CUDA_SUCCESS);
  CHECK(read(a, 4) == std::vector<std::uint32_t>{8, 9, 10, 11});
  void* params[] = {&buffer.to, &buffer.value};
  KILN_CALL(lib.cuLaunchKernelEx(&how, fill, params, extra), CUDA_ERROR_INVALID_VALUE);
  extra[3] = &small;
  KILN_CALL(lib.cuLaunchKernelEx(&how, fill, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  extra[2] = reinterpret_cast<void*>(7);
  KILN_CALL(lib.cuLaunchKernelEx(&how, fill, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a launch that cannot be is refused with the driver's code, and does no harm") {
  const DeviceSession session;
  Library& lib = library();
  const CUmodule module = load();
  const CUfunction none = get(module, "none"), fixed = get(module, "fixed"), at_most = get(module, "at_most"),
                   shared = get(module, "shared");
  constexpr CUresult value = CUDA_ERROR_INVALID_VALUE, resources = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, ok = CUDA_SUCCESS;
  struct Row {
    const char* what;
    CUfunction function;
    std::uint32_t grid[3], block[3], dynamic;
    CUresult code;
  };
  const Row rows[] = {
      {"one block", none, {1, 1, 1}, {1, 1, 1}, 0, ok},
      {"no blocks in x", none, {0, 1, 1}, {1, 1, 1}, 0, value},
      {"no blocks in y", none, {1, 0, 1}, {1, 1, 1}, 0, value},
      {"no blocks in z", none, {1, 1, 0}, {1, 1, 1}, 0, value},
      {"no threads in x", none, {1, 1, 1}, {0, 1, 1}, 0, value},
      {"no threads in y", none, {1, 1, 1}, {1, 0, 1}, 0, value},
      {"no threads in z", none, {1, 1, 1}, {1, 1, 0}, 0, value},
      {"too many blocks in x", none, {0x80000000u, 1, 1}, {1, 1, 1}, 0, value},
      {"too many blocks in y", none, {1, 65536, 1}, {1, 1, 1}, 0, value},
      {"too many blocks in z", none, {1, 1, 65536}, {1, 1, 1}, 0, value},
      {"a full block", none, {1, 1, 1}, {1024, 1, 1}, 0, ok},
      {"too many threads in x", none, {1, 1, 1}, {1025, 1, 1}, 0, value},
      {"too many threads in y", none, {1, 1, 1}, {1, 1025, 1}, 0, value},
      {"too many threads in z", none, {1, 1, 1}, {1, 1, 65}, 0, value},
      {"too many threads in all", none, {1, 1, 1}, {512, 2, 2}, 0, value},
      {"the portable shared memory", none, {1, 1, 1}, {1, 1, 1}, 49152, ok},
      {"more than that without asking", none, {1, 1, 1}, {1, 1, 1}, 49153, value},
      {"dynamic beside static", shared, {1, 1, 1}, {1, 1, 1}, 9153, value},
      {"the required block", fixed, {2, 1, 1}, {64, 2, 1}, 0, ok},
      {"another block of that size", fixed, {1, 1, 1}, {32, 4, 1}, 0, value},
      {"less than the required block", fixed, {1, 1, 1}, {32, 1, 1}, 0, value},
      {"as many threads as allowed", at_most, {1, 1, 1}, {64, 2, 1}, 0, ok},
      {"more threads than allowed", at_most, {1, 1, 1}, {129, 1, 1}, 0, resources},
  };
  CUdeviceptr out = allocate(4);
  void* params[] = {&out};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CUlaunchConfig c{row.grid[0], row.grid[1], row.grid[2], row.block[0], row.block[1], row.block[2], row.dynamic, nullptr, nullptr, 0};
    KILN_CALL(lib.cuLaunchKernelEx(&c, row.function, params, nullptr), row.code);
    KILN_CALL(lib.cuCtxSynchronize(), CUDA_SUCCESS);
  }
  KILN_OK(lib.cuFuncSetAttribute(none, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
  CUlaunchConfig c = config();
  c.sharedMemBytes = 100000;
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), ok);
  c.sharedMemBytes = 100001;
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), value);
}

TEST_CASE("a thread has 512 KiB of local memory: a kernel that needs more is not launched; bounds beyond all numbers are none") {
  const DeviceSession session;
  const auto code_of = [](const std::string& bounds, const std::string& bytes) {
    const CUmodule module = load(".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k() " + bounds + "\n{\n.local .b8 x[" +
                                 bytes + "];\nret;\n}\n");
    return launch(get(module, "k"), config(1, 1));
  };
  CHECK(code_of("", "524288") == CUDA_SUCCESS);
  CHECK(code_of("", "524289") == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  CHECK(code_of(".maxntid 2147483648, 2147483648, 4", "16") == CUDA_SUCCESS);
}

TEST_CASE("wrong handles, parameters and attributes of a launch are refused") {
  const DeviceSession session(R"({"devices": ["h200", "a100"]})");
  Library& lib = library();
  const CUmodule module = load();
  const CUfunction none = get(module, "none"), fill = get(module, "fill");
  CUlaunchConfig c = config();
  CUdeviceptr to = allocate(4);
  std::uint32_t v = 0;
  void* missing[] = {&to, nullptr};
  KILN_CALL(lib.cuLaunchKernelEx(nullptr, none, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuLaunchKernelEx(&c, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuLaunchKernelEx(&c, reinterpret_cast<CUfunction>(&v), nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuLaunchKernelEx(&c, reinterpret_cast<CUfunction>(module), nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuLaunchKernelEx(&c, fill, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuLaunchKernelEx(&c, fill, missing, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_SUCCESS);
  CUlaunchAttribute attribute{};
  c.numAttrs = 1;
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  c.attrs = &attribute;
  attribute.id = CU_LAUNCH_ATTRIBUTE_IGNORE;
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_SUCCESS);
  attribute.id = static_cast<CUlaunchAttributeID>(6);
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);

  CUcontext a100 = nullptr, popped = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&a100, 1));
  KILN_OK(lib.cuCtxPushCurrent(a100));
  const CUstream there = make_stream();
  c = config();
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);  // a function of another context
  KILN_OK(lib.cuCtxPopCurrent(&popped));
  c.hStream = there;
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);  // a stream of another context
  KILN_OK(lib.cuCtxPopCurrent(&popped));
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("a cooperative launch must fit on the device at once") {
  const DeviceSession session;
  Library& lib = library();
  const CUfunction none = get(load(), "none");
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  CUlaunchConfig c = config(132 * 2, 1024);
  c.attrs = &cooperative;
  c.numAttrs = 1;
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_SUCCESS);
  c.gridDimX = 132 * 2 + 1;
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  cooperative.value.cooperative = 0;
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_SUCCESS);
}

TEST_CASE("clusters must divide the grid, be small enough and be there at all") {
  const DeviceSession session(R"({"devices": ["h200", "a100"]})");
  Library& lib = library();
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  CUlaunchConfig c = config(16, 32);
  c.attrs = &cluster;
  c.numAttrs = 1;
  constexpr CUresult bad = CUDA_ERROR_INVALID_CLUSTER_SIZE;
  struct Row {
    unsigned x, y, z;
    bool non_portable;
    CUresult code;
  };
  const CUfunction none = get(load(), "none");
  for (const Row& row :
       {Row{1, 1, 1, false, CUDA_SUCCESS}, Row{8, 1, 1, false, CUDA_SUCCESS}, Row{16, 1, 1, false, bad}, Row{16, 1, 1, true, CUDA_SUCCESS},
        Row{3, 1, 1, false, bad}, Row{1, 2, 1, false, bad}, Row{0, 1, 1, false, bad}, Row{32, 1, 1, true, bad}}) {
    CAPTURE(row.x);
    KILN_OK(lib.cuFuncSetAttribute(none, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, row.non_portable ? 1 : 0));
    cluster.value.clusterDim = {row.x, row.y, row.z};
    KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), row.code);
  }
  CUcontext a100 = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&a100, 1));
  KILN_OK(lib.cuCtxPushCurrent(a100));
  const CUfunction there = get(load(), "none");
  cluster.value.clusterDim = {2, 1, 1};
  KILN_CALL(lib.cuLaunchKernelEx(&c, there, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("a small device has small limits") {
  const DeviceSession session(R"({"devices": ["tiny"]})");
  Library& lib = library();
  const CUmodule module = load(kernels_ptx().replace(kernels_ptx().find("room[40000]"), 11, "room[16384]").replace(0, 0, ""));
  const CUfunction none = get(module, "none");
  CUlaunchConfig c = config(1, 128);
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_SUCCESS);
  c.blockDimX = 129;
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  c = config(65536, 1);
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  c = config(1, 1);
  c.sharedMemBytes = 16385;
  KILN_CALL(lib.cuLaunchKernelEx(&c, none, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuFuncSetAttribute(none, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 16385), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a captured launch runs with the parameters of its capture") {
  const DeviceSession session;
  Library& lib = library();
  const CUfunction fill = get(load(), "fill");
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(16);
  KILN_OK(lib.cuMemsetD32Async(a, 0, 4, stream));
  KILN_OK(lib.cuStreamSynchronize(stream));
  KILN_OK(lib.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  KILN_OK(launch(fill, config(1, 4, stream), a, 5u));
  KILN_CALL(launch(fill, config(0, 4, stream), a, 5u), CUDA_ERROR_INVALID_VALUE);  // a refused launch is no node
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  KILN_OK(lib.cuStreamEndCapture(stream, &graph));
  CHECK(read(a, 4) == std::vector<std::uint32_t>(4, 0));
  KILN_OK(lib.cuGraphInstantiate(&exec, graph, 0));
  KILN_OK(lib.cuGraphLaunch(exec, stream));
  CHECK(read(a, 4, stream) == std::vector<std::uint32_t>{5, 6, 7, 8});
}

TEST_CASE("kernels of independent streams run at once") {
  const DeviceSession session;
  const CUmodule module = load();
  const CUstream a = make_stream(), b = make_stream();
  const CUdeviceptr flag = allocate(4);
  KILN_OK(library().cuMemsetD32Async(flag, 0, 1, a));
  KILN_OK(library().cuStreamSynchronize(a));
  KILN_OK(launch(get(module, "spin"), config(1, 1, a), flag));
  KILN_OK(launch(get(module, "poke"), config(1, 1, b), flag, 1u));
  KILN_CALL(library().cuStreamSynchronize(a), CUDA_SUCCESS);
}

TEST_CASE("a null driver takes launches, counts them and does nothing") {
  const DeviceSession session(R"({"null": true})");
  const CUfunction fill = get(load(), "fill");
  const CUdeviceptr a = allocate(16);
  KILN_OK(library().cuMemsetD32Async(a, 3, 4, nullptr));
  for (int i = 0; i < 10; ++i) KILN_OK(launch(fill, config(1, 4), a, 5u));
  KILN_CALL(launch(fill, config(0, 4), a, 5u), CUDA_ERROR_INVALID_VALUE);
  CHECK(read(a, 4) == std::vector<std::uint32_t>(4, 3));
  CHECK(library().count("launches") == 10);
}

TEST_CASE("a null driver still fails the launches that the script names, and runs nothing of graphs") {
  const DeviceSession session(R"({"null": true, "kernels": [{"name": "poke", "n": 2, "fault": "launch_failure"}]})");
  Library& lib = library();
  const CUfunction poke = get(load(), "poke");
  const CUstream stream = make_stream();
  auto* host = static_cast<std::uint32_t*>(allocate_pinned(4));
  *host = 3;
  const auto at = reinterpret_cast<CUdeviceptr>(host);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  KILN_OK(lib.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  KILN_OK(launch(poke, config(1, 1, stream), at, 9u));
  KILN_OK(lib.cuStreamEndCapture(stream, &graph));
  KILN_OK(lib.cuGraphInstantiate(&exec, graph, 0));
  KILN_OK(lib.cuGraphLaunch(exec, stream));
  KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_SUCCESS);
  CHECK(*host == 3);
  KILN_OK(launch(poke, config(1, 1, stream), at, 9u));
  KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  CHECK(*host == 3);
}
