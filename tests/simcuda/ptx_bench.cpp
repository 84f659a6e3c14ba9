// How fast the engine is: million PTX instructions (of threads) a second of processor time for a few kernels, on one host thread; and a
// second of real time on all processors. Processor time, since other programs may be running.
//   build/bin/simcuda_bench
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "simcuda/engine.h"
#include "simcuda/ptx_bench_kernels.h"

using namespace kiln::simcuda;

namespace {

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
double real_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

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
        const auto now = workers == 1 ? &processor_seconds : &real_seconds;
        const double begin = now();
        const RunResult r = run(launch, memory, options);
        const double seconds = now() - begin;
        if (r.violation) {
          std::printf("%s: %s\n", name, r.violation->text().c_str());
          return;
        }
        best = std::max(best, static_cast<double>(r.instructions) / seconds / 1e6);
      }
      std::printf("%-8s %s, race detection %s: %8.0f million instructions\n", name,
                  workers == 1 ? "one worker, a second of processor time" : "all workers, a second of real time    ", races ? "on " : "off",
                  best);
      std::fflush(stdout);
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
