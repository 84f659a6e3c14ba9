// One row an operation: the instruction that must be there, what must not, and ptxas on four architectures.
#include <span>

#include "nvptx_kernels.h"
#include "support/ptxas.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Row {
  std::string op, in, out;        // an operation on %a, %b and %c of type `in`, giving a value of type `out`
  std::vector<std::string> must;  // for sm_80
  std::vector<std::string> must_not = {};
};

const std::string kArchs[] = {"sm_75", "sm_80", "sm_90", "sm_120"};
// No operation may need the stack, a function of another module, or (in an unchecked kernel) any function.
const std::string kNever[] = {"__local_depot", ".extern .func", "call", "activemask", "st.local", "trap"};

std::string row_kernel(const Row& row) {
  return std::string("options checked=false\nbuffer x : ") + row.in + "[*] in\nbuffer y : " + row.out +
         "[*] out\nbody {\n%i = thread_id.x\n%j = block_id.x\n%k = block_id.y\n%a = load x[%i]\n%b = load x[%j]\n%c = load x[%k]\n%r = " +
         row.op + "\nstore y[%i], %r\n}";
}

const Row kArithmetic[] = {
    {"add %a, %b", "i32", "i32", {"add.s32"}},
    {"add %a, %b", "u32", "u32", {"add.s32"}},
    {"add %a, %b", "i64", "i64", {"add.s64"}},
    {"add %a, %b", "u64", "u64", {"add.s64"}},
    {"add %a, %b", "f32", "f32", {"add.rn.f32"}, {".ftz"}},
    {"add %a, %b", "f64", "f64", {"add.rn.f64"}},
    {"sub %a, %b", "i32", "i32", {"sub.s32"}},
    {"sub %a, %b", "u64", "u64", {"sub.s64"}},
    {"sub %a, %b", "f32", "f32", {"sub.rn.f32"}},
    {"sub %a, %b", "f64", "f64", {"sub.rn.f64"}},
    {"mul %a, %b", "u32", "u32", {"mul.lo.s32"}},
    {"mul %a, %b", "i64", "i64", {"mul.lo.s64"}},
    {"mul %a, %b", "f32", "f32", {"mul.rn.f32"}, {"fma"}},
    {"mul %a, %b", "f64", "f64", {"mul.rn.f64"}},
    {"div %a, %b", "i32", "i32", {"div.s32", "setp.eq.b32"}},
    {"div %a, %b", "u32", "u32", {"div.u32", "setp.eq.b32"}},
    {"div %a, %b", "i64", "i64", {"div.s64", "setp.eq.b64"}},
    {"div %a, %b", "u64", "u64", {"div.u64", "setp.eq.b64"}},
    {"div %a, %b", "f32", "f32", {"div.rn.f32"}, {"approx", "rcp"}},
    {"div %a, %b", "f64", "f64", {"div.rn.f64"}},
    {"rem %a, %b", "i32", "i32", {"rem.s32", "setp.eq.b32"}},
    {"rem %a, %b", "u32", "u32", {"rem.u32", "setp.eq.b32"}},
    {"rem %a, %b", "i64", "i64", {"rem.s64"}},
    {"rem %a, %b", "u64", "u64", {"rem.u64"}},
    {"min %a, %b", "i32", "i32", {"min.s32"}},
    {"min %a, %b", "u32", "u32", {"min.u32"}},
    {"min %a, %b", "i64", "i64", {"min.s64"}},
    {"min %a, %b", "u64", "u64", {"min.u64"}},
    {"min %a, %b", "f32", "f32", {"min.f32"}, {"NaN"}},
    {"min %a, %b", "f64", "f64", {"min.f64"}, {"NaN"}},
    {"max %a, %b", "i32", "i32", {"max.s32"}},
    {"max %a, %b", "u32", "u32", {"max.u32"}},
    {"max %a, %b", "f32", "f32", {"max.f32"}, {"NaN"}},
    {"max %a, %b", "f64", "f64", {"max.f64"}, {"NaN"}},
    {"min_nan %a, %b", "f32", "f32", {"min.NaN.f32"}},
    {"max_nan %a, %b", "f32", "f32", {"max.NaN.f32"}},
    {"min_nan %a, %b", "f64", "f64", {"min.f64", "setp.nan.f64"}},
    {"max_nan %a, %b", "f64", "f64", {"max.f64", "setp.nan.f64"}},
    {"and %a, %b", "u32", "u32", {"and.b32"}},
    {"and %a, %b", "i64", "i64", {"and.b64"}},
    {"and %a, %b", "bool", "bool", {"and.pred"}},
    {"or %a, %b", "i32", "i32", {"or.b32"}},
    {"or %a, %b", "u64", "u64", {"or.b64"}},
    {"or %a, %b", "bool", "bool", {"or.b16"}},
    {"xor %a, %b", "u32", "u32", {"xor.b32"}},
    {"xor %a, %b", "u64", "u64", {"xor.b64"}},
    {"xor %a, %b", "bool", "bool", {"xor.pred"}},
    {"shl %a, %b", "u32", "u32", {"shl.b32"}},             // PTX clamps the count
    {"shl %a, %b", "i64", "i64", {"shl.b64", "min.u64"}},  // but takes 32 bits of it
    {"shr %a, %b", "u32", "u32", {"shr.u32"}},
    {"shr %a, %b", "u64", "u64", {"shr.u64", "min.u64"}},
    {"shr %a, %b", "i32", "i32", {"shr.s32", "min.u32"}},
    {"shr %a, %b", "i64", "i64", {"shr.s64", "min.u64"}},
    {"mul_hi %a, %b", "u32", "u32", {"mul.hi.u32"}},
    {"mul_hi %a, %b", "i32", "i32", {"mul.hi.s32"}},
    {"mul_hi %a, %b", "u64", "u64", {"mul.hi.u64"}},
    {"mul_hi %a, %b", "i64", "i64", {"mul.hi.s64"}},
    {"copysign %a, %b", "f32", "f32", {"copysign.f32"}},
    {"copysign %a, %b", "f64", "f64", {"copysign.f64"}},
    {"neg %a", "i32", "i32", {"neg.s32"}},
    {"neg %a", "u64", "u64", {"neg.s64"}},
    {"neg %a", "f32", "f32", {"xor.b32"}, {"neg.f32"}},
    {"neg %a", "f64", "f64", {"xor.b64"}, {"neg.f64"}},
    {"abs %a", "i32", "i32", {"abs.s32"}},
    {"abs %a", "u32", "u32", {}, {"abs"}},
    {"abs %a", "i64", "i64", {"abs.s64"}},
    {"abs %a", "f32", "f32", {"and.b32"}, {"abs.f32"}},
    {"abs %a", "f64", "f64", {"and.b64"}, {"abs.f64"}},
    {"not %a", "u32", "u32", {"not.b32"}},
    {"not %a", "i64", "i64", {"not.b64"}},
    {"not %a", "bool", "bool", {}},
    {"clz %a", "u32", "u32", {"clz.b32"}},
    {"clz %a", "u64", "u64", {"clz.b64"}},
    {"ctz %a", "i32", "i32", {"brev.b32", "clz.b32"}, {"bra"}},
    {"ctz %a", "u64", "u64", {"brev.b64", "clz.b64"}, {"bra"}},
    {"popcount %a", "u32", "u32", {"popc.b32"}},
    {"popcount %a", "u64", "u64", {"popc.b64"}},
    {"sqrt %a", "f32", "f32", {"sqrt.rn.f32"}, {"approx"}},
    {"sqrt %a", "f64", "f64", {"sqrt.rn.f64"}},
    {"floor %a", "f32", "f32", {"cvt.rmi.f32.f32"}},
    {"floor %a", "f64", "f64", {"cvt.rmi.f64.f64"}},
    {"ceil %a", "f32", "f32", {"cvt.rpi.f32.f32"}},
    {"trunc %a", "f32", "f32", {"cvt.rzi.f32.f32"}},
    {"trunc %a", "f64", "f64", {"cvt.rzi.f64.f64"}},
    {"round_even %a", "f32", "f32", {"cvt.rni.f32.f32"}},
    {"round_even %a", "f64", "f64", {"cvt.rni.f64.f64"}},
    {"fma %a, %b, %c", "f32", "f32", {"fma.rn.f32"}},
    {"fma %a, %b, %c", "f64", "f64", {"fma.rn.f64"}},
    {"eq %a, %b", "u32", "bool", {"setp.eq.b32"}},
    {"ne %a, %b", "i64", "bool", {"setp.ne.b64"}},
    {"lt %a, %b", "i32", "bool", {"setp.lt.s32"}},
    {"lt %a, %b", "u32", "bool", {"setp.lt.u32"}},
    {"le %a, %b", "i64", "bool", {"setp.le.s64"}},
    {"gt %a, %b", "u64", "bool", {"setp.gt.u64"}},
    {"ge %a, %b", "i32", "bool", {"setp.ge.s32"}},
    {"eq %a, %b", "f32", "bool", {"setp.eq.f32"}},
    {"ne %a, %b", "f32", "bool", {"setp.neu.f32"}},
    {"lt %a, %b", "f32", "bool", {"setp.lt.f32"}},
    {"le %a, %b", "f64", "bool", {"setp.le.f64"}},
    {"gt %a, %b", "f32", "bool", {"setp.gt.f32"}},
    {"ge %a, %b", "f64", "bool", {"setp.ge.f64"}},
    {"eq %a, %b", "bool", "bool", {}},
    {"ne %a, %b", "bool", "bool", {}},
    {"cast %a : u32", "i32", "u32", {}, {"cvt"}},
    {"cast %a : i64", "i32", "i64", {"s32"}},
    {"cast %a : i64", "u32", "i64", {}},
    {"cast %a : u32", "u64", "u32", {}},
    {"cast %a : f32", "i32", "f32", {"cvt.rn.f32.s32"}},
    {"cast %a : f32", "u32", "f32", {"cvt.rn.f32.u32"}},
    {"cast %a : f32", "i64", "f32", {"cvt.rn.f32.s64"}},
    {"cast %a : f32", "u64", "f32", {"cvt.rn.f32.u64"}},
    {"cast %a : f64", "i32", "f64", {"cvt.rn.f64.s32"}},
    {"cast %a : f64", "u64", "f64", {"cvt.rn.f64.u64"}},
    {"cast %a : f32", "f64", "f32", {"cvt.rn.f32.f64"}, {".ftz"}},
    {"cast %a : f64", "f32", "f64", {"cvt.f64.f32"}, {".ftz"}},
    {"cast %a : i32", "f32", "i32", {"cvt.rzi.s32.f32"}},
    {"cast %a : u32", "f32", "u32", {"cvt.rzi.u32.f32"}},
    {"cast %a : i64", "f32", "i64", {"cvt.rzi.s64.f32"}},
    {"cast %a : u64", "f32", "u64", {"cvt.rzi.u64.f32"}},
    {"cast %a : i32", "f64", "i32", {"cvt.rzi.s32.f64"}},
    {"cast %a : u64", "f64", "u64", {"cvt.rzi.u64.f64"}},
    {"cast %a : bool", "f32", "bool", {"setp.neu.f32"}},
    {"cast %a : bool", "i32", "bool", {"setp.ne.b32"}},
    {"cast %a : u32", "bool", "u32", {}},
    {"cast %a : f32", "bool", "f32", {}},
    {"bit_cast %a : u32", "f32", "u32", {}, {"cvt"}},
    {"bit_cast %a : f64", "i64", "f64", {}, {"cvt"}},
};

