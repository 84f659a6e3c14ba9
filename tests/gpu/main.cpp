// kiln_gpu_measure device|launches|copies|kernels|answers
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>

#include "measures.h"

namespace kiln::gpu {

void say(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::vprintf(format, args);
  va_end(args);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace kiln::gpu

int main(int argc, char** argv) {
  struct Part {
    const char* name;
    int (*run)();
  };
  constexpr Part parts[] = {{"device", kiln::gpu::device},
                            {"launches", kiln::gpu::launches},
                            {"copies", kiln::gpu::copies},
                            {"kernels", kiln::gpu::kernels},
                            {"answers", kiln::gpu::answers}};
  for (const Part& part : parts) {
    if (argc != 2 || std::strcmp(argv[1], part.name) != 0) continue;
    try {
      return part.run();
    } catch (const std::exception& e) {
      kiln::gpu::say("failed: %s", e.what());
      return 1;
    }
  }
  std::fprintf(stderr, "usage: kiln_gpu_measure device|launches|copies|kernels|answers\n");
  return 2;
}
