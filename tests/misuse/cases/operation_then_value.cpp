// expect: kiln: the function of and_then() gives an Operation; map() is for one that gives a value.
#include <kiln/dsl/operation.h>
#include <kiln/kiln.h>

using namespace kiln;

void f() { auto next = op::value(5).and_then([](int v) { return v + 1; }); }
