// Nothing proven is out of range: random index arithmetic between requires and guards, each proof held against many values of the
// parameters, sizes and thread numbers, chosen where products wrap, signs change and comparisons tip over. Sizes are numbers here, not
// memory, so that they may be as large as the language allows. KILN_RANDOM_KERNELS=n tries n kernels.
#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>

#include "kiln/ir/builder.h"
#include "kiln/ir/eval.h"
#include "kiln/ir/passes.h"
#include "kiln/ir/text.h"
#include "kiln/ir/verify.h"

using namespace kiln::ir;

namespace {

using Num = __int128;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((next() >> 32) % n); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  template <class T>
  T of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<std::uint32_t>(list.size()))];
  }

 private:
  std::uint64_t state_;
};

// --- kernels -----------------------------------------------------------------------------------------------------------------------

constexpr Type kTypes[] = {Type::U32, Type::U32, Type::I32, Type::U64, Type::I64, Type::U8, Type::I16};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), b_(k_) {}

  Kernel make() {
    k_.name = "indices";
    if (random_.chance(40)) k_.block_size = random_.of<std::array<std::uint32_t, 3>>({{256, 1, 1}, {16, 16, 1}, {32, 1, 1}, {45, 1, 1}});
    else if (random_.chance(20)) k_.max_threads = random_.of({32u, 256u});
    y_ = b_.buffer("y", Type::U32, 1, Access::InOut);
    a_ = b_.buffer("a", Type::U32, 2, Access::InOut);
    for (int n = 0; n < 5; ++n) params_.push_back(b_.scalar("p" + std::to_string(n), type_of_params(n)));
    for (const std::uint32_t p : params_) values_.push_back(b_.param(p));
    for (int n = 0; n < 4; ++n) values_.push_back(leaf());
    const std::uint32_t statements = 2 + random_.below(6);
    if (random_.chance(60)) matrix();
    for (std::uint32_t n = 0; n < statements; ++n) statement();
    store();
    return k_;
  }

 private:
  // Mostly one type for all, as people write it.
  Type type_of_params(int n) {
    if (n == 0) common_ = kTypes[random_.below(std::size(kTypes))];
    return random_.chance(85) ? common_ : kTypes[random_.below(std::size(kTypes))];
  }

  ValueId leaf() {
    const auto axis = random_.below(2);
    switch (random_.below(9)) {
      case 0: return b_.extent(a_, axis, random_.of({Type::U32, Type::U64}));
      case 1: return b_.size(random_.of({y_, y_, a_}), random_.of({Type::U32, Type::U64}));
      case 2:
      case 3: return b_.query(Opcode::ThreadId, axis);
      case 4: return b_.query(Opcode::BlockDim, axis);
      case 5: return b_.query(Opcode::BlockId, axis);
      case 6: return b_.query(Opcode::GlobalId, axis);
      case 7: return b_.query(Opcode::LaneId);
      default: return number(kTypes[random_.below(std::size(kTypes))]);
    }
  }
  ValueId number(Type t) {
    return b_.constant(t, random_.of<std::uint64_t>(
                              {0, 1, 1, 2, 3, 4, 16, 31, 32, 255, 256, 257, 65535, 65536, 65537, 0x7fffffff, 0x80000000, 0xffffffff}) &
                              value_mask(t));
  }
  ValueId any() {
    return values_[random_.chance(50) ? values_.size() - 1 - random_.below(std::min<std::uint32_t>(4, size())) : random_.below(size())];
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(values_.size()); }
  ValueId as(Type t, ValueId v) { return b_.type(v) == t ? v : b_.cast(t, v); }
  ValueId any(Type t) { return as(t, any()); }
  ValueId keep(ValueId v) {
    values_.push_back(v);
    return v;
  }

  ValueId compute() {
    const Type t = b_.type(any());
    if (random_.chance(15)) return as(kTypes[random_.below(std::size(kTypes))], any());
    if (random_.chance(8)) return b_.select(comparison(), any(t), any(t));
    const Opcode code =
        random_.of({Opcode::Add, Opcode::Add, Opcode::Add, Opcode::Sub, Opcode::Sub, Opcode::Mul, Opcode::Mul, Opcode::Mul, Opcode::Div,
                    Opcode::Rem, Opcode::Min, Opcode::Max, Opcode::And, Opcode::Or, Opcode::Xor, Opcode::Shl, Opcode::Shr});
    return b_.binary(code, any(t), random_.chance(40) ? number(t) : any(t));
  }
  ValueId comparison() {
    const ValueId l = any();
    const Type t = b_.type(l);
    const ValueId r = random_.chance(20) ? number(t) : any(t);
    return b_.binary(
        random_.of({Opcode::Lt, Opcode::Lt, Opcode::Lt, Opcode::Le, Opcode::Gt, Opcode::Ge, Opcode::Ge, Opcode::Eq, Opcode::Ne}), l, r);
  }
  void enter(ValueId condition) {
    const OpId branch = b_.if_(condition);
    const RegionId around = b_.region();
    if (random_.chance(20)) {  // leave early where it does not hold, or where it does
      b_.set_region(k_.op(branch).regions[random_.chance(80) ? 1 : 0]);
      b_.leave(Opcode::Return);
      b_.set_region(around);
    } else {
      around_.push_back({around, values_.size()});
      b_.set_region(k_.op(branch).regions[random_.chance(90) ? 0 : 1]);
    }
  }
  void go_out() {
    if (around_.empty()) return;
    b_.set_region(around_.back().first);
    values_.resize(around_.back().second);
    around_.pop_back();
  }
  void statement() {
    switch (random_.below(11)) {
      case 0: b_.require(comparison(), ""); break;
      case 1: {
        const ValueId l = comparison();
        b_.require(random_.chance(30) ? b_.binary(Opcode::And, l, comparison()) : l, "");
        break;
      }
      case 2: {
        const ValueId l = comparison();
        enter(random_.chance(30) ? b_.binary(random_.of({Opcode::And, Opcode::And, Opcode::Or}), l, comparison()) : l);
        break;
      }
      case 3: {
        const Type t = random_.of({Type::U32, Type::I32, Type::U64});
        const ValueId lo = random_.chance(50) ? number(t) : any(t), hi = any(t), step = random_.chance(70) ? number(t) : any(t);
        const OpId loop = b_.for_(lo, hi, step);
        around_.push_back({b_.region(), values_.size()});
        b_.set_region(k_.op(loop).regions[0]);
        keep(loop);
        break;
      }
      case 4: go_out(); break;
      case 5:  // what a store asks
      case 6: {
        const ValueId index = any();
        const ValueId size = b_.size(y_, random_.of({Type::U32, Type::U64}));
        const Type t = is_signed(b_.type(index)) ? b_.type(index) : b_.type(size);
        enter(b_.binary(random_.of({Opcode::Lt, Opcode::Lt, Opcode::Lt, Opcode::Le}), as(t, index), as(t, size)));
        b_.store(y_, {index}, b_.const_u32(1));
        break;
      }
      default: keep(compute()); break;
    }
    if (random_.chance(25)) store();
  }

  // Sizes, rows and columns of a matrix in y, mostly as they should be.
  void matrix() {
    const bool plain = random_.chance(75);
    const ValueId h = plain ? values_[0] : any(), w = plain ? values_[1] : any();
    const Type wide = random_.chance(60) ? random_.of({Type::U64, Type::I64}) : b_.type(h);
    ValueId hw = b_.binary(Opcode::Mul, as(wide, h), as(wide, w));
    if (random_.chance(15)) hw = b_.binary(Opcode::Mul, hw, any(wide));
    if (random_.chance(10)) hw = b_.binary(random_.of({Opcode::Add, Opcode::Sub}), hw, number(wide));
    const ValueId n = as(wide, b_.size(y_, random_.of({Type::U32, Type::U32, Type::U64})));
    for (const ValueId v : {h, w}) {
      if (random_.chance(40)) b_.require(b_.binary(Opcode::Le, v, number(b_.type(v))), "");
    }
    b_.require(b_.binary(random_.of({Opcode::Eq, Opcode::Eq, Opcode::Eq, Opcode::Ge, Opcode::Gt, Opcode::Le}), n, hw), "");
    const ValueId r = plain ? as(b_.type(h), values_[2]) : any(b_.type(h)), c = plain ? as(b_.type(w), values_[3]) : any(b_.type(w));
    const auto below = [&] { return random_.of({Opcode::Lt, Opcode::Lt, Opcode::Lt, Opcode::Lt, Opcode::Le}); };
    for (const ValueId v : {r, c}) {
      if (is_signed(b_.type(v)) && random_.chance(80)) enter(b_.binary(Opcode::Ge, v, b_.constant(b_.type(v), 0)));
    }
    enter(b_.binary(Opcode::And, b_.binary(below(), r, h), b_.binary(below(), c, random_.chance(95) ? w : as(b_.type(c), h))));
    const Type t = random_.of({wide, b_.type(h), Type::U32, Type::U64});
    const auto part = [&](ValueId v) {
      if (random_.chance(8)) v = b_.binary(random_.of({Opcode::Add, Opcode::Sub}), v, b_.constant(b_.type(v), 1));
      return as(t, v);
    };
    const ValueId row = keep(b_.binary(Opcode::Mul, part(r), part(random_.chance(95) ? w : h)));
    const ValueId index = keep(random_.chance(10) ? row : b_.binary(Opcode::Add, row, part(c)));
    if (is_signed(t) && random_.chance(50)) enter(b_.binary(Opcode::Ge, index, b_.constant(t, 0)));
    b_.store(y_, {index}, b_.const_u32(1));
  }

  void store() {
    const ValueId v = b_.const_u32(1);
    if (random_.chance(75)) b_.store(y_, {any()}, v);
    else b_.store(a_, {any(), any()}, v);
  }

  Random random_;
  Kernel k_;
  Builder b_;
  Type common_ = Type::U32;
  std::uint32_t y_ = 0, a_ = 0;
  std::vector<std::uint32_t> params_;
  std::vector<ValueId> values_;
  std::vector<std::pair<RegionId, std::size_t>> around_;  // regions entered, and what was known before
};

