// What the PTX computes, against the interpreter bit for bit: the traps of this backend.
#include <cmath>
#include <limits>

#include "nvptx_run.h"

using namespace kiln;
using namespace kiln::test;

namespace {

std::vector<std::uint32_t> iota(std::uint32_t n, std::uint32_t first = 0) {
  std::vector<std::uint32_t> v(n);
  for (std::uint32_t i = 0; i < n; ++i) v[i] = first + i;
  return v;
}

std::vector<float> odd_floats(std::uint32_t n) {
  std::vector<float> v(n);
  for (std::uint32_t i = 0; i < n; ++i)
    v[i] = (i % 2 == 0 ? 1.0f : -1.0f) * std::ldexp(1.0f + static_cast<float>(i * 37 % 101) / 101.0f, static_cast<int>(i * 7 % 40) - 20);
  return v;
}

// `body` sees %i (the linear thread), %v (x[%i]) and a few constants, and stores to y.
PtxRun warp_kernel(const std::string& type, const std::string& body, std::vector<std::uint8_t> x, std::uint32_t threads,
                   const std::string& declarations = "") {
  const std::uint32_t size = type == "f64" || type == "u64" || type == "i64" ? 8 : type == "bool" ? 1 : 4;
  PtxRun run;
  run.block[0] = threads;
  run.buffers = {std::move(x), std::vector<std::uint8_t>(std::size_t{threads} * size)};
  run.buffers[0].resize(std::size_t{threads} * size);
  run_both("options checked=false\nbuffer x : " + type + "[*] in\nbuffer y : " + type + "[*] inout\n" + declarations +
               "body {\n%i = thread_id.x\n%lane = lane_id\n%0 = const 0 : u32\n%1 = const 1 : u32\n%2 = const 2 : u32\n%3 = const 3 : "
               "u32\n%5 = const 5 : u32\n"
               "%7 = const 7 : u32\n%11 = const 11 : u32\n%20 = const 20 : u32\n%v = load x[%i]\n" +
               body + "\n}",
           run);
  return run;
}

}  // namespace

TEST_CASE("a choice between two parameters, of which LLVM makes a choice between their addresses, gives the one chosen") {
  // Random kernel 635900.
  PtxRun run;
  run.buffers = {bytes_of(std::vector<std::uint64_t>{1, 2, 3, 4, 5}), std::vector<std::uint8_t>(32 * 8)};
  run.scalars = {77};
  run_both(
      "options checked=false\nbuffer x : u64[*] in\nscalar s : u32\nbuffer y : u64[*] out\nbody {\n%i = thread_id.x\n%c = cast %i : bool\n"
      "%n = extent x.0 : u32\n%s = param s\n%r = select %c, %n, %s\n%w = cast %r : u64\nstore y[%i], %w\n}",
      run);
  const auto got = values_of<std::uint64_t>(run.buffers[1]);
  CHECK(got[0] == 77);
  CHECK(got[1] == 5);
}

TEST_CASE("64-bit shifts count with all 64 bits of the count") {
  // LLVM 22 made one clamped shift of the comparison and the shift, and PTX takes 32 bits of a count.
  const std::vector<std::uint64_t> counts{0, 1, 31, 32, 63, 64, 65, 1ull << 32, (1ull << 32) + 1, 1ull << 63, ~0ull};
  for (const std::string op : {"shl", "shr"}) {
    for (const std::string type : {"u64", "i64"}) {
      CAPTURE(op);
      CAPTURE(type);
      PtxRun run;
      run.block[0] = static_cast<std::uint32_t>(counts.size());
      run.buffers = {bytes_of(counts), std::vector<std::uint8_t>(counts.size() * 8)};
      run_both("options checked=false\nbuffer x : " + type + "[*] in\nbuffer y : " + type +
                   "[*] out\nbody {\n%i = thread_id.x\n%n = load x[%i]\n%v = const 0x8765432112345678 : " + type + "\n%r = " + op +
                   " %v, %n\nstore y[%i], %r\n}",
               run);
      const auto got = values_of<std::uint64_t>(run.buffers[1]);
      CHECK(got[5] == (op == "shr" && type == "i64" ? ~0ull : 0));
      CHECK(got[7] == got[5]);
    }
  }
}

