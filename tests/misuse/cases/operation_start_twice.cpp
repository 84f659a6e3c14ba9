// expect: kiln: an operation runs once: write std::move(operation) before sync(), start(), co_await, and_then() or map().
#include <kiln/dsl/operation.h>
#include <kiln/kiln.h>

using namespace kiln;

Operation<void> f(Stream stream) {
  Operation<int> five = op::value(5);
  auto running = five.start(stream);
  (void)co_await std::move(running);
}
