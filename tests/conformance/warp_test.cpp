// Every warp operation, with the lanes that are active where it stands: all of a block of any shape, one branch, what is left of a loop,
// who has not returned. The reference below is written from the language's rules, one warp at a time.
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// --- the reference ---------------------------------------------------------------------------------------------------------------

constexpr u32 kLanes = 32;
using Mask = u32;
template <class T>
using Warp = std::array<T, kLanes>;

enum class Fold { Sum, Product, Min, Max, And, Or, Xor };
constexpr std::array<Fold, 7> kFolds{Fold::Sum, Fold::Product, Fold::Min, Fold::Max, Fold::And, Fold::Or, Fold::Xor};

template <class T>
constexpr bool has_fold(Fold f) {
  const bool bits = f == Fold::And || f == Fold::Or || f == Fold::Xor;
  return bits ? std::integral<T> : !std::same_as<T, bool> && !(f == Fold::Product && IsHalf<T>);
}

template <class T>
T least(T a, T b) {
  if constexpr (Floating<T>) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  }
  return b < a ? b : a;
}
template <class T>
T greatest(T a, T b) {
  if constexpr (Floating<T>) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == 0 && b == 0) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}

template <class T>
T fold(Fold f, T a, T b) {
  if constexpr (Floating<T>) {
    switch (f) {
      case Fold::Sum: return static_cast<T>(a + b);
      case Fold::Product: return static_cast<T>(a * b);
      case Fold::Min: return least(a, b);
      default: return greatest(a, b);
    }
  } else if constexpr (std::same_as<T, bool>) {
    return f == Fold::And ? (a && b) : f == Fold::Or ? (a || b) : a != b;
  } else {
    using U = std::make_unsigned_t<T>;
    const U x = static_cast<U>(a), y = static_cast<U>(b);
    switch (f) {
      case Fold::Sum: return static_cast<T>(x + y);
      case Fold::Product: return static_cast<T>(static_cast<u64>(x) * y);  // two u16 are ints, and their product is too large for one
      case Fold::Min: return std::min(a, b);
      case Fold::Max: return std::max(a, b);
      case Fold::And: return static_cast<T>(x & y);
      case Fold::Or: return static_cast<T>(x | y);
      default: return static_cast<T>(x ^ y);
    }
  }
}

// What a lane that takes no part stands for.
template <class T>
T nothing(Fold f) {
  switch (f) {
    case Fold::Sum: return Floating<T> ? static_cast<T>(-0.0) : T(0);
    case Fold::Product: return T(1);
    case Fold::Min: return Floating<T> ? static_cast<T>(std::numeric_limits<f32>::quiet_NaN()) : std::numeric_limits<T>::max();
    case Fold::Max: return Floating<T> ? static_cast<T>(std::numeric_limits<f32>::quiet_NaN()) : std::numeric_limits<T>::lowest();
    case Fold::And: return std::same_as<T, bool> ? T(1) : static_cast<T>(~u64{0});
    default: return T(0);
  }
}

bool in(Mask m, u32 lane) { return (m >> lane & 1) != 0; }

template <class T>
Warp<T> reduced(Fold f, Mask active, Warp<T> v) {
  for (u32 l = 0; l < kLanes; ++l) {
    if (!in(active, l)) v[l] = nothing<T>(f);
  }
  for (u32 d = 16; d > 0; d /= 2) {
    const Warp<T> old = v;
    for (u32 l = 0; l < kLanes; ++l) v[l] = fold(f, old[l], old[l ^ d]);
  }
  return v;
}
template <class T>
Warp<T> scanned(Fold f, Mask active, Warp<T> v, bool exclusive) {
  for (u32 l = 0; l < kLanes; ++l) {
    if (!in(active, l)) v[l] = nothing<T>(f);
  }
  for (u32 d = 1; d < kLanes; d *= 2) {
    const Warp<T> old = v;
    for (u32 l = d; l < kLanes; ++l) v[l] = fold(f, old[l - d], old[l]);
  }
  if (!exclusive) return v;
  Warp<T> e;
  e[0] = nothing<T>(f);
  for (u32 l = 1; l < kLanes; ++l) e[l] = v[l - 1];
  return e;
}
template <class T>
Warp<T> shuffled(int kind, Mask active, const Warp<T>& v, const Warp<u32>& by) {
  Warp<T> r{};
  for (u32 l = 0; l < kLanes; ++l) {
    const u32 d = by[l];
    u32 from = l;
    if (kind == 0) from = d % kLanes;
    if (kind == 1 && d <= l) from = l - d;
    if (kind == 2 && d < kLanes && l + d < kLanes) from = l + d;
    if (kind == 3 && d < kLanes) from = l ^ d;
    r[l] = in(active, from) ? v[from] : v[l];
  }
  return r;
}

