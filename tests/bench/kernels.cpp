#include "kernels.h"

namespace kiln::bench {

KILN_KERNEL(empty, ())
{}

// Three accesses a branch, none of them proven.
KILN_KERNEL(guarded_ifs, (const Size& size, In<f32> x, InOut<f32> y))
{
  auto i = global_id().x;
  for (u32 s = 0; s < size.count; ++s) {
    If (x[i + s] > static_cast<f32>(s)) { y[i + s] = x[i] * static_cast<f32>(s); }
  }
}

KILN_KERNEL(statements, (const Size& size, In<f32> x, InOut<f32> y))
{
  auto i = global_id().x;
  Var<f32> v = x[i];
  for (u32 s = 0; s < size.count; ++s) v = v * v + static_cast<f32>(s);
  y[i] = v;
}

namespace {

template <class F>
void map(In<f32>& x, Out<f32>& y, F f) {
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = f(x[i]); }
}

}  // namespace

KILN_KERNEL(map_exp, (In<f32> x, Out<f32> y))
{
  map(x, y, [](auto v) { return exp(v); });
}
KILN_KERNEL(map_log, (In<f32> x, Out<f32> y))
{
  map(x, y, [](auto v) { return log(v); });
}
KILN_KERNEL(map_sin, (In<f32> x, Out<f32> y))
{
  map(x, y, [](auto v) { return sin(v); });
}
KILN_KERNEL(map_tanh, (In<f32> x, Out<f32> y))
{
  map(x, y, [](auto v) { return tanh(v); });
}

}  // namespace kiln::bench
