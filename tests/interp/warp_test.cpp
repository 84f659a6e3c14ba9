#include <cmath>
#include <functional>

#include "interp/fixture.h"
#include "kiln/ir/eval.h"

using namespace kiln;
using namespace kiln::interp::testing;
using U = std::vector<std::uint32_t>;

namespace {

// out[i] = OP of in[i] (and arg[i]) among the lanes whose mask[i] is not 0; other lanes leave out alone.
std::vector<std::uint32_t> among(const std::string& type, const std::string& op, const U& in, const U& arg, const U& mask) {
  Case c("buffer in : " + type + "[*] in\nbuffer arg : u32[*] in\nbuffer mask : u32[*] in\nbuffer out : " + type + "[*] out", R"(
    %i = thread_id.x
    %v = load in[%i]
    %a = load arg[%i]
    %m = load mask[%i]
    %on = cast %m : bool
    if %on {
      %r = )" + op + R"(
      store out[%i], %r
    })");
  c.buffer(in).buffer(arg).buffer(mask).buffer(u32s(in.size(), 0xdeadbeef)).threads(static_cast<std::uint32_t>(in.size())).good();
  return c.values<std::uint32_t>(3);
}

}  // namespace

TEST_CASE("shuffles read active lanes and give one's own value otherwise") {
  U in(40), mask(40), arg(40);
  const std::uint32_t args[] = {0, 1, 2, 5, 31, 32, 33, 0xffffffffu};
  for (const bool holes : {false, true}) {
    for (const std::uint32_t base : args) {
      for (unsigned i = 0; i < 40; ++i) {
        in[i] = 100 + i;
        mask[i] = !holes || i % 3 != 0;
        arg[i] = base + (i % 5 == 0 ? 1 : 0);  // each lane has its own
      }
      const struct {
        const char* op;
        std::function<std::int64_t(unsigned, std::uint32_t)> source;
      } table[] = {
          {"shuffle_idx %v, %a", [](unsigned, std::uint32_t d) { return std::int64_t{d % 32}; }},
          {"shuffle_up %v, %a", [](unsigned lane, std::uint32_t d) { return std::int64_t{lane} - d; }},
          {"shuffle_down %v, %a", [](unsigned lane, std::uint32_t d) { return std::int64_t{lane} + d; }},
          {"shuffle_xor %v, %a", [](unsigned lane, std::uint32_t d) { return d >= 32 ? -1 : std::int64_t{lane ^ d}; }},
      };
      for (const auto& row : table) {
        CAPTURE(row.op);
        CAPTURE(base);
        const U out = among("u32", row.op, in, arg, mask);
        for (unsigned i = 0; i < 40; ++i) {
          const unsigned lane = i % 32, first = i - lane;
          const std::int64_t s = row.source(lane, arg[i]);
          const bool there = s >= 0 && s < 32 && first + s < 40 && mask[first + s] != 0;
          CHECK(out[i] == (mask[i] == 0 ? 0xdeadbeef : in[there ? first + s : i]));
        }
      }
    }
  }
}

TEST_CASE("votes and ballots ask the active lanes, also of a partial warp") {
  Case c("buffer out : u32[*] out", R"(
    %i = thread_id.x
    %one = const 1 : u32
    %five = const 5 : u32
    %bit = and %i, %one
    %odd = cast %bit : bool
    %t = const true : bool
    %f = const false : bool
    %low = lt %i, %five
    %n = const 8 : u32
    %j = mul %i, %n
    %b = ballot %odd
    store out[%j], %b
    if %odd {
      %any = vote_any %low
      %all = vote_all %low
      %allt = vote_all %t
      %anyf = vote_any %f
      %b2 = ballot %low
      %x0 = cast %any : u32
      %x1 = cast %all : u32
      %x2 = cast %allt : u32
      %x3 = cast %anyf : u32
      %j1 = add %j, %one
      store out[%j1], %x0
      %j2 = add %j1, %one
      store out[%j2], %x1
      %j3 = add %j2, %one
      store out[%j3], %x2
      %j4 = add %j3, %one
      store out[%j4], %x3
      %j5 = add %j4, %one
      store out[%j5], %b2
    })");
  c.buffer(u32s(40 * 8)).threads(40).good();
  const U out = c.values<std::uint32_t>();
  for (unsigned i = 0; i < 40; ++i) {
    const U row(out.begin() + 8 * i, out.begin() + 8 * i + 6);
    const std::uint32_t odd = i < 32 ? 0xaaaaaaaau : 0xaau;
    if (i % 2 == 0) {
      CHECK(row == U{odd, 0, 0, 0, 0, 0});
    } else {
      CHECK(row == U{odd, i < 32 ? 1u : 0u, 0, 1, 0, i < 32 ? 0b1010u : 0u});
    }
  }
}

