// SLEEF's vector functions over an array, as one calls them who knows the library: the widest vectors of this machine, the variants with an
// error of at most 1 unit in the last place (u10), one thread.
#pragma once
#include <cstddef>
#include <string>

namespace kiln::bench {

struct Sleef {
  using Map = void (*)(const float* x, float* y, std::size_t n);  // n: a multiple of 16
  Map exp = nullptr, log = nullptr, sin = nullptr, tanh = nullptr;
  std::string name;  // "SLEEF u10, AVX-512"
  std::string why;   // it cannot be measured: the reason; then there are no functions
};
Sleef sleef();

}  // namespace kiln::bench
