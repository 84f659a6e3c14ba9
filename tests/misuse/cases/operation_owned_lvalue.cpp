// expect: kiln: launch_owned() takes its buffers away: write std::move(buffer), or op::launch() to lend them.
#include <kiln/dsl/operation.h>
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(scale, (InOut<f32> y, Val<f32> a)) { y[0] = y[0] * a; }

void f(Buffer<f32> y) { auto operation = op::launch_owned(scale, for_num_elems(1), y, 2.0f); }