TEST_CASE("neg and abs keep every bit of a NaN that is stored") {
  const std::vector<std::uint32_t> bits{0x7fc00001, 0xffc12345, 0x7f800001, 0xff800001, 0x80000000, 0, 0x7f800000, 0x00000001};
  PtxRun run;
  run.block[0] = 8;
  run.buffers = {bytes_of(bits), std::vector<std::uint8_t>(32), std::vector<std::uint8_t>(32)};
  run_both(R"(
    options checked=false
    buffer x : f32[*] in
    buffer y : u32[*] out
    buffer z : u32[*] out
    body {
      %i = thread_id.x
      %v = load x[%i]
      %n = neg %v
      %a = abs %v
      %nb = bit_cast %n : u32
      %ab = bit_cast %a : u32
      store y[%i], %nb
      store z[%i], %ab
    })",
           run);
  CHECK(values_of<std::uint32_t>(run.buffers[1])[1] == 0x7fc12345);
  CHECK(values_of<std::uint32_t>(run.buffers[2])[3] == 0x7f800001);
}

TEST_CASE("warp reductions and scans of full and partial warps have the bits of 32 lanes") {
  for (const std::uint32_t threads : {1u, 5u, 31u, 32u, 33u, 45u, 64u, 70u}) {
    for (const std::string how : {"add", "mul", "min", "max"}) {
      for (const std::string op : {"warp_reduce", "warp_scan", "warp_scan_exclusive"}) {
        CAPTURE(threads);
        CAPTURE(op);
        CAPTURE(how);
        const std::string body = "%r = " + op + "." + how + " %v\nstore y[%i], %r";
        warp_kernel("f32", body, bytes_of(odd_floats(threads)), threads);
        warp_kernel("u32", body, bytes_of(iota(threads, 3)), threads);
        std::vector<double> doubles;
        for (const float f : odd_floats(threads)) doubles.push_back(f / 3.0);
        warp_kernel("f64", body, bytes_of(doubles), threads);
        warp_kernel("i64", body, bytes_of(doubles), threads);
      }
    }
  }
}

TEST_CASE("bools and integers combine bit by bit") {
  for (const std::uint32_t threads : {7u, 32u, 50u}) {
    for (const std::string how : {"and", "or", "xor"}) {
      for (const std::string op : {"warp_reduce", "warp_scan", "warp_scan_exclusive"}) {
        const std::string body = "%r = " + op + "." + how + " %v\nstore y[%i], %r";
        std::vector<std::uint8_t> bools(threads);
        for (std::uint32_t i = 0; i < threads; ++i) bools[i] = i % 3 != 1;
        warp_kernel("bool", body, bools, threads);
        warp_kernel("u32", body, bytes_of(iota(threads, 0x1234567)), threads);
      }
    }
  }
}

TEST_CASE("only the lanes of a branch take part in its warp operations") {
  for (const std::uint32_t threads : {13u, 32u, 61u}) {
    CAPTURE(threads);
    warp_kernel("f32", R"(
      %m = rem %lane, %3
      %c = eq %m, %1
      if %c {
        %s = warp_scan.add %v
        %r = warp_reduce.mul %v
        %e = warp_scan_exclusive.add %v
        %t = add %s, %r
        %u = add %t, %e
        store y[%i], %u
      } else {
        %d = lt %lane, %11
        if %d {
          %g = warp_reduce.add %v
          store y[%i], %g
        } else {
          %h = shuffle_xor %v, %5
          %q = shuffle_idx %h, %20
          %z = shuffle_up %q, %2
          %w = shuffle_down %z, %7
          store y[%i], %w
        }
        %after = warp_scan.add %v
        %old = load y[%i]
        %sum = add %old, %after
        store y[%i], %sum
      })",
                bytes_of(odd_floats(threads)), threads);
  }
}

