#include "kiln/ir/verify.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "kiln/ir/builder.h"
#include "kiln/ir/text.h"

using namespace kiln::ir;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// What the verifier says of a kernel with these declarations and this body; "" when it is good.
std::string findings(const std::string& declarations, const std::string& body) {
  return to_string(verify(parse_kernel("kir 1\nkernel \"k\" {\n  file \"a.cpp\"\n" + declarations + "\nbody {\n" + body + "\n}\n}\n")));
}

// Declarations that most bodies below use, and values of each type.
const std::string kDeclarations = R"(
  buffer x : f32[*] in
  buffer y : f32[*, *] inout
  buffer z : f32[*] out
  buffer b : bool[*] inout
  buffer u : u32[*] inout
  buffer h : f16[*] inout
  buffer bytes : u8[*] inout
  buffer small : e4m3[*] inout
  buffer t : f64[*] in strided
  scalar n : u32
  scalar tiny : bf16
  shared s : f32[32]
  local l : u32[4]
  slot acc : f32
)";
const std::string kValues = R"(
  %bool = const true : bool
  %i32 = const 1 : i32
  %u32 = const 1 : u32
  %u64 = const 1 : u64
  %f32 = const 1 : f32
  %f64 = const 1 : f64
  %e4m3 = const 1 : e4m3
)";

}  // namespace

TEST_CASE("good kernels pass") {
  for (const char* file : {"/tests/ir/forms.kir", "/samples/kir/saxpy.kir"}) {
    for (const Kernel& k : parse(read_file(KILN_SOURCE_DIR + std::string(file)))) {
      CHECK(to_string(verify(k)) == "");
      CHECK_NOTHROW(verify_or_throw(k));
    }
  }
  CHECK(findings(kDeclarations, kValues) == "");
}

TEST_CASE("a wrong declaration is refused with a sentence") {
  const struct {
    const char *declarations, *message;
  } table[] = {
      {"scalar a : void", "kernel 'k': parameter 'a' has no type"},
      {"scalar a \"\" : f32", "a parameter has no name"},
      {"scalar a : f32\nscalar c \"a\" : f32", "two parameters are called 'a'"},
      {"shared s : f32[2]\nparam p = s", "parameter 'p' names no buffer"},
      {"global g : f32[*] in\nparam p = g\nparam q = g", "parameter 'q' names the same buffer as another parameter"},
      {"global g : f32[*] in @0:9", "a.cpp:9: kernel 'k': buffer 'g' is no parameter"},
      {"buffer x : void[*] in", "buffer 'x' has no element type"},
      {"shared s : f32[0]", "shared memory 's' has extent 0 in dimension 0"},
      {"local s : f32[4, 0]", "local memory 's' has extent 0 in dimension 1"},
      {"shared s : f32[60000]",
       "shared memory 's' takes 240000 bytes; at most 232448 are possible, in dynamic shared memory (DynamicShared), and 49152 in arrays "
       "of a fixed size"},
      {"shared s : f32[18446744073709551615, 18446744073709551615]",
       "shared memory 's' takes more than 2^64 bytes; at most 232448 are possible"},
      {"shared s : u8[200000]\nshared r : u8[40000]",
       "shared memory 'r', of 40000 bytes, brings the total to 240000 bytes; at most 232448 are possible"},
      {"local s : f64[70000]", "local memory 's' takes 560000 bytes; at most 524288 are possible"},
      {"shared s : f32[dynamic]\nshared r : f32[dynamic]", "shared memory 'r' is the second dynamic shared memory"},
      {"slot s : void", "slot 's' has no type"},
      {"block_size 0, 1, 1", "block_size is 0 x 1 x 1; axis x is 1 to 1024"},
      {"block_size 1, 1, 65", "block_size is 1 x 1 x 65; axis z is 1 to 64"},
      {"block_size 32, 33, 1", "block_size is 32 x 33 x 1, 1056 threads; a block has at most 1024"},
      {"block_size 64, 1, 1\nmax_threads 32", "block_size is 64 x 1 x 1, 64 threads, over max_threads = 32"},
      {"max_threads 1025", "max_threads is 1025; a block has at most 1024"},
      {"scalar a : f32\nbuffer x : f32[*] in\nin_place a, x", "in_place names two different buffer parameters"},
      {"buffer x : f32[*] in\nin_place x, x", "in_place names two different buffer parameters"},
  };
  for (const auto& row : table) {
    CAPTURE(row.declarations);
    const std::string found = findings(row.declarations, "");
    CAPTURE(found);
    CHECK(found.find(row.message) != std::string::npos);
  }
  std::string many;
  for (int i = 0; i < 520; ++i) many += "scalar a" + std::to_string(i) + " : f64\n";
  CHECK(findings(many, "").find("the parameters take 4168 bytes; at most 4096") != std::string::npos);
}

