#include "simcuda/ptx_race.h"

#include <algorithm>
#include <bit>

namespace kiln::simcuda::ptx {

void BlockClock::reset(std::uint32_t threads) {
  warps_ = (threads + 31) / 32;
  time_.assign(warps_, 1);
  between_.assign(std::size_t{warps_} * warps_, 0);
  inside_.assign(std::size_t{warps_} * 1024, 0);
  fences_.assign(std::size_t{warps_} * 32, 0);
  fence_count_ = 0;
}

void BlockClock::barrier(const std::vector<std::uint32_t>& participants) {
  // Everyone learns what anyone knows, and each one's present.
  std::vector<std::uint32_t> known(warps_, 0);
  for (std::uint32_t w = 0; w < warps_; ++w) {
    if (participants[w] == 0) continue;
    for (std::uint32_t o = 0; o < warps_; ++o) known[o] = std::max(known[o], between_[std::size_t{w} * warps_ + o]);
    known[w] = std::max(known[w], time_[w]);
  }
  for (std::uint32_t w = 0; w < warps_; ++w) {
    if (participants[w] == 0) continue;
    std::copy(known.begin(), known.end(), between_.begin() + std::size_t{w} * warps_);
    warp_sync(w, participants[w]);
  }
}

void BlockClock::warp_sync(std::uint32_t warp, std::uint32_t lanes) {
  std::uint32_t* inside = inside_.data() + std::size_t{warp} * 1024;
  std::uint32_t known[32] = {};
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const std::uint32_t* row = inside + 32 * static_cast<std::size_t>(std::countr_zero(rest));
    for (unsigned k = 0; k < 32; ++k) known[k] = std::max(known[k], row[k]);
  }
  for (unsigned k = 0; k < 32; ++k)
    if ((lanes >> k & 1) != 0) known[k] = time_[warp];
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    std::copy_n(known, 32, inside + 32 * static_cast<std::size_t>(std::countr_zero(rest)));
  ++time_[warp];
}

bool BlockClock::ordered(std::uint32_t thread, std::uint32_t other, std::uint32_t when, std::uint32_t fences) const {
  if (thread == other) return true;
  const std::uint32_t w = thread / 32, o = other / 32;
  if (w == o) {
    if (inside_[std::size_t{w} * 1024 + std::size_t{thread % 32} * 32 + other % 32] >= when) return true;
  } else if (between_[std::size_t{w} * warps_ + o] >= when) {
    return true;
  }
  return fences_[thread] > fences && fences_[other] > fences;
}

void SharedRaces::reset(std::uint32_t threads, std::uint64_t bytes, unsigned granule) {
  clock_.reset(threads);
  granule_ = granule;
  ++generation_;
  pieces_.resize(static_cast<std::size_t>((bytes + granule - 1) / granule));
}

bool SharedRaces::conflicts(const Past& p, std::uint32_t thread, Touch touch) const {
  if (p.op == nullptr || p.thread == thread) return false;
  if (p.touch == Touch::Atomic && touch == Touch::Atomic) return false;
  if (p.touch == Touch::Read && touch == Touch::Read) return false;
  return !clock_.ordered(thread, p.thread, p.time, p.fences);
}

std::optional<Race> SharedRaces::access(std::uint32_t thread, std::uint64_t offset, unsigned size, Touch touch, const Op* op) {
  const std::size_t first = static_cast<std::size_t>(offset / granule_), last = static_cast<std::size_t>((offset + size - 1) / granule_);
  const Past now{op, clock_.now(thread), clock_.fences(), static_cast<std::uint16_t>(thread), touch};
  for (std::size_t k = first; k <= last; ++k) {
    Piece& piece = pieces_[k];
    if (piece.generation != generation_) {
      piece = Piece{};
      piece.generation = generation_;
    }
    for (const Past* past : {&piece.write, &piece.read, &piece.other_read}) {
      if (past->op == nullptr || past->thread == thread) continue;
      if (conflicts(*past, thread, touch)) return Race{past->thread, past->op, past->touch};
    }
    if (touch == Touch::Read) {
      Past& slot = piece.read.op == nullptr || piece.read.thread == thread ||
                           clock_.ordered(thread, piece.read.thread, piece.read.time, piece.read.fences)
                       ? piece.read
                       : piece.other_read;
      slot = now;
    } else {
      piece.write = now;
      piece.read.op = piece.other_read.op = nullptr;
    }
  }
  return std::nullopt;
}

std::optional<GlobalRaces::Found> GlobalRaces::access(const BlockClock& clock, Who who, std::uint64_t address, unsigned size, Touch touch,
                                                      const Op* op, bool fences) {
  const auto ordered = [&](const Past& p) {
    if (p.who.block == who.block) return clock.ordered(who.thread, p.who.thread, p.time, p.fences);
    return fences;  // between blocks only fences order, and which ones meet is not followed
  };
  const Past now{op, who, clock.now(who.thread), clock.fences(), touch};
  for (std::uint64_t k = address / granule_; k <= (address + size - 1) / granule_; ++k) {
    Shard& shard = shards_[k * 0x9e3779b97f4a7c15ull >> 58];
    const std::lock_guard lock(shard.mutex);
    Piece& piece = shard.pieces[k];
    for (const Past* past : {&piece.write, &piece.read, &piece.other_read}) {
      if (past->op == nullptr || (past->who.block == who.block && past->who.thread == who.thread)) continue;
      if ((past->touch == Touch::Read && touch == Touch::Read) || (past->touch == Touch::Atomic && touch == Touch::Atomic)) continue;
      if (!ordered(*past)) return Found{past->who, past->op, past->touch};
    }
    if (touch == Touch::Read) {
      (piece.read.op == nullptr || ordered(piece.read) ? piece.read : piece.other_read) = now;
    } else {
      piece.write = now;
      piece.read.op = piece.other_read.op = nullptr;
    }
  }
  return std::nullopt;
}

}  // namespace kiln::simcuda::ptx