constexpr std::array<u32, 4> kDistances{1, 5, 31, 32};

// The operations come in two groups, so that the kernels stay small.
enum class Group : u32 { Moves, Folds };

// All operations of a group on v, in the order in which the kernel below does them.
template <class T>
std::vector<Warp<T>> all_results(Group group, Mask active, const Warp<T>& v, const Warp<u32>& by) {
  std::vector<Warp<T>> list;
  if (group == Group::Folds) {
    for (Fold f : kFolds) {
      if (!has_fold<T>(f)) continue;
      list.push_back(reduced(f, active, v));
      list.push_back(scanned(f, active, v, false));
      list.push_back(scanned(f, active, v, true));
    }
    return list;
  }
  for (int kind = 0; kind < 4; ++kind) list.push_back(shuffled(kind, active, v, by));
  for (u32 distance : kDistances) {
    Warp<u32> same;
    same.fill(distance);
    for (int kind = 0; kind < 4; ++kind) list.push_back(shuffled(kind, active, v, same));
  }
  Mask yes = 0;
  for (u32 l = 0; l < kLanes; ++l) {
    if (in(active, l) && by[l] % 3 == 1) yes |= Mask{1} << l;
  }
  Warp<T> any, all, ballot, elected;
  any.fill(static_cast<T>(yes != 0));
  all.fill(static_cast<T>(yes == active));
  ballot.fill(static_cast<T>(yes));
  for (u32 l = 0; l < kLanes; ++l) elected[l] = static_cast<T>((active & ((Mask{1} << l) - 1)) == 0);
  for (const auto& w : {any, all, ballot, elected}) list.push_back(w);
  return list;
}
template <class T>
u32 operation_count(Group group) {
  return static_cast<u32>(all_results<T>(group, 1, {}, {}).size());
}

// --- the kernel --------------------------------------------------------------------------------------------------------------------

template <class T>
Val<T> number(const auto& v) {
  using S = typename std::remove_cvref_t<decltype(v)>::value_type;
  if constexpr (std::same_as<S, T>) return v;
  else return cast<T>(v);
}

// Where results of one thread go: out[phase * operations + operation, thread].
template <class T>
struct Place {
  const In<T>& x;
  const In<u32>& by;
  const Out<T, 2>& out;
  Group group;
  Val<u32> thread, threads;

