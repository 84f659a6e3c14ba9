// expect: ok
// The long words, and kernel names without `using namespace kiln`, in a header-like place. (kiln.h brings the short words; a program that owns them
// includes kiln/dsl/dsl.h.)
#include <kiln/dsl/dsl.h>

#undef If
#undef Else
#undef While
#undef Switch
#undef Case
#undef Default

namespace app::kernels {

KILN_DECLARE_KERNEL(clamp, (kiln::InOut<kiln::f32> y, kiln::Val<kiln::f32> limit));

KILN_KERNEL(clamp, (kiln::InOut<kiln::f32> y, kiln::Val<kiln::f32> limit)) {
  auto i = kiln::global_id().x;
  KILN_IF (i < y.size()) {
    kiln::Var<kiln::f32> v = y[i];
    KILN_WHILE (v > limit) { v -= limit; }
    KILN_SWITCH (i) {
      KILN_CASE (0) { v = 0; }
      KILN_DEFAULT { v += 1; }
    }
    y[i] = v;
  }
  KILN_ELSE { kiln::Return(); }
}

struct Shape {
  int width = 4;
  bool wide = false;
};
KILN_CONFIG(Shape, width, wide)

KILN_KERNEL(family, (const Shape& shape, kiln::Out<kiln::f32> y)) {
  if (shape.wide) y[0] = static_cast<float>(shape.width);
}

template <kiln::Floating T>
kiln::Val<T> square(kiln::Val<T> v) { return v * v; }
inline auto twice(kiln::DslOf<kiln::f32> auto&& v) { return 2 * static_cast<decltype(v)&&>(v); }
KILN_KERNEL(generic, (kiln::In<kiln::f32> x, kiln::Out<kiln::f32> y)) { y[0] = square<kiln::f32>(x[0]) + twice(x[1]); }

void launch(kiln::Buffer<float>& y) {
  clamp({{1, 1}, {32}}, y, 3);
  clamp(y.client().stream(), kiln::for_num_elems(y.size()), y, 0.5);
  (void)family.with({.width = 3}).unchecked()(kiln::for_num_elems(1), y);
  (void)generic.checked()({{1}, {1}}, y, y);
}

}  // namespace app::kernels
