// The examples of docs/language/control-flow.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_control_flow {

// example: branches
KILN_KERNEL(sign, (In<f32> x, Out<i32> y))
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) {
    If (x[i] < 0) { y[i] = -1; }
    Else If (x[i] > 0) { y[i] = 1; }
    Else { y[i] = 0; }
  }
}
// end

// example: while
// How many steps the Collatz sequence of x takes to reach 1.
KILN_KERNEL(collatz, (In<u32> x, Out<u32> steps))
{
  auto i = global_id().x;
  If (i < steps.size() && i < x.size()) {
    Var<u32> v = x[i], n = 0;
    While (v > 1) {  // evaluated before each iteration
      v = select(v % 2 == 0, v / 2, 3 * v + 1);
      ++n;
    }
    steps[i] = n;
  }
}
// end

// example: ranges
KILN_KERNEL(ranges, (InOut<i32> y, Val<i32> n))
{
  for (auto i : range(n)) { y[0] += i; }             // 0, 1, ... n - 1
  for (auto i : range(2, n)) { y[1] += i; }          // 2, 3, ... n - 1
  for (auto i : range(0, n, 3)) { y[2] += i; }       // 0, 3, ... below n
  for (auto i : range(4)) { y[3] += cast<i32>(i); }  // of host numbers alone: u32
  for (auto i : range<i32>(-2, 2)) { y[4] += i * i; }
}
// end

// example: switch
KILN_KERNEL(dispatch, (In<i32> x, Out<i32> y))
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) {
    Var<i32> v = 0;
    Switch(x[i]) {
      Case(0) { v = 1; }
      Case(1, 2, -7) { v = 3; }  // no falling through
      Default { v = 5; }
    }
    y[i] = v;
  }
}
// end

// example: leaving
// The first element above a limit; and how many were looked at, odd ones not counted.
KILN_KERNEL(first_above, (In<u32> x, Out<u32> y, Val<u32> limit))
{
  If (global_id().x != 0) { Return(); }  // the thread ends
  Var<u32> found = x.size(), looked = 0;
  for (auto i : range(x.size())) {
    If (x[i] % 2 == 1) { Continue(); }
    ++looked;
    If (x[i] > limit) {
      found = i;
      Break();  // leaves the loop, through any If or Switch
    }
  }
  y[0] = found;
  y[1] = looked;
}
// end

// example: unrolled
// C++'s own for and if run while recording: what they hold is recorded each time.
KILN_KERNEL(polynomial, (In<f32> x, Out<f32> y))
{
  constexpr std::array<f32, 4> factors{1, -2, 0, 3};
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) {
    Var<f32> sum = 0;
    for (const f32 f : factors) {
      sum *= x[i];
      if (f != 0) sum += f;  // two of the four additions cost nothing
    }
    y[i] = sum;
  }
}
// end

// example: short circuit
KILN_KERNEL(runs, (In<i32> x, Out<i32> y))
{
  auto i = global_id().x;
  If (i < y.size()) {
    // x[i + 1] is read only where there is one.
    y[i] = select<i32>(i + 1 < x.size() && x[i + 1] == x[i], 1, 0);
  }
}
// end

// example: effect
KILN_KERNEL(effect, (In<i32> x, InOut<u32> n))
{
  auto i = global_id().x;
  If (i < x.size() && n.atomic_add(0, 1) < 10) { n[1] = i; }
}
// end

// example: escapes
KILN_KERNEL(escapes, (In<i32> x, InOut<i32> y))
{
  for (auto i : range(x.size())) {
    If (x[i] == 0) { break; }
    y[0] += x[i];
  }
}
// end

// example: outside
KILN_KERNEL(outside, (In<i32> x, InOut<i32> y))
{
  for (u32 i = 0; i < 4; ++i) {  // a loop of the host, unrolled
    If (x[i] == 0) { Break(); }
    y[0] += x[i];
  }
}
// end

// example: long words
KILN_KERNEL(long_words, (In<i32> x, Out<i32> y))
{
  auto i = global_id().x;
  KILN_IF(i < y.size() && i < x.size()) {
    Var<i32> v = x[i];
    KILN_WHILE(v > 9) { v /= 10; }
    KILN_SWITCH(v) {
      KILN_CASE(0) { y[i] = -1; }
      KILN_DEFAULT { y[i] = v; }
    }
  }
  KILN_ELSE { Return(); }
}
// end

}  // namespace docs_control_flow

TEST_CASE("docs/language/control-flow: branches and loops") {
  check_example<i32>(docs_control_flow::sign, {{1}, {3}}, {buffer<f32>({-2, 0, 7}), filled<i32>(3, 9)}, 1, {-1, 0, 1});
  check_example<u32>(docs_control_flow::collatz, {{1}, {4}}, {buffer<u32>({1, 2, 6, 27}), filled<u32>(4, 0)}, 1, {0, 1, 8, 111});
  check_example<i32>(docs_control_flow::ranges, {{1}, {1}}, {filled<i32>(5, 0), scalar<i32>(8)}, 0, {28, 27, 9, 6, 6});
  check_example<i32>(docs_control_flow::dispatch, {{1}, {5}}, {buffer<i32>({0, 1, 5, 2, -7}), filled<i32>(5, 0)}, 1, {1, 3, 5, 3, 3});
  check_example<u32>(docs_control_flow::first_above, {{1}, {2}}, {buffer<u32>({2, 9, 4, 8, 10}), filled<u32>(2, 0), scalar<u32>(5)}, 1,
                     {3, 3});
  check_example<f32>(docs_control_flow::polynomial, {{1}, {2}}, {buffer<f32>({2, -1}), filled<f32>(2, 0)}, 1, {3, 0});
  check_example<i32>(docs_control_flow::long_words, {{1}, {3}}, {buffer<i32>({0, 7, 345}), filled<i32>(3, 0)}, 1, {-1, 7, 3});
}

TEST_CASE("docs/language/control-flow: && and ||") {
  check_example<i32>(docs_control_flow::runs, {{1}, {4}}, {buffer<i32>({5, 5, 6, 6}), filled<i32>(4, 9)}, 1, {1, 0, 1, 0});
  check_text("effect_on_the_right", docs_control_flow::effect.record().error().text());
}

TEST_CASE("docs/language/control-flow: leaving in the wrong way") {
  check_text("left_by_break", docs_control_flow::escapes.record().error().text());
  check_text("break_outside", docs_control_flow::outside.record().error().text());
}