  void operator()(const auto& phase) const {
    Val<T> v = x[(thread + phase * 3u) % threads];
    Val<u32> d = by[(thread + phase * 5u) % threads];
    const u32 operations = operation_count<T>(group);
    u32 operation = 0;
    const auto put = [&](const auto& r) { out[phase * operations + operation++, thread] = number<T>(r); };
    if (group == Group::Folds) return folds(v, put);
    put(warp::shfl_idx(v, d)), put(warp::shfl_up(v, d)), put(warp::shfl_down(v, d)), put(warp::shfl_xor(v, d));
    for (u32 distance : kDistances) {
      put(warp::shfl_idx(v, distance)), put(warp::shfl_up(v, distance)), put(warp::shfl_down(v, distance)),
          put(warp::shfl_xor(v, distance));
    }
    auto p = d % 3 == 1;
    put(warp::any(p)), put(warp::all(p)), put(warp::ballot(p)), put(warp::elect());
  }
  static void folds(const Val<T>& v, const auto& put) {
    if constexpr (!std::same_as<T, bool>) {
      put(warp::sum(v)), put(warp::inclusive_sum(v)), put(warp::exclusive_sum(v));
      if constexpr (!IsHalf<T>) put(warp::product(v)), put(warp::inclusive_product(v)), put(warp::exclusive_product(v));
      put(warp::min(v)), put(warp::inclusive_min(v)), put(warp::exclusive_min(v));
      put(warp::max(v)), put(warp::inclusive_max(v)), put(warp::exclusive_max(v));
    }
    if constexpr (std::integral<T>) {
      put(warp::and_(v)), put(warp::inclusive_and_(v)), put(warp::exclusive_and_(v));
      put(warp::or_(v)), put(warp::inclusive_or_(v)), put(warp::exclusive_or_(v));
      put(warp::xor_(v)), put(warp::inclusive_xor_(v)), put(warp::exclusive_xor_(v));
    }
  }
};

enum class Flow : u32 { Full, IfElse, Break, Continue, Return, Nested, Switch, While };
constexpr u32 kFlows = 8;
constexpr u32 kPhases = 8;

struct FlowCfg {
  Flow flow = Flow::Full;
  Group group = Group::Moves;
};
KILN_CONFIG(FlowCfg, flow, group)

// `when` decides where each thread goes.
template <class T>
void flow_body(const FlowCfg& cfg, In<T> x, In<u32> by, In<u32> when_of, Out<T, 2> out) {
  Val<u32> in_block = block_dim().x * block_dim().y * block_dim().z;
  Val<u32> thread = block_id().x * in_block + linear_thread();
  const Place<T> phase{x, by, out, cfg.group, thread, x.size()};
  Val<u32> when = when_of[thread];
  const auto at = [](u32 p) { return Val<u32>(p); };
  switch (cfg.flow) {
    case Flow::Full: phase(at(0)); break;
    case Flow::IfElse:
      If (when % 3 == 0) { phase(at(0)); }
      Else { phase(at(1)); }
      phase(at(2));
      break;
    case Flow::Break:
      for (auto i : range(5)) {
        If (when % 7 == i) { Break(); }
        phase(i);
      }
      phase(at(5));
      break;
    case Flow::Continue:
      for (auto i : range(4)) {
        If ((when >> i & 1) != 0) { Continue(); }
        phase(i);
      }
      phase(at(4));
      break;
    case Flow::Return:
      If (when % 4 == 1) { Return(); }
      phase(at(0));
      for (auto i : range(2)) {
        If (when % 5 == i) { Return(); }
        phase(i + 1);
      }
      phase(at(3));
      break;
    case Flow::Nested:
      for (auto i : range(3)) {
        If ((when & 1) != 0) {
          If (when % 6 == 2 * i + 1) { Break(); }
          phase(2 * i);
        }
        Else {
          If (when % 5 == i) { Return(); }
          phase(2 * i + 1);
        }
      }
      phase(at(6));
      break;
    case Flow::Switch:
      Switch(when % 4) {
        Case(0) { phase(at(0)); }
        Case(1, 2) { phase(at(1)); }
        Default { phase(at(2)); }
      }
      phase(at(3));
      break;
    case Flow::While: {
      Var<u32> j = 0;
      While (j < when % 6) {
        phase(Val<u32>(j));
        j += 1;
      }
      phase(at(6));
      break;
    }
  }
}

