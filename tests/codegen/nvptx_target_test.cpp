// Architectures, PTX versions, names, signatures and launch bounds of the PTX.
#include <atomic>
#include <thread>

#include "nvptx_kernels.h"
#include "support/ptxas.h"

using namespace kiln;
using namespace kiln::test;

namespace {

const char* const kCopy = R"(
  options checked=false
  buffer x : f32[*] in
  buffer y : f32[*] out
  body {
    %i = thread_id.x
    %v = load x[%i]
    store y[%i], %v
  })";

struct Arch {
  std::string name;
  std::uint32_t version;
};
const Arch kArchs[] = {{"sm_75", 63},   {"sm_80", 70},   {"sm_86", 71},  {"sm_87", 74},   {"sm_88", 90},   {"sm_89", 78},
                       {"sm_90", 78},   {"sm_90a", 80},  {"sm_100", 86}, {"sm_100a", 86}, {"sm_100f", 88}, {"sm_103", 88},
                       {"sm_103a", 88}, {"sm_103f", 88}, {"sm_110", 90}, {"sm_110a", 90}, {"sm_110f", 90}, {"sm_120", 87},
                       {"sm_120a", 87}, {"sm_120f", 88}, {"sm_121", 88}, {"sm_121a", 88}, {"sm_121f", 88}};

}  // namespace

TEST_CASE("whether PTX can be assembled here is said") {
  if (no_ptxas()) MESSAGE(no_ptxas_reason());
  CHECK(no_ptxas() == !no_ptxas_reason().empty());
}

TEST_CASE("every known architecture gets its own target and the lowest PTX version that has it") {
  std::vector<std::string> names;
  for (const Arch& arch : kArchs) {
    CAPTURE(arch.name);
    names.push_back(arch.name);
    const CompiledCode code = ptx_compiler().compile(as_written(kernel_text(kCopy)), ptx_options(arch.name));
    CHECK(code.ptx_version == arch.version);
    CHECK(has(code.code, ".version " + std::to_string(arch.version / 10) + "." + std::to_string(arch.version % 10) + "\n"));
    CHECK(has(code.code, ".target " + arch.name + "\n"));
    CHECK(code.symbol == "k");
  }
  CHECK(ptx_compiler().ptx_architectures() == names);
}

TEST_CASE("every known architecture's PTX assembles" * doctest::skip(no_ptxas())) {
  for (const Arch& arch : kArchs) {
    CAPTURE(arch.name);
    const Assembled assembled = assemble_ptx(ptx_of(kCopy, ptx_options(arch.name)), arch.name);
    CHECK_MESSAGE(assembled.ok, assembled.messages);
  }
}

TEST_CASE("an unknown architecture is refused with the list before LLVM sees it") {
  for (const std::string arch : {"sm_70", "sm_130", "sm_80a", "sm_101", "80", "", "x86-64-v3", "sm_90 "}) {
    CAPTURE(arch);
    const std::string message = compile_error(as_written(kernel_text(kCopy)), ptx_options(arch));
    CHECK(has(message, "kernel 'k'"));
    CHECK(has(message, "'" + arch + "'"));
    CHECK(has(message, "sm_75, sm_80"));
  }
  CHECK(has(ptx_of(kCopy), ".entry k("));  // and the next compilation works
}

TEST_CASE("a PTX version that is too old for the architecture is refused, a newer bound changes nothing") {
  CompileOptions options = ptx_options("sm_90");
  options.ptx_version = 70;
  const std::string message = compile_error(as_written(kernel_text(kCopy)), options);
  CHECK(has(message, "PTX 7.0"));
  CHECK(has(message, "sm_90"));
  CHECK(has(message, "7.8"));
  const std::string lowest = ptx_of(kCopy, ptx_options("sm_90"));
  for (const std::uint32_t version : {78u, 83u, 90u}) {
    options.ptx_version = version;
    CHECK(ptx_of(kCopy, options) == lowest);
  }
}

