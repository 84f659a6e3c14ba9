#include <cmath>

#include "interp/fixture.h"

using namespace kiln;
using namespace kiln::interp::testing;
using U = std::vector<std::uint32_t>;

namespace {

const std::string kValues = R"(
    %i = thread_id.x
    %g = global_id.x
    %b = block_id.x
    %zero = const 0 : u32
    %one = const 1 : u32
    %is0 = eq %i, %zero
    %n = block_dim.x
    %last = sub %n, %one
    %rev = sub %last, %i
)";
const std::string kMemories = "buffer out : u32[*] inout\nbuffer ro : u32[*] in\nshared s : u32[64]\nlocal l : u32[2]\n";

std::string misuse(const std::string& body, std::uint32_t block = 64, std::uint32_t grid = 1) {
  Case c(kMemories, kValues + body);
  c.buffer(u32s(512)).buffer(u32s(64)).threads(block, grid);
  return c.misuse();
}

}  // namespace

TEST_CASE("an access out of range of a checked kernel is dropped and the first one recorded") {
  Case c("buffer in : u32[*, *] in\nbuffer out : u32[*] inout\nbuffer count : u32[*] inout\nscalar k : i32", R"(
    %t = thread_id.x
    %k = param k
    %one = const 1 : i32
    %zero = const 0 : i32
    %ti = cast %t : i32
    %row = add %ti, %k
    %v = load in[%row, %zero] @0:7
    %seven = const 7 : u32
    %v7 = add %v, %seven
    store out[%t], %v7 @0:8
    %old = atomic_add count[%row], %seven @0:9
    %old1 = add %old, %seven
    store out[%ti], %old1 @0:10)");
  SUBCASE("above") {
    c.buffer(U{1, 2, 3, 4, 5, 6}, {3, 2}).buffer(u32s(40)).buffer(u32s(3)).scalar(0).threads(40);
    const interp::Outcome o = c.run();
    CHECK(o.misuse.empty());
    REQUIRE(o.fault.has_value());
    CHECK(o.fault->state == 2);
    CHECK(o.fault->kind == 1);
    CHECK(o.fault->dimension == 0);
    CHECK(o.fault->index == 3);
    CHECK(o.fault->extent == 3);
    CHECK(o.fault->thread[0] == 3);
    CHECK(o.fault->block[0] == 0);
    CHECK(c.values<std::uint32_t>(2) == U{7, 7, 7});
    CHECK(c.values<std::uint32_t>(1) == U(40, 7));  // lanes out of range: zero from the atomic
  }
  SUBCASE("below") {
    c.buffer(U{1, 2, 3, 4, 5, 6}, {3, 2}).buffer(u32s(40)).buffer(u32s(3)).scalar(static_cast<std::uint32_t>(-1)).threads(2);
    const interp::Outcome o = c.run();
    REQUIRE(o.fault.has_value());
    CHECK(o.fault->index == ~std::uint64_t{0});
    CHECK(o.fault->thread[0] == 0);
    CHECK(c.values<std::uint32_t>(2) == U{7, 0, 0});
  }
}

TEST_CASE("an access out of range that is not tested is misuse") {
  Case c("options checked=false\nbuffer out : u32[*] out\nscalar k : i32", "%k = param k\n%v = const 9 : u32\nstore out[%k], %v @0:4");
  c.buffer(u32s(4)).scalar(static_cast<std::uint32_t>(-5)).threads(1);
  const interp::Outcome o = c.run();
  CHECK_FALSE(o.fault.has_value());
  REQUIRE(o.misuse.size() == 1);
  CHECK(o.misuse[0].find("k.cpp:4: kernel 'k': store") == 0);
  CHECK(o.misuse[0].find("of 'out': coordinate 0 is -5, the extent is 4") != std::string::npos);
  CHECK(c.values<std::uint32_t>() == u32s(4));
}

