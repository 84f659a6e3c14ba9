// What the lanes of a warp do together: shuffles, votes, matches, reductions.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_block.h"
#include "simcuda/ptx_values.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;
using u32 = std::uint32_t;

constexpr u64 kGarbage = 0x5eedf00d;  // what a lane that takes no part gives

void common(Decoder& d, WarpSync kind, std::size_t mask_operand) {
  d.op.flow = Flow::Together;
  d.op.code = static_cast<std::uint8_t>(kind);
  d.op.v[0] = d.in(mask_operand, Type::B32);
  d.function().warp_syncs = true;
}

// d or d|p.
void result(Decoder& d, Type t) {
  const Operand& o = d.operand(0);
  if (o.kind == Operand::Kind::Pair) {
    d.op.d = d.out(o.parts[0], t);
    d.op.p = d.predicate_out(o.parts[1]);
  } else {
    d.op.d = d.out(o, t);
  }
}

bool need_sync(Decoder& d) {
  if (d.take("sync")) return true;
  d.error("Instruction '" + std::string(d.name()) +
          "' without '.sync' is not supported on .target sm_70 and higher from PTX ISA version 6.4");
  return false;
}

void shfl(Decoder& d) {
  if (!need_sync(d)) return;
  const std::string_view mode = d.take_any({"up", "down", "bfly", "idx"});
  const Type t = d.take_type();
  if (mode.empty() || t != Type::B32) return d.bad_type();
  if (!d.count(5)) return;
  d.op.type = static_cast<std::uint8_t>(mode == "up" ? 0 : mode == "down" ? 1 : mode == "bfly" ? 2 : 3);
  result(d, t);
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, Type::B32);
  d.op.c = d.in(3, Type::B32);
  common(d, WarpSync::Shuffle, 4);
}

void vote(Decoder& d) {
  if (!need_sync(d)) return;
  const std::string_view mode = d.take_any({"all", "any", "uni", "ballot"});
  const Type t = d.take_type();
  if (mode.empty() || t != (mode == "ballot" ? Type::B32 : Type::Pred)) return d.bad_type();
  if (!d.count(3)) return;
  if (mode == "ballot") d.op.d = d.out(0, t);
  else d.op.p = d.predicate_out(d.operand(0));
  d.op.q = d.predicate_in(d.operand(1));
  common(d,
         mode == "all"   ? WarpSync::VoteAll
         : mode == "any" ? WarpSync::VoteAny
         : mode == "uni" ? WarpSync::VoteUniform
                         : WarpSync::VoteBallot,
         2);
}

void match(Decoder& d) {
  const std::string_view mode = d.take_any({"any", "all"});
  if (!need_sync(d)) return;
  const Type t = d.take_type();
  if (mode.empty() || (t != Type::B32 && t != Type::B64)) return d.bad_type();
  d.need(70, 60);
  if (!d.count(3)) return;
  if (mode == "any" && d.operand(0).kind == Operand::Kind::Pair) return d.mismatch();
  result(d, Type::B32);
  d.op.a = d.in(1, t);
  common(d, mode == "any" ? WarpSync::MatchAny : WarpSync::MatchAll, 2);
}

void redux(Decoder& d) {
  if (!need_sync(d)) return;
  const std::string_view what = d.take_any({"add", "min", "max", "and", "or", "xor"});
  const bool abs = d.take("abs"), nan = d.take("NaN");
  const Type t = d.take_type();
  const bool bits_op = what == "and" || what == "or" || what == "xor";
  if (what.empty() || (bits_op ? t != Type::B32 : t != Type::U32 && t != Type::S32 && t != Type::F32)) return d.bad_type();
  if (t == Type::F32) {
    if (what == "add") return d.bad_type();
    d.need(100, 86, "redux of f32");
  } else {
    if (abs || nan) return d.bad_type();
    d.need(80, 70);
  }
  if (!d.count(3)) return;
  d.op.type = static_cast<std::uint8_t>(t);
  d.op.imm = what == "add" ? '+' : what == "min" ? '<' : what == "max" ? '>' : what == "and" ? '&' : what == "or" ? '|' : '^';
  d.op.sign = nan;
  d.op.atomic = abs;
  d.op.d = d.out(0, t);
  d.op.a = d.in(1, t);
  common(d, WarpSync::Reduce, 2);
}

void elect(Decoder& d) {
  if (!need_sync(d)) return;
  d.need(90, 80);
  if (!d.count(2) || d.operand(0).kind != Operand::Kind::Pair) return d.mismatch();
  result(d, Type::B32);
  common(d, WarpSync::Elect, 1);
}

struct Lanes {
  std::array<u64, 32> value{};
  std::array<const Op*, 32> op{};
};

u64 reduce(const Op& op, const Lanes& in, Mask everybody) {
  const auto t = static_cast<Type>(op.type);
  bool first = true;
  u64 r = 0;
  for (Mask rest = everybody; rest != 0; rest &= rest - 1) {
    u64 v = in.value[static_cast<std::size_t>(std::countr_zero(rest))];
    if (t == Type::F32 && op.atomic) v &= 0x7fffffff;
    if (first) {
      r = v;
      first = false;
      continue;
    }
    const bool minimum = op.imm == '<';
    switch (op.imm) {
      case '+': r = static_cast<u32>(r + v); break;
      case '&': r &= v; break;
      case '|': r |= v; break;
      case '^': r ^= v; break;
      default:
        if (t == Type::S32) {
          r = ((static_cast<std::int32_t>(v) < static_cast<std::int32_t>(r)) == minimum) ? v : r;
        } else if (t == Type::U32) {
          r = ((v < r) == minimum) ? v : r;
        } else {
          const float x = f32(r), y = f32(v);
          if (x != x || y != y) {
            r = op.sign || (x != x && y != y) ? kNaN32 : x != x ? v : r;
          } else if (x == y) {
            r = ((r >> 31) != 0) == minimum ? r : v;
          } else {
            r = ((y < x) == minimum) ? v : r;
          }
        }
    }
  }
  return r;
}

