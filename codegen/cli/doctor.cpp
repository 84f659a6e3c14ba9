// kiln doctor: what works here and, for the rest, why not. Works on a bare machine.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "command.h"
#include "compile.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/cuda.h"
#include "names.h"

namespace kiln::cli {
namespace {

struct Check {
  std::string what;
  const char* state;  // "ok", "missing" (nothing needs it), "broken" (something needs it)
  std::string text;
};

Check check_code_generator() {
  const CodegenHandle& handle = code_generator();
  if (handle.compiler == nullptr) return {"code generator", "broken", joined(handle.error)};
  return {"code generator", "ok", handle.path + ", LLVM " + handle.compiler->llvm_version()};
}

Check check_ptx() {
  const CodegenHandle& handle = code_generator();
  if (handle.compiler == nullptr) return {"PTX architectures", "broken", "no code generator"};
  return {"PTX architectures", "ok", plain_list(handle.compiler->ptx_architectures())};
}

Check check_cpu() {
  const Result<Client> client = Client::open("cpu");
  if (!client) return {"CPU device", "broken", client.error().data().message};
  const DeviceProperties& p = client.value().properties();
  return {"CPU device", "ok", p.name + ", " + p.arch + ", " + std::to_string(p.workers) + " workers"};
}

Check check_driver() {
  const cuda::DriverReport driver = cuda::driver_report();
  return {"CUDA driver", driver.ok ? "ok" : "missing", driver.ok ? driver.sentence : driver.state + ": " + driver.sentence};
}

Check check_cuda() {
  const Result<Client> client = Client::open("cuda");
  if (client) return {"CUDA device", "ok", client.value().properties().name + ", " + client.value().properties().arch};
  return {"CUDA device", "missing", client.error().data().message};
}

Check check_ptxas() {
  const std::string program = find_ptxas();
  if (program.empty()) return {"ptxas", "missing", "not on PATH; only --emit cubin would use it"};
  return {"ptxas", "ok", program + " (only --emit cubin uses it)"};
}

// What is read somewhere in Kiln; those of its own tests and of the simulated driver are not for users, and no mistakes.
bool is_known(std::string_view name) {
  constexpr std::string_view known[] = {"KILN_DEVICE",    "KILN_CUDA_LIBRARY", "KILN_CODEGEN", "KILN_PTXAS",
                                        "KILN_LOG_BYTES", "KILN_VERIFY_LLVM",  "KILN_JOBS"};
  return std::find(std::begin(known), std::end(known), name) != std::end(known) || name.starts_with("KILN_TEST_") ||
         name.starts_with("KILN_SIMCUDA_");
}

Check check_environment() {
  std::string text;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view set = *entry, name = set.substr(0, set.find('='));
    if (!name.starts_with("KILN_")) continue;
    text += (text.empty() ? "" : ", ") + std::string(set) + (is_known(name) ? "" : " (nothing reads a variable of that name)");
  }
  // What programs that name no device get.
  if (const char* named = std::getenv("KILN_DEVICE"); named != nullptr && *named != 0) {
    if (const Result<Client> client = Client::open(named); !client)
      return {"environment", "broken", text + "; KILN_DEVICE: " + client.error().data().message};
  }
  return {"environment", "ok", text.empty() ? "no KILN_ variable is set" : text};
}

}  // namespace

int doctor_command(const Options& options) {
  const std::vector<Check> checks{
      check_code_generator(), check_ptx(),        {"CPU level", "ok", host_level()}, check_cpu(), check_driver(), check_cuda(),
      check_ptxas(),          check_environment()};
  bool good = true;
  Json all = Json::array();
  for (const Check& c : checks) {
    good = good && std::string(c.state) != "broken";
    all.push_back({{"check", c.what}, {"state", c.state}, {"text", c.text}});
  }
  if (options.json) {
    print_json({{"version", KILN_VERSION}, {"ok", good}, {"checks", all}});
  } else {
    std::printf("kiln %s\n", KILN_VERSION);
    for (const Check& c : checks) std::printf("%-8s %-18s %s\n", c.state, c.what.c_str(), c.text.c_str());
    std::printf(good ? "kernels can be compiled and run here\n" : "something that is needed is broken, see above\n");
  }
  return good ? kDone : kFailed;
}

}  // namespace kiln::cli