TEST_CASE("races are reported and ordered accesses are not") {
  const struct {
    const char *body, *says;
  } table[] = {
      // one block, shared memory
      {"store s[%i], %i\n%v = load s[%i]", ""},
      {"store s[%i], %i\n%v = load s[%rev]\nstore out[%i], %v", "race: load"},
      {"store s[%i], %i\nbarrier\n%v = load s[%rev]\nstore out[%i], %v", ""},
      {"store s[%i], %i\n%any = barrier_any %is0\n%v = load s[%rev]\nstore out[%i], %v", ""},
      {"store s[%zero], %i", "race: store"},
      {"store s[%i], %i\nbarrier\n%v = load s[%rev]\nstore s[%i], %v", "race: "},
      {"store s[%i], %i\nbarrier\n%v = load s[%rev]\nbarrier\nstore s[%i], %v", ""},
      {"if %is0 {\nstore s[%zero], %i\n}\nbarrier\n%v = load s[%zero]\nstore out[%i], %v", ""},
      {"if %is0 {\nstore s[%zero], %i\n}\nbarrier\n%v = load s[%zero]\nif %is0 {\nstore s[%zero], %v\n}", "race: store"},
      // atomics
      {"if %is0 {\nstore s[%zero], %i\n}\nbarrier\n%v = atomic_add s[%zero], %one\n%w = atomic_max s[%zero], %i", ""},
      {"if %is0 {\nstore s[%zero], %i\n}\nbarrier\n%v = atomic_add s[%zero], %one\n%w = load s[%zero]\nstore out[%i], %w", "race: load"},
      {"if %is0 {\nstore s[%zero], %i\n}\nbarrier\n%v = atomic_add s[%zero], %one\nbarrier\n%w = load s[%zero]\nstore out[%i], %w", ""},
      {"if %is0 {\nstore s[%zero], %i\n}\n%v = atomic_add s[%zero], %one", "race: atomic_add"},
      // global memory of one block
      {"store out[%i], %i\n%v = load out[%rev]\nstore s[%i], %v", "race: "},
      {"store out[%i], %i\nbarrier\n%v = load out[%rev]\nstore s[%i], %v", ""},
      {"%v = load ro[%zero]\nstore s[%i], %v", ""},
      // a thread's own
      {"store l[%zero], %i\n%v = load l[%zero]\nstore out[%i], %v", ""},
  };
  for (const auto& row : table) {
    CAPTURE(row.body);
    const std::string found = misuse(row.body);
    CAPTURE(found);
    if (std::string(row.says).empty()) {
      CHECK(found == "");
    } else {
      CHECK(found.find(row.says) != std::string::npos);
      CHECK(found.find("with no barrier between") != std::string::npos);
    }
  }
}

TEST_CASE("warp_sync orders the lanes of a warp and nothing else") {
  const std::string exchange = "store s[%i], %i\nSYNC\n%v = load s[%j]\nstore out[%i], %v";
  const auto with = [&](const std::string& sync, const std::string& source) {
    std::string body = source + "\n" + exchange;
    return misuse(body.replace(body.find("SYNC"), 4, sync));
  };
  const std::string neighbour = "%j = xor %i, %one", other_warp = "%k = const 32 : u32\n%j = xor %i, %k";
  CHECK(with("warp_sync", neighbour) == "");
  CHECK(with("", neighbour).find("race: load") != std::string::npos);
  CHECK(with("warp_sync", other_warp).find("race: load") != std::string::npos);
  CHECK(with("barrier", other_warp) == "");
}

TEST_CASE("blocks race in global memory however many barriers there are") {
  CHECK(misuse("store out[%g], %i\nbarrier", 64, 4) == "");
  CHECK(misuse("store out[%i], %i\nbarrier", 64, 2).find("race: store") != std::string::npos);
  CHECK(misuse("store out[%i], %i\nbarrier", 64, 2).find("from different blocks") != std::string::npos);
  CHECK(
      misuse("%v = load out[%zero]\nbarrier\n%h = const 511 : u32\n%w = eq %b, %one\nif %w {\nif %is0 {\nstore out[%zero], %v\n}\n}", 64, 2)
          .find("race: store") != std::string::npos);
  CHECK(misuse("%v = atomic_add out[%zero], %one\n%w = atomic_or out[%zero], %i", 64, 4) == "");
  CHECK(misuse("%v = atomic_add out[%zero], %one\nif %is0 {\n%w = load out[%zero]\nstore s[%zero], %w\n}", 64, 2).find("race:") !=
        std::string::npos);
}

