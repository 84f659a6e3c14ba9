// Where each static shared array lies in the block's shared memory: in declaration order, each at a multiple of 16 bytes.
#include "kiln/ir/passes.h"

namespace kiln::ir {
namespace {

constexpr std::uint64_t kAlign = 16;
constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

// Saturating, so that absurd extents end as a size that every limit refuses, not as a small wrapped one.
std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t r;
  return __builtin_mul_overflow(a, b, &r) ? kNowhere - kAlign : r;
}
std::uint64_t align(std::uint64_t bytes) { return bytes >= kNowhere - kAlign ? kNowhere - kAlign : (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

SharedLayout layout_shared(const Kernel& kernel) {
  SharedLayout layout;
  layout.offset.assign(kernel.mems.size(), kNowhere);
  for (std::uint32_t m = 0; m < kernel.mems.size(); ++m) {
    const Mem& mem = kernel.mems[m];
    if (mem.space != Space::Shared) continue;
    if (mem.dynamic) {
      layout.dynamic_mem = m;
      continue;
    }
    std::uint64_t bytes = byte_size(mem.element);
    for (unsigned d = 0; d < mem.rank; ++d) bytes = multiply(bytes, mem.extents[d]);
    const std::uint64_t at = align(layout.static_bytes);
    layout.offset[m] = at;
    if (__builtin_add_overflow(at, bytes, &layout.static_bytes)) layout.static_bytes = kNowhere - kAlign;
  }
  return layout;
}

}  // namespace kiln::ir
