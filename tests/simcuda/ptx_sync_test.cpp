// Threads: divergence, forward progress, meeting points, orders, hangs.
#include <algorithm>
#include <numeric>

#include "simcuda/ptx_testing.h"

using namespace kiln::simcuda;
using namespace kiln::simcuda::testing;
namespace cuda = kiln::cuda;

namespace {

// A kernel with one pointer parameter in %rd0 and %tid.x in %t, result stored from %r0 to out[tid] at the end.
std::string kernel(const std::string& body, const std::string& declarations = "") {
  return header() + declarations + R"(
.visible .entry k(.param .u64 out)
{
.reg .b64 %rd<10>;
.reg .b32 %r<16>, %t;
.reg .pred %p<8>;
ld.param.u64 %rd0, [out];
mov.u32 %t, %tid.x;
mul.wide.u32 %rd1, %t, 4;
add.u64 %rd1, %rd0, %rd1;
)" + body +
         "\nst.global.u32 [%rd1], %r0;\nret;\n}\n";
}

struct Outcome {
  RunResult result;
  std::vector<u32> out;
};

Outcome run_kernel(const std::string& ptx, u32 threads, Options options = {}, u32 dynamic = 0) {
  const LoadResult loaded = load_text(ptx);
  const Device<u32> out(std::vector<u32>(std::max(threads, 64u), 0));
  Outcome o;
  o.result = launch(loaded, "k", {{1, 1, 1}, {threads, 1, 1}, dynamic}, Arguments().add(out.address()), options);
  o.out = out.get();
  return o;
}

std::vector<Options> orders() {
  std::vector<Options> list(2);
  list[1].order = Order::Reverse;
  for (u64 seed = 1; seed <= 6; ++seed) {
    Options o;
    o.order = Order::Seeded;
    o.seed = seed;
    list.push_back(o);
  }
  return list;
}

}  // namespace

TEST_CASE("lanes that part meet again, whatever the order of turns") {
  const std::string ptx = kernel(R"(
mov.u32 %r0, 0;
mov.u32 %r1, 0;
LOOP:
setp.ge.u32 %p0, %r1, %t;
@%p0 bra DONE;
and.b32 %r2, %r1, 1;
setp.eq.u32 %p1, %r2, 0;
@%p1 bra EVEN;
add.u32 %r0, %r0, 3;
bra NEXT;
EVEN:
add.u32 %r0, %r0, 5;
NEXT:
add.u32 %r1, %r1, 1;
bra LOOP;
DONE:
)");
  for (const Options& o : orders()) {
    const Outcome r = run_kernel(ptx, 64, o);
    REQUIRE_FALSE(r.result.violation.has_value());
    for (u32 t = 0; t < 64; ++t) CHECK(r.out[t] == (t + 1) / 2 * 5 + t / 2 * 3);
  }
}

TEST_CASE("a lock between lanes of one warp does not hang") {
  const std::string ptx = kernel(R"(
mov.u32 %r0, 0;
SPIN:
atom.shared.cas.b32 %r1, [lock], 0, 1;
setp.ne.u32 %p0, %r1, 0;
@%p0 bra SPIN;
membar.cta;
ld.volatile.shared.u32 %r2, [count];
add.u32 %r2, %r2, 1;
st.volatile.shared.u32 [count], %r2;
mov.u32 %r0, %r2;
membar.cta;
atom.shared.exch.b32 %r3, [lock], 0;
)",
                                 ".shared .align 4 .u32 lock;\n.shared .align 4 .u32 count;\n");
  // Shared memory begins unwritten: one thread clears it before.
  std::string cleared = ptx;
  cleared.replace(cleared.find("SPIN:"), 5,
                  "setp.eq.u32 %p3, %t, 0;\n@%p3 st.shared.u32 [lock], 0;\n@%p3 st.shared.u32 [count], 0;\nbar.sync 0;\nSPIN:");
  for (const Options& o : orders()) {
    Outcome r = run_kernel(cleared, 64, o);
    if (r.result.violation) FAIL(r.result.violation->text());
    std::sort(r.out.begin(), r.out.end());
    for (u32 t = 0; t < 64; ++t) CHECK(r.out[t] == t + 1);
  }
}