TEST_CASE("two arguments in one buffer are one memory") {
  Case c("buffer a : u32[*] in\nbuffer b : u32[*] inout\nin_place a, b",
         "%i = thread_id.x\n%one = const 1 : u32\n%v = load a[%i]\n%w = add %v, %one\nstore b[%i], %w");
  std::vector<std::uint8_t> bytes(4 * 9);
  const auto with_offset = [&](std::uint64_t offset) {
    c.launch.args = {{.is_buffer = true, .bytes = &bytes, .extents = {8}, .strides = {}},
                     {.is_buffer = true, .bytes = &bytes, .byte_offset = offset, .extents = {8}, .strides = {}}};
    c.threads(8);
    return c.misuse();
  };
  CHECK(with_offset(0) == "");
  CHECK(with_offset(4).find("race: store") != std::string::npos);
}

TEST_CASE("reading shared or local memory that was never written is reported") {
  CHECK(misuse("%v = load s[%i]\nstore out[%i], %v").find("load (operation") != std::string::npos);
  CHECK(misuse("%v = load s[%i]\nstore out[%i], %v").find("of 's' by thread 0 of block 0 reads what was never written") !=
        std::string::npos);
  CHECK(misuse("store l[%zero], %i\n%v = load l[%one]\nstore out[%i], %v").find("of 'l' by thread 0") != std::string::npos);
  CHECK(misuse("%v = atomic_add s[%i], %one\nstore out[%i], %v").find("atomic_add") != std::string::npos);
  CHECK(misuse("store s[%i], %i\nbarrier\n%v = load s[%rev]\nstore out[%g], %v", 64, 2) == "");
  // Each block starts anew.
  CHECK(misuse("%w = eq %b, %zero\nif %w {\nstore s[%i], %i\n}\n%v = load s[%i]\nstore out[%g], %v", 64, 2)
            .find("of block 1 reads what was never written") != std::string::npos);
}

TEST_CASE("atomics of a warp apply in the order of lanes and give the old value") {
  Case c("buffer sum : u32[*] inout\nbuffer out : u32[*] inout\nbuffer f : f32[*] inout", R"(
    %i = thread_id.x
    %zero = const 0 : u32
    %one = const 1 : u32
    %two = const 2 : u32
    %three = const 3 : u32
    %old = atomic_add sum[%zero], %i
    store out[%i], %old
    %x = atomic_sub sum[%one], %one
    %y = atomic_max sum[%two], %i
    %z = atomic_cas sum[%three], %i, %old
    %half = const 0.5 : f32
    %nan = const nan : f32
    %fi = cast %i : f32
    %a = atomic_add f[%zero], %half
    %m = atomic_min f[%one], %nan
    %k = atomic_max f[%two], %fi
    %e = atomic_exchange f[%three], %fi)");
  c.buffer(U{100, 50, 3, 4}).buffer(u32s(10)).buffer(std::vector<float>{1, 2, NAN, 7}).threads(10).good();
  CHECK(c.values<std::uint32_t>(0) == U{145, 40, 9, 106});
  CHECK(c.values<std::uint32_t>(1) == U{100, 100, 101, 103, 106, 110, 115, 121, 128, 136});
  CHECK(c.values<float>(2) == std::vector<float>{6, 2, 9, 9});
}

