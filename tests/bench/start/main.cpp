// A program with twenty embedded kernels. Each line of the output is "NAME NANOSECONDS".
//
//   main launch           launches one of them; "at" is the time, by the steady clock, when the launch had returned
//   main parts            the same, and what its parts take
//   main environment      the same kernels as recorded ones, from the environment, each launched once: "kernel" for each but the first
#include <cstdio>
#include <cstring>
#include <ctime>

#include "kernels.h"
#include "kiln/ir/text.h"
#include "kiln/runtime/bundle.h"

using namespace kiln;

extern "C" const char kiln_bundles_of_tests;

namespace {

constinit const EmbeddedFamily<start::StepCfg, In<f32>, InOut<f32>, Val<f32>> step{"start::step", &kiln_bundles_of_tests};

long long now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void say(const char* name, long long nanoseconds) { std::printf("%s %lld\n", name, nanoseconds); }

const LaunchConfig kConfig{{start::kElements / start::kBlock}, {start::kBlock}};

int parts() {
  const long long begin = now();
  const Client client = Client::open("cpu").value();
  const long long opened = now();
  Buffer<f32> x = Buffer<f32>::zeroed(client, start::kElements).value(), y = Buffer<f32>::zeroed(client, start::kElements).value();
  const long long made = now();
  const EmbeddedVariant found = embedded_variant("start::step@number=7").value();
  const long long parsed = now();
  (void)found.variant->prepared().value();
  const long long prepared = now();
  (void)ir::print(found.variant->recorded());
  const long long printed = now();
  step.with({.number = 7})(kConfig, x, y, 1.0f).value();
  const long long launched = now();
  say("open the device", opened - begin);
  say("two buffers", made - opened);
  say("find and parse a kernel", parsed - made);
  say("prepare it", prepared - parsed);
  say("print it", printed - prepared);
  say("first launch, with finding, parsing and preparing once more", launched - printed);
  const long long again = now();
  step.with({.number = 8})(kConfig, x, y, 1.0f).value();
  say("first launch of a second kernel", now() - again);
  return y.read().has_value() ? 0 : 1;
}

// Texts out of the bundles: as a program that records them, without what a bundle would bring.
int environment() {
  const Client client = Client::open("cpu").value();
  Buffer<f32> x = Buffer<f32>::zeroed(client, start::kElements).value(), y = Buffer<f32>::zeroed(client, start::kElements).value();
  for (std::uint32_t n = 0; n < start::kKernels; ++n) {
    ir::Kernel kernel = embedded_variant("start::step@number=" + std::to_string(n)).value().variant->recorded();
    kernel.name = "recorded" + std::to_string(n);
    const Variant variant(std::move(kernel));
    LaunchArg a;
    a.type = ir::Type::F32;
    const LaunchArg args[] = {x.arg(), y.arg(), a};
    LaunchRequest request;
    request.variant = &variant;
    request.config = kConfig;
    request.args = args;
    const long long begin = now();
    (void)variant.prepared().value();
    const long long prepared = now();
    launch(client.default_stream(), request).value();
    const long long launched = now();
    if (n == 0) continue;  // it opens the environment
    say("kernel", launched - prepared);
    say("prepare", prepared - begin);
  }
  return y.read().has_value() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) return 2;
  if (std::strcmp(argv[1], "parts") == 0) return parts();
  if (std::strcmp(argv[1], "environment") == 0) return environment();
  const Client client = Client::open("cpu").value();
  Buffer<f32> x = Buffer<f32>::zeroed(client, start::kElements).value(), y = Buffer<f32>::zeroed(client, start::kElements).value();
  step.with({.number = 7})(kConfig, x, y, 1.0f).value();
  say("at", now());
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "failed: %s\n", e.what());
  return 1;
}
