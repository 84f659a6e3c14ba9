// expect: kiln: the text of a log or a check is a literal that the compiler reads, as in log("x = {}", x), and this is a string of the host. trap(text) takes one.
#include <kiln/kiln.h>
#include <string>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<i32> n, InOut<f32> y)) {
  const std::string name = "x";
  log(name + " = {}", x[0]);
  y[0] = 1;
}