// --- values ------------------------------------------------------------------------------------------------------------------------

// One thread of one launch, as far as its values go.
class Run {
 public:
  Run(const Kernel& k, Random& random) : k_(k), random_(random), value_(k.ops.size()) {
    // A few numbers, of which everything is made, so that things are equal, or one apart, more often than by chance.
    for (std::uint64_t& s : seed_numbers_) {
      s = random_.chance(50)
              ? random_.below(6)
              : random_.of<std::uint64_t>({15,         16,         31,         32,         33,         44,          45,
                                           255,        256,        257,        4095,       65535,      65536,       65537,
                                           0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x100000000, 0xffffffffffffffff});
    }
    block_ = k.has_block_size() ? k.block_size : std::array<std::uint32_t, 3>{random_.of({1u, 7u, 32u, 256u}), random_.of({1u, 2u, 4u}), 1};
    if (k.max_threads != 0 && block_[0] * block_[1] > k.max_threads) block_ = {k.max_threads, 1, 1};
    for (int axis = 0; axis < 3; ++axis) {
      thread_[axis] = edge(block_[axis]);
      grid_[axis] = random_.of({1u, 2u, 65535u});
      at_[axis] = edge(grid_[axis]);
    }
    for (const Param& p : k.params) scalars_.push_back(p.is_buffer ? 0 : near_number() & value_mask(p.type));
    extents_.resize(k.mems.size());
    for (std::size_t m = 0; m < k.mems.size(); ++m) {
      for (unsigned d = 0; d < k.mems[m].rank; ++d) extents_[m][d] = near_number();
    }
  }

