// Random kernels, as recorded (every access checked) against as prepared, in the interpreter: the passes must keep the bits, and no access
// that was proven may be out of range. The kernels lean towards what the bounds prover reasons about: guards, requires, loops, locals,
// neighbours. KILN_RANDOM_KERNELS=n runs n of them instead of a few hundred.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "interp/interp.h"
#include "kiln/ir/builder.h"
#include "kiln/ir/text.h"
#include "kiln/ir/verify.h"

using namespace kiln;
using namespace kiln::ir;

namespace {

constexpr std::uint32_t kLocal = 9, kThreads = 40;

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), b_(k_) {}

  Kernel make() {
    k_.name = "random";
    if (chance(3)) k_.block_size = {kThreads, 1, 1};
    x_ = b_.buffer("x", Type::U32, 1, Access::In);
    img_ = b_.buffer("img", Type::U32, 2, Access::In);
    out_ = b_.buffer("out", Type::U32, 2, Access::Out);
    n_ = b_.scalar("n", Type::U32);
    m_ = b_.scalar("m", Type::I32);
    local_ = b_.local("l", Type::U32, {kLocal});
    shared_ = b_.shared("s", Type::U32, {kThreads});
    for (const Type t : {Type::U32, Type::U32, Type::Bool, Type::Bool, Type::I32, Type::F32}) slots_.push_back(b_.slot("v", t));
    for (const Type t : {Type::U32, Type::I32, Type::U64, Type::Bool, Type::F32}) pool(t);
    push(b_.query(Opcode::ThreadId));
    push(b_.query(Opcode::GlobalId));
    push(b_.query(Opcode::LaneId));
    push(b_.query(Opcode::BlockId));
    push(b_.size(x_));
    push(b_.extent(img_, 0));
    push(b_.extent(img_, 1));
    push(b_.param(n_));
    push(b_.param(m_));
    push(b_.extent(x_, 0, Type::U64));
    push(b_.const_f32(1.5f));
    push(b_.const_bool(false));
    if (chance(2)) {
      const ValueId c = b_.binary(Opcode::Le, b_.param(n_), b_.size(x_));
      b_.require(c, "n <= x.size()");
    }
    if (chance(3)) b_.require(b_.binary(Opcode::Gt, b_.extent(img_, 0), b_.const_u32(0)), "h > 0");
    // Locals start defined; the loop is the first thing to prove.
    const OpId init = b_.for_(b_.const_u32(0), b_.const_u32(kLocal), b_.const_u32(1));
    inside(k_.op(init).regions[0], [&] { b_.store(local_, {init}, b_.binary(Opcode::Mul, init, b_.const_u32(7))); });
    block(4, 10);
    // What the kernel computed: the slots, mixed, and the local array.
    ValueId sum = b_.const_u32(17);
    for (const std::uint32_t s : slots_) sum = b_.binary(Opcode::Xor, b_.binary(Opcode::Mul, sum, b_.const_u32(31)), bits(b_.get(s)));
    const std::uint32_t acc = b_.slot("acc", Type::U32);
    b_.set(acc, sum);
    const OpId fini = b_.for_(b_.const_u32(0), b_.const_u32(kLocal), b_.const_u32(2));
    inside(k_.op(fini).regions[0], [&] {
      const ValueId v = b_.load(local_, {fini});
      b_.set(acc, b_.binary(Opcode::Add, b_.binary(Opcode::Mul, b_.get(acc), b_.const_u32(13)), v));
    });
    b_.store(out_, {b_.query(Opcode::BlockId), b_.query(Opcode::ThreadId)}, b_.get(acc));
    return k_;
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool chance(std::uint32_t one_in) { return pick(one_in) == 0; }

  std::vector<ValueId>& pool(Type t) { return values_[static_cast<int>(t)]; }
  ValueId push(ValueId v) {
    pool(b_.type(v)).push_back(v);
    return v;
  }
  // Something visible here of that type; recent values more often, so that expressions grow deep.
  ValueId any(Type t) {
    std::vector<ValueId>& p = pool(t);
    if (p.empty() || chance(6)) return constant(t);
    const auto size = static_cast<std::uint32_t>(p.size());
    return p[chance(2) ? size - 1 - pick(std::min(size, 4u)) : pick(size)];
  }
  ValueId constant(Type t) {
    static constexpr std::uint32_t values[] = {0,  1,  2,  3,  4,  5,          7,          8,          9,
                                               16, 31, 32, 40, 63, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe};
    const std::uint32_t v = values[chance(4) ? pick(std::size(values)) : pick(10)];
    switch (t) {
      case Type::F32: return b_.const_f32(static_cast<float>(static_cast<std::int32_t>(v)) * (chance(2) ? 0.5f : -1.0f));
      case Type::Bool: return b_.const_bool(v & 1);
      default: return b_.constant(t, v);
    }
  }
  ValueId bits(ValueId v) {
    switch (b_.type(v)) {
      case Type::F32: {  // NaN payloads are not specified: look at what is
        const ValueId i = b_.bit_cast(Type::U32, v);
        return b_.select(b_.binary(Opcode::Eq, v, v), i, b_.const_u32(0x7fc00000));
      }
      case Type::U32: return v;
      default: return b_.cast(Type::U32, v);
    }
  }

  template <class F>
  void inside(RegionId r, F&& f) {
    const RegionId outer = b_.region();
    std::size_t sizes[kTypeCount];
    for (int t = 0; t < kTypeCount; ++t) sizes[t] = values_[t].size();
    b_.set_region(r);
    f();
    b_.set_region(outer);
    for (int t = 0; t < kTypeCount; ++t) values_[t].resize(sizes[t]);
  }

  void block(int depth, std::uint32_t statements) {
    for (std::uint32_t i = 0, n = 2 + pick(statements); i < n; ++i) statement(depth);
  }

  void statement(int depth) {
    const std::uint32_t kind = pick(depth > 0 ? 22 : 13);
    if (kind < 5) return expression();
    if (kind < 8) return access();
    if (kind < 11) {
      const std::uint32_t s = slots_[pick(static_cast<std::uint32_t>(slots_.size()))];
      if (chance(2)) {
        push(b_.get(s));
      } else {
        b_.set(s, any(k_.slots[s].type));
      }
      return;
    }
    if (kind == 11) return warp();
    if (kind == 12) {
      push(condition());
      return;
    }
    if (kind < 18) return branch(depth);
    if (kind < 20) return counted(depth);
    if (kind == 20) return repeated(depth);
    return choose(depth);
  }

  void expression() {
    const Type t = std::array{Type::U32, Type::U32, Type::U32, Type::I32, Type::U64, Type::F32}[pick(6)];
    switch (pick(6)) {
      case 0: {
        static constexpr Opcode ops[] = {Opcode::Add, Opcode::Sub, Opcode::Mul, Opcode::Div, Opcode::Min, Opcode::Max};
        const ValueId a = any(t), b = any(t);
        push(b_.binary(ops[pick(6)], a, b));
        return;
      }
      case 1: {
        const Type i = t == Type::F32 ? Type::U32 : t;
        static constexpr Opcode ops[] = {Opcode::Rem, Opcode::And, Opcode::Or, Opcode::Xor, Opcode::Shl, Opcode::Shr, Opcode::MulHi};
        const ValueId a = any(i), b = any(i);
        push(b_.binary(ops[pick(7)], a, b));
        return;
      }
      case 2: {
        const ValueId c = any(Type::Bool), a = any(t), b = any(t);
        push(b_.select(c, a, b));
        return;
      }
      case 3: {
        static constexpr Type from[] = {Type::U32, Type::I32, Type::U64, Type::F32, Type::Bool};
        push(b_.cast(t, any(from[pick(5)])));
        return;
      }
      case 4: push(b_.unary(chance(2) ? Opcode::Neg : Opcode::Abs, any(t))); return;
      default: push(neighbour(any(Type::U32))); return;
    }
  }

  ValueId neighbour(ValueId v) {
    const ValueId k = b_.const_u32(1 + pick(2));
    switch (pick(6)) {
      case 0: return b_.binary(Opcode::Add, v, k);
      case 1: return b_.binary(Opcode::Sub, v, k);
      case 2: return b_.binary(Opcode::Rem, v, any(Type::U32));
      case 3: return b_.binary(Opcode::Min, v, any(Type::U32));
      case 4: return b_.binary(Opcode::Sub, any(Type::U32), v);
      default: return b_.binary(Opcode::And, v, b_.const_u32((1u << pick(5)) - 1));
    }
  }

  ValueId condition() {
    static constexpr Opcode ops[] = {Opcode::Lt, Opcode::Lt, Opcode::Lt, Opcode::Ge, Opcode::Ge,
                                     Opcode::Le, Opcode::Gt, Opcode::Eq, Opcode::Ne};
    const auto compare = [&] {
      const Type t = chance(4) ? Type::I32 : chance(8) ? Type::F32 : chance(8) ? Type::U64 : Type::U32;
      const ValueId a = any(t), b = t == Type::U32 ? limit() : any(t);
      return b_.binary(ops[pick(9)], a, b);
    };
    switch (pick(6)) {
      case 0: {
        const ValueId a = compare(), b = compare();
        return b_.binary(chance(3) ? Opcode::Or : Opcode::And, a, b);
      }
      case 1: return b_.unary(Opcode::Not, any(Type::Bool));
      case 2: {  // short-circuit, through a local of its own
        const std::uint32_t s = b_.slot("c", Type::Bool);
        const ValueId a = compare();
        const bool both = chance(2);
        b_.set(s, a);
        const OpId branch = b_.if_(both ? a : b_.unary(Opcode::Not, a));
        inside(k_.op(branch).regions[0], [&] {
          if (chance(2)) expression();
          if (chance(2)) access();
          b_.set(s, compare());
        });
        return b_.get(s);
      }
      default: return compare();
    }
  }
  ValueId limit() {
    switch (pick(7)) {
      case 0: return b_.size(x_);
      case 1: return b_.extent(img_, 0);
      case 2: return b_.extent(img_, 1);
      case 3: return b_.const_u32(kLocal);
      case 4: return b_.binary(Opcode::Sub, b_.extent(img_, pick(2)), b_.const_u32(1));
      case 5: return b_.param(n_);
      default: return any(Type::U32);
    }
  }

  ValueId index() {
    const Type t = chance(5) ? Type::I32 : chance(8) ? Type::U64 : Type::U32;
    const ValueId v = any(t);
    return t == Type::U32 && chance(3) ? neighbour(v) : v;
  }

  void access() {
    const auto now = [&](std::uint32_t where, const std::vector<ValueId>& at) {
      if (where == local_ && chance(2)) {
        b_.store(local_, at, any(Type::U32));
      } else {
        push(b_.load(where, at));
      }
    };
    const std::uint32_t where = std::array{x_, img_, local_, local_}[pick(4)];
    std::vector<ValueId> at{index()};
    if (where == img_) at.push_back(index());
    if (chance(3)) return now(where, at);
    // Under a guard that may or may not be enough.
    ValueId guard = kNone;
    for (unsigned d = 0; d < at.size(); ++d) {
      const Type t = b_.type(at[d]);
      ValueId bound = where == local_ ? b_.const_u32(kLocal) : chance(5) ? limit() : b_.extent(where, d);
      if (t != Type::U32) bound = b_.cast(t, bound);
      const ValueId g = b_.binary(chance(10) ? Opcode::Le : Opcode::Lt, at[d], bound);
      guard = d == 0 ? g : b_.binary(chance(12) ? Opcode::Or : Opcode::And, guard, g);
      if (t == Type::I32 && chance(2)) {
        const ValueId positive = b_.binary(Opcode::Ge, at[d], b_.const_i32(0));
        guard = b_.binary(Opcode::And, guard, positive);
      }
    }
    const OpId branch = b_.if_(guard);
    inside(k_.op(branch).regions[0], [&] {
      now(where, at);
      if (b_.type(at[0]) == Type::U32) {
        std::vector<ValueId> near = at;
        near[0] = neighbour(at[0]);
        now(where, near);
      }
      if (chance(2)) statement(0);
    });
  }

  void warp() {
    switch (pick(4)) {
      case 0: push(b_.warp_vote(Opcode::Ballot, any(Type::Bool))); break;
      case 1: push(b_.warp_vote(chance(2) ? Opcode::VoteAll : Opcode::VoteAny, any(Type::Bool))); break;
      case 2: {
        const ValueId v = any(Type::U32);
        push(b_.shuffle(Opcode::ShuffleXor, v, b_.const_u32(pick(32))));
        break;
      }
      default: push(b_.warp_combine(Opcode::WarpReduce, Combine::Add, any(Type::U32))); break;
    }
  }

  void leave() {
    if (loops_ > 0 && chance(2)) {
      b_.leave(chance(2) ? Opcode::Break : Opcode::Continue);
    } else {
      b_.leave(Opcode::Return);
    }
  }

  void branch(int depth) {
    const OpId op = b_.if_(chance(2) ? condition() : any(Type::Bool));
    const std::uint32_t exits = pick(8);
    for (unsigned side = 0; side < 2; ++side) {
      if (side == 1 && chance(2)) break;
      inside(k_.op(op).regions[side], [&] {
        if (!chance(4)) block(depth - 1, 4);
        if (exits == side) leave();
      });
    }
  }

  void counted(int depth) {
    const Type t = chance(4) ? Type::I32 : Type::U32;
    const ValueId lo = chance(2) ? constant(t) : any(t);
    ValueId hi = b_.binary(Opcode::Min, any(t), b_.constant(t, 1 + pick(12)));
    if (t == Type::U32 && chance(3)) hi = b_.extent(img_, pick(2));
    const ValueId first = t == Type::I32 ? b_.binary(Opcode::Max, lo, b_.const_i32(-4)) : lo;
    const ValueId step = chance(2) ? b_.constant(t, 1) : b_.constant(t, 1 + pick(4));
    const OpId loop = b_.for_(first, hi, step);
    ++loops_;
    inside(k_.op(loop).regions[0], [&] {
      push(loop);
      block(depth - 1, 4);
    });
    --loops_;
  }

  void repeated(int depth) {
    const std::uint32_t count = b_.slot("n", Type::U32);
    b_.set(count, b_.binary(Opcode::And, any(Type::U32), b_.const_u32(3)));
    const OpId loop = b_.while_();
    ++loops_;
    inside(k_.op(loop).regions[0], [&] {
      const ValueId i = push(b_.get(count));
      if (chance(2)) expression();
      const ValueId below = b_.binary(Opcode::Lt, i, b_.const_u32(6));
      b_.yield(chance(2) ? below : b_.binary(Opcode::And, below, any(Type::Bool)));
    });
    inside(k_.op(loop).regions[1], [&] {
      const ValueId i = push(b_.get(count));
      b_.set(count, b_.binary(Opcode::Add, i, b_.const_u32(1 + pick(2))));
      block(depth - 1, 4);
    });
    --loops_;
  }

  void choose(int depth) {
    const OpId op = b_.switch_(chance(2) ? b_.binary(Opcode::And, any(Type::U32), b_.const_u32(3)) : any(Type::U32), {0, 2, 5});
    for (unsigned r = 0; r < 4; ++r)
      inside(k_.op(op).regions[r], [&] {
        if (!chance(3)) block(depth - 1, 3);
        if (chance(12)) leave();
      });
  }

  std::mt19937_64 random_;
  Kernel k_;
  Builder b_;
  std::uint32_t x_ = 0, img_ = 0, out_ = 0, n_ = 0, m_ = 0, local_ = 0, shared_ = 0;
  std::vector<std::uint32_t> slots_;
  std::array<std::vector<ValueId>, kTypeCount> values_;
  int loops_ = 0;
};

