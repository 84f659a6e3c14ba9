// Kernels from text, and what passes make of them as text. For the tests of passes and analyses.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "kiln/ir/passes.h"
#include "kiln/ir/text.h"

namespace kiln::ir::test {

// Declarations and body of a kernel, without the wrapping.
inline Kernel kernel_of(const std::string& declarations, const std::string& body) {
  return parse_kernel("kir 1\nkernel \"k\" {\n" + declarations + "\nbody {\n" + body + "\n}\n}\n");
}

// The printed form, with ids in program order and without locations: equal programs are equal text.
inline std::string canonical(Kernel k) {
  compact(k);
  return print(k, false);
}

struct Rewrite {
  const char* title;
  const char* declarations;
  const char* before;
  const char* after;
};

// Each row: the pass turns `before` into `after`, and leaves `after` alone.
template <std::size_t N>
void check_rewrites(const Rewrite (&rows)[N], void (*pass)(Kernel&)) {
  for (const Rewrite& row : rows) {
    CAPTURE(std::string(row.title));
    const auto unchecked = [&](const char* body) {
      Kernel kernel = kernel_of(row.declarations, body);
      kernel.options.checked = false;  // loads are silent here, so that unused ones go
      return kernel;
    };
    Kernel k = unchecked(row.before);
    pass(k);
    const std::string expected = canonical(unchecked(row.after));
    CHECK(canonical(k) == expected);
    pass(k);
    CHECK(canonical(k) == expected);
  }
}

}  // namespace kiln::ir::test
