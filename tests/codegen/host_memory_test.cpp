// Loads, stores and atomics on the CPU against the interpreter: every way of addressing, in and out of range.
#include "codegen/host_agree.h"

using namespace kiln;
using namespace kiln::host_test;

namespace {

const std::vector<std::array<std::uint32_t, 3>> kShapes = {{64, 1, 1}, {45, 1, 1}, {16, 4, 1}, {4, 8, 2}, {2, 3, 5}, {1, 33, 1}};
const std::string kThread = R"(
    %tx = thread_id.x
    %ty = thread_id.y
    %tz = thread_id.z
    %dx = block_dim.x
    %dy = block_dim.y
    %zy = mul %tz, %dy
    %yz = add %zy, %ty
    %row = mul %yz, %dx
    %t = add %row, %tx
    %zero = const 0 : u32
    %one = const 1 : u32
    %two = const 2 : u32
    %three = const 3 : u32
)";

}  // namespace

TEST_CASE("neighbours with a 32-bit index that wraps below zero on the CPU: a guarded stencil") {
  for (const std::string type : {"u32", "i32"}) {
    Agree a("buffer in : u32[*] in\nbuffer out : u32[*] inout", R"(
    %g32 = global_id.x
    %g = cast %g32 : )" + type + R"(
    %one = const 1 : )" + type + R"(
    %n0 = size in
    %n = cast %n0 : )" + type + R"(
    %zero = const 0 : )" + type + R"(
    %end = sub %n, %one
    %low = gt %g, %zero
    %high = lt %g, %end
    %c = and %low, %high
    if %c {
      %l = sub %g, %one
      %r = add %g, %one
      %x = load in[%l]
      %y = load in[%g]
      %z = load in[%r]
      %xy = add %x, %y
      %xyz = add %xy, %z
      store out[%g], %xyz
    }
)");
    a.grid = {4, 1, 1};
    a.buffer(noise(150)).buffer(std::vector<std::uint32_t>(150, 3));
    a.at({{64, 1, 1}, {50, 1, 1}});
  }
}

TEST_CASE("an index that wraps at 2^32 among the lanes of a warp on the CPU") {
  Agree a("buffer in : u32[*] in\nbuffer out : u32[*] inout\nbuffer more : u32[*] inout\nscalar k : u32", kThread + R"(
    %k = param k
    %i = add %t, %k
    %v = load in[%i]
    store out[%t], %v
    %j = sub %t, %three
    %x = load in[%j]
    %two2 = const 1000 : u32
    %w = add %x, %two2
    store more[%i], %w
)");
  a.faults = true;
  a.buffer(noise(64)).buffer(std::vector<std::uint32_t>(64, 3)).buffer(std::vector<std::uint32_t>(64, 3)).scalar(0xfffffff0u);
  a.at({{64, 1, 1}, {20, 1, 1}, {16, 4, 1}});
}