TEST_CASE("lanes that leave a loop or return are missed by nobody and waited for by nobody") {
  for (const std::uint32_t threads : {9u, 32u, 64u, 77u}) {
    CAPTURE(threads);
    warp_kernel("u32", R"(
      for %k = %0, %20, %1 : u32 {
        %a = add %k, %lane
        %m = rem %a, %7
        %c = eq %m, %3
        if %c {
          %b = ge %k, %5
          if %b {
            %stop = gt %lane, %20
            if %stop {
              return
            } else {
              break
            }
          }
          continue
        }
        %r = warp_reduce.add %v
        %old = get acc
        %new = add %old, %r
        set acc, %new
        %odd = and %k, %1
        %o = eq %odd, %1
        if %o {
          %s = shuffle_xor %new, %1
          %t = mul %s, %3
          set acc, %t
          %late = eq %lane, %11
          if %late {
            break
          }
        }
        %x = get acc
        %y = warp_scan.add %x
        set acc, %y
      }
      %end = get acc
      %all = warp_reduce.add %end
      store y[%i], %all)",
                bytes_of(iota(threads, 100)), threads, "slot acc : u32\n");
  }
}

TEST_CASE("while loops and switches with lanes of different minds") {
  for (const std::uint32_t threads : {32u, 40u}) {
    CAPTURE(threads);
    warp_kernel("u32", R"(
      while {
        %a = get n
        %any = warp_reduce.max %a
        %big = lt %any, %20
        %c = lt %a, %lane
        %both = and %c, %big
        yield %both
      } do {
        %b = get n
        %s = warp_scan.add %b
        %m = rem %b, %3
        switch %m {
          case 0 {
            %p = shuffle_up %s, %1
            set acc, %p
            %q = add %b, %1
            set n, %q
          }
          case 1 {
            %p1 = warp_reduce.add %s
            set acc, %p1
            %q1 = add %b, %2
            set n, %q1
            %h = gt %lane, %20
            if %h {
              break
            }
          }
          default {
            %q2 = add %b, %3
            set n, %q2
            continue
          }
        }
        %again = lt %b, %lane
        %t = ballot %again
        %old = get acc
        %new = xor %old, %t
        set acc, %new
      }
      %end = get acc
      %left = get n
      %sum = add %end, %left
      %all = warp_scan.add %sum
      store y[%i], %all)",
                bytes_of(iota(threads)), threads, "slot n : u32\nslot acc : u32\n");
  }
}

TEST_CASE("a switch with many cases goes where each lane wants") {
  for (const std::string warp : {"", "%w = warp_reduce.add %v\n%v2 = add %w, %v\n", "%w = shuffle_xor %v, %1\n%v2 = add %w, %v\n"}) {
    std::string body = "%m = rem %v, %11\nswitch %m {\n";
    for (int c = 0; c < 9; ++c) {
      std::string inner = warp;
      for (std::size_t at = 0; (at = inner.find("%w", at)) != std::string::npos; at += 3) inner.insert(at + 2, std::to_string(c));
      for (std::size_t at = 0; (at = inner.find("%v2", at)) != std::string::npos; at += 3) inner.insert(at + 3, "_" + std::to_string(c));
      const std::string n = std::to_string(c);
      body += "case " + n + " {\n" + inner + "%k" + n + " = const " + std::to_string(c * c * 7919 + 13) + " : u32\n%r" + n + " = mul " +
              (warp.empty() ? "%v" : "%v2_" + n) + ", %k" + n + "\nset acc, %r" + n + "\n}\n";
    }
    body += "default {\nset acc, %5\n}\n}\n%end = get acc\n%all = warp_scan.add %end\nstore y[%i], %all";
    warp_kernel("u32", body, bytes_of(iota(45, 3)), 45, "slot acc : u32\n");
  }
}

TEST_CASE("barriers and block votes count the threads that have not returned") {
  for (const std::uint32_t threads : {16u, 64u, 100u}) {
    CAPTURE(threads);
    const PtxRun run = warp_kernel("u32", R"(
      %gone = lt %i, %5
      if %gone {
        return
      }
      store s[%i], %v
      barrier
      %odd = and %v, %1
      %c = eq %odd, %1
      %n = barrier_count %c
      %a = barrier_any %c
      %b = barrier_all %c
      %na = cast %a : u32
      %nb = cast %b : u32
      %bd = block_dim.x
      %last = sub %bd, %1
      %back = sub %last, %i
      %inside = ge %back, %5
      %at = select %inside, %back, %i
      %other = load s[%at]
      %t = add %other, %n
      %u = shl %na, %7
      %w = add %t, %u
      %z = add %w, %nb
      store y[%i], %z)",
                                   bytes_of(iota(threads, 1)), threads, "shared s : u32[100]\n");
    CHECK(values_of<std::uint32_t>(run.buffers[1])[0] == 0);
    CHECK(values_of<std::uint32_t>(run.buffers[1])[5] != 0);
  }
}

