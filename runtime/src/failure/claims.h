// Which failure lies on which bytes: the algebra alone, without locks, nodes or texts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kiln/runtime/client.h"

namespace kiln::rt {

using FailureId = std::uint64_t;  // minted from 1 on, never reused; 0: none
using Stamp = std::uint64_t;      // a place in the device's one order of operations; later is larger
inline constexpr Stamp kEver = std::numeric_limits<Stamp>::max();

// A range of one allocation as the bookkeeping names it. An id belongs to one allocation for the life of the process, so it is a generation
// too: memory that is freed and handed out again gets a new one.
struct MemoryRange {
  std::uint64_t memory = 0;  // 0: an empty buffer, never claimed
  ByteRange range;
  // 0: the reservation behind it failed; claims then cover the whole of it, whatever the range. As wide as the room it takes, since a copy
  // that takes all of that would wait for the store of a narrow one.
  std::uint64_t allocated = 1;
  const std::string* parameter = nullptr;  // of the launch, for reports; outlives the launch's place in the log

  // The bytes that claims are compared with.
  ByteRange bytes() const { return allocated != 0 ? range : ByteRange{0, std::numeric_limits<std::uint64_t>::max()}; }
  bool empty() const { return memory == 0 || bytes().empty(); }
  bool operator==(const MemoryRange& o) const { return memory == o.memory && range == o.range && allocated == o.allocated; }
  void become(const MemoryRange& o) {  // by field: in the midst of a launch the compiler's copy may be a loop
    memory = o.memory;
    range.begin = o.range.begin;
    range.end = o.range.end;
    allocated = o.allocated;
    parameter = o.parameter;
  }
};

struct Claim {
  FailureId failure = 0;
  ByteRange range;
  Stamp stamp = 0;  // when the operation that made it was enqueued
  bool operator==(const Claim&) const = default;
};

// Told how the number of allocations that carry a failure changes.
class TagSink {
 public:
  virtual ~TagSink() = default;
  virtual void tag(FailureId failure, int change) = 0;
};

// Claims of all allocations of a device. Every byte carries at most one failure. Not synchronised. Cost: linear in the claims of the
// allocations named; nothing (and no allocation) where there are none.
class ClaimMap {
 public:
  bool empty() const { return claims_.empty(); }
  std::size_t allocations() const { return claims_.size(); }

  // Puts `failure` on the bytes. What an older or equally old operation claimed there loses them; what a newer one claimed keeps them.
  void taint(const MemoryRange& where, FailureId failure, Stamp stamp, TagSink* sink = nullptr);
  // Takes the bytes from every claim older than `before`; bytes outside stay claimed.
  void release(const MemoryRange& where, Stamp before, TagSink* sink = nullptr);
  // Forgets all claims of an allocation.
  void clear(std::uint64_t memory, TagSink* sink = nullptr);

  // The claim older than `before` on the lowest such byte of the range, or null. Valid until the next change.
  const Claim* find(const MemoryRange& where, Stamp before = kEver) const;
  // Claims of one allocation, ascending and disjoint. Valid until the next change.
  std::span<const Claim> of(std::uint64_t memory) const;
  // Calls f(memory, claim) for each.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [memory, claims] : claims_)
      for (const Claim& claim : claims) f(memory, claim);
  }

 private:
  using Claims = std::vector<Claim>;
  template <class Change>
  void edit(std::uint64_t memory, TagSink* sink, Change&& change);

  std::unordered_map<std::uint64_t, Claims> claims_;
};

}  // namespace kiln::rt
