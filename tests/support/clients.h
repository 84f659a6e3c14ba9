// The devices that tests run on, as clients.
#pragma once
#include <string>
#include <vector>

#include "kiln/runtime/client.h"

namespace kiln::test {

// Whether ./dev test was asked for that kind of device: cpu, sim or cuda (KILN_TEST_DEVICES; without it cpu).
bool asked_for(const std::string& kind);

// One of the CPU, two of the simulated driver (H200 and T4), one of a real driver's first GPU, as far as asked for. Throws kiln::Exception
// when one cannot be opened.
std::vector<Client> clients();

// The same devices for programs that a test starts: each is the default device in an environment.
struct ProgramDevice {
  std::string name;
  std::vector<std::string> environment;  // as run_process takes it
};
std::vector<ProgramDevice> program_devices();

}  // namespace kiln::test