TEST_CASE("a wrong operation is refused with a sentence") {
  const struct {
    const char *body, *message;
  } table[] = {
      // types by the op table
      {"add %f32, %f64 @0:7", "a.cpp:7: kernel 'k': add of f32 and f64: the types must be the same; cast one of them"},
      {"add %u32, %i32", "operation 7: kernel 'k': add of u32 and i32"},
      {"add %bool, %bool", "add is not defined for bool"},
      {"and %f32, %f32", "and is not defined for f32"},
      {"sqrt %i32", "sqrt is not defined for i32"},
      {"min_nan %u32, %u32", "min_nan is not defined for u32"},
      {"lt %bool, %bool", "lt is not defined for bool"},
      {"eq %u32, %f32", "eq of u32 and f32"},
      {"eq %u32, %u32 : u32", "eq gives bool, not u32"},
      {"add %u32, %u32 : u64", "add gives u32, not u64"},
      {"fma %f32, %f32, %f64", "fma of f32 and f64"},
      {"fma %u32, %u32, %u32", "fma is not defined for u32"},
      {"exp %u32", "exp is not defined for u32"},
      {"powi %f64, %f64", "powi takes an exponent of i32, not f64"},
      {"powi %u32, %i32", "powi is not defined for u32"},
      {"select %u32, %f32, %f32", "select chooses by a bool, not by u32"},
      {"select %bool, %f32, %u32", "select of f32 and u32"},
      {"select %bool, %f32, %f32 : f64", "select gives f32, not f64"},
      {"bit_cast %f32 : u64", "bit_cast from f32 to u64: the widths differ"},
      {"bit_cast %bool : u32", "bit_cast is not defined for bool"},
      {"cast %f32 : void", "cast needs a result type"},
      // checks
      {"check %u32, \"x\"", "check needs a bool, not u32"},
      {"check %bool, %u32, \"x\"", "check has 0 {} in its text and 1 values"},
      {"check %bool, \"{} {}\"", "check has 2 {} in its text and 0 values"},
      {"check %bool, %u32, %u32, %u32, \"{} {} {}\"", "check has 4 operands; it takes a condition and at most 2 values"},
      {"check %bool, %u32, \"{:.2f}\"", "check has '{:.2f}' in its text for a value of u32"},
      {"assume %u32, \"x\"", "assume needs a bool, not u32"},
      {"assume %bool, %u32, \"x\"", "assume has 2 operands; it takes a condition and no values"},
      {"log_text %u32, \"x\"", "log_text has 0 {} in its text and 1 values"},
      {"log_text \"{}\"", "log_text has 1 {} in its text and 0 values"},
      {"log_text %f32, \"{:x}\"", "log_text has '{:x}' in its text for a value of f32"},
      {"log_text %bool, \"{:04}\"", "log_text has '{:04}' in its text for a value of bool"},
      {"log_text %u32, \"{:y}\"", "log_text has '{:y}' in its text; a place is {}, or {:[0][width][.precision][kind]}"},
      {"log_text %u32, \"{:65}\"", "log_text has '{:65}' in its text; a place is"},
      {"log_text \"a } b\"", "log_text has a lone '}' in its text; a brace is written twice"},
      {"log_text \"a {\"", "log_text has a lone '{' in its text"},
      {"log_text %u32, %u32, %u32, %u32, %u32, %u32, %u32, %u32, %u32, \"{}\"", "log_text has 9 operands; it takes at most 8 values"},
      {"trap %u32, \"x\"\nreturn", "trap has 1 operands; it takes no values"},
      {"trap \"x\"", "trap has no return behind it; a thread that traps does not go on"},
      {"trap \"x\"\n%y = not %bool", "trap has no return behind it"},
      {"clock : u32", "clock gives u64, not u32"},
      {"global_time : i64", "global_time gives u64, not i64"},
      // 8 and 16 bits
      {"%x = load h[%u32]\n%y = warp_reduce.mul %x", "warp_reduce.mul is not there for f16; cast to f32 and back"},
      {"%x = load h[%u32]\natomic_add h[%u32], %x", "atomic_add of 'h': atomics work on elements of 32 and 64 bits, not on f16"},
      {"%x = load h[%u32]\n%y = add %x, %f32", "add of f16 and f32: the types must be the same; cast one of them"},
      {"%b = load bytes[%u32]\natomic_add bytes[%u32], %b", "atomic_add of 'bytes': atomics work on elements of 32 and 64 bits, not on u8"},
      // what is needed where a type is not right
      {"sqrt %bool", "sqrt is not defined for bool; it takes floats: cast<f32>(x)"},
      {"sqrt %u32", "sqrt is not defined for u32; it takes floats: cast<f32>(x)"},
      {"clz %bool", "clz is not defined for bool; it takes integers: cast<u32>(x)"},
      {"xor %f32, %f32", "xor is not defined for f32; it takes bool and integers: bit_cast its bits or cast its value to one"},
      {"bit_cast %f32 : u64", "the widths differ; it takes a type of 32 bits"},
      // floats of 8 bits
      {"add %e4m3, %e4m3 @0:7",
       "a.cpp:7: kernel 'k': add is not defined for e4m3; such floats are stored, moved and converted only: cast<f32>(x) first"},
      {"eq %e4m3, %e4m3", "eq is not defined for e4m3; such floats"},
      {"abs %e4m3", "abs is not defined for e4m3; such floats"},
      {"block_uniform %e4m3", "block_uniform is not defined for e4m3; such floats"},
      {"shuffle_up %e4m3, %u32", "shuffle_up is not defined for e4m3; such floats"},
      {"warp_reduce.max %e4m3", "warp_reduce.max is not defined for e4m3; such floats"},
      {"warp_reduce.mul %e4m3", "warp_reduce.mul is not defined for e4m3; such floats"},
      {"atomic_exchange small[%u32], %e4m3", "atomic_exchange of 'small' is not defined for e4m3; such floats"},
      {"check %bool, %e4m3, \"{}\"", "check shows no e4m3; such floats"},
      {"cast %e4m3 : i32", "cast from e4m3 to i32: floats of 8 bits convert from and to floats only; cast<f32>(x) on the way"},
      {"cast %bool : e5m2", "cast from bool to e5m2: floats of 8 bits"},
      {"bit_cast %e4m3 : u16", "bit_cast from e4m3 to u16: the widths differ; it takes a type of 8 bits"},
      {"load x[%e4m3]", "load of 'x': coordinate 0 is e4m3, not an integer"},
      // what the launch gives
      {"param x : f32", "param names no scalar parameter"},
      {"param n : u64", "param gives u32, not u64"},
      {"extent x.1", "extent names dimension 1 of 'x', which has 1"},
      {"extent x.0 : i32", "extent gives u32 or u64, not i32"},
      {"size x : f32", "size gives u32 or u64, not f32"},
      {"stride x.0", "stride names 'x', which is not strided"},
      {"stride t.0 : u32", "stride gives u64, not u32"},
      {"thread_id.x : u64", "thread_id gives u32, not u64"},
      {"global_id.x : i32", "global_id gives u32 or u64, not i32"},
      {"lane_id : i32", "lane_id gives u32, not i32"},
      // locals and memory
      {"get acc : f64", "get gives f32, not f64"},
      {"set acc, %u32", "set of u32 to slot 'acc', which holds f32"},
      {"load x[%f32]", "load of 'x': coordinate 0 is f32, not an integer"},
      {"load y[%u32]", "load names 'y' with 1 coordinates; it has 2 dimensions"},
      {"load x[%u32, %u32]", "load names 'x' with 2 coordinates; it has 1 dimensions"},
      {"load x[%u32] : u32", "load gives f32, not u32"},
      {"store z[%u32], %f64", "store of 'z': the value is f64, the elements are f32"},
      {"load z[%u32]", "load of 'z', which is declared Out; a load needs In or InOut"},
      {"store x[%u32], %f32", "store of 'x', which is declared In; a store needs Out or InOut"},
      {"atomic_add z[%u32], %f32", "atomic_add of 'z', which is not declared InOut"},
      {"atomic_add x[%u32], %f32", "atomic_add of 'x', which is not declared InOut"},
      {"atomic_and s[%u32], %f32", "atomic_and of 's' is not defined for f32"},
      {"atomic_add b[%u32], %bool", "atomic_add of 'b' is not defined for bool"},
      {"atomic_add l[%u32], %u32", "atomic_add of 'l': atomics work on buffers and shared memory, not on a thread's own"},
      {"atomic_cas u[%u32], %u32, %i32", "atomic_cas of 'u': the value is i32, the elements are u32"},
      {"atomic_cas s[%u32], %f32, %f32", "atomic_cas of 's' is not defined for f32"},
      // block and warp
      {"barrier_any %u32", "barrier_any asks about a bool, not about u32"},
      {"barrier_count %bool : bool", "barrier_count gives u32, not bool"},
      {"ballot %bool : u64", "ballot gives u32, not u64"},
      {"vote_all %f32", "vote_all asks about a bool, not about f32"},
      {"block_uniform %u32 : u64", "block_uniform gives u32, not u64"},
      {"shuffle_up %f32, %i32", "shuffle_up takes a lane or distance of u32, not i32"},
      {"shuffle_xor %f32, %u32 : u32", "shuffle_xor gives f32, not u32"},
      {"warp_reduce.and %f32", "warp_reduce.and is not defined for f32"},
      {"warp_scan.add %bool", "warp_scan.add is not defined for bool"},
      {"warp_scan_exclusive.max %u32 : i32", "warp_scan_exclusive gives u32, not i32"},
      // control flow
      {"if %u32 {\n}", "if needs a bool, not u32"},
      {"for %i = %u32, %u32, %u64 {\n}", "for of u32 and u64"},
      {"for %i = %f32, %f32, %f32 {\n}", "for runs over integers, not over f32"},
      {"for %i = %u32, %u32, %u32 : i32 {\n}", "for gives u32, not i32"},
      {"%z = const 0 : u32\nfor %i = %u32, %u32, %z {\n}", "for has the step 0; a step is above 0"},
      {"%m = const -2 : i32\nfor %i = %i32, %i32, %m {\n}", "for has the step -2; a step is above 0"},
      {"for %i = %u32, %u32, %u32 {\n}\nadd %i, %i",
       "add uses the value of operation 7 (for), which is not defined before it in this block or one around it"},
      {"if %bool {\n%v = lane_id\n}\nadd %v, %v", "add uses the value of operation 8 (lane_id), which is not defined before it"},
      {"while {\n%c = const true : bool\nyield %c\n} do {\nnot %c\n}", "not uses the value of operation 8 (const)"},
      {"while {\nlane_id\n} do {\n}", "while: its condition must end in yield"},
      {"while {\n} do {\n}", "while: its condition must end in yield"},
      {"while {\nyield %u32\n} do {\n}", "yield needs a bool, not u32"},
      {"while {\nyield %bool\nlane_id\n} do {\n}", "yield is followed by operations that nothing reaches"},
      {"yield %bool", "yield stands only at the end of a while's condition"},
      {"while {\nyield %bool\n} do {\nyield %bool\n}", "yield stands only at the end of a while's condition"},
      {"while {\nif %bool {\nyield %bool\n}\nyield %bool\n} do {\n}", "yield stands only at the end of a while's condition"},
      {"break", "break stands outside a loop's body"},
      {"if %bool {\ncontinue\n}", "continue stands outside a loop's body"},
      {"while {\nif %bool {\nbreak\n}\nyield %bool\n} do {\n}", "break stands outside a loop's body"},
      {"return\nlane_id", "return is followed by operations that nothing reaches"},
      {"for %i = %u32, %u32, %u32 {\nbreak\ncontinue\n}", "break is followed by operations that nothing reaches"},
      {"switch %i32 {\ncase 1 {\n}\ncase -3 {\n}\ncase 0xfffffffd {\n}\n}", "switch has case -3 twice"},
      // requires
      {"require %u32, \"n\"", "require needs a bool, not u32"},
      {"if %bool {\nrequire %bool, \"t\"\n}", "require stands in the body itself, under no condition or loop"},
      {"%g = global_id.x @0:5\n%c = lt %g, %u32\nrequire %c, \"g\" @0:6",
       "a.cpp:6: kernel 'k': require depends on global_id at a.cpp:5, which the host does not know at launch"},
      {"%v = load x[%u32]\n%c = lt %v, %f32\nrequire %c, \"v\"", "require depends on load, which the host does not know"},
      {"%e = exp %f32\n%c = lt %e, %f32\nrequire %c, \"e\"", "require depends on exp, which the host does not know"},
  };
  for (const auto& row : table) {
    CAPTURE(row.body);
    const std::string found = findings(kDeclarations, kValues + row.body);
    CAPTURE(found);
    CHECK(found.find(row.message) != std::string::npos);
    CHECK(found.find('\n') == std::string::npos);  // one fault, one sentence
  }
}

