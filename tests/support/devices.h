// Runs one kernel with the same arguments on every device there is and on the interpreter, and compares bits.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "kiln/ir/kernel.h"
#include "kiln/ir/passes.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/scalar.h"
#include "kiln/runtime/variant.h"

namespace kiln::test {

// One argument in signature order. Output buffers have contents too: what a kernel leaves alone must stay.
struct Arg {
  bool is_buffer = false;
  ir::Type type = ir::Type::Void;
  std::vector<std::uint64_t> extents, strides;  // buffers; strides only where strided
  std::vector<std::uint8_t> bytes;              // buffers: the initial contents
  std::uint64_t bits = 0;                       // scalars
  std::optional<std::size_t> same_as;           // the memory of an earlier argument, instead of bytes
  std::uint64_t byte_offset = 0;                // of the view in its memory
};

template <class T>
Arg buffer(const std::vector<T>& host, std::vector<std::uint64_t> extents = {}) {
  Arg a;
  a.is_buffer = true;
  a.type = ir_type<T>;
  a.extents = extents.empty() ? std::vector<std::uint64_t>{host.size()} : std::move(extents);
  a.bytes.reserve(host.size() * sizeof(T));
  for (const T v : host) {
    std::uint8_t raw[sizeof(T)];
    std::memcpy(raw, &v, sizeof(T));
    a.bytes.insert(a.bytes.end(), raw, raw + sizeof(T));
  }
  return a;
}
// A buffer for results; it starts as bytes of 0xa5.
inline Arg room(ir::Type type, std::vector<std::uint64_t> extents) {
  Arg a;
  a.is_buffer = true;
  a.type = type;
  a.extents = std::move(extents);
  std::uint64_t n = ir::byte_size(type);
  for (const std::uint64_t e : a.extents) n *= e;
  a.bytes.assign(n, 0xa5);
  return a;
}
template <class T>
Arg value(T v) {
  Arg a;
  a.type = ir_type<T>;
  std::memcpy(&a.bits, &v, sizeof v);
  return a;
}

struct DeviceOutcome {
  std::string device;                             // "interpreter", "cpu x86-64-v4", "cuda sim h200", "cuda"
  std::vector<std::vector<std::uint8_t>> memory;  // per argument; empty for scalars and for same_as
  std::optional<BoundsFault> fault;               // an access out of range, found by a checked kernel
  std::optional<Error> error;                     // any other failure: nothing ran, memory is empty
  std::vector<std::string> misuse;                // interpreter: what a correct program never does
};

struct EverywhereOptions {
  ir::PrepareOptions::Mode mode = ir::PrepareOptions::Mode::AsKernel;
  bool all_levels = false;  // the CPU at every level that this processor has, not its own and the lowest only
};

// The interpreter first, then each device. Thread-safe.
std::vector<DeviceOutcome> run_everywhere(const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args,
                                          const EverywhereOptions& options = {});
std::vector<DeviceOutcome> run_everywhere(const ir::Kernel& kernel, const LaunchConfig& config, const std::vector<Arg>& args,
                                          const EverywhereOptions& options = {});
// One of them: "interpreter", or a device as run_everywhere names it.
DeviceOutcome run_on_interpreter(const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args,
                                 const EverywhereOptions& options = {});
std::vector<std::string> device_names(bool all_levels = false);
DeviceOutcome run_on_device(const std::string& device, const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args,
                            const EverywhereOptions& options = {});

// Empty when all agree: the same bytes (two NaNs are the same value), a fault everywhere or nowhere (which one is reported first is open),
// no error, no misuse. Else a sentence for each difference, the first few elements of each buffer named with both values. For
// CHECK(differences(...) == "").
std::string differences(const std::vector<DeviceOutcome>& outcomes, const std::vector<Arg>& args);

// The elements of a buffer argument in an outcome.
template <class T>
std::vector<T> elements(const DeviceOutcome& outcome, std::size_t arg) {
  std::vector<T> out;
  const std::vector<std::uint8_t>& bytes = outcome.memory.at(arg);
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T v;
    std::memcpy(&v, bytes.data() + i, sizeof v);
    out.push_back(v);
  }
  return out;
}

}  // namespace kiln::test
