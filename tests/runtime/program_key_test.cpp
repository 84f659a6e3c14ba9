#include "src/program_key.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

using namespace kiln;

TEST_CASE("a program's key tells every field of its options and its text apart") {
  const rt::ProgramKey base{.kernel_text = "kernel k", .options = {.arch = "x86-64-v3", .block = {32, 2, 1}}};
  const std::vector<std::function<void(rt::ProgramKey&)>> changes = {
      [](rt::ProgramKey&) {},
      [](rt::ProgramKey& k) { k.kernel_text = "kernel l"; },
      [](rt::ProgramKey& k) { k.kernel_text.clear(); },
      [](rt::ProgramKey& k) { k.options.target = TargetKind::Ptx; },
      [](rt::ProgramKey& k) { k.options.arch = "x86-64-v4"; },
      [](rt::ProgramKey& k) { k.options.ptx_version = 78; },
      [](rt::ProgramKey& k) { k.options.block = {2, 32, 1}; },
      [](rt::ProgramKey& k) { k.options.block = {32, 1, 2}; },
      [](rt::ProgramKey& k) { k.options.block_multiple_of_32 = true; },
      [](rt::ProgramKey& k) { k.options.aligned16 = true; },
      [](rt::ProgramKey& k) { k.options.line_info = false; },
  };
  std::set<std::string> seen;
  for (const auto& change : changes) {
    rt::ProgramKey key = base;
    change(key);
    CHECK(rt::serialise(key) == rt::serialise(key));
    CHECK(seen.insert(rt::serialise(key)).second);
  }
}