// Which lane a shuffle reads, and whether that is within its segment.
std::pair<int, bool> source_of(unsigned mode, int lane, u64 b, u64 c) {
  const int offset = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31), segment = static_cast<int>(c >> 8 & 31);
  const int last = (lane & segment) | (clamp & ~segment), begin = lane & segment;
  int from = 0;
  bool inside = false;
  switch (mode) {
    case 0:
      from = lane - offset;
      inside = from >= last;
      break;
    case 1:
      from = lane + offset;
      inside = from <= last;
      break;
    case 2:
      from = lane ^ offset;
      inside = from <= last;
      break;
    default: from = begin | (offset & ~segment); inside = from <= last;
  }
  return {inside ? from : lane, inside};
}

}  // namespace

u32 member_mask(Warp& w, const Fragment&, const Op& op, unsigned lane) { return static_cast<u32>(w.in(op.v[0])[lane]); }

void together(Warp& w, const std::vector<Participant>& participants, Mask everybody) {
  Lanes in;
  Mask truth = 0;
  const auto kind = static_cast<WarpSync>(participants.front().op->code);
  const bool reads = kind != WarpSync::Barrier && kind != WarpSync::Elect;
  if (reads) {
    for (const Participant& p : participants) {
      enter(w, *p.fragment);
      const bool votes =
          kind == WarpSync::VoteAll || kind == WarpSync::VoteAny || kind == WarpSync::VoteUniform || kind == WarpSync::VoteBallot;
      if (votes) {
        truth |= w.test(p.op->q) & p.fragment->lanes;
      } else {
        const u64* a = w.in(p.op->a);
        lanes(p.fragment->lanes, [&](unsigned l) { in.value[l] = a[l]; });
      }
    }
  }
  // Equal for all lanes.
  const Op& first = *participants.front().op;
  u64 one = 0;
  bool all = false;
  if (kind == WarpSync::Reduce) one = reduce(first, in, everybody);
  if (kind == WarpSync::MatchAll) {
    all = true;
    const u64 v = in.value[static_cast<std::size_t>(std::countr_zero(everybody))];
    for (Mask rest = everybody; rest != 0; rest &= rest - 1) all = all && in.value[static_cast<std::size_t>(std::countr_zero(rest))] == v;
  }
  for (const Participant& p : participants) {
    enter(w, *p.fragment);
    const Op& op = *p.op;
    const Mask mine = p.fragment->lanes;
    u64* d = w.out(op.d);
    switch (kind) {
      case WarpSync::Barrier: break;
      case WarpSync::Elect: {
        const auto leader = static_cast<unsigned>(std::countr_zero(everybody));
        lanes(mine, [&](unsigned l) { d[l] = leader; });
        w.set(op.p, Mask{1} << leader, mine);
        break;
      }
      case WarpSync::VoteAll: w.set(op.p, truth == everybody ? ~Mask{0} : 0, mine); break;
      case WarpSync::VoteAny: w.set(op.p, truth != 0 ? ~Mask{0} : 0, mine); break;
      case WarpSync::VoteUniform: w.set(op.p, truth == everybody || truth == 0 ? ~Mask{0} : 0, mine); break;
      case WarpSync::VoteBallot: lanes(mine, [&](unsigned l) { d[l] = truth; }); break;
      case WarpSync::Reduce: lanes(mine, [&](unsigned l) { d[l] = one; }); break;
      case WarpSync::MatchAll:
        lanes(mine, [&](unsigned l) { d[l] = all ? everybody : 0; });
        w.set(op.p, all ? ~Mask{0} : 0, mine);
        break;
      case WarpSync::MatchAny:
        for (Mask rest = mine; rest != 0; rest &= rest - 1) {
          const auto l = static_cast<unsigned>(std::countr_zero(rest));
          Mask same = 0;
          for (Mask k = everybody; k != 0; k &= k - 1) {
            const auto other = static_cast<unsigned>(std::countr_zero(k));
            same |= static_cast<Mask>(in.value[other] == in.value[l]) << other;
          }
          d[l] = same;
        }
        break;
      case WarpSync::Shuffle: {
        const u64 *b = w.in(op.b), *c = w.in(op.c);
        Mask inside = 0;
        std::array<u64, 32> out{};
        for (Mask rest = mine; rest != 0; rest &= rest - 1) {
          const auto l = static_cast<unsigned>(std::countr_zero(rest));
          const auto [from, ok] = source_of(op.type, static_cast<int>(l), b[l], c[l]);
          inside |= static_cast<Mask>(ok) << l;
          if ((everybody >> from & 1) != 0) {
            out[l] = in.value[static_cast<std::size_t>(from)];
          } else {
            out[l] = kGarbage;
            w.block->launch->note(w, op, l, 2,
                                  "shuffle reads lane " + std::to_string(from) +
                                      ", which takes no part (not named by the mask, exited or never started); the value is undefined");
          }
        }
        lanes(mine, [&](unsigned l) { d[l] = out[l]; });
        w.set(op.p, inside, mine);
      }
    }
  }
  if (w.block->races) w.block->races->clock().warp_sync(w.index, everybody);
}

void add_together(DecodeTable& table) {
  table["shfl"] = &shfl;
  table["vote"] = &vote;
  table["match"] = &match;
  table["redux"] = &redux;
  table["elect"] = &elect;
}

}  // namespace kiln::simcuda::ptx
