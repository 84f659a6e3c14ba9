#include "src/strided.h"

#include <algorithm>
#include <string>

#include "src/make_error.h"

namespace kiln::rt {
PlaneWalk::PlaneWalk(std::uint64_t element_bytes, std::vector<Dimension> dimensions) : width_(element_bytes) {
  std::erase_if(dimensions, [](const Dimension& d) { return d.extent == 1; });
  const auto contiguous = [&] {
    return std::find_if(dimensions.begin(), dimensions.end(), [&](const Dimension& d) { return d.a == width_ && d.b == width_; });
  };
  for (auto d = contiguous(); d != dimensions.end(); d = contiguous()) {
    width_ *= d->extent;
    dimensions.erase(d);
  }
  for (std::size_t i = 0; i < dimensions.size();) {  // one that goes on where another ends
    std::size_t j = 0;
    const auto goes_on = [&] {
      return j != i && dimensions[i].a == dimensions[j].a * dimensions[j].extent &&
             dimensions[i].b == dimensions[j].b * dimensions[j].extent;
    };
    while (j < dimensions.size() && !goes_on()) ++j;
    if (j == dimensions.size()) {
      ++i;
      continue;
    }
    dimensions[j].extent *= dimensions[i].extent;
    dimensions.erase(dimensions.begin() + static_cast<std::ptrdiff_t>(i));
    i = 0;
  }
  auto rows = dimensions.end();
  for (auto d = dimensions.begin(); d != dimensions.end(); ++d)
    if (d->a >= width_ && d->b >= width_ && (rows == dimensions.end() || d->extent > rows->extent)) rows = d;
  if (rows != dimensions.end()) {
    rows_ = *rows;
    dimensions.erase(rows);
  }
  std::sort(dimensions.begin(), dimensions.end(), [](const Dimension& x, const Dimension& y) { return x.a > y.a; });
  outer_ = std::move(dimensions);
}

std::vector<PlaneWalk::Dimension> packed_dimensions(const StridedBinding& view) {
  std::vector<PlaneWalk::Dimension> all(view.rank);
  std::uint64_t packed = view.element_bytes;
  for (unsigned d = view.rank; d-- > 0;) {
    all[d] = {view.extents[d], view.strides[d] * view.element_bytes, packed};
    packed *= view.extents[d];
  }
  return all;
}

bool may_overlap(const StridedBinding& view) {
  std::array<std::pair<std::uint64_t, std::uint64_t>, ir::kMaxRank> all{};  // stride and extent
  std::size_t n = 0;
  for (unsigned d = 0; d < view.rank; ++d) {
    if (view.extents[d] == 0) return false;
    if (view.extents[d] <= 1) continue;
    all[n++] = {view.strides[d], view.extents[d]};
    for (std::size_t i = n - 1; i > 0 && all[i] < all[i - 1]; --i) std::swap(all[i], all[i - 1]);
  }
  std::uint64_t reach = 1;  // of the dimensions below
  for (std::size_t i = 0; i < n; ++i) {
    if (all[i].first < reach) return true;
    reach += (all[i].second - 1) * all[i].first;
  }
  return false;
}

Result<void> names_elements_once(const StridedBinding& view, std::string_view what) {
  if (!may_overlap(view)) return {};
  return make_error(ErrorCode::UnsupportedStrides, "OverlappingStrides",
                    std::string(what) + " names an element more than once; name each element once");
}

Result<void> same_extents(const StridedBinding& to, const StridedBinding& from) {
  bool same = to.rank == from.rank && to.element_bytes == from.element_bytes;
  for (unsigned d = 0; d < to.rank && same; ++d) same = to.extents[d] == from.extents[d];
  if (same) return {};
  return make_error(ErrorCode::Validation, "CopySize", "source and target of the copy have other extents");
}

std::vector<ByteRange> element_runs(const StridedBinding& view) {
  std::vector<ByteRange> runs;
  std::vector<PlaneWalk::Dimension> same(view.rank);
  for (unsigned d = 0; d < view.rank; ++d) {
    const std::uint64_t stride = view.strides[d] * view.element_bytes;
    if (view.extents[d] == 0) return runs;
    same[d] = {stride == 0 ? 1 : view.extents[d], stride, stride};
  }
  PlaneWalk(view.element_bytes, std::move(same)).for_each(~std::uint64_t{0}, ~std::uint64_t{0}, [&](const Plane& plane) {
    for (std::uint64_t row = 0; row < plane.rows; ++row) {
      const std::uint64_t begin = view.binding.range.begin + plane.a + row * plane.a_pitch;
      runs.push_back({begin, begin + plane.width});
    }
    return true;
  });
  std::sort(runs.begin(), runs.end(), [](const ByteRange& x, const ByteRange& y) { return x.begin < y.begin; });
  std::size_t last = 0;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].begin <= runs[last].end) runs[last].end = std::max(runs[last].end, runs[i].end);
    else runs[++last] = runs[i];
  }
  if (!runs.empty()) runs.resize(last + 1);
  return runs;
}

