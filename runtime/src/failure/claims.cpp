#include "claims.h"

#include <algorithm>

namespace kiln::rt {

namespace {

bool overlap(const ByteRange& a, const ByteRange& b) { return a.begin < b.end && b.begin < a.end; }

// The parts of `claim` outside `hole`.
void add_outside(std::vector<Claim>& to, const Claim& claim, const ByteRange& hole) {
  if (claim.range.begin < hole.begin)
    to.push_back({claim.failure, {claim.range.begin, std::min(claim.range.end, hole.begin)}, claim.stamp});
  if (claim.range.end > hole.end) to.push_back({claim.failure, {std::max(claim.range.begin, hole.end), claim.range.end}, claim.stamp});
}

// Ascending, and neighbours that say the same as one. Claims of different stamps stay apart: their age decides what may end them.
void normalise(std::vector<Claim>& claims) {
  std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) { return a.range.begin < b.range.begin; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < claims.size(); ++i) {
    Claim& last = claims[kept];
    if (last.range.end == claims[i].range.begin && last.failure == claims[i].failure && last.stamp == claims[i].stamp)
      last.range.end = claims[i].range.end;
    else claims[++kept] = claims[i];
  }
  if (!claims.empty()) claims.resize(kept + 1);
}

bool carries(const std::vector<Claim>& claims, FailureId failure) {
  return std::any_of(claims.begin(), claims.end(), [&](const Claim& c) { return c.failure == failure; });
}

// Reports every failure of `from` that `in` does not have, once.
void report_missing(const std::vector<Claim>& from, const std::vector<Claim>& in, int change, TagSink& sink) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const FailureId failure = from[i].failure;
    const bool seen =
        std::any_of(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(i), [&](const Claim& c) { return c.failure == failure; });
    if (!seen && !carries(in, failure)) sink.tag(failure, change);
  }
}

}  // namespace

// Makes the new list aside, so that a lack of memory changes nothing.
template <class Change>
void ClaimMap::edit(std::uint64_t memory, TagSink* sink, Change&& change) {
  const auto found = claims_.find(memory);
  static const Claims none;
  const Claims& before = found == claims_.end() ? none : found->second;
  Claims after;
  change(before, after);
  normalise(after);
  Claims old;
  if (found == claims_.end()) {
    if (after.empty()) return;
    claims_.emplace(memory, after);
  } else {
    old = std::move(found->second);
    if (after.empty()) claims_.erase(found);
    else found->second = after;
  }
  if (sink) {
    report_missing(after, old, +1, *sink);
    report_missing(old, after, -1, *sink);
  }
}

void ClaimMap::taint(const MemoryRange& where, FailureId failure, Stamp stamp, TagSink* sink) {
  if (where.empty()) return;
  const ByteRange range = where.bytes();
  edit(where.memory, sink, [&](const Claims& before, Claims& after) {
    std::uint64_t at = range.begin;  // bytes of the range below `at` are dealt with
    for (const Claim& claim : before) {
      if (!overlap(claim.range, range)) {
        after.push_back(claim);
      } else if (claim.stamp <= stamp) {
        add_outside(after, claim, range);
      } else {
        if (at < claim.range.begin) after.push_back({failure, {at, claim.range.begin}, stamp});
        at = std::max(at, claim.range.end);
        after.push_back(claim);
      }
    }
    if (at < range.end) after.push_back({failure, {at, range.end}, stamp});
  });
}

void ClaimMap::release(const MemoryRange& where, Stamp before_stamp, TagSink* sink) {
  if (where.empty() || find(where, before_stamp) == nullptr) return;
  const ByteRange range = where.bytes();
  edit(where.memory, sink, [&](const Claims& before, Claims& after) {
    for (const Claim& claim : before) {
      if (overlap(claim.range, range) && claim.stamp < before_stamp) add_outside(after, claim, range);
      else after.push_back(claim);
    }
  });
}

void ClaimMap::clear(std::uint64_t memory, TagSink* sink) {
  const auto found = claims_.find(memory);
  if (found == claims_.end()) return;
  const Claims old = std::move(found->second);
  claims_.erase(found);
  if (sink) report_missing(old, {}, -1, *sink);
}

const Claim* ClaimMap::find(const MemoryRange& where, Stamp before) const {
  if (where.empty()) return nullptr;
  const ByteRange range = where.bytes();
  const std::span<const Claim> claims = of(where.memory);
  auto it = std::partition_point(claims.begin(), claims.end(), [&](const Claim& c) { return c.range.end <= range.begin; });
  for (; it != claims.end() && it->range.begin < range.end; ++it)
    if (it->stamp < before) return &*it;
  return nullptr;
}

std::span<const Claim> ClaimMap::of(std::uint64_t memory) const {
  const auto found = claims_.find(memory);
  if (found == claims_.end()) return {};
  return found->second;
}

}  // namespace kiln::rt
