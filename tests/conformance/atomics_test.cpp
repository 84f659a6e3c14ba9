// Atomics of every kind and type, on buffers and in shared memory: what they leave, and the old values they give.
#include <algorithm>
#include <limits>

#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

enum class Kind : u32 { Add, Sub, Min, Max, And, Or, Xor, Exchange, Cas };
constexpr Kind kKinds[] = {Kind::Add, Kind::Sub, Kind::Min, Kind::Max, Kind::And, Kind::Or, Kind::Xor, Kind::Exchange, Kind::Cas};

template <class T>
bool exists(Kind k) {
  return std::integral<T> || k == Kind::Add || k == Kind::Min || k == Kind::Max || k == Kind::Exchange;
}

// One step on one element, in C++. Floats used here have no NaN, and their sums are exact.
template <class T>
T step(Kind k, T old, T v, T expected) {
  if constexpr (std::integral<T>) {
    using U = std::make_unsigned_t<T>;
    const U a = static_cast<U>(old), b = static_cast<U>(v);
    switch (k) {
      case Kind::Add: return static_cast<T>(a + b);
      case Kind::Sub: return static_cast<T>(a - b);
      case Kind::And: return static_cast<T>(a & b);
      case Kind::Or: return static_cast<T>(a | b);
      case Kind::Xor: return static_cast<T>(a ^ b);
      case Kind::Cas: return old == expected ? v : old;
      default: break;
    }
  }
  switch (k) {
    case Kind::Add: return old + v;
    case Kind::Min: return std::min(old, v);
    case Kind::Max: return std::max(old, v);
    default: return v;
  }
}

template <class T>
Val<T> apply(Kind k, const auto& memory, const Val<u32>& i, const Val<T>& v, [[maybe_unused]] const Val<T>& expected) {
  if constexpr (std::integral<T>) {
    switch (k) {
      case Kind::Sub: return memory.atomic_sub(i, v);
      case Kind::And: return memory.atomic_and(i, v);
      case Kind::Or: return memory.atomic_or(i, v);
      case Kind::Xor: return memory.atomic_xor(i, v);
      case Kind::Cas: return memory.atomic_cas(i, expected, v);
      default: break;
    }
  }
  switch (k) {
    case Kind::Add: return memory.atomic_add(i, v);
    case Kind::Min: return memory.atomic_min(i, v);
    case Kind::Max: return memory.atomic_max(i, v);
    default: return memory.atomic_exchange(i, v);
  }
}

struct AtomicCfg {
  Kind kind = Kind::Add;
  bool shared = false;
};
KILN_CONFIG(AtomicCfg, kind, shared)

template <class T>
T operand_of(u32 i) {
  const u64 h = (i + 1) * 0x9e3779b97f4a7c15u;
  if constexpr (std::floating_point<T>) return static_cast<T>(static_cast<i64>(h >> 52) - 2048);
  else return static_cast<T>(h >> (64 - 8 * sizeof(T)) ^ h << 7);
}

// Every thread on its own element: what it leaves and the old value are both fixed.
template <class T>
void check_own(Kind kind, bool shared, const Dim3& block) {
  CAPTURE(ir::name(ir_type<T>));
  CAPTURE(static_cast<u32>(kind));
  CAPTURE(shared);
  CAPTURE(shown(block));
  const auto k = kernel(
      "own_element",
      [](const AtomicCfg& cfg, InOut<T> memory, In<T> v, In<T> expected, Out<T> old) {
        auto t = linear_thread();
        If (t < memory.size()) {
          if (cfg.shared) {
            Shared<T> s(128);
            s[t] = memory[t];
            old[t] = apply<T>(cfg.kind, s, t, v[t], expected[t]);
            memory[t] = s[t];
          } else {
            old[t] = apply<T>(cfg.kind, memory, t, v[t], expected[t]);
          }
        }
      },
      AtomicCfg{kind, shared});
  const u32 n = threads(block);
  std::vector<T> before(n), v(n), expected(n), after(n);
  for (u32 i = 0; i < n; ++i) {
    before[i] = operand_of<T>(i), v[i] = operand_of<T>(i + 500), expected[i] = i % 2 == 0 ? before[i] : operand_of<T>(i + 900);
    after[i] = step(kind, before[i], v[i], expected[i]);
  }
  const auto outcomes = run_everywhere(*k, {{1}, block}, {buffer(before), buffer(v), buffer(expected), filled<T>(n, T(99))},
                                       {.levels = std::same_as<T, u32> || std::same_as<T, f32>});
  expect(outcomes, 0, after);
  expect(outcomes, 3, before);
}