// Which lanes meet at each phase, in C++: phase(p, active).
void meet(Flow flow, Mask present, const Warp<u32>& when, const std::function<void(u32, Mask)>& phase) {
  const auto those = [&](Mask of, const std::function<bool(u32)>& test) {
    Mask m = 0;
    for (u32 l = 0; l < kLanes; ++l) {
      if (in(of, l) && test(when[l])) m |= Mask{1} << l;
    }
    return m;
  };
  Mask left = present;
  switch (flow) {
    case Flow::Full: phase(0, present); break;
    case Flow::IfElse:
      phase(0, those(present, [](u32 w) { return w % 3 == 0; }));
      phase(1, those(present, [](u32 w) { return w % 3 != 0; }));
      phase(2, present);
      break;
    case Flow::Break:
      for (u32 i = 0; i < 5; ++i) phase(i, left = those(left, [=](u32 w) { return w % 7 != i; }));
      phase(5, present);
      break;
    case Flow::Continue:
      for (u32 i = 0; i < 4; ++i) phase(i, those(present, [=](u32 w) { return (w >> i & 1) == 0; }));
      phase(4, present);
      break;
    case Flow::Return:
      phase(0, left = those(left, [](u32 w) { return w % 4 != 1; }));
      for (u32 i = 0; i < 2; ++i) phase(i + 1, left = those(left, [=](u32 w) { return w % 5 != i; }));
      phase(3, left);
      break;
    case Flow::Nested: {
      Mask broke = 0;
      for (u32 i = 0; i < 3; ++i) {
        const Mask odd = those(left, [](u32 w) { return w % 2 == 1; }), even = left & ~odd;
        const Mask leaves = those(odd, [=](u32 w) { return w % 6 == 2 * i + 1; }), ends = those(even, [=](u32 w) { return w % 5 == i; });
        phase(2 * i, odd & ~leaves);
        phase(2 * i + 1, even & ~ends);
        broke |= leaves;
        left &= ~(leaves | ends);
      }
      phase(6, left | broke);
      break;
    }
    case Flow::Switch:
      phase(0, those(present, [](u32 w) { return w % 4 == 0; }));
      phase(1, those(present, [](u32 w) { return w % 4 == 1 || w % 4 == 2; }));
      phase(2, those(present, [](u32 w) { return w % 4 == 3; }));
      phase(3, present);
      break;
    case Flow::While:
      for (u32 j = 0; j < 5; ++j) phase(j, those(present, [=](u32 w) { return j < w % 6; }));
      phase(6, present);
      break;
  }
}

// --- values ------------------------------------------------------------------------------------------------------------------------

u32 mixed(u32 i) {
  u32 h = i * 2654435761u + 12345;
  h ^= h >> 15;
  h *= 2246822519u;
  return h ^ h >> 13;
}

template <class T>
T value_of(u32 i) {
  const u32 h = mixed(i);
  if constexpr (std::same_as<T, bool>) return h % 5 < 3;
  else if constexpr (Floating<T>) {
    if (h % 11 == 0) return static_cast<T>(-T(0));
    return static_cast<T>(static_cast<T>(static_cast<i32>(h >> 8 & 0xfff) - 2048) *
                          static_cast<T>(std::ldexp(1.0, static_cast<int>(h % 17) - 8)) / 7);
  } else {
    if (h % 13 == 0) return std::numeric_limits<T>::max();
    if (h % 13 == 1) return std::numeric_limits<T>::lowest();
    return static_cast<T>(static_cast<u64>(h) * (sizeof(T) == 8 ? 0x100000007u : 1) | 1);  // odd, so that products do not become 0
  }
}
u32 distance_of(u32 i) {
  constexpr u32 table[] = {0, 1, 2, 3, 7, 15, 16, 17, 30, 31, 32, 33, 64, 0x80000000u, 0xffffffffu};
  return table[mixed(i + 1000) % std::size(table)];
}

