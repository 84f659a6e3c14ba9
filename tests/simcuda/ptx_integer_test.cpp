#include <algorithm>
#include <bit>

#include "simcuda/ptx_testing.h"

using namespace kiln::simcuda;
using namespace kiln::simcuda::testing;

namespace {
using i32 = std::int32_t;
using i64 = std::int64_t;
u32 lo(u64 v) { return static_cast<u32>(v); }
i32 si(u64 v) { return static_cast<i32>(v); }
i64 sl(u64 v) { return static_cast<i64>(v); }
u32 us(i64 v) { return static_cast<u32>(v); }
u64 shorts(u64 v) { return v & 0xffff; }
std::int16_t ss(u64 v) { return static_cast<std::int16_t>(v); }
}  // namespace

TEST_CASE("integer addition, subtraction and multiplication wrap, and have high and wide results") {
  const Inputs in = pairs(integer_edges());
  check_table("add.s32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return lo(a + b); });
  check_table("sub.u32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return lo(a - b); });
  check_table("add.s64 %dr, %da, %db;", 'd', in, [](u64 a, u64 b, u64) { return a + b; });
  check_table("sub.s16 %hr, %ha, %hb;", 'h', in, [](u64 a, u64 b, u64) { return shorts(a - b); });
  check_table("add.sat.s32 %rr, %ra, %rb;", 'r', in,
              [](u64 a, u64 b, u64) { return us(std::clamp<i64>(i64{si(a)} + si(b), INT32_MIN, INT32_MAX)); });
  check_table("sub.sat.s32 %rr, %ra, %rb;", 'r', in,
              [](u64 a, u64 b, u64) { return us(std::clamp<i64>(i64{si(a)} - si(b), INT32_MIN, INT32_MAX)); });
  check_table("mul.lo.s32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return lo(a * b); });
  check_table("mul.hi.s32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return us((i64{si(a)} * si(b)) >> 32); });
  check_table("mul.hi.u32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return (u64{lo(a)} * lo(b)) >> 32; });
  check_table("mul.wide.s32 %dr, %ra, %rb;", 'd', in, [](u64 a, u64 b, u64) { return static_cast<u64>(i64{si(a)} * si(b)); });
  check_table("mul.wide.u32 %dr, %ra, %rb;", 'd', in, [](u64 a, u64 b, u64) { return u64{lo(a)} * lo(b); });
  check_table("mul.wide.u16 %rr, %ha, %hb;", 'r', in, [](u64 a, u64 b, u64) { return lo(shorts(a) * shorts(b)); });
  check_table("mul.wide.s16 %rr, %ha, %hb;", 'r', in, [](u64 a, u64 b, u64) { return us(ss(a) * ss(b)); });
  check_table("mul.hi.s64 %dr, %da, %db;", 'd', in,
              [](u64 a, u64 b, u64) { return static_cast<u64>((static_cast<__int128>(sl(a)) * sl(b)) >> 64); });
  check_table("mul.hi.u64 %dr, %da, %db;", 'd', in,
              [](u64 a, u64 b, u64) { return static_cast<u64>((static_cast<unsigned __int128>(a) * b) >> 64); });
  check_table("mul.hi.u16 %hr, %ha, %hb;", 'h', in, [](u64 a, u64 b, u64) { return shorts((shorts(a) * shorts(b)) >> 16); });
  check_table("mul24.lo.s32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return us(i64{si(a << 8) >> 8} * (si(b << 8) >> 8)); });
  check_table("mul24.hi.u32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return lo(((a & 0xffffff) * (b & 0xffffff)) >> 16); });
}

TEST_CASE("multiply-add in all widths, sums of differences, packed pairs and dot products") {
  const std::vector<u64> few{0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x12345678, 0xfedcba9876543210, 0x80ff7f01};
  const Inputs in = triples(few);
  check_table("mad.lo.s32 %rr, %ra, %rb, %rc;", 'r', in, [](u64 a, u64 b, u64 c) { return lo(a * b + c); });
  check_table("mad.hi.u32 %rr, %ra, %rb, %rc;", 'r', in, [](u64 a, u64 b, u64 c) { return lo((u64{lo(a)} * lo(b) >> 32) + c); });
  check_table("mad.hi.sat.s32 %rr, %ra, %rb, %rc;", 'r', in,
              [](u64 a, u64 b, u64 c) { return us(std::clamp<i64>((i64{si(a)} * si(b) >> 32) + si(c), INT32_MIN, INT32_MAX)); });
  check_table("mad.wide.s32 %dr, %ra, %rb, %dc;", 'd', in, [](u64 a, u64 b, u64 c) { return static_cast<u64>(i64{si(a)} * si(b)) + c; });
  check_table("mad.lo.u64 %dr, %da, %db, %dc;", 'd', in, [](u64 a, u64 b, u64 c) { return a * b + c; });
  check_table("sad.s32 %rr, %ra, %rb, %rc;", 'r', in,
              [](u64 a, u64 b, u64 c) { return lo(static_cast<u64>(std::abs(i64{si(a)} - si(b))) + c); });
  check_table("sad.u64 %dr, %da, %db, %dc;", 'd', in, [](u64 a, u64 b, u64 c) { return (a < b ? b - a : a - b) + c; });
  check_table("add.u16x2 %rr, %ra, %rb;", 'r', in,
              [](u64 a, u64 b, u64) { return lo(shorts(a + b) | shorts((a >> 16) + (b >> 16)) << 16); });
  check_table("max.s16x2 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) {
    return shorts(static_cast<u64>(std::max(ss(a), ss(b)))) | shorts(static_cast<u64>(std::max(ss(a >> 16), ss(b >> 16)))) << 16;
  });
  check_table("dp4a.s32.u32 %rr, %ra, %rb, %rc;", 'r', in, [](u64 a, u64 b, u64 c) {
    i64 sum = static_cast<i64>(c);
    for (int k = 0; k < 4; ++k) sum += i64{static_cast<std::int8_t>(a >> (8 * k))} * static_cast<std::uint8_t>(b >> (8 * k));
    return us(sum);
  });
  check_table("dp2a.hi.u32.s32 %rr, %ra, %rb, %rc;", 'r', in, [](u64 a, u64 b, u64 c) {
    i64 sum = static_cast<i64>(c);
    for (int k = 0; k < 2; ++k) sum += i64{static_cast<std::uint16_t>(a >> (16 * k))} * static_cast<std::int8_t>(b >> (16 + 8 * k));
    return us(sum);
  });
}

TEST_CASE("carries go from one instruction to the next in every lane on its own") {
  const Inputs in = pairs(integer_edges());
  check_table("add.cc.u32 %rt0, %ra, %rb; addc.u32 %rr, 0, 0;", 'r', in, [](u64 a, u64 b, u64) { return (u64{lo(a)} + lo(b)) >> 32; });
  check_table("sub.cc.u32 %rt0, %ra, %rb; subc.u32 %rr, 5, 0;", 'r', in, [](u64 a, u64 b, u64) { return lo(5 - (lo(a) < lo(b) ? 1 : 0)); });
  check_table("add.cc.u64 %dt0, %da, %db; addc.cc.u64 %dr, %da, 0; addc.u64 %dr, %dr, 0;", 'd', in, [](u64 a, u64 b, u64) {
    const u64 c1 = a + b < a ? 1 : 0, s = a + c1, c2 = s < a ? 1 : 0;
    return s + c2;
  });
  check_table("mad.lo.cc.u32 %rt0, %ra, %rb, %ra; madc.hi.u32 %rr, %ra, %rb, 0;", 'r', in,
              [](u64 a, u64 b, u64) { return (u64{lo(a)} * lo(b) + lo(a)) >> 32; });
}

TEST_CASE("division and remainder round toward zero; negation and absolute value wrap") {
  Inputs in;
  for (const auto& row : pairs(integer_edges()))
    if (lo(row[1]) != 0 && !(lo(row[1]) == ~u32{0} && lo(row[0]) == 0x80000000) && row[1] != ~u64{0}) in.push_back(row);
  check_table("div.s32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return us(i64{si(a)} / si(b)); });
  check_table("rem.s32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return us(i64{si(a)} % si(b)); });
  check_table("div.u32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return lo(a) / lo(b); });
  check_table("div.u64 %dr, %da, %db;", 'd', in, [](u64 a, u64 b, u64) { return a / b; });
  check_table("rem.s64 %dr, %da, %db;", 'd', in, [](u64 a, u64 b, u64) { return static_cast<u64>(sl(a) % sl(b)); });
  const Inputs one = singles(integer_edges());
  check_table("neg.s32 %rr, %ra;", 'r', one, [](u64 a, u64, u64) { return lo(0 - a); });
  check_table("abs.s32 %rr, %ra;", 'r', one, [](u64 a, u64, u64) { return si(a) < 0 ? lo(0 - a) : lo(a); });
  check_table("abs.s64 %dr, %da;", 'd', one, [](u64 a, u64, u64) { return sl(a) < 0 ? 0 - a : a; });
  check_table("min.s32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return us(std::min(si(a), si(b))); });
  check_table("max.u64 %dr, %da, %db;", 'd', in, [](u64 a, u64 b, u64) { return std::max(a, b); });
  check_table("min.u16 %hr, %ha, %hb;", 'h', in, [](u64 a, u64 b, u64) { return std::min(shorts(a), shorts(b)); });
}

TEST_CASE("shifts clamp, funnel shifts wrap or clamp, fields and permutations follow their tables") {
  const Inputs in = pairs(integer_edges());
  check_table("shl.b32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return lo(b) > 31 ? 0 : lo(a << lo(b)); });
  check_table("shr.s32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return us(si(a) >> std::min(lo(b), 31u)); });
  check_table("shr.u64 %dr, %da, %rb;", 'd', in, [](u64 a, u64 b, u64) { return lo(b) > 63 ? 0 : a >> lo(b); });
  check_table("shr.s16 %hr, %ha, %rb;", 'h', in, [](u64 a, u64 b, u64) { return shorts(static_cast<u64>(ss(a) >> std::min(lo(b), 15u))); });
  const std::vector<u64> few{0, 1, 5, 31, 32, 40, 0x80000001, 0x12345678, 0xffffffff};
  const Inputs three = triples(few);
  check_table("shf.l.wrap.b32 %rr, %ra, %rb, %rc;", 'r', three, [](u64 a, u64 b, u64 c) {
    const u32 n = c & 31;
    return n == 0 ? lo(b) : lo(lo(b) << n | lo(a) >> (32 - n));
  });
  check_table("shf.r.clamp.b32 %rr, %ra, %rb, %rc;", 'r', three, [](u64 a, u64 b, u64 c) {
    const u32 n = std::min(lo(c), 32u);
    return lo((u64{lo(b)} << 32 | lo(a)) >> n);
  });
  check_table("bfe.u32 %rr, %ra, %rb, %rc;", 'r', three, [](u64 a, u64 b, u64 c) {
    const u32 pos = b & 255, len = c & 255;
    u64 r = 0;
    for (u32 k = 0; k < 32; ++k)
      if (k < len && pos + k < 32 && (lo(a) >> (pos + k) & 1) != 0) r |= u64{1} << k;
    return r;
  });
  check_table("bfe.s32 %rr, %ra, %rb, %rc;", 'r', three, [](u64 a, u64 b, u64 c) {
    const u32 pos = b & 255, len = c & 255;
    const bool sign = len != 0 && (lo(a) >> std::min(pos + len - 1, 31u) & 1) != 0;
    u64 r = 0;
    for (u32 k = 0; k < 32; ++k)
      if (k < len && pos + k < 32 ? (lo(a) >> (pos + k) & 1) != 0 : sign) r |= u64{1} << k;
    return r;
  });
  check_table("bfi.b32 %rr, %ra, %rb, %rc, 5;", 'r', three, [](u64 a, u64 b, u64 c) {
    const u32 pos = c & 255;
    u32 r = lo(b);
    for (u32 k = 0; k < 5 && pos + k < 32; ++k) r = (r & ~(1u << (pos + k))) | (lo(a) >> k & 1) << (pos + k);
    return r;
  });
  check_table("prmt.b32 %rr, %ra, %rb, %rc;", 'r', three, [](u64 a, u64 b, u64 c) {
    u32 r = 0;
    for (u32 k = 0; k < 4; ++k) {
      const u32 s = c >> (4 * k) & 15, n = s & 7;
      u32 byte = (n < 4 ? a >> (8 * n) : b >> (8 * (n - 4))) & 255;
      if ((s & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
      r |= byte << (8 * k);
    }
    return r;
  });
  check_table("prmt.b32.b4e %rr, %ra, %rb, %rc;", 'r', three, [](u64 a, u64 b, u64 c) {
    const u64 all = b << 32 | lo(a);
    u32 r = 0;
    for (u32 k = 0; k < 4; ++k) r |= static_cast<u32>(all >> (8 * (((c & 3) - k) & 7)) & 255) << (8 * k);
    return r;
  });
  check_table("lop3.b32 %rr, %ra, %rb, %rc, 0xe8;", 'r', three, [](u64 a, u64 b, u64 c) { return lo((a & b) | (b & c) | (a & c)); });
  const Inputs one = singles(integer_edges());
  check_table("popc.b64 %rr, %da;", 'r', one, [](u64 a, u64, u64) { return std::popcount(a); });
  check_table("clz.b32 %rr, %ra;", 'r', one, [](u64 a, u64, u64) { return std::countl_zero(lo(a)); });
  check_table("bfind.s32 %rr, %ra;", 'r', one, [](u64 a, u64, u64) {
    const u32 v = si(a) < 0 ? ~lo(a) : lo(a);
    return v == 0 ? 0xffffffffu : static_cast<u32>(31 - std::countl_zero(v));
  });
  check_table("bfind.shiftamt.u64 %rr, %da;", 'r', one,
              [](u64 a, u64, u64) { return a == 0 ? 0xffffffffu : static_cast<u32>(std::countl_zero(a)); });
  check_table("brev.b32 %rr, %ra;", 'r', one, [](u64 a, u64, u64) {
    u32 r = 0;
    for (int k = 0; k < 32; ++k) r |= (lo(a) >> k & 1) << (31 - k);
    return r;
  });
}

TEST_CASE("comparisons tell signed from unsigned and combine with a predicate") {
  const Inputs in = pairs(integer_edges());
  check_table("setp.lt.s32 %pr, %ra, %rb;", 'p', in, [](u64 a, u64 b, u64) { return si(a) < si(b); });
  check_table("setp.lt.u32 %pr, %ra, %rb;", 'p', in, [](u64 a, u64 b, u64) { return lo(a) < lo(b); });
  check_table("setp.hs.u64 %pr, %da, %db;", 'p', in, [](u64 a, u64 b, u64) { return a >= b; });
  check_table("setp.ge.s16 %pr, %ha, %hb;", 'p', in, [](u64 a, u64 b, u64) { return ss(a) >= ss(b); });
  check_table("setp.ne.b64 %pr, %da, %db;", 'p', in, [](u64 a, u64 b, u64) { return a != b; });
  check_table("setp.gt.s64 %pt0, %da, 5; setp.eq.xor.s32 %pr, %ra, %rb, !%pt0;", 'p', in,
              [](u64 a, u64 b, u64) { return (lo(a) == lo(b)) != !(sl(a) > 5); });
  check_table("setp.lt.and.s32 %pt0|%pr, %ra, %rb, 1;", 'p', in, [](u64 a, u64 b, u64) { return !(si(a) < si(b)); });
  check_table("set.le.u32.s32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) { return si(a) <= si(b) ? 0xffffffffu : 0; });
  check_table("set.le.f32.s32 %fr, %ra, %rb;", 'f', in, [](u64 a, u64 b, u64) { return si(a) <= si(b) ? 0x3f800000u : 0; });
  check_table("slct.b32.s32 %rr, %ra, %rb, %ra;", 'r', in, [](u64 a, u64 b, u64) { return si(a) >= 0 ? lo(a) : lo(b); });
  check_table("setp.lt.s32 %pt0, %ra, %rb; not.pred %pt1, %pt0; selp.b64 %dr, %da, %db, %pt1;", 'd', in,
              [](u64 a, u64 b, u64) { return si(a) < si(b) ? b : a; });
}

TEST_CASE("values are packed, taken apart, and converted between integers with and without saturation") {
  const Inputs in = pairs(integer_edges());
  check_table("mov.b64 %dr, {%ra, %rb};", 'd', in, [](u64 a, u64 b, u64) { return u64{lo(a)} | b << 32; });
  check_table("mov.b32 %rr, {%hb, %ha};", 'r', in, [](u64 a, u64 b, u64) { return shorts(b) | shorts(a) << 16; });
  check_table("mov.b64 {%ht0, %ht1, %ht2, %ht3}, %da; mov.b64 %dr, {%ht3, %ht2, %ht1, %ht0};", 'd', in,
              [](u64 a, u64, u64) { return a >> 48 | (a >> 32 & 0xffff) << 16 | (a >> 16 & 0xffff) << 32 | a << 48; });
  check_table(".reg .b128 %q; mov.b128 %q, {%da, %db}; mov.b128 {%dt0, %dr}, %q;", 'd', in, [](u64, u64 b, u64) { return b; });
  check_table("cvt.s64.s8 %dr, %ra;", 'd', in, [](u64 a, u64, u64) { return static_cast<u64>(i64{static_cast<std::int8_t>(a)}); });
  check_table("cvt.u16.u8 %hr, %ra;", 'h', in, [](u64 a, u64, u64) { return a & 255; });
  check_table("cvt.s8.s32 %rr, %ra;", 'r', in, [](u64 a, u64, u64) { return us(static_cast<std::int8_t>(a)); });
  check_table("cvt.sat.s8.s32 %rr, %ra;", 'r', in, [](u64 a, u64, u64) { return us(std::clamp(si(a), -128, 127)); });
  check_table("cvt.sat.u8.s32 %rr, %ra;", 'r', in, [](u64 a, u64, u64) { return us(std::clamp(si(a), 0, 255)); });
  check_table("cvt.sat.u32.s64 %rr, %da;", 'r', in, [](u64 a, u64, u64) { return us(std::clamp<i64>(sl(a), 0, 0xffffffff)); });
  check_table("cvt.sat.s32.u64 %rr, %da;", 'r', in, [](u64 a, u64, u64) { return std::min<u64>(a, 0x7fffffff); });
  check_table("cvt.pack.sat.s16.s32 %rr, %ra, %rb;", 'r', in, [](u64 a, u64 b, u64) {
    return shorts(static_cast<u64>(std::clamp(si(b), -32768, 32767))) | shorts(static_cast<u64>(std::clamp(si(a), -32768, 32767))) << 16;
  });
}