// All threads on few elements: what is left does not depend on the order.
template <class T>
void check_contended(Kind kind, bool shared, const Dim3& block, const Ways& ways) {
  CAPTURE(ir::name(ir_type<T>));
  CAPTURE(static_cast<u32>(kind));
  CAPTURE(shared);
  CAPTURE(shown(block));
  const u32 elements = 3, grid = shared ? 1 : 3;
  const auto k = kernel(
      "contended",
      [](const AtomicCfg& cfg, InOut<T> memory, In<T> v) {
        auto t = linear_thread();
        Val<u32> in_block = block_dim().x * block_dim().y * block_dim().z;
        Val<u32> g = block_id().x * in_block + t;
        If (g % 5 != 4) {  // some lanes take no part
          if (!cfg.shared) apply<T>(cfg.kind, memory, g % 3, v[g], v[g]);
        }
        if (cfg.shared) {
          Shared<T> s(3);
          If (t == 0) {
            for (u32 i = 0; i < 3; ++i) s[i] = memory[i];
          }
          barrier();
          If (g % 5 != 4) { apply<T>(cfg.kind, s, g % 3, v[g], v[g]); }
          barrier();
          If (t == 0) {
            for (u32 i = 0; i < 3; ++i) memory[i] = s[i];
          }
        }
      },
      AtomicCfg{kind, shared});
  const u32 n = grid * threads(block);
  std::vector<T> before(elements), v(n), after;
  for (u32 i = 0; i < elements; ++i) before[i] = operand_of<T>(i + 40);
  for (u32 i = 0; i < n; ++i) v[i] = operand_of<T>(i);
  after = before;
  for (u32 i = 0; i < n; ++i) {
    if (i % 5 != 4) after[i % 3] = step(kind, after[i % 3], v[i], v[i]);
  }
  expect(run_everywhere(*k, {{grid}, block}, {buffer(before), buffer(v)}, ways), 0, after);
}

template <class T>
void check_type(const std::vector<Dim3>& shapes) {
  for (Kind kind : kKinds) {
    if (!exists<T>(kind)) continue;
    for (bool shared : {false, true}) {
      check_own<T>(kind, shared, {45});
      if (kind == Kind::Exchange || kind == Kind::Cas) continue;  // their result depends on the order
      for (u32 i = shared; const Dim3& block : shapes) {
        const bool checked = ++i % 2 == 0;
        // A compilation for each way: every second shape is checked, as PTX for the older architecture, and one shape has all levels.
        check_contended<T>(kind, shared, block,
                           {.checked = checked, .unchecked = !checked, .ptx = checked ? Ptx::Sm75 : Ptx::Sm90, .levels = block.x == 45});
      }
    }
  }
}

constexpr f32 kInf = std::numeric_limits<f32>::infinity();

