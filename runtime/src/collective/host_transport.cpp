#include "src/collective/host_transport.h"

#include <algorithm>
#include <new>

#include "kiln/runtime/graph.h"
#include "src/make_error.h"
#include "src/memory_order.h"
#include "src/server.h"

namespace kiln::rt {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;  // bytes of a source on the host at a time

std::uint64_t size(const Binding& binding) { return empty(binding) ? 0 : binding.range.end - binding.range.begin; }

// `count` bytes of it from `first` on.
Binding part(const Binding& whole, std::uint64_t first, std::uint64_t count) {
  return {whole.memory, {whole.range.begin + first, whole.range.begin + first + count}};
}

}  // namespace

const char* HostTransport::text(Kind kind) {
  switch (kind) {
    case Kind::AllReduce: return "all_reduce";
    case Kind::AllGather: return "all_gather";
    case Kind::ReduceScatter: return "reduce_scatter";
    case Kind::Broadcast: return "broadcast";
    case Kind::AllToAll: return "all_to_all";
    case Kind::Barrier: return "barrier";
  }
  return "a collective";
}

Result<void> HostTransport::comm_init(const std::vector<Client>& devices) {
  devices_ = devices;
  next_.assign(devices.size(), 0);
  open_.assign(devices.size(), 0);
  return {};
}

bool HostTransport::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_.has_value();
}

Error HostTransport::broken_error() const {
  return make_error(ErrorCode::Validation, "CommunicatorFailed",
                    "the group's collectives failed, and it takes no more; make it anew with Communicator::init", {.causes = {*broken_}});
}

// --- failures --------------------------------------------------------------------------------------------------------------------

// The first failure of a group ends it: nobody waits any more, and what was to be written carries it.
Error HostTransport::fail(std::uint32_t rank, const Error& why) {
  std::deque<Round> rounds;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Channel> channels;
  std::optional<Error> error;
  {
    const std::lock_guard lock(mutex_);
    if (!broken_) {
      broken_ = make_error(
          ErrorCode::Generic, "CollectiveFailed",
          "a collective failed for rank " + std::to_string(rank) + ", " + devices_[rank].server().label() + ", and so for its group",
          {.causes = {why}});
    }
    error = broken_;
    rounds.swap(rounds_);
    channels.swap(channels_);
    std::fill(open_.begin(), open_.end(), 0);
  }
  changed_.notify_all();
  for (const Round& round : rounds)
    for (const auto& arrival : round.of)
      if (arrival) claim(arrival->call.to, *error);
  for (const auto& [pair, channel] : channels)
    for (const Arrival& recv : channel.recvs) claim(recv.call.to, *error);
  return *error;
}

void HostTransport::refused(std::uint32_t rank, const Error& why) { fail(rank, why); }

// --- a call ----------------------------------------------------------------------------------------------------------------------

// The source as it is when its turn comes, in memory of its own, which carries the failures of what it was copied from.
Result<Binding> HostTransport::snapshot(const CollectiveCall& call) {
  if (empty(call.from)) return Binding{};
  if (auto ok = call.stream.client().server().check({&call.from, 1}); !ok.has_value()) return ok.error();
  auto memory = allocate(call.stream.client(), size(call.from));
  if (!memory.has_value()) return memory.error();
  const Binding copy_of{std::move(*memory), {0, size(call.from)}};
  if (auto ok = copy(call.stream, copy_of, call.from); !ok.has_value()) return ok.error();
  return copy_of;
}

