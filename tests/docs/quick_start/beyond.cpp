// example: beyond
#include <kiln/kiln.h>

#include <cstdio>
#include <vector>
using namespace kiln;

KILN_KERNEL(differences, (In<f32> x, Out<f32> y))
{
  auto i = global_id().x;
  If (i < y.size()) { y[i] = x[i + 1] - x[i]; }  // the last thread looks behind the end of x
}

int main() {
  Buffer<f32> x(std::vector<f32>(1000, 1)), y(std::vector<f32>(1000));
  differences(for_num_elems(1000), x, y);  // its result may be ignored: nothing is lost
  const auto result = y.read();
  if (!result.has_value()) std::printf("%s\n", result.error().text().c_str());
}
// end
