// The long run of random programs, behind ./dev fuzz-runtime: programs of --each operations, each with the next seed, until there were
// OPERATIONS; the first difference ends it with exit 1.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "fuzz/runtime/program.h"

using namespace kiln;

namespace {

int usage() {
  std::fprintf(stderr,
               "usage: kiln_runtime_fuzz OPERATIONS [--device cpu|h200|t4|cuda] [--seed N] [--faults none|refusals|loss] [--each N]\n"
               "                         [--threads N] [--streams N] [--patience SECONDS]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) try {
  setenv("KILN_ENV", "off", 0);  // millions of random kernels are nobody's to keep
  std::uint64_t operations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0, each = 2000;
  fuzz::ProgramOptions options;
  std::string device = "cpu";
  if (argc % 2 != 0) return usage();
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string a = argv[i], value = argv[i + 1];
    const auto number = [&] { return std::strtoull(value.c_str(), nullptr, 10); };
    if (a == "--seed") options.seed = number();
    else if (a == "--device") device = value;
    else if (a == "--each") each = number();
    else if (a == "--threads") options.threads = static_cast<unsigned>(number());
    else if (a == "--streams") options.streams = static_cast<unsigned>(number());
    else if (a == "--patience") options.patience = static_cast<unsigned>(number());
    else if (a == "--faults" && value == "none") options.faults = fuzz::FaultKind::None;
    else if (a == "--faults" && value == "refusals") options.faults = fuzz::FaultKind::Refusals;
    else if (a == "--faults" && value == "loss") options.faults = fuzz::FaultKind::Loss;
    else return usage();
  }
  if (operations == 0 || each == 0 || options.threads == 0 || options.streams == 0 || options.patience == 0) return usage();
  std::map<std::string, std::uint64_t> counts;
  std::optional<Client> client;
  auto told = std::chrono::steady_clock::now();
  for (std::uint64_t done = 0; done < operations; ++options.seed) {
    options.operations = std::min(each, operations - done);
    options.repeat = "./dev fuzz-runtime " + std::to_string(options.operations) + " --device " + device + " --seed " +
                     std::to_string(options.seed) + " --faults " + fuzz::name(options.faults) + " --each " +
                     std::to_string(options.operations) + " --threads " + std::to_string(options.threads) + " --streams " +
                     std::to_string(options.streams);
    if (!client || options.faults != fuzz::FaultKind::None) {
      client.reset();
      client = fuzz::fault_client(device, options.faults);
    }
    const fuzz::ProgramOutcome outcome = fuzz::run_program(*client, options);
    if (!outcome.wrong.empty()) {
      std::printf("%s\nrepeat it with: %s\n", outcome.wrong.c_str(), options.repeat.c_str());
      return 1;
    }
    for (const auto& [what, n] : outcome.counts) counts[what] += n;
    done += options.operations;
    if (std::chrono::steady_clock::now() - told > std::chrono::seconds(30)) {
      told = std::chrono::steady_clock::now();
      std::fprintf(stderr, "%llu of %llu operations\n", static_cast<unsigned long long>(done), static_cast<unsigned long long>(operations));
    }
  }
  for (const auto& [what, n] : counts) std::printf("%12llu %s\n", static_cast<unsigned long long>(n), what.c_str());
  std::printf("%llu random operations on %s, faults of the driver: %s; no difference, no leak\n",
              static_cast<unsigned long long>(operations), device.c_str(), fuzz::name(options.faults));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