TEST_CASE("rank 2 and 3 accesses on the CPU along rows, down columns and over diagonals") {
  Agree a("buffer in : u32[*, *] in\nbuffer out : u32[*, *, *] inout\nbuffer st : u32[*, *] in strided", kThread + R"(
    %a = load in[%ty, %tx]
    %b = load in[%tx, %ty]
    %c = load in[%tx, %tx]
    %d = load in[%three, %tx]
    %e = load in[%tx, %two]
    %f = load in[%ty, %three]
    %g = load in[%t, %zero]
    %h = load st[%ty, %tx]
    %k = load st[%tx, %three]
    %ty1 = add %ty, %two
    %m = load in[%ty1, %tx]
    %i64 = cast %t : i64
    %o = load in[%i64, %one]
    store out[%zero, %ty, %tx], %a
    store out[%one, %tx, %ty], %b
    store out[%two, %t, %t], %c
    store out[%three, %t, %two], %d
    %four = const 4 : u32
    %five = const 5 : u32
    %six = const 6 : u32
    %seven = const 7 : u32
    %eight = const 8 : u32
    %nine = const 9 : u32
    store out[%four, %two, %t], %e
    store out[%five, %two, %t], %f
    store out[%six, %t, %zero], %g
    store out[%seven, %zero, %t], %h
    store out[%eight, %zero, %t], %k
    store out[%nine, %zero, %t], %m
    store out[%nine, %one, %i64], %o
)");
  a.buffer(noise(66 * 66), {66, 66})
      .buffer(std::vector<std::uint32_t>(10 * 64 * 64, 9), {10, 64, 64})
      .buffer(noise(64 * 200), {64, 64}, {130, 1});
  a.at({{64, 1, 1}, {45, 1, 1}, {16, 4, 1}, {4, 8, 1}, {1, 33, 1}, {12, 4, 1}});
  Agree b("buffer out : u32[*] inout\nbuffer st : u32[*, *] inout strided", kThread + R"(
    %h = load st[%two, %t]
    store out[%t], %h
    store st[%three, %t], %h
)");
  b.buffer(std::vector<std::uint32_t>(64, 9)).buffer(noise(64 * 300), {4, 64}, {4000, 3});
  b.at(kShapes);
}

TEST_CASE("one address for all lanes on the CPU, loaded and stored, and one that only some use") {
  Agree a("buffer in : u32[*] in\nbuffer out : u32[*, *] inout\nshared s : u32[4]", kThread + R"(
    %a = load in[%three]
    store out[%zero, %t], %a
    %k = const 17 : u32
    %only = eq %t, %k
    if %only {
      store out[%one, %two], %t
      store s[%one], %t
      %far = const 60000 : u32
      %b = load s[%one]
      store out[%one, %three], %b
    }
    barrier
    %mine = const 9 : u32
    %few = lt %t, %mine
    if %few {
      %c = load in[%t]
      %lim = const 0 : u32
      %none = lt %c, %lim
      if %none {
        %d = load in[%t]
        store out[%three, %t], %d
      }
    }
)");
  a.buffer(noise(64)).buffer(std::vector<std::uint32_t>(4 * 64, 9), {4, 64});
  a.at(kShapes);
}

TEST_CASE("gathers and scatters on the CPU, with guards around some lanes") {
  Agree a("buffer in : u32[*] in\nbuffer f : f32[*] in\nbuffer d : f64[*] inout\nbuffer out : u32[*] inout", kThread + R"(
    %i = load in[%t]
    %n = size out
    %m = rem %i, %n
    %seven = const 7 : u32
    %p = mul %t, %seven
    %q = rem %p, %n
    %lim = const 40 : u32
    %c = lt %m, %lim
    if %c {
      %x = load f[%m]
      %xb = bit_cast %x : u32
      store out[%q], %xb
      %xd = cast %x : f64
      store d[%q], %xd
    } else {
      %r = load in[%q]
      store out[%q], %r
    }
)");
  a.buffer(noise(67)).buffer(reals(67)).buffer(std::vector<double>(67, 1.5)).buffer(std::vector<std::uint32_t>(67, 9));
  a.at(kShapes);
}

TEST_CASE("a store of small numbers by the only thread of a block on the CPU leaves the next element alone") {
  for (const char* type : {"i8", "u8", "i16", "u16"}) {
    CAPTURE(std::string(type));
    Agree a("buffer b : " + std::string(type) + "[*] inout", kThread + R"(
    %v = load b[%t]
    %w = mul_hi %v, %v
    store b[%t], %w
)");
    const auto bits = noise(64);
    a.buffer(std::vector<std::uint16_t>(bits.begin(), bits.end()));
    for (const unsigned threads : {1u, 33u}) {
      a.block = {threads, 1, 1};
      a.check();
    }
  }
}

