// example: first
#include <kiln/kiln.h>

#include <cstdio>
#include <vector>
using namespace kiln;

KILN_KERNEL(saxpy, (In<f32> x, InOut<f32> y, Val<f32> a))
{
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i] + y[i]; }
}

int main() {
  const std::vector<f32> ones(1000, 1), twos(1000, 2);
  Buffer<f32> x(ones), y(twos);                      // copied to the default device
  saxpy(for_num_elems(1000), x, y, 3.0f);            // compiled here, at its first launch; does not wait
  const std::vector<f32> result = y.read().value();  // waits; throws where there is no result
  std::printf("%zu elements, the last is %g\n", result.size(), result.back());
}
// end
