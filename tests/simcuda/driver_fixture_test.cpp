#include "simcuda/driver_fixture.h"

#include <dlfcn.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>

namespace kiln::simcuda::test {
namespace {

template <class F>
void find(void* handle, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  if (function != nullptr) return;
  std::fprintf(stderr, "the simulated driver has no %s\n", name);
  std::abort();
}

}  // namespace

Library& library() {
  static Library& lib = *[] {
    auto* l = new Library;
    l->handle = dlopen(KILN_BINARY_DIR "/lib/libkiln_simcuda.so", RTLD_NOW | RTLD_LOCAL);
    if (l->handle == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
#define KILN_FIND(name, symbol, version, params) find(l->handle, #symbol, l->name);
    KILN_CUDA_ENTRIES(KILN_FIND)
#undef KILN_FIND
    find(l->handle, "cuGetProcAddress_v2", l->cuGetProcAddress);
    find(l->handle, "kiln_simcuda_configure", l->configure);
    find(l->handle, "kiln_simcuda_reset", l->reset);
    find(l->handle, "kiln_simcuda_last_report", l->last_report);
    find(l->handle, "kiln_simcuda_count", l->count);
    return l;
  }();
  return lib;
}

void* symbol(const char* name) { return dlsym(library().handle, name); }

Session::Session(const std::string& script) {
  library().reset();
  std::string quiet = script;
  quiet.insert(quiet.find('{') + 1, script == "{}" ? "\"quiet\":true" : "\"quiet\":true,");
  REQUIRE_MESSAGE(library().configure(quiet.c_str()) == 0, library().last_report());
}

Session::~Session() {
  // No context of a session that is gone stays on this thread's stack.
  for (CUcontext context = nullptr; library().cuCtxPopCurrent(&context) == CUDA_SUCCESS;) {}
  library().reset();
}

DeviceSession::DeviceSession(const std::string& script, int device) : Session(script) {
  KILN_OK(library().cuInit(0));
  KILN_OK(library().cuDevicePrimaryCtxRetain(&context, device));
  KILN_OK(library().cuCtxPushCurrent(context));
}

DeviceSession::~DeviceSession() = default;

CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  KILN_OK(library().cuMemAlloc(&address, bytes));
  return address;
}

CUstream make_stream(unsigned flags) {
  CUstream stream = nullptr;
  KILN_OK(library().cuStreamCreate(&stream, flags));
  return stream;
}

CUevent make_event(unsigned flags) {
  CUevent event = nullptr;
  KILN_OK(library().cuEventCreate(&event, flags));
  return event;
}

void* allocate_pinned(std::size_t bytes) {
  void* pointer = nullptr;
  KILN_OK(library().cuMemHostAlloc(&pointer, bytes, CU_MEMHOSTALLOC_PORTABLE));
  return pointer;
}

struct Gate::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false, passed = false;
};

Gate::Gate(CUstream stream) : state_(nullptr) {
  // Kept for ever: the stream may get there after the gate is gone.
  static std::mutex& mutex = *new std::mutex;
  static std::deque<State>& all = *new std::deque<State>;
  {
    const std::lock_guard lock(mutex);
    state_ = &all.emplace_back();
  }
  const auto pass = [](void* data) {
    auto& s = *static_cast<State*>(data);
    std::unique_lock lock(s.mutex);
    s.changed.wait(lock, [&] { return s.open; });
    s.passed = true;
    s.changed.notify_all();
  };
  KILN_OK(library().cuLaunchHostFunc(stream, pass, state_));
}

void Gate::open() {
  const std::lock_guard lock(state_->mutex);
  state_->open = true;
  state_->changed.notify_all();
}

Gate::~Gate() { open(); }

}  // namespace kiln::simcuda::test
