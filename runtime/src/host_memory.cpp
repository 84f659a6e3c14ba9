// The server's operations where the host has no memory for their own bookkeeping: an error as any other, and what was to be written is
// claimed.
#include <new>

#include "src/local_server.h"

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

void LocalServer::claim(const Binding& binding, const Error& why) noexcept {
  if (!usable(binding)) return;
  const MemoryRange target = memory_range(binding);
  const std::lock_guard lock(enqueue_);
  ExecuteScope::failed_writing(store_, {&target, 1}, why);
}

Result<void> LocalServer::launch(std::uint64_t stream, const LaunchRequest& request) try {
  return launch_now(stream, request);
} catch (const std::bad_alloc&) {
  const ir::Kernel& kernel = request.variant->recorded();
  for (std::size_t i = 0; i < request.args.size() && i < kernel.params.size(); ++i) {
    const ir::Param& param = kernel.params[i];
    if (param.is_buffer && request.args[i].is_buffer && kernel.mems[param.mem].access != ir::Access::In)
      rt::claim(request.args[i].binding, out_of_memory());
  }
  return no_host_memory();
}

Result<Event> LocalServer::launch_loaded(std::uint64_t stream, const LoadedLaunch& launch) try {
  return launch_loaded_now(stream, launch);
} catch (const std::bad_alloc&) {
  for (const Use& use : launch.uses)
    if (use.access != ir::Access::In) rt::claim(use.binding, out_of_memory());
  return no_host_memory();
}

Result<void> LocalServer::write(std::uint64_t stream, const Binding& to, const void* from) try {
  return write_now(stream, to, from);
} catch (const std::bad_alloc&) {
  claim(to, out_of_memory());
  return no_host_memory();
}

Result<void> LocalServer::fill_zero(std::uint64_t stream, const Binding& to) try {
  return fill_zero_now(stream, to);
} catch (const std::bad_alloc&) {
  claim(to, out_of_memory());
  return no_host_memory();
}

Result<void> LocalServer::copy(std::uint64_t stream, const Binding& to, const Binding& from) try {
  return copy_now(stream, to, from);
} catch (const std::bad_alloc&) {
  claim(to, out_of_memory());
  return no_host_memory();
}

}  // namespace kiln::rt
