// Which symbols the simulated driver has, and what cuGetProcAddress says of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "simcuda/driver_fixture.h"
#include "support/process.h"

using namespace kiln::simcuda::test;

namespace {

struct Entry {
  const char* name;
  const char* symbol;
  int since;
};
const Entry kEntries[] = {
#define KILN_ROW(name, symbol, version, params) {#name, #symbol, version},
    KILN_CUDA_ENTRIES(KILN_ROW)
#undef KILN_ROW
};

}  // namespace

TEST_CASE("the simulated driver exports exactly the entry points of the list and its own interface") {
  const auto nm = kiln::test::run_process({"nm", "-D", "--defined-only", KILN_BINARY_DIR "/lib/libkiln_simcuda.so"});
  REQUIRE(nm.status == 0);
  std::set<std::string> expected{"cuGetProcAddress",   "cuGetProcAddress_v2",      "kiln_simcuda_configure",
                                 "kiln_simcuda_reset", "kiln_simcuda_last_report", "kiln_simcuda_count"};
  for (const Entry& e : kEntries) expected.insert(e.symbol);
  std::set<std::string> found;
  std::istringstream lines(nm.out);
  for (std::string line; std::getline(lines, line);) {
    std::string name = line.substr(line.find_last_of(' ') + 1);
    if (name.starts_with("__asan") || name.starts_with("__odr_asan")) continue;  // of the sanitizer
    found.insert(name);
  }
  for (const std::string& name : expected) CHECK_MESSAGE(found.contains(name), "missing: " << name);
  for (const std::string& name : found) CHECK_MESSAGE(expected.contains(name), "not of the list: " << name);
}

TEST_CASE("cuGetProcAddress finds an entry from the version on that has its signature") {
  const Session session;
  Library& lib = library();
  for (const Entry& e : kEntries) {
    CAPTURE(e.name);
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    KILN_CALL(lib.cuGetProcAddress(e.name, &function, e.since, 0, &status), CUDA_SUCCESS);
    CHECK(function == symbol(e.symbol));
    CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
    KILN_CALL(lib.cuGetProcAddress(e.name, &function, e.since - 10, 0, &status), CUDA_SUCCESS);
    CHECK(function == nullptr);
    CHECK(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  }
}

TEST_CASE("cuGetProcAddress answers wrong questions as documented") {
  const Session session;
  Library& lib = library();
  void* function = &lib;
  CUdriverProcAddressQueryResult status{};
  KILN_CALL(lib.cuGetProcAddress("cuNoSuchThing", &function, 12000, 0, &status), CUDA_SUCCESS);
  CHECK(function == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  KILN_CALL(lib.cuGetProcAddress("cuMemAlloc_v2", &function, 12000, 0, &status), CUDA_SUCCESS);  // the base name is wanted
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  KILN_CALL(lib.cuGetProcAddress("cuInit", &function, 13010, 0, &status), CUDA_ERROR_INVALID_VALUE);  // newer than the driver
  KILN_CALL(lib.cuGetProcAddress(nullptr, &function, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGetProcAddress("cuInit", nullptr, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGetProcAddress("cuInit", &function, 12000, 4, &status), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGetProcAddress("cuInit", &function, 12000, 0, nullptr), CUDA_SUCCESS);  // the status is optional

  const auto older = reinterpret_cast<CUresult (*)(const char*, void**, int, std::uint64_t)>(symbol("cuGetProcAddress"));
  KILN_CALL(older("cuInit", &function, 11030, 0), CUDA_SUCCESS);
  CHECK(function == symbol("cuInit"));
  KILN_CALL(older("cuNoSuchThing", &function, 11030, 0), CUDA_ERROR_NOT_FOUND);
  KILN_CALL(older("cuLaunchKernelEx", &function, 11030, 0), CUDA_ERROR_NOT_FOUND);
}

TEST_CASE("a driver of an older version has no younger entries") {
  const Session session(R"({"driver_version": 11050})");
  Library& lib = library();
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  KILN_CALL(lib.cuGetProcAddress("cuLaunchKernelEx", &function, 11050, 0, &status), CUDA_SUCCESS);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  KILN_CALL(lib.cuGetProcAddress("cuLaunchKernelEx", &function, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
  KILN_CALL(lib.cuGetProcAddress("cuGraphInstantiate", &function, 11050, 0, &status), CUDA_SUCCESS);
  CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
}

TEST_CASE("the fault script can hide an entry") {
  const Session session(R"({"missing": ["cuStreamWaitEvent"]})");
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  KILN_CALL(library().cuGetProcAddress("cuStreamWaitEvent", &function, 12000, 0, &status), CUDA_SUCCESS);
  CHECK(function == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}