TEST_CASE("an architecture below what the kernel needs is refused with the reason") {
  ir::Prepared prepared = as_written(kernel_text(kCopy));
  prepared.requirement = {.min_sm = 90, .reason = "'shuffle' at a.cpp:7"};
  const std::string message = compile_error(prepared, ptx_options("sm_80"));
  CHECK(has(message, "sm_90"));
  CHECK(has(message, "'shuffle' at a.cpp:7"));
  CHECK(has(message, "sm_80"));
  CHECK(has(ptx_of(prepared, ptx_options("sm_90a")), ".entry k("));
}

TEST_CASE("the reasons for a target are those that refuse another one, and name the instructions that came with an architecture") {
  const std::string body = R"(
    file "r.cpp"
    options checked=false
    buffer x : u32[*] inout
    body {
      %i = thread_id.x @0:3
      %v = load x[%i] @0:4
      %s = warp_reduce.add %v @0:5
      store x[%i], %s @0:6
    }
  )";
  const ir::Prepared prepared = as_written(kernel_text(body));
  const TargetReasons old = ptx_compiler().reasons(prepared, ptx_options("sm_75"));
  CHECK(old.lowest_arch == "sm_75");
  CHECK(has(old.lowest_arch_reason, "oldest architecture"));
  CHECK(old.ptx_version == 63);
  CHECK(has(old.ptx_version_reason, "sm_75"));
  CHECK(old.choices.empty());
  const TargetReasons newer = ptx_compiler().reasons(prepared, ptx_options("sm_90a"));
  CHECK(newer.ptx_version == ptx_compiler().compile(prepared, ptx_options("sm_90a")).ptx_version);
  REQUIRE(newer.choices.size() == 1);
  CHECK(newer.choices[0].operation == "warp_reduce.add u32");
  CHECK(newer.choices[0].place == "r.cpp:5");
  CHECK(newer.choices[0].instruction == "redux.sync");
  CHECK(newer.choices[0].since == "sm_80");
  CHECK(has(ptx_of(prepared, ptx_options("sm_90a")), "redux.sync"));
  CHECK(!has(ptx_of(prepared, ptx_options("sm_75")), "redux.sync"));

  ir::Prepared needy = prepared;
  needy.requirement = {.min_sm = 90, .reason = "'shuffle' at a.cpp:7"};
  const TargetReasons forced = ptx_compiler().reasons(needy, ptx_options("sm_100"));
  CHECK(forced.lowest_arch == "sm_90");
  CHECK(forced.lowest_arch_reason == "'shuffle' at a.cpp:7");
  CHECK_THROWS_AS(ptx_compiler().reasons(needy, ptx_options("sm_80")), CompileError);
}

TEST_CASE("a kernel's symbol is its name with other bytes escaped, also where shared memory is named after it") {
  const std::string body = R"(
    options checked=false
    buffer x : f32[*] inout
    shared a : f32[4]
    shared d : f32[dynamic]
    body {
      %i = thread_id.x
      %v = load x[%i]
      store a[%i], %v
      store d[%i], %v
      barrier
      %o = const 0 : u32
      %w = load a[%o]
      %u = load d[%o]
      %s = add %w, %u
      store x[%i], %s
    })";
  for (const std::string name : {"ns::matmul@tile=16", "9lives", "a.b<float>", "\xce\xbb", "$shared_0", "main", "reg", "add", "bra"}) {
    CAPTURE(name);
    ir::Kernel kernel = kernel_text(body);
    kernel.name = name;
    const CompiledCode code = ptx_compiler().compile(as_written(kernel), ptx_options());
    CHECK(code.symbol == ir::symbol_name(name));
    CHECK(has(code.code, ".visible .entry " + code.symbol + "("));
    CHECK(has(code.code, ".extern .shared .align 16 .b8 " + code.symbol + "$dynamic[]"));
    if (!no_ptxas()) {
      const Assembled assembled = assemble_ptx(code.code, "sm_80");
      CHECK_MESSAGE(assembled.ok, assembled.messages);
    }
  }
}

