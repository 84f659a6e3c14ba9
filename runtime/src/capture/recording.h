// What a capture recorded: the operations, and what they do with memory as one.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/allocation.h"
#include "src/capture/mapped_blocks.h"
#include "src/device.h"
#include "src/failure/io_sets.h"
#include "src/programs.h"

namespace kiln::rt {

// One operation, the same in each replay but for its fault record and its log.
struct RecordedOp {
  GraphNode node;                                          // without parameters and fault record
  const Program* program = nullptr;                        // of a launch
  std::vector<std::byte> params;                           // of a launch
  std::uint32_t fault_at = ir::kNone, log_at = ir::kNone;  // where in the parameters their addresses go
  MappedBlock bytes;                                       // of an Upload: what node.from points to
};
using RecordedOps = std::vector<std::shared_ptr<const RecordedOp>>;

// Memory that operations use; kept by whoever has this.
struct GraphTouch {
  Memory memory;
  bool writes = false;
};

// Bytes of several allocations.
class RangeSet {
 public:
  void add(std::uint64_t memory, ByteRange range);
  // f(ByteRange) for each part of the range that is not in the set, ascending.
  template <class F>
  void outside(std::uint64_t memory, ByteRange range, F&& f) const {
    const auto found = ranges_.find(memory);
    if (found != ranges_.end()) {
      for (const ByteRange& known : found->second) {
        if (known.end <= range.begin) continue;
        if (known.begin >= range.end) break;
        if (known.begin > range.begin) f(ByteRange{range.begin, known.begin});
        range.begin = known.end;
      }
    }
    if (!range.empty()) f(range);
  }
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [memory, ranges] : ranges_)
      for (const ByteRange& range : ranges) f(memory, range);
  }

 private:
  std::map<std::uint64_t, std::vector<ByteRange>> ranges_;  // ascending, disjoint, not touching
};

// Not synchronised. When an operation could not be added for want of memory the recording is of no use any more, but for its writes.
class Recording {
 public:
  const RecordedOps& ops() const { return ops_; }
  // What of an operation's reads must be trustworthy when the whole begins: what no operation before has overwritten whole. `out` is
  // cleared.
  void uncovered(std::span<const MemoryRange> reads, std::vector<MemoryRange>& out) const;
  // Operations that together read `reads` (as uncovered() left them), write `writes` and overwrite `covers` whole.
  void add(std::span<const std::shared_ptr<const RecordedOp>> ops, std::span<const MemoryRange> reads, std::span<const MemoryRange> writes,
           std::span<const MemoryRange> covers, std::span<const GraphTouch> touches);
  // A launch of this kernel was to be recorded and was dropped by a mode override. What it writes is to be added without operations.
  void lacks(const std::string& kernel) {
    if (lacking_.empty()) lacking_ = kernel;
  }
  const std::string& lacking() const { return lacking_; }  // the first such kernel; empty: none
  // The sets of the whole. W: each range that an operation names once, by allocation and place.
  IoSets sets() const;
  std::span<const MemoryRange> writes() const { return writes_; }  // of each operation
  std::vector<GraphTouch> touches() const { return touches_; }     // each allocation once

 private:
  RecordedOps ops_;
  RangeSet read_, covered_;
  std::vector<MemoryRange> reads_, writes_;
  std::vector<GraphTouch> touches_;
  std::string lacking_;
  std::unordered_map<std::uint64_t, std::size_t> touched_;  // by memory
};

}  // namespace kiln::rt
