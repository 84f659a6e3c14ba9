// What the sample programs share: the device they run on, and the one line that each prints.
#pragma once
#include <kiln/kiln.h>

#include <algorithm>
#include <cmath>
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

// Throws where got[i] is further from want[i] than `relative` of it, and than `absolute`.
template <class T>
void expect_near(const std::vector<T>& got, const std::vector<T>& want, double relative, double absolute) {
  if (got.size() != want.size())
    throw std::runtime_error(std::to_string(got.size()) + " elements instead of " + std::to_string(want.size()));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double g = got[i], w = want[i];
    if (!(std::abs(g - w) <= std::max(absolute, relative * std::abs(w)))) {
      char text[96];
      std::snprintf(text, sizeof text, "element %zu is %.9g instead of %.9g", i, g, w);
      throw std::runtime_error(text);
    }
  }
}

}  // namespace samples
