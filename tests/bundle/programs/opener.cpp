// A program that opens such a library, uses it, closes it, and goes on with a kernel that came from it. Usage: opener LIBRARY [race]
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "kiln/kiln.h"
#include "kiln/runtime/bundle.h"

using namespace kiln;

namespace {

void launch_scale(const Client& client, const Variant& variant, std::uint32_t block) {
  const auto x = Buffer<f32>::from_host(client, std::vector<f32>(100, 2)).value();
  const auto y = Buffer<f32>::zeroed(client, 100).value();
  LaunchArg a;
  a.type = ir::Type::F32;
  const float factor = 4;
  std::memcpy(&a.bits, &factor, sizeof factor);
  const LaunchArg args[] = {x.arg(), y.arg(), a};
  LaunchRequest request;
  request.variant = &variant;
  request.args = args;
  request.config.grid = Dim3(128 / block);
  request.config.block = Dim3(block);
  launch(client.default_stream(), request).value();
  if (y.read().value().at(99) != 8) throw std::runtime_error("wrong result");
}

void* open_library(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

// Threads that look kernels up and launch them, while the library comes and goes.
int race(const char* path) {
  std::atomic<bool> stop{false};
  std::atomic<unsigned> launched{0}, missing{0}, other{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const Client client = Client::open("cpu").value();
      while (!stop) {
        const auto found = embedded_variant("ns::scale");
        if (!found.has_value()) {
          ++(found.error().rule() == "NotEmbedded" ? missing : other);
          continue;
        }
        try {
          launch_scale(client, *found->variant, 64);
          ++launched;
        } catch (const Exception& e) {
          // It went between the two looks.
          ++(e.error().rule() == "NoCodeGenerator" || e.error().rule() == "NoEmbeddedCode" ? missing : other);
        }
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    void* const library = open_library(path);
    std::this_thread::sleep_for(std::chrono::microseconds(500 * (i % 4)));
    dlclose(library);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("launched %s, other failures %u\n", launched > 0 ? "some" : "none", other.load());
  return other == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) return 2;
  if (argc > 2) return race(argv[1]);
  const Client client = Client::default_client();
  std::printf("before: %zu modules\n", embedded_modules().size());
  void* const library = open_library(argv[1]);
  const int used = reinterpret_cast<int (*)()>(dlsym(library, "use_library"))();
  const std::vector<EmbeddedModule> modules = embedded_modules();
  std::printf("open: %zu modules, %zu bundles, %s\n", modules.size(), modules.at(0).bundles.size(),
              modules.at(0).path == argv[1] ? "its path" : modules.at(0).path.c_str());
  const EmbeddedVariant kept = embedded_variant("ns::scale").value();
  launch_scale(client, *kept.variant, 64);
  dlclose(library);
  std::printf("closed: %zu modules\n", embedded_modules().size());
  launch_scale(client, *kept.variant, 64);
  try {
    launch_scale(client, *kept.variant, 32);
    std::printf("a block that nothing was loaded for: launched\n");
  } catch (const Exception& e) { std::printf("a block that nothing was loaded for: %s\n", e.error().rule().c_str()); }
  return used;
} catch (const std::exception& e) {
  std::printf("failed: %s\n", e.what());
  return 1;
}
