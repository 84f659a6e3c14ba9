// expect: kiln: the elements of a kernel's memory are bool, i8 to i64, u8 to u64, f16, bf16, f32 and f64.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<const char*> x)) {
  (void)x;
}