TEST_CASE("parameters are the public layout: pointer and extents, strides, scalars, and the fault record last") {
  const std::string text = R"(
    buffer x : f64[*, *] in strided
    buffer y : bool[*] inout
    scalar a : f32
    scalar b : bool
    scalar c : i64
    body {
    })";
  const std::string checked = ptx_of(text);
  const char* const parameters[] = {".param .u64 .ptr .global .align 8 k_param_0",
                                    ".param .u64 k_param_1",
                                    ".param .u64 k_param_2",
                                    ".param .u64 k_param_3",
                                    ".param .u64 k_param_4",
                                    ".param .u64 .ptr .global .align 1 k_param_5",
                                    ".param .u64 k_param_6",
                                    ".param .f32 k_param_7",
                                    ".param .u8 k_param_8",
                                    ".param .u64 k_param_9",
                                    ".param .u64 .ptr .global .align 8 k_param_10"};
  for (const std::string parameter : parameters) CHECK_MESSAGE(has(checked, parameter), parameter);
  CHECK(!has(checked, "k_param_11"));
  CHECK(!has(ptx_of("options checked=false\n" + text), "k_param_10"));
}

TEST_CASE("the alignment bit makes every pointer 16-byte aligned and lets neighbours merge") {
  const std::string text = R"(
    options checked=false
    buffer x : f32[*] in
    buffer y : f32[*] out
    body {
      %t = thread_id.x
      %4 = const 4 : u32
      %b = mul %t, %4
      %1 = const 1 : u32
      %2 = const 2 : u32
      %3 = const 3 : u32
      %i = cast %b : u64
      %u1 = cast %1 : u64
      %u2 = cast %2 : u64
      %u3 = cast %3 : u64
      %i1 = add %i, %u1
      %i2 = add %i, %u2
      %i3 = add %i, %u3
      %v0 = load x[%i]
      %v1 = load x[%i1]
      %v2 = load x[%i2]
      %v3 = load x[%i3]
      store y[%i], %v0
      store y[%i1], %v1
      store y[%i2], %v2
      store y[%i3], %v3
    })";
  CompileOptions options = ptx_options();
  const std::string natural = ptx_of(text, options);
  CHECK(has(natural, ".align 4 k_param_0"));
  CHECK(!has(natural, ".v4"));
  options.aligned16 = true;
  const std::string aligned = ptx_of(text, options);
  CHECK(has(aligned, ".align 16 k_param_0"));
  CHECK(has(aligned, "ld.global.nc.v4.b32"));
  CHECK(has(aligned, "st.global.v4.b32"));
}

TEST_CASE("a declared block is exact, declared threads are a maximum, and neither is said unasked") {
  CHECK(has(ptx_of("block_size 16, 4, 1\nbody {\n}"), ".reqntid 16, 4, 1"));
  CHECK(!has(ptx_of("block_size 16, 4, 1\nmax_threads 128\nbody {\n}"), ".maxntid"));
  CHECK(has(ptx_of("max_threads 128\nbody {\n}"), ".maxntid 128"));
  CHECK(!has(ptx_of("body {\n}"), "ntid"));
  CompileOptions options = ptx_options();
  options.block = {32, 1, 1};
  CHECK(has(compile_error(as_written(kernel_text("block_size 16, 4, 1\nbody {\n}")), options), "kernel 'k'"));
  CHECK(has(ptx_of("body {\n}", options), ".reqntid 32"));
}

