#include "fuzz/runtime/faults.h"

#include <stdexcept>

#include "cpu/cpu_device.h"
#include "src/server.h"
#include "support/sim.h"

namespace kiln::fuzz {
namespace {

struct Call {
  const char* name;
  int code;
};
// What a driver may say no to without harm, and what it may say.
constexpr Call kRefusals[] = {{"cuLaunchKernelEx", 1},
                              {"cuLaunchKernelEx", 2},
                              {"cuLaunchKernelEx", 701},
                              {"cuMemcpyHtoDAsync", 1},
                              {"cuMemcpyHtoDAsync", 2},
                              {"cuMemcpyDtoHAsync", 1},
                              {"cuMemcpyDtoDAsync", 2},
                              {"cuMemcpy2DAsync", 1},
                              {"cuMemsetD8Async", 2},
                              {"cuGraphLaunch", 2},
                              {"cuGraphInstantiate", 2},
                              {"cuStreamBeginCapture", 2},
                              {"cuStreamEndCapture", 2},
                              {"cuEventCreate", 2},
                              {"cuStreamCreateWithPriority", 2},
                              {"cuStreamWaitEvent", 2},
                              {"cuMemHostGetDevicePointer", 1},
                              {"cuMemGetInfo", 999},
                              {"cuModuleGetFunction", 500},
                              {"cuFuncGetAttribute", 1},
                              {"cuStreamCreate", 2}};
// What leaves nobody knowing what the device does, or is the end of the context.
constexpr Call kLosses[] = {{"cuEventRecord", 999},     {"cuEventQuery", 999},  {"cuLaunchKernelEx", 700}, {"cuMemcpyHtoDAsync", 700},
                            {"cuMemcpyDtoHAsync", 719}, {"cuGraphLaunch", 716}, {"cuMemAlloc", 700},       {"cuStreamWaitEvent", 214}};
constexpr const char* kKernelFaults[] = {"illegal_address", "misaligned", "launch_failure", "assert"};

}  // namespace

const char* name(FaultKind kind) {
  switch (kind) {
    case FaultKind::None: return "none";
    case FaultKind::Refusals: return "refusals";
    case FaultKind::Loss: return "loss";
  }
  return "";
}

Client fault_client(const std::string& device, FaultKind kind) {
  const bool simulated = device == "h200" || device == "t4";
  const int ordinal = device == "t4" ? test::kSimT4 : test::kSimH200;
  if (kind == FaultKind::Refusals && !simulated)
    throw std::invalid_argument("only the simulated driver refuses calls: --faults refusals is for --device h200 and t4");
  if (simulated) {
    const Client client = test::sim_client(ordinal);  // well, and kept by the process
    return kind == FaultKind::Refusals ? Client(test::make_sim_server(ordinal)) : client;
  }
  if (device == "cpu" && kind == FaultKind::Loss) return Client(rt::make_server(rt::make_cpu_device({.workers = 3, .arch = {}}).value()));
  if (kind == FaultKind::Loss) throw std::invalid_argument("a real device is not to be lost");
  return Client::open(device).value();
}

Faults::Faults(FaultKind kind, const Client& client, std::uint64_t seed, std::uint64_t operations)
    : kind_(kind), simulated_(client.properties().kind == "cuda"), random_(seed) {
  until_ = kind == FaultKind::Loss ? 1 + random_() % operations : 1;
}
Faults::~Faults() = default;

bool Faults::next() {
  if (kind_ == FaultKind::None) return false;
  const std::lock_guard lock(mutex_);
  if (until_ == 0 || --until_ != 0) return false;
  if (kind_ == FaultKind::Refusals) {
    until_ = 1 + random_() % 60;
    script_.reset();
    script_ = std::make_unique<test::SimScript>(refusal());
    return false;
  }
  if (!simulated_ || random_() % 4 == 0) return true;
  script_ = std::make_unique<test::SimScript>(loss());
  return false;
}

void Faults::end() {
  const std::lock_guard lock(mutex_);
  until_ = 0;
  script_.reset();
}

// The next but some of one kind of call, once or some times in a row.
std::string Faults::refusal() {
  const std::string when = R"("n": )" + std::to_string(1 + random_() % 12) + R"(, "times": )" + std::to_string(1 + random_() % 3);
  switch (random_() % 6) {
    case 0: return R"({"quiet": true, "allocations": [{)" + when + R"(, "code": 2}]})";
    case 1: return R"({"quiet": true, "allocations": [{)" + when + R"(, "code": 2, "host": true}]})";
    case 2:
      return R"({"quiet": true, "loads": [{"n": 1, "code": )" + std::string(random_() % 2 == 0 ? "2" : "218") + R"(, "log": "injected"}]})";
    default: break;
  }
  const Call& call = kRefusals[random_() % std::size(kRefusals)];
  return R"({"quiet": true, "calls": [{"name": ")" + std::string(call.name) + R"(", )" + when + R"(, "code": )" +
         std::to_string(call.code) + "}]}";
}

std::string Faults::loss() {
  const std::string n = std::to_string(1 + random_() % 20);
  if (random_() % 2 == 0) {
    return R"({"quiet": true, "kernels": [{"n": )" + n + R"(, "fault": ")" + kKernelFaults[random_() % std::size(kKernelFaults)] +
           R"(", "runs": )" + (random_() % 2 == 0 ? "true" : "false") + "}]}";
  }
  const Call& call = kLosses[random_() % std::size(kLosses)];
  return R"({"quiet": true, "calls": [{"name": ")" + std::string(call.name) + R"(", "n": )" + n + R"(, "code": )" +
         std::to_string(call.code) + R"(, "sticky": )" + (call.code == 999 ? "false" : "true") + "}]}";
}

}  // namespace kiln::fuzz
