#include "batch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <type_traits>

#include "kiln/ir/builder.h"
#include "kiln/ir/eval.h"
#include "kiln/ir/passes.h"

namespace kiln::bench {

using namespace ir;

Batch::Batch(Opcode op, Type type) {
  Builder b(kernel_);
  kernel_.name = "f";
  const std::uint32_t x = b.scalar("x", type), y = b.scalar("y", info(op).form == Form::IntegerPower ? Type::I32 : type);
  out_ = b.slot("out", type);
  const ValueId vx = b.param(x);
  b.set(out_, info(op).form == Form::Unary ? b.unary(op, vx) : b.binary(op, vx, b.param(y)));
  expand_math(kernel_);
  fold_and_simplify(kernel_);
  eliminate_common(kernel_);
  slots_.resize(kernel_.slots.size());
  values_.resize(kernel_.ops.size());
}

void Batch::run() {
  for (Lanes& s : slots_) s.fill(0);
  Mask all;
  all.fill(1);
  region(0, all);
}

void Batch::region(RegionId r, const Mask& active) {
  for (const OpId id : kernel_.regions[r].ops) {
    const Op& op = kernel_.op(id);
    switch (op.code) {
      case Opcode::Const: values_[id].fill(op.imm); break;
      case Opcode::Param: values_[id] = arguments_[op.index]; break;
      case Opcode::Get: values_[id] = slots_[op.index]; break;
      case Opcode::Set:
        for (std::size_t i = 0; i < kLanes; ++i) {
          if (active[i]) slots_[op.index][i] = values_[op.operands[0]][i];
        }
        break;
      case Opcode::If: {
        for (unsigned side = 0; side < 2; ++side) {
          Mask m;
          std::uint8_t any = 0;
          for (std::size_t i = 0; i < kLanes; ++i) any |= m[i] = active[i] & ((values_[op.operands[0]][i] != 0) == (side == 0));
          if (any) region(op.regions[side], m);
        }
        break;
      }
      case Opcode::While: {
        Mask m = active;
        for (;;) {
          region(op.regions[0], m);
          std::uint8_t any = 0;
          for (std::size_t i = 0; i < kLanes; ++i) any |= m[i] &= yielded_[i] != 0;
          if (!any) break;
          region(op.regions[1], m);
        }
        break;
      }
      case Opcode::Yield: yielded_ = values_[op.operands[0]]; break;
      default: compute(op, values_[id]); check_sample(op, values_[id]);
    }
  }
}

// One lane of every operation, every time, against the definition.
void Batch::check_sample(const Op& op, const Lanes& got) const {
  std::array<std::uint64_t, 3> in{};
  const std::size_t lane = (got[0] ^ got[7]) % kLanes;
  for (std::size_t i = 0; i < op.operands.size(); ++i) in[i] = values_[op.operands[i]][lane];
  const Type operand = kernel_.op(op.operands[op.code == Opcode::Select ? 1 : 0]).type;
  const auto right = evaluate(op.code, op.type, operand, std::span(in.data(), op.operands.size()));
  const bool nan = op.type == Type::F32 ? (got[lane] & 0x7fffffff) > 0x7f800000 && right && (*right & 0x7fffffff) > 0x7f800000
                   : op.type == Type::F64
                       ? (got[lane] & ~0ull >> 1) > 0x7ff0000000000000 && right && (*right & ~0ull >> 1) > 0x7ff0000000000000
                       : false;
  if (right && (*right == got[lane] || nan)) return;
  std::fprintf(stderr, "math_ulp: the batch evaluation of %s differs from ir::evaluate\n", std::string(info(op.code).mnemonic).c_str());
  std::exit(1);
}

namespace {

template <class T>
T get(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(bits);
  else return static_cast<T>(bits);
}
template <class T>
std::uint64_t put(T v) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<std::uint32_t>(v);
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<std::uint64_t>(v);
  else if constexpr (std::is_same_v<T, bool>) return v;
  else return static_cast<std::make_unsigned_t<T>>(v);
}

template <class T, class F>
void map(std::uint64_t* to, const std::uint64_t* a, const std::uint64_t* b, const std::uint64_t* c, F f) {
  for (std::size_t i = 0; i < Batch::kLanes; ++i) to[i] = put(f(get<T>(a[i]), get<T>(b[i]), get<T>(c[i])));
}

// The hot operations natively; true when done.
template <class T>
bool native(Opcode code, std::uint64_t* to, const std::uint64_t* a, const std::uint64_t* b, const std::uint64_t* c) {
  switch (code) {
    case Opcode::Lt: map<T>(to, a, b, c, [](T x, T y, T) { return x < y; }); return true;
    case Opcode::Le: map<T>(to, a, b, c, [](T x, T y, T) { return x <= y; }); return true;
    case Opcode::Gt: map<T>(to, a, b, c, [](T x, T y, T) { return x > y; }); return true;
    case Opcode::Ge: map<T>(to, a, b, c, [](T x, T y, T) { return x >= y; }); return true;
    case Opcode::Eq: map<T>(to, a, b, c, [](T x, T y, T) { return x == y; }); return true;
    case Opcode::Ne: map<T>(to, a, b, c, [](T x, T y, T) { return x != y; }); return true;
    default: break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (code) {
      case Opcode::Add: map<T>(to, a, b, c, [](T x, T y, T) { return x + y; }); return true;
      case Opcode::Sub: map<T>(to, a, b, c, [](T x, T y, T) { return x - y; }); return true;
      case Opcode::Mul: map<T>(to, a, b, c, [](T x, T y, T) { return x * y; }); return true;
      case Opcode::Div: map<T>(to, a, b, c, [](T x, T y, T) { return x / y; }); return true;
      case Opcode::Fma: map<T>(to, a, b, c, [](T x, T y, T z) { return std::fma(x, y, z); }); return true;
      case Opcode::Neg: map<T>(to, a, b, c, [](T x, T, T) { return -x; }); return true;
      case Opcode::Abs: map<T>(to, a, b, c, [](T x, T, T) { return std::fabs(x); }); return true;
      case Opcode::Sqrt: map<T>(to, a, b, c, [](T x, T, T) { return std::sqrt(x); }); return true;
      case Opcode::Trunc: map<T>(to, a, b, c, [](T x, T, T) { return std::trunc(x); }); return true;
      case Opcode::CopySign: map<T>(to, a, b, c, [](T x, T y, T) { return std::copysign(x, y); }); return true;
      case Opcode::RoundEven: map<T>(to, a, b, c, [](T x, T, T) { return std::nearbyint(x); }); return true;
      default: return false;
    }
  } else {
    using U = std::make_unsigned_t<T>;
    const auto u = [](auto f) { return [f](T x, T y, T) { return static_cast<T>(f(static_cast<U>(x), static_cast<U>(y))); }; };
    switch (code) {
      case Opcode::Add: map<T>(to, a, b, c, u([](U x, U y) { return x + y; })); return true;
      case Opcode::Sub: map<T>(to, a, b, c, u([](U x, U y) { return x - y; })); return true;
      case Opcode::Mul: map<T>(to, a, b, c, u([](U x, U y) { return x * y; })); return true;
      case Opcode::And: map<T>(to, a, b, c, u([](U x, U y) { return x & y; })); return true;
      case Opcode::Or: map<T>(to, a, b, c, u([](U x, U y) { return x | y; })); return true;
      case Opcode::Xor: map<T>(to, a, b, c, u([](U x, U y) { return x ^ y; })); return true;
      case Opcode::Shl: map<T>(to, a, b, c, u([](U x, U y) { return y < 8 * sizeof(U) ? x << y : U{0}; })); return true;
      case Opcode::Shr:
        map<T>(to, a, b, c, [](T x, T y, T) {
          return static_cast<T>(x >> std::min<U>(static_cast<U>(y), 8 * sizeof(U) - 1)) &
                 (static_cast<U>(y) < 8 * sizeof(U) || x < T{} ? static_cast<T>(-1) : T{});
        });
        return true;
      default: return false;
    }
  }
}

}  // namespace