template <class T>
void check_flow(Flow flow, Group group, const Dim3& block, const Ways& ways) {
  const u32 grid = 2, in_block = threads(block), n = grid * in_block, operations = operation_count<T>(group);
  const std::string title = std::string(ir::name(ir_type<T>)) + ", flow " + std::to_string(static_cast<u32>(flow)) + ", group " +
                            std::to_string(static_cast<u32>(group)) + ", block " + shown(block);
  CAPTURE(title);
  std::vector<T> x(n);
  std::vector<u32> by(n), when(n);
  for (u32 i = 0; i < n; ++i) x[i] = value_of<T>(i), by[i] = distance_of(i), when[i] = mixed(i + 77) >> 3;
  std::vector<T> wanted(static_cast<std::size_t>(kPhases) * operations * n, T(1));
  for (u32 b = 0; b < grid; ++b) {
    for (u32 first = 0; first < in_block; first += kLanes) {
      const u32 base = b * in_block + first, lanes = std::min(kLanes, in_block - first);
      const Mask present = lanes == kLanes ? ~Mask{0} : (Mask{1} << lanes) - 1;
      Warp<u32> w{};
      for (u32 l = 0; l < lanes; ++l) w[l] = when[base + l];
      meet(flow, present, w, [&](u32 phase, Mask active) {
        Warp<T> v{};
        Warp<u32> d{};
        for (u32 l = 0; l < lanes; ++l) v[l] = x[(base + l + phase * 3) % n], d[l] = by[(base + l + phase * 5) % n];
        const auto results = all_results(group, active, v, d);
        for (u32 o = 0; o < operations; ++o) {
          for (u32 l = 0; l < lanes; ++l) {
            if (in(active, l)) wanted[(static_cast<std::size_t>(phase) * operations + o) * n + base + l] = results[o][l];
          }
        }
      });
    }
  }
  static std::array<std::shared_ptr<const Variant>, 2 * kFlows> kernels;
  auto& k = kernels[2 * static_cast<u32>(flow) + static_cast<u32>(group)];
  if (!k)
    k = kernel(
        "flow", [](const FlowCfg& cfg, In<T> a, In<u32> d, In<u32> c, Out<T, 2> out) { flow_body<T>(cfg, a, d, c, out); },
        FlowCfg{flow, group});
  check_run(*k, {{grid}, block},
            {buffer(x), buffer(by), buffer(when), buffer(std::vector<T>(wanted.size(), T(1)), {kPhases * operations, n})}, 3, wanted, ways);
}

// Every product of flow, group and shape is three compilations and more. One shape of two types has all ways; the others the level of this
// processor, and the PTX of the architecture that has the instruction (reductions), or has not.
template <class T>
Ways ways_for(Group group, const Dim3& block, Ways ways) {
  ways.levels = block.x == 45 && (std::same_as<T, u32> || std::same_as<T, f32>);
  ways.ptx = ways.levels ? Ptx::Both : group == Group::Folds ? Ptx::Sm90 : Ptx::Sm75;
  return ways;
}

constexpr Ways kChecked{.unchecked = false}, kUnchecked{.checked = false};

// Each table takes what it is about.
template <class T>
void check_all(std::initializer_list<Flow> flows, const std::vector<Dim3>& shapes, const Ways& ways) {
  for (Flow flow : flows) {
    for (Group group : {Group::Moves, Group::Folds}) {
      for (const Dim3& block : shapes) check_flow<T>(flow, group, block, ways_for<T>(group, block, ways));
    }
  }
}

}  // namespace

TEST_CASE(
    "warp operations take the lanes of blocks of every shape, in full control, in a branch, in a loop that some leave, after some return") {
  check_all<u32>({Flow::Full, Flow::IfElse, Flow::Break, Flow::Return}, block_shapes(), kUnchecked);
}
TEST_CASE("warp operations take the active lanes in nested, switched and continued control flow") {
  check_all<u32>({Flow::Continue, Flow::Nested, Flow::Switch, Flow::While}, {{45}, {64}, {5, 7}}, kUnchecked);
}
TEST_CASE("warp operations take the active lanes in checked kernels too") { check_all<u32>({Flow::Full, Flow::Break}, {{33}}, kChecked); }
TEST_CASE("warp operations have their meaning for every type") {
  check_all<f32>({Flow::Full, Flow::IfElse, Flow::Break, Flow::Nested}, {{45}}, kUnchecked);
  check_all<f64>({Flow::Full, Flow::Return}, {{45}}, kUnchecked);
  check_all<f16>({Flow::Full, Flow::Break}, {{45}}, kUnchecked);
  check_all<bf16>({Flow::Full, Flow::IfElse}, {{45}}, kUnchecked);
  check_all<i32>({Flow::Full, Flow::IfElse}, {{45}}, kUnchecked);
  check_all<i64>({Flow::Full, Flow::Break}, {{45}}, kUnchecked);
  check_all<u64>({Flow::IfElse, Flow::Return}, {{8, 4}}, kUnchecked);
  check_all<u8>({Flow::Full, Flow::IfElse}, {{45}}, kUnchecked);
  check_all<i8>({Flow::Full, Flow::Break}, {{45}}, kUnchecked);
  check_all<u16>({Flow::Full}, {{45}}, kUnchecked);
  check_all<i16>({Flow::Full, Flow::Return}, {{45}}, kUnchecked);
  check_all<bool>({Flow::Full, Flow::IfElse}, {{45}}, kUnchecked);
}