  // Runs it if it is a launch that the runtime would start: requires hold, 32-bit sizes fit. Sizes that an unmet require speaks of are set
  // to meet it, a few times.
  void run() {
    for (int attempt = 0; attempt < 6; ++attempt) {
      changed_ = false;
      if (sizes_fit() && region(0) != State::Refused) return;
      if (!changed_) return;
    }
  }

  std::size_t proven() const { return proven_; }                      // accesses reached that need no check, as the prover says
  const std::optional<std::string>& wrong() const { return wrong_; }  // one of them that is out of range

 private:
  std::optional<std::string> outside(OpId id) const {
    const Op& op = k_.op(id);
    for (unsigned d = 0; d < k_.mems[op.index].rank; ++d) {
      const Num index = mathematical(k_.op(op.operands[d]).type, value_[op.operands[d]]);
      if (index >= 0 && index < Num{extents_[op.index][d]}) continue;
      return "index " + std::to_string(static_cast<long long>(index)) + " of " + k_.mems[op.index].name + ", which has " +
             std::to_string(extents_[op.index][d]);
    }
    return {};
  }

  enum class State { Goes, Left, Refused };
  static Num mathematical(Type t, std::uint64_t bits) { return is_signed(t) ? Num{sign_extend(t, bits)} : Num{bits}; }
  std::uint32_t edge(std::uint32_t n) { return random_.chance(40) ? n - 1 : random_.chance(40) ? 0 : random_.below(n); }
  std::uint64_t near_number() {
    const std::uint64_t n = seed_numbers_[random_.below(3)];
    switch (random_.below(8)) {
      case 0: return 0;
      case 1: return n + 1;
      case 2: return n == 0 ? 0 : random_.next() % n;
      case 3:
      case 4: return n - 1;
      default: return n;
    }
  }

