// What a recording as a whole reads, writes and overwrites, against a model of bytes.
#include "src/capture/recording.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/fake_kernels.h"

using namespace kiln;
using namespace kiln::rt;
using namespace kiln::test;

namespace {

MemoryRange mem(std::uint64_t memory, std::uint64_t begin, std::uint64_t end) { return {memory, {begin, end}}; }

void add(Recording& recording, std::vector<MemoryRange> reads, std::vector<MemoryRange> writes, std::vector<MemoryRange> covers) {
  std::vector<MemoryRange> open;
  recording.uncovered(reads, open);
  recording.add({}, open, writes, covers, {});
}

}  // namespace

TEST_CASE("what is overwritten whole before it is read is no input of the recording; what is read before is") {
  Recording r;
  add(r, {}, {mem(1, 0, 100)}, {mem(1, 0, 100)});                // a fill of all
  add(r, {mem(1, 0, 100)}, {mem(2, 0, 50)}, {mem(2, 0, 50)});    // a copy from it to a part of the next
  add(r, {mem(2, 0, 100)}, {mem(3, 0, 8)}, {});                  // that reads beyond the part
  add(r, {mem(3, 0, 8)}, {mem(4, 0, 8)}, {mem(4, 0, 8)});        // that was written, but not whole
  add(r, {mem(2, 60, 70), mem(4, 0, 8)}, {mem(1, 10, 20)}, {});  // known already; and covered
  const IoSets sets = r.sets();
  CHECK(sets.reads == std::vector<MemoryRange>{mem(2, 50, 100), mem(3, 0, 8)});
  CHECK(sets.writes == std::vector<MemoryRange>{mem(1, 0, 100), mem(1, 10, 20), mem(2, 0, 50), mem(3, 0, 8), mem(4, 0, 8)});
  CHECK(sets.covers == std::vector<MemoryRange>{mem(1, 0, 100), mem(2, 0, 50), mem(4, 0, 8)});
}

TEST_CASE("two ranges of one allocation stay two, the same range is there once") {
  Recording r;
  for (int i = 0; i < 3; ++i) {
    add(r, {}, {mem(1, 0, 4)}, {});
    add(r, {}, {mem(1, 4, 8), mem(1, 0, 4)}, {});
  }
  CHECK(r.sets().writes == std::vector<MemoryRange>{mem(1, 0, 4), mem(1, 4, 8)});
}

TEST_CASE("an empty range is nothing") {
  Recording r;
  add(r, {mem(1, 5, 5), mem(0, 0, 0)}, {mem(1, 5, 5)}, {mem(1, 5, 5)});
  const IoSets sets = r.sets();
  CHECK(sets.reads.empty());
  CHECK(sets.writes.empty());
  CHECK(sets.covers.empty());
}

TEST_CASE("an allocation that several operations use is touched once, and written if any of them writes it") {
  const FakeServer s(1);
  const Memory a = Buffer<u32>::zeroed(s.client, 4).value().binding().memory, b = Buffer<u32>::zeroed(s.client, 4).value().binding().memory;
  Recording r;
  const GraphTouch reads[] = {{a, false}, {b, false}}, writes[] = {{b, true}};
  r.add({}, {}, {}, {}, reads);
  r.add({}, {}, {}, {}, writes);
  r.add({}, {}, {}, {}, reads);
  const auto touches = r.touches();
  REQUIRE(touches.size() == 2);
  CHECK((touches[0].memory == a && !touches[0].writes));
  CHECK((touches[1].memory == b && touches[1].writes));
}

TEST_CASE("random recordings have the sets of a model that knows each byte") {
  constexpr std::uint64_t kBytes = 24;
  std::mt19937 random(5);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto range = [&] {
    const std::uint64_t memory = 1 + below(3), begin = below(kBytes + 1);
    return mem(memory, begin, begin + below(kBytes + 1 - begin));
  };
  for (int seed = 0; seed < 300; ++seed) {
    Recording r;
    std::vector<std::string> model(4, std::string(kBytes, '.'));  // r: read first, c: covered first, C: covered after it was read
    std::vector<std::string> written(4, std::string(kBytes, '.'));
    for (std::uint64_t op = below(12); op-- > 0;) {
      std::vector<MemoryRange> reads, writes, covers;
      for (std::uint64_t i = below(3); i-- > 0;) reads.push_back(range());
      for (std::uint64_t i = below(3); i-- > 0;) {
        writes.push_back(range());
        if (below(2) == 0) covers.push_back(writes.back());
      }
      add(r, reads, writes, covers);
      const auto each = [](const std::vector<MemoryRange>& ranges, auto&& f) {
        for (const MemoryRange& m : ranges)
          for (std::uint64_t b = m.range.begin; b < m.range.end; ++b) f(m.memory, b);
      };
      each(reads, [&](auto m, auto b) {
        if (model[m][b] == '.') model[m][b] = 'r';
      });
      each(covers, [&](auto m, auto b) { model[m][b] = model[m][b] == 'r' || model[m][b] == 'C' ? 'C' : 'c'; });
      each(writes, [&](auto m, auto b) { written[m][b] = 'w'; });
    }
    const IoSets sets = r.sets();
    std::vector<std::string> found_reads(4, std::string(kBytes, '.')), found_covers = found_reads, found_writes = found_reads;
    for (const MemoryRange& m : sets.reads)
      for (std::uint64_t b = m.range.begin; b < m.range.end; ++b) {
        CHECK(found_reads[m.memory][b] == '.');  // each byte once
        found_reads[m.memory][b] = 'r';
      }
    for (const MemoryRange& m : sets.covers)
      for (std::uint64_t b = m.range.begin; b < m.range.end; ++b) found_covers[m.memory][b] = 'c';
    for (const MemoryRange& m : sets.writes)
      for (std::uint64_t b = m.range.begin; b < m.range.end; ++b) found_writes[m.memory][b] = 'w';
    for (std::size_t m = 1; m < model.size(); ++m) {
      std::string reads(kBytes, '.'), covers(kBytes, '.');
      for (std::size_t b = 0; b < kBytes; ++b) {
        if (model[m][b] == 'r' || model[m][b] == 'C') reads[b] = 'r';
        if (model[m][b] == 'c' || model[m][b] == 'C') covers[b] = 'c';
      }
      CHECK(found_reads[m] == reads);
      CHECK(found_covers[m] == covers);
      CHECK(found_writes[m] == written[m]);
    }
  }
}