TEST_CASE("min and max of a warp take the numbers among NaN, and the sum of negative zeros is a negative zero") {
  constexpr f32 nan = std::numeric_limits<f32>::quiet_NaN();
  std::vector<f32> x(45, nan), low(45), high(45);
  x[3] = 5, x[17] = -0.0f, x[20] = 0.0f;
  for (u32 i = 0; i < 45; ++i) low[i] = i < 32 ? -0.0f : nan, high[i] = i < 32 ? 5 : nan;
  const auto k = kernel("nan_extremes", [](In<f32> in, Out<f32> least_of, Out<f32> most, Out<f32> zero) {
    auto t = thread_id().x;
    least_of[t] = warp::min(in[t]);
    most[t] = warp::max(in[t]);
    zero[t] = warp::sum(in[t] * 0.0f * 0.0f - 0.0f);
  });
  auto outcomes = run_everywhere(*k, {{1}, {45}}, {buffer(x), filled<f32>(45, 99), filled<f32>(45, 99), filled<f32>(45, 99)});
  expect(outcomes, 1, low);
  expect(outcomes, 2, high);
  outcomes = run_everywhere(*k, {{1}, {45}}, {filled<f32>(45, -0.0f), filled<f32>(45, 99), filled<f32>(45, 99), filled<f32>(45, 99)});
  expect(outcomes, 3, std::vector<f32>(45, -0.0f));
}

namespace {

// Sum of 1 and maximum of -(t + 1) over a block, by warps and shared memory.
template <class T>
void block_reduction(const Val<u32>& t, const Val<u32>& in_block, const Out<T>& sum, const Out<T>& most) {
  Shared<T> sums(32), maxima(32);
  Val<T> of_warp = warp::sum(Val<T>(1)), greatest_of = warp::max(-(cast<T>(t) + 1));
  If (t % 32 == 0) {
    sums[t / 32] = of_warp;
    maxima[t / 32] = greatest_of;
  }
  barrier();
  If (t == 0) {
    Var<T> total = 0, best = maxima[0];
    for (auto w : range((in_block + 31) / 32)) {
      total += sums[w];
      best = max(best, maxima[w]);
    }
    sum[0] = total;
    most[0] = best;
  }
}

template <class T>
void check_block_reduction() {
  const auto all = kernel("block_reduction", [](Out<T> sum, Out<T> most) { block_reduction<T>(thread_id().x, block_dim().x, sum, most); });
  // Threads from n on have returned before.
  const auto some = kernel("block_reduction_of_some", [](In<u32> n, InOut<T> sum, InOut<T> most) {
    auto t = thread_id().x;
    Shared<T> sums(32), maxima(32);
    If (t % 32 == 0) {
      sums[t / 32] = 0;
      maxima[t / 32] = -1000;
    }
    barrier();
    If (t >= n[0]) { Return(); }
    Val<T> of_warp = warp::sum(Val<T>(1)), greatest_of = warp::max(-(cast<T>(t) + 1));
    If (t % 32 == 0) {
      sums[t / 32] = of_warp;
      maxima[t / 32] = greatest_of;
    }
    barrier();
    If (t == 0) {
      Var<T> total = 0, best = -1000;
      for (auto w : range((block_dim().x + 31) / 32)) {
        total += sums[w];
        best = max(best, maxima[w]);
      }
      sum[0] = total;
      most[0] = best;
    }
  });
  for (u32 block : {1u, 31u, 33u, 45u, 129u, 159u, 180u, 192u}) {
    CAPTURE(block);
    auto outcomes = run_everywhere(*all, {{1}, {block}}, {filled<T>(1, 99), filled<T>(1, 99)});
    expect<T>(outcomes, 0, {static_cast<T>(block)});
    expect<T>(outcomes, 1, {T(-1)});
    const u32 n = (block + 1) / 2;
    outcomes = run_everywhere(*some, {{1}, {block}}, {filled<u32>(1, n), filled<T>(1, 99), filled<T>(1, 99)});
    expect<T>(outcomes, 1, {static_cast<T>(n)});
    expect<T>(outcomes, 2, {T(-1)});
  }
}

}  // namespace

