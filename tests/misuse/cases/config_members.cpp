// expect: kiln: a config has at most 16 members.
#include <kiln/kiln.h>

using namespace kiln;

struct Cfg { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q; };

KILN_KERNEL(k, (const Cfg& cfg, InOut<i32> y)) {
  y[0] = cfg.q;
}
