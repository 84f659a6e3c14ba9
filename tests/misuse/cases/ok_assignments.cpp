// expect: ok
// Every assignment of Var and of elements, from every kind of value; copies of Var.
#include <kiln/kiln.h>

using namespace kiln;

static void twice(Var<f32>& v) { v *= 2; }
static Val<f32> half(Val<f32> v) { return v * 0.5; }
static Var<f32> counter(Val<f32> start) {
  Var<f32> v = start;
  v += 1;
  return v;
}

KILN_KERNEL(assignments, (In<f32> x, InOut<f32> y, InOut<f32, 2> z, InOut<u32> n, InOut<bool> b)) {
  Val<f32> v = x[0];
  Var<f32> w, u = v, t = y[0], s = w;
  w = v; w = u; w = x[1]; w = y[1]; w = 1; w = 0.5f; w = v + 1;
  w += v; w += u; w += x[1]; w += y[1]; w += 1;
  w -= v; w *= u; w /= x[1]; w %= y[1];
  y[0] = v; y[0] = u; y[0] = x[1]; y[0] = y[1]; y[0] = 1; y[0] = z[1, 2]; y[0] = z(1, 2);
  y[0] += v; y[0] += u; y[0] -= x[1]; y[0] *= y[1]; y[0] /= 2; y[0] %= w;
  z[0, 1] = z[1, 0]; z(0, 1) += 1; z[0, 1] -= v;
  twice(w);
  y[2] = half(w) + half(y[3]) + half(v) + counter(v) + counter(t);
  Var<u32> i = 3, j = i;
  i &= 1; i |= j; i ^= n[0]; i <<= 2; i >>= j; ++i; i++; --i; i--;
  n[i] &= 1; n[i] |= j; n[i] ^= n[0]; n[i] <<= 2; n[i] >>= j; ++n[i]; n[i]++; --n[i]; n[i]--;
  Var<bool> c = true, d = c;
  c = i > 3; c = false; c = d; c &= d; c |= b[0]; c ^= true;
  b[0] = c; b[1] = c && d; b[2] = !c || !b[0];
  auto moved = std::move(s);
  y[4] = moved + s;
  Local<f32, 4> local;
  Shared<f32> shared(8);
  Shared<f32, 2> tile(8, 9u);
  local[i] = shared[i]; shared[0] = local[1]; tile[1, 2] = shared[3]; tile[i, j] += local[0];
  barrier();
}
