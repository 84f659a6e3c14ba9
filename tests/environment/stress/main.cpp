// kiln_environment_stress [ROUNDS [PROCESSES [KERNELS]]]    rounds with kills and removals, in turn of nothing, rows and files; 50, 16, 20
// kiln_environment_stress lookups [PROCESSES [MS]]          look-ups a second of so many processes (4, 3000) in one environment
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "environment/stress.h"
#include "support/process.h"

namespace {

int lookups(int processes, int ms) {
  const kiln::test::TempFolder folder;
  const std::string child = KILN_BINARY_DIR "/lib/environment/kiln_environment_child";
  const std::vector<std::string> command{child, "lookups", folder.path(), "200", std::to_string(ms)};
  (void)kiln::test::run_process({child, "lookups", folder.path(), "200", "1"});  // fills it
  std::vector<kiln::test::ProcessResult> results(static_cast<std::size_t>(processes));
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = kiln::test::run_process(command); });
  for (std::thread& thread : threads) thread.join();
  unsigned long long all = 0;
  int status = 0;
  for (const auto& result : results) {
    unsigned long long found = 0;
    if (result.status != 0 || std::sscanf(result.out.c_str(), "found %llu", &found) != 1) {
      std::printf("%s%s\n", result.out.c_str(), result.err.c_str());
      status = 1;
    }
    all += found;
  }
  std::printf("%d processes: %llu look-ups a second\n", processes, all * 1000 / static_cast<unsigned long long>(ms));
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at, int otherwise) { return argc > at ? std::max(1, std::atoi(argv[at])) : otherwise; };
  if (argc > 1 && std::strcmp(argv[1], "lookups") == 0) return lookups(number(2, 4), number(3, 3000));
  const int rounds = number(1, 50);
  int status = 0;
  for (int round = 0; round < rounds; ++round) {
    kiln::test::Stress stress;
    stress.processes = number(2, 16);
    stress.kernels = number(3, 20);
    stress.kills = stress.processes / 2;
    stress.removed = static_cast<kiln::test::Removed>(round % 3);
    const auto result = kiln::test::stress_round(stress, static_cast<unsigned>(round + 1));
    std::printf("round %d: %d killed, %llu compiled, %llu loaded, %llu warnings, %s\n", round + 1, result.killed, result.compiled,
                result.loaded, result.warnings, result.wrong.empty() ? "fine" : "WRONG");
    if (!result.warning.empty()) std::printf("  one said: %s", result.warning.c_str());
    for (const std::string& text : result.wrong) std::printf("  %s\n", text.c_str());
    std::fflush(stdout);
    status |= !result.wrong.empty();
  }
  return status;
}
