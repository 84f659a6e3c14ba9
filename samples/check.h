// What the sample programs share: the device they run on, and the one line that each prints.
#pragma once
#include <kiln/kiln.h>

#include <cstdio>
#include <exception>
#include <string>

namespace samples {

// Runs a sample: prints "name: ok ..." with what run() returns, or what is wrong, and gives the exit code. run() throws when a result is
// wrong.
template <class Run>
int check(const char* name, Run run) {
  try {
    const std::string text = run();
    std::printf("%s: ok, %s on %s\n", name, text.c_str(), kiln::Client::default_client().properties().name.c_str());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: WRONG: %s\n", name, e.what());
    return 1;
  }
}

// Throws where got[i] differs from want[i].
template <class T>
void expect_equal(const std::vector<T>& got, const std::vector<T>& want) {
  if (got.size() != want.size())
    throw std::runtime_error(std::to_string(got.size()) + " elements instead of " + std::to_string(want.size()));
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != want[i]) {
      throw std::runtime_error("element " + std::to_string(i) + " is " + std::to_string(got[i]) + " instead of " + std::to_string(want[i]));
    }
  }
}

}  // namespace samples
