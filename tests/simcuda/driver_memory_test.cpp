// Device memory, page-locked memory, copies and fills.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "simcuda/driver_fixture.h"

using namespace kiln::simcuda::test;

namespace {

std::vector<std::uint32_t> counted(std::size_t n) {
  std::vector<std::uint32_t> v(n);
  std::iota(v.begin(), v.end(), 1u);
  return v;
}

std::vector<std::uint32_t> read(CUdeviceptr from, std::size_t n, CUstream stream = nullptr) {
  std::vector<std::uint32_t> v(n, 0xdeadbeef);
  KILN_OK(library().cuMemcpyDtoHAsync(v.data(), from, n * 4, stream));
  KILN_OK(library().cuStreamSynchronize(stream));
  return v;
}

void open_when_reported(Gate& gate) {
  while (library().last_report()[0] == '\0') std::this_thread::yield();
  gate.open();
}

}  // namespace

TEST_CASE("bytes go to the device, across it and back") {
  const DeviceSession session;
  Library& lib = library();
  const auto host = counted(1000);
  const CUdeviceptr a = allocate(4000), b = allocate(4000);
  CHECK(a % 256 == 0);
  KILN_OK(lib.cuMemcpyHtoDAsync(a, host.data(), 4000, nullptr));
  KILN_OK(lib.cuMemcpyDtoDAsync(b, a, 4000, nullptr));
  CHECK(read(b, 1000) == host);
  KILN_OK(lib.cuMemcpyDtoDAsync(b + 4, a, 8, nullptr));
  CHECK(read(b, 4) == std::vector<std::uint32_t>{1, 1, 2, 4});
}

