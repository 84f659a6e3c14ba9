// Page-locked memory and views of the host's: kiln/runtime/staging.h, and the server's part of it.
#include "src/host_access.h"

#include <cstring>
#include <string>

#include "kiln/runtime/staging.h"
#include "src/memory_order.h"
#include "src/server_enter.h"

namespace kiln::rt {
namespace {

LocalServer& local(Server& server) { return static_cast<LocalServer&>(server); }  // all of this process are

Error refused(ErrorCode code, const char* rule, std::string message) {
  Error::Data data;
  data.code = code;
  data.rule = rule;
  data.message = std::move(message);
  return Error(std::move(data));
}

}  // namespace

HostMemory::~HostMemory() { local(*server).unpin(*this); }

Result<std::shared_ptr<HostMemory>> LocalServer::pin(std::uint64_t bytes) {
  return enter(
      [&]() -> Result<std::shared_ptr<HostMemory>> {
        if (auto ok = device_state(ErrorCode::IoDevicePoisoned); !ok.has_value()) return ok.error();
        Device::Mapped mapped;
        if (bytes != 0) {
          auto given = device_->map(bytes);
          if (!given.has_value()) {
            Error::Data data = given.error().data();
            data.message = "no host memory of " + std::to_string(bytes) + " bytes for transfers of " + label();
            data.causes = {given.error()};
            data.requested = bytes;
            return Error(std::move(data));
          }
          mapped = *given;
        }
        try {
          return std::make_shared<HostMemory>(shared_from_this(), mapped, bytes);
        } catch (const std::bad_alloc&) {
          if (bytes != 0) device_->unmap(mapped);
          throw;
        }
      },
      [](const Error&) {});
}

void LocalServer::unpin(HostMemory& memory) noexcept {
  if (forked()) {
    for (auto& place : memory.downloads) (void)place.release();  // the log may be locked for ever
    return;
  }
  memory.downloads.clear();
  After open = memory.reads;
  open.add(memory.writes);
  const auto let_go = [this, mapped = memory.mapped](const After& events) {
    events.for_each([&](Event e) { device_->wait(e); });
    if (mapped.host != nullptr) device_->unmap(mapped);
  };
  if (CallOrder::may_wait(*device_, open)) return let_go(open);
  try {  // a host call that drops what waits for its end: another thread waits
    (void)when_over_now({}, [keep = shared_from_this(), let_go, open] { let_go(open); });
  } catch (const std::bad_alloc&) {  // it stays mapped
  }
}

bool LocalServer::over(const HostMemory& memory, bool reads_too) {
  bool over = true;
  memory.writes.for_each([&](Event e) { over = over && device_->done(e); });
  if (reads_too) memory.reads.for_each([&](Event e) { over = over && device_->done(e); });
  return over;
}

Result<void> LocalServer::settle(HostMemory& memory, bool reads_too) {
  return enter(
      [&]() -> Result<void> {
        After wait;
        bool downloads = false;
        {
          const std::lock_guard lock(memory.mutex);
          downloads = !memory.downloads.empty();
          wait.add(memory.writes);
          if (reads_too) wait.add(memory.reads);
        }
        {
          const CallOrder::Wait allowed(*device_, wait);
          if (!allowed.allowed()) return CallOrder::waits_for_itself();
          wait.for_each([&](Event e) { device_->wait(e); });
        }
        if (downloads) confirm();
        std::vector<std::unique_ptr<LogRead>> over;  // ends without the lock
        const std::lock_guard lock(memory.mutex);
        memory.writes.clear();
        if (reads_too) memory.reads.clear();
        over.swap(memory.downloads);
        for (const auto& place : over) {
          auto verdict = device_state(ErrorCode::IoDevicePoisoned);
          if (verdict.has_value()) verdict = place->verdict();
          if (!verdict.has_value() && !memory.refused) memory.refused = verdict.error();
        }
        if (memory.refused) return *memory.refused;
        return {};
      },
      [](const Error&) {});
}

Result<void> LocalServer::upload_from(std::uint64_t stream, const Binding& to, HostMemory& from, std::uint64_t first) {
  return enter_on(
      stream,
      [&]() -> Result<void> {
        if (auto ok = usable(to, "the target of the upload"); !ok.has_value()) return refused_transfer(to, nullptr, ok.error());
        if (from.server.get() != this) {
          return refused_transfer(to, nullptr,
                                  refused(ErrorCode::ForeignHandle, "ForeignHandle",
                                          "the host memory belongs to another device, " + from.server->label() + ", not to " + label()));
        }
        if (empty(to)) return device_state(ErrorCode::IoDevicePoisoned);
        bool unknown = false;
        {
          const std::lock_guard lock(from.mutex);
          unknown = from.refused.has_value() || !from.downloads.empty();
        }
        // What a download left there goes no further before it is known to be what was read.
        if (unknown)
          if (auto ok = settle(from, false); !ok.has_value()) return refused_transfer(to, nullptr, ok.error());
        if (auto recorded = captures_.record_write(stream, to, from.mapped.host + first)) return std::move(*recorded);
        HeldTask task(*device_);
        task->kind = Task::Kind::Upload;
        task->to = at_byte(to.range.begin);
        task->from = from.mapped.host + first;
        task->bytes = to.range.end - to.range.begin;
        const MemoryRange target = memory_range(to);
        Event at;
        auto done = transfer(stream, task, LogKind::HostWrite, *to.memory, {&target, 1}, nullptr, {}, &at);
        const std::lock_guard lock(from.mutex);
        from.reads.add(at);
        return done;
      },
      [&](const Error& why) { rt::claim(to, why); });
}

Result<void> LocalServer::download_to(std::uint64_t stream, const Binding& from, HostMemory& to, std::uint64_t first) {
  return enter(
      [&]() -> Result<void> {
        const auto failed = [&](Error error) -> Error {  // or what was there before would be taken for what was to be read
          const std::lock_guard lock(to.mutex);
          if (!to.refused) to.refused = error;
          return error;
        };
        if (auto ok = usable(from, "what is downloaded"); !ok.has_value()) return failed(ok.error());
        if (to.server.get() != this) {
          return refused(ErrorCode::ForeignHandle, "ForeignHandle",
                         "the host memory belongs to another device, " + to.server->label() + ", not to " + label());
        }
        if (empty(from)) return device_state(ErrorCode::IoDevicePoisoned);
        if (auto ok = captures_.refuse(stream, "a copy to pinned memory", Captures::Refused::IsPart); !ok.has_value())
          return failed(ok.error());
        if (auto ok = map_late(*from.memory); !ok.has_value()) return failed(ok.error());
        HeldTask task(*device_);
        task->kind = Task::Kind::Download;
        task->to = to.mapped.host + first;
        task->bytes = from.range.end - from.range.begin;
        const std::uint64_t task_bytes = task->bytes;
        std::vector<std::unique_ptr<LogRead>> over;
        const std::lock_guard lock(enqueue_);
        const std::lock_guard host_lock(to.mutex);
        to.downloads.reserve(to.downloads.size() + 1);
        auto place = std::make_unique<LogRead>(log_, memory_range(from));
        if (auto known = place->verdict(); !known.has_value()) {
          if (!to.refused) to.refused = known.error();
          return known;
        }
        After after = to.reads;
        after.add(to.writes);
        order_read(*from.memory, after);
        task->from = address(from);
        const Result<Event> event = task.submit(queue_of(stream), after);
        if (!event.has_value()) {
          if (!to.refused) to.refused = event.error();
          return event.error();
        }
        note_read(*from.memory, *event);
        to.writes.add(*event);
        if (task_bytes == to.bytes) {  // nothing is left of what was there
          to.refused.reset();
          over.swap(to.downloads);
          to.downloads.reserve(1);
        }
        to.downloads.push_back(std::move(place));
        return {};
      },
      [](const Error&) {});
}

Result<const std::byte*> LocalServer::open_view(std::uint64_t stream, const Binding& from) {
  return enter(
      [&]() -> Result<const std::byte*> {
        if (auto ok = usable(from, "what is viewed"); !ok.has_value()) return ok.error();
        if (!device_->host_addressable()) {
          return refused(ErrorCode::UnsupportedIo, "HostViewUnsupported",
                         "the host does not reach the memory of " + label() + "; read() copies it, HostBuffer does without waiting");
        }
        if (auto ok = device_state(ErrorCode::IoDevicePoisoned); !ok.has_value()) return ok.error();
        if (empty(from)) return nullptr;
        if (auto ok = captures_.refuse(stream, "a view of the host's", Captures::Refused::Waits); !ok.has_value()) return ok.error();
        if (auto ok = map_late(*from.memory); !ok.has_value()) return ok.error();
        HeldTask task(*device_);
        task->kind = Task::Kind::Host;
        task->bytes = from.range.end - from.range.begin;
        Task& turn = *task;
        std::unique_lock lock(enqueue_);
        const LogRead place(log_, memory_range(from));
        After after;
        order_read(*from.memory, after);
        After before = after;
        before.add(device_->last(queue_of(stream)));
        const CallOrder::Wait wait(*device_, before);
        if (!wait.allowed()) return CallOrder::waits_for_itself();
        const Result<Event> event = task.submit(queue_of(stream), after);
        if (!event.has_value()) return event.error();
        note_read(*from.memory, *event);
        ++from.memory->host_views;
        lock.unlock();
        device_->begin_host(turn);
        device_->finish_host(turn);
        confirm();
        Result<void> verdict = device_state(ErrorCode::IoDevicePoisoned);
        if (verdict.has_value()) verdict = place.verdict();
        if (verdict.has_value()) return address(from);
        close_view(*from.memory);
        return verdict.error();
      },
      [](const Error&) {});
}

void LocalServer::close_view(Allocation& memory) noexcept {
  if (forked()) return;
  const std::lock_guard lock(enqueue_);
  --memory.host_views;
}

// --- of kiln/runtime/staging.h ---------------------------------------------------------------------------------------------------

Result<std::shared_ptr<HostMemory>> pin(const Client& client, std::uint64_t bytes) { return local(client.server()).pin(bytes); }
std::byte* host_bytes(const HostMemory& memory) { return memory.mapped.host; }

Result<void> settle_reads(HostMemory& memory) { return local(*memory.server).settle(memory, false); }

Result<void> settle_writes(HostMemory& memory) {
  const auto settled = local(*memory.server).settle(memory, true);
  const std::lock_guard lock(memory.mutex);
  if (settled.has_value()) return {};
  if (!memory.refused) return settled;  // the device is another process's, or there was no memory
  memory.refused.reset();
  std::memset(memory.mapped.host, 0, memory.bytes);  // whoever changes some of it must not pass on the rest
  return {};
}

bool host_memory_ready(const HostMemory& memory) {
  auto& own = const_cast<HostMemory&>(memory);
  const std::lock_guard lock(own.mutex);
  return local(*memory.server).over(memory, false);
}

Result<void> upload(const Stream& stream, const Binding& to, HostMemory& from, std::uint64_t first) {
  return local(stream.client().server()).upload_from(stream.id(), to, from, first);
}
Result<void> download(const Stream& stream, const Binding& from, HostMemory& to, std::uint64_t first) {
  return local(stream.client().server()).download_to(stream.id(), from, to, first);
}

Result<void> host_range(std::uint64_t first, std::uint64_t count, std::uint64_t size) {
  if (first <= size && count <= size - first) return {};
  return refused(ErrorCode::Validation, "HostRange",
                 std::to_string(count) + " elements from " + std::to_string(first) + " on reach beyond the " + std::to_string(size) +
                     " of the host memory");
}

Result<OpenView> OpenView::open(const Stream& stream, const Binding& from) {
  auto bytes = local(stream.client().server()).open_view(stream.id(), from);
  if (!bytes.has_value()) return bytes.error();
  OpenView view;
  if (*bytes == nullptr) return view;
  view.memory_ = from.memory;
  view.bytes_ = *bytes;
  return view;
}

OpenView::~OpenView() {
  if (bytes_ != nullptr) local(*memory_->server).close_view(*memory_);
}

}  // namespace kiln::rt