TEST_CASE("block_uniform gives every thread the value of one of them") {
  for (const std::uint32_t threads : {8u, 32u, 75u}) {
    const std::vector<std::uint64_t> same(threads, 0x123456789abcdef0ull);
    const PtxRun run = warp_kernel("u64", "%u = block_uniform %v\nstore y[%i], %u\n%w = block_uniform %u\n%s = add %w, %u\nstore y[%i], %s",
                                   bytes_of(same), threads);
    CHECK(values_of<std::uint64_t>(run.buffers[1]).back() == 0x123456789abcdef0ull * 2);
  }
}

TEST_CASE("float minimum and maximum by atomics know NaN and the sign of zero") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values{3.0f, nan, -0.0f, 0.0f, -inf, inf, 1e-40f, -1e-40f};
  PtxRun run;
  run.block[0] = 8;
  run.buffers = {bytes_of(values), bytes_of(std::vector<float>{nan, nan, 0.0f, -0.0f, 5.0f})};
  run_both(R"(
    options checked=false
    buffer x : f32[*] in
    buffer y : f32[*] inout
    body {
      %i = thread_id.x
      %v = load x[%i]
      %0 = const 0 : u32
      %1 = const 1 : u32
      %2 = const 2 : u32
      %3 = const 3 : u32
      %a = atomic_min y[%0], %v
      %b = atomic_max y[%1], %v
      %z = abs %v
      %n = neg %z
      %c = atomic_min y[%2], %z
      %d = atomic_max y[%3], %n
    })",
           run);
  const auto y = values_of<float>(run.buffers[1]);
  CHECK(y[0] == -inf);
  CHECK(y[1] == inf);
  CHECK(!std::signbit(y[2]));
  CHECK(std::signbit(y[3]));
}

TEST_CASE("integer atomics of many threads lose nothing") {
  PtxRun run;
  run.grid = 3;
  run.block[0] = 70;
  run.buffers = {bytes_of(std::vector<std::uint32_t>{0, 0xffffffffu, 0, 0})};
  run_both(R"(
    options checked=false
    buffer y : u32[*] inout
    shared s : u32[2]
    body {
      %i = global_id.x
      %t = thread_id.x
      %0 = const 0 : u32
      %1 = const 1 : u32
      %2 = const 2 : u32
      %3 = const 3 : u32
      %first = eq %t, %0
      if %first {
        store s[%0], %0
      }
      barrier
      %a = atomic_add y[%0], %i
      %b = atomic_min y[%1], %i
      %c = atomic_max y[%2], %i
      %d = atomic_add s[%0], %1
      barrier
      if %first {
        %n = load s[%0]
        %e = atomic_add y[%3], %n
      }
    })",
           run);
  const auto y = values_of<std::uint32_t>(run.buffers[0]);
  CHECK(y == std::vector<std::uint32_t>{209 * 210 / 2, 0, 209, 210});
}

TEST_CASE("a checked access out of range gives zero, is dropped, and one is reported whole") {
  const std::string text = R"(
    file "a.cpp"
    buffer x : u32[*, *] in
    buffer y : u32[*] inout
    body {
      %i = thread_id.x
      %9 = const 9 : i32
      %s = cast %i : i32
      %row = sub %s, %9 : i32 @0:7
      %two = const 2 : u64
      %v = load x[%row, %two] : u32 @0:8
      %one = const 1 : u32
      %w = add %v, %one
      %big = const 100 : u32
      %far = mul %i, %big
      store y[%far], %w @0:9
      %old = atomic_add y[%i], %w @0:10
    })";
  const ir::Prepared prepared = as_written(kernel_text(text));
  PtxRun run;
  run.buffers = {bytes_of(iota(12, 50)), bytes_of(std::vector<std::uint32_t>(20))};
  run.extents = {{4, 3}, {20}};
  run_both(prepared, run);
  REQUIRE(run.fault.has_value());
  // The record of the PTX itself: the only fault there is, so that "some first one" is known.
  PtxRun one;
  one.block[0] = 10;
  one.buffers = {bytes_of(iota(12, 50)), bytes_of(std::vector<std::uint32_t>(1000))};
  interp::Launch launch;
  launch.block[0] = 1;
  launch.args.resize(2);
  launch.args[0] = {.is_buffer = true, .bytes = &one.buffers[0], .byte_offset = 0, .extents = {4, 3}, .strides = {}, .bits = 0};
  launch.args[1] = {.is_buffer = true, .bytes = &one.buffers[1], .byte_offset = 0, .extents = {1000}, .strides = {}, .bits = 0};
  const interp::Outcome ran = run_ptx(ptx_of(prepared), prepared, launch);
  REQUIRE(ran.misuse.empty());
  REQUIRE(ran.fault.has_value());
  CHECK(ran.fault->state == 2);
  CHECK(ran.fault->kind == 1);
  CHECK(ran.fault->site == 0);
  CHECK(ran.fault->dimension == 0);
  CHECK(static_cast<std::int64_t>(ran.fault->index) == -9);
  CHECK(ran.fault->extent == 4);
  CHECK(ran.fault->thread[0] == 0);
}

