// Client: the host's handle to one device. Cheap to copy, thread-safe. Stream: an ordered queue of work on that device.
// Memory: reference-counted device memory; a Buffer<T, R> (buffer.h) is a typed view of one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "kiln/ir/kernel.h"
#include "kiln/runtime/error.h"
#include "kiln/runtime/launch_config.h"
#include "kiln/runtime/log.h"
#include "kiln/runtime/variant.h"

namespace kiln {

class Server;  // server.h: the device behind a client

// What a device can do.
struct DeviceProperties {
  std::string name, kind;  // "AMD EPYC ...", "cpu" or "cuda"
  std::string arch;        // "x86-64-v4", "sm_90"
  Dim3 max_grid{0x7fffffffu, 65535u, 65535u}, max_block{1024u, 1024u, 64u};
  std::uint32_t max_threads_per_block = 1024, max_static_shared = 48 * 1024, max_dynamic_shared = 227 * 1024, warp_size = 32;
  std::uint32_t workers = 1;             // threads or multiprocessors
  std::uint32_t compute_capability = 0;  // cuda: 90 for 9.0
  std::uint64_t memory_bytes = 0;
  bool clusters = false, cooperative = true;  // launches with LaunchConfig::cluster, LaunchConfig::cooperative
};

class Stream;
class Event;

// Which of the streams that have work ready a device prefers. A wish: it changes no order and no result.
enum class StreamPriority : std::uint8_t { Low, Normal, High };

class Client {
 public:
  // "cpu", "cuda", "cuda:1". Errors: unknown name (with the list), no such device, no usable driver (with the reason).
  static Result<Client> open(const std::string& device);
  // KILN_DEVICE, else the first usable GPU, else the CPU. Throws kiln::Exception when KILN_DEVICE names nothing usable. Same client each
  // time.
  static Client default_client();

  // Precondition: not null.
  explicit Client(std::shared_ptr<Server> server) : server_(std::move(server)) {}
  // Moving copies: a client that was moved from is still one.
  Client(const Client&) = default;
  Client& operator=(const Client&) = default;
  const DeviceProperties& properties() const;
  Stream stream(StreamPriority priority = StreamPriority::Normal) const;  // a new stream
  Stream default_stream() const;                                          // the calling thread's default stream
  Result<void> sync() const;                                              // every stream; reports device faults only
  // Waits for the work on these buffers (anything with a binding()) and says what their bytes carry, late faults too.
  template <class... B>
  requires(sizeof...(B) > 0)
  Result<void> sync(const B&... buffers) const;
  // The same without waiting: it may miss what is not confirmed.
  template <class... B>
  requires(sizeof...(B) > 0)
  Result<void> check(const B&... buffers) const;
  // Who gets the lines that kernels of this device log from now on, for all clients of the device. Without one each goes to stderr, whole.
  void on_log(LogSink sink) const;
  // How many bytes the log of a launch takes, from the next launch on: KILN_LOG_BYTES at first, else 1 MiB. A record takes 32 bytes and 8
  // for each value of the kernel's longest log; 0 keeps nothing but the count.
  void log_bytes(std::uint64_t bytes) const;
  Server& server() const { return *server_; }
  bool operator==(const Client& o) const { return server_ == o.server_; }

 private:
  std::shared_ptr<Server> server_;
};

class Stream {
 public:
  const Client& client() const { return client_; }
  std::uint64_t id() const { return id_; }
  // Waits for this stream's work, confirms late faults. Reports device faults, never a launch's failure (that lives on the bytes).
  Result<void> sync() const;
  // Sees to it that the device has all of this stream's work, without waiting for it. Reports device faults only.
  Result<void> flush() const;
  // Calls `function` on a thread of the runtime when the work before it is over; the work behind it starts after it returned. It may use
  // clients, but must not wait for work of this stream behind it. What it throws is dropped. Errors: device faults; it is not called then.
  // `where` is for timelines.
  Result<void> call(std::function<void()> function, std::source_location where = std::source_location::current()) const;
  // The point behind the work that the stream has so far, for another stream of the device to wait for. Buffers need none of this: what
  // streams do with one buffer is ordered by the runtime.
  Event record() const;
  Result<void> wait(const Event& event) const;  // work from now on starts after the event. ForeignHandle: of another device
  StreamPriority priority() const;
  bool operator==(const Stream& o) const { return id_ == o.id_ && client_ == o.client_; }
  Stream(Client client, std::uint64_t id) : client_(std::move(client)), id_(id) {}

