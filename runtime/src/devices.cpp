#include "kiln/runtime/devices.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/local_server.h"
#include "src/memory_order.h"

namespace kiln {
namespace rt {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{16} << 20;

std::uint64_t size(const Binding& binding) { return empty(binding) ? 0 : binding.range.end - binding.range.begin; }

Error skipped(const Binding& from, Error why) {
  Error::Data data;
  data.code = ErrorCode::Skipped;
  data.message = "the copy from " + from.memory->server->label() + " to another device did not run, or not to its end";
  data.causes.push_back(std::move(why));
  return Error(std::move(data));
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
    if (auto ok = target.usable(to, "the target of the copy"); !ok.has_value()) return failed(ok.error());
    if (auto ok = source.usable(from, "the source of the copy"); !ok.has_value()) return failed(ok.error());
    if (size(to) != size(from)) {
      Error::Data data;
      data.code = ErrorCode::Validation;
      data.rule = "CopySize";
      data.message = "a copy of " + std::to_string(size(from)) + " bytes to " + std::to_string(size(to)) + " bytes";
      return failed(Error(std::move(data)));
    }
    if (empty(to)) {
      if (auto ok = source.read(from_stream.id(), from, nullptr); !ok.has_value()) return ok;  // what it says of a device that is lost
      return target.write(to_stream.id(), to, nullptr);
    }
    std::vector<std::byte> piece;
    try {
      piece.resize(std::min(size(to), kPiece));
    } catch (const std::bad_alloc&) { return failed(no_host_memory()); }
    for (std::uint64_t at = 0; at < size(to); at += kPiece) {
      const std::uint64_t bytes = std::min(kPiece, size(to) - at);
      const Binding here{from.memory, {from.range.begin + at, from.range.begin + at + bytes}};
      if (auto ok = source.read(from_stream.id(), here, piece.data()); !ok.has_value()) return failed(skipped(from, ok.error()));
      const Binding there{to.memory, {to.range.begin + at, to.range.begin + at + bytes}};
      if (auto ok = target.write(to_stream.id(), there, piece.data()); !ok.has_value()) return failed(ok.error());
    }
    return {};
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
