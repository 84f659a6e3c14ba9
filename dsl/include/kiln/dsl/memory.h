// The memories of a kernel: buffers that are its parameters (In, Out, InOut), and Shared, DynamicShared and Local arrays.
// Subscripts are a[i], a[r, c] or a(r, c), of any integer type; every access carries its line. Rank 1 to 4.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <utility>

#include "kiln/dsl/value.h"

namespace kiln {

// One coordinate of a subscript: a kernel integer of any type, or a host integer.
struct Index : dsl::Operand {
  using Where = dsl::Where;
  using kiln_takes_value = void;
  template <dsl::Dsl A>
  Index(A&& a, Where w = Where::current()) : Operand(of(std::forward<A>(a), w)) {}
  template <dsl::Host H>
  Index(H h, Where w = Where::current()) : Operand(host(h, w)) {}
  template <class X>
  requires(!dsl::DslOrHost<X> && !dsl::NoValue<X> && !std::same_as<std::remove_cvref_t<X>, Index>)
  Index(X&&) {
    static_assert(dsl::never<X>,
                  "kiln: an index must be an integer, of the kernel or of the host; write static_cast<u32>(x) for an enumerator.");
  }

 private:
  template <class A>
  static Operand of(A&& a, const Where& w) {
    static_assert(Integer<dsl::value_t<A>>, "kiln: an index must be an integer; write cast<u32>(x).");
    return Use<dsl::value_t<A>>(std::forward<A>(a), w);
  }
  template <class H>
  static Operand host(H h, const Where& w);
};

namespace dsl {
Operand host_index(std::uint64_t value, const Where& where);
[[noreturn]] void negative_index(std::int64_t value, const Where& where);
std::uint32_t new_array(ir::Type element, std::array<std::uint64_t, ir::kMaxRank> extents, unsigned rank, bool local, const Where& where);
std::uint32_t new_dynamic_shared(ir::Type element, const Where& where);
[[noreturn]] void bad_extent(std::int64_t value, const Where& where);
Handle extent(std::uint32_t mem, unsigned rank, unsigned dimension, ir::Type type, const Where& where);
Handle size(std::uint32_t mem, ir::Type type, const Where& where);
Handle atomic(ir::Opcode code, const Element& element, const Operand& value);
Handle atomic_cas(const Element& element, const Operand& expected, const Operand& desired);

template <class... I>
Element element(std::uint32_t mem, const I&... index) {
  const Where* lines[] = {&index.where...};
  return {mem, sizeof...(I), {index.id...}, *lines[0]};
}
}  // namespace dsl

template <class H>
dsl::Operand Index::host(H h, const Where& w) {
  static_assert(std::is_integral_v<H> && !std::same_as<H, bool>, "kiln: an index must be an integer.");
  if constexpr (std::is_signed_v<H>) {
    if (h < 0) dsl::negative_index(h, w);
  }
  return dsl::host_index(static_cast<std::uint64_t>(h), w);
}

// Subscripts and atomics of one memory, for 1 to 4 coordinates. Atomics are relaxed, of device scope, and give the old value.
template <class Self, class T, unsigned Rank, ir::Access A>
class Subscripts {
  static_assert(Scalar<T>, "kiln: the elements of a kernel's memory are bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, e4m3 and e5m2.");
  static_assert(Rank >= 1 && Rank <= ir::kMaxRank,
                "kiln: memory has rank 1 to 4; the size of a Shared is an argument: Shared<f32> s(256).");
  using I = const Index&;
  using V = Use<T>;
  using What =
      std::conditional_t<A == ir::Access::In, Val<T>, Elem<T, A>>;  // so that a subscript that is refused brings no second complaint
  auto at(const dsl::Element& e) const {
    if constexpr (A == ir::Access::In) return Val<T>(dsl::load(e, e.where));
    else return Elem<T, A>(e);
  }
  template <class... X>
  auto here(const X&... index) const {
    return dsl::element(static_cast<const Self&>(*this).memory(), index...);
  }

 public:
  // clang-format off
  auto operator[](I i) const requires(Rank == 1) { return at(here(i)); }
  auto operator[](I i, I j) const requires(Rank == 2) { return at(here(i, j)); }
  auto operator[](I i, I j, I k) const requires(Rank == 3) { return at(here(i, j, k)); }
  auto operator[](I i, I j, I k, I l) const requires(Rank == 4) { return at(here(i, j, k, l)); }
  auto operator()(I i) const requires(Rank == 1) { return at(here(i)); }
  auto operator()(I i, I j) const requires(Rank == 2) { return at(here(i, j)); }
  auto operator()(I i, I j, I k) const requires(Rank == 3) { return at(here(i, j, k)); }
  auto operator()(I i, I j, I k, I l) const requires(Rank == 4) { return at(here(i, j, k, l)); }
  // clang-format on
  template <class... X>
  requires(sizeof...(X) != Rank)
  What operator[](X&&...) const {
    static_assert(dsl::never<X...>, "kiln: a subscript has one coordinate per dimension: a[i] for rank 1, a[r, c] for rank 2.");
    return dsl::trapped<What>();
  }
  template <class... X>
  requires(sizeof...(X) != Rank)
  What operator()(X&&...) const {
    static_assert(dsl::never<X...>, "kiln: a subscript has one coordinate per dimension: a(i) for rank 1, a(r, c) for rank 2.");
    return dsl::trapped<What>();
  }
  KILN_NO_VALUE(WholeMemory, T)

