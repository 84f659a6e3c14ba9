#include <cstdio>

#include "linked_kernels.h"

extern "C" int value_of_linked() {
  kiln::Buffer<kiln::i32> y(std::vector<kiln::i32>(10, 0));
  linked::value(kiln::for_num_elems(10), y);
  const auto read = y.read();
  if (!read) std::printf("%s\n", read.error().text().c_str());
  return read ? read.value()[9] : -1;
}
