#include "support/sim.h"

#include <dlfcn.h>

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

std::shared_ptr<Server> make_sim_server(int ordinal, const rt::CudaOptions& options) {
  return rt::make_server(rt::make_cuda_device(sim_driver(), ordinal, options).value());
}

namespace {

struct Servers {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Server>> by_ordinal;
};
Servers& servers() {
  static Servers& all = *new Servers;
  return all;
}

}  // namespace

Client sim_client(int ordinal) {
  const std::lock_guard lock(servers().mutex);
  std::shared_ptr<Server>& server = servers().by_ordinal[ordinal];
  if (server == nullptr) server = make_sim_server(ordinal);
  return Client(server);
}

void renew_sim() {
  const std::lock_guard lock(servers().mutex);
  servers().by_ordinal.clear();
  sim_symbol<void (*)()>("kiln_simcuda_reset")();
  sim_driver().call.cuInit(0);
}

SimScript::SimScript(const std::string& json) {
  if (sim_symbol<int (*)(const char*)>("kiln_simcuda_configure")(json.c_str()) != 0) throw std::runtime_error(sim_report());
}
SimScript::~SimScript() { sim_symbol<int (*)(const char*)>("kiln_simcuda_configure")("{}"); }

unsigned long long sim_count(const char* what) { return sim_symbol<unsigned long long (*)(const char*)>("kiln_simcuda_count")(what); }
std::string sim_report() { return sim_symbol<const char* (*)()>("kiln_simcuda_last_report")(); }

}  // namespace kiln::test
