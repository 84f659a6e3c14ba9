// Initialisation, devices, contexts and their stacks.
#include <doctest/doctest.h>

#include <cstring>
#include <thread>

#include "simcuda/driver_fixture.h"

using namespace kiln::simcuda::test;

TEST_CASE("before cuInit nothing but names, versions and cuInit itself answers") {
  const Session session;
  Library& lib = library();
  int value = 0;
  const char* text = nullptr;
  CUcontext context = nullptr;
  KILN_CALL(lib.cuDeviceGetCount(&value), CUDA_ERROR_NOT_INITIALIZED);
  KILN_CALL(lib.cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
  KILN_CALL(lib.cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
  KILN_CALL(lib.cuDriverGetVersion(&value), CUDA_SUCCESS);
  CHECK(value == 13000);
  KILN_CALL(lib.cuDriverGetVersion(nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
  CHECK(std::string(text) == "CUDA_ERROR_ILLEGAL_ADDRESS");
  KILN_CALL(lib.cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
  CHECK(std::string(text) == "an illegal memory access was encountered");
  KILN_CALL(lib.cuGetErrorName(static_cast<CUresult>(77), &text), CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
  KILN_CALL(lib.cuInit(1), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuInit(0), CUDA_SUCCESS);
  KILN_CALL(lib.cuInit(0), CUDA_SUCCESS);
  KILN_CALL(lib.cuDeviceGetCount(&value), CUDA_SUCCESS);
  CHECK(value == 1);
}

TEST_CASE("every result of the type has a name and a text") {
  const Session session;
  for (const int code : {0,   1,   2,   3,   4,   34,  46,  100, 101, 102, 200, 201, 209, 214, 218, 220, 221, 222, 223,
                         300, 301, 304, 400, 401, 500, 600, 700, 701, 702, 709, 710, 714, 715, 716, 717, 718, 719, 720,
                         800, 801, 802, 803, 804, 900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 912, 999}) {
    CAPTURE(code);
    const char* text = nullptr;
    KILN_CALL(library().cuGetErrorName(static_cast<CUresult>(code), &text), CUDA_SUCCESS);
    KILN_CALL(library().cuGetErrorString(static_cast<CUresult>(code), &text), CUDA_SUCCESS);
  }
}

TEST_CASE("cuInit fails with the code that the fault script names") {
  Library& lib = library();
  for (const int code : {34, 100, 803, 999}) {
    CAPTURE(code);
    const Session session("{\"init\": " + std::to_string(code) + "}");
    KILN_CALL(lib.cuInit(0), code);
    int count = 0;
    KILN_CALL(lib.cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  }
  const Session by_name(R"({"init": "CUDA_ERROR_SYSTEM_NOT_READY"})");
  KILN_CALL(lib.cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY);
}

TEST_CASE("a driver without devices says so in cuInit") {
  const Session session(R"({"devices": []})");
  KILN_CALL(library().cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST_CASE("a description that does not exist fails cuInit with a report that names it") {
  const Session session(R"({"devices": ["h200", "rtx99"]})");
  KILN_CALL(library().cuInit(0), CUDA_ERROR_UNKNOWN);
  CHECK(std::string(library().last_report()).find("rtx99") != std::string::npos);
}

TEST_CASE("the described devices have the published limits") {
  const Session session(R"({"devices": ["h200", "a100", "t4", "tiny"]})");
  Library& lib = library();
  KILN_OK(lib.cuInit(0));
  int count = 0;
  KILN_OK(lib.cuDeviceGetCount(&count));
  REQUIRE(count == 4);
  struct Row {
    const char* name;
    int major, minor, multiprocessors, shared, optin, shared_sm, blocks_sm, threads_sm, cluster;
  };
  const Row rows[] = {{"NVIDIA H200", 9, 0, 132, 49152, 232448, 233472, 32, 2048, 1},
                      {"NVIDIA A100-SXM4-80GB", 8, 0, 108, 49152, 166912, 167936, 32, 2048, 0},
                      {"Tesla T4", 7, 5, 40, 49152, 65536, 65536, 16, 1024, 0},
                      {"Kiln Tiny (simulated)", 7, 5, 1, 16384, 16384, 16384, 4, 256, 0}};
  for (int i = 0; i < count; ++i) {
    const Row& row = rows[i];
    CAPTURE(row.name);
    CUdevice device = -1;
    KILN_OK(lib.cuDeviceGet(&device, i));
    char name[64] = {};
    KILN_OK(lib.cuDeviceGetName(name, sizeof name, device));
    CHECK(std::string(name) == row.name);
    KILN_OK(lib.cuDeviceGetName(name, 4, device));
    CHECK(std::string(name) == std::string(row.name).substr(0, 3));
    const std::pair<CUdevice_attribute, int> values[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, row.major},
                                                         {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, row.minor},
                                                         {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, row.multiprocessors},
                                                         {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, row.shared},
                                                         {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, row.optin},
                                                         {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, row.shared_sm},
                                                         {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, row.blocks_sm},
                                                         {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, row.threads_sm},
                                                         {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, row.cluster},
                                                         {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32}};
    for (const auto& [attribute, expected] : values) {
      int value = -1;
      KILN_OK(lib.cuDeviceGetAttribute(&value, attribute, device));
      CHECK_MESSAGE(value == expected, "attribute " << attribute);
    }
  }
  std::size_t bytes = 0;
  KILN_OK(lib.cuDeviceTotalMem(&bytes, 3));
  CHECK(bytes == 1048576);
  CUuuid first{}, second{};
  KILN_OK(lib.cuDeviceGetUuid(&first, 0));
  KILN_OK(lib.cuDeviceGetUuid(&second, 1));
  CHECK(std::memcmp(&first, &second, sizeof first) != 0);
}

TEST_CASE("wrong devices, attributes and null pointers are refused") {
  const Session session;
  Library& lib = library();
  KILN_OK(lib.cuInit(0));
  CUdevice device = 0;
  int value = 0;
  std::size_t bytes = 0;
  char name[8];
  CUuuid uuid;
  CUcontext context = nullptr;
  KILN_CALL(lib.cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  KILN_CALL(lib.cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  KILN_CALL(lib.cuDeviceGet(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuDeviceGetCount(nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(9999), 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 5), CUDA_ERROR_INVALID_DEVICE);
  KILN_CALL(lib.cuDeviceTotalMem(&bytes, 5), CUDA_ERROR_INVALID_DEVICE);
  KILN_CALL(lib.cuDeviceTotalMem(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuDeviceGetName(name, 0, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuDeviceGetName(nullptr, 8, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuDeviceGetName(name, 8, 5), CUDA_ERROR_INVALID_DEVICE);
  KILN_CALL(lib.cuDeviceGetUuid(&uuid, 5), CUDA_ERROR_INVALID_DEVICE);
  KILN_CALL(lib.cuDevicePrimaryCtxRetain(&context, 5), CUDA_ERROR_INVALID_DEVICE);
  KILN_CALL(lib.cuDevicePrimaryCtxRetain(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuDevicePrimaryCtxRelease(5), CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("a primary context is one object with a count") {
  const Session session;
  Library& lib = library();
  KILN_OK(lib.cuInit(0));
  CUcontext first = nullptr, second = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&first, 0));
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&second, 0));
  CHECK(first == second);
  KILN_OK(lib.cuCtxPushCurrent(first));
  const CUdeviceptr address = allocate(16);
  KILN_OK(lib.cuDevicePrimaryCtxRelease(0));
  KILN_OK(lib.cuMemFree(address));
  allocate(16);
  CHECK(lib.count("allocations") == 1);
  KILN_OK(lib.cuDevicePrimaryCtxRelease(0));
  std::size_t bytes = 0;
  KILN_CALL(lib.cuMemGetInfo(&bytes, nullptr), CUDA_ERROR_CONTEXT_IS_DESTROYED);  // still current, but gone
  KILN_CALL(lib.cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuCtxPushCurrent(first), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("what belonged to a released context is dead, also after it is retained again") {
  const DeviceSession session;
  Library& lib = library();
  const CUdeviceptr address = allocate(16);
  const CUstream stream = make_stream();
  const CUevent event = make_event();
  KILN_OK(lib.cuDevicePrimaryCtxRelease(0));
  CUcontext again = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&again, 0));
  CHECK(again == session.context);
  KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  KILN_CALL(lib.cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
  std::size_t free_bytes = 0, total = 0;
  KILN_OK(lib.cuMemGetInfo(&free_bytes, &total));
  CHECK(free_bytes == total);
}

TEST_CASE("each thread has a stack of contexts of its own") {
  const Session session(R"({"devices": ["h200", "t4"]})");
  Library& lib = library();
  KILN_OK(lib.cuInit(0));
  CUcontext h200 = nullptr, t4 = nullptr, current = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&h200, 0));
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&t4, 1));
  CHECK(h200 != t4);
  CUdevice device = -1;
  KILN_CALL(lib.cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuCtxPopCurrent(&current), CUDA_ERROR_INVALID_CONTEXT);
  KILN_OK(lib.cuCtxGetCurrent(&current));
  CHECK(current == nullptr);
  CUdeviceptr address = 0;
  KILN_CALL(lib.cuMemAlloc(&address, 4), CUDA_ERROR_INVALID_CONTEXT);

  KILN_OK(lib.cuCtxPushCurrent(h200));
  KILN_OK(lib.cuCtxPushCurrent(t4));
  KILN_OK(lib.cuCtxGetDevice(&device));
  CHECK(device == 1);
  std::thread([&] {
    CUcontext other = h200;
    KILN_CALL(lib.cuCtxGetCurrent(&other), CUDA_SUCCESS);
    CHECK(other == nullptr);
    KILN_CALL(lib.cuCtxSetCurrent(h200), CUDA_SUCCESS);
  }).join();
  KILN_OK(lib.cuCtxGetCurrent(&current));
  CHECK(current == t4);
  KILN_OK(lib.cuCtxSetCurrent(h200));  // replaces the top
  KILN_OK(lib.cuCtxPopCurrent(&current));
  CHECK(current == h200);
  KILN_OK(lib.cuCtxGetCurrent(&current));
  CHECK(current == h200);
  KILN_OK(lib.cuCtxSetCurrent(nullptr));  // as popping
  KILN_OK(lib.cuCtxGetCurrent(&current));
  CHECK(current == nullptr);
  KILN_OK(lib.cuCtxSetCurrent(nullptr));
  KILN_OK(lib.cuCtxSetCurrent(t4));  // pushes on an empty stack
  KILN_OK(lib.cuCtxGetDevice(&device));
  CHECK(device == 1);
}

TEST_CASE("a handle that is none is no context") {
  const DeviceSession session;
  Library& lib = library();
  int something = 0;
  KILN_CALL(lib.cuCtxPushCurrent(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuCtxPushCurrent(reinterpret_cast<CUcontext>(&something)), CUDA_ERROR_INVALID_CONTEXT);
  KILN_CALL(lib.cuCtxSetCurrent(reinterpret_cast<CUcontext>(make_stream())), CUDA_ERROR_INVALID_CONTEXT);
}