  // clang-format off
#define KILN_ATOMIC(NAME, OPCODE, REQUIRES)                                                                                      \
  Val<T> NAME(I i, V v) const requires(Rank == 1) { return atomic<ir::Opcode::OPCODE, REQUIRES>(here(i), v); }                   \
  Val<T> NAME(I i, I j, V v) const requires(Rank == 2) { return atomic<ir::Opcode::OPCODE, REQUIRES>(here(i, j), v); }           \
  Val<T> NAME(I i, I j, I k, V v) const requires(Rank == 3) { return atomic<ir::Opcode::OPCODE, REQUIRES>(here(i, j, k), v); }   \
  Val<T> NAME(I i, I j, I k, I l, V v) const requires(Rank == 4) { return atomic<ir::Opcode::OPCODE, REQUIRES>(here(i, j, k, l), v); }
  // clang-format on
  KILN_ATOMIC(atomic_add, AtomicAdd, Number<T>)
  KILN_ATOMIC(atomic_sub, AtomicSub, Integer<T>)
  KILN_ATOMIC(atomic_min, AtomicMin, Number<T>)
  KILN_ATOMIC(atomic_max, AtomicMax, Number<T>)
  KILN_ATOMIC(atomic_and, AtomicAnd, Integer<T>)
  KILN_ATOMIC(atomic_or, AtomicOr, Integer<T>)
  KILN_ATOMIC(atomic_xor, AtomicXor, Integer<T>)
  KILN_ATOMIC(atomic_exchange, AtomicExchange, Number<T>)
#undef KILN_ATOMIC
  // Stores `desired` where the element is `expected`. Gives the old value: the exchange happened when it is `expected`.
  // clang-format off
  Val<T> atomic_cas(I i, V expected, V desired) const requires(Rank == 1) { return cas(here(i), expected, desired); }
  Val<T> atomic_cas(I i, I j, V expected, V desired) const requires(Rank == 2) { return cas(here(i, j), expected, desired); }
  Val<T> atomic_cas(I i, I j, I k, V expected, V desired) const requires(Rank == 3) { return cas(here(i, j, k), expected, desired); }
  Val<T> atomic_cas(I i, I j, I k, I l, V expected, V desired) const requires(Rank == 4) { return cas(here(i, j, k, l), expected, desired); }
  // clang-format on

 private:
  template <ir::Opcode Code, bool TypeIsRight>
  Val<T> atomic(const dsl::Element& e, const dsl::Operand& v) const {
    static_assert(A == ir::Access::InOut, "kiln: an atomic reads and writes. Declare the parameter InOut<T>.");
    KILN_NEEDS(T, TypeIsRight,
               "kiln: this atomic does not exist for this element type; add, min, max and exchange take integers and floats, the others "
               "integers.");
    KILN_NEEDS(T, sizeof(T) >= 4, "kiln: atomics work on elements of 32 and 64 bits; keep the shared value in an i32 or u32.");
    return Val<T>(dsl::atomic(Code, e, v));
  }
  Val<T> cas(const dsl::Element& e, const dsl::Operand& expected, const dsl::Operand& desired) const {
    static_assert(A == ir::Access::InOut, "kiln: an atomic reads and writes. Declare the parameter InOut<T>.");
    KILN_NEEDS(T, Integer<T>, "kiln: atomic_cas compares bits and takes integers.");
    KILN_NEEDS(T, sizeof(T) >= 4, "kiln: atomics work on elements of 32 and 64 bits; keep the shared value in an i32 or u32.");
    return Val<T>(dsl::atomic_cas(e, expected, desired));
  }
};

enum class Layout : std::uint8_t { Dense, Strided };
inline constexpr Layout Strided = Layout::Strided;

// A buffer parameter. Copying names the same buffer. Made by the kernel, never by authors.
template <class T, unsigned R, ir::Access A, Layout L>
class View : public Subscripts<View<T, R, A, L>, T, R, A> {
 public:
  using element_type = T;
  using Where = dsl::Where;
  static constexpr unsigned rank = R;
  static constexpr ir::Access access = A;
  static constexpr Layout layout = L;

  View(std::uint32_t mem, std::uint32_t param) : mem_(mem), param_(param) {}

  // Number of elements, and of elements along dimension d (0 is the outermost; the last is contiguous). A launch whose extents need more
  // bits than the kernel asks for is refused.
  Val<u32> size(Where w = Where::current()) const { return Val<u32>(dsl::size(mem_, ir::Type::U32, w)); }
  Val<u64> size64(Where w = Where::current()) const { return Val<u64>(dsl::size(mem_, ir::Type::U64, w)); }
  Val<u32> extent(unsigned d, Where w = Where::current()) const { return Val<u32>(dsl::extent(mem_, R, d, ir::Type::U32, w)); }
  Val<u64> extent64(unsigned d, Where w = Where::current()) const { return Val<u64>(dsl::extent(mem_, R, d, ir::Type::U64, w)); }