TEST_CASE("warps that wait for each other through memory both go on") {
  const std::string ptx = kernel(R"(
setp.ne.u32 %p0, %t, 32;
@!%p0 st.volatile.global.u32 [%rd0+512], 7;
@!%p0 bra END;
setp.ne.u32 %p1, %t, 0;
@%p1 bra END;
WAIT:
ld.volatile.global.u32 %r1, [%rd0+512];
setp.eq.u32 %p2, %r1, 0;
@%p2 bra WAIT;
END:
mov.u32 %r0, %t;
)");
  const LoadResult loaded = load_text(ptx);
  for (const Options& o : orders()) {
    const Device<u32> out(std::vector<u32>(256, 0));
    const RunResult r = launch(loaded, "k", {{1, 1, 1}, {64, 1, 1}}, Arguments().add(out.address()), o);
    CHECK_FALSE(r.violation.has_value());
    CHECK(out.get()[63] == 63);
  }
}

TEST_CASE("shuffles, votes, matches and reductions follow their tables") {
  const auto one = [&](const std::string& body) {
    const Outcome r = run_kernel(kernel(body), 32);
    if (r.result.violation) FAIL(r.result.violation->text());
    CHECK(r.result.notes.empty());
    return r.out;
  };
  const auto down = one("shfl.sync.down.b32 %r0, %t, 4, 31, -1;");
  const auto up = one("shfl.sync.up.b32 %r0, %t, 4, 0, -1;");
  const auto bfly = one("shfl.sync.bfly.b32 %r0, %t, 5, 31, -1;");
  const auto idx = one("shfl.sync.idx.b32 %r0|%p0, %t, 3, 0x181f, -1; @!%p0 add.u32 %r0, %r0, 100;");
  const auto inside = one("shfl.sync.down.b32 %r0|%p0, %t, 4, 31, -1; selp.b32 %r0, 1, 0, %p0;");
  const auto ballot = one("setp.gt.u32 %p0, %t, 9; vote.sync.ballot.b32 %r0, %p0, -1;");
  const auto votes =
      one("setp.lt.u32 %p0, %t, 40; vote.sync.all.pred %p1, %p0, -1; setp.lt.u32 %p0, %t, 4; vote.sync.any.pred %p2, %p0, -1; "
          "vote.sync.uni.pred %p3, !%p0, -1; "
          "selp.b32 %r0, 1, 0, %p1; @%p2 add.u32 %r0, %r0, 2; @%p3 add.u32 %r0, %r0, 4;");
  const auto match = one("and.b32 %r1, %t, 3; match.any.sync.b32 %r0, %r1, -1;");
  const auto all = one("mov.u32 %r1, 5; match.all.sync.b32 %r0|%p0, %r1, -1; @%p0 add.u32 %r0, %r0, 2;");
  const auto add = one("redux.sync.add.s32 %r0, %t, -1;");
  const auto low = one("sub.s32 %r1, 5, %t; redux.sync.min.s32 %r0, %r1, -1;");
  const auto leader = one("elect.sync %r0|%p0, -1; @%p0 add.u32 %r0, %r0, 50;");
  const auto part =
      one("mov.u32 %r0, 0; setp.lt.u32 %p0, %t, 16; @%p0 bra LOW; redux.sync.add.u32 %r0, %t, 0xffff0000; bra END; LOW: shfl.sync.bfly.b32 "
          "%r0, %t, 1, 31, 0xffff; END:");
  for (u32 t = 0; t < 32; ++t) {
    CHECK(down[t] == (t + 4 < 32 ? t + 4 : t));
    CHECK(up[t] == (t >= 4 ? t - 4 : t));
    CHECK(bfly[t] == (t ^ 5));
    CHECK(idx[t] == (t & 24) + 3);
    CHECK(inside[t] == (t + 4 < 32 ? 1 : 0));
    CHECK(ballot[t] == 0xfffffc00u);
    CHECK(votes[t] == 3);
    CHECK(match[t] == 0x11111111u << (t & 3));
    CHECK(all[t] == 1);  // all lanes, plus two: 0xffffffff + 2
    CHECK(add[t] == 496);
    CHECK(low[t] == static_cast<u32>(5 - 31));
    CHECK(leader[t] == (t == 0 ? 50 : 0));
    CHECK(part[t] == (t < 16 ? t ^ 1 : 376));
  }
}

