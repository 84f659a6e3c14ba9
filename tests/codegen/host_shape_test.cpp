// Indices that the lowering proves to lie side by side, and options that it refuses.
#include "codegen/host_agree.h"

using namespace kiln;
using namespace kiln::host_test;

TEST_CASE("rows and columns made of a linear thread id by / % & >> on the CPU") {
  for (const std::string n : {"8", "16", "32", "64", "24"}) {
    Agree a("buffer in : u32[*, *] in\nbuffer out : u32[*] inout", R"(
    %t = thread_id.x
    %n = const )" + n + R"( : u32
    %c = rem %t, %n
    %r = div %t, %n
    %x = load in[%r, %c]
    %five = const 5 : u32
    %mask = const 31 : u32
    %w = shr %t, %five
    %l = and %t, %mask
    %y = load in[%w, %l]
    %z = load in[%l, %w]
    %xy = add %x, %y
    %xyz = mul %xy, %z
    store out[%t], %xyz
)");
    a.buffer(noise(64 * 64), {64, 64}).buffer(std::vector<std::uint32_t>(100, 1));
    a.block = {100, 1, 1};
    a.check(false);
  }
}

TEST_CASE("an early return on the CPU of no lane, of some and of all, by a bound that moves over the warps") {
  for (const std::uint32_t bound : {0u, 1u, 31u, 32u, 33u, 95u, 96u, 200u}) {
    Agree a("buffer out : u32[*] inout\nscalar n : u32", R"(
    %t = global_id.x
    %n = param n
    %c = ge %t, %n
    if %c { return
    }
    %one = const 1 : u32
    %r = ballot %c
    %m = add %t, %one
    %v = add %m, %r
    store out[%t], %v
)");
    a.buffer(std::vector<std::uint32_t>(96, 1)).scalar(bound);
    a.block = {96, 1, 1};
    a.check(false);
  }
}

TEST_CASE("a block shape or a CPU level that there is not is refused for the CPU with what would do") {
  const ir::Prepared prepared = ir::prepare(ir::parse_kernel("kir 1\nkernel \"k\" {\nblock_size 64, 1, 1\nbody {\n}\n}\n"));
  const auto text = [&](const std::string& arch, std::array<std::uint32_t, 3> block) {
    CompileOptions options;
    options.arch = arch;
    options.block = block;
    try {
      compiler().compile(prepared, options);
    } catch (const CompileError& e) { return std::string(e.what()); }
    return std::string();
  };
  CHECK(text("x86-64", {64, 1, 1}).empty());
  CHECK(text("z80", {64, 1, 1}).find("x86-64, x86-64-v2, x86-64-v3, x86-64-v4") != std::string::npos);
  for (const std::array<std::uint32_t, 3> none : std::vector<std::array<std::uint32_t, 3>>{
           {4, 0, 1}, {0, 2, 1}, {0, 0, 1}, {0, 1, 0}, {64, 1, 0}, {0, 32, 32}, {65536, 65536, 1}, {1u << 31, 2, 1}}) {
    CAPTURE(none[0]);
    const std::string said = text("x86-64", none);
    CHECK_MESSAGE(said.find("1 to 1024 threads") != std::string::npos, said);
    CHECK_MESSAGE(said.find("0 x 1 x 1 (a row of threads) or 0 x 0 x 0 (any shape)") != std::string::npos, said);
  }
  CHECK(text("x86-64", {1024, 2, 1}).find("1 to 1024") != std::string::npos);
  const std::string declared = "kernel 'k' declares a block of 64 x 1 x 1 threads and is compiled for no other; ";
  CHECK(text("x86-64", {32, 1, 1}) == declared + "a block of 32 x 1 x 1 threads was asked for");
  CHECK(text("x86-64", {0, 1, 1}) == declared + "a row of any number of threads was asked for");
  CHECK(text("x86-64", {0, 0, 0}) == declared + "a block of any shape was asked for");
}