TEST_CASE("memory of bool and of 64-bit numbers on the CPU") {
  Agree a("buffer b : bool[*] inout\nbuffer l : i64[*] inout\nbuffer out : u32[*] inout\nshared s : bool[64]\nlocal m : bool[2]",
          kThread + R"(
    %v = load b[%t]
    %n = not %v
    store b[%t], %n
    store s[%t], %v
    store m[%one], %v
    barrier
    %last = const 63 : u32
    %o = xor %t, %one
    %in = lt %o, %last
    %dim = mul %dx, %dy
    %dz = block_dim.z
    %threads = mul %dim, %dz
    %there = lt %o, %threads
    if %there {
      %w = load s[%o]
      %k = load m[%one]
      %x = xor %w, %k
      %u = cast %x : u32
      store out[%t], %u
    }
    %p = load l[%t]
    %q = mul %p, %p
    store l[%t], %q
    %r = load b[%three]
    %ru = cast %r : u32
    %one64 = cast %ru : i64
    %u0 = load l[%t]
    %u1 = add %u0, %one64
    store l[%t], %u1
)");
  std::vector<std::uint8_t> b(64);
  std::vector<std::int64_t> l(64);
  const auto bits = noise(64);
  for (std::size_t i = 0; i < 64; ++i) b[i] = bits[i] & 1, l[i] = static_cast<std::int64_t>(bits[i]) * 12345 - 1000000;
  // One thread reads b[3] and l[3] while others write them: only where that is one thread.
  a.buffer(b).buffer(l).buffer(std::vector<std::uint32_t>(64, 9));
  a.block = {1, 1, 1};
  a.check();
}

TEST_CASE("local memory on the CPU: every lane its own, at constant and computed places, out of range too") {
  Agree a("buffer in : u32[*] in\nbuffer out : u32[*] inout\nlocal l : u32[5]\nlocal m : f32[2, 3]\nslot s : u32", kThread + R"(
    %v = load in[%t]
    %five = const 5 : u32
    %w = rem %v, %five
    for %i = %zero, %five, %one : u32 {
      %x = mul %i, %t
      store l[%i], %x
    }
    for %i2 = %zero, %two, %one : u32 {
      for %j2 = %zero, %three, %one : u32 {
        %x2 = add %i2, %j2
        %f2 = cast %x2 : f32
        store m[%i2, %j2], %f2
      }
    }
    store l[%w], %v
    %half = const 20 : u32
    %c = lt %v, %half
    if %c {
      store l[%two], %three
      store l[%w], %one
    }
    for %j = %zero, %five, %one : u32 {
      %y = load l[%j]
      %g = get s
      %h = mul %g, %three
      %g1 = add %h, %y
      set s, %g1
    }
    %wm = rem %v, %two
    %z = load m[%wm, %two]
    %zu = cast %z : u32
    %k = load l[%w]
    %g2 = get s
    %r = add %g2, %zu
    %r2 = xor %r, %k
    store out[%t], %r2
)");
  a.buffer(noise(64, 40)).buffer(std::vector<std::uint32_t>(64, 9));
  a.at(kShapes);
  Agree b("buffer in : u32[*] in\nbuffer out : u32[*] inout\nlocal l : u32[5]", kThread + R"(
    %v = load in[%t]
    store l[%zero], %v
    store l[%v], %v
    %x = load l[%v]
    store out[%t], %x
    %six = const 6 : u32
    store l[%six], %x
    %y = load l[%six]
    store out[%t], %y
)");
  b.faults = true;
  b.buffer(noise(64, 40)).buffer(std::vector<std::uint32_t>(64, 9));
  b.at({{64, 1, 1}});
  CHECK(b.record().extent == 5);
}

TEST_CASE("big local memory on the CPU lives in the block's context, not on the stack") {
  for (const std::string barrier : {"", "    barrier\n"}) {
    Agree a("buffer in : u32[*] in\nbuffer out : u32[*] inout\nlocal l : u32[5000]", kThread + R"(
    %v = load in[%t]
    %h = const 100 : u32
    %i = mul %v, %h
    store l[%i], %t
)" + barrier + R"(
    %x = load l[%i]
    store out[%t], %x
)");
    a.buffer(noise(64, 40)).buffer(std::vector<std::uint32_t>(64, 9));
    a.at({{64, 1, 1}, {40, 1, 1}});
  }
}

