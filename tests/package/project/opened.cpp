#include <cstdio>

#include "opened_kernels.h"

extern "C" int offset_of_opened(int from) {
  kiln::Buffer<kiln::i32> y(std::vector<kiln::i32>(10, from));
  opened::offset(kiln::for_num_elems(10), y, 5);
  return y.read().value()[9];
}

extern "C" int value_of_opened() {
  kiln::Buffer<kiln::i32> y(std::vector<kiln::i32>(10, 0));
  opened::value(kiln::for_num_elems(10), y);
  const auto read = y.read();
  if (!read) std::printf("%s\n", read.error().text().c_str());
  return read ? read.value()[9] : -1;
}