// One launch of a prepared kernel on fixed inputs.
struct Result {
  std::vector<std::uint8_t> out;
  interp::Outcome outcome;
};
Result launch(const Prepared& p, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint32_t n = random() % 12, h = 1 + random() % 6, w = random() % 6;
  std::vector<std::uint8_t> x(4 * n), img(4 * h * w), out(4 * 2 * kThreads, 0xaa);
  for (std::uint8_t& b : x) b = random() % 3 == 0 ? static_cast<std::uint8_t>(random()) : 0;
  for (std::uint8_t& b : img) b = random() % 3 == 0 ? static_cast<std::uint8_t>(random()) : 0;
  interp::Launch l;
  l.grid[0] = 2;
  l.block[0] = kThreads;
  l.step_limit = 20'000'000;
  const auto buffer = [&](std::vector<std::uint8_t>& bytes, std::vector<std::uint64_t> extents) {
    interp::Arg a;
    a.is_buffer = true;
    a.bytes = &bytes;
    a.extents = std::move(extents);
    l.args.push_back(a);
  };
  buffer(x, {n});
  buffer(img, {h, w});
  buffer(out, {2, kThreads});
  interp::Arg scalar;
  scalar.bits = n == 0 ? 0 : random() % (n + 1);
  l.args.push_back(scalar);
  scalar.bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(random() % 20) - 6);
  l.args.push_back(scalar);
  Result r;
  r.outcome = interp::run(p, l);
  r.out = std::move(out);
  return r;
}

