// Copies between page-locked memory and the device's, dense and strided: the uploads and downloads of kiln/runtime/staging.h, and the
// server's part of them.
#include <algorithm>
#include <string>

#include "kiln/runtime/staging.h"
#include "src/host_access.h"
#include "src/make_error.h"
#include "src/memory_order.h"
#include "src/server_enter.h"
#include "src/strided.h"

namespace kiln::rt {
namespace {

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

}  // namespace

// The host memory as one end of a transfer of this device.
Result<void> LocalServer::own_host_memory(const HostMemory& memory) const {
  if (memory.server.get() == this) return {};
  return make_error(ErrorCode::ForeignHandle, "ForeignHandle",
                    "the host memory belongs to another device, " + memory.server->label() + ", not to " + label() +
                        "; use a stream of its device, or host memory of this one");
}

// --- uploads ---------------------------------------------------------------------------------------------------------------------

// What a download left there goes no further before it is known to be what was read.
Result<void> LocalServer::known_host_memory(HostMemory& memory) {
  bool unknown = false;
  {
    const std::lock_guard lock(memory.mutex);
    unknown = memory.refused.has_value() || !memory.downloads.empty();
  }
  return unknown ? settle(memory, false) : Result<void>();
}

// `plane.a` is in the device's memory, `plane.b` in the host's.
Result<void> LocalServer::upload_plane(std::uint64_t stream, const Memory& to, const Plane& plane, HostMemory& from) {
  const std::byte* const source = from.mapped.host + plane.b;
  if (captures_.recording(stream)) return record_plane(stream, to, plane, source);
  HeldTask task(*device_);
  task->kind = Task::Kind::Upload;
  task->to = at_byte(plane.a);
  task->from = source;
  task->bytes = plane.width;
  task->rows = plane.rows;
  task->to_pitch = plane.a_pitch;
  task->from_pitch = plane.b_pitch;
  Event at;
  auto done = transfer(stream, task, LogKind::HostWrite, *to, a_rows(to->id, plane), nullptr, {}, &at);
  const std::lock_guard lock(from.mutex);
  from.reads.add(at);
  return done;
}

Result<void> LocalServer::upload_from(std::uint64_t stream, const Binding& to, HostMemory& from, std::uint64_t first) {
  return captures_.watch(stream, enter_on(
                                     stream,
                                     [&]() -> Result<void> {
                                       if (auto ok = usable(to, "the target of the upload", kItsStream); !ok.has_value())
                                         return refused_transfer(to, nullptr, ok.error());
                                       if (auto ok = own_host_memory(from); !ok.has_value())
                                         return refused_transfer(to, nullptr, ok.error());
                                       if (empty(to)) return device_state(ErrorCode::IoDevicePoisoned);
                                       if (auto ok = known_host_memory(from); !ok.has_value())
                                         return refused_transfer(to, nullptr, ok.error());
                                       const std::uint64_t bytes = to.range.end - to.range.begin;
                                       return upload_plane(
                                           stream, to.memory,
                                           {.a = to.range.begin, .a_pitch = bytes, .b = first, .b_pitch = bytes, .rows = 1, .width = bytes},
                                           from);
                                     },
                                     [&](const Error& why) { rt::claim(to, why); }));
}

Result<void> LocalServer::upload_strided(std::uint64_t stream, const StridedBinding& to, HostMemory& from, std::uint64_t first) {
  return captures_.watch(stream, enter_on(
                                     stream,
                                     [&]() -> Result<void> {
                                       std::uint64_t elements = 0;
                                       if (auto ok = check_strided_target(to, nullptr, "the target of the upload", elements);
                                           !ok.has_value())
                                         return ok;
                                       auto source = own_host_memory(from);
                                       if (source.has_value() && elements == 0) return device_state(ErrorCode::IoDevicePoisoned);
                                       if (source.has_value()) source = known_host_memory(from);
                                       if (!source.has_value()) {
                                         claim_strided(to, source.error());
                                         return source;
                                       }
                                       Result<void> outcome;
                                       // All are attempted: what one of them leaves behind must not pass for written.
                                       PlaneWalk(to.element_bytes, packed_dimensions(to)).for_each(kMostRows, kNoLimit, [&](Plane plane) {
                                         plane.a += to.binding.range.begin;
                                         plane.b += first;
                                         auto result = upload_plane(stream, to.binding.memory, plane, from);
                                         if (outcome.has_value()) outcome = std::move(result);
                                         return true;
                                       });
                                       return outcome;
                                     },
                                     [&](const Error& why) { claim_strided(to, why); }));
}

// --- downloads -------------------------------------------------------------------------------------------------------------------

// Enqueues one; its place among the operations is added to `places`.
Result<void> LocalServer::download_plane(std::uint64_t stream, Allocation& from, const Plane& plane, HostMemory& to, Places& places) {
  HeldTask task(*device_);
  task->kind = Task::Kind::Download;
  task->label.stream = stream;
  task->label.known = true;
  task->to = to.mapped.host + plane.b;
  task->bytes = plane.width;
  task->rows = plane.rows;
  task->to_pitch = plane.b_pitch;
  task->from_pitch = plane.a_pitch;
  std::vector<MemoryRange> rows = a_rows(from.id, plane);
  places.reserve(places.size() + 1);
  const std::lock_guard lock(enqueue_);
  const std::lock_guard host_lock(to.mutex);
  auto place = std::make_unique<LogRead>(log_, std::move(rows));
  if (auto known = place->verdict(); !known.has_value()) return known;
  After after = to.reads;
  after.add(to.writes);
  order_read(from, after);
  task->from = address(from) + plane.a;
  const Result<Event> event = task.submit(queue_of(stream), after);
  if (!event.has_value()) return event.error();
  note_read(from, *event);
  to.writes.add(*event);
  places.push_back({std::move(place), *event});
  return {};
}

// `check()` looks at the source, `walk(f)` calls f(const Plane&) for its planes until f says false. `bytes`: of all of them, known once the
// check was fine.
template <class Check, class Walk>
Result<void> LocalServer::download(std::uint64_t stream, const Binding& from, HostMemory& to, const std::uint64_t& bytes, Check&& check,
                                   Walk&& walk) {
  Places places;
  const auto whole = [&]() -> Result<void> {
    if (auto ok = check(); !ok.has_value()) return ok;
    if (bytes == 0) return device_state(ErrorCode::IoDevicePoisoned);
    if (auto ok = captures_.refuse(stream, "a copy to pinned memory", Captures::Refused::IsPart); !ok.has_value()) return ok;
    if (auto ok = map_late(*from.memory); !ok.has_value()) return ok;
    Result<void> outcome;
    walk([&](const Plane& plane) {
      outcome = download_plane(stream, *from.memory, plane, to, places);
      return outcome.has_value();
    });
    return outcome;
  };
  if (auto own = own_host_memory(to); !own.has_value()) return own;  // another device's: it is not looked at
  Result<void> outcome;
  try {
    outcome = whole();
  } catch (const std::bad_alloc&) { outcome = no_host_memory(); }
  Places over;  // ends without the lock
  const std::lock_guard lock(to.mutex);
  if (outcome.has_value() && bytes != 0 && bytes == to.bytes) {  // nothing is left of what was there
    to.refused.reset();
    over.swap(to.downloads);
    to.downloads.swap(places);
    return {};
  }
  try {
    for (auto& place : places) to.downloads.push_back(std::move(place));
  } catch (const std::bad_alloc&) { outcome = no_host_memory(); }
  if (!outcome.has_value() && !to.refused) to.refused = outcome.error();  // or what was there before would be taken for what was to be read
  return outcome;
}

Result<void> LocalServer::download_to(std::uint64_t stream, const Binding& from, HostMemory& to, std::uint64_t first) {
  return enter(
      [&]() -> Result<void> {
        const std::uint64_t bytes = empty(from) ? 0 : from.range.end - from.range.begin;
        return download(
            stream, from, to, bytes, [&] { return usable(from, "what is downloaded", kItsStream); },
            [&](auto&& f) { f(Plane{.a = from.range.begin, .a_pitch = bytes, .b = first, .b_pitch = bytes, .rows = 1, .width = bytes}); });
      },
      [](const Error&) {});
}

Result<void> LocalServer::download_strided(std::uint64_t stream, const StridedBinding& from, HostMemory& to, std::uint64_t first) {
  return enter(
      [&]() -> Result<void> {
        std::uint64_t bytes = 0;
        return download(
            stream, from.binding, to, bytes,
            [&]() -> Result<void> {
              std::uint64_t elements = 0;
              auto ok = check_strided(from, "what is downloaded", elements);
              bytes = elements * from.element_bytes;
              return ok;
            },
            [&](auto&& f) {
              PlaneWalk(from.element_bytes, packed_dimensions(from)).for_each(kMostRows, kNoLimit, [&](Plane plane) {
                plane.a += from.binding.range.begin;
                plane.b += first;
                return f(plane);
              });
            });
      },
      [](const Error&) {});
}

// --- of kiln/runtime/staging.h -----------------------------------------------------------------------------------------------------

namespace {
LocalServer& local(const Stream& stream) { return static_cast<LocalServer&>(stream.client().server()); }  // all of this process are
}  // namespace

Result<void> upload(const Stream& stream, const Binding& to, HostMemory& from, std::uint64_t first) {
  return local(stream).upload_from(stream.id(), to, from, first);
}
Result<void> download(const Stream& stream, const Binding& from, HostMemory& to, std::uint64_t first) {
  return local(stream).download_to(stream.id(), from, to, first);
}
Result<void> upload_strided(const Stream& stream, const StridedBinding& to, HostMemory& from, std::uint64_t first) {
  return local(stream).upload_strided(stream.id(), to, from, first);
}
Result<void> download_strided(const Stream& stream, const StridedBinding& from, HostMemory& to, std::uint64_t first) {
  return local(stream).download_strided(stream.id(), from, to, first);
}

}  // namespace kiln::rt
