// Control flow, barriers, and the lanes that warp operations name.
#include "nvptx_kernels.h"
#include "support/ptxas.h"

using namespace kiln;
using namespace kiln::test;

namespace {

std::string compiled(const std::string& body, bool full_warps = true, const std::string& declarations = "") {
  const ir::Prepared prepared = as_written(
      kernel_text("options checked=false\nbuffer x : u32[*] inout\n" + declarations + "body {\n%i = thread_id.x\n%n = size x\n" +
                  "%0 = const 0 : u32\n%1 = const 1 : u32\n%3 = const 3 : u32\n%v = load x[%i]\n%odd = lt %v, %3\n" + body + "\n}"));
  CompileOptions options = ptx_options();
  options.block_multiple_of_32 = full_warps;
  for (const std::string arch : {"sm_75", "sm_80", "sm_90", "sm_120"}) {
    if (no_ptxas()) break;
    options.arch = arch;
    const std::string ptx = ptx_of(prepared, options);
    const Assembled assembled = assemble_ptx(ptx, arch);
    CHECK_MESSAGE(assembled.ok, assembled.messages, ptx);
  }
  options.arch = "sm_80";
  const std::string ptx = ptx_of(prepared, options);
  CHECK(!has(ptx, "activemask"));
  CHECK(!has(ptx, "__local_depot"));
  return ptx;
}

constexpr const char* kBallot = "vote.sync.ballot.b32";

}  // namespace

TEST_CASE("uniform code of full blocks names all lanes and asks nobody") {
  const std::string ptx = compiled(R"(
    %b = block_id.x
    %u = lt %b, %3
    if %u {
      %s = shuffle_xor %v, %1
      store x[%i], %s
    }
    for %k = %0, %n, %1 : u32 {
      %w = load x[%k]
      %t = shuffle_down %w, %1
      store x[%i], %t
    })");
  CHECK(count(ptx, kBallot) == 0);
  CHECK(count(ptx, "shfl.sync") == count(ptx, "31, -1;"));
}

TEST_CASE("a branch that splits a warp asks once, and the other side is the rest") {
  const std::string ptx = compiled(R"(
    if %odd {
      %s = shuffle_xor %v, %1
      store x[%i], %s
    } else {
      %t = shuffle_up %v, %1
      store x[%i], %t
    })");
  CHECK(count(ptx, kBallot) == 1);
  CHECK(has(ptx, "not.b32"));
}

TEST_CASE("a branch without warp operations costs nothing, and behind it everybody is there") {
  const std::string ptx = compiled(R"(
    if %odd {
      store x[%v], %i
    }
    %s = warp_reduce.add %v
    store x[%i], %s)");
  CHECK(count(ptx, kBallot) == 0);
  CHECK(has(ptx, "redux.sync.add.s32"));
  CHECK(has(ptx, ", -1;"));
}

TEST_CASE("after lanes have returned the others ask who is left") {
  const std::string ptx = compiled(R"(
    if %odd {
      return
    }
    %s = shuffle_xor %v, %1
    %t = shuffle_xor %s, %3
    store x[%i], %t)");
  CHECK(count(ptx, kBallot) == 1);
  const std::string together = compiled(R"(
    %b = block_id.x
    %u = lt %b, %3
    if %u {
      return
    }
    %s = shuffle_xor %v, %1
    store x[%i], %s)");
  CHECK(count(together, kBallot) == 0);
}

TEST_CASE("a loop whose lanes stop at different times asks at its head, once an iteration") {
  const std::string ptx = compiled(R"(
    for %k = %0, %v, %1 : u32 {
      %s = shuffle_xor %k, %1
      %t = shuffle_xor %s, %3
      store x[%i], %t
    }
    %e = shuffle_xor %v, %1
    store x[%i], %e)");
  CHECK(count(ptx, kBallot) == 2);  // entering, and at the latch
  CHECK(count(ptx, ", -1;") >= 2);  // the first ballot and the shuffle behind the loop
}

TEST_CASE("where a warp operation can follow a break or continue of some lanes, every join on the way asks who stays") {
  const std::string ptx = compiled(R"(
    for %k = %0, %n, %1 : u32 {
      %w = load x[%k]
      %small = lt %w, %v
      if %small {
        %tiny = lt %w, %3
        if %tiny {
          break
        } else {
          continue
        }
      }
      %s = shuffle_xor %w, %1
      store x[%i], %s
    })");
  CHECK(count(ptx, kBallot) == 2);  // the join before the shuffle, and the latch
  const std::string last = compiled(R"(
    for %k = %0, %n, %1 : u32 {
      %w = load x[%k]
      %s = shuffle_xor %w, %1
      store x[%i], %s
      %small = lt %w, %v
      if %small {
        break
      }
    })");
  CHECK(count(last, kBallot) == 1);  // nothing follows in the iteration: the latch alone
}