  std::uint64_t count(std::uint32_t mem) const {
    std::uint64_t n = 1;
    bool zero = false, large = false;
    for (unsigned d = 0; d < k_.mems[mem].rank; ++d) {
      zero = zero || extents_[mem][d] == 0;
      large = __builtin_mul_overflow(n, extents_[mem][d], &n) || large;
    }
    return zero ? 0 : large ? ~std::uint64_t{0} : n;
  }
  bool sizes_fit() const {
    for (std::uint32_t m = 0; m < k_.mems.size(); ++m) {
      if (count(m) == ~std::uint64_t{0} && extents_[m][0] != ~std::uint64_t{0}) return false;  // no memory is that large
    }
    bool fit = true;
    for (const Op& op : k_.ops) {
      if (bit_width(op.type) != 32) continue;
      if (op.code == Opcode::Extent) fit = fit && extents_[op.index][op.attr] <= 0xffffffffu;
      if (op.code == Opcode::Size) fit = fit && count(op.index) <= 0xffffffffu;
      if (op.code == Opcode::GlobalId) fit = fit && std::uint64_t{grid_[op.attr]} * block_[op.attr] <= 0xffffffffu;
    }
    return fit;
  }

  State region(RegionId r) {
    for (const OpId id : k_.regions[r].ops) {
      if (const State s = step(id); s != State::Goes) return s;
    }
    return State::Goes;
  }

  State step(OpId id) {
    const Op& op = k_.op(id);
    std::uint64_t& v = value_[id];
    const auto of = [&](int n) { return value_[op.operands[static_cast<std::size_t>(n)]]; };
    switch (op.code) {
      case Opcode::Const: v = op.imm; return State::Goes;
      case Opcode::Param: v = scalars_[op.index]; return State::Goes;
      case Opcode::Extent: v = extents_[op.index][op.attr]; return State::Goes;
      case Opcode::Size: v = count(op.index); return State::Goes;
      case Opcode::ThreadId: v = thread_[op.attr]; return State::Goes;
      case Opcode::BlockDim: v = block_[op.attr]; return State::Goes;
      case Opcode::BlockId: v = at_[op.attr]; return State::Goes;
      case Opcode::GlobalId: v = std::uint64_t{at_[op.attr]} * block_[op.attr] + thread_[op.attr]; return State::Goes;
      case Opcode::LaneId: v = (thread_[0] + thread_[1] * block_[0]) % 32; return State::Goes;
      case Opcode::Return: return State::Left;
      case Opcode::Require:
        if (of(0) != 0) return State::Goes;
        meet(op.operands[0]);
        return State::Refused;
      case Opcode::If: return region(op.regions[of(0) != 0 ? 0 : 1]);
      case Opcode::For: {  // one iteration stands for all
        const Type t = op.type;
        const Num lo = mathematical(t, of(0)), hi = mathematical(t, of(1)), by = mathematical(t, of(2));
        if (lo >= hi) return State::Goes;
        const Num last = by <= 0 ? Num{0} : (hi - 1 - lo) / by;
        const Num k = random_.chance(40) ? last : random_.chance(50) ? Num{0} : std::min<Num>(last, random_.below(5));
        v = static_cast<std::uint64_t>(lo + k * std::max<Num>(by, 0)) & value_mask(t);
        return region(op.regions[0]);
      }
      case Opcode::Store:
        if (op.bounds == Bounds::Proven) check(id);
        return State::Goes;
      default: break;
    }
    std::array<std::uint64_t, 3> operands{};
    for (std::size_t n = 0; n < op.operands.size(); ++n) operands[n] = of(static_cast<int>(n));
    const Type from = k_.op(op.operands[op.code == Opcode::Select ? 1 : 0]).type;
    v = evaluate(op.code, op.type, from, std::span(operands.data(), op.operands.size())).value();
    return State::Goes;
  }