TEST_CASE("a block reduction is right when the block is no multiple of 32, and when threads have returned") {
  check_block_reduction<i32>();
  check_block_reduction<f32>();
  check_block_reduction<f64>();
}

TEST_CASE("the lanes of one full warp: scans, votes, election and neighbours") {
  const auto k = kernel("one_warp", [](In<u32> odd_one, Out<u32> out, InOut<f32> elected) {
    auto t = thread_id().x;
    u32 row = 0;
    const auto put = [&](const auto& v) { out[32 * row++ + t] = v; };
    put(warp::inclusive_sum(t));
    put(warp::exclusive_sum(t));
    put(warp::max(odd_one[t]));
    put(warp::min(odd_one[t]));
    put(cast<u32>(warp::all(odd_one[t] < 10)));
    put(cast<u32>(warp::any(odd_one[t] == 999)));
    put(warp::shfl_xor(t, 1));
    put(warp::shfl_up(t, 1));
    put(warp::shfl_down(t, 1));
    If (warp::elect()) { elected.atomic_add(20, 1); }
  });
  std::vector<u32> x(32, 5), wanted;
  x[16] = 999;
  const std::function<u32(u32)> rows[] = {[](u32 t) { return t * (t + 1) / 2; },
                                          [](u32 t) { return t == 0 ? 0 : t * (t - 1) / 2; },
                                          [](u32) { return 999u; },
                                          [](u32) { return 5u; },
                                          [](u32) { return 0u; },
                                          [](u32) { return 1u; },
                                          [](u32 t) { return t ^ 1; },
                                          [](u32 t) { return t == 0 ? 0 : t - 1; },
                                          [](u32 t) { return t == 31 ? 31 : t + 1; }};
  for (const auto& row : rows) {
    for (u32 t = 0; t < 32; ++t) wanted.push_back(row(t));
  }
  const auto outcomes = run_everywhere(*k, {{1}, {32}}, {buffer(x), filled<u32>(wanted.size(), 99), filled<f32>(32, 0)});
  expect(outcomes, 1, wanted);
  std::vector<f32> once(32, 0);
  once[20] = 1;
  expect(outcomes, 2, once);
}

TEST_CASE("warp::sync orders what the lanes of a warp write to shared memory") {
  const auto k = kernel("warp_sync", [](Out<u32> out) {
    Shared<u32> s(64);
    auto t = thread_id().x;
    s[t] = t * 3;
    warp::sync();
    Val<u32> neighbour = s[t / 32 * 32 + (t + 1) % 32];
    warp::sync();
    s[t] = neighbour + 1;
    warp::sync();
    out[t] = s[t];
  });
  std::vector<u32> wanted;
  for (u32 t = 0; t < 64; ++t) wanted.push_back((t / 32 * 32 + (t + 1) % 32) * 3 + 1);
  check_run(*k, {{1}, {64}}, {filled<u32>(64, 99)}, 0, wanted);
}
