// Beside other CUDA code: what the driver is, modules that Kiln did not compile, and streams and memory of somebody else's. No names of
// the toolkit: a CUstream is a void*, a CUdeviceptr a 64-bit number. On a client of another device everything here is an error.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/runtime/buffer.h"
#include "kiln/runtime/client.h"

namespace kiln::cuda {

// How the driver was found. Never fails; the first call opens the driver.
struct DriverReport {
  bool ok = false;
  std::string state;     // "ok", "no library", "stub", "symbol missing", "too old", "init failed", "no device"
  std::string file;      // what was opened, or all that was tried
  std::string sentence;  // what is the matter and what to do
  int version = 0;       // 12040 for CUDA 12.4; 0: unknown
  int devices = 0;
};
DriverReport driver_report();

// One argument of an entry, in the order of its .param list.
class Param {
 public:
  // The buffer's address, a 64-bit parameter. What the entry does with it is the caller's word, and failures live on the bytes accordingly.
  template <class T, unsigned R>
  static Param in(const Buffer<T, R>& buffer) {
    return Param(buffer.binding(), ir::Access::In);
  }
  template <class T, unsigned R>
  static Param out(const Buffer<T, R>& buffer) {
    return Param(buffer.binding(), ir::Access::Out);
  }
  template <class T, unsigned R>
  static Param inout(const Buffer<T, R>& buffer) {
    return Param(buffer.binding(), ir::Access::InOut);
  }
  // A number or a struct by value, with the host's layout.
  template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>)
  static Param value(const T& v) {
    Param p;
    p.bytes_.resize(sizeof(T));
    std::memcpy(p.bytes_.data(), &v, sizeof(T));
    return p;
  }

  bool is_buffer() const { return is_buffer_; }
  const Binding& binding() const { return binding_; }
  ir::Access access() const { return access_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  Param() = default;
  Param(Binding binding, ir::Access access) : is_buffer_(true), binding_(std::move(binding)), access_(access) {}
  bool is_buffer_ = false;
  Binding binding_;
  ir::Access access_ = ir::Access::InOut;
  std::vector<std::byte> bytes_;
};

// A loaded module. Cheap to copy, thread-safe; unloaded when the last copy and the last launch of it are gone.
class LoadedModule {
 public:
  // Moving copies: a module that was moved from is still one.
  LoadedModule(const LoadedModule&) = default;
  LoadedModule& operator=(const LoadedModule&) = default;
  // PTX text or a cubin. Errors: what it needs and what the device and its driver offer (TargetMismatch), else the driver's answer with the
  // log of its compiler. `name` stands for it in errors.
  static Result<LoadedModule> from_memory(const Client& client, const std::string& image, const std::string& name = "the module");
  static Result<LoadedModule> from_file(const Client& client, const std::string& path);

  // Number and sizes of the arguments are checked against the entry's parameters (ArgumentCount, ArgumentSize), the configuration against
  // the device and the function. Otherwise as any launch: skipped when an input is claimed, and its failure lies on what it was to write.
  Result<void> launch(const Stream& stream, const std::string& entry, const LaunchConfig& config, std::span<const Param> params) const;

 private:
  struct State;
  explicit LoadedModule(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// Work of Kiln on a CUstream of somebody else's, in its order. The stream belongs to the primary context of the client's device and must
// outlive the adoption; null is its default stream. A few at a time (TooManyAdoptedStreams).
Result<Stream> adopt_stream(const Client& client, void* stream);
// Waits for its work; the Stream must not be used any more. NotAdopted: it was released before, or never adopted.
Result<void> release_stream(const Stream& adopted);

// Device memory of somebody else's, as the memory of a buffer (Buffer::over). `owner` is kept until Kiln's last task on it is over. The
// same range adopted twice is the same memory; one that overlaps another is refused, so that aliasing stays visible. Adopting it anew, when
// it was dropped, waits for the work that it was given before.
Result<Memory> adopt_memory(const Client& client, std::uint64_t address, std::uint64_t bytes, std::shared_ptr<const void> owner = {});
// Where a buffer's first byte lies on the device, for other CUDA code. 0: an empty buffer.
std::uint64_t device_address(const Binding& binding);

}  // namespace kiln::cuda
