// A device that exists only as far as its failures do: every operation goes through a scope and the launch log as a real device's would; a
// launch "runs" at once and shows a late fault only when it is confirmed.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/failure/launch_log.h"
#include "src/failure/scope.h"

namespace kiln::test {

struct FakeBuffer {
  std::uint64_t memory = 0, bytes = 0;
  rt::MemoryRange all() const { return {memory, {0, bytes}}; }
  rt::MemoryRange part(std::uint64_t begin, std::uint64_t end) const { return {memory, {begin, end}}; }
};

inline rt::BufferUse in(const rt::MemoryRange& where) { return {where, ir::Access::In, false}; }
inline rt::BufferUse out(const rt::MemoryRange& where) { return {where, ir::Access::Out, false}; }
inline rt::BufferUse inout(const rt::MemoryRange& where) { return {where, ir::Access::InOut, false}; }
inline rt::BufferUse strided_out(const rt::MemoryRange& where) { return {where, ir::Access::Out, true}; }
inline rt::BufferUse undeclared(const rt::MemoryRange& where) { return {where, std::nullopt, false}; }

// How a launch goes that is not skipped.
enum class Fate { Good, Fails, Throws, FaultsLate };

class FakeDevice {
 public:
  rt::FailureStore store;
  rt::LaunchLog log{store};

  FakeBuffer allocate(std::uint64_t bytes) {
    const std::uint64_t memory = ++last_memory_;
    data_[memory].assign(bytes, 0);
    return {memory, bytes};
  }

  // A launch by the sets that io_sets() finds. Its body writes `value` to all of W. A failing one carries an error with the text "`name`
  // failed".
  rt::OutcomeKind launch(const std::string& name, std::vector<rt::BufferUse> uses, Fate fate = Fate::Good, std::uint8_t value = 7,
                         std::vector<ir::Visibility> proven = {}) {
    rt::IoSets sets;
    rt::io_sets(uses, proven, sets);
    return enqueue(rt::LogKind::Launch, name, sets, fate, [&] {
      for (const rt::MemoryRange& w : sets.writes) fill(w, value);
    });
  }

  rt::OutcomeKind copy(const rt::MemoryRange& from, const rt::MemoryRange& to) {
    rt::IoSets sets{{from}, {to}, {to}};
    return enqueue(rt::LogKind::Copy, "copy", sets, Fate::Good, [&] {
      for (std::uint64_t i = 0; i < to.range.end - to.range.begin; ++i)
        data_[to.memory][to.range.begin + i] = data_[from.memory][from.range.begin + i];
    });
  }

  rt::OutcomeKind write(const rt::MemoryRange& to, std::uint8_t value, Fate fate = Fate::Good) {
    rt::IoSets sets{{}, {to}, {to}};
    return enqueue(rt::LogKind::HostWrite, "write", sets, fate, [&] { fill(to, value); });
  }

  // Confirms everything, refuses claimed bytes, copies.
  Result<std::vector<std::uint8_t>> read(const rt::MemoryRange& from) {
    confirm();
    if (const Result<void> written = store.ensure_written({&from, 1}); !written) return Error(written.error());
    const std::vector<std::uint8_t>& bytes = data_[from.memory];
    return std::vector<std::uint8_t>(bytes.begin() + static_cast<std::ptrdiff_t>(from.range.begin),
                                     bytes.begin() + static_cast<std::ptrdiff_t>(from.range.end));
  }

  // Claims only: no confirming, no copying.
  Result<void> check(std::initializer_list<rt::MemoryRange> ranges) const {
    return store.ensure_written(std::vector<rt::MemoryRange>(ranges));
  }

  std::size_t confirm() {
    return confirm_if([](const rt::LogView&) { return true; });
  }

  // Confirms the entries for which complete(view) holds.
  template <class Complete>
  std::size_t confirm_if(Complete&& complete) {
    return log.confirm([&](const rt::LogView& view) -> rt::Verdict {
      if (!complete(view)) return rt::Verdict::pending();
      const auto fault = faults_.find(view.slot);
      if (fault == faults_.end()) return rt::Verdict::clean();
      Error error = fault->second;
      faults_.erase(fault);
      return rt::Verdict::faulted(std::move(error));
    });
  }

  void free(const FakeBuffer& buffer) {
    data_.erase(buffer.memory);
    log.freed(buffer.memory);
  }

  static Error failure_of(const std::string& name, ErrorCode code = ErrorCode::LaunchUnknown) {
    Error::Data data;
    data.code = code;
    data.message = "`" + name + "` failed";
    data.kernel = name;
    return Error(std::move(data));
  }

 private:
  template <class Body>
  rt::OutcomeKind enqueue(rt::LogKind kind, const std::string& name, const rt::IoSets& sets, Fate fate, Body&& body) {
    rt::ExecuteScope scope = rt::ExecuteScope::launching(store, name, sets);
    std::uint32_t slot = rt::kNoSlot;
    const rt::Outcome<void> outcome = scope.execute([&]() -> Result<void> {
      if (fate == Fate::Throws) throw std::runtime_error("the body threw");
      if (fate == Fate::Fails) return failure_of(name);
      body();
      if (fate == Fate::FaultsLate) {
        slot = next_slot_++;
        faults_.emplace(slot, failure_of(name, ErrorCode::Bounds));
      }
      return {};
    });
    if (outcome.kind == rt::OutcomeKind::Executed)
      log.append({.kind = kind,
                  .name = std::make_shared<const std::string>(name),
                  .stamp = scope.stamp(),
                  .reads = sets.reads,
                  .writes = sets.writes,
                  .covers = sets.covers,
                  .stream = 0,
                  .position = 0,
                  .slot = slot});
    return outcome.kind;
  }

  void fill(const rt::MemoryRange& where, std::uint8_t value) {
    for (std::uint64_t i = where.range.begin; i < where.range.end; ++i) data_[where.memory][i] = value;
  }

  std::uint64_t last_memory_ = 0;
  std::uint32_t next_slot_ = 0;
  std::map<std::uint64_t, std::vector<std::uint8_t>> data_;
  std::map<std::uint32_t, Error> faults_;
};

// The root of everything that a read reports, "" for a success.
inline std::string text_of(const Result<void>& result) { return result ? std::string() : result.error().text(); }
template <class T>
std::string text_of(const Result<T>& result) {
  return result ? std::string() : result.error().text();
}
inline std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

}  // namespace kiln::test
