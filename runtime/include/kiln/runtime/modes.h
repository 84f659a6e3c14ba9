// What becomes of launches: they run, or they only have their kernels compiled. For a pass that compiles and tunes what a workload reaches
// without running it. Buffers are left as they were by a launch that is dropped, so what is read back then means nothing: such a pass fits
// work that depends on shapes, not on computed values. Copies and writes are no launches and go on as ever.
#pragma once
#include <cstdint>
#include <optional>

#include "kiln/runtime/client.h"
#include "kiln/runtime/statistics.h"

namespace kiln {

// Of the whole process, on every device.
enum class ProcessMode : std::uint8_t {
  Execute,             // launches run
  CompileOnly,         // launches only queue their kernels
  CompileAndAutotune,  // launches compile their kernels and are dropped; tunes measure
};
// Of one stream of one device. Unless it is overridden: Execute under ProcessMode::Execute, else Discard.
enum class StreamMode : std::uint8_t { Execute, Discard };
// What a launch does, resolved where it is issued.
enum class LaunchMode : std::uint8_t {
  Execute,  // runs
  Compile,  // obtains its kernel now; does not run
  Queue,    // puts its kernel into the compile queue of the device; does not run
};
const char* name(ProcessMode mode);
const char* name(StreamMode mode);
const char* name(LaunchMode mode);

//                      on a stream of Execute    on a stream of Discard
//  Execute             Execute                   Queue
//  CompileOnly         Execute                   Queue
//  CompileAndAutotune  Execute                   Compile
LaunchMode launch_mode(ProcessMode process, StreamMode stream);
constexpr bool drops_launch(LaunchMode mode) { return mode != LaunchMode::Execute; }
// A dropped launch is checked like any other and returns what is wrong with it, but claims nothing, whatever is wrong. With Compile it
// returns an error of the compiler, too; with Queue that is kept and given by the kernel's own next launch.

// What holds now. Thread-safe.
ProcessMode process_mode();
StreamMode stream_mode(const Stream& stream);
LaunchMode launch_mode(const Stream& stream);

// The mode of the process while one lives. Overrides of one mode with one collector (or without) nest, in any order and thread, and the
// last one that goes ends it. Threads that launch see it from then on; a launch under way keeps its mode.
class ProcessModeOverride {
 public:
  // What is triggered is counted into the collector; no collector: it is not counted, or to the collector of an override that is open.
  // Errors (rule ModeConflict; nothing changed): an override of another mode is open, or one with another collector or none.
  static Result<ProcessModeOverride> open(ProcessMode mode, std::optional<StatisticsCollector> collector = {});
  ProcessModeOverride(ProcessModeOverride&& other) noexcept : open_(other.open_) { other.open_ = false; }
  ProcessModeOverride& operator=(ProcessModeOverride&& other) noexcept;
  ~ProcessModeOverride() { close(); }
  // As going away: the last override of the process, of streams too, compiles what is queued on every device, so it may take as long as
  // that. Failures are kept for the kernels' own next launches.
  void close() noexcept;

 private:
  ProcessModeOverride() = default;
  bool open_ = true;
};

// The mode of a stream while one lives. The newest one holds; they may go in any order. A measurement sets Execute on its stream.
class StreamModeOverride {
 public:
  StreamModeOverride(const Stream& stream, StreamMode mode);  // throws std::bad_alloc
  StreamModeOverride(StreamModeOverride&& other) noexcept;
  StreamModeOverride& operator=(StreamModeOverride&& other) noexcept;
  ~StreamModeOverride() { close(); }
  void close() noexcept;  // as ProcessModeOverride::close()

 private:
  std::optional<Stream> stream_;  // none: closed
  std::uint64_t number_ = 0;
};

// Compiles the kernels that are queued on the device, all at a time, on as many threads as the setting compilation.parallelism says. Done
// at once where none is. What does not compile is reported once, by the kernel's own next launch, and compiled anew by the one after that.
// Errors: no memory of the host (what was not begun stays queued).
Result<void> compile_queued(const Client& client);

}  // namespace kiln
