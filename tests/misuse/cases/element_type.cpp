// expect: kiln: the elements of a kernel's memory are bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, e4m3 and e5m2.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<const char*> x)) {
  (void)x;
}
