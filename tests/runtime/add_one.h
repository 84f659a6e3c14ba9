// A kernel of Kiln's own for the CUDA device: adds 1 to each element of y.
#pragma once
#include "kiln/ir/text.h"
#include "kiln/runtime/client.h"

namespace kiln::test {

inline const Variant& add_one() {
  static const Variant& variant = *new Variant(ir::parse_kernel(R"kir(kir 1
kernel "add_one" {
  buffer y : u32[*] inout
  body {
    %i = global_id.x
    %n = size y
    %in = lt %i, %n
    if %in {
      %v = load y[%i]
      %one = const 1 : u32
      %w = add %v, %one
      store y[%i], %w
    }
  }
}
)kir"));
  return variant;
}

}  // namespace kiln::test
