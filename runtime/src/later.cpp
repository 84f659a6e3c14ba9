// The part of the server for those who do not wait: they are told on a thread of the runtime.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "src/background.h"
#include "src/local_server.h"
#include "src/memory_order.h"

namespace kiln::rt {
namespace {

class ThenJob final : public Job {
 public:
  explicit ThenJob(std::move_only_function<void()> then) : then_(std::move(then)) {}
  void run() noexcept override {
    try {
      then_();
    } catch (...) {  // whoever goes on later has nobody to throw at
    }
  }

 private:
  std::move_only_function<void()> then_;
};

// Hands a job to another thread, so that the queue's own is free for what comes next there.
class HandOn final : public QueueJob {
 public:
  HandOn(Background& background, std::unique_ptr<Job> job) : background_(background), job_(std::move(job)) {}
  void run() noexcept override { (void)background_.post(job_); }  // there is a thread: this one

 private:
  Background& background_;
  std::unique_ptr<Job> job_;
};

}  // namespace

Result<void> LocalServer::when_over_now(const Point& point, std::move_only_function<void()> then) {
  std::unique_ptr<Job> job = std::make_unique<ThenJob>(std::move(then));
  if (device_->done({point.queue, point.position})) {
    if (!background_->post(job)) return no_thread();
    return {};
  }
  // The place can be seen a moment before the thread that is to do its work knows of it: not to be waited for before that.
  { const std::lock_guard lock(enqueue_); }
  auto hand_on = std::make_unique<HandOn>(*background_, std::move(job));
  hand_on->at = {point.queue, point.position};
  return background_->when_over(std::move(hand_on));
}

// A read under way: its end, once all pieces are there.
class LocalServer::LaterRead {
 public:
  LaterRead(Background& background, ReadDone done) : background_(background), job_(std::make_unique<Done>(std::move(done))) {}

