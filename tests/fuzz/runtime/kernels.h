// The kernels of the random programs: good ones, and each way of failing.
#pragma once
#include "kiln/kiln.h"

namespace kiln::fuzz {

KILN_KERNEL(set_all, (Out<u32> y, Val<u32> v))
{
  auto i = global_id().x;
  If (i < y.size()) { y[i] = v + i; }
}
// Reads all of x, writes all of y.
KILN_KERNEL(plus, (In<u32> x, Out<u32> y, Val<u32> v))
{
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = x[i] + v; }
}
KILN_KERNEL(accumulate, (In<u32> x, InOut<u32> y))
{
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = y[i] * 3 + x[i]; }
}
// Writes the first `most` elements and reads none.
KILN_KERNEL(some, (InOut<u32> y, Val<u32> most, Val<u32> v))
{
  auto i = global_id().x;
  If (i < y.size() && i < most) { y[i] = v ^ i; }
}
// Three inputs may be claimed by three failures; the first counts.
KILN_KERNEL(mix, (In<u32> a, In<u32> b, Out<u32> y, InOut<u32> z))
{
  require(a.size() >= y.size());
  require(b.size() >= y.size());
  require(z.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) {
    y[i] = a[i] + 2 * b[i];
    z[i] = z[i] + 1;
  }
}

// As plus, but the first thread reads far outside.
KILN_KERNEL(outside, (In<u32> x, Out<u32> y, Val<u32> far))
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) { y[i] = x[i]; }
  If (i == 0) { y[0] = x[far]; }
}
KILN_KERNEL(stores_outside, (InOut<u32> y, Val<u32> far))
{
  auto i = global_id().x;
  If (i == 0) { y[far] = 1; }
}
KILN_KERNEL(checked, (In<u32> x, Out<u32> y, Val<u32> number))
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) {
    y[i] = x[i];
    check(i > 0, "number {}", number);
  }
}
// Cannot be recorded, and so never compiles.
KILN_KERNEL(never, (In<u32> x, Out<u32> y, InOut<u32> z))
{
  auto i = global_id().x;
  If (i < 1) {
    barrier();  // refused: not all threads come here
    y[i] = x[i];
    z[i] = 1;
  }
}

// The device is lost with it.
KILN_KERNEL(traps, (InOut<u32> y, Val<u32> number))
{
  auto i = global_id().x;
  If (i == 0) {
    y[i] = number;
    trap("the program's own");
  }
}

}  // namespace kiln::fuzz
