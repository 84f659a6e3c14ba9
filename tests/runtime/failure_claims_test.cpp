// The algebra of claims on bytes, by example and against one array entry a byte.
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "src/failure/claims.h"

using namespace kiln;
using namespace kiln::rt;

namespace {

using Claims = std::vector<Claim>;

Claims of(const ClaimMap& map, std::uint64_t memory) {
  const auto claims = map.of(memory);
  return {claims.begin(), claims.end()};
}

struct Counts : TagSink {
  std::map<FailureId, int> tagged;
  void tag(FailureId failure, int change) override {
    tagged[failure] += change;
    CHECK(tagged[failure] >= 0);
    if (tagged[failure] == 0) tagged.erase(failure);
  }
};

}  // namespace

TEST_CASE("a written part splits a claim, bytes outside stay claimed") {
  ClaimMap map;
  map.taint({1, {0, 100}}, 7, 1);
  map.release({1, {40, 60}}, kEver);
  CHECK(of(map, 1) == Claims{{7, {0, 40}, 1}, {7, {60, 100}, 1}});
  CHECK(map.find({1, {40, 60}}) == nullptr);
  CHECK(map.find({1, {39, 40}}) != nullptr);
  CHECK(map.find({1, {59, 61}})->range == ByteRange{60, 100});
  CHECK(map.find({2, {0, 100}}) == nullptr);
}

TEST_CASE("ranges of one failure that touch become one") {
  ClaimMap map;
  for (const ByteRange range : {ByteRange{0, 10}, ByteRange{20, 30}, ByteRange{10, 20}}) map.taint({1, range}, 7, 1);
  CHECK(of(map, 1) == Claims{{7, {0, 30}, 1}});
}

TEST_CASE("a newer failure takes the bytes it covers from an older one") {
  ClaimMap map;
  map.taint({1, {0, 100}}, 1, 1);
  map.taint({1, {50, 80}}, 2, 2);
  CHECK(of(map, 1) == Claims{{1, {0, 50}, 1}, {2, {50, 80}, 2}, {1, {80, 100}, 1}});
}

TEST_CASE("a failure that is found late takes bytes from older claims and leaves newer ones") {
  ClaimMap map;
  map.taint({1, {0, 40}}, 1, 1);
  map.taint({1, {50, 60}}, 2, 5);
  map.taint({1, {20, 100}}, 3, 3);
  CHECK(of(map, 1) == Claims{{1, {0, 20}, 1}, {3, {20, 50}, 3}, {2, {50, 60}, 5}, {3, {60, 100}, 3}});
}

TEST_CASE("an operation ends only claims older than itself") {
  ClaimMap map;
  map.taint({1, {0, 50}}, 1, 1);
  map.taint({1, {50, 100}}, 2, 5);
  map.release({1, {25, 75}}, 5);
  CHECK(of(map, 1) == Claims{{1, {0, 25}, 1}, {2, {50, 100}, 5}});
}

TEST_CASE("an allocation is counted once for a failure, however many ranges and however often") {
  ClaimMap map;
  Counts counts;
  map.taint({1, {0, 10}}, 7, 1, &counts);
  map.taint({1, {0, 10}}, 7, 2, &counts);
  map.taint({1, {20, 30}}, 7, 3, &counts);
  CHECK(counts.tagged == std::map<FailureId, int>{{7, 1}});
  map.taint({2, {0, 1}}, 7, 4, &counts);
  CHECK(counts.tagged == std::map<FailureId, int>{{7, 2}});
  map.release({1, {0, 10}}, kEver, &counts);
  CHECK(counts.tagged == std::map<FailureId, int>{{7, 2}});
  map.taint({1, {0, 30}}, 8, 5, &counts);
  CHECK(counts.tagged == std::map<FailureId, int>{{7, 1}, {8, 1}});
  map.clear(1, &counts);
  map.clear(2, &counts);
  CHECK(counts.tagged.empty());
  CHECK(map.empty());
}

TEST_CASE("empty ranges and empty buffers are never claimed") {
  ClaimMap map;
  map.taint({1, {5, 5}}, 7, 1);
  map.taint({1, {9, 5}}, 7, 1);
  map.taint({0, {0, 100}}, 7, 1);
  CHECK(map.empty());
  map.taint({1, {0, 100}}, 7, 1);
  CHECK(map.find({1, {50, 50}}) == nullptr);
  CHECK(map.find({0, {0, 100}}) == nullptr);
}

TEST_CASE("memory that was never allocated is claimed as a whole") {
  ClaimMap map;
  map.taint({1, {0, 4}, false}, 7, 1);
  CHECK(map.find({1, {1000, 1001}, false}) != nullptr);
  CHECK(map.find({1, {7, 7}, false}) != nullptr);
  map.clear(1);
  CHECK(map.empty());
}

TEST_CASE("random claims and releases agree with one entry a byte") {
  constexpr std::uint64_t kBytes = 48;
  struct Byte {
    FailureId failure = 0;
    Stamp stamp = 0;
    bool operator==(const Byte&) const = default;
  };
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    ClaimMap map;
    Counts counts;
    std::array<std::array<Byte, kBytes>, 3> model{};
    bool same = true;
    for (int step = 0; step < 200 && same; ++step) {
      const std::uint64_t memory = below(3);
      std::uint64_t begin = below(kBytes + 1), end = below(kBytes + 1);
      if (begin > end) std::swap(begin, end);
      const MemoryRange where{memory + 1, {begin, end}};
      const Stamp stamp = 1 + below(40);  // any order: findings come late
      const FailureId failure = 1 + below(4);
      const unsigned what = static_cast<unsigned>(below(20));
      if (what < 11) {
        map.taint(where, failure, stamp, &counts);
        for (std::uint64_t b = begin; b < end; ++b)
          if (model[memory][b].failure == 0 || model[memory][b].stamp <= stamp) model[memory][b] = {failure, stamp};
      } else if (what < 19) {
        const Stamp before = below(4) == 0 ? kEver : stamp;
        map.release(where, before, &counts);
        for (std::uint64_t b = begin; b < end; ++b)
          if (model[memory][b].stamp < before) model[memory][b] = {};
      } else {
        map.clear(memory + 1, &counts);
        model[memory] = {};
      }
      std::map<FailureId, int> tagged;
      for (std::uint64_t m = 0; m < 3; ++m) {
        std::array<Byte, kBytes> bytes{};
        std::uint64_t last = 0;
        for (const Claim& claim : map.of(m + 1)) {
          same = same && claim.range.begin >= last && !claim.range.empty();  // ascending, disjoint
          last = claim.range.end;
          for (std::uint64_t b = claim.range.begin; b < claim.range.end; ++b) bytes[b] = {claim.failure, claim.stamp};
        }
        same = same && bytes == model[m];
        std::set<FailureId> present;
        for (const Byte& byte : model[m])
          if (byte.failure) present.insert(byte.failure);
        for (const FailureId f : present) ++tagged[f];
        const Claim* found = map.find({m + 1, {begin, end}}, stamp);
        std::uint64_t first = begin;
        while (first < end && (model[m][first].failure == 0 || model[m][first].stamp >= stamp)) ++first;
        same = same && (found == nullptr) == (first >= end);
        if (found && first < end) same = same && found->failure == model[m][first].failure;
      }
      same = same && counts.tagged == tagged;
      CHECK(same);
    }
  }
}
