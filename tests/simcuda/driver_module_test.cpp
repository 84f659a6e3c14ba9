// Modules, what the JIT says, functions and what is known of them, occupancy.
#include <doctest/doctest.h>

#include <cstring>

#include "simcuda/driver_ptx.h"

using namespace kiln::simcuda::test;

namespace {

struct Loaded {
  CUresult code;
  std::string error, info;
  std::size_t error_size, info_size;
};

Loaded try_load(const void* image, std::size_t room = 1024) {
  std::vector<char> error(room + 1, 'x'), info(room + 1, 'x');
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
  void* values[] = {info.data(), reinterpret_cast<void*>(room), error.data(), reinterpret_cast<void*>(room), reinterpret_cast<void*>(1)};
  CUmodule module = nullptr;
  const CUresult code = library().cuModuleLoadDataEx(&module, image, 5, options, values);
  CHECK((module != nullptr) == (code == CUDA_SUCCESS));
  CHECK(error[room] == 'x');  // nothing beyond the buffers
  CHECK(info[room] == 'x');
  return {code, error.data(), info.data(), reinterpret_cast<std::size_t>(values[3]), reinterpret_cast<std::size_t>(values[1])};
}

}  // namespace

TEST_CASE("a module is loaded, found in and unloaded") {
  const DeviceSession session;
  Library& lib = library();
  const CUmodule module = load();
  CUfunction fill = nullptr, again = nullptr, none = nullptr;
  KILN_CALL(lib.cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
  KILN_CALL(lib.cuModuleGetFunction(&again, module, "fill"), CUDA_SUCCESS);
  CHECK(fill == again);
  KILN_CALL(lib.cuModuleGetFunction(&none, module, "filling"), CUDA_ERROR_NOT_FOUND);
  KILN_CALL(lib.cuModuleGetFunction(&none, module, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuModuleGetFunction(nullptr, module, "fill"), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuModuleGetFunction(&none, nullptr, "fill"), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuModuleUnload(module), CUDA_SUCCESS);
  KILN_CALL(lib.cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuModuleGetFunction(&none, module, "fill"), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(launch(fill, config()), CUDA_ERROR_INVALID_HANDLE);
  CHECK(lib.count("modules") == 0);
}

TEST_CASE("a module's globals have addresses and their first values") {
  const DeviceSession session;
  Library& lib = library();
  const CUmodule module = load();
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  std::uint32_t words[4] = {};
  KILN_OK(lib.cuModuleGetGlobal(&address, &bytes, module, "counter"));
  CHECK(bytes == 4);
  KILN_OK(lib.cuMemcpyDtoHAsync(words, address, 4, nullptr));
  CHECK(words[0] == 5);
  KILN_OK(lib.cuModuleGetGlobal(&address, nullptr, module, "table"));
  KILN_OK(lib.cuModuleGetGlobal(nullptr, &bytes, module, "table"));
  CHECK(bytes == 16);
  KILN_OK(lib.cuMemcpyDtoHAsync(words, address, 16, nullptr));
  CHECK(words[3] == 4);
  KILN_CALL(lib.cuModuleGetGlobal(&address, &bytes, module, "fill"), CUDA_ERROR_NOT_FOUND);
  KILN_CALL(lib.cuModuleGetGlobal(&address, &bytes, module, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuModuleGetGlobal(&address, &bytes, nullptr, "table"), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("what cannot be loaded says why in the error log") {
  const DeviceSession session;
  const unsigned char elf[64] = {0x7f, 'E', 'L', 'F'}, fatbin[64] = {0x50, 0xed, 0x55, 0xba}, junk[64] = {0x01, 0x02};
  struct Row {
    const char* what;
    std::string image;
    CUresult code;
    const char* log;
  };
  const std::string good = kernels_ptx();
  const auto text = [](const unsigned char* bytes) { return std::string(reinterpret_cast<const char*>(bytes), 64); };
  for (const Row& row : {Row{"a cubin", text(elf), CUDA_ERROR_NO_BINARY_FOR_GPU, "cubin"},
                         Row{"a fat binary", text(fatbin), CUDA_ERROR_NO_BINARY_FOR_GPU, "fat binary"},
                         Row{"junk", text(junk), CUDA_ERROR_INVALID_IMAGE, "neither"},
                         Row{"nothing", std::string(64, '\0'), CUDA_ERROR_INVALID_IMAGE, "neither"},
                         Row{"a newer PTX version", kernels_ptx("sm_75", "9.9"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "9.9"},
                         Row{"a broken line", good + "\nbroken !\n", CUDA_ERROR_INVALID_PTX, "line"}}) {
    CAPTURE(row.what);
    const Loaded loaded = try_load(row.image.c_str());
    CHECK(loaded.code == row.code);
    CHECK_MESSAGE(loaded.error.find(row.log) != std::string::npos, loaded.error);
    CHECK(loaded.error_size == loaded.error.size());
    CHECK(loaded.info.empty());
    CHECK(loaded.info_size == 0);
    const Loaded small = try_load(row.image.c_str(), 8);
    CHECK(small.error.size() == 7);
    CHECK(small.error_size == 7);
  }
  const Loaded newer = try_load(kernels_ptx("sm_100", "8.6").c_str());
  const bool refused = newer.code == CUDA_ERROR_NO_BINARY_FOR_GPU || newer.code == CUDA_ERROR_INVALID_PTX;
  CHECK_MESSAGE(refused, newer.code);
}

TEST_CASE("what the JIT did is in the information log") {
  const DeviceSession session;
  const Loaded loaded = try_load(kernels_ptx().c_str());
  CHECK(loaded.code == CUDA_SUCCESS);
  CHECK(loaded.info.find("'fill'") != std::string::npos);
  CHECK(loaded.info_size == loaded.info.size());
  CHECK(loaded.error.empty());
  CHECK(loaded.error_size == 0);
}

TEST_CASE("an older driver refuses PTX that it does not know") {
  for (const int version : {12000, 12040, 13000}) {
    CAPTURE(version);
    const DeviceSession session("{\"driver_version\": " + std::to_string(version) + "}");
    CHECK(try_load(kernels_ptx("sm_75", "8.0").c_str()).code == CUDA_SUCCESS);
    CHECK(try_load(kernels_ptx("sm_75", "8.4").c_str()).code == (version >= 12040 ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
    CHECK(try_load(kernels_ptx("sm_75", "9.0").c_str()).code == (version >= 13000 ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
  }
}

TEST_CASE("wrong arguments and injected failures of loading") {
  const DeviceSession session(R"({"loads": [{"n": 2, "code": "CUDA_ERROR_INVALID_PTX", "log": "line 3: because"}, {"n": 3, "code": 2}]})");
  Library& lib = library();
  const std::string ptx = kernels_ptx();
  CUmodule module = nullptr;
  char buffer[8];
  CUjit_option sized[] = {CU_JIT_ERROR_LOG_BUFFER}, unknown[] = {static_cast<CUjit_option>(99)};
  void* values[] = {buffer};
  KILN_CALL(lib.cuModuleLoadDataEx(nullptr, ptx.c_str(), 0, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuModuleLoadDataEx(&module, nullptr, 0, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuModuleLoadDataEx(&module, ptx.c_str(), 1, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuModuleLoadDataEx(&module, ptx.c_str(), 1, unknown, values), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuModuleLoadDataEx(&module, ptx.c_str(), 1, sized, values), CUDA_ERROR_INVALID_VALUE);  // a buffer of no size
  CHECK(try_load(ptx.c_str()).code == CUDA_SUCCESS);
  const Loaded second = try_load(ptx.c_str());
  CHECK(second.code == CUDA_ERROR_INVALID_PTX);
  CHECK(second.error == "line 3: because");
  CHECK(try_load(ptx.c_str()).code == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(try_load(ptx.c_str()).code == CUDA_SUCCESS);
}

TEST_CASE("functions know their attributes and parameters") {
  const DeviceSession session;
  Library& lib = library();
  const CUmodule module = load();
  const CUfunction shared = get(module, "shared"), at_most = get(module, "at_most"), wide = get(module, "wide"),
                   fixed = get(module, "fixed");
  const auto attribute = [&](CUfunction f, CUfunction_attribute a) {
    int value = -1;
    KILN_OK(lib.cuFuncGetAttribute(&value, a, f));
    return value;
  };
  CHECK(attribute(shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 40000);
  CHECK(attribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 49152 - 40000);
  CHECK(attribute(shared, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024);
  CHECK(attribute(at_most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 128);
  CHECK(attribute(fixed, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 128);
  CHECK(attribute(wide, CU_FUNC_ATTRIBUTE_NUM_REGS) > 0);
  CHECK(attribute(wide, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) == 0);
  CHECK(attribute(wide, CU_FUNC_ATTRIBUTE_PTX_VERSION) == 78);
  CHECK(attribute(wide, CU_FUNC_ATTRIBUTE_BINARY_VERSION) == 90);
  CHECK(attribute(wide, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) == 0);
  int value = 0;
  KILN_CALL(lib.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(77), wide), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuFuncGetAttribute(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, wide), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuFuncSetAttribute(wide, CU_FUNC_ATTRIBUTE_NUM_REGS, 8), CUDA_ERROR_INVALID_VALUE);  // can only be read

  const std::size_t layout[][2] = {{0, 1}, {8, 8}, {16, 2}, {32, 24}, {56, 4}, {64, 8}};
  std::size_t offset = 0, size = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    KILN_OK(lib.cuFuncGetParamInfo(wide, i, &offset, &size));
    CHECK(offset == layout[i][0]);
    CHECK(size == layout[i][1]);
  }
  KILN_CALL(lib.cuFuncGetParamInfo(wide, 6, &offset, &size), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuFuncGetParamInfo(wide, 0, nullptr, &size), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuFuncGetParamInfo(wide, 0, &offset, nullptr), CUDA_SUCCESS);
  KILN_CALL(lib.cuFuncGetParamInfo(nullptr, 0, &offset, &size), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("the dynamic shared memory of a function can be raised to the opt-in limit less its static part") {
  const DeviceSession session;
  Library& lib = library();
  const CUfunction shared = get(load(), "shared");
  constexpr auto attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  KILN_CALL(lib.cuFuncSetAttribute(shared, attribute, 232448 - 40000), CUDA_SUCCESS);
  KILN_CALL(lib.cuFuncSetAttribute(shared, attribute, 232448 - 40000 + 1), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuFuncSetAttribute(shared, attribute, -1), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuFuncSetAttribute(nullptr, attribute, 0), CUDA_ERROR_INVALID_HANDLE);
  int value = 0;
  KILN_OK(lib.cuFuncGetAttribute(&value, attribute, shared));
  CHECK(value == 232448 - 40000);
}

TEST_CASE("occupancy is what threads, blocks and shared memory leave") {
  const DeviceSession session;
  Library& lib = library();
  const CUmodule module = load();
  const CUfunction none = get(module, "none"), shared = get(module, "shared");
  const auto blocks = [&](CUfunction f, int threads, std::size_t dynamic) {
    int n = -1;
    KILN_OK(lib.cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, threads, dynamic));
    return n;
  };
  CHECK(blocks(none, 1024, 0) == 2);  // 2048 threads
  CHECK(blocks(none, 256, 0) == 8);
  CHECK(blocks(none, 32, 0) == 32);          // 32 blocks
  CHECK(blocks(none, 33, 0) == 32);          // 64 warps
  CHECK(blocks(none, 32, 100 * 1024) == 2);  // 228 KiB, 1 KiB of each block reserved
  CHECK(blocks(none, 32, 232448) == 1);
  CHECK(blocks(none, 32, 232449) == 0);
  CHECK(blocks(shared, 32, 0) == 5);  // 40000 + 1024, in steps of 128
  CHECK(blocks(none, 1025, 0) == 0);
  int n = 0;
  KILN_CALL(lib.cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, none, 0, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, none, 32, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, nullptr, 32, 0), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("the block size of the best occupancy: the largest with which most threads are resident, below a limit") {
  const DeviceSession session;
  Library& lib = library();
  const CUmodule module = load();
  const CUfunction none = get(module, "none"), shared = get(module, "shared");
  struct Best {
    int size, blocks;
    bool operator==(const Best&) const = default;
  };
  const auto best = [&](CUfunction f, std::size_t dynamic, int limit, CUoccupancyB2DSize of_block = nullptr) {
    Best b{-1, -1};
    KILN_OK(lib.cuOccupancyMaxPotentialBlockSize(&b.blocks, &b.size, f, of_block, dynamic, limit));
    return b;
  };
  CHECK(best(none, 0, 0) == Best{1024, 2 * 132});
  CHECK(best(none, 0, 256) == Best{256, 8 * 132});
  CHECK(best(none, 0, 100) == Best{64, 32 * 132});          // 2048 threads; 100 take four warps each, of which 16 blocks fit: 1600
  CHECK(best(none, 100 * 1024, 0) == Best{1024, 2 * 132});  // two blocks, by shared memory
  CHECK(best(none, 232448, 512) == Best{512, 132});
  CHECK(best(none, 232449, 0) == Best{0, 0});         // no block at all
  CHECK(best(shared, 0, 512) == Best{512, 4 * 132});  // five blocks by shared memory, four by threads: 2048
  CHECK(best(shared, 0, 400) == Best{384, 5 * 132});
  CHECK(best(none, 0, 0, [](int size) { return static_cast<std::size_t>(size) * 1024; }).size == 224);  // 228 KiB, one reserved a block
  Best b{};
  KILN_CALL(lib.cuOccupancyMaxPotentialBlockSize(&b.blocks, &b.size, nullptr, nullptr, 0, 0), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuOccupancyMaxPotentialBlockSize(nullptr, &b.size, none, nullptr, 0, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuOccupancyMaxPotentialBlockSize(&b.blocks, nullptr, none, nullptr, 0, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuOccupancyMaxPotentialBlockSize(&b.blocks, &b.size, none, nullptr, 0, -1), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("clusters: what fits, where there are any") {
  const DeviceSession session(R"({"devices": ["h200", "a100"]})");
  Library& lib = library();
  const CUfunction none = get(load(), "none");
  CUlaunchConfig c = config(16, 128);
  int n = 0;
  KILN_OK(lib.cuOccupancyMaxPotentialClusterSize(&n, none, &c));
  CHECK(n == 8);
  KILN_OK(lib.cuFuncSetAttribute(none, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  KILN_OK(lib.cuOccupancyMaxPotentialClusterSize(&n, none, &c));
  CHECK(n == 16);
  KILN_CALL(lib.cuOccupancyMaxActiveClusters(&n, none, &c), CUDA_ERROR_INVALID_CLUSTER_SIZE);  // of which size?
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {4, 1, 1};
  c.attrs = &cluster;
  c.numAttrs = 1;
  KILN_OK(lib.cuOccupancyMaxActiveClusters(&n, none, &c));
  CHECK(n == 132 * 16 / 4);
  KILN_OK(lib.cuFuncSetAttribute(none, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
  KILN_OK(lib.cuFuncSetAttribute(none, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
  KILN_OK(lib.cuFuncSetAttribute(none, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
  KILN_CALL(lib.cuOccupancyMaxActiveClusters(&n, none, &c), CUDA_ERROR_INVALID_CLUSTER_SIZE);  // another one than required
  KILN_OK(lib.cuOccupancyMaxPotentialClusterSize(&n, none, &c));
  CHECK(n == 2);
  CUcontext a100 = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&a100, 1));
  KILN_OK(lib.cuCtxPushCurrent(a100));
  KILN_CALL(lib.cuOccupancyMaxPotentialClusterSize(&n, get(load(), "none"), &c), CUDA_ERROR_NOT_SUPPORTED);
}