template <class T>
void check_extremes() {
  CAPTURE(ir::name(ir_type<T>));
  constexpr T largest = std::numeric_limits<T>::max(), inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const auto global = kernel("extremes", [](InOut<T> low, InOut<T> high, In<T> v) {
    auto i = global_id().x;
    If (i < v.size()) {
      low.atomic_min(0, v[i]);
      high.atomic_max(0, v[i]);
    }
  });
  const auto shared = kernel("extremes_shared", [](InOut<T> low, InOut<T> high, In<T> v) {
    Shared<T> s(2);
    auto t = thread_id().x;
    If (t == 0) {
      s[0] = low[0];
      s[1] = high[0];
    }
    barrier();
    for (auto i : range(t, v.size(), block_dim().x)) {
      s.atomic_min(0, v[i]);
      s.atomic_max(1, v[i]);
    }
    barrier();
    If (t == 0) {
      low[0] = s[0];
      high[0] = s[1];
    }
  });
  std::vector<T> up(512), down(512);
  for (int i = 0; i < 512; ++i) up[i] = static_cast<T>(i), down[i] = static_cast<T>(-512 + i);
  struct Row {
    std::vector<T> v;
    T low, high, min, max;
  };
  const Row rows[] = {
      {{T(-0.0), -largest}, largest, -largest, -largest, T(-0.0)},
      {up, T(-1), T(-1), T(-1), T(511)},
      {down, largest, T(-9999), T(-512), T(-1)},
      {{T(-1), T(-4)}, inf, -inf, T(-4), T(-1)},
      {{T(0.0), T(-0.0)}, T(0.0), T(-0.0), T(-0.0), T(0.0)},
      {{nan, T(3), nan}, T(7), T(1), T(3), T(3)},
      {{T(5), nan}, nan, nan, T(5), T(5)},
      {{nan}, nan, nan, nan, nan},
  };
  for (const Row& row : rows) {
    CAPTURE(row.v.size());
    for (const auto& [k, grid] : {std::pair{global, 6u}, std::pair{shared, 1u}}) {
      const auto outcomes = run_everywhere(*k, {{grid}, {100}}, {filled<T>(1, row.low), filled<T>(1, row.high), buffer(row.v)});
      expect<T>(outcomes, 0, {row.min});
      expect<T>(outcomes, 1, {row.max});
    }
  }
}

}  // namespace

TEST_CASE("atomics of 32-bit integers: each kind, on buffers and in shared memory, in blocks of every shape") {
  check_type<u32>(block_shapes());
  check_type<i32>({{45}, {5, 7}});
}

TEST_CASE("atomics of 64-bit integers and of floats") {
  check_type<u64>({{33}, {8, 4}});
  check_type<i64>({{100}});
  check_type<f32>({{45}, {64}});
  check_type<f64>({{45}});
}

TEST_CASE("and, or and xor on one element") {
  const auto k = kernel("bit_atomics", [](InOut<u32> m) {
    m.atomic_and(0, 0b0110);
    m.atomic_or(1, 0b0110);
    m.atomic_xor(2, 0b0110);
  });
  check_run<u32>(*k, {{1}, {1}}, {filled<u32>(3, 0b1010)}, 0, {0b0010, 0b1110, 0b1100});
}

TEST_CASE("atomic min and max of floats order signed zeros and mixed signs, and take the number over NaN") {
  check_extremes<f32>();
  check_extremes<f64>();
}

TEST_CASE("the old values of one counter are all different, and together they are 0 to n - 1") {
  const auto k = kernel("tickets", [](InOut<u32> counter, Out<u32> ticket) {
    auto i = global_id().x;
    If (i % 3 != 2) { ticket[i] = counter.atomic_add(0, 1); }
    Else { ticket[i] = 0xffffffffu; }
  });
  for (const Outcome& o : run_everywhere(*k, {{4}, {45}}, {filled<u32>(1, 0), filled<u32>(180, 99)})) {
    CAPTURE(o.where);
    REQUIRE(!o.error);
    auto tickets = from_bytes<u32>(o.bytes[1]);
    std::sort(tickets.begin(), tickets.end());
    for (u32 i = 0; i < 180; ++i) CHECK(tickets[i] == (i < 120 ? i : 0xffffffffu));
    CHECK(from_bytes<u32>(o.bytes[0]) == std::vector<u32>{120});
  }
}

TEST_CASE("the maximum over all threads of all blocks") {
  const auto k = kernel("most", [](InOut<u32> m) { m.atomic_max(0, global_id().x); });
  check_run<u32>(*k, {{4}, {32}}, {filled<u32>(1, 0)}, 0, {127});
}

