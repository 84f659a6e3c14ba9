// expect: ok
// Literals in every operand position, of every operator and function.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(floats, (In<f32> x, InOut<f32> y, Val<f32> a)) {
  y[0] = 0.5 * x[0] + 1;
  y[1] = 1 - a / 2 + 3.0f * a - 1u;
  y[2] = 2 % a + a % 2;
  y[3] = min(a, 0) + max(1, a) + fma(a, 2, 1) + fma(2, a, 1) + fma(1, 2, a) + pow(a, 2) + pow(2, a) + copysign(1, a);
  y[4] = select(a > 0, 1, a) + select(0.5 < a, a, 2) + select(a == 1 || a != 2, a, 0.25);
  y[5] = select<f32>(a <= 1, 1, 0);
  Val<f32> v = 0.1;
  Var<f32> w = 1;
  w = 2;
  w = 0.5;
  w += 1;
  y[6] = v + w;
  If (1 < a && a < 2) { y[7] = 1; }
  If (true && a > 1) { y[7] = 2; }
  If (a > 1 || false) { y[7] = 3; }
}

KILN_KERNEL(halves, (In<f16> x, InOut<bf16> y, Val<f16> a, Val<bf16> b)) {
  Val<f16> v = 0.1;
  Var<f16> w = 1;
  w = 2 * x[0] + v - f16(3);
  w += 0.5;
  w /= a;
  y[0] = y[1] + 1 - b * 2.0f;
  y[1] *= bf16(2);
  ++y[2];
  y[3] = max(0, y[0]) + fma(b, 2, 1) + sqrt(b) + select(b > 0, 1, b) + cast<bf16>(w) + exp(b) + warp::sum(b);
}

KILN_KERNEL(integers, (InOut<u32> y, Val<u32> n, Val<i64> m)) {
  y[0] = (1 << n) + (n << 1) + (n >> 2u) + (n & 0xff) + (3 | n) + (n ^ 1) + 7 % n + n / 3;
  y[1ull] = mul_hi(n, 3) + kiln::min(n, 4) + kiln::max(5, n);
  y[n] = cast<u32>(-1 + m) + cast<u32>(m - -1) + cast<u32>(m > -5);
  y[m] = y.atomic_add(m, 1) + y.atomic_cas(0, 1, 2) + y.atomic_max(n, 7);
  y[2] = warp::shfl_idx(n, 0) + warp::shfl_down(n, 16) + warp::shfl_xor(n, 1u);
  for (auto i : range(10)) { y[i] = 1; }
  for (auto i : range(0, n)) { y[i] = 2; }
  for (auto i : range(n, 10)) { y[i] = 3; }
  for (auto i : range(0, n, 2)) { y[i] = 4; }
  for (auto i : range(0, 100, n)) { y[i] = 5; }
  for (auto i : range<i32>(-3, 3)) { y[i + 3] = 6; }
  Switch (m) {
    Case (-1) { y[0] = 1; }
    Case (2, 3u, 4ll) { y[0] = 2; }
    Default { y[0] = 3; }
  }
}
