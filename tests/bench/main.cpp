// kiln_bench [jit|cpu|blocks|compile|launch|runtime|start|emit|math]... [--json]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "benches.h"

int main(int argc, char** argv) {
  using kiln::bench::Row;
  struct Bench {
    const char* name;
    std::vector<Row> (*run)();
  };
  const Bench benches[] = {{"jit", kiln::bench::jit},         {"cpu", kiln::bench::cpu},       {"blocks", kiln::bench::blocks},
                           {"compile", kiln::bench::compile}, {"launch", kiln::bench::launch}, {"runtime", kiln::bench::runtime},
                           {"start", kiln::bench::start},     {"emit", kiln::bench::emit},     {"math", kiln::bench::math}};
  setenv("KILN_ENV", "off", 0);  // what is compiled is compiled
  bool json = false;
  std::vector<Bench> chosen;
  for (int i = 1; i < argc; ++i) {
    bool known = std::strcmp(argv[i], "--json") == 0;
    json = json || known;
    for (const Bench& b : benches) {
      if (std::strcmp(argv[i], b.name) != 0) continue;
      chosen.push_back(b);
      known = true;
    }
    if (!known) {
      std::fprintf(stderr, "kiln_bench: unknown benchmark '%s'; there are: jit, cpu, blocks, compile, launch, runtime, start, emit, math\n",
                   argv[i]);
      return 2;
    }
  }
  if (chosen.empty()) chosen.assign(std::begin(benches), std::end(benches));
  int status = 0;
  for (const Bench& b : chosen) {
    try {
      kiln::bench::print(b.name, b.run(), json);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "kiln_bench: %s: %s\n", b.name, e.what());
      status = 1;
    }
  }
  return status;
}