TEST_CASE("lanes meet at warp instructions by their masks, also from different places") {
  const std::string ptx = kernel(R"(
mov.u32 %r0, 0;
and.b32 %r1, %t, 1;
setp.eq.u32 %p0, %r1, 0;
@%p0 bra EVEN;
bar.warp.sync 0xffffffff;
mov.u32 %r0, 1;
bra END;
EVEN:
add.u32 %r0, %r0, 4;
bar.warp.sync 0xffffffff;
END:
)");
  for (const Options& o : orders()) {
    const Outcome r = run_kernel(ptx, 32, o);
    CHECK_FALSE(r.result.violation.has_value());
    for (u32 t = 0; t < 32; ++t) CHECK(r.out[t] == (t % 2 == 0 ? 4 : 1));
  }
}

TEST_CASE("barriers: all threads, some threads, arrivals without waiting, reductions") {
  const std::string turn = kernel(R"(
mul.lo.u32 %r1, %t, 4;
mov.u32 %r2, buffer;
add.u32 %r3, %r2, %r1;
st.shared.u32 [%r3], %t;
bar.sync 0;
sub.u32 %r4, 95, %t;
mad.lo.u32 %r4, %r4, 4, %r2;
ld.shared.u32 %r0, [%r4];
setp.lt.u32 %p0, %t, 50;
bar.red.popc.u32 %r5, 0, %p0;
add.u32 %r0, %r0, %r5;
bar.red.or.pred %p1, 0, %p0;
@%p1 add.u32 %r0, %r0, 1000;
bar.red.and.pred %p1, 0, %p0;
@%p1 add.u32 %r0, %r0, 1000;
)",
                                  ".shared .align 4 .b8 buffer[384];\n");
  const std::string producer = kernel(R"(
mov.u32 %r0, 1;
setp.ge.u32 %p0, %t, 32;
@%p0 bra CONSUME;
mul.lo.u32 %r1, %t, 4;
mov.u32 %r2, buffer;
add.u32 %r2, %r2, %r1;
mul.lo.u32 %r3, %t, 10;
st.shared.u32 [%r2], %r3;
bar.arrive 1, 64;
bra END;
CONSUME:
bar.sync 1, 64;
sub.u32 %r1, 63, %t;
mul.lo.u32 %r1, %r1, 4;
mov.u32 %r2, buffer;
add.u32 %r2, %r2, %r1;
ld.shared.u32 %r0, [%r2];
END:
)",
                                      ".shared .align 4 .b8 buffer[128];\n");
  for (const Options& o : orders()) {
    const Outcome r = run_kernel(turn, 96, o);
    if (r.result.violation) FAIL(r.result.violation->text());
    for (u32 t = 0; t < 96; ++t) CHECK(r.out[t] == 95 - t + 50 + 1000);
    const Outcome p = run_kernel(producer, 64, o);
    if (p.result.violation) FAIL(p.result.violation->text());
    for (u32 t = 32; t < 64; ++t) CHECK(p.out[t] == (63 - t) * 10);
  }
}

TEST_CASE("threads that have exited are not waited for") {
  const std::string ptx = kernel(R"(
mov.u32 %r0, 9;
setp.ge.u32 %p0, %t, 40;
@%p0 ret;
bar.sync 0;
setp.ge.u32 %p0, %t, 20;
@%p0 bra END;
shfl.sync.bfly.b32 %r0, %t, 1, 31, 0xffffffff;
bra END;
END:
)");
  // Lanes 20 to 31 end without the shuffle: those named go on when they have exited.
  for (const Options& o : orders()) {
    const Outcome r = run_kernel(ptx, 64, o);
    if (r.result.violation) FAIL(r.result.violation->text());
    CHECK(r.out[3] == 2);
  }
}

