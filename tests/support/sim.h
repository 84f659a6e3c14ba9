// The simulated CUDA driver as a device of the tests.
#pragma once
#include <memory>
#include <string>

#include "cuda/cuda_device.h"
#include "kiln/runtime/client.h"
#include "src/server.h"

namespace kiln::test {

std::string sim_library();  // the path, for KILN_CUDA_LIBRARY

// The simulated driver, opened once in this process, with an H200 (cuda:0), a T4 (1), a device of tiny limits (2) and an A100 (3).
const cuda::Driver& sim_driver();
inline constexpr int kSimH200 = 0, kSimT4 = 1, kSimTiny = 2, kSimA100 = 3;
// Those that tests of every device run on, by the names that tests use.
struct SimDevice {
  const char* name;
  const char* described;  // for KILN_SIMCUDA_DEVICES
  int ordinal;
};
inline constexpr SimDevice kSimDevices[] = {{"cuda sim h200", "h200", kSimH200}, {"cuda sim t4", "t4", kSimT4}};

// A server of its own on one of them; the driver starts anew as for sim_client().
std::shared_ptr<Server> make_sim_server(int ordinal = kSimH200, const rt::CudaOptions& options = {});
// The process's client of one of them. Where one of these devices was poisoned, the driver starts anew first, so that the caller gets one
// that is well and one fault makes one test fail; clients, streams and buffers from before are of no use then. Ask for it in each test.
Client sim_client(int ordinal);
// All clients of this process start anew, on devices that are well and with the driver's counts at their beginning. Nobody may use one
// meanwhile.
void renew_sim();
bool is_simulated(const Client& client);  // made by sim_client, and not replaced since

// What other CUDA code of the process does: the device's primary context is retained and current while one lives. Throws
// std::runtime_error.
class CurrentContext {
 public:
  explicit CurrentContext(int ordinal);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;

 private:
  int ordinal_;
};

// The fault script while one lives; see tests/simcuda/README.md. Throws std::runtime_error when it is wrong.
class SimScript {
 public:
  explicit SimScript(const std::string& json);
  ~SimScript();
  SimScript(const SimScript&) = delete;
};
unsigned long long sim_count(const char* what);
std::string sim_report();

}  // namespace kiln::test