TEST_CASE("dynamic shared memory is as long as the launch says") {
  PtxRun run;
  run.block[0] = 16;
  run.dynamic_shared = 40;
  run.buffers = {bytes_of(iota(16))};
  run_both(R"(
    buffer y : u32[*] inout
    shared s : u32[3]
    shared d : u32[dynamic]
    body {
      %i = thread_id.x
      %n = size d
      %v = load y[%i]
      %zero = const 0 : u32
      store d[%i], %v
      barrier
      %r = load d[%i]
      %t = add %r, %n
      store y[%i], %t
    })",
           run);
  CHECK(run.fault.has_value());  // threads 10 to 15
}

TEST_CASE("loops end where their type ends") {
  for (const std::string type : {"i32", "u32", "i64", "u64"}) {
    const bool wide = type[1] == '6', sign = type[0] == 'i';
    const std::string top = wide ? (sign ? "0x7fffffffffffffff" : "0xffffffffffffffff") : (sign ? "0x7fffffff" : "0xffffffff");
    for (const std::string step : {"1", "2", "3", "1000000000"}) {
      CAPTURE(type);
      CAPTURE(step);
      PtxRun run;
      run.block[0] = 8;
      run.buffers = {bytes_of(iota(8))};
      run_both(
          "options checked=false\nbuffer y : u32[*] inout\nslot n : u32\nbody {\n%i = thread_id.x\n%1 = const 1 : u32\n%w = cast %i : " +
              type + "\n%hi = const " + top + " : " + type + "\n%lo = sub %hi, %w\n%s = const " + step + " : " + type +
              "\nfor %k = %lo, %hi, %s : " + type + " {\n%c = get n\n%d = add %c, %1\nset n, %d\n}\n%e = get n\nstore y[%i], %e\n}",
          run);
      const std::uint32_t s = static_cast<std::uint32_t>(std::stoul(step));
      CHECK(values_of<std::uint32_t>(run.buffers[0])[7] == (7 + s - 1) / s);
    }
  }
}

TEST_CASE("divisions by zero and of the smallest by -1 have our values") {
  const std::int32_t min = std::numeric_limits<std::int32_t>::min();
  const std::vector<std::int32_t> a{7, min, min, 0, -7, 5}, b{0, -1, 0, 0, 2, -3};
  PtxRun run;
  run.block[0] = 6;
  run.buffers = {bytes_of(a), bytes_of(b), bytes_of(std::vector<std::int32_t>(6)), bytes_of(std::vector<std::int32_t>(6))};
  run_both(R"(
    options checked=false
    buffer a : i32[*] in
    buffer b : i32[*] in
    buffer q : i32[*] out
    buffer r : i32[*] out
    body {
      %i = thread_id.x
      %x = load a[%i]
      %y = load b[%i]
      %d = div %x, %y
      %m = rem %x, %y
      store q[%i], %d
      store r[%i], %m
    })",
           run);
  CHECK(values_of<std::int32_t>(run.buffers[2]) == std::vector<std::int32_t>{-1, min, -1, -1, -3, -1});
  CHECK(values_of<std::int32_t>(run.buffers[3]) == std::vector<std::int32_t>{7, 0, min, 0, -1, 2});
}