const Row kQueries[] = {
    {"lane_id", "u32", "u32", {"%laneid"}, {"%warpid"}},
    {"warp_id", "u32", "u32", {"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "shr.u32"}, {"%warpid"}},
    {"thread_id.z", "u32", "u32", {"%tid.z"}},
    {"block_id.y", "u32", "u32", {"%ctaid.y"}},
    {"block_dim.z", "u32", "u32", {"%ntid.z"}},
    {"grid_dim.x", "u32", "u32", {"%nctaid.x"}},
    {"global_id.y", "u32", "u32", {"%ctaid.y", "%ntid.y", "%tid.y", "mad.lo.s32"}},
    {"global_id.x : u64", "u32", "u64", {"%ctaid.x", "%ntid.x", "%tid.x", "mul.wide.u32"}},
    {"extent x.0 : u64", "u32", "u64", {"_param_1]"}},
    {"size y", "u32", "u32", {"_param_3]"}},
};

const Row kWarp[] = {
    {"shuffle_idx %a, %i", "f32", "f32", {"shfl.sync.idx.b32", ", 31, -1;"}},
    {"shuffle_up %a, %i", "u32", "u32", {"shfl.sync.up.b32", ", 0, -1;", "selp"}},
    {"shuffle_down %a, %i", "i32", "i32", {"shfl.sync.down.b32", ", 31, -1;", "selp"}},
    {"shuffle_xor %a, %i", "u32", "u32", {"shfl.sync.bfly.b32", ", 31, -1;", "selp"}},
    {"shuffle_idx %a, %i", "f64", "f64", {"shfl.sync.idx.b32"}},
    {"shuffle_idx %a, %i", "u64", "u64", {"shfl.sync.idx.b32"}},
    {"shuffle_idx %a, %i", "bool", "bool", {"shfl.sync.idx.b32"}},
    {"vote_any %a", "bool", "bool", {"vote.sync.any.pred", "-1;"}},
    {"vote_all %a", "bool", "bool", {"vote.sync.all.pred", "-1;"}},
    {"ballot %a", "bool", "u32", {"vote.sync.ballot.b32", "-1;"}},
    {"warp_reduce.add %a", "f32", "f32", {"shfl.sync.bfly.b32", "add.rn.f32", ", 16, 31, -1;", ", 1, 31, -1;"}, {"redux"}},
    {"warp_reduce.add %a", "u32", "u32", {"redux.sync.add.s32"}, {"shfl"}},
    {"warp_reduce.min %a", "i32", "i32", {"redux.sync.min.s32"}, {"shfl"}},
    {"warp_reduce.min %a", "u32", "u32", {"redux.sync.min.u32"}, {"shfl"}},
    {"warp_reduce.max %a", "i32", "i32", {"redux.sync.max.s32"}},
    {"warp_reduce.max %a", "u32", "u32", {"redux.sync.max.u32"}},
    {"warp_reduce.and %a", "u32", "u32", {"redux.sync.and.b32"}},
    {"warp_reduce.or %a", "i32", "i32", {"redux.sync.or.b32"}},
    {"warp_reduce.xor %a", "u32", "u32", {"redux.sync.xor.b32"}},
    {"warp_reduce.mul %a", "u32", "u32", {"shfl.sync.bfly.b32", "mul.lo.s32"}},
    {"warp_reduce.mul %a", "f64", "f64", {"shfl.sync.bfly.b32", "mul.rn.f64"}},
    {"warp_reduce.min %a", "f32", "f32", {"shfl.sync.bfly.b32", "min.f32"}},
    {"warp_reduce.max %a", "f64", "f64", {"shfl.sync.bfly.b32", "max.f64"}},
    {"warp_reduce.add %a", "i64", "i64", {"shfl.sync.bfly.b32", "add.s64"}},
    {"warp_reduce.and %a", "bool", "bool", {"vote.sync.all.pred"}},
    {"warp_reduce.or %a", "bool", "bool", {"vote.sync.any.pred"}},
    {"warp_reduce.xor %a", "bool", "bool", {"vote.sync.ballot.b32", "popc.b32"}},
    {"warp_scan.add %a", "f32", "f32", {"shfl.sync.up.b32", "add.rn.f32", ", 1, 0, -1;", ", 16, 0, -1;"}},
    {"warp_scan.add %a", "u32", "u32", {"shfl.sync.up.b32", "add.s32"}},
    {"warp_scan.max %a", "i64", "i64", {"shfl.sync.up.b32", "max.s64"}},
    {"warp_scan_exclusive.add %a", "f32", "f32", {"shfl.sync.up.b32", "0f80000000"}},
    {"warp_scan_exclusive.min %a", "u32", "u32", {"shfl.sync.up.b32", "-1"}},
    {"warp_scan.or %a", "bool", "bool", {"shfl.sync.up.b32"}},
};

const Row kBlock[] = {
    {"barrier_any %a", "bool", "bool", {"bar.red.or.pred"}},
    {"barrier_all %a", "bool", "bool", {"bar.red.and.pred"}},
    {"barrier_count %a", "bool", "u32", {"bar.red.popc.u32"}},
    {"block_uniform %a", "f32", "f32", {"st.relaxed.cta.shared.b32", "bar.sync", "ld.shared.b32"}},
    {"block_uniform %a", "u64", "u64", {"st.relaxed.cta.shared.b64", "bar.sync", "ld.shared.b64"}},
    {"block_uniform %a", "bool", "bool", {"st.relaxed.cta.shared.b32", "bar.sync"}},
};

// The PTX of several kernels with names of their own as one module.
std::string merged(const std::vector<std::string>& modules) {
  std::string all;
  for (const std::string& ptx : modules) {
    const std::size_t body = ptx.find('\n', ptx.find(".address_size"));
    all += all.empty() ? ptx : ptx.substr(body);
  }
  return all;
}

// Text is judged for sm_80; every architecture's PTX must assemble, all rows at once where that goes well.
void check_rows(std::span<const Row> rows, bool full_warps = false) {
  for (const std::string& arch : kArchs) {
    CAPTURE(arch);
    CompileOptions options = ptx_options(arch);
    options.block_multiple_of_32 = full_warps;
    std::vector<std::string> modules;
    for (std::size_t n = 0; n < rows.size(); ++n) {
      const Row& row = rows[n];
      CAPTURE(row.op);
      CAPTURE(row.in);
      modules.push_back(ptx_of(as_written(kernel_text(row_kernel(row), "k" + std::to_string(n))), options));
      const std::string& ptx = modules.back();
      for (const std::string& text : kNever) CHECK_MESSAGE(!has(ptx, text), text);
      if (arch != "sm_80") continue;
      for (const std::string& text : row.must) CHECK_MESSAGE(has(ptx, text), text);
      for (const std::string& text : row.must_not) CHECK_MESSAGE(!has(ptx, text), text);
    }
    if (no_ptxas() || assemble_ptx(merged(modules), arch).ok) continue;
    for (const std::string& ptx : modules) {
      const Assembled assembled = assemble_ptx(ptx, arch);
      CHECK_MESSAGE(assembled.ok, assembled.messages, ptx);
    }
  }
}

}  // namespace

TEST_CASE("arithmetic, comparisons and conversions become the instructions with their meaning") { check_rows(kArithmetic); }
TEST_CASE("ids, sizes and extents come from special registers and parameters") { check_rows(kQueries); }
TEST_CASE("warp operations of full warps name all lanes") { check_rows(kWarp, true); }
TEST_CASE("block operations are barriers with a reduction") { check_rows(kBlock, true); }

TEST_CASE("warp operations of blocks that may end in a partial warp name the lanes that exist") {
  std::vector<std::string> modules;
  for (const Row& row : kWarp) {
    CAPTURE(row.op);
    CAPTURE(row.in);
    modules.push_back(ptx_of(as_written(kernel_text(row_kernel(row), "k" + std::to_string(modules.size()))), ptx_options("sm_75")));
    CHECK(has(modules.back(), "%ntid.z"));
    for (const std::string& text : kNever) CHECK_MESSAGE(!has(modules.back(), text), text);
  }
  if (!no_ptxas()) CHECK(assemble_ptx(merged(modules), "sm_75").ok);
}

TEST_CASE("a product and a sum stay two roundings, whatever follows") {
  const std::string ptx = ptx_of(row_kernel({"add %a, %b", "f32", "f32", {}}));
  CHECK(!has(ptx, "fma"));
  const std::string both = ptx_of(R"(
    options checked=false
    buffer x : f32[*] inout
    body {
      %i = thread_id.x
      %a = load x[%i]
      %p = mul %a, %a
      %s = add %p, %a
      %d = sub %p, %a
      %q = div %s, %d
      store x[%i], %q
    })");
  CHECK(has(both, "mul.rn.f32"));
  CHECK(has(both, "add.rn.f32"));
  CHECK(has(both, "sub.rn.f32"));
  CHECK(!has(both, "fma"));
}

TEST_CASE("fast math is no approximation of the hardware, whose bits no other device has") {
  const std::string body = R"(
    buffer x : f32[*] inout
    body {
      %i = thread_id.x
      %a = load x[%i]
      %s = sqrt %a
      %q = div %s, %a
      store x[%i], %q
    })";
  const std::string fast = ptx_of("options checked=false contraction=true fast_math=true\n" + body);
  CHECK(has(fast, "sqrt.rn.f32"));
  CHECK_FALSE(has(fast, "approx"));
  CHECK_FALSE(has(fast, "ftz"));
}

TEST_CASE("neg and abs keep the bits of a NaN only where somebody can see them") {
  const std::string used_as_number = ptx_of(R"(
    options checked=false
    buffer x : f32[*] inout
    body {
      %i = thread_id.x
      %a = load x[%i]
      %n = neg %a
      %f = fma %n, %a, %a
      store x[%i], %f
    })");
  CHECK(has(used_as_number, "neg.f32"));
  CHECK(!has(used_as_number, "xor.b32"));
}

TEST_CASE("a division by a known divisor has no guard") {
  const std::string ptx = ptx_of(R"(
    options checked=false
    buffer x : u32[*] inout
    body {
      %i = thread_id.x
      %a = load x[%i]
      %seven = const 7 : u32
      %q = div %a, %seven
      store x[%i], %q
    })");
  CHECK(!has(ptx, "div.u32"));
  CHECK(has(ptx, "mul.hi.u32"));
  CHECK(!has(ptx, "setp"));
}
