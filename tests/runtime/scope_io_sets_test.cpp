#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "src/failure/io_sets.h"

using namespace kiln;
using namespace kiln::rt;

namespace {

using ir::Access;
using ir::Visibility;
using Positions = std::vector<std::size_t>;

constexpr auto RO = Visibility::ReadOnly, WO = Visibility::WriteOnly, RW = Visibility::ReadWrite, Dead = Visibility::Dead;
constexpr std::optional<Access> none;

struct Use {
  std::optional<Access> declared;
  bool strided = false;
};

std::vector<BufferUse> uses(const std::vector<Use>& list) {
  std::vector<BufferUse> result;
  for (std::size_t i = 0; i < list.size(); ++i) result.push_back({{i + 1, {8, 24}}, list[i].declared, list[i].strided});
  return result;
}
Positions positions(const std::vector<MemoryRange>& ranges) {
  Positions result;
  for (const MemoryRange& range : ranges) {
    CHECK(range.range == ByteRange{8, 24});
    result.push_back(range.memory - 1);
  }
  return result;
}

}  // namespace

TEST_CASE("proven IO wins over declared IO, which wins over everything; C is what Out promises") {
  struct Row {
    const char* what;
    std::vector<Visibility> proven;
    std::vector<Use> declared;
    Positions writes, reads, covers;
  };
  const Use in{Access::In}, out{Access::Out}, inout{Access::InOut}, bare{none};
  const Use strided_out{Access::Out, true}, strided_in{Access::In, true}, strided_inout{Access::InOut, true};
  const Row rows[] = {
      // the table of the reference
      {"all proven, none declared", {RO, WO, RW, Dead}, {bare, bare, bare, bare}, {1, 2}, {0, 2}, {}},
      {"nothing known", {}, {bare, bare}, {0, 1}, {0, 1}, {}},
      {"one proven dead, the other unknown", {Dead}, {bare, bare}, {1}, {1}, {}},
      {"declared only", {}, {in, in, out}, {2}, {0, 1}, {2}},
      {"proven for the first, declared for the rest", {RW}, {in, in, out}, {0, 2}, {0, 1}, {2}},
      {"the second declared only", {}, {bare, in}, {0}, {0, 1}, {}},
      // where proven and declared differ
      {"a declared Out that is proven dead is in no set", {RO, Dead}, {in, out}, {}, {0}, {}},
      {"a declared Out that is proven read only is not written", {RO}, {out}, {}, {0}, {}},
      {"a declared Out that is proven read and written is in all", {RW}, {out}, {0}, {0}, {0}},
      {"a declared InOut that is proven write only need not be trustworthy, and promises nothing", {WO}, {inout}, {0}, {}, {}},
      {"a declared InOut that is proven read only is not written", {RO}, {inout}, {}, {0}, {}},
      {"a declared In that is proven dead is not looked at", {Dead, WO}, {in, out}, {1}, {}, {1}},
      {"an undeclared one that is proven write only promises nothing", {WO}, {bare}, {0}, {}, {}},
      // Out without strides only
      {"a strided Out is written but not covered", {}, {strided_out}, {0}, {}, {}},
      {"a strided Out that is proven written is not covered", {WO, WO}, {strided_out, out}, {0, 1}, {}, {1}},
      {"strides change nothing else", {}, {strided_in, strided_inout}, {1}, {0, 1}, {}},
      // more proven than there are buffers
      {"proven for more buffers than there are", {WO, RO, RW}, {out}, {0}, {}, {0}},
      {"no buffers", {RW}, {}, {}, {}, {}},
  };
  IoSets sets;
  for (const Row& row : rows) {
    CAPTURE(row.what);
    io_sets(uses(row.declared), row.proven, sets);
    CHECK(positions(sets.writes) == row.writes);
    CHECK(positions(sets.reads) == row.reads);
    CHECK(positions(sets.covers) == row.covers);
  }
}

TEST_CASE("empty buffers are in no set") {
  const BufferUse buffers[] = {{{}, none}, {{5, {4, 4}}, Access::Out}, {{6, {0, 4}}, Access::Out}};
  IoSets sets;
  io_sets(buffers, {}, sets);
  CHECK(sets.reads.empty());
  CHECK(sets.writes == std::vector<MemoryRange>{{6, {0, 4}}});
  CHECK(sets.covers == sets.writes);
}
