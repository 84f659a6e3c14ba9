// expect: kiln: in_place is about a written parameter; two In may alias anyway.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<f32> y, Out<f32> z)) {
  in_place(x, y);
  z[0] = 1;
}
