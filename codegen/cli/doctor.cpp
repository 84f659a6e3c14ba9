// kiln doctor: what works here and, for the rest, why not. Works on a bare machine.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "command.h"
#include "compile.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/configuration.h"
#include "kiln/runtime/cuda.h"
#include "kiln/runtime/environment.h"
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

// Nothing needs it: kernels are compiled anew.
Check check_store() {
  const Result<EnvironmentReport> r = environment_report();
  if (!r) return {"kernels kept", "broken", joined(r.error().text())};
  if (r->layers.empty()) return {"kernels kept", "missing", r->off ? "KILN_ENV is off" : r->problem + "; KILN_ENV sets the folder"};
  std::string text;
  bool good = true;
  for (const EnvironmentLayer& l : r->layers) {
    good = good && l.problem.empty();
    text += (text.empty() ? "" : ", ") + l.path + (l.writable ? ": " : " (only read): ");
    if (!l.problem.empty()) text += l.problem;
    else if (!l.exists) text += "nothing yet";
    else text += std::to_string(l.entries) + " kernels, " + std::to_string(l.bytes >> 10) + " KiB";
  }
  return {"kernels kept", good ? "ok" : "missing", text + " (at most " + std::to_string(r->most_bytes >> 10) + " KiB)"};
}

Check check_ptxas() {
  const std::string program = find_ptxas();
  if (program.empty()) return {"ptxas", "missing", "not on PATH; only --emit cubin would use it"};
  return {"ptxas", "ok", program + " (only --emit cubin uses it)"};
}

Check check_configuration(const Result<Configuration>& configuration) {
  if (!configuration) return {"configuration", "broken", joined(configuration.error().text())};
  std::string text = configuration->file.empty() ? "no file" : configuration->file;
  for (const ConfiguredSetting& s : configuration->settings) {
    text += ", " + (s.key.empty() ? s.variable : s.key) + " = " + (s.value.empty() ? "(not set)" : s.value);
    if (s.from != "default") text += " (" + s.from + ")";
  }
  return {"configuration", "ok", text};
}

// What is read somewhere in Kiln; those of its own tests and of the simulated driver are not for users, and no mistakes.
bool is_known(std::string_view name, const Result<Configuration>& configuration) {
  constexpr std::string_view known[] = {"KILN_PTXAS", "KILN_VERIFY_LLVM", "KILN_JOBS"};
  if (!configuration) return true;  // that is told
  const auto& settings = configuration->settings;
  return std::find(std::begin(known), std::end(known), name) != std::end(known) || name.starts_with("KILN_TEST_") ||
         name.starts_with("KILN_SIMCUDA_") ||
         std::any_of(settings.begin(), settings.end(), [&](const ConfiguredSetting& s) { return s.variable == name; });
}

Check check_environment(const Result<Configuration>& configuration) {
  std::string text;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view set = *entry, name = set.substr(0, set.find('='));
    if (!name.starts_with("KILN_")) continue;
    text +=
        (text.empty() ? "" : ", ") + std::string(set) + (is_known(name, configuration) ? "" : " (nothing reads a variable of that name)");
  }
  // What programs that name no device get.
  if (configuration)
    for (const ConfiguredSetting& s : configuration->settings)
      if (s.variable == "KILN_DEVICE" && !s.value.empty())
        if (const Result<Client> client = Client::open(s.value); !client)
          return {"environment", "broken", text + "; " + s.from + ": " + client.error().data().message};
  return {"environment", "ok", text.empty() ? "no KILN_ variable is set" : text};
}

}  // namespace

int doctor_command(const Options& options) {
  const Result<Configuration> configuration = kiln::configuration();
  const std::vector<Check> checks{check_code_generator(),
                                  check_ptx(),
                                  {"CPU level", "ok", host_level()},
                                  check_cpu(),
                                  check_driver(),
                                  check_cuda(),
                                  check_ptxas(),
                                  check_store(),
                                  check_configuration(configuration),
                                  check_environment(configuration)};
  bool good = true;
  Json all = Json::array();
  for (const Check& c : checks) {
    good = good && std::string(c.state) != "broken";
    all.push_back({{"check", c.what}, {"state", c.state}, {"text", c.text}});
  }
  if (options.json) {
    Json settings = Json::array();
    if (configuration)
      for (const ConfiguredSetting& s : configuration->settings)
        settings.push_back({{"key", s.key}, {"variable", s.variable}, {"value", s.value}, {"from", s.from}});
    print_json({{"version", KILN_VERSION}, {"ok", good}, {"checks", all}, {"configuration", settings}});
  } else {
    std::printf("kiln %s\n", KILN_VERSION);
    for (const Check& c : checks) std::printf("%-8s %-18s %s\n", c.state, c.what.c_str(), c.text.c_str());
    std::printf(good ? "kernels can be compiled and run here\n" : "something that is needed is broken, see above\n");
  }
  return good ? kDone : kFailed;
}

}  // namespace kiln::cli
