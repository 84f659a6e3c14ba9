// The part of the server that moves strided views. A view goes in planes, each an operation of its own whose bytes are exactly those of its
// elements: claims on what lies between them stay, and do not matter.
#include <algorithm>
#include <cstring>
#include <string>

#include "src/make_error.h"
#include "src/memory_order.h"
#include "src/read_turn.h"
#include "src/server_enter.h"
#include "src/strided.h"

namespace kiln::rt {
namespace {

// Up to here what lies between rows is downloaded with them, which is quicker than many small rows.
constexpr std::uint64_t kSmallHull = std::uint64_t{64} << 10, kHullFactor = 8;

void copy_rows(std::byte* to, std::uint64_t to_pitch, const std::byte* from, std::uint64_t from_pitch, std::uint64_t rows,
               std::uint64_t width) {
  const auto each = [&](auto fixed) {
    constexpr std::uint64_t known = decltype(fixed)::value;
    for (std::uint64_t row = 0; row < rows; ++row) std::memcpy(to + row * to_pitch, from + row * from_pitch, known != 0 ? known : width);
  };
  switch (width) {  // single elements: as instructions
    case 1: return each(std::integral_constant<std::uint64_t, 1>());
    case 2: return each(std::integral_constant<std::uint64_t, 2>());
    case 4: return each(std::integral_constant<std::uint64_t, 4>());
    case 8: return each(std::integral_constant<std::uint64_t, 8>());
    default: return each(std::integral_constant<std::uint64_t, 0>());
  }
}

// Elements that a stride of 0 names again, from those that were read.
void repeat(const StridedBinding& view, std::byte* packed) {
  std::vector<PlaneWalk::Dimension> dimensions = packed_dimensions(view);
  bool any = false;
  for (PlaneWalk::Dimension& d : dimensions) {
    any = any || (d.a == 0 && d.extent > 1);
    d.a = d.a == 0 ? 0 : d.b;
  }
  if (!any) return;
  PlaneWalk(view.element_bytes, std::move(dimensions)).for_each(~std::uint64_t{0}, ~std::uint64_t{0}, [&](const Plane& plane) {
    if (plane.a != plane.b) copy_rows(packed + plane.b, plane.b_pitch, packed + plane.a, plane.a_pitch, plane.rows, plane.width);
    return true;
  });
}

}  // namespace

Result<void> LocalServer::check_strided(const StridedBinding& view, std::string_view what, std::uint64_t& elements) const {
  if (auto ok = usable(view.binding, what); !ok.has_value()) return ok;
  std::array<std::int64_t, ir::kMaxRank> strides{};
  bool zero = view.rank == 0 || view.rank > ir::kMaxRank || view.element_bytes == 0, huge = false;
  for (unsigned d = 0; d < view.rank && !zero; ++d) {
    strides[d] = static_cast<std::int64_t>(view.strides[d]);
    huge = huge || strides[d] < 0;
  }
  if (zero || huge) {
    return make_error(
        ErrorCode::UnsupportedStrides, "ViewDimension",
        std::string(what) + " has " + (huge ? "strides beyond all numbers" : "no dimensions, or no elements that have bytes"));
  }
  const auto hull = strided_hull(view.extents.data(), strides.data(), view.rank, view.element_bytes);
  if (!hull.has_value()) return hull.error();
  if (*hull != 0 && (empty(view.binding) || *hull * view.element_bytes > view.binding.range.end - view.binding.range.begin)) {
    return make_error(ErrorCode::Validation, "BindingRange",
                      std::string(what) + " reaches over " + std::to_string(*hull * view.element_bytes) + " bytes, more than it names");
  }
  const auto all = buffer_elements(view.extents.data(), view.rank, view.element_bytes);
  if (!all.has_value()) return all.error();
  elements = *all;
  return {};
}

// Of one that is to be written. What is wrong is noted on its bytes.
Result<void> LocalServer::check_strided_target(const StridedBinding& to, const Binding* from, std::string_view what,
                                               std::uint64_t& elements) {
  if (auto ok = check_strided(to, what, elements); !ok.has_value()) return refused_transfer(to.binding, from, ok.error());
  if (elements == 0) return {};
  auto once = names_elements_once(to, what);
  if (!once.has_value()) claim_strided(to, once.error());
  return once;
}

void LocalServer::claim_strided(const StridedBinding& to, const Error& why) noexcept try {
  std::uint64_t elements = 0;
  if (forked() || !check_strided(to, "the view", elements).has_value() || elements == 0) return;
  std::vector<MemoryRange> writes;
  for (const ByteRange& run : element_runs(to)) writes.push_back({to.binding.memory->id, run});
  const std::lock_guard lock(enqueue_);
  ExecuteScope::failed_writing(store_, writes, why);
} catch (...) { rt::claim(to.binding, why); }  // no memory to be exact

// --- reads ---------------------------------------------------------------------------------------------------------------------

Result<void> LocalServer::read_strided(std::uint64_t stream, const StridedBinding& from, void* to) {
  return enter(
      [&]() -> Result<void> {
        std::uint64_t elements = 0;
        if (auto ok = check_strided(from, "what is read", elements); !ok.has_value()) return ok;
        if (elements == 0) return device_state(ErrorCode::IoDevicePoisoned);
        if (auto ok = captures_.refuse(stream, "a read", Captures::Refused::Waits); !ok.has_value()) return ok;
        auto* const packed = static_cast<std::byte*>(to);
        std::vector<PlaneWalk::Dimension> dimensions = packed_dimensions(from);
        for (PlaneWalk::Dimension& d : dimensions)
          if (d.a == 0) d.extent = 1;
        const std::uint64_t most_bytes = device_->host_addressable() ? ~std::uint64_t{0} : device_->max_staging();
        Result<void> result;
        PlaneWalk(from.element_bytes, std::move(dimensions)).for_each(kMostRows, most_bytes, [&](Plane plane) {
          plane.a += from.binding.range.begin;
          result = read_plane(stream, *from.binding.memory, plane, packed + plane.b);
          return result.has_value();
        });
        if (result.has_value()) repeat(from, packed);
        return result;
      },
      [](const Error&) {});
}

Result<void> LocalServer::read_plane(std::uint64_t stream, Allocation& memory, const Plane& plane, std::byte* to) {
  if (auto ok = map_late(memory); !ok.has_value()) return ok;
  const bool direct = device_->host_addressable();
  const bool whole = plane.a_bytes() <= device_->max_staging() &&
                     (plane.a_bytes() <= kSmallHull || plane.a_bytes() / kHullFactor <= plane.rows * plane.width);
  HeldTask task(*device_);
  task->kind = direct ? Task::Kind::Host : Task::Kind::Download;
  task->bytes = whole ? plane.a_bytes() : plane.width;
  if (!direct) {
    auto given = device_->stage(whole ? plane.a_bytes() : plane.rows * plane.width);
    if (!given.has_value()) return given.error();
    task->staging = std::move(*given);
    if (!whole) {
      task->rows = plane.rows;
      task->from_pitch = plane.a_pitch;
      task->to_pitch = plane.width;
    }
  }
  std::vector<MemoryRange> ranges = a_rows(memory.id, plane);
  return read_in_turn(stream, task, memory, plane.a, std::move(ranges), [&](const Task& turn) {
    const std::byte* const source = direct ? static_cast<const std::byte*>(turn.from) : static_cast<const std::byte*>(turn.staging.data());
    copy_rows(to, plane.b_pitch, source, direct || whole ? plane.a_pitch : plane.width, plane.rows, plane.width);
  });
}

// --- writes --------------------------------------------------------------------------------------------------------------------

Result<void> LocalServer::write_strided(std::uint64_t stream, const StridedBinding& to, const void* from) {
  return captures_.watch(
      stream, enter_on(
                  stream,
                  [&]() -> Result<void> {
                    std::uint64_t elements = 0;
                    if (auto ok = check_strided_target(to, nullptr, "the target of the write", elements); !ok.has_value()) return ok;
                    if (elements == 0) return device_state(ErrorCode::IoDevicePoisoned);
                    bool staged = !device_->host_addressable();
                    if (!staged && elements * to.element_bytes <= device_->max_staging()) {  // where it would wait, the bytes are set aside
                      After after;
                      const std::lock_guard lock(enqueue_);
                      order_write(*to.binding.memory, after);
                      staged = device_->busy(queue_of(stream), after);
                    }
                    const auto* const packed = static_cast<const std::byte*>(from);
                    Result<void> first;
                    // All are attempted: what one of them leaves behind must not pass for written.
                    PlaneWalk(to.element_bytes, packed_dimensions(to))
                        .for_each(kMostRows, staged ? device_->max_staging() : ~std::uint64_t{0}, [&](Plane plane) {
                          plane.a += to.binding.range.begin;
                          auto result = captures_.recording(stream)
                                            ? record_plane(stream, to.binding.memory, plane, packed + plane.b)
                                            : write_plane(stream, *to.binding.memory, plane, packed + plane.b, staged);
                          if (first.has_value()) first = std::move(result);
                          return true;
                        });
                    return first;
                  },
                  [&](const Error& why) { claim_strided(to, why); }));
}

Result<void> LocalServer::write_plane(std::uint64_t stream, Allocation& memory, const Plane& plane, const std::byte* from, bool staged) {
  const std::vector<MemoryRange> ranges = a_rows(memory.id, plane);
  HeldTask task(*device_);
  task->to = at_byte(plane.a);
  if (!staged) {
    task->kind = Task::Kind::Host;
    task->bytes = plane.rows * plane.width;
    Task& turn = *task;
    std::optional<CallOrder::Wait> wait;
    if (auto ok = transfer(stream, task, LogKind::HostWrite, memory, ranges, nullptr, {}, nullptr, &wait); !ok.has_value()) return ok;
    device_->begin_host(turn);
    copy_rows(static_cast<std::byte*>(turn.to), plane.a_pitch, from, plane.b_pitch, plane.rows, plane.width);
    device_->finish_host(turn);
    return {};
  }
  auto staging = device_->stage(plane.rows * plane.width);
  if (!staging.has_value()) {
    const std::lock_guard lock(enqueue_);
    return ExecuteScope::failed_writing(store_, ranges, staging.error());
  }
  copy_rows(staging->data(), plane.width, from, plane.b_pitch, plane.rows, plane.width);
  task->kind = Task::Kind::Upload;
  task->bytes = plane.a_pitch == plane.width ? plane.rows * plane.width : plane.width;
  task->rows = plane.a_pitch == plane.width ? 1 : plane.rows;
  task->to_pitch = plane.a_pitch;
  task->from_pitch = plane.width;
  task->staging = std::move(*staging);
  return transfer(stream, task, LogKind::HostWrite, memory, ranges, nullptr, {});
}

// A graph has dense operations: one a row.
Result<void> LocalServer::record_plane(std::uint64_t stream, const Memory& to, const Plane& plane, const std::byte* from) {
  Result<void> first;
  for (std::uint64_t row = 0; row < plane.rows; ++row) {
    const std::uint64_t at = plane.a + row * plane.a_pitch;
    auto result = write_now(stream, {to, {at, at + plane.width}}, from + row * plane.b_pitch);
    if (first.has_value()) first = std::move(result);
  }
  return first;
}

// --- copies --------------------------------------------------------------------------------------------------------------------

Result<void> LocalServer::copy_strided(std::uint64_t stream, const StridedBinding& to, const StridedBinding& from) {
  return captures_.watch(
      stream,
      enter_on(
          stream,
          [&]() -> Result<void> {
            std::uint64_t elements = 0, given = 0;
            if (auto ok = check_strided_target(to, &from.binding, "the target of the copy", elements); !ok.has_value()) return ok;
            auto fits = check_strided(from, "the source of the copy", given);
            if (fits.has_value()) fits = same_extents(to, from);
            if (!fits.has_value()) {
              claim_strided(to, fits.error());
              return fits;
            }
            if (elements == 0) return device_state(ErrorCode::IoDevicePoisoned);
            const ByteRange &x = to.binding.range, &y = from.binding.range;
            if (to.binding.memory == from.binding.memory && x.begin < y.end && y.begin < x.end) {  // the hulls do
              const std::vector<ByteRange> targets = element_runs(to), sources = element_runs(from);
              for (auto t = targets.begin(), s = sources.begin(); t != targets.end() && s != sources.end();) {
                if (t->begin < s->end && s->begin < t->end)
                  return make_error(ErrorCode::Validation, "CopyOverlap", "source and target of the copy overlap");
                t->end <= s->begin ? void(++t) : void(++s);
              }
            }
            std::vector<PlaneWalk::Dimension> dimensions(to.rank);
            for (unsigned d = 0; d < to.rank; ++d)
              dimensions[d] = {to.extents[d], to.strides[d] * to.element_bytes, from.strides[d] * to.element_bytes};
            Result<void> first;
            PlaneWalk(to.element_bytes, std::move(dimensions)).for_each(kMostRows, ~std::uint64_t{0}, [&](const Plane& plane) {
              Allocation &target = *to.binding.memory, &source = *from.binding.memory;
              const std::uint64_t at = x.begin + plane.a, of = y.begin + plane.b;
              for (std::uint64_t row = 0; captures_.recording(stream) && row < plane.rows; ++row) {
                const std::uint64_t t = at + row * plane.a_pitch, s = of + row * plane.b_pitch;
                auto result = copy_now(stream, {to.binding.memory, {t, t + plane.width}}, {from.binding.memory, {s, s + plane.width}});
                if (first.has_value()) first = std::move(result);
                if (row + 1 == plane.rows) return true;
              }
              HeldTask task(*device_);
              task->kind = Task::Kind::Copy;
              task->to = at_byte(at);
              task->from = at_byte(of);
              task->bytes = plane.width;
              task->rows = plane.rows;
              task->to_pitch = plane.a_pitch;
              task->from_pitch = plane.b_pitch;
              auto result = transfer(stream, task, LogKind::Copy, target, rows_of(target.id, at, plane.a_pitch, plane.rows, plane.width),
                                     &source, rows_of(source.id, of, plane.b_pitch, plane.rows, plane.width));
              if (first.has_value()) first = std::move(result);
              return true;
            });
            return first;
          },
          [&](const Error& why) { claim_strided(to, why); }));
}

// --- of kiln/runtime/strided.h --------------------------------------------------------------------------------------------------

namespace {
LocalServer& local(const Stream& stream) { return static_cast<LocalServer&>(stream.client().server()); }  // all of this process are
}  // namespace

Result<void> read_strided(const Stream& stream, const StridedBinding& from, void* to) {
  return local(stream).read_strided(stream.id(), from, to);
}
Result<void> write_strided(const Stream& stream, const StridedBinding& to, const void* from) {
  return local(stream).write_strided(stream.id(), to, from);
}
Result<void> copy_strided(const Stream& stream, const StridedBinding& to, const StridedBinding& from) {
  return local(stream).copy_strided(stream.id(), to, from);
}
void claim_strided(const StridedBinding& to, const Error& why) noexcept {
  if (to.binding.memory != nullptr) static_cast<LocalServer&>(*to.binding.memory->server).claim_strided(to, why);
}

}  // namespace kiln::rt