std::vector<MemoryRange> rows_of(std::uint64_t memory, std::uint64_t first, std::uint64_t pitch, std::uint64_t rows, std::uint64_t width) {
  if (pitch == width) return {{memory, {first, first + rows * width}}};
  std::vector<MemoryRange> all(rows);
  for (std::uint64_t row = 0; row < rows; ++row) all[row] = {memory, {first + row * pitch, first + row * pitch + width}};
  return all;
}

// --- of kiln/runtime/strided.h ------------------------------------------------------------------------------------------------

void require_dimensions(unsigned rank, unsigned a, unsigned b) {
  if (a < rank && b < rank) return;
  const unsigned missing = std::max(a, b);
  throw Exception(make_error(ErrorCode::Validation, "ViewDimension",
                             "a view of rank " + std::to_string(rank) + " has no dimension " + std::to_string(missing),
                             {.requested = missing, .limit = rank - 1}));
}

void require_box(unsigned d, std::uint64_t extent, std::uint64_t first, std::uint64_t count, std::uint64_t step) {
  if (step == 0) {
    throw Exception(make_error(ErrorCode::UnsupportedStrides, "ViewStep",
                               "a step of 0 along dimension " + std::to_string(d) + "; broadcast() names one element many times"));
  }
  if (first <= extent && (count == 0 || (first < extent && (extent - 1 - first) / step >= count - 1))) return;
  throw Exception(make_error(ErrorCode::Validation, "ViewRange",
                             std::to_string(count) + " elements from " + std::to_string(first) + " on, " + std::to_string(step) +
                                 " apart, reach beyond the " + std::to_string(extent) + " of dimension " + std::to_string(d)));
}

void require_broadcast(unsigned d, std::uint64_t extent) {
  if (extent == 1) return;
  throw Exception(
      make_error(ErrorCode::Validation, "ViewBroadcast",
                 "only a dimension of extent 1 can be broadcast, and dimension " + std::to_string(d) + " has " + std::to_string(extent),
                 {.requested = extent, .limit = 1}));
}

Result<std::uint64_t> strided_hull(const std::uint64_t* extents, const std::int64_t* strides, unsigned rank, std::uint64_t element_bytes) {
  bool none = false, fits = true;
  std::uint64_t hull = 1, bytes = 0;
  for (unsigned d = 0; d < rank; ++d) {
    if (strides[d] < 0) {
      return make_error(ErrorCode::UnsupportedStrides, "NegativeStride",
                        "dimension " + std::to_string(d) + " has the stride " + std::to_string(strides[d]) +
                            "; views go forward only: copy the elements in the order that is wanted");
    }
    none = none || extents[d] == 0;
    std::uint64_t reach = 0;
    fits = fits && (extents[d] == 0 || (!__builtin_mul_overflow(extents[d] - 1, static_cast<std::uint64_t>(strides[d]), &reach) &&
                                        !__builtin_add_overflow(hull, reach, &hull)));
  }
  if (none) return 0;
  if (!fits || __builtin_mul_overflow(hull, element_bytes, &bytes))
    return make_error(ErrorCode::BufferTooBig, "BufferTooBig", "the strides of the view reach further than 64 bits can count");
  return hull;
}

}  // namespace kiln::rt
