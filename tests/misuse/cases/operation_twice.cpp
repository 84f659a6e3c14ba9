// expect: kiln: an operation runs once: write std::move(operation) before sync(), start(), co_await, and_then() or map().
#include <kiln/dsl/operation.h>
#include <kiln/kiln.h>

using namespace kiln;

void f() {
  Operation<int> five = op::value(5);
  five.sync();
}