TEST_CASE("a copy of rows moves the rows and leaves what lies between them") {
  const DeviceSession session;
  Library& lib = library();
  const auto host = counted(12);  // three rows of four words
  const CUdeviceptr a = allocate(400), b = allocate(400);
  KILN_OK(lib.cuMemsetD32Async(a, 99, 100, nullptr));
  KILN_OK(lib.cuMemsetD32Async(b, 77, 100, nullptr));
  CUDA_MEMCPY2D up{};
  up.srcMemoryType = CU_MEMORYTYPE_HOST;
  up.srcHost = host.data();
  up.srcPitch = 16;
  up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  up.dstDevice = a;
  up.dstPitch = 24;
  up.WidthInBytes = 12;
  up.Height = 3;
  KILN_OK(lib.cuMemcpy2DAsync(&up, nullptr));
  CHECK(read(a, 16) == std::vector<std::uint32_t>{1, 2, 3, 99, 99, 99, 5, 6, 7, 99, 99, 99, 9, 10, 11, 99});
  CUDA_MEMCPY2D across = up;
  across.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  across.srcDevice = a;
  across.srcPitch = 24;
  across.srcXInBytes = 4;
  across.srcY = 1;
  across.dstDevice = b;
  across.dstPitch = 8;
  across.WidthInBytes = 8;
  across.Height = 2;
  KILN_OK(lib.cuMemcpy2DAsync(&across, nullptr));
  CHECK(read(b, 5) == std::vector<std::uint32_t>{6, 7, 10, 11, 77});
  std::vector<std::uint32_t> back(6, 55);
  CUDA_MEMCPY2D down = across;
  down.srcXInBytes = down.srcY = 0;
  down.dstMemoryType = CU_MEMORYTYPE_HOST;
  down.dstHost = back.data();
  down.dstPitch = 12;
  KILN_OK(lib.cuMemcpy2DAsync(&down, nullptr));  // pageable: made when the call returns
  CHECK(back == std::vector<std::uint32_t>{1, 2, 55, 5, 6, 55});

  const auto refused = [&](auto change) {
    CUDA_MEMCPY2D copy = across;
    change(copy);
    KILN_CALL(lib.cuMemcpy2DAsync(&copy, nullptr), CUDA_ERROR_INVALID_VALUE);
  };
  refused([](CUDA_MEMCPY2D& c) { c.dstPitch = 7; });
  refused([](CUDA_MEMCPY2D& c) { c.srcPitch = 11; });  // x and width together
  refused([](CUDA_MEMCPY2D& c) { c.srcPitch = std::size_t{1} << 31; });
  refused([](CUDA_MEMCPY2D& c) { c.srcMemoryType = static_cast<CUmemorytype>(3); });
  refused([](CUDA_MEMCPY2D& c) { c.srcDevice = 16; });
  refused([](CUDA_MEMCPY2D& c) { c.Height = 60; });  // over the end of the memory
  KILN_CALL(lib.cuMemcpy2DAsync(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  across.Height = 0;
  KILN_OK(lib.cuMemcpy2DAsync(&across, nullptr));
}

TEST_CASE("fills write bytes and words") {
  const DeviceSession session;
  Library& lib = library();
  const CUdeviceptr a = allocate(64);
  KILN_OK(lib.cuMemsetD8Async(a, 0xab, 64, nullptr));
  KILN_OK(lib.cuMemsetD32Async(a + 4, 0x01020304, 2, nullptr));
  CHECK(read(a, 4) == std::vector<std::uint32_t>{0xabababab, 0x01020304, 0x01020304, 0xabababab});
  KILN_CALL(lib.cuMemsetD32Async(a + 2, 0, 1, nullptr), CUDA_ERROR_INVALID_VALUE);  // not aligned to a word
  KILN_CALL(lib.cuMemsetD32Async(a, 0, 17, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemsetD32Async(a, 0, std::numeric_limits<std::size_t>::max() / 2, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemsetD8Async(a + 60, 0, 5, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemsetD8Async(0, 0, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemsetD8Async(a, 0, 0, nullptr), CUDA_SUCCESS);
}

TEST_CASE("copies that leave an allocation, start outside of one or name nothing are refused") {
  const DeviceSession session;
  Library& lib = library();
  const CUdeviceptr a = allocate(64), freed = allocate(64), b = allocate(64);
  KILN_OK(lib.cuMemFree(freed));
  char host[128] = {};
  struct Row {
    const char* what;
    CUdeviceptr to;
    std::size_t bytes;
  };
  for (const Row& row :
       {Row{"one byte too many", a, 65}, Row{"from the middle over the end", a + 60, 5}, Row{"behind the end", a + 64, 1},
        Row{"before the beginning", a - 1, 2}, Row{"null", 0, 4}, Row{"host memory", reinterpret_cast<CUdeviceptr>(host), 4},
        Row{"freed memory", freed, 4}, Row{"all of the address space", a, ~std::size_t{0}}}) {
    CAPTURE(row.what);
    KILN_CALL(lib.cuMemcpyHtoDAsync(row.to, host, row.bytes, nullptr), CUDA_ERROR_INVALID_VALUE);
    KILN_CALL(lib.cuMemcpyDtoHAsync(host, row.to, row.bytes, nullptr), CUDA_ERROR_INVALID_VALUE);
    KILN_CALL(lib.cuMemcpyDtoDAsync(row.to, b, row.bytes, nullptr), CUDA_ERROR_INVALID_VALUE);
    KILN_CALL(lib.cuMemcpyDtoDAsync(b, row.to, row.bytes, nullptr), CUDA_ERROR_INVALID_VALUE);
    CHECK(std::string(lib.last_report()).find("is refused") != std::string::npos);
  }
  KILN_CALL(lib.cuMemcpyHtoDAsync(a, nullptr, 4, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemcpyDtoHAsync(nullptr, a, 4, nullptr), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemcpyHtoDAsync(a, reinterpret_cast<void*>(b), 4, nullptr),
            CUDA_ERROR_INVALID_VALUE);                                     // a device address is no host address
  KILN_CALL(lib.cuMemcpyHtoDAsync(a, nullptr, 0, nullptr), CUDA_SUCCESS);  // no bytes: nothing to refuse
  KILN_CALL(lib.cuCtxSynchronize(), CUDA_SUCCESS);                         // a refused call does no harm
}

TEST_CASE("allocations have limits and are counted") {
  const DeviceSession session(R"({"devices": ["tiny"]})");
  Library& lib = library();
  std::size_t free_bytes = 0, total = 0;
  KILN_OK(lib.cuMemGetInfo(&free_bytes, &total));
  CHECK(total == 1048576);
  CHECK(free_bytes == total);
  CUdeviceptr a = 0, b = 0;
  KILN_CALL(lib.cuMemAlloc(&a, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemAlloc(nullptr, 4), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemAlloc(&a, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
  KILN_CALL(lib.cuMemAlloc(&a, ~std::size_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
  KILN_OK(lib.cuMemAlloc(&a, 768 * 1024));
  KILN_CALL(lib.cuMemAlloc(&b, 512 * 1024), CUDA_ERROR_OUT_OF_MEMORY);
  KILN_OK(lib.cuMemGetInfo(&free_bytes, nullptr));
  CHECK(free_bytes == total - 768 * 1024);
  KILN_OK(lib.cuMemFree(a));
  KILN_OK(lib.cuMemAlloc(&b, 512 * 1024));
  CHECK(lib.count("allocations") == 1);
}

TEST_CASE("only the beginning of a live allocation can be freed, once") {
  const DeviceSession session;
  Library& lib = library();
  const CUdeviceptr a = allocate(64);
  KILN_CALL(lib.cuMemFree(0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemFree(a + 4), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemFree(a), CUDA_SUCCESS);
  KILN_CALL(lib.cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemFreeHost(nullptr), CUDA_ERROR_INVALID_VALUE);
  int local = 0;
  KILN_CALL(lib.cuMemFreeHost(&local), CUDA_ERROR_INVALID_VALUE);
  void* pinned = allocate_pinned(16);
  KILN_CALL(lib.cuMemFreeHost(static_cast<char*>(pinned) + 8), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemFreeHost(pinned), CUDA_SUCCESS);
  KILN_CALL(lib.cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a copy from pageable memory has read it when the call returns") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(8);
  std::uint32_t host[2] = {1, 2};
  {
    const Gate gate(stream);
    KILN_OK(lib.cuMemcpyHtoDAsync(a, host, 8, stream));
    host[0] = host[1] = 99;
  }
  CHECK(read(a, 2, stream) == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("a copy from page-locked memory reads it when the stream gets there: who reuses it too early sends the wrong bytes") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(8);
  auto* host = static_cast<std::uint32_t*>(allocate_pinned(8));
  host[0] = 1, host[1] = 2;
  {
    const Gate gate(stream);
    KILN_OK(lib.cuMemcpyHtoDAsync(a, host, 8, stream));
    host[1] = 99;
  }
  CHECK(read(a, 2, stream) == std::vector<std::uint32_t>{1, 99});
}

TEST_CASE("a copy to pageable memory is done when the call returns, one to page-locked memory when the stream gets there") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(4);
  KILN_OK(lib.cuMemsetD32Async(a, 7, 1, stream));
  std::uint32_t pageable = 0;
  KILN_OK(lib.cuMemcpyDtoHAsync(&pageable, a, 4, stream));
  CHECK(pageable == 7);
  auto* pinned = static_cast<std::uint32_t*>(allocate_pinned(4));
  *pinned = 0;
  {
    const Gate gate(stream);
    KILN_OK(lib.cuMemcpyDtoHAsync(pinned, a, 4, stream));
    KILN_CALL(lib.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK(*pinned == 0);
  }
  KILN_OK(lib.cuStreamSynchronize(stream));
  CHECK(*pinned == 7);
}

TEST_CASE("page-locked memory is device memory at its own address") {
  const DeviceSession session;
  Library& lib = library();
  auto* host = static_cast<std::uint32_t*>(allocate_pinned(16));
  for (unsigned i = 0; i < 4; ++i) host[i] = i;
  CUdeviceptr address = 0;
  KILN_OK(lib.cuMemHostGetDevicePointer(&address, host, 0));
  CHECK(address == reinterpret_cast<CUdeviceptr>(host));
  const CUdeviceptr a = allocate(16);
  KILN_OK(lib.cuMemcpyDtoDAsync(a, address, 16, nullptr));
  CHECK(read(a, 4) == std::vector<std::uint32_t>{0, 1, 2, 3});
  KILN_CALL(lib.cuMemcpyDtoDAsync(a, address + 8, 16, nullptr), CUDA_ERROR_INVALID_VALUE);  // over its end
  KILN_CALL(lib.cuMemHostGetDevicePointer(&address, host, 1), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemHostGetDevicePointer(nullptr, host, 0), CUDA_ERROR_INVALID_VALUE);
  int local = 0;
  KILN_CALL(lib.cuMemHostGetDevicePointer(&address, &local, 0), CUDA_ERROR_INVALID_VALUE);
  void* pointer = nullptr;
  KILN_CALL(lib.cuMemHostAlloc(&pointer, 0, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemHostAlloc(nullptr, 4, 0), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemHostAlloc(&pointer, 4, 8), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuMemHostAlloc(&pointer, std::size_t{1} << 50, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("page-locked memory that is freed while a copy uses it is a violation") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(8);
  auto* host = static_cast<std::uint32_t*>(allocate_pinned(8));
  host[0] = host[1] = 5;
  Gate gate(stream);
  KILN_OK(lib.cuMemcpyHtoDAsync(a, host, 8, stream));
  std::thread opener([&] { open_when_reported(gate); });  // the call waits for what runs, and the gate does
  KILN_CALL(lib.cuMemFreeHost(host), CUDA_ERROR_ILLEGAL_ADDRESS);
  opener.join();
  CHECK(std::string(lib.last_report()).find("is freed while a copy of 8 bytes from host to device") != std::string::npos);
  KILN_CALL(lib.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("freeing device memory waits for the work of its device") {
  const DeviceSession session;
  Library& lib = library();
  const CUstream stream = make_stream();
  const CUdeviceptr a = allocate(8), b = allocate(8);
  auto* host = static_cast<std::uint32_t*>(allocate_pinned(8));
  Gate gate(stream);
  KILN_OK(lib.cuMemsetD32Async(a, 3, 2, stream));
  KILN_OK(lib.cuMemcpyDtoHAsync(host, a, 8, stream));
  std::thread opener([&] { gate.open(); });
  KILN_CALL(lib.cuMemFree(b), CUDA_SUCCESS);
  CHECK(host[0] == 3);
  CHECK(std::string(lib.last_report()).empty());  // nobody was given b
  opener.join();
}

TEST_CASE("device memory that is freed while work uses it is reported, and a fault if the script says so") {
  for (const bool fault : {false, true}) {
    CAPTURE(fault);
    const DeviceSession session(fault ? R"({"free_in_use_is_fault": true})" : "{}");
    Library& lib = library();
    const CUstream stream = make_stream();
    const CUdeviceptr a = allocate(8);
    Gate gate(stream);
    KILN_OK(lib.cuMemsetD32Async(a, 4, 2, stream));
    std::thread opener([&] { open_when_reported(gate); });
    KILN_CALL(lib.cuMemFree(a), fault ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS);
    opener.join();
    CHECK(std::string(lib.last_report()).find("is freed while a fill of 8 bytes") != std::string::npos);
    KILN_CALL(lib.cuStreamSynchronize(stream), fault ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS);
  }
}

TEST_CASE("pointer attributes tell whose memory it is") {
  const DeviceSession session(R"({"devices": ["h200", "a100"]})", 1);
  Library& lib = library();
  const CUdeviceptr a = allocate(100);
  void* pinned = allocate_pinned(32);
  const auto p = reinterpret_cast<CUdeviceptr>(pinned);
  CUcontext context = nullptr;
  unsigned type = 0;
  int ordinal = -1;
  CUdeviceptr start = 0;
  std::size_t size = 0;
  KILN_OK(lib.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, a + 50));
  CHECK(context == session.context);
  KILN_OK(lib.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  KILN_OK(lib.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a));
  CHECK(ordinal == 1);
  KILN_OK(lib.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + 99));
  CHECK(start == a);
  KILN_OK(lib.cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a));
  CHECK(size == 100);
  KILN_OK(lib.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 8));
  CHECK(type == CU_MEMORYTYPE_HOST);
  KILN_OK(lib.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 8));
  CHECK(start == p);
  KILN_CALL(lib.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 100), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&type)),
            CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuPointerGetAttribute(&type, static_cast<CUpointer_attribute>(999), a), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("devices have addresses of their own, and copies go from one to the other") {
  const DeviceSession session(R"({"devices": ["h200", "t4"]})");
  Library& lib = library();
  const CUdeviceptr on_h200 = allocate(16);
  CUcontext t4 = nullptr;
  KILN_OK(lib.cuDevicePrimaryCtxRetain(&t4, 1));
  KILN_OK(lib.cuCtxPushCurrent(t4));
  const CUdeviceptr on_t4 = allocate(16);
  CHECK(on_t4 != on_h200);
  KILN_OK(lib.cuMemsetD32Async(on_t4, 42, 4, nullptr));
  KILN_OK(lib.cuMemcpyDtoDAsync(on_h200, on_t4, 16, nullptr));
  CHECK(read(on_h200, 4) == std::vector<std::uint32_t>(4, 42));
  KILN_OK(lib.cuMemFree(on_h200));  // by its address, whichever context is current
}

TEST_CASE("the fault script fails the n-th allocation, and those after it") {
  const DeviceSession session(
      R"({"allocations": [{"n": 2}, {"n": 4, "times": 2, "code": "CUDA_ERROR_UNKNOWN"}, {"host": true, "n": 1, "code": 304}]})");
  Library& lib = library();
  const CUresult expected[] = {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS, CUDA_ERROR_UNKNOWN, CUDA_ERROR_UNKNOWN, CUDA_SUCCESS};
  for (const CUresult code : expected) {
    CUdeviceptr address = 0;
    KILN_CALL(lib.cuMemAlloc(&address, 16), code);
  }
  void* pointer = nullptr;
  KILN_CALL(lib.cuMemHostAlloc(&pointer, 16, 0), CUDA_ERROR_OPERATING_SYSTEM);
  KILN_CALL(lib.cuMemHostAlloc(&pointer, 16, 0), CUDA_SUCCESS);
}
