// What a key tells apart, and what it says of the difference.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <functional>
#include <set>

#include "environment/made_up.h"
#include "kiln/ir/text.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Change {
  const char* what;
  std::function<void(rt::ProgramKey&)> make;
  const char* said;
};
const std::vector<Change>& changes() {
  static const std::vector<Change> all{
      {"another architecture", [](auto& k) { k.options.arch = "x86-64-v4"; }, "arch x86-64-v4 against x86-64-v3"},
      {"another target", [](auto& k) { k.options.target = TargetKind::Ptx; }, "target PTX against host"},
      {"another bound of the PTX version", [](auto& k) { k.options.ptx_version = 78; }, "PTX version at most 78 against any"},
      {"another block", [](auto& k) { k.options.block = {32, 2, 1}; }, "block 32,2,1 against 32,1,1"},
      {"whole warps", [](auto& k) { k.options.block_multiple_of_32 = true; }, "block a multiple of 32 yes against no"},
      {"aligned arguments", [](auto& k) { k.options.aligned16 = true; }, "arguments aligned to 16 bytes yes against no"},
      {"no lines", [](auto& k) { k.options.line_info = false; }, "lines no against yes"},
      {"another build of Kiln", [](auto& k) { k.build_id[0] ^= 1; }, "built by another Kiln"},
      {"another LLVM", [](auto& k) { k.llvm_version = "1.2.3"; }, "LLVM 1.2.3 against "},
      {"another interface", [](auto& k) { k.interface_version += 1; }, "interface version "},
      {"another text", [](auto& k) { k.kernel_text.insert(k.kernel_text.find("  body"), "  shared s : f32[4]\n"); },
       "the kernel's text from line 2 on: `shared s : f32[4]` against `body {`"},
  };
  return all;
}

// A kernel as it is prepared for a compiler, from a text with `with` in its head.
std::string prepared_text(const std::string& with) {
  return ir::print(ir::prepare(ir::parse_kernel("kir 1\nkernel \"k\" {\n" + with + R"(
  buffer y : f32[*] inout
  body {
    %i = global_id.x
    %n = size y
    %in = lt %i, %n
    if %in {
      %v = load y[%i]
      %p = mul %v, %v
      %s = add %p, %v
      store y[%i], %s
    }
  }
}
)"))
                       .kernel);
}

}  // namespace

TEST_CASE("each change of what decides the code is a miss and makes an entry of its own, and undone it is a hit again") {
  const TempFolder folder;
  Opened env(folder.path());
  const rt::ProgramKey base = made_up_key();
  REQUIRE(env.store(base, "base"));
  for (const Change& change : changes()) {
    CAPTURE(change.what);
    rt::ProgramKey key = base;
    change.make(key);
    CHECK(env.find(key) == "");
    CHECK(env.store(key, change.what));
    CHECK(env.find(key) == change.what);
    CHECK(env.find(base) == "base");
  }
  Opened later(folder.path());
  for (const Change& change : changes()) {
    rt::ProgramKey key = base;
    change.make(key);
    CHECK(later.find(key) == change.what);
  }
  CHECK(later.find(base) == "base");
  CHECK(env.warnings.empty());
}

TEST_CASE("what the author of a kernel chooses is in its text: contraction, fast math, checks, block, bounds of a launch") {
  std::set<std::string> texts;
  for (const char* with : {"", "options contraction=false", "options fast_math=true", "options checked=false", "block_size 64, 1, 1",
                           "max_threads 256", "max_threads 128"}) {
    CAPTURE(with);
    CHECK(texts.insert(prepared_text(with)).second);
    CHECK(prepared_text(with) == prepared_text(with));
  }
}

TEST_CASE("the times of files have no effect") {
  const TempFolder folder;
  { CHECK(Opened(folder.path()).store(made_up_key(), "code")); }
  for (const std::time_t seconds : {946684800l, 3786912000l}) {  // 2000, 2090
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    REQUIRE(utimensat(AT_FDCWD, file_in(folder).c_str(), times, 0) == 0);
    Opened env(folder.path());
    CHECK(env.find(made_up_key()) == "code");
    CHECK(env.find(made_up_key("other")) == "");
  }
}

TEST_CASE("what differs between two keys is said in words") {
  const rt::ProgramKey base = made_up_key();
  CHECK(rt::differences(base, base).empty());
  std::size_t all = 0;
  rt::ProgramKey everything = base;
  for (const Change& change : changes()) {
    rt::ProgramKey key = base;
    change.make(key);
    const auto said = rt::differences(key, base);
    CAPTURE(change.said);
    REQUIRE(said.size() == 1);
    CHECK(said[0].starts_with(change.said));
    change.make(everything);
    ++all;
  }
  CHECK(rt::differences(everything, base).size() == all);
  rt::ProgramKey row = base, any = base;
  row.options.block = {0, 1, 1};
  any.options.block = {0, 0, 0};
  CHECK(rt::differences(row, base) == std::vector<std::string>{"block any row against 32,1,1"});
  CHECK(rt::differences(base, any) == std::vector<std::string>{"block 32,1,1 against any shape"});
  rt::ProgramKey longer = base;
  longer.kernel_text += "more";
  CHECK(rt::differences(longer, base) == std::vector<std::string>{"the kernel's text from line 5 on: `more` against ``"});
}

TEST_CASE("a key is read as it was written, and bytes that are no key are none") {
  for (const Change& change : changes()) {
    rt::ProgramKey key = made_up_key();
    change.make(key);
    const std::string bytes = rt::serialise(key);
    const auto read = rt::read_program_key(bytes);
    REQUIRE(read.has_value());
    CHECK(rt::serialise(*read) == bytes);
    CHECK(rt::differences(*read, key).empty());
  }
  const std::string bytes = rt::serialise(made_up_key());
  for (std::size_t n = 0; n < bytes.size(); ++n) CHECK_FALSE(rt::read_program_key(bytes.substr(0, n)).has_value());
  CHECK_FALSE(rt::read_program_key(bytes + "x").has_value());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 0x80);
    if (const auto read = rt::read_program_key(other)) CHECK(rt::serialise(*read) == other);  // another key, never the same one
  }
}
