#include "kiln/runtime/operation.h"

#include <chrono>
#include <new>
#include <string>

#include "src/call_order.h"
#include "src/local_server.h"
#include "src/make_error.h"

namespace kiln {
struct StreamPolicy::State {
  std::vector<Stream> streams;
  std::atomic<std::size_t> next{0};
};

StreamPolicy StreamPolicy::single(const Stream& stream) {
  auto state = std::make_shared<State>();
  state->streams.push_back(stream);
  return StreamPolicy(std::move(state));
}

StreamPolicy StreamPolicy::round_robin(const Client& client, unsigned streams) {
  if (streams == 0) throw Exception(make_error(ErrorCode::Validation, "NoStreams", "operations in turn need one stream at least"));
  auto state = std::make_shared<State>();
  for (unsigned i = 0; i < streams; ++i) state->streams.push_back(client.stream());
  return StreamPolicy(std::move(state));
}

Stream StreamPolicy::next() const { return state_->streams[state_->next.fetch_add(1, std::memory_order_relaxed) % state_->streams.size()]; }

namespace op::detail {
namespace {

// The streams of a run have to come to their points, one after the other, before its end is told.
struct Settling {
  explicit Settling(Client c) : client(std::move(c)) {}
  Client client;
  std::unique_ptr<Server::Written> written;
  std::move_only_function<void(Result<void>)> then;
  std::vector<Server::Point> points;

  // To the next point. After the last one, or where something goes wrong, it tells.
  static void go_on(const std::shared_ptr<Settling>& self) noexcept {
    Result<void> how;
    try {
      Server& server = self->client.server();
      while (how.has_value() && !self->points.empty()) {
        const Server::Point point = self->points.back();
        self->points.pop_back();
        if (server.event_done(point) && !self->points.empty()) continue;
        how = server.when_over(point, [self] { go_on(self); });
        if (how.has_value()) return;
      }
      if (how.has_value()) how = self->written->verdict();
    } catch (...) { how = thrown(); }
    self->then(std::move(how));
  }
};

}  // namespace

Stream Run::branch() {
  const std::lock_guard lock(mutex_);
  const Stream stream = policy_ ? policy_->next() : streams_.front().client().stream(streams_.front().priority());
  streams_.push_back(stream);
  return stream;
}

void Run::wrote(const Binding& bytes) {
  if (bytes.memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  written_.push_back(bytes);
}

void Run::join(Run& other) {
  std::vector<Stream> streams;
  std::vector<Binding> bytes;
  {
    const std::lock_guard lock(other.mutex_);
    streams = other.streams_;
    bytes = other.written_;
  }
  const std::lock_guard lock(mutex_);
  streams_.insert(streams_.end(), streams.begin(), streams.end());
  written_.insert(written_.end(), bytes.begin(), bytes.end());
}

void Run::settle(const std::shared_ptr<Run>& run, std::move_only_function<void(Result<void>)> then) noexcept {
  std::shared_ptr<Settling> settling;
  try {
    std::vector<Stream> streams;
    std::vector<Binding> bytes;
    {
      const std::lock_guard lock(run->mutex_);
      streams = run->streams_;
      bytes = run->written_;
    }
    settling = std::make_shared<Settling>(streams.front().client());
    settling->then = std::move(then);
    auto written = settling->client.server().written(bytes);
    if (!written.has_value()) return settling->then(written.error());
    settling->written = std::move(*written);
    for (const Stream& stream : streams) settling->points.push_back(settling->client.server().record(stream.id()));
    Settling::go_on(settling);
  } catch (...) { (settling != nullptr && settling->then ? settling->then : then)(thrown()); }
}

// A thread that makes a host call looks now and then whether what it waits for came to wait for its end.
Result<void> Run::wait(std::unique_lock<std::mutex>& lock, const bool& over) {
  if (rt::CallOrder::current() == nullptr) {
    over_.wait(lock, [&] { return over; });
    return {};
  }
  while (!over) {
    const std::vector<Stream> streams = streams_;
    lock.unlock();
    for (const Stream& stream : streams) {
      auto& server = static_cast<rt::LocalServer&>(stream.client().server());  // every server of this process is one
      const Server::Point point = server.record(stream.id());
      if (!rt::CallOrder::may_wait(server.device(), rt::After(rt::Event{point.queue, point.position})))
        return rt::CallOrder::waits_for_itself();
    }
    lock.lock();
    over_.wait_for(lock, std::chrono::milliseconds(10), [&] { return over; });
  }
  return {};
}

namespace {

// Made while there is memory, since they are told where there may be none.
const Error& gone_error() {
  static const Error error =
      make_error(ErrorCode::Validation, "OperationGone",
                 "the operation ran before, or was moved into another one; make a new one, or op::share() its value");
  return error;
}
const Error& dropped_error() {
  static const Error error =
      make_error(ErrorCode::Generic, "OperationDropped", "what the operation belongs to was dropped before this part of it began");
  return error;
}
[[maybe_unused]] const Error &gone_ready = gone_error(), &dropped_ready = dropped_error();

}  // namespace

Error gone() noexcept { return gone_error(); }

Error dropped() noexcept { return dropped_error(); }

Error thrown() noexcept try {
  try {
    throw;
  } catch (const Exception& e) { return e.error(); } catch (const std::bad_alloc&) {
    return rt::no_host_memory();
  } catch (const std::exception& e) {
    return make_error(ErrorCode::Generic, "OperationThrew", std::string("a function of the operation threw: ") + e.what());
  } catch (...) { return make_error(ErrorCode::Generic, "OperationThrew", "a function of the operation threw something"); }
} catch (const std::bad_alloc&) { return rt::no_host_memory(); }

Error borrowed_gone(const char* what, std::size_t argument) {
  return make_error(ErrorCode::Validation, "BorrowedBufferGone",
                    (argument == 0 ? std::string(what) : "argument " + std::to_string(argument) + " of the launch of `" + what + "`") +
                        " is a buffer that was lent to the operation, and its memory is gone; keep the buffer until the operation runs, or "
                        "move it in");
}

Client default_client(std::optional<Client> own) { return own ? *std::move(own) : Client::default_client(); }

std::optional<Client> first_client(std::initializer_list<std::optional<Client>> all) {
  for (const auto& client : all)
    if (client) return client;
  return std::nullopt;
}

Result<void> call_later(const Stream& stream, std::move_only_function<void(const Error*)> function, const std::source_location& where) {
  return stream.client().server().call(stream.id(), std::move(function), where);
}

void go_on_elsewhere(const Stream& stream, std::move_only_function<void()> then) noexcept {
  std::shared_ptr<std::move_only_function<void()>> shared;
  try {
    shared = std::make_shared<std::move_only_function<void()>>(std::move(then));
    if (stream.client().server().when_over({}, [shared] { (*shared)(); }).has_value()) return;
  } catch (const std::bad_alloc&) {}
  // Where no thread can be had it is done here; it is told what it must not wait for.
  (shared != nullptr ? *shared : then)();
}

Result<void> read_later(const Stream& stream, const Binding& from, void* to, std::move_only_function<void(Result<void>)> done) {
  return stream.client().server().read_later(stream.id(), from, to, std::move(done));
}

}  // namespace op::detail
}  // namespace kiln