  // A size or parameter on one side of an unmet comparison becomes what the other side asks for, give or take one.
  void meet(ValueId condition) {
    const Op& compare = k_.op(condition);
    if (compare.operands.size() != 2) return;
    const std::size_t first = random_.below(2);
    for (const std::size_t side : {first, 1 - first}) {
      ValueId v = compare.operands[side];
      while (k_.op(v).code == Opcode::Cast) v = k_.op(v).operands[0];
      const Op& op = k_.op(v);
      const std::uint64_t value = value_[compare.operands[1 - side]] + random_.of<std::uint64_t>({0, 0, 0, 1, ~std::uint64_t{0}});
      if (op.code == Opcode::Extent) extents_[op.index][op.attr] = value;
      else if (op.code == Opcode::Size && k_.mems[op.index].rank == 1) extents_[op.index][0] = value;
      else if (op.code == Opcode::Param) scalars_[op.index] = value & value_mask(op.type);
      else continue;
      changed_ = true;
      return;
    }
  }

  void check(OpId id) {
    ++proven_;
    if (!wrong_) {
      if (const auto out = outside(id)) wrong_ = *out;
    }
  }

  const Kernel& k_;
  Random& random_;
  std::vector<std::uint64_t> value_;
  std::array<std::uint64_t, 3> seed_numbers_{};
  std::array<std::uint32_t, 3> block_{}, thread_{}, grid_{}, at_{};
  std::vector<std::uint64_t> scalars_;
  std::vector<std::array<std::uint64_t, 4>> extents_;
  bool changed_ = false;  // something, to meet a require
  std::size_t proven_ = 0;
  std::optional<std::string> wrong_;
};

}  // namespace

TEST_CASE("random index arithmetic: no access that was proven is out of range, whatever the values") {
  const char* count = std::getenv("KILN_RANDOM_KERNELS");
  const std::uint64_t kernels = count != nullptr ? std::strtoull(count, nullptr, 10) : 3000;
  std::size_t accesses = 0, proven = 0, reached = 0;
  for (std::uint64_t seed = 0; seed < kernels; ++seed) {
    Kernel k = Generator(seed).make();
    decide_bounds(k);
    std::size_t of_these = 0;
    for (const Op& op : k.ops) {
      accesses += is_access(op.code);
      of_these += is_access(op.code) && op.bounds == Bounds::Proven;
    }
    proven += of_these;
    if (of_these == 0) continue;
    Random random(seed + 1'000'000);
    for (int sample = 0; sample < 200; ++sample) {
      Run run(k, random);
      run.run();
      reached += run.proven();
      if (!run.wrong()) continue;
      FAIL_CHECK("seed " << seed << ": " << *run.wrong() << " in\n" << print(k, false));
      break;
    }
  }
  CHECK(proven * 20 > accesses);  // the proofs are exercised
  CHECK(reached > 10 * kernels);
  if (count != nullptr) MESSAGE(proven << " of " << accesses << " accesses proven, " << reached << " times held against values");
}
