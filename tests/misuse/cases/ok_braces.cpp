// expect: ok
// Control flow without braces, nested, beside C++'s own: no warning about dangling else, shadowing or unused names.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(nested, (InOut<u32> y, Val<u32> n)) {
  If (n > 1) y[0] = 1;
  If (n > 1) y[0] = 1;
  Else y[0] = 2;
  If (n > 1) {
    If (n > 2) {
      If (n > 3) { y[1] = 3; }
      Else If (n > 4) { y[1] = 4; }
      Else { y[1] = 5; }
    }
  }
  Else {
    If (n > 0) { y[2] = 1; }
  }
  for (u32 k = 0; k < 2; ++k) {
    If (n == k) { y[k] = 1; }
    Else { y[k] = 2; }
  }
  if (y.rank == 1) {
    If (n > 9) { y[9] = 1; }
  } else {
    If (n > 9) { y[9] = 2; }
  }
  While (y[0] > 3)
    for (auto i : range(n))
      If (i == 2) Break();
  for (auto i : range(n))
    for (auto j : range(i))
      If (i + j > 3) {
        Switch (j) {
          Case (1) y[i] = 1;
          Default Continue();
        }
        Return();
      }
}