TEST_CASE("a loop without warp operations is left directly") {
  const std::string ptx = compiled(R"(
    for %k = %0, %n, %1 : u32 {
      %w = load x[%k]
      %small = lt %w, %v
      if %small {
        break
      }
      store x[%i], %w
    }
    %s = shuffle_xor %v, %1
    store x[%i], %s)");
  CHECK(count(ptx, kBallot) == 0);
}

TEST_CASE("while and switch divide lanes too") {
  const std::string ptx = compiled(R"(
    while {
      %a = get m
      %c = lt %a, %n
      yield %c
    } do {
      %b = get m
      %s = shuffle_xor %b, %1
      %next = add %s, %v
      set m, %next
    }
    switch %v {
      case 1 {
        %t = shuffle_xor %v, %1
        store x[%i], %t
      }
      case 2 {
        store x[%i], %0
      }
      default {
        %u = shuffle_up %v, %1
        store x[%i], %u
      }
    })",
                                   true, "slot m : u32\n");
  CHECK(count(ptx, kBallot) == 3);
}

TEST_CASE("a block of a known size knows the lanes of its last warp") {
  const char* const body = "%s = shuffle_xor %v, %1\nstore x[%i], %s";
  CHECK(has(compiled(body, false, "block_size 64, 2, 1\n"), ", -1;"));
  CHECK(has(compiled(body, false, "block_size 5, 2, 1\n"), ", 1023;"));
  const std::string last = compiled(body, false, "block_size 33, 1, 1\n");
  CHECK(!has(last, ", -1;"));
  CHECK(count(last, kBallot) == 0);
  CHECK(!has(last, "%ntid"));
}

TEST_CASE("a barrier is the aligned form until lanes may have returned alone") {
  CHECK(has(compiled("barrier"), "bar.sync"));
  const std::string after = compiled("if %odd {\nreturn\n}\nbarrier\n%c = barrier_count %odd\nstore x[%i], %c");
  CHECK(has(after, "barrier.sync"));
  CHECK(has(after, "barrier.red.popc"));
  CHECK(!has(after, "bar.sync"));
  const std::string before = compiled("barrier\nif %odd {\nreturn\n}\nstore x[%i], %0");
  CHECK(has(before, "bar.sync"));
  CHECK(!has(before, "barrier.sync"));
  // In a loop the barrier of the next iteration comes after the return of this one.
  const std::string loop = compiled("for %k = %0, %n, %1 : u32 {\nbarrier\nif %odd {\nreturn\n}\n}");
  CHECK(has(loop, "barrier.sync"));
}

TEST_CASE("the value of block_uniform that is the same anyway needs only the barrier") {
  const std::string ptx = compiled("%u = block_uniform %n\nstore x[%i], %u");
  CHECK(has(ptx, "bar.sync"));
  CHECK(!has(ptx, "atom"));
}

TEST_CASE("a loop with constant bounds is unrolled, one with run-time bounds has no wrap") {
  const std::string fixed = compiled(R"(
    %8 = const 8 : u32
    for %k = %0, %8, %1 : u32 {
      %w = load x[%k]
      %p = mul %w, %k
      store x[%i], %p
    })");
  CHECK(!has(fixed, "@%p"));
  // The last value below the type's end plus the step would wrap: the latch compares what is left instead.
  const std::string end = compiled(R"(
    for %k = %v, %n, %3 : u32 {
      store x[%k], %0
    })");
  CHECK(has(end, "sub"));
}

TEST_CASE("code behind a return, break or continue that always happens is dropped without complaint") {
  compiled("if %odd {\nreturn\n} else {\nreturn\n}\n%s = shuffle_xor %v, %1\nstore x[%i], %s");
  compiled("for %k = %0, %n, %1 : u32 {\n%s = shuffle_xor %v, %1\nstore x[%i], %s\nbreak\n}");
  compiled("for %k = %0, %n, %1 : u32 {\nif %odd {\nbreak\n} else {\ncontinue\n}\n%s = shuffle_xor %v, %1\nstore x[%i], %s\n}");
  compiled("while {\n%t = const true : bool\nyield %t\n} do {\n%s = shuffle_xor %v, %1\nstore x[%i], %s\nif %odd {\nbreak\n}\n}");
}
