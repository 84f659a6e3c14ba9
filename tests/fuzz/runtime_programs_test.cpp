// Random programs of the runtime: no read gives what no operation wrote, none hides a failure or names another, nothing is left behind.
#include <doctest/doctest.h>

#include "fuzz/runtime/program.h"
#include "support/each_client.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("random programs of three threads over four streams leave on every byte what the order of their operations says") {
  const Client client = each_client();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const fuzz::ProgramOutcome outcome = fuzz::run_program(client, {.seed = seed, .operations = 900});
    CHECK(outcome.wrong == "");
    if (!outcome.wrong.empty()) break;
  }
}

TEST_CASE("random programs of one thread over one stream, too") {
  const Client client = each_client();
  for (std::uint64_t seed = 101; seed <= 105; ++seed)
    CHECK(fuzz::run_program(client, {.seed = seed, .operations = 500, .threads = 1, .streams = 1}).wrong == "");
}
