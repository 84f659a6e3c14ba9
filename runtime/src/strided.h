// The shape of strided transfers: a walk over what two sides have in common, in pieces of rows that lie a pitch apart on either side.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/runtime/strided.h"
#include "src/failure/claims.h"

namespace kiln::rt {

// Rows of `width` bytes; offsets and pitches in bytes. With more than one row both pitches are at least the width.
struct Plane {
  std::uint64_t a = 0, a_pitch = 0;
  std::uint64_t b = 0, b_pitch = 0;
  std::uint64_t rows = 1, width = 0;
  std::uint64_t a_bytes() const { return (rows - 1) * a_pitch + width; }
  std::uint64_t b_bytes() const { return (rows - 1) * b_pitch + width; }
};

// Elements that two sides have in common, each with strides of its own, in bytes.
class PlaneWalk {
 public:
  struct Dimension {
    std::uint64_t extent = 1, a = 0, b = 0;
  };
  // No extent is 0. Dimensions that follow each other on both sides become one; the longest that may be rows becomes rows.
  PlaneWalk(std::uint64_t element_bytes, std::vector<Dimension> dimensions);

  // Calls f(const Plane&) -> bool for pieces of at most so many rows and bytes (a row may have to be split) until it says false. False
  // then.
  template <class F>
  bool for_each(std::uint64_t most_rows, std::uint64_t most_bytes, F&& f) const {
    std::array<std::uint64_t, ir::kMaxRank> at{};
    Plane plane{0, rows_.a, 0, rows_.b, 1, width_};
    const std::uint64_t fit = std::max<std::uint64_t>(1, std::min(most_rows, most_bytes / width_));
    for (;;) {
      plane.a = plane.b = 0;
      for (std::size_t d = 0; d < outer_.size(); ++d) {
        plane.a += at[d] * outer_[d].a;
        plane.b += at[d] * outer_[d].b;
      }
      const Plane first = plane;
      for (std::uint64_t row = 0; row < rows_.extent; row += plane.rows) {
        plane.rows = std::min(fit, rows_.extent - row);
        plane.a = first.a + row * rows_.a;
        plane.b = first.b + row * rows_.b;
        if (width_ <= most_bytes) {
          if (!f(std::as_const(plane))) return false;
          continue;
        }
        for (std::uint64_t byte = 0; byte < width_; byte += most_bytes) {
          const Plane part{plane.a + byte, 0, plane.b + byte, 0, 1, std::min(most_bytes, width_ - byte)};
          if (!f(part)) return false;
        }
      }
      std::size_t d = outer_.size();
      while (d > 0 && ++at[d - 1] == outer_[d - 1].extent) at[--d] = 0;
      if (d == 0) return true;
    }
  }

 private:
  std::uint64_t width_;
  Dimension rows_;
  std::vector<Dimension> outer_;
};

// The view against packed row-major memory.
std::vector<PlaneWalk::Dimension> packed_dimensions(const StridedBinding& view);
// Whether two elements of the view may lie on one another: told from the strides alone, so that some odd views count that need not.
bool may_overlap(const StridedBinding& view);
// Errors: OverlappingStrides. `what`: "the target of the copy".
Result<void> names_elements_once(const StridedBinding& view, std::string_view what);
// Errors: CopySize.
Result<void> same_extents(const StridedBinding& to, const StridedBinding& from);
// The bytes of the view's elements, ascending, touching ranges as one.
std::vector<ByteRange> element_runs(const StridedBinding& view);

// The bytes of rows that begin so far in a memory.
std::vector<MemoryRange> rows_of(std::uint64_t memory, std::uint64_t first, std::uint64_t pitch, std::uint64_t rows, std::uint64_t width);
inline std::vector<MemoryRange> a_rows(std::uint64_t memory, const Plane& plane) {
  return rows_of(memory, plane.a, plane.a_pitch, plane.rows, plane.width);
}

// A plane has a range of bytes for each row, in the log too.
inline constexpr std::uint64_t kMostRows = 4096;

}  // namespace kiln::rt
