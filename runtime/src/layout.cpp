#include "kiln/runtime/layout.h"

#include <string>

#include "src/local_server.h"
#include "src/make_error.h"

namespace kiln::rt {

std::uint64_t row_alignment(const Client& client) {
  return static_cast<LocalServer&>(client.server()).device().row_alignment();  // every server of this process is a local one
}

Result<std::uint64_t> layout(LayoutPolicy policy, std::uint64_t alignment, std::uint64_t element_bytes, unsigned rank,
                             const std::uint64_t* extents, std::uint64_t* strides) {
  const auto dense = buffer_elements(extents, rank, element_bytes);
  if (!dense.has_value()) return dense;
  std::uint64_t elements = 1;
  bool fits = true;
  for (unsigned d = rank; d-- > 0;) {
    strides[d] = elements;
    fits = fits && !__builtin_mul_overflow(elements, extents[d], &elements);
    const std::uint64_t over = alignment <= element_bytes ? 0 : elements % (alignment / element_bytes);
    if (policy == LayoutPolicy::Optimised && d + 1 == rank && rank > 1 && over != 0)
      fits = fits && !__builtin_add_overflow(elements, alignment / element_bytes - over, &elements);
  }
  if (*dense == 0) return 0;
  std::uint64_t bytes = 0;
  if (fits && !__builtin_mul_overflow(elements, element_bytes, &bytes)) return elements;
  return make_error(ErrorCode::BufferTooBig, "BufferTooBig",
                    "a buffer whose rows are aligned to " + std::to_string(alignment) + " bytes has more bytes than 64 bits can count");
}

}  // namespace kiln::rt
