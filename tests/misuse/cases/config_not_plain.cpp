// expect: kiln: a config is a plain struct: no constructors, no private members.
#include <kiln/kiln.h>

using namespace kiln;

struct Cfg { explicit Cfg(int n) : tile(n) {} int tile; };

KILN_KERNEL(k, (const Cfg& cfg, In<f32> x)) {
  (void)cfg; (void)x;
}