// All of a call before it is put down: its source is kept, and its target cannot be read any more.
Result<HostTransport::Arrival> HostTransport::prepare(const char* what, const CollectiveCall& call) {
  std::optional<Error> error;
  bool too_many = false;
  {
    const std::lock_guard lock(mutex_);
    too_many = open_[call.rank] >= kMostOutstanding;
    if (broken_) error = broken_error();
    else if (!too_many) ++open_[call.rank];
  }
  if (!error && too_many) {
    error = make_error(ErrorCode::Validation, "CollectiveBacklog",
                       "rank " + std::to_string(call.rank) + " has called " + std::to_string(kMostOutstanding) +
                           " collectives that others have not come to; sync() waits for them");
    fail(call.rank, *error);
  }
  if (error) {
    claim(call.to, *error);
    return *error;
  }
  auto sent = snapshot(call);
  if (!sent.has_value()) {
    const Error failed = fail(call.rank, sent.error());
    claim(call.to, failed);
    return failed;
  }
  claim(call.to,
        make_error(ErrorCode::Validation, "CollectivePending",
                   std::string("not all devices of the group have come to this ") + what + "; sync() of the communicator waits for them"));
  return Arrival{call, std::move(*sent)};
}

std::optional<Error> HostTransport::mismatch(const Round& round, Kind kind, const CollectiveCall& call) {
  const CollectiveCall& other = round.of[round.first]->call;
  const auto differ = [&](const char* what) {
    return make_error(ErrorCode::Validation, "CollectiveMismatch",
                      "rank " + std::to_string(call.rank) + " called " + text(kind) + " where rank " + std::to_string(other.rank) +
                          " called " + text(round.kind) + ": " + what);
  };
  if (kind != round.kind) return differ("all devices call the same operations in the same order");
  if (call.type != other.type) return differ("their elements are of other types");
  if (call.elements != other.elements) {
    return differ(("they have " + std::to_string(call.elements) + " and " + std::to_string(other.elements) + " elements").c_str());
  }
  if (call.reduction != other.reduction) return differ("one is a sum and one a mean");
  if (call.peer != other.peer) return differ("they name other roots");
  return std::nullopt;
}

// Where the group is broken or `put()`, under the lock, has an error, the call does not take place: what it was to write is claimed, and
// a call that does not fit the others' ends the group.
template <class Put>
std::optional<Error> HostTransport::put_down(const CollectiveCall& call, Put&& put) {
  std::optional<Error> error;
  bool fits = true;
  {
    const std::lock_guard lock(mutex_);
    if (broken_) {
      error = broken_error();
    } else {
      error = put();
      fits = !error.has_value();
    }
  }
  if (!error) return std::nullopt;
  if (!fits) fail(call.rank, *error);
  claim(call.to, *error);
  return error;
}

Error HostTransport::out_of_memory(const CollectiveCall& call) {
  claim(call.to, no_host_memory());
  return fail(call.rank, no_host_memory());
}

Result<void> HostTransport::arrive(Kind kind, const CollectiveCall& call) try {
  auto arrival = prepare(text(kind), call);
  if (!arrival.has_value()) return arrival.error();
  std::optional<Round> complete;
  std::uint64_t turn = 0;
  const auto put = [&]() -> std::optional<Error> {
    const std::uint64_t number = next_[call.rank];
    if (number - first_round_ == rounds_.size()) rounds_.push_back(Round{kind, {devices_.size(), std::nullopt}, 0, call.rank});
    Round& round = rounds_[number - first_round_];
    if (round.come != 0) {
      if (auto error = mismatch(round, kind, call)) return error;
    }
    ++next_[call.rank];
    round.of[call.rank] = std::move(*arrival);
    if (++round.come == devices_.size()) {  // then all have come to those before it, too
      complete = std::move(round);
      rounds_.pop_front();
      ++first_round_;
      turn = turns_++;
    }
    return std::nullopt;
  };
  if (auto error = put_down(call, put)) return *error;
  if (!complete) return {};
  std::vector<const Arrival*> all;
  for (const auto& one : complete->of) all.push_back(&*one);
  return in_turn(turn, all, [&] { return work(*complete); });
} catch (const std::bad_alloc&) { return out_of_memory(call); }

// --- what a round does -----------------------------------------------------------------------------------------------------------

