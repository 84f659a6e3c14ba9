// Contents for buffers.
#pragma once
#include <vector>

namespace kiln::test {

template <class T>
std::vector<T> made_of(std::size_t n, auto f) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<T>(f(i));
  return v;
}

}  // namespace kiln::test