TEST_CASE("compare-exchange lets one thread of each element through, and exchange passes every value on once") {
  const auto cas = kernel("claim", [](InOut<u64> owner, InOut<u32> winners) {
    auto i = global_id().x;
    Val<u64> mine = cast<u64>(i) + 1;
    If (owner.atomic_cas(i % 7, 0, mine) == 0) { winners.atomic_add(i % 7, 1); }
  });
  for (const Outcome& o : run_everywhere(*cas, {{3}, {45}}, {filled<u64>(7, 0), filled<u32>(7, 0)})) {
    CAPTURE(o.where);
    REQUIRE(!o.error);
    CHECK(from_bytes<u32>(o.bytes[1]) == std::vector<u32>(7, 1));
    for (u64 i = 0; const u64 owner : from_bytes<u64>(o.bytes[0])) CHECK((owner - 1) % 7 == i++);
  }
  // A sum of old values and the value left is a sum of all values.
  const auto exchange = kernel("pass_on", [](InOut<i32> slot, InOut<i64> sum) {
    auto i = global_id().x;
    sum.atomic_add(0, cast<i64>(slot.atomic_exchange(0, cast<i32>(i) + 1)));
  });
  for (const Outcome& o : run_everywhere(*exchange, {{3}, {45}}, {filled<i32>(1, 1000), filled<i64>(1, 0)})) {
    CAPTURE(o.where);
    REQUIRE(!o.error);
    CHECK(from_bytes<i64>(o.bytes[1])[0] + from_bytes<i32>(o.bytes[0])[0] == 1000 + 135 * 136 / 2);
  }
}

TEST_CASE("float additions in global memory flush subnormals, those in shared memory keep them") {
  constexpr f32 tiny = 0x1p-149f, small = 0x1p-126f;
  const auto k = kernel("flush", [](InOut<f32> memory, In<f32> v, Out<f32> kept) {
    Shared<f32> s(6);
    for (u32 i = 0; i < 6; ++i) {
      s[i] = memory[i];
      memory.atomic_add(i, v[i]);
      s.atomic_add(i, v[i]);
      kept[i] = s[i];
    }
  });
  const auto outcomes = run_everywhere(
      *k, {{1}, {1}},
      {buffer<f32>({0, tiny, small, -tiny, 1.5f * small, 0}), buffer<f32>({tiny, tiny, tiny, 0, -small, small}), filled<f32>(6, 99)});
  expect<f32>(outcomes, 0, {0, 0, small, 0, 0, small});
  expect<f32>(outcomes, 2, {tiny, 2 * tiny, small + tiny, -tiny, 0.5f * small, small});
}

TEST_CASE("a float histogram of exact values adds up whatever the order") {
  const auto k = kernel("float_bins", [](In<u32> keys, InOut<f32> bins) {
    auto i = global_id().x;
    If (i < keys.size()) { bins.atomic_add(keys[i], 0.25f); }
  });
  std::vector<u32> keys(1000);
  std::vector<f32> wanted(16, kInf);
  wanted.assign(16, 0);
  for (u32 i = 0; i < 1000; ++i) keys[i] = i * i % 16, wanted[keys[i]] += 0.25f;
  check_run(*k, {{8}, {129}}, {buffer(keys), filled<f32>(16, 0)}, 1, wanted);
}

TEST_CASE("an atomic out of range is reported with its buffer, index and thread") {
  const auto k = made(record(
      "stray",
      [](InOut<u32> counter, Out<u32> old) {
        auto i = global_id().x;
        If (i < old.size()) { old[i] = counter.atomic_add(i, 1); }
      },
      "(counter, old)"));
  for (const Outcome& o : run_everywhere(*k, {{1}, {45}}, {filled<u32>(44, 5), filled<u32>(45, 99)}, {.unchecked = false})) {
    CAPTURE(o.where);
    REQUIRE(o.fault);
    CHECK(o.fault->memory == "counter");
    CHECK(o.fault->operation == "atomic_add");
    CHECK(o.fault->index == 44);
    CHECK(o.fault->extent == 44);
    CHECK(o.fault->thread == std::array<u32, 3>{44, 0, 0});
  }
}
