// Loads, stores and atomics in each memory, what LLVM is told about buffers, and checked accesses.
#include <algorithm>

#include "nvptx_kernels.h"
#include "support/ptxas.h"

using namespace kiln;
using namespace kiln::test;

namespace {

std::string assembled_on_all(const std::string& lines) {
  const ir::Prepared prepared = as_written(kernel_text(lines));
  for (const std::string arch : {"sm_75", "sm_90", "sm_120"}) {
    if (no_ptxas()) break;
    const std::string ptx = ptx_of(prepared, ptx_options(arch));
    const Assembled assembled = assemble_ptx(ptx, arch);
    CHECK_MESSAGE(assembled.ok, assembled.messages, ptx);
  }
  return ptx_of(prepared);
}

}  // namespace

TEST_CASE("a buffer that is only read is read through the read-only path, one that is also written is not") {
  const std::string ptx = assembled_on_all(R"(
    options checked=false
    buffer x : f32[*] in
    buffer y : f32[*] inout
    body {
      %i = thread_id.x
      %a = load x[%i]
      %b = load y[%i]
      %s = add %a, %b
      store y[%i], %s
    })");
  CHECK(count(ptx, "ld.global.nc.b32") == 1);
  CHECK(count(ptx, "ld.global.b32") == 1);
  CHECK(count(ptx, "st.global.b32") == 1);
  CHECK(!has(ptx, "cvta"));
}

TEST_CASE("buffers that may alias promise nothing") {
  const std::string ptx = assembled_on_all(R"(
    options checked=false
    buffer x : f32[*] in
    buffer y : f32[*] out
    in_place x, y
    body {
      %i = thread_id.x
      %j = block_id.x
      %a = load x[%i]
      store y[%j], %a
      %b = load x[%i]
      store y[%i], %b
    })");
  CHECK(!has(ptx, ".nc"));
  CHECK(count(ptx, "ld.global.b32") == 2);  // the store between may have changed it
}

