#include "support/sim.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>

namespace kiln::test {
namespace {

template <class F>
F sim_symbol(const char* name) {
  sim_driver();
  void* library = dlopen(sim_library().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (void* found = library != nullptr ? dlsym(library, name) : nullptr) return reinterpret_cast<F>(found);
  throw std::runtime_error(std::string("the simulated driver has no ") + name);
}

}  // namespace

std::string sim_library() { return KILN_BINARY_DIR "/lib/libkiln_simcuda.so"; }

const cuda::Driver& sim_driver() {
  static const cuda::Driver& driver = *new cuda::Driver([] {
    setenv("KILN_SIMCUDA_DEVICES", "h200,t4,tiny,a100", 1);
    return cuda::open_driver({sim_library()});
  }());
  return driver;
}

namespace {

std::shared_ptr<Server> open_sim(int ordinal, const rt::CudaOptions& options) {
  return rt::make_server(rt::make_cuda_device(sim_driver(), ordinal, options).value());
}

struct Servers {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Server>> by_ordinal;
};
Servers& servers() {
  static Servers& all = *new Servers;
  return all;
}

// All of the driver's state goes, so that of the other devices too.
void renew(Servers& all) {
  all.by_ordinal.clear();
  sim_symbol<void (*)()>("kiln_simcuda_reset")();
  sim_driver().call.cuInit(0);
}

bool is_lost(const std::shared_ptr<Server>& server) {
  const auto state = Client(server).sync();
  return !state.has_value() && state.error().is_device_poisoned();
}

// Where a test before this one lost a device of all tests.
void renew_where_lost(Servers& all) {
  if (std::any_of(all.by_ordinal.begin(), all.by_ordinal.end(), [](const auto& entry) { return is_lost(entry.second); })) renew(all);
}

}  // namespace

std::shared_ptr<Server> make_sim_server(int ordinal, const rt::CudaOptions& options) {
  Servers& all = servers();
  const std::lock_guard lock(all.mutex);
  renew_where_lost(all);
  return open_sim(ordinal, options);
}

Client sim_client(int ordinal) {
  Servers& all = servers();
  const std::lock_guard lock(all.mutex);
  renew_where_lost(all);
  std::shared_ptr<Server>& server = all.by_ordinal[ordinal];
  if (server == nullptr) server = open_sim(ordinal, {});
  return Client(server);
}

void renew_sim() {
  Servers& all = servers();
  const std::lock_guard lock(all.mutex);
  renew(all);
}

bool is_simulated(const Client& client) {
  Servers& all = servers();
  const std::lock_guard lock(all.mutex);
  return std::any_of(all.by_ordinal.begin(), all.by_ordinal.end(),
                     [&](const auto& entry) { return entry.second.get() == &client.server(); });
}

CurrentContext::CurrentContext(int ordinal) : ordinal_(ordinal) {
  const cuda::DriverEntries& call = sim_driver().call;
  cuda::CUcontext context = nullptr;
  if (call.cuDevicePrimaryCtxRetain(&context, ordinal) != cuda::CUDA_SUCCESS || call.cuCtxPushCurrent(context) != cuda::CUDA_SUCCESS)
    throw std::runtime_error("the simulated device " + std::to_string(ordinal) + " has no context");
}
CurrentContext::~CurrentContext() {
  cuda::CUcontext context = nullptr;
  sim_driver().call.cuCtxPopCurrent(&context);
  sim_driver().call.cuDevicePrimaryCtxRelease(ordinal_);
}

SimScript::SimScript(const std::string& json) {
  if (sim_symbol<int (*)(const char*)>("kiln_simcuda_configure")(json.c_str()) != 0) throw std::runtime_error(sim_report());
}
SimScript::~SimScript() { sim_symbol<int (*)(const char*)>("kiln_simcuda_configure")("{}"); }

unsigned long long sim_count(const char* what) { return sim_symbol<unsigned long long (*)(const char*)>("kiln_simcuda_count")(what); }
std::string sim_report() { return sim_symbol<const char* (*)()>("kiln_simcuda_last_report")(); }

}  // namespace kiln::test
