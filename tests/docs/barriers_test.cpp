// The examples of docs/language/barriers.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_barriers {

// example: block sum
KILN_KERNEL(block_sums, (In<i32> x, Out<i32> sums))
{
  block_size(128);
  Shared<i32> s(128);
  auto i = global_id().x, t = thread_id().x;
  If (i < x.size()) { s[t] = x[i]; }
  Else { s[t] = 0; }
  for (u32 half = 64; half > 0; half /= 2) {  // of the host: seven steps are recorded
    barrier();                                // what the others wrote is there now
    If (t < half) { s[t] += s[t + half]; }
  }
  If (t == 0 && block_id().x < sums.size()) { sums[block_id().x] = s[0]; }
}
// end

// example: votes
KILN_KERNEL(votes, (In<i32> x, Out<u32> y))
{
  require(y.size() >= 3);
  Val<bool> negative = x[thread_id().x] < 0;
  Val<bool> any = barrier_any(negative), all = barrier_all(negative);
  Val<u32> n = barrier_count(negative);
  If (thread_id().x == 0) {
    y[0] = cast<u32>(any);
    y[1] = cast<u32>(all);
    y[2] = n;
  }
}
// end

// example: uniform
// Each block goes on until none of its threads has anything left.
KILN_KERNEL(halve, (InOut<u32> x, Out<u32> rounds))
{
  auto t = thread_id().x;
  Var<u32> n = 0;
  Var<bool> more = true;
  While (block_uniform(more)) {  // the same in all threads: a barrier may stand in the loop
    Val<bool> left = x[t] > 0;
    If (left) { x[t] /= 2; }
    more = barrier_any(left);
    ++n;
  }
  If (t == 0) { rounds[0] = n; }
}
// end

// example: divergent
KILN_KERNEL(divergent, (InOut<u32> x))
{
  auto t = thread_id().x;
  If (t < 10) {
    x[t] += 1;
    barrier();  // the other threads never come here
  }
}
// end

}  // namespace docs_barriers

TEST_CASE("docs/language/barriers") {
  check_example<i32>(docs_barriers::block_sums, {{2}, {128}}, {buffer(made_of<i32>(200, [](auto i) { return i; })), filled<i32>(2, 0)}, 1,
                     {127 * 128 / 2, 199 * 200 / 2 - 127 * 128 / 2});
  check_example<u32>(docs_barriers::votes, {{1}, {40}},
                     {buffer(made_of<i32>(40, [](auto i) { return i == 5 || i == 39 ? -1 : 1; })), filled<u32>(3, 9)}, 1, {1, 0, 2});
  check_example<u32>(docs_barriers::halve, {{1}, {35}}, {buffer(made_of<u32>(35, [](auto i) { return i; })), filled<u32>(1, 0)}, 1, {7});
  const Client cpu = Client::open("cpu").value();
  auto x = Buffer<u32>::zeroed(cpu, 32).value();
  check_text("divergent_barrier", docs_barriers::divergent({{1}, {32}}, x).error().text());
}
