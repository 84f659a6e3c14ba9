// kiln devices: what can run kernels here.
#include <cstdio>

#include "command.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/cuda.h"

namespace kiln::cli {

int devices_command(const Options& options) {
  Json devices = Json::array();
  std::vector<std::string> names{"cpu"};
  const cuda::DriverReport driver = cuda::driver_report();
  for (int i = 0; i < driver.devices; ++i) names.push_back("cuda:" + std::to_string(i));
  if (driver.devices == 0) names.push_back("cuda");
  for (const std::string& name : names) {
    const Result<Client> client = Client::open(name);
    if (!client) {
      devices.push_back({{"device", name}, {"usable", false}, {"why", client.error().data().message}});
      continue;
    }
    const DeviceProperties& p = client.value().properties();
    devices.push_back({{"device", name},
                       {"usable", true},
                       {"name", p.name},
                       {"kind", p.kind},
                       {"arch", p.arch},
                       {"workers", p.workers},
                       {"warp_size", p.warp_size},
                       {"max_threads_per_block", p.max_threads_per_block},
                       {"max_block", {p.max_block.x, p.max_block.y, p.max_block.z}},
                       {"max_grid", {p.max_grid.x, p.max_grid.y, p.max_grid.z}},
                       {"max_static_shared_bytes", p.max_static_shared},
                       {"max_dynamic_shared_bytes", p.max_dynamic_shared},
                       {"memory_bytes", p.memory_bytes},
                       {"clusters", p.clusters},
                       {"cooperative", p.cooperative}});
    if (p.compute_capability != 0)
      devices.back()["compute_capability"] = std::to_string(p.compute_capability / 10) + "." + std::to_string(p.compute_capability % 10);
  }
  bool any = false;
  for (const Json& d : devices) any = any || d["usable"].get<bool>();
  if (options.json) {
    print_json({{"devices", devices}, {"cuda_driver", {{"state", driver.state}, {"file", driver.file}, {"text", driver.sentence}}}});
  } else {
    for (const Json& d : devices) {
      if (d["usable"].get<bool>())
        std::printf("%-6s %s, %s, %u workers\n", d["device"].get<std::string>().c_str(), d["name"].get<std::string>().c_str(),
                    d["arch"].get<std::string>().c_str(), d["workers"].get<unsigned>());
      else std::printf("%-6s not usable: %s\n", d["device"].get<std::string>().c_str(), d["why"].get<std::string>().c_str());
    }
  }
  return any ? kDone : kFailed;
}

}  // namespace kiln::cli
