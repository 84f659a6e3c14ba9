// What a launch costs the host, over a driver that does nothing.
#include <dlfcn.h>

#include <algorithm>
#include <barrier>
#include <thread>

#include "allocations.h"
#include "kernels.h"
#include "measure.h"
#include "null_driver.h"
#include "runtime_rows.h"

namespace kiln::bench {
namespace {

// A stream of its own, and what a kernel with two buffers and a scalar needs.
struct Launcher {
  explicit Launcher(const Client& client)
      : stream(client.stream()),
        x(Buffer<f32>::zeroed(client, 1024).value()),
        y(Buffer<f32>::zeroed(client, 1024).value()),
        config(for_num_elems(1024)) {
    launch();
    stream.sync().value();
  }
  void launch() { samples::saxpy(stream, config, x, y, 2.0f).value(); }

  Stream stream;
  Buffer<f32> x, y;
  LaunchConfig config;
};

// `threads` threads at a time, each on a stream and on memory of its own; nanoseconds that a launch of all of them takes.
double nanoseconds_a_launch(std::vector<Launcher>& launchers, std::size_t threads, int each) {
  std::barrier begin(static_cast<std::ptrdiff_t>(threads) + 1);
  std::vector<std::thread> running;
  for (std::size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      launchers[t].launch();
      begin.arrive_and_wait();
      for (int i = 0; i < each; ++i) launchers[t].launch();
    });
  }
  begin.arrive_and_wait();
  const double time = seconds([&] {
    for (std::thread& thread : running) thread.join();
  });
  for (std::size_t t = 0; t < threads; ++t) launchers[t].stream.sync().value();
  return time * 1e9 / each / static_cast<double>(threads);
}

}  // namespace

// Kiln's host time for a launch, beside the driver's call with everything prepared.
std::vector<Row> launch_over_null_driver() {
  Row whole = row("enqueue, cuda on a null driver", "ns", ""), over = row("... over the bare call", "ns", "the target is 300 at most"),
      ready = row("... of a prepared launch, over the bare call", "ns", "cheaper than that"),
      allocated = row("... allocations a launch", "count", "the target is 0");
  const NullDriver driver;
  void* handle = driver.why.empty() ? dlopen(driver.file.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  const auto bare =
      reinterpret_cast<int (*)(const void*, void*, void**, void**)>(handle != nullptr ? dlsym(handle, "cuLaunchKernelEx") : nullptr);
  if (bare == nullptr) {
    whole.why = driver.why.empty() ? driver.file + " has no cuLaunchKernelEx" : driver.why;
    return {whole};
  }
  Launcher launcher(driver.client());
  const auto ours = [&] { launcher.launch(); };
  std::uint64_t values[6] = {1, 1024, 2, 1024, 3, 4};
  void* pointers[6];
  for (int i = 0; i < 6; ++i) pointers[i] = &values[i];
  const unsigned prepared[16] = {4, 1, 1, 256, 1, 1};
  const auto theirs = [&] { bare(prepared, nullptr, pointers, nullptr); };
  measure(whole, 300, 1e9, 100, ours, theirs);
  whole.peer_name = "cuLaunchKernelEx of that driver, parameters prepared";
  over.ours = *whole.ours - *whole.peer;
  over.spread = whole.spread;
  const auto again = samples::saxpy.prepare(launcher.stream, launcher.config, launcher.x, launcher.y, 2.0f).value();
  measure(ready, 300, 1e9, 100, [&] { again().value(); }, theirs);
  ready.ours = *ready.ours - *ready.peer;
  ready.peer.reset();
  ready.ratio.reset();
  constexpr int kLaunches = 2000;
  std::uint64_t before = 0;
  for (int run = 0; run < 2; ++run) {
    before = allocations();
    for (int i = 0; i < kLaunches; ++i) ours();
    launcher.stream.sync().value();
  }
  allocated.ours = static_cast<double>(allocations() - before) / kLaunches;
  return {whole, over, ready, allocated};
}

std::vector<Row> runtime_launches() {
  Row flat = row("enqueue, the last 100000 of 1000000", "ns", "the target is 1"),
      four = row("enqueue, four threads on four streams", "ns", "the target is 1/1.7 at most, on two cores");
  const NullDriver driver;
  if (!driver.why.empty()) {
    flat.why = driver.why;
    return {flat};
  }
  const Client client = driver.client();
  std::vector<Launcher> launchers;
  for (int i = 0; i < 4; ++i) launchers.emplace_back(client);

  constexpr int kTenth = 100'000;
  const auto tenth = [&] {
    return seconds([&] {
             for (int i = 0; i < kTenth; ++i) launchers[0].launch();
           }) *
           1e9 / kTenth;
  };
  std::vector<double> tenths;
  for (int i = 0; i < 10; ++i) tenths.push_back(tenth());
  flat.ours = tenths.back();
  flat.peer = tenths.front();
  flat.peer_name = "the first 100000";
  flat.ratio = tenths.back() / tenths.front();
  flat.spread = spread(tenths);

  constexpr int kRuns = 15, kEach = 20'000;
  std::vector<double> ours, theirs, ratios;
  for (int run = -2; run < kRuns; ++run) {
    const double a = nanoseconds_a_launch(launchers, 4, kEach), b = nanoseconds_a_launch(launchers, 1, 2 * kEach);
    if (run < 0) continue;
    ours.push_back(a);
    theirs.push_back(b);
    ratios.push_back(a / b);
  }
  four.ours = median(ours);
  four.peer = median(theirs);
  four.peer_name = "one thread";
  four.ratio = median(ratios);
  four.spread = spread(ratios);
  return {flat, four};
}

}  // namespace kiln::bench
