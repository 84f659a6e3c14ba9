// kiln devices: what can run kernels here.
#include <algorithm>
#include <cstdio>

#include "command.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/cuda.h"

namespace kiln::cli {
namespace {

std::string three(const Json& d) {
  return "(" + std::to_string(d[0].get<unsigned>()) + ", " + std::to_string(d[1].get<unsigned>()) + ", " +
         std::to_string(d[2].get<unsigned>()) + ")";
}

void print_device(const Json& d) {
  std::string text = d["device"];
  text.resize(std::max<std::size_t>(text.size(), 6), ' ');
  if (!d["usable"].get<bool>()) {
    std::printf("%s not usable: %s\n", text.c_str(), d["why"].get<std::string>().c_str());
    return;
  }
  const auto number = [&](const char* name) { return std::to_string(d[name].get<std::uint64_t>()); };
  const auto has = [&](const char* name) { return d[name].get<bool>() ? "yes" : "no"; };
  text += " " + d["name"].get<std::string>() + ", " + d["arch"].get<std::string>();
  if (d.contains("compute_capability")) text += ", compute capability " + d["compute_capability"].get<std::string>();
  text += ", " + number("workers") + " workers, " + number("memory_bytes") + " bytes of memory\n";
  text += "       a block: at most " + number("max_threads_per_block") + " threads, " + three(d["max_block"]) + "; a grid: at most " +
          three(d["max_grid"]) + " blocks\n";
  text += "       shared memory of a block: at most " + number("max_static_shared_bytes") + " bytes static, " +
          number("max_dynamic_shared_bytes") + " with the dynamic part; clusters: " + has("clusters") +
          "; cooperative launches: " + has("cooperative") + "\n";
  std::fputs(text.c_str(), stdout);
}

}  // namespace

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
    for (const Json& d : devices) print_device(d);
    std::puts("cpu:1 to cpu:63 are further devices on the same processor, for programs that use several");
    if (driver.devices != 0) std::printf("driver %s\n", driver.sentence.c_str());
  }
  return any ? kDone : kFailed;
}

}  // namespace kiln::cli