TEST_CASE("what other threads write before a barrier is read after it") {
  // A noalias argument is private to the function in LLVM's eyes: it would keep the first value over the barrier.
  for (const std::string between : {"barrier", "warp_sync", "%u = block_uniform %a"}) {
    CAPTURE(between);
    const std::string ptx = assembled_on_all(std::string(R"(
      options checked=false
      buffer x : f32[*] inout
      body {
        %i = thread_id.x
        %j = block_id.x
        %a = load x[%i]
        store x[%j], %a
        )") + between + R"(
        %b = load x[%j]
        store x[%i], %b
      })");
    CHECK(count(ptx, "ld.global.b32") == 2);
  }
}

TEST_CASE("atomics and plain accesses of one buffer compile side by side") {
  // LLVM 22 crashes on an atomic load of a readonly noalias argument.
  for (const std::string type : {"u32", "i64", "f32", "f64"}) {
    CAPTURE(type);
    const std::string ptx = assembled_on_all(std::string("options checked=false\nbuffer x : ") + type + R"([*] inout
      body {
        %i = thread_id.x
        %j = block_id.x
        %a = load x[%i]
        %m = atomic_min x[%j], %a
        %b = load x[%i]
        store x[%j], %b
      })");
    CHECK(!has(ptx, ".nc"));
    CHECK(has(ptx, "atom."));
  }
}

TEST_CASE("an atomic is one instruction where the hardware has it, in global and shared memory") {
  struct Row {
    std::string op, type, instruction;
  };
  const Row rows[] = {
      {"atomic_add", "u32", ".add.u32"},       {"atomic_add", "i32", ".add.u32"},       {"atomic_add", "u64", ".add.u64"},
      {"atomic_add", "f32", ".add.f32"},       {"atomic_add", "f64", ".add.f64"},       {"atomic_sub", "u32", ".add.u32"},
      {"atomic_sub", "i64", ".add.u64"},       {"atomic_min", "i32", ".min.s32"},       {"atomic_min", "u32", ".min.u32"},
      {"atomic_min", "i64", ".min.s64"},       {"atomic_min", "u64", ".min.u64"},       {"atomic_max", "i32", ".max.s32"},
      {"atomic_max", "u64", ".max.u64"},       {"atomic_and", "u32", ".and.b32"},       {"atomic_and", "u64", ".and.b64"},
      {"atomic_or", "i32", ".or.b32"},         {"atomic_or", "i64", ".or.b64"},         {"atomic_xor", "u32", ".xor.b32"},
      {"atomic_xor", "u64", ".xor.b64"},       {"atomic_exchange", "u32", ".exch.b32"}, {"atomic_exchange", "i64", ".exch.b64"},
      {"atomic_exchange", "f32", ".exch.b32"}, {"atomic_exchange", "f64", ".exch.b64"},
  };
  for (const Row& row : rows) {
    for (const bool shared : {false, true}) {
      CAPTURE(row.op);
      CAPTURE(row.type);
      CAPTURE(shared);
      const std::string ptx = assembled_on_all(
          std::string("options checked=false\nbuffer x : ") + row.type + "[*] inout\nshared s : " + row.type +
          "[64]\nbody {\n%i = thread_id.x\n%v = load x[%i]\n%o = " + row.op + (shared ? " s" : " x") + "[%i], %v\nstore x[%i], %o\n}");
      CHECK(has(ptx, std::string(shared ? "atom.shared" : "atom.global") + row.instruction));
      CHECK(!has(ptx, ".cas"));
    }
  }
}

TEST_CASE("compare-and-swap is relaxed at device scope, float minimum and maximum are loops around it") {
  const std::string cas = assembled_on_all(R"(
    options checked=false
    buffer x : u64[*] inout
    body {
      %i = thread_id.x
      %j = global_id.x : u64
      %old = atomic_cas x[%i], %j, %j
      store x[%i], %old
    })");
  CHECK(has(cas, "atom.relaxed.gpu.global.cas.b64"));
  for (const std::string type : {"f32", "f64"}) {
    for (const std::string how : {"min", "max"}) {
      const std::string ptx =
          assembled_on_all(std::string("options checked=false\nbuffer x : ") + type + "[*] inout\nshared s : " + type +
                           "[4]\nbody {\n%i = thread_id.x\n%v = load x[%i]\n%o = atomic_" + how + " s[%i], %v\nstore x[%i], %o\n}");
      CHECK(has(ptx, "atom.relaxed.gpu.shared.cas.b"));
      CHECK(has(ptx, std::string(how) + "." + type));
    }
  }
}

namespace {

// Reads or writes x at known elements of a 16-byte aligned place, in one block of code; the other end of each copy lies apart from all
// others.
std::string copies(const std::string& type, const std::string& elements, bool shared, bool loads) {
  const std::string x = shared ? "s" : "x", extent = std::to_string(elements.back() - '0' + 1);
  std::string lines = "options checked=false\nbuffer x : " + type + "[*] inout\nbuffer y : " + type + "[*] inout\n" +
                      (shared ? "shared s : " + type + "[" + extent + "]\n" : "") + "body {\n%i = thread_id.x\n";
  for (const char e : elements) {
    lines +=
        std::string("%c") + e + " = const " + e + " : u32\n%k" + e + " = const " + e + "000 : u32\n%j" + e + " = add %i, %k" + e + "\n";
  }
  for (const char e : elements) lines += std::string("%v") + e + " = load " + (loads ? x + "[%c" : "y[%j") + e + "]\n";
  for (const char e : elements) lines += std::string("store ") + (loads ? "y[%j" : x + "[%c") + e + "], %v" + e + "\n";
  return lines + "}";
}

}  // namespace

TEST_CASE("adjacent accesses become wide ones, but none of bytes that the kernel did not ask for") {
  // LLVM's vectoriser fills gaps of loads, and makes four elements of three.
  struct Row {
    std::string type, elements;
    std::vector<std::string> accesses;
  };
  const Row rows[] = {
      {"u32", "012", {"v2.b32", "b32"}},
      {"u32", "123", {"b32", "v2.b32"}},
      {"u32", "02", {"b32", "b32"}},
      {"u32", "03", {"b32", "b32"}},
      {"u32", "013", {"v2.b32", "b32"}},
      {"u32", "023", {"b32", "v2.b32"}},
      {"f32", "0134", {"v2.b32", "b32", "b32"}},
      {"f32", "0123", {"v4.b32"}},
      {"i32", "0123456", {"v4.b32", "v2.b32", "b32"}},
      {"u32", "01234567", {"v4.b32", "v4.b32"}},
      {"u64", "01", {"v2.b64"}},
      {"f64", "012", {"v2.b64", "b64"}},
  };
  for (const std::string arch : {"sm_75", "sm_90", "sm_103"}) {
    CompileOptions options = ptx_options(arch);
    options.aligned16 = true;
    for (const Row& row : rows) {
      for (const bool shared : {false, true}) {
        for (const bool loads : {true, false}) {
          CAPTURE(arch);
          CAPTURE(row.type);
          CAPTURE(row.elements);
          const std::string ptx = ptx_of(copies(row.type, row.elements, shared, loads), options);
          const std::string nc = loads && !shared ? "nc." : "",
                            access = std::string(loads ? "ld." : "st.") + (shared ? "shared." : "global.") + nc;
          for (const std::string shape : {"b32", "b64", "v2.b32", "v2.b64", "v4.b32"}) {
            const auto wanted = std::count(row.accesses.begin(), row.accesses.end(), shape);
            CHECK_MESSAGE(count(ptx, access + shape) == wanted, access << shape << "\n" << ptx);
          }
          CHECK_MESSAGE(count(ptx, access) == static_cast<int>(row.accesses.size()), ptx);
        }
      }
    }
  }
}

TEST_CASE("a local array is read and written in no more than its elements") {
  const std::string ptx = assembled_on_all(R"(
    options checked=false
    buffer x : u32[*] inout
    local l : u32[3]
    body {
      %0 = const 0 : u32
      %1 = const 1 : u32
      %2 = const 2 : u32
      %i = thread_id.x
      %v = load x[%i]
      store l[%v], %i
      %a = load l[%0]
      %b = load l[%1]
      %c = load l[%2]
      %s = add %a, %b
      %t = mul %s, %c
      store x[%i], %t
    })");
  CHECK(has(ptx, "ld.local"));
  CHECK(!has(ptx, "ld.local.v4"));
}

TEST_CASE("local memory with known indices needs no memory") {
  const std::string ptx = assembled_on_all(R"(
    options checked=false
    buffer x : u32[*] inout
    local l : u32[2]
    body {
      %0 = const 0 : u32
      %1 = const 1 : u32
      %i = thread_id.x
      %v = load x[%i]
      store l[%0], %v
      store l[%1], %i
      %a = load l[%0]
      %b = load l[%1]
      %s = add %a, %b
      store x[%i], %s
    })");
  CHECK(!has(ptx, "local"));
}

TEST_CASE("static shared memory counts, the word of block_uniform included") {
  const CompiledCode code = ptx_compiler().compile(as_written(kernel_text(R"(
    options checked=false
    buffer x : u32[*] inout
    shared a : u32[3]
    shared b : f64[5]
    body {
      %i = thread_id.x
      %v = load x[%i]
      store a[%i], %v
      %u = block_uniform %v
      %f = cast %u : f64
      store b[%i], %f
    })")),
                                                   ptx_options());
  CHECK(code.static_shared_bytes == 16 + 40 + 8);
  CHECK(has(code.code, ".shared .align 16 .b8 $shared_1[12]"));
  CHECK(has(code.code, "$shared_uniform"));
}

TEST_CASE("bools are bytes in memory, any byte but 0 is true") {
  const std::string ptx = assembled_on_all(R"(
    options checked=false
    buffer x : bool[*] in
    buffer y : bool[*] out
    scalar c : bool
    body {
      %i = thread_id.x
      %a = load x[%i]
      %c = param c
      %r = and %a, %c
      store y[%i], %r
    })");
  CHECK(has(ptx, "ld.global.nc.b8"));
  CHECK(has(ptx, "st.global.b8"));
  CHECK(has(ptx, "setp.ne"));
}

TEST_CASE("a strided buffer is addressed by its strides, a dense one by its extents") {
  const std::string strided = assembled_on_all(R"(
    options checked=false
    buffer x : f32[*, *] in strided
    buffer y : f32[*, *] out
    body {
      %i = thread_id.x
      %j = thread_id.y
      %a = load x[%i, %j]
      store y[%j, %i], %a
    })");
  for (const std::string used : {"[k_param_3]", "[k_param_4]", "[k_param_7]"}) CHECK_MESSAGE(has(strided, used), used);
  for (const std::string unused : {"[k_param_1]", "[k_param_2]", "[k_param_6]"}) CHECK_MESSAGE(!has(strided, unused), unused);
}

TEST_CASE("a proven access in a checked kernel costs nothing, a checked one calls the one reporter") {
  const std::string text = R"(
    buffer x : f32[*] in
    buffer y : f32[*] out
    body {
      %i = thread_id.x
      %a = load x[%i]
      store y[%i], %a
    })";
  ir::Prepared proven = as_written(kernel_text(text));
  for (ir::Op& op : proven.kernel.ops) {
    if (ir::is_access(op.code)) op.bounds = ir::Bounds::Proven;
  }
  const std::string bare = ptx_of(proven);
  CHECK(!has(bare, "call"));
  CHECK(!has(bare, "setp"));
  CHECK(has(bare, "k_param_4"));  // the record stays part of the signature
  const std::string checked = assembled_on_all(text);
  CHECK(count(checked, "call.uni $fault") == 2);
  CHECK(count(checked, ".func $fault") == 2);  // declared and defined
  CHECK(has(checked, "atom.relaxed.sys.global.cas.b32"));
  CHECK(has(checked, "st.release.sys.global.b32"));
}

TEST_CASE("each coordinate is checked in its own type, a negative one is out") {
  const std::string text = R"(
    buffer x : f32[*, *] in
    buffer y : f32[*] out
    buffer z : i32[*] in
    body {
      %i = thread_id.x
      %s = load z[%i]
      %w = cast %i : u64
      %a = load x[%s, %w]
      store y[%i], %a
    })";
  const std::string ptx = assembled_on_all(text);
  CHECK(count(ptx, "setp.") >= 3);
  CHECK(has(ptx, "ld.global.nc.s32"));  // the signed coordinate is widened with its sign
}

TEST_CASE("shared, local and dynamic shared memory are checked like buffers") {
  const std::string ptx = assembled_on_all(R"(
    buffer x : u32[*] inout
    shared s : u32[8]
    shared d : u32[dynamic]
    local l : u32[4]
    body {
      %i = thread_id.x
      %v = load x[%i]
      store s[%v], %v
      store d[%v], %v
      store l[%v], %v
      %a = atomic_add s[%i], %v
      %b = load d[%i]
      %c = load l[%i]
      %t = add %a, %b
      %u = add %t, %c
      store x[%i], %u
    })");
  CHECK(count(ptx, "call.uni $fault") == 8);
  CHECK(has(ptx, "%dynamic_smem_size"));
}
