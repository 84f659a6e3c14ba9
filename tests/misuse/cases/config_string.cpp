// expect: kiln: the members of a config are integers, floats, bools and enums.
#include <kiln/kiln.h>

using namespace kiln;

struct Cfg { std::string name; };
KILN_CONFIG(Cfg, name)

KILN_KERNEL(k, (const Cfg& cfg, In<f32> x)) {
  (void)cfg; (void)x;
}