  std::uint32_t memory() const { return mem_; }
  std::uint32_t param() const { return param_; }

 private:
  std::uint32_t mem_, param_;
};

// Parameters. What an In is read from, an Out written to and an InOut both is checked by the compiler, the verifier and the launch.
// An Out promises that the launch writes every element. Strided adds a run-time stride per dimension.
template <class T, unsigned Rank = 1, Layout L = Layout::Dense>
using In = View<T, Rank, ir::Access::In, L>;
template <class T, unsigned Rank = 1, Layout L = Layout::Dense>
using Out = View<T, Rank, ir::Access::Out, L>;
template <class T, unsigned Rank = 1, Layout L = Layout::Dense>
using InOut = View<T, Rank, ir::Access::InOut, L>;

// Memory of the block with extents that are host integers: one array per declaration, however often the line is recorded.
// Pass it by reference.
template <class T, unsigned R = 1>
class Shared : public Subscripts<Shared<T, R>, T, R, ir::Access::InOut> {
 public:
  using element_type = T;
  using Where = dsl::Where;
  static constexpr unsigned rank = R;
  // An extent: any host integer above 0.
  struct Extent {
    template <std::integral H>
    Extent(H h, Where w = Where::current()) : value(static_cast<std::uint64_t>(h)), where(w) {
      if (std::cmp_less_equal(h, 0)) dsl::bad_extent(static_cast<std::int64_t>(h), w);
    }
    template <dsl::Dsl A>
    Extent(A&&) {
      static_assert(dsl::never<A>, "kiln: the extents of Shared are host integers. For a size known at launch use DynamicShared<T>.");
    }
    std::uint64_t value;
    Where where;
  };
  // clang-format off
  explicit Shared(Extent n) requires(R == 1) : Shared({n.value}, n.where) {}
  Shared(Extent n0, Extent n1) requires(R == 2) : Shared({n0.value, n1.value}, n0.where) {}
  Shared(Extent n0, Extent n1, Extent n2) requires(R == 3) : Shared({n0.value, n1.value, n2.value}, n0.where) {}
  Shared(Extent n0, Extent n1, Extent n2, Extent n3) requires(R == 4) : Shared({n0.value, n1.value, n2.value, n3.value}, n0.where) {}
  Shared(const Shared&) = delete;  // kiln: pass Shared by reference; a copy would look like other memory
  // clang-format on
  template <class U = T>
  requires(R <= ir::kMaxRank)  // else that is told
  Shared() : extents_{}, mem_(0) {
    static_assert(dsl::never<U>, "kiln: a Shared is given its extents: Shared<f32> s(256), or Shared<f32, 2> s(16, 16).");
  }

  // Host integers.
  std::uint64_t extent(unsigned d) const { return extents_[d]; }
  std::uint64_t size() const {
    std::uint64_t n = 1;
    for (unsigned d = 0; d < R; ++d) n *= extents_[d];
    return n;
  }
  std::uint32_t memory() const { return mem_; }

 private:
  using Extents = std::array<std::uint64_t, ir::kMaxRank>;
  Shared(Extents extents, const Where& w) : extents_(extents), mem_(dsl::new_array(ir_type<T>, extents, R, false, w)) {}
  Extents extents_;
  std::uint32_t mem_;
};

// Memory of the block whose size is the launch's shared_bytes. At most one per kernel.
template <class T>
class DynamicShared : public Subscripts<DynamicShared<T>, T, 1, ir::Access::InOut> {
 public:
  using element_type = T;
  using Where = dsl::Where;
  static constexpr unsigned rank = 1;
  explicit DynamicShared(Where w = Where::current()) : mem_(dsl::new_dynamic_shared(ir_type<T>, w)) {}
  DynamicShared(const DynamicShared&) = delete;  // kiln: pass DynamicShared by reference; a copy would look like other memory
  Val<u32> size(Where w = Where::current()) const { return Val<u32>(dsl::size(mem_, ir::Type::U32, w)); }
  std::uint32_t memory() const { return mem_; }

 private:
  std::uint32_t mem_;
};

// An array of N elements of each thread.
template <class T, std::uint64_t N>
class Local : public Subscripts<Local<T, N>, T, 1, ir::Access::InOut> {
  static_assert(N > 0, "kiln: a Local<T, N> has at least one element.");

 public:
  using element_type = T;
  using Where = dsl::Where;
  static constexpr unsigned rank = 1;
  explicit Local(Where w = Where::current()) : mem_(dsl::new_array(ir_type<T>, {N}, 1, true, w)) {}
  Local(const Local&) = delete;  // kiln: pass Local by reference; copy element by element
  static constexpr std::uint64_t size() { return N; }
  std::uint32_t memory() const { return mem_; }

 private:
  std::uint32_t mem_;
};

}  // namespace kiln
