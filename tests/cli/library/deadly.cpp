// A kernel library in which one kernel's definition crashes when it is recorded, and one waits for ever.
#include <kiln/kiln.h>
#include <unistd.h>

#include <csignal>

namespace cli_deadly {
using namespace kiln;

KILN_KERNEL(fine, (Out<u32> y))
{
  auto i = global_id().x;
  If (i < y.size()) { y[i] = i; }
}

KILN_KERNEL(crashes, (Out<u32> y))
{
  raise(SIGSEGV);
  y[0u] = 1u;
}

KILN_KERNEL(waits, (Out<u32> y))
{
  volatile bool for_ever = true;
  while (for_ever) pause();
  y[0u] = 1u;
}

}  // namespace cli_deadly