 private:
  Client client_;
  std::uint64_t id_;
};

// A point in a stream. Cheap to copy; of a default one everything is over.
class Event {
 public:
  Event() = default;
  bool done() const;          // does not wait
  Result<void> sync() const;  // waits; reports device faults only

 private:
  friend class Stream;
  std::shared_ptr<Server> server_;  // null: everything is over
  std::uint32_t queue_ = 0;
  std::uint64_t position_ = 0;
};

struct ByteRange {
  std::uint64_t begin = 0, end = 0;  // [begin, end)
  bool empty() const { return begin >= end; }
  bool operator==(const ByteRange&) const = default;
};

struct Allocation;                           // of the runtime: storage, generation, claims
using Memory = std::shared_ptr<Allocation>;  // dropping the last one frees it in stream order

// A range of one allocation, as copies and launches name it.
struct Binding {
  Memory memory;    // null for an empty buffer
  ByteRange range;  // within the allocation
};

namespace rt {
// Untyped operations under Buffer<T, R>. `bytes` may be 0 (no memory is made). The calling thread's default stream orders them where no
// stream is given.
Result<Memory> allocate(const Client& client, std::uint64_t bytes);             // contents undefined
Result<void> write(const Stream& stream, const Binding& to, const void* from);  // host -> device; `from` may be reused on return
Result<void> fill_zero(const Stream& stream, const Binding& to);
Result<void> copy(const Stream& stream, const Binding& to, const Binding& from);  // device -> device, equal sizes, not overlapping
Result<void> read(const Stream& stream, const Binding& from,
                  void* to);  // confirms, refuses claimed bytes (Unwritten inside Several), copies
Result<void> check(const Client& client, std::span<const Binding> ranges);  // claims only, no waiting
Result<void> sync(const Client& client, std::span<const Binding> ranges);   // waits, confirms, then check
// The bytes count as never written, because of `why`: for an operation that failed before the runtime was asked for it.
void claim(const Binding& binding, const Error& why) noexcept;
Error no_host_memory() noexcept;  // what an operation says that could not get memory for its own bookkeeping
}  // namespace rt

// One argument of a launch, in signature order.
struct LaunchArg {
  bool is_buffer = false;
  Binding binding;                                    // buffers
  std::array<std::uint64_t, ir::kMaxRank> extents{};  // buffers
  std::array<std::uint64_t, ir::kMaxRank> strides{};  // strided buffers, in elements
  ir::Type type = ir::Type::Void;                     // element type of a buffer, type of a scalar
  std::uint8_t rank = 0;                              // buffers
  std::uint64_t bits = 0;                             // scalars: bit pattern
};

struct LaunchRequest {
  const Variant* variant = nullptr;
  LaunchConfig config;
  std::span<const LaunchArg> args;
  ir::PrepareOptions::Mode mode = ir::PrepareOptions::Mode::AsKernel;
  const Binding* dynamic_grid = nullptr;  // three u32 on the device that take the place of config.grid, read when the launch's turn comes
  const Error* unfit = nullptr;           // what the caller found wrong with the arguments: the launch is refused with it
};

template <class... B>
requires(sizeof...(B) > 0)
Result<void> Client::sync(const B&... buffers) const {
  const Binding all[] = {buffers.binding()...};
  return rt::sync(*this, all);
}
template <class... B>
requires(sizeof...(B) > 0)
Result<void> Client::check(const B&... buffers) const {
  const Binding all[] = {buffers.binding()...};
  return rt::check(*this, all);
}

// Enqueues. Returns what is known at enqueue; ignoring it loses nothing, since a failure stays on the bytes it concerns. No allocation
// after the first launch of a program.
Result<void> launch(const Stream& stream, const LaunchRequest& request);

}  // namespace kiln
