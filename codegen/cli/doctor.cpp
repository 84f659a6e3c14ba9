// kiln doctor: what works here and, for the rest, why not. Works on a bare machine.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>

#include "command.h"
#include "compile.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/configuration.h"
#include "kiln/runtime/cuda.h"
#include "kiln/runtime/environment.h"
#include "names.h"
#include "tools.h"

namespace kiln::cli {
namespace {

struct Check {
  std::string what;
  const char* state;  // "ok", "missing" (nothing needs it), "warning" (something may fail because of it), "broken" (something needs it)
  std::string text, version = {}, path = {};
  std::string remedy = {};  // what to do, where something can be done
};

Check check_code_generator() {
  const CodegenHandle& handle = code_generator();
  if (handle.compiler == nullptr)
    return {"code generator",
            "broken",
            joined(handle.error),
            "",
            "",
            "set KILN_CODEGEN to the path of the libkiln_codegen.so of this build, or install it beside libkiln_runtime.so; its LLVM has "
            "to be installed, too"};
  const std::string version = handle.compiler->llvm_version();
  return {"code generator", "ok", handle.path + ", LLVM " + version, version, handle.path};
}

Check check_ptx() {
  const CodegenHandle& handle = code_generator();
  if (handle.compiler == nullptr) return {"PTX architectures", "broken", "no code generator", "", "", "as of the code generator"};
  return {"PTX architectures", "ok", plain_list(handle.compiler->ptx_architectures())};
}

Check check_cpu() {
  const Result<Client> client = Client::open("cpu");
  if (!client)
    return {"CPU device", "broken", joined(client.error().data().message),
            "",           "",       "see the configuration; KILN_CPU_WORKERS sets how many threads it starts"};
  const DeviceProperties& p = client.value().properties();
  return {"CPU device", "ok", p.name + ", " + p.arch + ", " + std::to_string(p.workers) + " workers", p.arch};
}

// The states of the driver that something can be done about.
std::string driver_remedy(const std::string& state) {
  if (state == "no library" || state == "stub")
    return "for GPUs install NVIDIA's driver, which has libcuda.so.1, or set KILN_CUDA_LIBRARY to that library; without one kernels run on "
           "the CPU";
  if (state == "too old") return "install a newer driver";
  if (state == "symbol missing") return "install a newer driver, or unset KILN_CUDA_LIBRARY where it names another library";
  if (state == "init failed")
    return "see whether nvidia-smi works; a driver that was just updated needs its kernel module loaded anew, most simply by a restart";
  if (state == "no device") return "unset CUDA_VISIBLE_DEVICES where it hides the GPUs; in a container, give it the devices";
  return "";
}

Check check_driver() {
  const cuda::DriverReport driver = cuda::driver_report();
  return {"CUDA driver",
          driver.ok ? "ok" : "missing",
          driver.ok ? driver.sentence : driver.state + ": " + driver.sentence,
          "",
          driver.file,
          driver.ok ? std::string() : driver_remedy(driver.state)};
}

Check check_cuda() {
  const Result<Client> client = Client::open("cuda");
  if (client)
    return {"CUDA device", "ok", client.value().properties().name + ", " + client.value().properties().arch,
            client.value().properties().arch};
  return {"CUDA device", "missing", joined(client.error().data().message), "", "", "as of the CUDA driver"};
}

// Nothing needs it: kernels are compiled anew.
Check check_store() {
  const Result<EnvironmentReport> r = environment_report();
  if (!r) return {"kernels kept", "broken", joined(r.error().text()), "", "", "see the configuration"};
  if (r->layers.empty() && r->off)
    return {"kernels kept",
            "missing",
            "KILN_ENV is off",
            "",
            "",
            "unset KILN_ENV, or set it to a folder, so that kernels are not compiled anew each time"};
  if (r->layers.empty())
    return {"kernels kept", "missing", r->problem + "; KILN_ENV sets the folder", "", "", "set KILN_ENV to a folder that can be written"};
  std::string text, file;
  bool good = true;
  for (const EnvironmentLayer& l : r->layers) {
    good = good && l.problem.empty();
    if (file.empty()) file = l.file;
    text += (text.empty() ? "" : ", ") + l.path + (l.writable ? ": " : " (only read): ");
    if (!l.problem.empty()) text += l.problem;
    else if (!l.exists) text += "nothing yet";
    else text += std::to_string(l.entries) + " kernels, " + std::to_string(l.bytes >> 10) + " KiB";
  }
  return {"kernels kept",
          good ? "ok" : "missing",
          text + " (at most " + std::to_string(r->most_bytes >> 10) + " KiB)",
          "",
          file,
          good ? "" : "set KILN_ENV to a folder that can be written; kiln env verify looks at what is there"};
}

// The line of what it says of its version that has `mark`, from there on; else the first line.
std::string version_of(const std::string& program, const std::string& mark) {
  const ProgramResult said = run_program({program, "--version"});
  const std::size_t at = said.out.find(mark);
  if (said.status != 0) return "";
  const std::size_t from = at == std::string::npos ? 0 : at;
  return said.out.substr(from, said.out.find('\n', from) - from);
}

Check check_program(const std::string& what, const std::vector<std::string>& names, const char* mark, const std::string& for_what,
                    const std::string& remedy) {
  const std::string program = find_program(names);
  if (program.empty()) return {what, "missing", "not on PATH; " + for_what, "", "", remedy};
  const std::string version = version_of(program, mark);
  if (version.empty())
    return {what, "warning", program + " does not say its version; " + for_what,
            "",   program,   "see whether " + program + " --version works"};
  return {what, "ok", program + ", " + version + " (" + for_what + ")", version, program};
}

Check check_ptxas() {
  return check_program("ptxas", {"ptxas"}, "release ", "only --emit cubin and show --side use it",
                       "for cubins install a CUDA toolkit and put its bin folder on PATH");
}
Check check_nvdisasm() {
  return check_program("nvdisasm", {"nvdisasm"}, "release ", "only show --side uses it",
                       "for machine code of GPUs install a CUDA toolkit and put its bin folder on PATH");
}
Check check_objdump() {
  return check_program("objdump", {"llvm-objdump", "objdump"}, "version ", "only show --side uses it",
                       "for machine code of CPUs install llvm or binutils");
}

Check check_configuration(const Result<Configuration>& configuration) {
  if (!configuration)
    return {"configuration",
            "broken",
            joined(configuration.error().text()),
            "",
            "",
            "mend it as the text says, or set KILN_CONFIG to another file or to off"};
  std::string text = configuration->file.empty() ? "no file" : configuration->file;
  for (const ConfiguredSetting& s : configuration->settings) {
    text += ", " + (s.key.empty() ? s.variable : s.key) + " = " + (s.value.empty() ? "(not set)" : s.value);
    if (s.from != "default") text += " (" + s.from + ")";
  }
  return {"configuration", "ok", text, "", configuration->file};
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
          return {"environment",
                  "broken",
                  text + "; " + s.from + ": " + joined(client.error().data().message),
                  "",
                  "",
                  "set KILN_DEVICE to cpu or to a device that kiln devices lists, or unset it"};
  return {"environment", "ok", text.empty() ? "no KILN_ variable is set" : text};
}

// Code of kernels is written into memory and then made executable.
Check check_executable_memory() {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool good = memory != MAP_FAILED && mprotect(memory, page, PROT_READ | PROT_EXEC) == 0;
  const int error = errno;
  if (memory != MAP_FAILED) munmap(memory, page);
  if (good) return {"executable memory", "ok", "can be made"};
  return {
      "executable memory",
      "broken",
      std::string("cannot be made: ") + std::strerror(error),
      "",
      "",
      "kernels on the CPU need it: let the process have it in the policy of SELinux, seccomp or the service (MemoryDenyWriteExecute=no)"};
}

// What a limit of the process, or of its group, leaves for compilers, threads and buffers.
Check check_limits() {
  constexpr std::uint64_t kAddress = std::uint64_t{4} << 30, kFiles = 64, kMemory = std::uint64_t{1} << 30;
  std::string text, low;
  const auto add = [&](const std::string& name, std::uint64_t value, bool unlimited, std::uint64_t least, const std::string& unit,
                       const std::string& remedy) {
    text += (text.empty() ? "" : ", ") + name + " " + (unlimited ? "unlimited" : std::to_string(value) + unit);
    if (!unlimited && value < least) low += (low.empty() ? "" : "; ") + remedy;
  };
  const auto limit = [&](int which, const char* name, std::uint64_t least, const char* unit, const char* remedy) {
    rlimit r{};
    if (getrlimit(static_cast<__rlimit_resource>(which), &r) == 0) add(name, r.rlim_cur, r.rlim_cur == RLIM_INFINITY, least, unit, remedy);
  };
  limit(RLIMIT_AS, "address space", kAddress, " bytes", "ulimit -v unlimited: LLVM and the memory of devices need address space");
  limit(RLIMIT_DATA, "data", kAddress, " bytes", "ulimit -d unlimited");
  limit(RLIMIT_NOFILE, "open files", kFiles, "", "ulimit -n 1024");
  limit(RLIMIT_NPROC, "processes and threads of the user", std::thread::hardware_concurrency() * 2 + 16, "",
        "ulimit -u unlimited: each device has a thread for each hardware thread");
  std::ifstream group("/sys/fs/cgroup/memory.max");
  std::uint64_t bytes = 0;
  if (group >> bytes)
    add("memory of the control group", bytes, false, kMemory, " bytes", "give the container or service at least 1 GiB of memory");
  return {"limits", low.empty() ? "ok" : "warning", text, "", "", low};
}

}  // namespace

int doctor_command(const Options& options) {
  const Result<Configuration> configuration = kiln::configuration();
  const std::vector<Check> checks{check_code_generator(),
                                  check_ptx(),
                                  {"CPU level", "ok", host_level(), host_level()},
                                  check_cpu(),
                                  check_driver(),
                                  check_cuda(),
                                  check_ptxas(),
                                  check_nvdisasm(),
                                  check_objdump(),
                                  check_store(),
                                  check_configuration(configuration),
                                  check_environment(configuration),
                                  check_executable_memory(),
                                  check_limits()};
  bool good = true;
  Json all = Json::array();
  for (const Check& c : checks) {
    good = good && std::string(c.state) != "broken";
    const auto text = [](const std::string& t) { return t.empty() ? Json(nullptr) : Json(t); };
    all.push_back({{"check", c.what},
                   {"state", c.state},
                   {"text", c.text},
                   {"version", text(c.version)},
                   {"path", text(c.path)},
                   {"remedy", text(c.remedy)}});
  }
  if (options.json) {
    Json settings = Json::array();
    if (configuration)
      for (const ConfiguredSetting& s : configuration->settings)
        settings.push_back({{"key", s.key}, {"variable", s.variable}, {"value", s.value}, {"from", s.from}});
    print_json({{"version", KILN_VERSION}, {"ok", good}, {"checks", all}, {"configuration", settings}});
  } else {
    std::printf("kiln %s\n", KILN_VERSION);
    for (const Check& c : checks) {
      std::printf("%-8s %-18s %s\n", c.state, c.what.c_str(), c.text.c_str());
      if (!c.remedy.empty()) std::printf("%-8s %-18s to do: %s\n", "", "", c.remedy.c_str());
    }
    std::printf(good ? "kernels can be compiled and run here\n" : "something that is needed is broken, see above\n");
  }
  return good ? kDone : kFailed;
}

}  // namespace kiln::cli
