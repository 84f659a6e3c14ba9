// Random programs of the runtime: no read gives what no operation wrote, none hides a failure or names another, nothing is left behind.
#include <doctest/doctest.h>

#include "fuzz/runtime/program.h"
#include "support/each_client.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("random programs of three threads over four streams leave on every byte what the order of their operations says") {
  const Client client = each_client();
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const fuzz::ProgramOutcome outcome = fuzz::run_program(client, {.seed = seed, .operations = 900});
    CHECK(outcome.wrong == "");
    if (!outcome.wrong.empty()) break;
  }
}

TEST_CASE("random programs of one thread over one stream, too") {
  const Client client = each_client();
  for (std::uint64_t seed = 101; seed <= 104; ++seed)
    CHECK(fuzz::run_program(client, {.seed = seed, .operations = 500, .threads = 1, .streams = 1}).wrong == "");
}

TEST_CASE("random programs whose driver refuses calls now and then read no wrong byte and leave nothing behind") {
  if (!asked_for("sim")) return;
  for (const std::string device : {"h200", "t4"}) {
    CAPTURE(device);
    for (std::uint64_t seed = 201; seed <= 202; ++seed) {
      const Client client = fuzz::fault_client(device, fuzz::FaultKind::Refusals);
      CHECK(fuzz::run_program(client, {.seed = seed, .operations = 600, .faults = fuzz::FaultKind::Refusals}).wrong == "");
    }
  }
}

TEST_CASE("random programs that lose their device read no wrong byte, end, and leave nothing behind") {
  std::vector<std::string> devices;
  if (asked_for("cpu")) devices.push_back("cpu");
  if (asked_for("sim")) devices.insert(devices.end(), {"h200", "t4"});
  for (const std::string& device : devices) {
    CAPTURE(device);
    for (std::uint64_t seed = 301; seed <= 304; ++seed) {
      const Client client = fuzz::fault_client(device, fuzz::FaultKind::Loss);
      CHECK(fuzz::run_program(client, {.seed = seed, .operations = 300, .faults = fuzz::FaultKind::Loss}).wrong == "");
    }
  }
}
