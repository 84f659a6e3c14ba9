// The server's operations as others call them: what holds for all of them. In a child of the process that opened the device there is no
// device; where the host has no memory for the bookkeeping, that is an error as any other, and what was to be written is claimed.
#include <algorithm>
#include <new>
#include <string>

#include "src/make_error.h"
#include "src/server_enter.h"
#include "src/server_log.h"

namespace kiln::rt {
namespace {

// Made while there is memory, since it is needed where there is none.
const Error& out_of_memory() {
  static const Error error(ErrorCode::OutOfMemory,
                           "there was no host memory for the bookkeeping of the operation; it may work once there is");
  return error;
}
[[maybe_unused]] const Error& out_of_memory_ready = out_of_memory();

}  // namespace

Error no_host_memory() noexcept { return out_of_memory(); }

Result<void> LocalServer::same_process() const {
  if (!forked()) return {};
  return make_error(
      ErrorCode::DevicePoisoned, "ForkedProcess",
      label() +
          " was opened before fork(), and its threads and its memory stay with the parent process; fork before the first use of a "
          "device, or start another program in the child");
}

Result<Device*> LocalServer::reachable_device() {
  if (auto ok = same_process(); !ok.has_value()) return ok.error();
  return device_.get();
}

// Tells of a lost device once.
void LocalServer::note_failure(const Error& error) noexcept {
  const bool lost = error.is_device_poisoned() && !told_lost_.exchange(true, std::memory_order_relaxed);
  if (lost || logs(LogArea::Failure, LogLevel::Info)) tell_failure(*this, error, lost);
}

void LocalServer::claim(const Binding& binding, const Error& why) noexcept {
  if (forked() || binding.memory == nullptr) return;
  ByteRange range = binding.range;
  range.end = std::min(range.end, binding.memory->storage->bytes);
  if (range.empty() || binding.memory->server.get() != this) return;
  const MemoryRange target{binding.memory->id, range};
  const std::lock_guard lock(enqueue_);
  ExecuteScope::failed_writing(store_, {&target, 1}, why);
}

Result<Memory> LocalServer::allocate(std::uint64_t bytes) { return allocate_on(thread_stream_id(), bytes); }

Result<Memory> LocalServer::allocate_on(std::uint64_t stream, std::uint64_t bytes) {
  auto memory = enter([&] { return allocate_now(stream, bytes); }, EnqueuesNothing());
  if (logs(LogArea::Memory, LogLevel::Debug)) tell_allocation(*this, bytes, memory);
  return memory;
}

Result<MemoryReport> LocalServer::memory_report() {
  return enter([&]() -> Result<MemoryReport> { return memory_->report(); }, EnqueuesNothing());
}

Result<MemoryReport> LocalServer::memory_report(std::uint64_t stream) {
  return enter([&] { return memory_->report(stream); }, EnqueuesNothing());
}

Result<std::uint64_t> LocalServer::memory_cleanup() {
  return enter([&] { return memory_cleanup_now(); }, EnqueuesNothing());
}

Result<void> LocalServer::install_memory_pools(const MemoryPools& layout) {
  return enter([&] { return memory_->install(layout); }, EnqueuesNothing());
}

Result<Memory> LocalServer::adopt(std::uint64_t address, std::uint64_t bytes, std::shared_ptr<const void> owner, bool read_only) {
  return enter([&] { return adopt_now(address, bytes, std::move(owner), read_only); }, EnqueuesNothing());
}

// What the kernel declares to write.
static void claim_outputs(const LaunchRequest& request, const Error& why) {
  const ir::Kernel& kernel = request.variant->recorded();
  for (std::size_t i = 0; i < request.args.size() && i < kernel.params.size(); ++i) {
    const ir::Param& param = kernel.params[i];
    if (param.is_buffer && request.args[i].is_buffer && kernel.mems[param.mem].access != ir::Access::In)
      rt::claim(request.args[i].binding, why);
  }
}

// Which launch it is about, of one that was refused before anybody looked at it.
static Error of_kernel(const LaunchRequest& request, const Error& error) noexcept try {
  if (request.variant == nullptr || !error.kernel().empty()) return error;
  const ir::Kernel& kernel = request.variant->recorded();
  Error::Data data = error.data();
  data.kernel = kernel.name;
  if (kernel.loc.line != 0) data.place = ir::to_string(kernel, kernel.loc);
  return Error(std::move(data));
} catch (const std::bad_alloc&) { return error; }

// One that was refused leaves what it was to read and write as it was; of one that ran out of memory nobody knows how far it came.
void LocalServer::not_launched(const LaunchRequest& request, const Error& why) {
  if (request.variant == nullptr) return;
  if (why.code() == ErrorCode::OutOfMemory) claim_outputs(request, why);
  else (void)refused_launch(programs_.plan(*request.variant, request.mode), request, why);
}

Result<void> LocalServer::launch(std::uint64_t stream, const LaunchRequest& request) {
  const bool tells = logs(LogArea::Launch, LogLevel::Debug);
  std::optional<LaunchConfig> chosen;
  auto result = enter_on(
      stream, [&] { return launch_now(stream, request, tells ? &chosen : nullptr); },
      [&](const Error& why) { not_launched(request, why); });
  if (!result.has_value()) result = of_kernel(request, result.error());
  if (tells) tell_launch(*this, stream, request, chosen.value_or(request.config), result, dropped_now(*this, stream));
  return captures_.watch(stream, std::move(result));
}

Result<void> LocalServer::prepare(PreparedState& state, const Error* unfit) {
  return enter([&] { return prepare_now(state, unfit); }, EnqueuesNothing());
}

Result<void> LocalServer::launch_prepared(std::uint64_t stream, const PreparedState& state) {
  auto result =
      enter_on(stream, [&] { return launch_prepared_now(stream, state); }, [&](const Error& why) { not_launched(state.request, why); });
  if (!result.has_value()) result = of_kernel(state.request, result.error());
  if (logs(LogArea::Launch, LogLevel::Debug))
    tell_launch(*this, stream, state.request, state.checked.config, result, dropped_now(*this, stream));
  return captures_.watch(stream, std::move(result));
}

Result<Event> LocalServer::launch_loaded(std::uint64_t stream, const LoadedLaunch& launch) {
  return enter_on(
      stream, [&] { return launch_loaded_now(stream, launch); },
      [&](const Error& why) {
        for (const Use& use : launch.uses)
          if (use.access != ir::Access::In) rt::claim(use.binding, why);
      });
}

Result<void> LocalServer::write(std::uint64_t stream, const Binding& to, const void* from) {
  return captures_.watch(stream,
                         enter_on(stream, [&] { return write_now(stream, to, from); }, [&](const Error& why) { rt::claim(to, why); }));
}

Result<void> LocalServer::fill_zero(std::uint64_t stream, const Binding& to) {
  return captures_.watch(stream,
                         enter_on(stream, [&] { return fill_zero_now(stream, to); }, [&](const Error& why) { rt::claim(to, why); }));
}

Result<void> LocalServer::copy(std::uint64_t stream, const Binding& to, const Binding& from) {
  return captures_.watch(stream,
                         enter_on(stream, [&] { return copy_now(stream, to, from); }, [&](const Error& why) { rt::claim(to, why); }));
}

Result<void> LocalServer::read(std::uint64_t stream, const Binding& from, void* to) {
  return enter([&] { return read_now(stream, from, to); }, EnqueuesNothing());
}

Result<void> LocalServer::check(std::span<const Binding> ranges) {
  return enter([&] { return check_now(ranges); }, EnqueuesNothing());
}

Result<void> LocalServer::sync(std::span<const Binding> ranges) {
  return enter([&] { return ranges.empty() ? sync_all_now() : sync_now(ranges); }, EnqueuesNothing());
}

Result<std::uint64_t> LocalServer::start_profile(std::uint64_t stream, bool at_launch) {
  return enter([&] { return start_profile_now(stream, at_launch); }, EnqueuesNothing());
}

Result<std::chrono::nanoseconds> LocalServer::end_profile(std::uint64_t stream, std::uint64_t window) {
  return enter([&] { return end_profile_now(stream, window); }, EnqueuesNothing());
}

Result<void> LocalServer::abandon_profile(std::uint64_t window) {
  return enter([&] { return abandon_profile_now(window); }, EnqueuesNothing());
}

Result<void> LocalServer::sync_stream(std::uint64_t stream) {
  auto result = enter([&] { return sync_stream_now(stream); }, EnqueuesNothing());
  if (logs(LogArea::Stream, LogLevel::Debug)) tell_wait(*this, &stream);
  return result;
}

Result<void> LocalServer::sync_all() {
  auto result = enter([&] { return sync_all_now(); }, EnqueuesNothing());
  if (logs(LogArea::Stream, LogLevel::Debug)) tell_wait(*this, nullptr);
  return result;
}

Result<void> LocalServer::compile_queued() {
  return enter(
      [&]() -> Result<void> {
        programs_.compile_queued();
        return {};
      },
      EnqueuesNothing());
}

Result<void> LocalServer::flush(std::uint64_t stream) {
  return enter(
      [&] {
        device_->flush(queue_of(stream));
        return device_state();
      },
      EnqueuesNothing());
}

Result<void> LocalServer::call(std::uint64_t stream, HostCall function, const std::source_location& where) {
  return enter([&] { return call_now(stream, std::move(function), where); }, [](const Error&) {});
}

Server::Point LocalServer::record(std::uint64_t stream) {
  if (forked()) return {};
  const Event last = device_->last(queue_of(stream));
  return {last.queue, last.position};
}

Result<void> LocalServer::wait_event(std::uint64_t stream, const Point& point) {
  return enter([&] { return wait_event_now(stream, point); }, [](const Error&) {});
}

bool LocalServer::event_done(const Point& point) { return forked() || device_->done({point.queue, point.position}); }

Result<void> LocalServer::sync_event(const Point& point) {
  return enter([&] { return wait_for(After({point.queue, point.position})); }, EnqueuesNothing());
}

Result<void> LocalServer::when_over(const Point& point, std::move_only_function<void()> then) {
  return enter([&] { return when_over_now(point, std::move(then)); }, EnqueuesNothing());
}

Result<void> LocalServer::read_later(std::uint64_t stream, const Binding& from, void* to, ReadDone done) {
  return enter([&] { return read_later_now(stream, from, to, std::move(done)); }, [](const Error&) {});
}

Result<std::unique_ptr<Server::Written>> LocalServer::written(std::span<const Binding> bytes) {
  return enter([&] { return written_now(bytes); }, EnqueuesNothing());
}

}  // namespace kiln::rt
