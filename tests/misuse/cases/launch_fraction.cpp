// expect: kiln: argument 2 of this launch is no host number that the kernel's Val<T> takes; write static_cast<T>(x).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, Val<u32> n)) { require(true); }

void launch() {
  Buffer<f32> a(std::vector<f32>(3));
  k(for_num_elems(3), a, 2.5);
}
