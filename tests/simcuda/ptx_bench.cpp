// How fast the engine is: million PTX instructions a second (of threads) for a few kernels, on one host thread and on all.
//   build/bin/simcuda_bench
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "simcuda/engine.h"
#include "simcuda/ptx_bench_kernels.h"

using namespace kiln::simcuda;

namespace {

struct Args {
  std::vector<std::byte> bytes;
  template <class T>
  Args& add(T v) {
    bytes.resize((bytes.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &v, sizeof(T));
    return *this;
  }
};

std::uint64_t filled(Memory& memory, std::size_t floats) {
  const std::uint64_t a = memory.allocate(floats * 4).value_or(0);
  auto* p = reinterpret_cast<float*>(memory.range(a, floats * 4, Access::Write).host);
  for (std::size_t k = 0; k < floats; ++k) p[k] = static_cast<float>(k % 97) * 0.25f;
  return a;
}

void measure(const char* name, const std::string& ptx, const Args& args, Memory& memory, std::array<std::uint32_t, 3> grid,
             std::array<std::uint32_t, 3> block) {
  const LoadResult loaded = load(ptx, Target{90, 90}, memory);
  if (!loaded.module) {
    std::printf("%s: %s\n", name, loaded.failure.log.c_str());
    return;
  }
  for (const unsigned workers : {1u, 0u}) {
    for (const bool races : {false, true}) {
      Launch launch;
      launch.module = loaded.module.get();
      launch.grid = grid;
      launch.block = block;
      launch.params = args.bytes.data();
      Options options;
      options.workers = workers;
      options.shared_races = races;
      double best = 0;
      for (int k = 0; k < 3; ++k) {
        const auto begin = std::chrono::steady_clock::now();
        const RunResult r = run(launch, memory, options);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (r.violation) {
          std::printf("%s: %s\n", name, r.violation->text().c_str());
          return;
        }
        best = std::max(best, static_cast<double>(r.instructions) / seconds / 1e6);
      }
      std::printf("%-8s %s workers, race detection %s: %8.0f million instructions a second\n", name, workers == 1 ? "one" : "all",
                  races ? "on " : "off", best);
    }
  }
}

}  // namespace

int main() {
  Memory memory(std::uint64_t{1} << 34);
  const std::uint64_t x = filled(memory, 1 << 20), y = filled(memory, 1 << 20), z = filled(memory, 1 << 20);
  measure("saxpy", kSaxpy, Args().add(x).add(y).add(2.0f).add(std::uint32_t{1 << 20}), memory, {4096, 1, 1}, {256, 1, 1});
  measure("matmul", kMatmul, Args().add(x).add(y).add(z).add(std::uint32_t{128}), memory, {8, 8, 1}, {16, 16, 1});
  measure("reduce", kReduce, Args().add(x).add(z).add(std::uint32_t{1 << 20}), memory, {512, 1, 1}, {256, 1, 1});
  return 0;
}
