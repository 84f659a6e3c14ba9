// Many processes that obtain the same kernels from one empty environment at the same time, while some are killed and things are removed.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace kiln::test {

enum class Removed { Nothing, Rows, Files };
struct Stress {
  int processes = 16, kernels = 20;
  int kills = 0;  // of processes at any moment, each of which another one takes the place of
  Removed removed = Removed::Nothing;
};
struct StressResult {
  std::vector<std::string> wrong;  // empty: all is as it should be
  std::string warning;             // one of them
  int killed = 0;
  unsigned long long compiled = 0, loaded = 0, warnings = 0;
};
StressResult stress_round(const Stress& stress, unsigned seed);

}  // namespace kiln::test
