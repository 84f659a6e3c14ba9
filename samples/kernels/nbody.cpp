#include "nbody.h"

using namespace kiln;

namespace samples {

KILN_KERNEL(nbody, (In<f32> x, In<f32> y, In<f32> z, In<f32> mass, Out<f32> ax, Out<f32> ay, Out<f32> az, Val<f32> softening))
{
  constexpr u32 tile = nbody_threads;
  block_size(tile);
  require(y.size() == x.size());
  require(z.size() == x.size());
  require(mass.size() == x.size());
  require(ax.size() == x.size());
  require(ay.size() == x.size());
  require(az.size() == x.size());
  Shared<f32> sx(tile), sy(tile), sz(tile), sm(tile);
  auto i = global_id().x, t = thread_id().x, bodies = x.size();
  Var<f32> px, py, pz, fx, fy, fz;
  If (i < bodies) {
    px = x[i];
    py = y[i];
    pz = z[i];
  }
  for (auto first : range(0, bodies, tile)) {
    auto j = first + t;
    Var<f32> qx, qy, qz, qm;  // a body without mass where there is none
    If (j < bodies) {
      qx = x[j];
      qy = y[j];
      qz = z[j];
      qm = mass[j];
    }
    sx[t] = qx;
    sy[t] = qy;
    sz[t] = qz;
    sm[t] = qm;
    barrier();
    for (auto k : range(tile)) {
      auto dx = sx[k] - px, dy = sy[k] - py, dz = sz[k] - pz;
      auto near = rsqrt(dx * dx + dy * dy + dz * dz + softening);
      auto pull = sm[k] * near * near * near;
      fx += pull * dx;
      fy += pull * dy;
      fz += pull * dz;
    }
    barrier();
  }
  If (i < bodies) {
    ax[i] = fx;
    ay[i] = fy;
    az[i] = fz;
  }
}

}  // namespace samples
