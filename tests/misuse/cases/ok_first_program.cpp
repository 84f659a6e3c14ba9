// expect: ok
// The first program of the documentation, as printed there.
#include <kiln/kiln.h>
using namespace kiln;

KILN_KERNEL(saxpy, (In<f32> x, InOut<f32> y, Val<f32> a)) {
  require(x.size() >= y.size());              // checked by the host at launch, known to the prover
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i] + y[i]; }
}

int main() {
  std::vector<f32> hx(1000, 1), hy(1000, 2);
  Buffer<f32> x(hx), y(hy);                   // the default client's device
  saxpy(for_num_elems(1000), x, y, 2.0f);     // this thread's default stream there
  hy = y.read().value();                      // waits; throws the full text, or test the Result
}