  void begin_piece() { open_.fetch_add(1, std::memory_order_relaxed); }
  void end_piece(Result<void> result) noexcept {
    if (!result.has_value()) {
      const std::lock_guard lock(mutex_);
      if (job_->result.has_value()) job_->result = std::move(result);
    }
    if (open_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    std::unique_ptr<Job> job = std::move(job_);
    if (!background_.post(job)) job->run();  // there is no other thread
  }

 private:
  class Done final : public Job {
   public:
    explicit Done(ReadDone d) : done(std::move(d)) {}
    void run() noexcept override {
      try {
        done(std::move(result));
      } catch (...) {}
    }
    ReadDone done;
    Result<void> result;
  };

  Background& background_;
  std::mutex mutex_;
  std::unique_ptr<Done> job_;
  std::atomic<std::size_t> open_{1};
};

Result<void> LocalServer::read_later_now(std::uint64_t stream, const Binding& from, void* to, ReadDone done) {
  if (auto ok = usable(from, "what is read", kItsStream); !ok.has_value()) return ok;
  if (auto ok = captures_.refuse(stream, "a read", Captures::Refused::Waits); !ok.has_value()) return ok;
  if (auto ok = device_state(ErrorCode::IoDevicePoisoned); !ok.has_value()) return ok;
  const auto read = std::make_shared<LaterRead>(*background_, std::move(done));
  const std::uint64_t bytes = empty(from) ? 0 : from.range.end - from.range.begin;
  const std::uint64_t step = device_->host_addressable() ? bytes : device_->max_staging();
  Result<void> result;
  for (std::uint64_t at = 0; at < bytes && result.has_value();) {
    const std::uint64_t end = std::min(bytes, at + step);
    result = read_piece_later(stream, from, {from.memory, {from.range.begin + at, from.range.begin + end}},
                              static_cast<std::byte*>(to) + at, read);
    if (!result.has_value() && at == 0) return result;
    at = end;
  }
  read->end_piece(std::move(result));
  return {};
}

Result<void> LocalServer::read_piece_later(std::uint64_t stream, const Binding& whole, const Binding& piece, std::byte* to,
                                           std::shared_ptr<LaterRead> read) {
  class PieceJob final : public QueueJob {
   public:
    PieceJob(LocalServer& s, const Binding& p, std::byte* t, std::shared_ptr<LaterRead> r)
        : server(s), piece(p), to(t), read(std::move(r)) {}
    Result<void> readable() noexcept {
      auto refused = server.device_->refused(at);
      try {
        server.confirm();
        if (auto ok = server.device_state(ErrorCode::IoDevicePoisoned); !ok.has_value()) return ok;
        if (refused) return std::move(*refused);
        return place->verdict();
      } catch (const std::bad_alloc&) { return no_host_memory(); }
    }
    void run() noexcept override {
      Result<void> result = readable();
      const bool direct = task->kind == Task::Kind::Host;  // else the device has copied
      if (result.has_value()) std::memcpy(to, direct ? task->from : task->staging.data(), piece.range.end - piece.range.begin);
      place.reset();
      server.device_->finish_host(*task);
      const Memory keep = std::move(piece.memory);  // may be the last of the server
      const auto last = std::move(read);
      last->end_piece(std::move(result));
    }
    LocalServer& server;
    Binding piece;  // kept until the bytes are there
    std::byte* to;
    std::shared_ptr<LaterRead> read;
    std::unique_ptr<LogRead> place;
  };

  const bool direct = device_->host_addressable();
  const std::uint64_t bytes = piece.range.end - piece.range.begin;
  Staging staging;
  if (!direct) {
    auto given = device_->stage(bytes);
    if (!given.has_value()) return given.error();
    staging = std::move(*given);
  }
  auto job = std::make_unique<PieceJob>(*this, piece, to, read);
  HeldTask task(*device_);
  task->kind = direct ? Task::Kind::Host : Task::Kind::Download;
  task->bytes = bytes;
  task->staging = std::move(staging);
  const std::uint32_t queue = queue_of(stream);
  if (auto ok = background_->hold(queue); !ok.has_value()) return ok;
  job->task = &*task;
  const std::lock_guard lock(enqueue_);
  try {
    job->place = std::make_unique<LogRead>(log_, memory_range(whole));
  } catch (const std::bad_alloc&) {
    background_->let_go(queue);
    throw;
  }
  After after;
  order_read(*piece.memory, after);
  task->from = address(piece);  // where it is at that place in the order: a cleanup moves it behind that
  const Result<Event> event = task.submit(queue, after);
  if (!event.has_value()) {
    background_->let_go(queue);
    return event.error();
  }
  note_read(*piece.memory, *event);
  read->begin_piece();
  job->at = *event;
  background_->add(std::move(job));
  return {};
}

class LocalServer::LogWritten final : public Server::Written {
 public:
  LogWritten(LocalServer& server, std::span<const Binding> written) : server_(server), keep_(server.shared_from_this()) {
    for (const Binding& binding : written) {
      if (empty(binding)) continue;
      memories_.push_back(binding.memory);
      places_.push_back(std::make_unique<LogRead>(server.log_, memory_range(binding)));
    }
  }
  ~LogWritten() override { places_.clear(); }

  Result<void> verdict() override {
    server_.confirm();
    if (auto ok = server_.device_state(); !ok.has_value()) return ok;
    std::vector<Error> all;
    for (const auto& place : places_) {
      const Result<void> one = place->verdict();
      if (!one.has_value()) all.insert(all.end(), one.error().causes().begin(), one.error().causes().end());
    }
    if (all.empty()) return {};
    return FailureStore::unreadable(std::move(all));
  }

 private:
  LocalServer& server_;
  const std::shared_ptr<Server> keep_;
  std::vector<Memory> memories_;  // so that none of it is freed, which would end its claims
  std::vector<std::unique_ptr<LogRead>> places_;
};

Result<std::unique_ptr<Server::Written>> LocalServer::written_now(std::span<const Binding> bytes) {
  for (const Binding& binding : bytes)
    if (auto ok = usable(binding, "what was written", kItsClient); !ok.has_value()) return ok.error();
  const std::lock_guard lock(enqueue_);
  return std::unique_ptr<Written>(std::make_unique<LogWritten>(*this, bytes));
}

}  // namespace kiln::rt
