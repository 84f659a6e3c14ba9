// Finds accesses of different threads to the same bytes that nothing orders. Ordered are: what barriers separate, what the warp's *.sync
// instructions separate for the lanes they name, and (roughly: nothing is reported then) what both threads separate by fences. Never
// reports a program in which everything is ordered; misses some races, since it remembers one writer and two readers for each piece.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace kiln::simcuda::ptx {

struct Op;

enum class Touch : std::uint8_t { Read, Write, Atomic };

struct Race {
  std::uint32_t other_thread = 0;
  const Op* other = nullptr;
  Touch other_touch = Touch::Read;
};

// Who knows whose past within a block: a vector clock between warps and one between the lanes of each warp.
class BlockClock {
 public:
  void reset(std::uint32_t threads);
  void barrier(const std::vector<std::uint32_t>& participants);  // lanes of each warp
  void warp_sync(std::uint32_t warp, std::uint32_t lanes);
  void fence(std::uint32_t thread) { fences_[thread] = ++fence_count_; }
  // Whether what `other` did at its time `when` (and after `fences` fences in all) happened before what `thread` does now.
  bool ordered(std::uint32_t thread, std::uint32_t other, std::uint32_t when, std::uint32_t fences) const;
  std::uint32_t now(std::uint32_t thread) const { return time_[thread / 32]; }
  std::uint32_t fences() const { return fence_count_; }

 private:
  std::uint32_t warps_ = 0;
  std::vector<std::uint32_t> time_;     // of each warp: counts its synchronisations
  std::vector<std::uint32_t> between_;  // [warp][other warp]: what it knows
  std::vector<std::uint32_t> inside_;   // [warp][lane][lane]
  std::vector<std::uint32_t> fences_;   // of each thread: the number of its last fence
  std::uint32_t fence_count_ = 0;
};

class SharedRaces {
 public:
  void reset(std::uint32_t threads, std::uint64_t bytes, unsigned granule);
  BlockClock& clock() { return clock_; }
  std::optional<Race> access(std::uint32_t thread, std::uint64_t offset, unsigned size, Touch touch, const Op* op);

 private:
  struct Past {
    const Op* op = nullptr;
    std::uint32_t time = 0, fences = 0;
    std::uint16_t thread = 0;
    Touch touch = Touch::Read;
  };
  struct Piece {
    std::uint32_t generation = 0;
    Past write, read, other_read;
  };
  bool conflicts(const Past& p, std::uint32_t thread, Touch touch) const;
  BlockClock clock_;
  unsigned granule_ = 4;
  std::uint32_t generation_ = 0;
  std::vector<Piece> pieces_;
};

// Between the threads of a launch on global memory. Threads of different blocks are ordered by nothing but fences.
class GlobalRaces {
 public:
  explicit GlobalRaces(unsigned granule) : granule_(granule) {}
  struct Who {
    std::uint64_t block = 0;
    std::uint32_t thread = 0;
  };
  struct Found {
    Who other;
    const Op* op = nullptr;
    Touch touch = Touch::Read;
  };
  std::optional<Found> access(const BlockClock& clock, Who who, std::uint64_t address, unsigned size, Touch touch, const Op* op,
                              bool fences);

 private:
  struct Past {
    const Op* op = nullptr;
    Who who;
    std::uint32_t time = 0, fences = 0;
    Touch touch = Touch::Read;
  };
  struct Piece {
    Past write, read, other_read;
  };
  static constexpr std::size_t kShards = 64;
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, Piece> pieces;
  };
  unsigned granule_;
  std::unique_ptr<Shard[]> shards_ = std::make_unique<Shard[]>(kShards);
};

}  // namespace kiln::simcuda::ptx