TEST_CASE("what never comes is a time-out that tells who waits where") {
  const Outcome barrier =
      run_kernel(kernel("mov.u32 %r0, 1; setp.eq.u32 %p0, %t, 3; @%p0 bra W; barrier.sync 0; W: bar.warp.sync 0xffffffff;"), 32);
  REQUIRE(barrier.result.violation.has_value());
  CHECK(barrier.result.violation->code == cuda::CUDA_ERROR_LAUNCH_TIMEOUT);
  CHECK(barrier.result.violation->what.find("barrier 0 for all threads") != std::string::npos);
  CHECK(barrier.result.violation->what.find("lanes 0xfffffff7") != std::string::npos);
  CHECK(barrier.result.violation->what.find("are missing") != std::string::npos);
  Options limited;
  limited.instruction_limit = 10000;
  const Outcome forever = run_kernel(kernel("mov.u32 %r0, 0; L: add.u32 %r0, %r0, 1; bra L;"), 32, limited);
  REQUIRE(forever.result.violation.has_value());
  CHECK(forever.result.violation->code == cuda::CUDA_ERROR_LAUNCH_TIMEOUT);
  CHECK(forever.result.violation->what.find("the limit is 10000") != std::string::npos);
}

TEST_CASE("undefined use of masks and aligned barriers is told") {
  const Outcome own = run_kernel(kernel("shfl.sync.idx.b32 %r0, %t, 0, 31, 0xffff;"), 32);
  REQUIRE(own.result.violation.has_value());
  CHECK(own.result.violation->what.find("does not name it") != std::string::npos);
  CHECK(own.result.violation->thread[0] == 16);
  const Outcome aligned =
      run_kernel(kernel("mov.u32 %r0, 1; setp.lt.u32 %p0, %t, 7; @%p0 bra A; bar.sync 0; bra E; A: bar.sync 0; E:"), 32);
  REQUIRE(aligned.result.violation.has_value());
  CHECK(aligned.result.violation->what.find("aligned barrier") != std::string::npos);
  const Outcome note =
      run_kernel(kernel("setp.ge.u32 %p0, %t, 16; @%p0 bra E; shfl.sync.down.b32 %r0, %t, 8, 31, 0xffff; E: mov.u32 %r0, 1;"), 32);
  CHECK_FALSE(note.result.violation.has_value());
  REQUIRE(note.result.notes.size() == 1);
  CHECK(note.result.notes[0].find("takes no part") != std::string::npos);
}

TEST_CASE("blocks of a cooperative launch are all there at once, and a grid is counted once") {
  const std::string ptx = header() + R"(
.visible .entry k(.param .u64 counter)
{
.reg .b64 %rd<4>;
.reg .b32 %r<8>;
.reg .pred %p<4>;
ld.param.u64 %rd0, [counter];
mov.u32 %r0, %tid.x;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra MEET;
atom.global.add.u32 %r1, [%rd0], 1;
mov.u32 %r2, %nctaid.x;
WAIT:
ld.acquire.gpu.global.u32 %r3, [%rd0];
setp.lt.u32 %p1, %r3, %r2;
@%p1 bra WAIT;
MEET:
bar.sync 0;
ret;
}
)";
  const LoadResult loaded = load_text(ptx);
  REQUIRE(loaded.module != nullptr);
  const Device<u32> counter(std::vector<u32>{0});
  Launch l;
  l.module = loaded.module.get();
  l.grid = {100, 1, 1};
  l.block = {64, 1, 1};
  l.cooperative = true;
  const Arguments a = Arguments().add(counter.address());
  l.params = a.data();
  const RunResult r = run(l, memory(), {});
  CHECK_FALSE(r.violation.has_value());
  CHECK(counter.get()[0] == 100);
}
