#include <dlfcn.h>

#include <cstdio>
#include <vector>

#include "parts.h"
#include "sums.h"

extern "C" int value_of_linked();

void everything(const char* library) {
  kiln::Buffer<kiln::f32> x(std::vector<float>(100, 1)), y(std::vector<float>(100, 2));
  parts::saxpy(kiln::for_num_elems(100), x, y, 3.0f);
  std::printf("own %g\n", y.read().value()[99]);
  std::printf("archive %g\n", sum_of(std::vector<float>(1000, 2)));
  std::printf("linked %d\n", value_of_linked());
  for (int round = 0; round < 2; ++round) {
    void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      std::printf("%s\n", dlerror());
      return;
    }
    std::printf("opened %d\n", reinterpret_cast<int (*)(int)>(dlsym(opened, "offset_of_opened"))(round));
    if (round == 1) std::printf("clash %d\n", reinterpret_cast<int (*)()>(dlsym(opened, "value_of_opened"))());
    dlclose(opened);
    void* still = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    std::printf("%s\n", still == nullptr ? "gone" : "still there");
  }
}