// As recorded: contraction, which is part of the meaning, and a check on every access.
Prepared recorded(const Kernel& k) {
  Prepared p;
  p.kernel = k;
  contract(p.kernel);
  compact(p.kernel);
  for (Op& op : p.kernel.ops) {
    if (!is_access(op.code)) continue;
    op.bounds = Bounds::Checked;
    op.site = static_cast<std::uint32_t>(p.sites.size());
    p.sites.push_back({});
  }
  p.shared = layout_shared(p.kernel);
  return p;
}

}  // namespace

TEST_CASE("random kernels keep their bits through the passes, and nothing proven is out of range") {
  const char* count = std::getenv("KILN_RANDOM_KERNELS");
  const char* first = std::getenv("KILN_RANDOM_FIRST");
  const std::uint64_t begin = first ? std::strtoull(first, nullptr, 10) : 0, n = count ? std::strtoull(count, nullptr, 10) : 200;
  std::size_t proven = 0, accesses = 0, finished = 0;
  for (std::uint64_t seed = begin; seed < begin + n; ++seed) {
    const Kernel k = Generator(seed).make();
    CAPTURE(seed);
    REQUIRE(to_string(verify(k)) == "");
    const Prepared plain = recorded(k), ready = prepare(k);
    for (const Op& op : ready.kernel.ops) {
      accesses += is_access(op.code);
      proven += is_access(op.code) && op.bounds == Bounds::Proven;
    }
    for (std::uint64_t input = 0; input < 2; ++input) {
      CAPTURE(input);
      const Result a = launch(plain, seed * 2 + input), b = launch(ready, seed * 2 + input);
      for (const std::string& m : b.outcome.misuse) CHECK_MESSAGE(m.find("step limit") != std::string::npos, m);
      if (!a.outcome.misuse.empty() || !b.outcome.misuse.empty()) continue;  // only ever the step limit, or both would say the same
      ++finished;
      CHECK(a.out == b.out);
      CHECK(a.outcome.fault.has_value() == b.outcome.fault.has_value());
    }
  }
  if (n >= 100) {
    CHECK(proven * 4 > accesses);  // the proofs are exercised
    CHECK((accesses - proven) * 8 > accesses);
    CHECK(finished * 10 > n * 2 * 9);
  }
  if (count) MESSAGE(proven << " of " << accesses << " accesses proven, " << finished << " launches compared");
}

TEST_CASE("each pass leaves alone what it has made") {
  for (std::uint64_t seed = 5000; seed < 5150; ++seed) {
    CAPTURE(seed);
    Kernel k = Generator(seed).make();
    for (const auto pass : {contract, fold_and_simplify, eliminate_common, eliminate_dead}) {
      pass(k);
      Kernel again = k;
      pass(again);
      compact(again);
      Kernel once = k;
      compact(once);
      CHECK(print(again) == print(once));
    }
  }
}
