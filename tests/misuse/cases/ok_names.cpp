// expect: ok
// `using namespace kiln` beside the headers of POSIX and of the C library, and beside std: no name collides.
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <ranges>

#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(names, (In<f32> x, InOut<f32> y, InOut<u32> n)) {
  options({.checked = false, .contraction = false, .fast_math = true});
  auto i = global_id().x;
  auto [tx, ty, tz] = thread_id();
  Val<f32> v = x[i];
  y[i] = sqrt(v) + floor(v) + ceil(v) + trunc(v) + exp(v) + log(v) + sin(v) + cos(v) + tanh(v) + pow(v, v) + fma(v, v, v) + abs(v);
  y[i] = min(v, v) + max(v, v) + select(v > 0, v, v) + cast<f32>(i) + bit_cast<f32>(i);
  n[i] = clz(i) + ctz(i) + popcount(i) + lane_id() + warp_id() + warp::size + tx + ty * tz;
  n[i] = block_dim().x + grid_dim().y + block_id().z + cast<u32>(global_id64().x);
  n[i] = warp::sum(i) + warp::inclusive_min(i) + warp::exclusive_or_(i) + warp::ballot(warp::any(i > 2) && warp::all(i > 3)) + cast<u32>(warp::elect());
  warp::sync();
  barrier();
  log("{} {:x} {:.3f} {} {}", i, n[i], y[i], v > 0, 2.5f);
  log("words");
  check(v > 0, "{} {}", v, 1);
  assume(i < n.size() && log(v) > 1);
  If (clock_cycles() > global_time()) { trap("the end"); }
  If (v > 1) { trap(); }
  n[i] = barrier_count(barrier_any(i > 3) && barrier_all(i > 4)) + block_uniform(i);
}

float host(float a) { return std::sqrt(a) + sqrtf(a) + std::fma(a, a, a) + static_cast<float>(std::max(1, 2)) + ::powf(a, a); }
int host_sync() { return static_cast<int>(getpid()) + (sync(), 0); }
