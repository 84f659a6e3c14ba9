#include <cstdio>
#include <vector>

// example: call
#include "demo_kernels.h"

float of_saxpy() {
  std::vector<float> hx(1000, 1), hy(1000, 2);
  kiln::Buffer<kiln::f32> x(hx), y(hy);
  demo::saxpy(kiln::for_num_elems(1000), x, y, 3.0f);  // as if the kernel were here
  return y.read().value()[999];
}
// end

float of_scale(const kiln::Bound<kiln::In<kiln::f32>, kiln::Out<kiln::f32>>& variant) {
  std::vector<float> hx(100, 1), hy(100);
  kiln::Buffer<kiln::f32> x(hx), y(hy);
  variant(kiln::for_num_elems(100), x, y);
  const auto read = y.read();
  if (!read) {
    std::printf("%s\n", read.error().text().c_str());
    return 0;
  }
  return read.value()[99];
}

int main() {
  std::printf("saxpy %g\n", of_saxpy());
  std::printf("default %g\n", of_scale(demo::scale.with({})));
  std::printf("variant %g\n", of_scale(demo::scale.with({.twice = true, .factor = 3})));
  std::printf("missing %g\n", of_scale(demo::scale.with({.factor = 3, .side = demo::Side{1}})));
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[4096];
  bool compiler = false;
  while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
    const std::string text = line;
    compiler = compiler || text.find("libLLVM") != std::string::npos || text.find("libkiln_codegen") != std::string::npos;
  }
  std::printf("compiler %s\n", compiler ? "loaded" : "not loaded");
  return 0;
}