TEST_CASE("reductions are the butterfly and scans the doubling, inactive lanes an identity") {
  using ir::Combine;
  const struct {
    const char* type;
    ir::Type t;
    std::vector<Combine> how;
  } types[] = {
      {"u32", ir::Type::U32, {Combine::Add, Combine::Mul, Combine::Min, Combine::Max, Combine::And, Combine::Or, Combine::Xor}},
      {"i32", ir::Type::I32, {Combine::Add, Combine::Mul, Combine::Min, Combine::Max, Combine::And, Combine::Or, Combine::Xor}},
      {"f32", ir::Type::F32, {Combine::Add, Combine::Mul, Combine::Min, Combine::Max}},
  };
  U in(48), mask(48), arg(48);
  std::uint32_t random = 12345;
  for (const int pattern : {0, 1, 2}) {
    for (const auto& type : types) {
      for (unsigned i = 0; i < 48; ++i) {
        random = random * 1664525 + 1013904223;
        mask[i] = pattern == 0 || (pattern == 1 ? random >> 31 : i == 7);
        const float f = static_cast<float>(random >> 8) / 3e5f - 20;
        in[i] = type.t == ir::Type::F32 ? static_cast<std::uint32_t>(bits(i == 9 ? NAN : f)) : random;
      }
      for (const Combine how : type.how) {
        const std::string name(ir::name(how));
        CAPTURE(type.type);
        CAPTURE(name);
        CAPTURE(pattern);
        const U reduce = among(type.type, "warp_reduce." + name + " %v", in, arg, mask);
        const U scan = among(type.type, "warp_scan." + name + " %v", in, arg, mask);
        const U exclusive = among(type.type, "warp_scan_exclusive." + name + " %v", in, arg, mask);
        for (unsigned first = 0; first < 48; first += 32) {
          const auto at = [&](unsigned lane) {
            return first + lane < 48 && mask[first + lane] != 0 ? std::uint64_t{in[first + lane]} : ir::identity(how, type.t);
          };
          // Written as trees, not as the steps of the interpreter.
          const std::function<std::uint64_t(unsigned, unsigned)> tree = [&](unsigned lane, unsigned d) -> std::uint64_t {
            return d == 32 ? at(lane) : ir::combine(how, type.t, tree(lane, 2 * d), tree(lane ^ d, 2 * d));
          };
          const std::function<std::uint64_t(unsigned, unsigned)> prefix = [&](unsigned lane, unsigned d) -> std::uint64_t {
            if (d == 0) return at(lane);
            const std::uint64_t own = prefix(lane, d / 2);
            return lane >= d ? ir::combine(how, type.t, prefix(lane - d, d / 2), own) : own;
          };
          for (unsigned lane = 0; lane < 32 && first + lane < 48; ++lane) {
            const unsigned i = first + lane;
            if (mask[i] == 0) {
              CHECK(reduce[i] == 0xdeadbeef);
              continue;
            }
            CHECK(reduce[i] == tree(lane, 1));
            CHECK(scan[i] == prefix(lane, 16));
            CHECK(exclusive[i] == (lane == 0 ? ir::identity(how, type.t) : prefix(lane - 1, 16)));
          }
        }
      }
    }
  }
}

TEST_CASE("a bool can be reduced and scanned") {
  Case c("buffer out : u32[*] out", R"(
    %i = thread_id.x
    %three = const 3 : u32
    %is = eq %i, %three
    %any = warp_reduce.or %is
    %sofar = warp_scan.or %is
    %a = cast %any : u32
    %s = cast %sofar : u32
    %r = add %a, %s
    store out[%i], %r)");
  c.buffer(u32s(6)).threads(6).good();
  CHECK(c.values<std::uint32_t>() == U{1, 1, 1, 2, 2, 2});
}