TEST_CASE("accesses out of range on the CPU: dropped, zero, and reported with the coordinate") {
  Agree a("buffer in : u32[*, *] in\nbuffer out : u32[*] inout\nshared s : u32[20]", kThread + R"(
    %minus = const -1 : i32
    %v = load in[%two, %t]
    store out[%t], %v
    %far = const 100 : u32
    %w = load in[%far, %one]
    %x = load in[%minus, %t]
    store s[%t], %t
    barrier
    %y = load s[%t]
    %wx = add %w, %x
    %z = add %wx, %y
    %o = add %t, %far
    store out[%o], %z
    %ti = cast %t : i32
    %neg = add %ti, %minus
    %q = load in[%one, %neg]
    store out[%t], %q
    %old = atomic_add s[%t], %one
    %old2 = atomic_add s[%far], %one
    %sum = add %old, %old2
    %p = add %t, %far
    store out[%p], %sum
)");
  a.faults = true;
  a.buffer(noise(4 * 30), {4, 30}).buffer(std::vector<std::uint32_t>(300, 9));
  a.at({{64, 1, 1}, {45, 1, 1}, {16, 4, 1}, {24, 2, 1}});
  CHECK(a.record().index == 30);
  CHECK(a.record().dimension == 1);
  CHECK(a.record().extent == 30);
}

TEST_CASE("a negative coordinate is reported with its sign extended on the CPU") {
  Agree a("buffer in : u32[*, *] in\nbuffer out : u32[*] inout", kThread + R"(
    %ti = cast %t : i32
    %five = const 5 : i32
    %i = sub %ti, %five
    %v = load in[%i, %one]
    store out[%t], %v
)");
  a.faults = true;
  a.buffer(noise(64 * 3), {64, 3}).buffer(std::vector<std::uint32_t>(64, 9));
  a.block = {40, 1, 1};
  a.check();
  CHECK(a.record().index == static_cast<std::uint64_t>(-5));
  CHECK(a.record().extent == 64);
  CHECK(a.record().dimension == 0);
  CHECK(a.record().thread[0] == 0);
}

TEST_CASE("an empty buffer on the CPU: every access is out of range, none is made") {
  Agree a("buffer in : u32[*] in\nbuffer out : u32[*] inout", kThread + R"(
    %v = load in[%t]
    %w = load in[%zero]
    %x = add %v, %w
    store out[%t], %x
)");
  a.faults = true;
  a.buffer(std::vector<std::uint32_t>{}).buffer(std::vector<std::uint32_t>(64, 9));
  a.at({{40, 1, 1}});
}