template <class Work>
Result<void> HostTransport::in_turn(std::uint64_t turn, const std::vector<const Arrival*>& all, Work&& work) {
  std::optional<Error> error;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn == served_; });
    if (broken_) error = broken_error();
  }
  Result<void> done;
  try {
    if (!error) done = work();
  } catch (const std::bad_alloc&) { done = no_host_memory(); }
  if (!done.has_value()) error = fail(all.back()->call.rank, done.error());
  if (error)
    for (const Arrival* one : all) claim(one->call.to, *error);
  {
    const std::lock_guard lock(mutex_);
    ++served_;
    if (!broken_)
      for (const Arrival* one : all) --open_[one->call.rank];
  }
  changed_.notify_all();
  if (error) return *error;
  return {};
}

namespace {

// Where the work for a device is done. Its stream may have begun to be recorded since its call, whose work is no part of that graph.
Stream stream_of(const CollectiveCall& call) {
  return is_capturing(call.stream) ? call.stream.client().stream(call.stream.priority()) : call.stream;
}

// Bytes of what one device sent, to places of others, a piece at a time.
struct Target {
  const CollectiveCall* call;
  std::uint64_t first;
};
Result<void> move(const CollectiveCall& from, const Binding& sent, std::uint64_t first, std::uint64_t bytes,
                  const std::vector<Target>& targets) {
  std::vector<std::byte> piece(std::min(bytes, kPiece));
  for (std::uint64_t at = 0; at < bytes; at += kPiece) {
    const std::uint64_t n = std::min(kPiece, bytes - at);
    if (auto ok = read(stream_of(from), part(sent, first + at, n), piece.data()); !ok.has_value()) return ok;
    for (const Target& target : targets)
      if (auto ok = write(stream_of(*target.call), part(target.call->to, target.first + at, n), piece.data()); !ok.has_value()) return ok;
  }
  return {};
}

}  // namespace

Result<void> HostTransport::work(const Round& round) const {
  const std::uint64_t ranks = round.of.size();
  const auto call = [&](std::uint64_t r) -> const CollectiveCall& { return round.of[r]->call; };
  const auto& one = call(0);
  const std::uint64_t element = ir::byte_size(one.type), bytes = one.elements * element;
  // The reduction of elements [first, first + count) of all, to the targets.
  const auto reduced = [&](std::uint64_t first, std::uint64_t count, const std::vector<Target>& targets) -> Result<void> {
    const std::uint64_t fit = kPiece / element;
    std::vector<std::vector<std::byte>> pieces(ranks, std::vector<std::byte>(std::min(count, fit) * element));
    std::vector<std::byte> sum(std::min(count, fit) * element);
    std::vector<const std::byte*> sources;
    for (const auto& piece : pieces) sources.push_back(piece.data());
    for (std::uint64_t at = 0; at < count; at += fit) {
      const std::uint64_t n = std::min(fit, count - at), size_of_piece = n * element;
      for (std::uint64_t r = 0; r < ranks; ++r)
        if (auto ok = read(stream_of(call(r)), part(round.of[r]->sent, (first + at) * element, size_of_piece), pieces[r].data());
            !ok.has_value())
          return ok;
      reduce(one.type, one.reduction, sources, sum.data(), n);
      for (const Target& target : targets)
        if (auto ok = write(stream_of(*target.call), part(target.call->to, target.first + at * element, size_of_piece), sum.data());
            !ok.has_value())
          return ok;
    }
    return {};
  };
  std::vector<Target> everybody;
  for (std::uint64_t r = 0; r < ranks; ++r) everybody.push_back({&call(r), 0});
  switch (round.kind) {
    case Kind::Barrier: return {};
    case Kind::AllReduce: return reduced(0, one.elements, everybody);
    case Kind::ReduceScatter:
      for (std::uint64_t r = 0; r < ranks; ++r)
        if (auto ok = reduced(r * (one.elements / ranks), one.elements / ranks, {{&call(r), 0}}); !ok.has_value()) return ok;
      return {};
    case Kind::AllGather:
      for (std::uint64_t r = 0; r < ranks; ++r) {
        for (Target& target : everybody) target.first = r * bytes;
        if (auto ok = move(call(r), round.of[r]->sent, 0, bytes, everybody); !ok.has_value()) return ok;
      }
      return {};
    case Kind::Broadcast:
      std::erase_if(everybody, [&](const Target& t) { return t.call->rank == one.peer; });
      return move(call(one.peer), round.of[one.peer]->sent, 0, bytes, everybody);
    case Kind::AllToAll:
      for (std::uint64_t s = 0; s < ranks; ++s)
        for (std::uint64_t r = 0; r < ranks; ++r)
          if (auto ok = move(call(s), round.of[s]->sent, r * (bytes / ranks), bytes / ranks, {{&call(r), s * (bytes / ranks)}});
              !ok.has_value())
            return ok;
      return {};
  }
  return {};
}