TEST_CASE("source lines become .loc and .file, and nothing that makes ptxas stop optimising") {
  const std::string text = R"(
    file "src/a.cpp"
    file "include/b.h"
    loc @0:3
    options checked=false
    buffer y : u32[*] out
    body {
      %i = thread_id.x : u32 @0:7
      %v = mul %i, %i : u32 @1:42
      store y[%i], %v @0:9
    })";
  CompileOptions options = ptx_options();
  const std::string lines = ptx_of(text, options);
  CHECK(has(lines, "\"src/a.cpp\""));
  CHECK(has(lines, "\"include/b.h\""));
  CHECK(has(lines, ".loc\t2 42 0"));
  CHECK(has(lines, ".loc\t1 9 0"));
  CHECK(has(lines, ".target sm_80\n"));
  CHECK(!has(lines, ".section"));
  if (!no_ptxas()) CHECK(assemble_ptx(lines, "sm_80").ok);
  options.line_info = false;
  const std::string bare = ptx_of(text, options);
  CHECK(!has(bare, ".loc"));
  CHECK(!has(bare, ".file"));
  CHECK(!has(ptx_of(kCopy), ".loc"));  // an IR without places
}

TEST_CASE("a file name that ptxas could not read loses the bytes in question") {
  const std::string ptx = ptx_of(R"(
    file "we\"ird\n\\x\xce.cpp"
    options checked=false
    buffer y : u32[*] out
    body {
      %i = thread_id.x : u32 @0:7
      store y[%i], %i @0:9
    })");
  CHECK(has(ptx, "\"we_ird__x_.cpp\""));
  if (!no_ptxas()) CHECK(assemble_ptx(ptx, "sm_80").ok);
}

TEST_CASE("static shared memory beyond what a GPU has is refused with both numbers") {
  const auto kernel = [](const std::string& floats) {
    return as_written(kernel_text("file \"a.cpp\"\noptions checked=false\nbuffer y : f32[*] out\nshared first : f32[4]\nshared s : f32[" +
                                  floats + "] @0:9\nshared last : f32[4]\nbody {\n%i = thread_id.x\n%z = load s[%i]\nstore y[%i], %z\n}"));
  };
  CHECK(has(ptx_of(kernel("12280")), "[49120]"));
  const std::string message = compile_error(kernel("12285"), ptx_options());
  CHECK(has(message, "a.cpp:9: with 's' it has 49184 bytes of static shared memory, a GPU gives a block at most 49152"));
}

TEST_CASE("the same kernel gives the same bytes again and again, and on several threads at once, errors between") {
  const ir::Prepared prepared = as_written(kernel_text(kCopy));
  const std::string once = ptx_of(prepared);
  for (int i = 0; i < 3; ++i) CHECK(ptx_of(prepared) == once);
  std::atomic<int> same = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 8; ++i) {
        try {
          ptx_compiler().compile(prepared, ptx_options("sm_1"));
        } catch (const CompileError&) { ++refused; }
        same += ptx_of(prepared) == once;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(same == 32);
  CHECK(refused == 32);
}

TEST_CASE("the LLVM IR is that of the optimised kernel") {
  const std::string ir = ptx_compiler().llvm_ir(as_written(kernel_text(kCopy)), ptx_options());
  CHECK(has(ir, "define ptx_kernel void @k("));
  CHECK(has(ir, "noalias readonly"));
  CHECK(!has(ir, "alloca"));
}

TEST_CASE("IR that no verifier has seen is refused and not crashed on, and the next kernel compiles") {
  for (const std::string op : {"sqrt", "fma", "exp", "clz"}) {
    CAPTURE(op);
    ir::Prepared wrong;
    wrong.kernel = kernel_text("options checked=false\nbuffer x : " +
                               std::string(op == "clz"   ? "f16"
                                           : op == "exp" ? "f32"
                                                         : "u16") +
                               "[*] inout\nbody {\n%i = thread_id.x\n%a = load x[%i]\n%r = " + op + (op == "fma" ? " %a, %a, %a" : " %a") +
                               "\nstore x[%i], %r\n}");
    wrong.io = {ir::Visibility::ReadWrite};
    for (ir::Op& each : wrong.kernel.ops) each.bounds = ir::Bounds::Proven;
    CHECK(has(compile_error(wrong, ptx_options()), "kernel 'k'"));
    CHECK(has(ptx_of(kCopy), ".entry k("));
  }
}