TEST_CASE("integer atomics on the CPU, to one place and to many, global and shared, with and without their result") {
  for (const std::string type : {"u32", "i32", "u64", "i64"}) {
    for (const std::string memory : {"g", "s"}) {
      std::string body =
          kThread + "    %v32 = load in[%t]\n    %v = cast %v32 : " + type +
          "\n    %six = const 6 : u32\n    %eight = const 8 : u32\n    %slot0 = rem %v32, %eight\n    %sl = cast %slot0 : " + type + "\n";
      if (memory == "s") {
        body += "    %z = const 1000 : " + type +
                "\n    %n = const 96 : u32\n    %dz = block_dim.z\n    %dxy = mul %dx, %dy\n    %all = mul %dxy, %dz\n    for %i = %t, %n, "
                "%all : u32 {\n      store s[%i], %z\n    }\n    barrier\n";
      }
      int k = 0;
      for (const std::string op : {"add", "sub", "min", "max", "and", "or", "xor"}) {
        const std::string n = std::to_string(k);
        body += "    %k" + n + " = const " + n + " : u32\n    atomic_" + op + " " + memory + "[%k" + n + "], %v\n";
        body += "    %b" + n + " = const " + std::to_string(8 + 8 * k) + " : u32\n    %i" + n + " = add %b" + n + ", %slot0\n    atomic_" +
                op + " " + memory + "[%i" + n + "], %v\n";
        ++k;
      }
      // One lane, so that the results do not depend on an order.
      body += "    %lone = const 11 : u32\n    %me = eq %t, %lone\n    if %me {\n      %k7 = const 7 : u32\n      %o1 = atomic_add " +
              memory + "[%k7], %v\n      %o2 = atomic_exchange " + memory + "[%k7], %sl\n      %o3 = atomic_cas " + memory +
              "[%k7], %sl, %v\n      %o4 = atomic_cas " + memory + "[%k7], %sl, %o1\n      %o5 = atomic_min " + memory + "[%k7], %sl\n" +
              "      %s1 = add %o1, %o2\n      %s2 = add %s1, %o3\n      %s3 = xor %s2, %o4\n      %s4 = add %s3, %o5\n      %seventy = "
              "const 70 : u32\n      store g[%seventy], %s4\n    }\n";
      if (memory == "s")
        body +=
            "    barrier\n    for %j = %t, %n, %all : u32 {\n      %sev = const 70 : u32\n      %keep = eq %j, %sev\n      if %keep { "
            "continue\n      }\n      %x = load s[%j]\n      store g[%j], %x\n    }\n";
      Agree a("buffer in : u32[*] in\nbuffer g : " + type + "[*] inout\nshared s : " + type + "[96]", body);
      a.buffer(noise(64, 100000));
      if (type[1] == '3') a.buffer(std::vector<std::uint32_t>(96, 1000));
      else a.buffer(std::vector<std::uint64_t>(96, 1000));
      a.at({{64, 1, 1}, {45, 1, 1}});
    }
  }
}

TEST_CASE("float atomics on the CPU: minimum, maximum, exchange, and exact additions; subnormals are flushed in global f32 only") {
  for (const std::string type : {"f32", "f64"}) {
    Agree a("buffer in : u32[*] in\nbuffer g : " + type + "[*] inout\nshared s : " + type + "[8]",
            kThread + "    %v32 = load in[%t]\n    %v = cast %v32 : " + type + R"(
    %tiny = const 0x80000001 : )" +
                (type == "f32" ? "f32" : "f32") + R"(
    %tt = cast %tiny : )" +
                type + R"(
    %first = eq %t, %zero
    %fz = cast %zero : )" +
                type + R"(
    %nfz = neg %fz
    %eight = const 8 : u32
    if %first {
      for %i = %zero, %eight, %one : u32 {
        store s[%i], %fz
      }
      %o0 = atomic_add g[%three], %tt
      %k4 = const 4 : u32
      store g[%k4], %o0
      store s[%three], %tt
      atomic_add s[%three], %tt
    }
    barrier
    atomic_add g[%zero], %v
    atomic_min g[%one], %v
    atomic_max g[%two], %v
    atomic_add s[%zero], %v
    atomic_min s[%one], %v
    atomic_max s[%two], %v
    barrier
    if %first {
      %nine = const 9 : u32
      for %j = %zero, %eight, %one : u32 {
        %x = load s[%j]
        %to = add %j, %nine
        store g[%to], %x
      }
      %old = atomic_exchange g[%eight], %nfz
      store g[%nine], %old
    }
)");
    a.buffer(noise(64, 1000));
    std::vector<double> d(20, 7.0);
    d[3] = -1e-45 * 1e-0;
    std::vector<float> f(d.begin(), d.end());
    if (type == "f32") a.buffer(f);
    else a.buffer(d);
    a.at({{64, 1, 1}, {45, 1, 1}});
  }
}
