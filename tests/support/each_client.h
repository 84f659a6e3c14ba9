// A test case that runs once on each device.
#pragma once
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "support/clients.h"

namespace kiln::test {

// Called once in a test case, which then runs once for each of clients(), each time with another one.
inline Client each_client() {
  std::optional<Client> chosen;
  for (const Client& client : clients()) {
    const std::string name = client.properties().kind + " " + client.properties().arch;
    SUBCASE(name.c_str()) { chosen = client; }
  }
  REQUIRE(chosen.has_value());
  return *chosen;
}

}  // namespace kiln::test
