#include "limits.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "amounts.h"
#include "command.h"

namespace kiln::cli {
namespace {

// Sanitizers reserve more address space than any limit leaves; the parent still looks at what is used (watch.h).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsAddresses = false;
#else
constexpr bool kLimitsAddresses = true;
#endif

void (*stage_sink)(const char*, Mark) = nullptr;
bool begun = false;
std::uint64_t memory_limit = 0;  // 0: none

void limit_addresses(std::uint64_t bytes) {
  rlimit limit{};
  if (!kLimitsAddresses || getrlimit(RLIMIT_AS, &limit) != 0) return;
  // The hard limit stays: what is lifted later could not come back otherwise.
  limit.rlim_cur = bytes == 0 || bytes > limit.rlim_max ? limit.rlim_max : bytes;
  setrlimit(RLIMIT_AS, &limit);
}

std::uint64_t addresses_in_use() {
  unsigned long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
    if (std::fscanf(file, "%llu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Limits parse_limits(const Options& options) {
  Limits limits;
  if (!options.timeout.empty())
    limits.seconds = static_cast<double>(amount(options.timeout, "--timeout", {{'s', 1}, {'m', 60}, {'h', 3600}}));
  if (!options.memory.empty()) {
    limits.memory = size_amount(options.memory, "--memory");
    constexpr std::uint64_t least = std::uint64_t{256} << 20;
    if (limits.memory != 0 && limits.memory < least)
      usage("--memory '" + options.memory + "': the compiler alone takes more; give 256M or more, or 0 for no limit");
  }
  return limits;
}

void now(const char* stage) {
  if (stage_sink != nullptr) stage_sink(stage, Mark::Stage);
}

void begin_limits() {
  if (stage_sink == nullptr || begun) return;
  begun = true;
  if (memory_limit != 0) limit_addresses(addresses_in_use() + memory_limit);
  stage_sink("opening the source", Mark::Begin);
}

void recorded() {
  if (stage_sink == nullptr) return;
  limit_addresses(0);
  stage_sink("preparing the launch", Mark::Free);
}

Compiling::Compiling(bool for_gpu) {
  if (stage_sink == nullptr) return;
  if (memory_limit != 0 && !for_gpu) limit_addresses(addresses_in_use() + memory_limit);
  stage_sink("in the code generator", Mark::Compiling);
}
Compiling::~Compiling() {
  if (stage_sink == nullptr) return;
  limit_addresses(0);
  stage_sink("running the kernel", Mark::Free);
}

void enter_limits(std::uint64_t memory, int parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailed);  // it was gone before
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  memory_limit = memory;
}

void tell_stages(void (*sink)(const char*, Mark)) { stage_sink = sink; }

std::string out_of_memory() {
  if (memory_limit == 0) return "out of memory";
  return "out of memory at the limit of " + size_text(memory_limit) + "; --memory SIZE allows more";
}

}  // namespace kiln::cli
