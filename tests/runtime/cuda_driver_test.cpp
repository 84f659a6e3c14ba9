// Opening the driver: each thing that can be wrong with it is a state with a sentence, and none of them harms the process.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "cuda/driver.h"
#include "cuda/errors.h"
#include "support/sim.h"

using namespace kiln;
using cuda::DriverState;

namespace {

std::string fake(const std::string& name) { return KILN_BINARY_DIR "/lib/fakecuda/libcuda_" + name + ".so"; }
bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("a driver that has everything is ok, and every entry point is there") {
  const cuda::Driver d = cuda::open_driver({fake("null")});
  CHECK_MESSAGE(d.ok(), d.sentence);
  CHECK(d.file == fake("null"));
  CHECK(d.version == 13000);
  CHECK(d.devices == 1);
#define KILN_THERE(entry, symbol, since, params) CHECK_MESSAGE((d.call.entry != nullptr), #symbol);
  KILN_CUDA_ENTRIES(KILN_THERE)
#undef KILN_THERE
  CHECK(says(d.sentence, "13.0"));
}

TEST_CASE("what is wrong with a driver is a state, with the file tried and what to do") {
  struct Row {
    const char* fake;
    DriverState state;
    const char* words[2];
  };
  const Row rows[] = {
      {"nothing", DriverState::SymbolMissing, {"cuInit", "install"}},
      {"stub", DriverState::Stub, {"stub library", "34"}},
      {"broken", DriverState::InitFailed, {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "reboot"}},
      {"hidden", DriverState::NoDevice, {"no GPU", "CUDA_VISIBLE_DEVICES"}},
      {"empty", DriverState::NoDevice, {"no GPU", "CUDA_VISIBLE_DEVICES"}},
      {"old", DriverState::TooOld, {"11.8", "12.0"}},
      {"incomplete", DriverState::SymbolMissing, {"cuLaunchKernelEx", "install"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.fake);
    const cuda::Driver d = cuda::open_driver({fake(row.fake)});
    CAPTURE(d.sentence);
    CHECK(d.state == row.state);
    CHECK(d.file == fake(row.fake));
    CHECK(says(d.sentence, fake(row.fake)));
    for (const char* word : row.words) CHECK(says(d.sentence, word));
  }
}

TEST_CASE("where no library can be opened, all that was tried is named") {
  const cuda::Driver d = cuda::open_driver({"libkiln_no_such.so.1", "/nowhere/libcuda.so"});
  CHECK(d.state == DriverState::NoLibrary);
  CHECK(d.file == "libkiln_no_such.so.1, /nowhere/libcuda.so");
  for (const char* word : {"libkiln_no_such.so.1", "/nowhere/libcuda.so", "install the NVIDIA driver"}) CHECK(says(d.sentence, word));
}

TEST_CASE("a stub does not hide a driver behind it, and is named when there is none") {
  CHECK(cuda::open_driver({fake("stub"), fake("null")}).file == fake("null"));
  CHECK(cuda::open_driver({fake("stub"), fake("null")}).ok());
  const cuda::Driver d = cuda::open_driver({"libkiln_no_such.so.1", fake("stub")});
  CHECK(d.state == DriverState::Stub);
  CHECK(d.file == fake("stub"));
}

TEST_CASE("a driver of the lowest version is ok without the entry points that came later") {
  const cuda::Driver d = cuda::open_driver({fake("minimal")});
  CHECK_MESSAGE(d.ok(), d.sentence);
  CHECK((d.call.cuFuncGetParamInfo == nullptr));
  CHECK((d.call.cuLaunchKernelEx != nullptr));
}

TEST_CASE("a result of the driver becomes an error with cause and remedy, and with the code that the operation asks for") {
  using cuda::Phase;
  struct Row {
    cuda::CUresult result;
    Phase phase;
    ErrorCode code;
    bool poisoned, refusal;
    const char* words[2];
  };
  const Row rows[] = {
      {cuda::CUDA_ERROR_INVALID_VALUE, Phase::Launch, ErrorCode::TooManyResources, false, true, {"zero", "1024 threads"}},
      {cuda::CUDA_ERROR_NOT_FOUND, Phase::Load, ErrorCode::NotFound, false, false, {"no entry of that name", "check the name"}},
      {cuda::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, Phase::Launch, ErrorCode::TooManyResources, false, true, {"registers", "smaller blocks"}},
      {cuda::CUDA_ERROR_ILLEGAL_INSTRUCTION, Phase::Wait, ErrorCode::DevicePoisoned, true, false, {"trap", "checked"}},
      {cuda::CUDA_ERROR_NO_BINARY_FOR_GPU, Phase::Load, ErrorCode::CompileUnsupported, false, true, {"another architecture", "--arch"}},
      {cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, Phase::Load, ErrorCode::CompileUnsupported, false, true, {"newer version", "update"}},
      {cuda::CUDA_ERROR_INVALID_PTX, Phase::Load, ErrorCode::CompileUnsupported, false, true, {"does not accept", "log"}},
      {cuda::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, Phase::Launch, ErrorCode::TooManyResources, false, true, {"cooperative", "fewer"}},
      {cuda::CUDA_ERROR_INVALID_CLUSTER_SIZE, Phase::Launch, ErrorCode::TooManyResources, false, true, {"cluster", "8"}},
      {cuda::CUDA_ERROR_ILLEGAL_ADDRESS, Phase::Launch, ErrorCode::LaunchDevicePoisoned, true, false, {"not its own", "checked"}},
      {cuda::CUDA_ERROR_MISALIGNED_ADDRESS, Phase::Transfer, ErrorCode::IoDevicePoisoned, true, false, {"multiple", "offsets"}},
      {cuda::CUDA_ERROR_INVALID_HANDLE, Phase::Launch, ErrorCode::LaunchUnknown, false, false, {"another device", "this device"}},
      {cuda::CUDA_ERROR_OUT_OF_MEMORY, Phase::Allocate, ErrorCode::OutOfMemory, false, false, {"used up", "free"}},
      {cuda::CUDA_ERROR_OUT_OF_MEMORY, Phase::Launch, ErrorCode::LaunchOutOfMemory, false, false, {"used up", "free"}},
      {static_cast<cuda::CUresult>(987), Phase::Wait, ErrorCode::Generic, false, false, {"987", "undocumented"}},
  };
  for (const Row& row : rows) {
    const Error error = cuda::driver_error(row.result, row.phase, "doing something", "a_kernel");
    CAPTURE(error.text());
    CHECK(error.code() == row.code);
    CHECK(error.is_device_poisoned() == row.poisoned);
    CHECK(error.is_refusal() == row.refusal);
    CHECK(error.kernel() == "a_kernel");
    CHECK(says(error.text(), "doing something"));
    CHECK(says(error.text(), std::to_string(static_cast<int>(row.result))));
    for (const char* word : row.words) CHECK(says(error.text(), word));
  }
}

TEST_CASE("every result that we know has the driver's name for it, and those after which CUDA needs a new process lose the device") {
  // By cuda.h: the process must be terminated and relaunched, the context is gone, or the hardware is broken.
  constexpr int kLost[] = {4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911};
  int known = 0;
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i);
    const auto code = static_cast<cuda::CUresult>(i);
    CHECK(cuda::is_sticky(code) == (std::find(std::begin(kLost), std::end(kLost), i) != std::end(kLost)));
    const cuda::ResultRow& row = cuda::result_row(code);
    if (row.name == std::string("an undocumented result")) continue;
    ++known;
    const char* name = nullptr;
    CHECK(test::sim_driver().call.cuGetErrorName(code, &name) == cuda::CUDA_SUCCESS);
    CHECK(std::string(row.name) == name);
    CHECK(std::string(row.cause) != "");
    CHECK(std::string(row.remedy) != "");
  }
  CHECK(known >= 73);
}

TEST_CASE("once a device is poisoned, what every operation says has the first failure in it") {
  using cuda::Phase;
  const Error first = cuda::driver_error(cuda::CUDA_ERROR_ILLEGAL_ADDRESS, Phase::Wait, "waiting", "bad");
  for (const Phase phase : {Phase::Open, Phase::Load, Phase::Launch, Phase::Transfer, Phase::Allocate, Phase::Wait}) {
    const Error later = cuda::poisoned_error(first, phase, "some GPU");
    CHECK(later.is_device_poisoned());
    CHECK(says(later.text(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    CHECK(says(later.text(), "bad"));
  }
}
