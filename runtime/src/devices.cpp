#include "kiln/runtime/devices.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/local_server.h"
#include "src/make_error.h"
#include "src/memory_order.h"
#include "src/strided.h"

namespace kiln {
namespace rt {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{16} << 20;

std::uint64_t size(const Binding& binding) { return empty(binding) ? 0 : binding.range.end - binding.range.begin; }

Error skipped(const Stream& from, Error why) {
  return make_error(ErrorCode::Skipped, {},
                    "the copy from " + from.client().server().label() + " to another device did not run, or not to its end",
                    {.causes = {std::move(why)}});
}

std::uint64_t bytes_of(const StridedBinding& view) {
  std::uint64_t bytes = view.element_bytes;
  for (unsigned d = 0; d < view.rank; ++d) bytes *= view.extents[d];
  return bytes;
}
// All of a range, as bytes.
StridedBinding bytes_of(const Binding& range) {
  StridedBinding view{.binding = range, .extents = {}, .strides = {}, .rank = 1, .element_bytes = 1};
  view.extents[0] = size(range);
  view.strides[0] = 1;
  return view;
}

// `count` elements of dimension d from `first` on.
StridedBinding part_of(StridedBinding view, unsigned d, std::uint64_t first, std::uint64_t count) {
  view.extents[d] = count;
  view.binding.range.begin += first * view.strides[d] * view.element_bytes;
  return view;
}

// Calls f(to, from) for parts of at most kPiece bytes, as long as it has no error.
template <class F>
Result<void> for_each_part(const StridedBinding& to, const StridedBinding& from, F&& f) {
  const std::uint64_t bytes = bytes_of(to);
  unsigned d = 0;
  while (d < to.rank && to.extents[d] <= 1) ++d;
  if (bytes <= kPiece || d == to.rank) return f(to, from);
  const std::uint64_t row = bytes / to.extents[d], step = std::max<std::uint64_t>(1, kPiece / row);
  for (std::uint64_t at = 0; at < to.extents[d]; at += step) {
    const std::uint64_t count = std::min(step, to.extents[d] - at);
    if (auto ok = for_each_part(part_of(to, d, at, count), part_of(from, d, at, count), f); !ok.has_value()) return ok;
  }
  return {};
}

// What is checked already, through memory of the host.
Result<void> copy_parts(const Stream& to_stream, const StridedBinding& to, const Stream& from_stream, const StridedBinding& from) {
  std::vector<std::byte> host;
  const auto outcome = for_each_part(to, from, [&](const StridedBinding& there, const StridedBinding& here) -> Result<void> {
    try {
      host.resize(std::max(host.size(), bytes_of(here)));
    } catch (const std::bad_alloc&) { return no_host_memory(); }
    if (auto ok = read_strided(from_stream, here, host.data()); !ok.has_value()) return skipped(from_stream, ok.error());
    return write_strided(to_stream, there, host.data());
  });
  if (!outcome.has_value()) claim_strided(to, outcome.error());
  return outcome;
}

}  // namespace

Result<void> copy_across(const Stream& to_stream, const Binding& to, const Stream& from_stream, const Binding& from) {
  Server &target = to_stream.client().server(), &source = from_stream.client().server();
  if (&target == &source) return copy(to_stream, to, from);
  return or_no_memory([&]() -> Result<void> {
    const auto failed = [&](Error error) -> Error {
      claim(to, error);
      return error;
    };
    if (auto ok = target.usable(to, "the target of the copy", Server::kItsStream); !ok.has_value()) return failed(ok.error());
    if (auto ok = source.usable(from, "the source of the copy", Server::kItsStream); !ok.has_value()) return failed(ok.error());
    if (size(to) != size(from)) {
      return failed(make_error(ErrorCode::Validation, "CopySize",
                               "a copy of " + std::to_string(size(from)) + " bytes to " + std::to_string(size(to)) + " bytes"));
    }
    if (empty(to)) {
      if (auto ok = source.read(from_stream.id(), from, nullptr); !ok.has_value()) return ok;  // what it says of a device that is lost
      return target.write(to_stream.id(), to, nullptr);
    }
    return copy_parts(to_stream, bytes_of(to), from_stream, bytes_of(from));
  });
}

Result<void> copy_across_strided(const Stream& to_stream, const StridedBinding& to, const Stream& from_stream, const StridedBinding& from) {
  Server &target = to_stream.client().server(), &source = from_stream.client().server();
  if (&target == &source) return copy_strided(to_stream, to, from);
  return or_no_memory([&]() -> Result<void> {
    const auto check = [&]() -> Result<void> {
      if (auto ok = target.usable(to.binding, "the target of the copy", Server::kItsStream); !ok.has_value()) return ok;
      if (auto ok = source.usable(from.binding, "the source of the copy", Server::kItsStream); !ok.has_value()) return ok;
      if (auto ok = same_extents(to, from); !ok.has_value()) return ok;
      return names_elements_once(to, "the target of the copy");
    };
    if (auto ok = check(); !ok.has_value()) {
      claim_strided(to, ok.error());
      return ok;
    }
    return copy_parts(to_stream, to, from_stream, from);
  });
}

}  // namespace rt

bool peer_access(const Client& from, const Client& to) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<std::pair<std::uint64_t, std::uint64_t>, bool>;
  const auto host = [](const Client& c) { return static_cast<rt::LocalServer&>(c.server()).device().host_addressable(); };
  const std::pair pair{from.server().number(), to.server().number()};
  const std::lock_guard lock(mutex);
  const auto found = known.find(pair);
  if (found != known.end()) return found->second;
  return known[pair] = from == to || (host(from) && host(to));
}

}  // namespace kiln
