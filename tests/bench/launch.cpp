#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "allocations.h"
#include "benches.h"
#include "kernels.h"
#include "measure.h"

namespace kiln::bench {
namespace {

constexpr const char* kNoPeer = "a launch of CUDA needs a GPU";

Row row(std::string name, std::string unit, std::string why) {
  Row r;
  r.name = std::move(name);
  r.unit = std::move(unit);
  r.why = std::move(why);
  return r;
}

// Kiln's host time for a launch over a driver that does nothing, beside the driver's call with everything prepared.
std::vector<Row> over_null_driver() {
  const char* elsewhere = std::getenv("KILN_NULL_DRIVER");  // away from the build tree
  const std::string library = elsewhere != nullptr && *elsewhere != 0 ? elsewhere : KILN_NULL_DRIVER;
  const char* device = std::getenv("KILN_DEVICE");
  Row whole = row("enqueue, cuda on a null driver", "ns", ""), over = row("... over the bare call", "ns", "the target is 500 at most"),
      allocated = row("... allocations a launch", "count", "the target is 0");
  if (!std::filesystem::exists(library) || (device != nullptr && *device != 0)) {  // the process has one driver
    whole.why = "needs " + library + " and no KILN_DEVICE";
    return {whole};
  }
  setenv("KILN_CUDA_LIBRARY", library.c_str(), 1);
  const Result<Client> opened = Client::open("cuda");
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto bare =
      reinterpret_cast<int (*)(const void*, void*, void**, void**)>(handle != nullptr ? dlsym(handle, "cuLaunchKernelEx") : nullptr);
  if (!opened.has_value() || bare == nullptr) {
    whole.why = opened.has_value() ? library + " has no cuLaunchKernelEx" : opened.error().data().message;
    return {whole};
  }
  const Client& client = *opened;
  const Stream stream = client.stream();
  Buffer<f32> x = Buffer<f32>::zeroed(client, 1024).value(), y = Buffer<f32>::zeroed(client, 1024).value();
  const LaunchConfig config = for_num_elems(1024);
  const auto ours = [&] { samples::saxpy(stream, config, x, y, 2.0f).value(); };
  std::uint64_t values[6] = {1, 1024, 2, 1024, 3, 4};
  void* pointers[6];
  for (int i = 0; i < 6; ++i) pointers[i] = &values[i];
  const unsigned prepared[16] = {4, 1, 1, 256, 1, 1};
  const auto theirs = [&] { bare(prepared, nullptr, pointers, nullptr); };
  ours();
  stream.sync().value();
  measure(whole, 300, 1e9, 100, ours, theirs);
  whole.peer_name = "cuLaunchKernelEx of that driver, parameters prepared";
  over.ours = *whole.ours - *whole.peer;
  over.spread = whole.spread;
  constexpr int kLaunches = 2000;
  std::uint64_t before = 0;
  for (int run = 0; run < 2; ++run) {
    before = allocations();
    for (int i = 0; i < kLaunches; ++i) ours();
    stream.sync().value();
  }
  allocated.ours = static_cast<double>(allocations() - before) / kLaunches;
  return {whole, over, allocated};
}

}  // namespace

std::vector<Row> launch() {
  const char* named = std::getenv("KILN_DEVICE");
  const Client client = Client::open(named != nullptr && *named != 0 ? named : "cpu").value();
  const Stream stream = client.stream();
  const LaunchConfig one_block{{1}, {32}};
  const auto enqueue = [&] { empty(stream, one_block).value(); };

  Row host = row("enqueue", "us", kNoPeer);
  enqueue();
  stream.sync().value();
  // A hundred at a time, drained in between and outside of the clock, so that it is not a queue's limit that is measured.
  std::vector<double> times;
  for (int run = 0; run < 200; ++run) {
    times.push_back(seconds([&] {
                      for (int i = 0; i < 100; ++i) enqueue();
                    }) /
                    100 * 1e6);
    stream.sync().value();
  }
  host.ours = median(times);
  host.spread = spread(times);

  Row trip = row("enqueue and wait", "us", kNoPeer);
  measure(trip, 50, 1e6, 100,
          [&] {
            enqueue();
            stream.sync().value();
          },
          {});

  Row allocated = row("allocations a launch", "count", "the target is 0");
  constexpr int kLaunches = 1000;
  std::uint64_t before = 0;
  for (int run = 0; run < 2; ++run) {  // the first time the queue grows to that depth
    before = allocations();
    for (int i = 0; i < kLaunches; ++i) enqueue();
    stream.sync().value();
  }
  allocated.ours = static_cast<double>(allocations() - before) / kLaunches;
  std::vector<Row> rows{host, trip, allocated};
  for (Row& r : over_null_driver()) rows.push_back(std::move(r));
  return rows;
}

}  // namespace kiln::bench
