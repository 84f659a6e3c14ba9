#include <algorithm>

#include "kiln/ir/verify.h"
#include "pass_fixture.h"

using namespace kiln::ir;
using namespace kiln::ir::test;

namespace {

std::string refusal(const Kernel& k) {
  try {
    prepare(k);
  } catch (const IrError& e) { return e.what(); }
  return "";
}

std::size_t count(const Kernel& k, Opcode code) {
  return static_cast<std::size_t>(std::count_if(k.ops.begin(), k.ops.end(), [&](const Op& op) { return op.code == code; }));
}

constexpr const char* kSaxpyDecls = "file \"saxpy.cpp\"\nbuffer x : f32[*] in\nbuffer y : f32[*] inout\nscalar a : f32\n";
constexpr const char* kSaxpy = R"kir(
  %nx = size x @0:5
  %ny = size y @0:5
  %enough = ge %nx, %ny @0:5
  require %enough, "x.size() >= y.size()" @0:5
  %i = global_id.x @0:6
  %inside = lt %i, %ny @0:7
  if %inside @0:7 {
    %a = param a @0:8
    %x = load x[%i] @0:8
    %ax = mul %a, %x @0:8
    %y = load y[%i] @0:8
    %sum = add %ax, %y @0:8
    store y[%i], %sum @0:8
  })kir";

}  // namespace

TEST_CASE("saxpy is prepared: fused, proven, with its IO and what it asks of the launch") {
  const Prepared p = prepare(kernel_of(kSaxpyDecls, kSaxpy));
  CHECK(verify(p.kernel).empty());
  CHECK(count(p.kernel, Opcode::Fma) == 1);
  CHECK(count(p.kernel, Opcode::Mul) == 0);
  CHECK(count(p.kernel, Opcode::Require) == 1);
  CHECK(p.io == std::vector<Visibility>{Visibility::ReadOnly, Visibility::ReadWrite});
  CHECK(p.sites.empty());
  for (const Op& op : p.kernel.ops) {
    if (is_access(op.code)) CHECK(op.bounds == Bounds::Proven);
  }
  CHECK(p.requirement.min_sm == 75);
  CHECK(p.index_use.global_id32 == std::array<bool, 3>{true, false, false});
  CHECK(p.index_use.extent32[0][0]);
  CHECK(p.index_use.extent32[1][0]);
}

TEST_CASE("preparing what is prepared changes nothing") {
  const Prepared once = prepare(kernel_of(kSaxpyDecls, kSaxpy));
  CHECK(print(prepare(once.kernel).kernel) == print(once.kernel));
}

TEST_CASE("a checked access gets a site that names memory, operation, place and the sign of each index") {
  const Prepared p = prepare(kernel_of("file \"k.cpp\"\nbuffer x : u32[*, *] inout\nshared s : u32[4]\nscalar i : i32\n", R"(
    %i = param i
    %j = global_id.x
    %v = load x[%i, %j] @0:7
    %o = atomic_add s[%j], %v @0:8
    %k = const 3 : u32
    store s[%k], %o @0:9)"));
  REQUIRE(p.sites.size() == 2);
  CHECK(p.sites[0].memory == "x");
  CHECK(p.sites[0].operation == "load");
  CHECK(p.sites[0].place == "k.cpp:7");
  CHECK(p.sites[0].signed_index[0]);
  CHECK_FALSE(p.sites[0].signed_index[1]);
  CHECK(p.sites[1].memory == "s");
  CHECK(p.sites[1].operation == "atomic_add");
  std::vector<std::uint32_t> sites;
  for (const Op& op : p.kernel.ops) {
    if (!is_access(op.code)) continue;
    CHECK((op.bounds == Bounds::Checked) == (op.site != kNone));
    if (op.site != kNone) sites.push_back(op.site);
  }
  CHECK(sites == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("the mode given wins over the kernel's own") {
  const char* decls = "options checked=false\nbuffer x : u32[*] inout\n";
  const char* body = "%i = global_id.x\nstore x[%i], %i";
  const Kernel unchecked = kernel_of(decls, body);
  using Mode = PrepareOptions::Mode;
  CHECK(prepare(unchecked).sites.empty());
  CHECK_FALSE(prepare(unchecked).kernel.options.checked);
  CHECK(prepare(unchecked, {Mode::Checked}).sites.size() == 1);
  CHECK(prepare(unchecked, {Mode::Checked}).kernel.options.checked);
  const Kernel checked = kernel_of("buffer x : u32[*] inout\n", body);
  CHECK(prepare(checked).sites.size() == 1);
  CHECK(prepare(checked, {Mode::Unchecked}).sites.empty());
}

TEST_CASE("a write to a declared In is refused with the buffer and the line") {
  const std::string text = refusal(kernel_of("file \"k.cpp\"\nbuffer x : u32[*] in\n", "%i = const 0 : u32\nstore x[%i], %i @0:12"));
  CHECK(text.find("'x'") != std::string::npos);
  CHECK(text.find("k.cpp:12") != std::string::npos);
  CHECK(text.find("In") != std::string::npos);
}

TEST_CASE("IO is what is left after dead code is gone") {
  const Prepared p = prepare(kernel_of("buffer x : u32[*] in\nbuffer y : u32[*] inout\nbuffer z : u32[*] inout\n", R"(
    %i = const 0 : u32
    %unused = load x[%i]
    %never = const false : bool
    if %never {
      store y[%i], %i
    }
    store z[%i], %i)"));
  // The load stays in a checked kernel: were x empty, it would be out of range, and that is told whether the value is used or not.
  CHECK(p.io == std::vector<Visibility>{Visibility::ReadOnly, Visibility::Dead, Visibility::WriteOnly});
  const Prepared unchecked = prepare(p.kernel, {PrepareOptions::Mode::Unchecked});
  CHECK(unchecked.io == std::vector<Visibility>{Visibility::Dead, Visibility::Dead, Visibility::WriteOnly});
}

TEST_CASE("contraction is decided before anything is folded") {
  // The product is used once as recorded; that its other factor is 1 must not turn the fused add into a plain one with other bits, and the
  // equal product below must not become a second use of it.
  const Prepared p = prepare(kernel_of("buffer x : f32[*] inout\n", R"(
    %i = const 0 : u32
    %j = const 1 : u32
    %a = load x[%i]
    %b = load x[%j]
    %m = mul %a, %b
    %r = add %m, %a
    %n = mul %a, %b
    store x[%i], %r
    store x[%j], %n)"));
  CHECK(count(p.kernel, Opcode::Fma) == 1);
  CHECK(count(p.kernel, Opcode::Mul) == 1);
}

TEST_CASE("a kernel that the verifier refuses is refused with all findings") {
  const std::string text = refusal(kernel_of("file \"k.cpp\"\nbuffer x : u32[*] in\nbuffer y : f32[*] in\n",
                                             "%i = const 0 : u32\n%f = const 1.0 : f32\nstore x[%i], %i @0:3\nstore y[%i], %f @0:4"));
  CHECK(text.find("k.cpp:3") != std::string::npos);
  CHECK(text.find("k.cpp:4") != std::string::npos);
}