TEST_CASE("f32 atomic additions flush subnormals in global memory only") {
  Case c("buffer f : f32[*] inout\nbuffer d : f64[*] inout\nbuffer out : f32[*] out\nshared s : f32[1]", R"(
    %zero = const 0 : u32
    %one = const 1 : u32
    %two = const 2 : u32
    %tiny = const 0x80000001 : f32
    %small = const 0x00800000 : f32
    %less = const 0x807fffff : f32
    %a = atomic_add f[%zero], %tiny
    %b = atomic_add f[%one], %tiny
    %c = atomic_add f[%two], %less
    store out[%zero], %a
    store s[%zero], %tiny
    %e = atomic_add s[%zero], %tiny
    %v = load s[%zero]
    store out[%one], %v
    %t = const 0x1 : f64
    %g = atomic_add d[%zero], %t)");
  const auto from = [](std::uint32_t v) { return std::bit_cast<float>(v); };
  c.buffer(std::vector<float>{from(0x80000001), 1.0f, from(0x00800000)})
      .buffer(std::vector<double>{0})
      .buffer(std::vector<float>(2))
      .threads(1)
      .good();
  CHECK(c.values<std::uint32_t>(0) == U{0x80000000, 0x3f800000, 0x00800000});
  CHECK(c.values<std::uint64_t>(1) == std::vector<std::uint64_t>{1});
  CHECK(c.values<std::uint32_t>(2) == U{0x80000001, 0x80000002});
}

TEST_CASE("strides, sizes and bools are those of the arguments") {
  Case c("buffer in : u32[*, *] in strided\nbuffer flags : bool[*] inout\nbuffer out : u32[*] out", R"(
    %i = thread_id.x
    %zero = const 0 : u32
    %one = const 1 : u32
    %ten = const 10 : u32
    %v = load in[%i, %one]
    %f = load flags[%i]
    %nf = not %f
    store flags[%i], %nf
    %s = stride in.0
    %s32 = cast %s : u32
    %n = size in
    %x = mul %n, %ten
    %y = add %x, %s32
    %z = mul %y, %ten
    %w = add %z, %v
    store out[%i], %w)");
  c.buffer(U{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {2, 2}, {5, 3}).buffer(std::vector<std::uint8_t>{1, 0}).buffer(u32s(2)).threads(2).good();
  CHECK(c.values<std::uint32_t>(2) == U{453, 458});
  CHECK(c.values<std::uint8_t>(1) == std::vector<std::uint8_t>{0, 1});
}

TEST_CASE("dynamic shared memory has the launch's size") {
  Case c("buffer out : u32[*] inout\nshared d : u64[dynamic]", "%z = const 0 : u32\n%n = size d\nstore out[%z], %n");
  c.buffer(u32s(1)).threads(1);
  c.launch.dynamic_shared_bytes = 100;
  c.good();
  CHECK(c.values<std::uint32_t>() == U{12});
}

TEST_CASE("launches that do not fit are reported and nothing runs") {
  const auto says = [](Case& c, const std::string& message) {
    const std::string found = c.misuse();
    CAPTURE(found);
    CHECK(found.find(message) != std::string::npos);
  };
  Case c("block_size 8, 1, 1\nbuffer out : u32[*] inout\nscalar a : u32", "%z = const 0 : u32\n%a = param a\nstore out[%z], %a");
  c.buffer(u32s(4));
  c.threads(8);
  says(c, "launched with 1 argument; it has 2 parameters");
  c.scalar(5).threads(9);
  says(c, "launched with another block size than it declares");
  c.threads(0);
  says(c, "launched with a block axis of 0");
  c.threads(8);
  c.launch.args[0].extents = {5};
  says(c, "argument 'out' reaches beyond the 16 bytes");
  c.launch.args[0].extents = {1, 1};
  says(c, "argument 'out' needs 1 extents");
  std::swap(c.launch.args[0], c.launch.args[1]);
  says(c, "argument 'out' must be a buffer");
  CHECK(c.values<std::uint32_t>() == u32s(4));
  std::swap(c.launch.args[0], c.launch.args[1]);
  c.launch.args[0].extents = {4};
  c.launch.grid[1] = 0;
  c.good();
  CHECK(c.values<std::uint32_t>() == u32s(4));
}
