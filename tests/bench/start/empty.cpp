// A program that only links the runtime: what it takes to get to main().
#include <cstdio>
#include <ctime>

#include "kiln/runtime/bundle.h"

int main() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  std::printf("at %lld\n", t.tv_sec * 1000000000LL + t.tv_nsec);
  return kiln::embedded_modules().empty() ? 0 : 1;
}
