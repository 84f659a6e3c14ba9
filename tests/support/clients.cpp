#include "support/clients.h"

#include <cstdlib>

#include "support/sim.h"

namespace kiln::test {

bool asked_for(const std::string& kind) {
  const char* list = std::getenv("KILN_TEST_DEVICES");
  return ("," + std::string(list != nullptr && *list != 0 ? list : "cpu") + ",").find("," + kind + ",") != std::string::npos;
}

std::vector<Client> clients() {
  std::vector<Client> all;
  if (asked_for("cpu")) all.push_back(Client::open("cpu").value());
  if (asked_for("sim"))
    for (const SimDevice& sim : kSimDevices) all.push_back(sim_client(sim.ordinal));
  if (asked_for("cuda")) all.push_back(Client::open("cuda").value());
  return all;
}

std::vector<ProgramDevice> program_devices() {
  std::vector<ProgramDevice> all;
  if (asked_for("cpu")) all.push_back({"cpu", {"KILN_DEVICE=cpu"}});
  if (asked_for("sim")) {
    for (const SimDevice& sim : kSimDevices)
      all.push_back(
          {sim.name, {"KILN_DEVICE=cuda", "KILN_CUDA_LIBRARY=" + sim_library(), std::string("KILN_SIMCUDA_DEVICES=") + sim.described}});
  }
  if (asked_for("cuda")) all.push_back({"cuda", {"KILN_DEVICE=cuda", "KILN_CUDA_LIBRARY"}});
  return all;
}

}  // namespace kiln::test
