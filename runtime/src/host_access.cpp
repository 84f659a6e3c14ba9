// Page-locked memory and views of the host's: kiln/runtime/staging.h, and the server's part of it.
#include "src/host_access.h"

#include <cstring>
#include <string>

#include "kiln/runtime/staging.h"
#include "src/make_error.h"
#include "src/memory_order.h"
#include "src/read_turn.h"
#include "src/server_enter.h"

namespace kiln::rt {
namespace {

LocalServer& local(Server& server) { return static_cast<LocalServer&>(server); }  // all of this process are

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
    for (Download& download : memory.downloads) (void)download.place.release();  // the log may be locked for ever
    return;
  }
  std::vector<Download> downloads = std::move(memory.downloads);  // nobody wants to know any more
  for (Download& download : downloads) download.place.reset();
  After open = memory.reads;
  open.add(memory.writes);
  const auto let_go = [this, mapped = memory.mapped](const After& events, const std::vector<Download>& unread) {
    events.for_each([&](Event e) { device_->wait(e); });
    for (const Download& download : unread) (void)device_->refused(download.at);
    if (mapped.host != nullptr) device_->unmap(mapped);
  };
  if (CallOrder::may_wait(*device_, open)) return let_go(open, downloads);
  try {  // a host call that drops what waits for its end: another thread waits
    (void)when_over_now({}, [keep = shared_from_this(), let_go, open, unread = std::move(downloads)] { let_go(open, unread); });
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
        std::vector<Download> over;  // ends without the lock
        const std::lock_guard lock(memory.mutex);
        memory.writes.clear();
        if (reads_too) memory.reads.clear();
        for (const Download& download : memory.downloads) {
          auto verdict = device_state(ErrorCode::IoDevicePoisoned);
          if (auto refused = device_->refused(download.at); refused && verdict.has_value()) verdict = std::move(*refused);
          if (verdict.has_value()) verdict = download.place->verdict();
          if (!verdict.has_value() && !memory.refused) memory.refused = verdict.error();
        }
        over.swap(memory.downloads);  // now that what they have come to is known
        if (memory.refused) return *memory.refused;
        return {};
      },
      [](const Error&) {});
}

Result<const std::byte*> LocalServer::open_view(std::uint64_t stream, const Binding& from) {
  return enter(
      [&]() -> Result<const std::byte*> {
        if (auto ok = usable(from, "what is viewed", kItsStream); !ok.has_value()) return ok.error();
        if (!device_->host_addressable()) {
          return make_error(ErrorCode::UnsupportedIo, "HostViewUnsupported",
                            "the host does not reach the memory of " + label() + "; read() copies it, HostBuffer does without waiting");
        }
        if (auto ok = device_state(ErrorCode::IoDevicePoisoned); !ok.has_value()) return ok.error();
        if (empty(from)) return nullptr;
        if (auto ok = captures_.refuse(stream, "a view of the host's", Captures::Refused::Waits); !ok.has_value()) return ok.error();
        if (auto ok = map_late(*from.memory); !ok.has_value()) return ok.error();
        HeldTask task(*device_);
        task->kind = Task::Kind::Host;
        task->bytes = from.range.end - from.range.begin;
        bool open = false;
        const Result<void> verdict = read_in_turn(
            stream, task, *from.memory, from.range.begin, {memory_range(from)}, [](const Task&) {},
            [&] {
              ++from.memory->host_views;
              open = true;
            });
        if (verdict.has_value()) return address(from);
        if (open) close_view(*from.memory);
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

Result<void> host_range(std::uint64_t first, std::uint64_t count, std::uint64_t size) {
  if (first <= size && count <= size - first) return {};
  return make_error(ErrorCode::Validation, "HostRange",
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
