#include "src/capture/recording.h"

#include <algorithm>
#include <tuple>

namespace kiln::rt {

void RangeSet::add(std::uint64_t memory, ByteRange range) {
  if (range.empty()) return;
  std::vector<ByteRange>& all = ranges_[memory];
  const auto first = std::lower_bound(all.begin(), all.end(), range.begin, [](const ByteRange& r, std::uint64_t at) { return r.end < at; });
  auto last = first;
  for (; last != all.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  if (first == last) {
    all.insert(first, range);
  } else {
    *first = range;
    all.erase(first + 1, last);
  }
}

void Recording::uncovered(std::span<const MemoryRange> reads, std::vector<MemoryRange>& out) const {
  out.clear();
  for (const MemoryRange& read : reads) {
    if (read.empty()) continue;
    covered_.outside(read.memory, read.range, [&](ByteRange part) {
      out.push_back(read);
      out.back().range = part;
    });
  }
}

void Recording::add(std::span<const std::shared_ptr<const RecordedOp>> ops, std::span<const MemoryRange> reads,
                    std::span<const MemoryRange> writes, std::span<const MemoryRange> covers, std::span<const GraphTouch> touches) {
  for (const MemoryRange& w : writes)
    if (!w.empty()) writes_.push_back(w);
  for (const MemoryRange& read : reads) {
    read_.outside(read.memory, read.range, [&](ByteRange part) {
      reads_.push_back(read);
      reads_.back().range = part;
    });
    read_.add(read.memory, read.range);
  }
  for (const MemoryRange& c : covers) covered_.add(c.memory, c.range);
  for (const GraphTouch& touch : touches) {
    const auto [at, fresh] = touched_.emplace(touch.memory->id, touches_.size());
    if (fresh) touches_.push_back(touch);
    else touches_[at->second].writes = touches_[at->second].writes || touch.writes;
  }
  ops_.insert(ops_.end(), ops.begin(), ops.end());
}

IoSets Recording::sets() const {
  IoSets sets;
  sets.reads = reads_;
  sets.writes = writes_;
  const auto key = [](const MemoryRange& r) { return std::tuple(r.memory, r.range.begin, r.range.end); };
  std::stable_sort(sets.writes.begin(), sets.writes.end(), [&](const MemoryRange& a, const MemoryRange& b) { return key(a) < key(b); });
  sets.writes.erase(std::unique(sets.writes.begin(), sets.writes.end()), sets.writes.end());
  covered_.for_each([&](std::uint64_t memory, ByteRange range) { sets.covers.push_back({memory, range}); });
  return sets;
}

}  // namespace kiln::rt