TEST_CASE("all findings are reported, not the first") {
  const Diagnostics found =
      verify(parse_kernel("kir 1\nkernel \"k\" {\nbody {\n%a = const 1 : u32\n%b = const 1 : f32\nadd %a, %b\nsub %a, %b\nbreak\n}\n}\n"));
  CHECK(found.size() == 3);
}

TEST_CASE("requires of what the host knows pass") {
  CHECK(findings(kDeclarations, kValues + R"(
    %e = extent y.1 : u64
    %s = size x : u64
    %st = stride t.0
    %sum = add %e, %s
    %d = block_dim.x
    %g = grid_dim.x
    %p = param n
    %all = mul %d, %g
    %a = le %all, %p
    %b = lt %sum, %st
    %c = and %a, %b
    require %c, "enough"
    require %bool, "constant")") == "");
}

TEST_CASE("what only a builder can get wrong is refused, never crashed into") {
  Kernel k;
  k.name = "k";
  Builder b(k);
  const ValueId v = b.const_u32(1);
  const auto says = [&](const std::string& message) {
    const std::string found = to_string(verify(k));
    CAPTURE(found);
    CHECK(found.find(message) != std::string::npos);
  };
  SUBCASE("no name") {
    k.name.clear();
    says("the kernel has no name");
  }
  SUBCASE("no body") {
    k.regions.clear();
    says("the kernel has no body");
  }
  SUBCASE("an operand that does not exist") {
    b.append({.code = Opcode::Neg, .type = Type::U32, .operands = {99}});
    says("neg names value 99, which does not exist");
  }
  SUBCASE("an operand defined later") {
    b.append({.code = Opcode::Neg, .type = Type::U32, .operands = {2}});
    b.const_u32(2);
    says("neg uses the value of operation 2 (const), which is not defined before it");
  }
  SUBCASE("itself as an operand") {
    b.append({.code = Opcode::Neg, .type = Type::U32, .operands = {1}});
    says("neg uses the value of operation 1 (neg), which is not defined before it");
  }
  SUBCASE("too few operands") {
    b.append({.code = Opcode::Select, .type = Type::U32, .operands = {v}});
    says("select has 1 operands, 3 expected");
  }
  SUBCASE("too many operands") {
    b.append({.code = Opcode::Barrier, .operands = {v}});
    says("barrier has 1 operands, 0 expected");
  }
  SUBCASE("a result of nothing") {
    b.barrier();
    b.append({.code = Opcode::Neg, .type = Type::U32, .operands = {1}});
    says("neg uses the result of barrier, which has none");
  }
  SUBCASE("a type for nothing") {
    b.append({.code = Opcode::Barrier, .type = Type::U32});
    says("barrier has no result, but the type u32");
  }
  SUBCASE("bits beyond the type") {
    b.append({.code = Opcode::Const, .type = Type::U32, .imm = std::uint64_t{1} << 32});
    says("const has bits above the 32 of u32");
  }
  SUBCASE("an operation in two places") {
    k.regions[0].ops.push_back(v);
    says("const stands in two places");
  }
  SUBCASE("an operation that does not exist") {
    k.regions[0].ops.push_back(77);
    says("a region names operation 77, which does not exist");
  }
  SUBCASE("a region inside itself") {
    const OpId i = b.if_(b.const_bool(true));
    k.op(i).regions[0] = 0;
    says("if names region 0, which already has a place");
  }
  SUBCASE("a region that does not exist") {
    const OpId i = b.if_(b.const_bool(true));
    k.op(i).regions[1] = kNone;
    says("if names region 4294967295, which does not exist");
  }
  SUBCASE("a missing region") {
    const OpId i = b.if_(b.const_bool(true));
    k.op(i).regions.pop_back();
    says("if has 1 regions, 2 expected");
  }
  SUBCASE("cases of no switch") {
    b.barrier();
    k.ops.back().cases = {1};
    says("barrier has cases; only a switch can");
  }
  SUBCASE("a case beyond the type") {
    b.switch_(v, {std::uint64_t{1} << 40});
    says("switch has a case with bits above the 32 of u32");
  }
  SUBCASE("a memory that does not exist") {
    b.append({.code = Opcode::Load, .type = Type::U32, .index = 3, .operands = {v}});
    says("load names memory 3, which is not declared");
  }
  SUBCASE("a size of a memory that does not exist") {
    b.append({.code = Opcode::Size, .type = Type::U32, .index = 3});
    says("size names memory 3, which is not declared");
  }
  SUBCASE("a slot that does not exist") {
    b.append({.code = Opcode::Get, .type = Type::U32, .index = 3});
    says("get names slot 3, which is not declared");
  }
  SUBCASE("an axis that does not exist") {
    b.query(Opcode::ThreadId, 3);
    says("thread_id names axis 3; there are x, y and z");
  }
  SUBCASE("a combine that does not exist") {
    b.append({.code = Opcode::WarpReduce, .type = Type::U32, .attr = 9, .operands = {v}});
    says("warp_reduce has no combine number 9");
  }
  SUBCASE("a text that does not exist") {
    b.append({.code = Opcode::Require, .imm = 5, .operands = {b.const_bool(true)}});
    says("require names a text that does not exist");
  }
  SUBCASE("a file that does not exist") {
    b.loc = {4, 1};
    b.barrier();
    says("barrier: its place names a file that is not declared");
  }
  SUBCASE("a kernel in a file that does not exist") {
    k.loc = {0, 1};
    says("the kernel's place names a file that is not declared");
  }
  SUBCASE("a memory in a file that does not exist") {
    b.shared("s", Type::F32, {1});
    k.mems.back().loc = {3, 1};
    says("shared memory 's': its place names a file that is not declared");
  }
  SUBCASE("too many operations") {
    for (int i = 0; i < 1'000'000; ++i) b.barrier();
    says("more than 1000000 operations");
  }
  SUBCASE("five dimensions") {
    b.shared("s", Type::F32, {1, 1, 1, 1, 1});
    says("shared memory 's' has 5 dimensions; 1 to 4 are possible");
  }
  SUBCASE("strides of shared memory") {
    b.shared("s", Type::F32, {1});
    k.mems.back().strided = true;
    says("shared memory 's' cannot be strided");
  }
  SUBCASE("a dynamic buffer") {
    b.buffer("x", Type::F32, 2, Access::In);
    k.mems.back().dynamic = true;
    says("buffer 'x' cannot be dynamic, only shared memory can");
    says("buffer 'x' is dynamic and so has 1 dimension, not 2");
  }
  SUBCASE("a parameter without a memory") {
    k.params.push_back({.name = "p", .is_buffer = true, .mem = 9});
    says("parameter 'p' names no buffer");
  }
  SUBCASE("in_place of parameters that do not exist") {
    k.in_place = {{0, 7}};
    says("in_place names two different buffer parameters");
  }
  SUBCASE("too deep") {
    for (int i = 0; i < 250; ++i) {
      const OpId o = b.if_(b.const_bool(true));
      b.set_region(k.op(o).regions[0]);
    }
    says("more than 200 blocks inside each other");
  }
}

TEST_CASE("barriers stand where all threads of a block come together") {
  const struct {
    const char *body, *message;
  } table[] = {
      {"barrier", ""},
      {"%b = block_id.x\n%c = lt %b, %u32\nif %c {\nbarrier\n}", ""},
      {"%t = thread_id.x\n%c = lt %t, %u32\nif %c {\nreturn\n}\nbarrier", ""},
      {"for %i = %u32, %u32, %u32 {\nbarrier\n}", ""},
      {"%t = thread_id.x\n%c = lt %t, %u32\n%any = barrier_any %c\nif %any {\nbarrier\n}", ""},
      {"%t = thread_id.x\n%c = lt %t, %u32\nif %c @0:3 {\nbarrier @0:4\n}",
       "a.cpp:4: kernel 'k': barrier stands under the if at a.cpp:3, whose condition may differ among the threads of the block"},
      {"%t = thread_id.x\nswitch %t @0:3 {\ncase 1 {\nbarrier_all %bool\n}\n}", "barrier_all stands under the switch at a.cpp:3"},
      {"%t = thread_id.x\nfor %i = %u32, %t, %u32 @0:3 {\nbarrier\n}", "barrier stands under the for at a.cpp:3, whose range or condition"},
      {"%t = thread_id.x\n%c = lt %t, %u32\nfor %i = %u32, %u32, %u32 @0:3 {\nbarrier\nif %c {\nbreak\n}\n}",
       "barrier stands under the for at a.cpp:3, whose range or condition, or a break or continue in it,"},
      {"%t = thread_id.x\n%c = lt %t, %u32\nwhile @0:3 {\nyield %c\n} do {\nblock_uniform %u32\n}",
       "block_uniform stands under the while at a.cpp:3"},
      {"%t = thread_id.x\n%c = lt %t, %u32\nif %c @0:3 {\nif %bool @0:4 {\nbarrier\n}\n}", "barrier stands under the if at a.cpp:3"},
  };
  for (const auto& row : table) {
    CAPTURE(row.body);
    const std::string found = findings(kDeclarations, kValues + row.body);
    CAPTURE(found);
    CHECK((std::string(row.message).empty() ? found.empty() : found.find(row.message) != std::string::npos));
  }
}
