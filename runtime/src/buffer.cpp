#include "kiln/runtime/buffer.h"

#include <string>

#include "src/allocation.h"
#include "src/make_error.h"
#include "src/memory_order.h"

namespace kiln::rt {
Result<std::uint64_t> buffer_elements(const std::uint64_t* extents, unsigned rank, std::uint64_t element_bytes) {
  std::uint64_t elements = 1, bytes = 0;
  bool fits = true, zero = false;
  std::string text;
  for (unsigned d = 0; d < rank; ++d) {
    zero = zero || extents[d] == 0;
    fits = fits && !__builtin_mul_overflow(elements, extents[d], &elements);
    text += (d == 0 ? "" : " x ") + std::to_string(extents[d]);
  }
  if (zero) return 0;
  if (fits) fits = !__builtin_mul_overflow(elements, element_bytes, &bytes);
  if (!fits) {
    return make_error(
        ErrorCode::BufferTooBig, "BufferTooBig",
        "a buffer of " + text + " elements of " + std::to_string(element_bytes) + " bytes has more bytes than 64 bits can count");
  }
  return elements;
}

Result<void> buffer_size_matches(std::uint64_t elements, std::uint64_t given) {
  if (elements == given) return {};
  return make_error(ErrorCode::Validation, "BufferSize",
                    "the buffer holds " + std::to_string(elements) + " elements, and " + std::to_string(given) + " were given",
                    {.requested = given, .limit = elements, .numbers = Error::Numbers::NotEqual});
}

Result<void> buffer_fits(const Client& client, const Memory& memory, std::uint64_t first, std::uint64_t bytes,
                         std::uint64_t element_bytes) {
  if (bytes == 0) return {};
  if (first > ~std::uint64_t{0} - bytes) {
    return make_error(ErrorCode::BufferTooBig, "BufferTooBig",
                      "a buffer of " + std::to_string(bytes) + " bytes from byte " + std::to_string(first) + " on ends beyond all numbers");
  }
  if (auto ok = client.server().usable({memory, {first, first + bytes}}, "the buffer", Server::kItsClient); !ok.has_value()) return ok;
  if (reinterpret_cast<std::uintptr_t>(rt::address({memory, {first, first}})) % element_bytes != 0) {
    return make_error(ErrorCode::Validation, "ElementAlignment",
                      "elements of " + std::to_string(element_bytes) + " bytes lie at addresses that are multiples of that, and byte " +
                          std::to_string(first) + " of the memory does not");
  }
  return {};
}

void require_view(std::uint64_t elements, std::uint64_t wanted) {
  if (elements == wanted) return;
  throw Exception(make_error(ErrorCode::Validation, "ViewSize",
                             "a view must have as many elements as its buffer: " + std::to_string(wanted) +
                                 " were asked for, and it holds " + std::to_string(elements),
                             {.requested = wanted, .limit = elements, .numbers = Error::Numbers::NotEqual}));
}

void require_slice(std::uint64_t elements, std::uint64_t first, std::uint64_t count) {
  if (first <= elements && count <= elements - first) return;
  throw Exception(make_error(ErrorCode::Validation, "SliceRange",
                             "a slice of " + std::to_string(count) + " elements from " + std::to_string(first) + " on reaches beyond the " +
                                 std::to_string(elements) + " of its buffer",
                             {.requested = count, .limit = elements, .numbers = Error::Numbers::AsTold}));
}

Error negative_extent(std::int64_t extent) {
  return make_error(ErrorCode::Validation, "ExtentOutOfRange", "an extent must not be negative, and " + std::to_string(extent) + " is");
}

}  // namespace kiln::rt