// --- from one to another -----------------------------------------------------------------------------------------------------------

Result<void> HostTransport::pass(bool sends, const CollectiveCall& call) try {
  auto arrival = prepare(sends ? "send" : "recv", call);
  if (!arrival.has_value()) return arrival.error();
  std::optional<Arrival> other;
  std::uint64_t turn = 0;
  const auto put = [&]() -> std::optional<Error> {
    Channel& channel = channels_[sends ? std::pair(call.rank, call.peer) : std::pair(call.peer, call.rank)];
    std::deque<Arrival>&mine = sends ? channel.sends : channel.recvs, &theirs = sends ? channel.recvs : channel.sends;
    if (theirs.empty()) {
      mine.push_back(std::move(*arrival));
      return std::nullopt;
    }
    const CollectiveCall& met = theirs.front().call;
    if (met.type != call.type || met.elements != call.elements) {
      const CollectiveCall &from = sends ? call : met, &to = sends ? met : call;
      return make_error(ErrorCode::Validation, "CollectiveMismatch",
                        "rank " + std::to_string(from.rank) + " sends " + std::to_string(from.elements) + " elements of " +
                            std::string(ir::name(from.type)) + ", and rank " + std::to_string(to.rank) + " receives " +
                            std::to_string(to.elements) + " of " + std::string(ir::name(to.type)));
    }
    other = std::move(theirs.front());
    theirs.pop_front();
    turn = turns_++;
    return std::nullopt;
  };
  if (auto error = put_down(call, put)) return *error;
  if (!other) return {};
  const Arrival &from = sends ? *arrival : *other, &to = sends ? *other : *arrival;
  return in_turn(turn, {&from, &to}, [&] { return move(from.call, from.sent, 0, size(from.sent), {{&to.call, 0}}); });
} catch (const std::bad_alloc&) { return out_of_memory(call); }

Result<void> HostTransport::send(const CollectiveCall& call) { return pass(true, call); }
Result<void> HostTransport::recv(const CollectiveCall& call) { return pass(false, call); }

// --- waiting -------------------------------------------------------------------------------------------------------------------------

Result<void> HostTransport::sync(std::uint32_t rank, std::chrono::milliseconds patience) {
  std::string missing;
  {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return broken_ || open_[rank] == 0; };
    if (patience.count() == 0) changed_.wait(lock, over);
    else changed_.wait_for(lock, patience, over);
    if (broken_) return broken_error();
    if (open_[rank] == 0) return {};
    for (const Round& round : rounds_) {
      if (!round.of[rank]) continue;
      missing = std::string("; to its ") + text(round.kind) + " have not come:";
      for (std::size_t r = 0; r < round.of.size(); ++r)
        if (!round.of[r]) missing += " rank " + std::to_string(r);
      break;
    }
  }
  const Error error = make_error(
      ErrorCode::Validation, "CollectiveTimeout",
      "rank " + std::to_string(rank) + " waited " + std::to_string(patience.count()) + " ms for the others, and gave up" + missing);
  fail(rank, error);
  return error;
}

}  // namespace kiln::rt