void Batch::compute(const Op& op, Lanes& to) {
  const std::uint64_t* in[3];
  for (std::size_t i = 0; i < 3; ++i) in[i] = values_[op.operands[std::min(i, op.operands.size() - 1)]].data();
  const Type operand = kernel_.op(op.operands[op.code == Opcode::Select ? 1 : 0]).type;
  if (op.code == Opcode::Select) {
    for (std::size_t i = 0; i < kLanes; ++i) to[i] = in[0][i] ? in[1][i] : in[2][i];
    return;
  }
  if (op.code == Opcode::BitCast) {
    std::copy_n(in[0], kLanes, to.data());
    return;
  }
  bool done = false;
  switch (operand) {
    case Type::F32: done = native<float>(op.code, to.data(), in[0], in[1], in[2]); break;
    case Type::F64: done = native<double>(op.code, to.data(), in[0], in[1], in[2]); break;
    case Type::U32: done = native<std::uint32_t>(op.code, to.data(), in[0], in[1], in[2]); break;
    case Type::I32: done = native<std::int32_t>(op.code, to.data(), in[0], in[1], in[2]); break;
    case Type::I64: done = native<std::int64_t>(op.code, to.data(), in[0], in[1], in[2]); break;
    case Type::U64: done = native<std::uint64_t>(op.code, to.data(), in[0], in[1], in[2]); break;
    default: break;
  }
  if (op.code == Opcode::Cast && operand == Type::I32 && op.type == Type::F32) {
    for (std::size_t i = 0; i < kLanes; ++i) to[i] = put(static_cast<float>(static_cast<std::int32_t>(in[0][i])));
    done = true;
  }
  if (op.code == Opcode::Cast && operand == Type::F32 &&
      (op.type == Type::I32 || op.type == Type::U32)) {  // small values; the rest is rare
    const double lo = op.type == Type::I32 ? -0x1p31 : 0, hi = op.type == Type::I32 ? 0x1p31 : 0x1p32;
    for (std::size_t i = 0; i < kLanes; ++i) {
      const double v = get<float>(in[0][i]);
      const double clamped = v > lo ? (v < hi ? v : hi - 1) : lo;
      to[i] = v == v ? static_cast<std::uint32_t>(static_cast<std::int64_t>(clamped)) : 0;
    }
    done = true;
  }
  if (done) return;
  std::array<std::uint64_t, 3> bits{};
  for (std::size_t i = 0; i < kLanes; ++i) {
    for (std::size_t j = 0; j < op.operands.size(); ++j) bits[j] = in[j][i];
    to[i] = *evaluate(op.code, op.type, operand, std::span(bits.data(), op.operands.size()));
  }
}

}  // namespace kiln::bench
