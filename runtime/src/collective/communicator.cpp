#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "kiln/runtime/collective.h"
#include "src/capture/captures.h"
#include "src/make_error.h"
#include "src/memory_order.h"
#include "src/server.h"

namespace kiln {
namespace {

// FNV-1a over the devices' numbers, behind a number of its own for each use.
std::uint64_t hash(std::uint64_t use, const std::vector<std::uint64_t>& numbers) {
  std::uint64_t h = 0xcbf29ce484222325u;
  const auto add = [&h](std::uint64_t v) {
    for (int byte = 0; byte < 8; ++byte) h = (h ^ (v >> (8 * byte) & 0xff)) * 0x100000001b3u;
  };
  add(use);
  for (const std::uint64_t n : numbers) add(n);
  return h;
}
constexpr std::uint64_t kGroups = 1, kChannels = 2;

}  // namespace

struct Communicator::Group {
  std::shared_ptr<rt::Transport> transport;
  std::vector<Client> devices;
  std::uint64_t id = 0;
};

namespace {

Result<std::uint64_t> id_of(const std::vector<Client>& devices) {
  if (devices.empty()) return make_error(ErrorCode::Validation, "CommunicatorDevices", "a group of no devices");
  std::vector<std::uint64_t> numbers;
  for (const Client& client : devices) numbers.push_back(client.server().number());
  std::sort(numbers.begin(), numbers.end());
  if (const auto twice = std::adjacent_find(numbers.begin(), numbers.end()); twice != numbers.end()) {
    const auto which = std::find_if(devices.begin(), devices.end(), [&](const Client& c) { return c.server().number() == *twice; });
    return make_error(
        ErrorCode::Validation, "CommunicatorDevices",
        which->server().label() + " is in the group twice; each device has one rank (cpu:1, cpu:2 ... are further CPU devices)");
  }
  return hash(kGroups, numbers);
}

}  // namespace

Result<Communicator> Communicator::over(std::shared_ptr<rt::Transport> transport, const std::vector<Client>& devices) {
  return rt::or_no_memory([&]() -> Result<Communicator> {
    const auto id = id_of(devices);
    if (!id.has_value()) return id.error();
    if (auto ok = transport->comm_init(devices); !ok.has_value()) return ok.error();
    return Communicator(std::make_shared<const Group>(Group{std::move(transport), devices, *id}));
  });
}

Result<Communicator> Communicator::init(const std::vector<Client>& devices) {
  static std::mutex& mutex = *new std::mutex;
  static auto& groups = *new std::map<std::uint64_t, std::weak_ptr<const Group>>;
  return rt::or_no_memory([&]() -> Result<Communicator> {
    const auto id = id_of(devices);
    if (!id.has_value()) return id.error();
    std::shared_ptr<const Group> known;  // may be the last who has it: not under the lock
    const std::lock_guard lock(mutex);
    known = groups[*id].lock();
    if (known != nullptr && !known->transport->broken()) {
      if (known->devices == devices) return Communicator(known);
      return make_error(ErrorCode::Validation, "CommunicatorOrder",
                        "there is a group of these devices in another order, in which their ranks are others; name them in that order");
    }
    auto made = over(rt::make_transport(devices), devices);
    if (made.has_value()) groups[*id] = made->group_;
    return made;
  });
}

std::uint64_t Communicator::id() const { return group_->id; }
std::uint32_t Communicator::size() const { return static_cast<std::uint32_t>(group_->devices.size()); }

std::uint64_t Communicator::channel_id(std::uint32_t rank, std::uint32_t peer) const {
  std::vector<std::uint64_t> numbers{group_->devices.at(rank).server().number(), group_->devices.at(peer).server().number()};
  std::sort(numbers.begin(), numbers.end());
  return hash(kChannels, numbers);
}

Result<std::uint32_t> Communicator::rank(const Client& client) const {
  const auto found = std::find(group_->devices.begin(), group_->devices.end(), client);
  if (found != group_->devices.end()) return static_cast<std::uint32_t>(found - group_->devices.begin());
  return make_error(ErrorCode::ForeignHandle, "ForeignHandle",
                    client.server().label() + " is no device of this group; it has those that it was made of");
}

Result<void> Communicator::sync(const Client& client, std::chrono::milliseconds patience) const {
  return rt::or_no_memory([&]() -> Result<void> {
    const auto me = rank(client);
    if (!me.has_value()) return me.error();
    return group_->transport->sync(*me, patience);
  });
}

// What every device can see of its own part.
Result<void> Communicator::expect_size(Kind kind, const Part& p, std::uint64_t ranks) {
  std::uint64_t expected = p.from_elements;
  bool fits = true;
  const char* what = "as many elements as it gives";
  switch (kind) {
    case Kind::AllGather:
      fits = !__builtin_mul_overflow(p.from_elements, ranks, &expected);
      what = "what it gives, for each device of the group";
      break;
    case Kind::ReduceScatter:
      what = "a part of what it gives, one for each device of the group";
      fits = p.from_elements % ranks == 0;
      expected = p.from_elements / ranks;
      break;
    case Kind::AllToAll:
      if (p.from_elements % ranks != 0) {
        return make_error(ErrorCode::Validation, "CollectiveSize",
                          std::to_string(p.from_elements) + " elements have no equal parts for " + std::to_string(ranks) + " devices",
                          {.requested = p.from_elements, .limit = ranks, .numbers = Error::Numbers::NotEqual});
      }
      break;
    default: break;
  }
  if (fits && p.to_elements == expected) return {};
  return make_error(ErrorCode::Validation, "CollectiveSize",
                    std::string("the device must get ") + what + ": it gives " + std::to_string(p.from_elements) + " elements and gets " +
                        std::to_string(p.to_elements),
                    {.requested = p.to_elements, .limit = expected, .numbers = Error::Numbers::NotEqual});
}

Result<void> Communicator::run(Kind kind, const Stream& stream, const Part& p) const {
  return rt::or_no_memory([&]() -> Result<void> {
    rt::Transport& transport = *group_->transport;
    const auto me = rank(stream.client());
    if (!me.has_value()) {
      rt::claim(p.to, me.error());
      return me.error();
    }
    const auto check = [&]() -> Result<void> {
      Server& server = stream.client().server();
      if (auto ok = server.captures().refuse(stream.id(), "a collective", rt::Captures::Refused::IsPart); !ok.has_value()) return ok;
      if (auto ok = server.usable(p.from, "what the device gives", "each device of the group takes part with memory of its own");
          !ok.has_value())
        return ok;
      if (auto ok = server.usable(p.to, "what the device gets", "each device of the group takes part with memory of its own");
          !ok.has_value())
        return ok;
      if (auto ok = expect_size(kind, p, size()); !ok.has_value()) return ok;
      const bool reduces = kind == Kind::AllReduce || kind == Kind::ReduceScatter;
      if (reduces && !ir::is_integer(p.type) && !ir::is_float(p.type)) {
        return make_error(
            ErrorCode::Validation, "UnsupportedReduction",
            "elements of " + std::string(ir::name(p.type)) + " are not added; convert them to a type that kernels compute with");
      }
      if (p.peer >= size()) {
        return make_error(ErrorCode::Validation, "CollectiveRank",
                          "there is no rank " + std::to_string(p.peer) + " in a group of " + std::to_string(size()) + " devices",
                          {.requested = p.peer, .limit = size(), .numbers = Error::Numbers::NotEqual});
      }
      const bool same = p.from.memory == p.to.memory && p.from.range == p.to.range;
      if (!same && p.from.memory == p.to.memory && !rt::empty(p.from) && !rt::empty(p.to) && p.from.range.begin < p.to.range.end &&
          p.to.range.begin < p.from.range.end)
        return make_error(ErrorCode::Validation, "AliasingArguments",
                          "what the device gives and what it gets overlap; give separate buffers");
      return {};
    };
    if (auto ok = check(); !ok.has_value()) {
      if (kind != Kind::Broadcast || p.peer != *me) rt::claim(p.to, ok.error());
      transport.refused(*me, ok.error());
      return ok;
    }
    rt::CollectiveCall call{stream, *me, p.from, p.to, p.type, p.from_elements, p.reduction, p.peer};
    switch (kind) {
      case Kind::AllReduce: return transport.all_reduce(call);
      case Kind::AllGather: return transport.all_gather(call);
      case Kind::ReduceScatter: return transport.reduce_scatter(call);
      case Kind::Broadcast: (call.peer == call.rank ? call.to : call.from) = {}; return transport.broadcast(call);
      case Kind::AllToAll: return transport.all_to_all(call);
      case Kind::Send: return transport.send(call);
      case Kind::Recv: return transport.recv(call);
      case Kind::Barrier: return transport.barrier(call);
    }
    return {};
  });
}

}  // namespace kiln
