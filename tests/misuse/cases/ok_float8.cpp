// expect: ok
// What e4m3 and e5m2 do.
#include <kiln/kiln.h>

using namespace kiln;

template <Scalar T>
void stored(In<T> x, InOut<T> y, Val<T> s, Val<bool> c) {
  Shared<T> shared(32);
  DynamicShared<T> dynamic;
  Local<T, 4> local;
  Var<T> v, w = 0.5, u = s, z = T(1);
  Val<T> a = x[0], b = 1;
  v = a;
  shared[0] = dynamic[0];
  local[0] = shared[0];
  y[0] = local[0];
  y[1] = select(c, a, b);
  y[2] = select(c, 1, y[1]);
  y[3] = select<T>(c, T(1), s);
  y[4] = bit_cast<T>(bit_cast<u8>(a));
  y[5] = bit_cast<T>(bit_cast<i8>(v));
  y[6] = cast<T>(cast<f16>(w)) ;
  y[7] = cast<T>(cast<bf16>(u));
  y[8] = cast<T>(cast<f32>(z) + 1);
  y[9] = cast<T>(cast<f64>(x[1]));
  y[10] = cast<T>(cast<e4m3>(x[2]));
  y[11] = cast<T>(cast<e5m2>(x[3]));
  If (c) { y[12] = y[13]; }
}

KILN_KERNEL(of_e4m3, (In<e4m3> x, InOut<e4m3> y, Val<e4m3> s, Val<bool> c)) {
  stored(x, y, s, c);
}
KILN_KERNEL(of_e5m2, (In<e5m2> x, InOut<e5m2> y, Val<e5m2> s, Val<bool> c)) {
  stored(x, y, s, c);
}
