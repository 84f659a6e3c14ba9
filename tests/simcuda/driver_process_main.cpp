// A program that uses the simulated driver and ends, in one of several ways; for what can only be seen from outside of a process.
// Usage: simcuda_process LIBRARY SCENARIO. Prints what the test looks for.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "cuda/driver_entries.h"

using namespace kiln::cuda;

namespace {

DriverEntries cuda;

void open(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
#define KILN_FIND(name, symbol, version, params) cuda.name = reinterpret_cast<decltype(cuda.name)>(dlsym(library, #symbol));
  KILN_CUDA_ENTRIES(KILN_FIND)
#undef KILN_FIND
}

void must(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  std::printf("%s: %d\n", what, code);
  std::exit(1);
}

void start() {
  CUcontext context = nullptr;
  must(cuda.cuInit(0), "cuInit");
  must(cuda.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  must(cuda.cuCtxPushCurrent(context), "cuCtxPushCurrent");
}

CUfunction kernel(const char* body) {
  const std::string ptx = std::string(".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n") + body + "\n}\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  must(cuda.cuModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
  must(cuda.cuModuleGetFunction(&function, module, "k"), "cuModuleGetFunction");
  return function;
}

void launch(CUfunction function) {
  CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, 0};
  must(cuda.cuLaunchKernelEx(&config, function, nullptr, nullptr), "cuLaunchKernelEx");
}

// Lives longer than the driver: it was there before cuInit.
struct Owner {
  CUstream stream = nullptr;
  ~Owner() {
    if (stream != nullptr) std::printf("destroying at the end: %d\n", cuda.cuStreamDestroy(stream));
    std::fflush(stdout);
  }
} owner;

int devices() {
  int version = 0, count = 0;
  must(cuda.cuDriverGetVersion(&version), "cuDriverGetVersion");
  std::printf("version %d\n", version);
  must(cuda.cuInit(0), "cuInit");
  must(cuda.cuDeviceGetCount(&count), "cuDeviceGetCount");
  for (int i = 0; i < count; ++i) {
    char name[100] = {};
    must(cuda.cuDeviceGetName(name, sizeof name, i), "cuDeviceGetName");
    std::printf("device %d: %s\n", i, name);
  }
  return 0;
}

int run(const std::string& scenario) {
  if (scenario == "devices") return devices();
  start();
  if (scenario == "endless kernel") {
    launch(kernel("AGAIN:\n bra AGAIN;"));
  } else if (scenario == "hanging host function") {
    must(cuda.cuLaunchHostFunc(nullptr, [](void*) { std::this_thread::sleep_for(std::chrono::hours(1)); }, nullptr), "cuLaunchHostFunc");
    launch(kernel("ret;"));
  } else if (scenario == "waiting thread") {
    must(cuda.cuLaunchHostFunc(nullptr, [](void*) { std::this_thread::sleep_for(std::chrono::hours(1)); }, nullptr), "cuLaunchHostFunc");
    CUcontext context = nullptr;
    must(cuda.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    std::thread([context] {
      cuda.cuCtxPushCurrent(context);
      cuda.cuCtxSynchronize();
    }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } else if (scenario == "much work") {
    const CUfunction k = kernel("ret;");
    for (int i = 0; i < 2000; ++i) launch(k);
  } else if (scenario == "owner") {
    must(cuda.cuStreamCreate(&owner.stream, 0), "cuStreamCreate");
  } else if (scenario == "fork") {
    launch(kernel("ret;"));
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      int count = 0;
      std::printf("child: %d %d\n", cuda.cuCtxSynchronize(), cuda.cuDeviceGetCount(&count));
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("parent: %d\n", cuda.cuCtxSynchronize());
  } else if (scenario == "trap") {
    launch(kernel("trap;"));
    std::printf("sync: %d\n", cuda.cuCtxSynchronize());
  } else {
    std::fprintf(stderr, "no scenario '%s'\n", scenario.c_str());
    return 2;
  }
  std::printf("done\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  open(argv[1]);
  return run(argv[2]);
}
