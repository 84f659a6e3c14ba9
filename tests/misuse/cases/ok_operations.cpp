// expect: ok
#include <kiln/dsl/operation.h>
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(scale, (In<f32> x, Out<f32> y, Val<f32> a)) { y[0] = x[0] * a; }

Operation<f32> first(Buffer<f32> x, Buffer<f32> y) {
  (co_await op::launch(scale, for_num_elems(1), x, y, 2)).value();
  co_return (co_await op::read(y)).value()[0];
}
void f(Buffer<f32> x, Buffer<f32> y) {
  auto owned = op::launch_owned(scale.unchecked(), {{1}, {32}}, std::move(x), std::move(y), 2.0f);
  auto next = std::move(owned).and_then([](Buffer<f32> a, Buffer<f32> b) { return first(a, b); }).map([](f32 v) { return v > 0; });
  auto both = op::when_all(std::move(next), op::call([] {}));
  auto [flag, nothing] = op::unzip(std::move(both));
  (void)op::zip(std::move(flag), std::move(nothing)).sync(StreamPolicy::round_robin(Client::default_client()));
}
