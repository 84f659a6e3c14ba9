// The long run of random programs: kiln_runtime_fuzz OPERATIONS [--seed N] [--device NAME] [--each N] [--threads N] [--streams N]
// Programs of --each operations until there were OPERATIONS; the first difference ends it with exit 1.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz/runtime/program.h"
#include "support/sim.h"

using namespace kiln;

int main(int argc, char** argv) {
  std::uint64_t operations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0, each = 2000;
  fuzz::ProgramOptions options;
  std::string device = "cpu";
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string a = argv[i];
    if (a == "--seed") options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    else if (a == "--device") device = argv[i + 1];
    else if (a == "--each") each = std::strtoull(argv[i + 1], nullptr, 10);
    else if (a == "--threads") options.threads = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    else if (a == "--streams") options.streams = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    else operations = 0;
  }
  if (operations == 0 || each == 0 || options.threads == 0 || options.streams == 0) {
    std::fprintf(stderr,
                 "usage: kiln_runtime_fuzz OPERATIONS [--seed N] [--device cpu|h200|t4|cuda] [--each N] [--threads N] [--streams N]\n");
    return 2;
  }
  const Client client = device == "h200" ? test::sim_client(test::kSimH200)
                        : device == "t4" ? test::sim_client(test::kSimT4)
                                         : Client::open(device).value();
  std::map<std::string, std::uint64_t> counts;
  auto told = std::chrono::steady_clock::now();
  for (std::uint64_t done = 0; done < operations; ++options.seed) {
    options.operations = std::min(each, operations - done);
    const fuzz::ProgramOutcome outcome = fuzz::run_program(client, options);
    if (!outcome.wrong.empty()) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(options.seed), outcome.wrong.c_str());
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
  std::printf("%llu random operations on %s, no difference\n", static_cast<unsigned long long>(operations), device.c_str());
  return 0;
}
