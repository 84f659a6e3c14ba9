#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // No test, and no program that a test starts, has kernels from an environment or leaves some there, unless it names one of its own.
  setenv("KILN_ENV", "off", 1);
  return doctest::Context(argc, argv).run();
}
