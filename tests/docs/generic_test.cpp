// The examples of docs/language/generic.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_generic {

// example: functions
// Functions on values are the device functions; each call is recorded where it stands.
template <Floating T>
Val<T> lerp(Val<T> a, Val<T> b, Val<T> t) {
  return fma(t, b - a, a);
}

void order(Var<f32>& a, Var<f32>& b) {  // changes the caller's locals
  If (a > b) {
    Val<f32> kept = a;
    a = b;
    b = kept;
  }
}

KILN_KERNEL(between, (In<f32> x, Out<f32> y))
{
  Var<f32> low = x[0], high = x[1];
  order(low, high);
  y[0] = lerp<f32>(low, high, 0.25);
}
// end

// example: any value
// DslOf<T> takes what has a T in a kernel: a Val, a Var, an element of memory.
template <Number T, DslOf<T> A>
Val<T> squared(A&& a) {
  Val<T> v = std::forward<A>(a);  // read once
  return v * v;
}

template <Integer T>
Val<T> bits_of(Val<T> v) {
  return popcount(v);
}

KILN_KERNEL(squares, (In<i32> x, InOut<i32> y))
{
  Var<i32> v = x[0];
  y[0] = squared<i32>(v) + squared<i32>(x[1]) + squared<i32>(y[1]) + bits_of<i32>(v);
}
// end

// example: any memory
template <class Memory>
Val<f32> sum_of(const Memory& m, Val<u32> n) {  // In, Shared, Local ...: whatever has a subscript
  Var<f32> sum = 0;
  for (auto i : range(n)) { sum += m[i]; }
  return sum;
}

KILN_KERNEL(sums, (In<f32> x, Out<f32> y))
{
  Local<f32, 2> l;
  l[0] = 10;
  l[1] = 20;
  y[0] = sum_of(x, x.size()) + sum_of(l, 2);
}
// end

// example: for each type
template <Scalar T>
auto copy_kernel(const char* name) {
  return local_kernel(name, [](In<T> x, Out<T> y) {
    auto i = global_id().x;
    If (i < y.size() && i < x.size()) { y[i] = x[i]; }
  });
}
// end

// example: host values
constexpr u32 kWidth = 3;  // a constant of the host is a constant of the kernel
struct StepCfg {
  f32 step = 0.5f;  // a member of the config: one variant for each value
};
KILN_CONFIG(StepCfg, step)

KILN_KERNEL(steps, (const StepCfg& cfg, Out<f32> y, Val<f32> start))  // start: given by each launch
{
  for (u32 i = 0; i < kWidth; ++i) y[i] = start + cfg.step * static_cast<f32>(i);
}
// end

}  // namespace docs_generic

TEST_CASE("docs/language/generic") {
  check_example<f32>(docs_generic::between, {{1}, {1}}, {buffer<f32>({5, 1}), filled<f32>(1, 0)}, 1, {2});
  check_example<i32>(docs_generic::squares, {{1}, {1}}, {buffer<i32>({3, -4}), buffer<i32>({0, 5})}, 1, {9 + 16 + 25 + 2, 5});
  check_example<f32>(docs_generic::sums, {{1}, {1}}, {buffer<f32>({1, 2, 3}), filled<f32>(1, 0)}, 1, {36});
  check_example<u8>(docs_generic::copy_kernel<u8>("copy_u8"), {{1}, {3}}, {buffer<u8>({1, 2, 3}), filled<u8>(3, 0)}, 1, {1, 2, 3});
  check_example<bf16>(docs_generic::copy_kernel<bf16>("copy_bf16"), {{1}, {1}}, {buffer<bf16>({bf16(3)}), filled<bf16>(1, 0)}, 1,
                      {bf16(3)});
  check_example_with<f32>(docs_generic::steps, docs_generic::StepCfg{.step = 2}, {{1}, {1}}, {filled<f32>(3, 0), scalar<f32>(1)}, 0,
                          {1, 3, 5});
}
