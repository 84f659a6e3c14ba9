// Server: the device behind a client. One per device and process; tests make their own.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <source_location>
#include <span>
#include <string>

#include "kiln/runtime/client.h"
#include "kiln/runtime/compiler.h"

namespace kiln {

namespace rt {
class Captures;
struct PreparedState;
}  // namespace rt

// Thread-safe. Every operation is what kiln/runtime/client.h says of the function of that name; `stream` is a stream's id.
class Server : public std::enable_shared_from_this<Server> {
 public:
  virtual ~Server() = default;
  virtual const DeviceProperties& properties() const = 0;
  virtual std::string label() const = 0;            // "NVIDIA H200 (cuda:1)", for errors
  std::uint64_t number() const { return number_; }  // among the servers of this process, from 1 on; never used again

  virtual Result<Memory> allocate(std::uint64_t bytes) = 0;
  virtual Result<void> write(std::uint64_t stream, const Binding& to, const void* from) = 0;
  virtual Result<void> fill_zero(std::uint64_t stream, const Binding& to) = 0;
  virtual Result<void> copy(std::uint64_t stream, const Binding& to, const Binding& from) = 0;
  virtual Result<void> read(std::uint64_t stream, const Binding& from, void* to) = 0;
  virtual Result<void> check(std::span<const Binding> ranges) = 0;
  virtual Result<void> sync(std::span<const Binding> ranges) = 0;
  virtual Result<void> launch(std::uint64_t stream, const LaunchRequest& request) = 0;
  // Of kiln/runtime/prepared.h. Checks what state.request says and fills state.checked; on an error that is as it was.
  virtual Result<void> prepare(rt::PreparedState& state, const Error* unfit) = 0;
  virtual Result<void> launch_prepared(std::uint64_t stream, const rt::PreparedState& state) = 0;
  // Of kiln/runtime/profile.h, by the number of a window's token.
  virtual Result<std::uint64_t> start_profile(std::uint64_t stream, bool at_launch) = 0;
  virtual Result<std::chrono::nanoseconds> end_profile(std::uint64_t stream, std::uint64_t window) = 0;
  virtual Result<void> abandon_profile(std::uint64_t window) = 0;
  virtual Result<void> sync_stream(std::uint64_t stream) = 0;
  virtual Result<void> sync_all() = 0;
  virtual Result<void> compile_queued() = 0;
  virtual Result<void> flush(std::uint64_t stream) = 0;
  // Called with null when the stream has come to it, else with what the device was lost by. It must not throw; whatever it does is done by
  // one thread of the runtime.
  using HostCall = std::move_only_function<void(const Error* lost)>;
  virtual Result<void> call(std::uint64_t stream, HostCall function, const std::source_location& where) = 0;
  // A point in a stream, as kiln::Event has it.
  struct Point {
    std::uint32_t queue = 0;
    std::uint64_t position = 0;  // 0: everything is over
  };
  virtual Point record(std::uint64_t stream) = 0;
  virtual Result<void> wait_event(std::uint64_t stream, const Point& point) = 0;
  virtual bool event_done(const Point& point) = 0;
  virtual Result<void> sync_event(const Point& point) = 0;
  // Runs `then` on a thread of the runtime once the point is over, or the device lost; there it may wait as everywhere.
  virtual Result<void> when_over(const Point& point, std::move_only_function<void()> then) = 0;
  // A read that does not wait: `done` hears of its end like that. `to` must live until then. Errors: nothing was enqueued, `done` is gone.
  using ReadDone = std::move_only_function<void(Result<void>)>;
  virtual Result<void> read_later(std::uint64_t stream, const Binding& from, void* to, ReadDone done) = 0;
  // What became of bytes that were written up to the making of this, whatever is done with them later.
  class Written {
   public:
    virtual ~Written() = default;
    virtual Result<void> verdict() = 0;  // final once what was enqueued before is over. Errors as of a read, and device faults
  };
  virtual Result<std::unique_ptr<Written>> written(std::span<const Binding> bytes) = 0;
  virtual void on_log(LogSink sink) = 0;
  virtual void log_bytes(std::uint64_t bytes) = 0;
  virtual void free(Allocation& allocation) noexcept = 0;  // of the last reference to the memory
  // Bytes of this server's memory count as never written, because of `why`.
  virtual void claim(const Binding& binding, const Error& why) noexcept = 0;
  virtual rt::Captures& captures() = 0;  // kiln/runtime/graph.h

  // Bytes of a memory of this device, or none at all; and what is wrong with `what` where that is not so.
  bool is_usable(const Binding& binding) const;
  // `remedy`: what to do about memory of another device; empty: to copy it here.
  Result<void> usable(const Binding& binding, std::string_view what, std::string_view remedy = {}) const;
  // For operations that need no memory of this device, but a stream or a client of the memory's own.
  static constexpr std::string_view kItsStream = "use a stream of its device", kItsClient = "ask a client of its device",
                                    kAcross = "copy_across() copies between devices";

 protected:
  Server();

 private:
  const std::uint64_t number_;
};

namespace rt {

class Device;

// A lack of host memory on the way of an operation that returns a Result is an error as any other.
template <class F>
auto or_no_memory(F&& operation) -> decltype(operation()) {
  try {
    return operation();
  } catch (const std::bad_alloc&) { return no_host_memory(); }
}

// A server over a device. `compiler` null: the process's code generator, opened when something must be compiled; else it must outlive the
// server.
std::shared_ptr<Server> make_server(std::unique_ptr<Device> device, Compiler* compiler = nullptr);

// A stream id that no other stream of the process has.
std::uint64_t new_stream_id(StreamPriority priority = StreamPriority::Normal);
// The calling thread's default stream, the same on every device; while the thread makes a host call, one of that call's own.
std::uint64_t thread_stream_id();

}  // namespace rt
}  // namespace kiln
