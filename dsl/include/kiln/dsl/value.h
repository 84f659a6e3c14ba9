// Val, Var and Elem: the values of kernel code, and their operators. All recording; nothing is computed here.
// Misuse is a recording error (kiln::Exception with file:line, which a launch reports) or a compile error with a sentence.
#pragma once
#include <array>
#include <iosfwd>
#include <utility>

#include "kiln/dsl/recorder.h"
#include "kiln/dsl/types.h"

namespace kiln {

namespace dsl {

// One element of memory: where it is, and the line that names it.
struct Element {
  std::uint32_t mem = ir::kNone;
  unsigned rank = 0;
  std::array<ir::ValueId, ir::kMaxRank> at{};
  Where where;
};
Handle load(const Element& element, const Where& where);
void store(const Element& element, const Operand& value);

// A host value as bits of T: exact, or a sentence.
template <Scalar T, class H>
std::uint64_t literal(H h, const Where& where) {
  if constexpr (std::same_as<T, bool>) {
    static_assert(std::same_as<H, bool>, "kiln: a kernel bool takes only true, false and comparisons; write x != 0 to test a number.");
    return h ? 1 : 0;
  } else {
    static_assert(!std::same_as<H, bool>, "kiln: true and false are no numbers in a kernel; write 1 or 0, or cast<T>(condition).");
    static_assert(Floating<T> || IsFloat8<T> || std::integral<H>,
                  "kiln: a floating-point number of the host, 2.0 too, cannot become an integer of the kernel; write an integer, or "
                  "cast<f32>(x) on the other operand.");
    if constexpr (IsFloat8<T> && std::same_as<H, T>) {
      return h.bits();  // a conversion would take infinity for the largest finite number
    } else if constexpr (!std::integral<H>) {
      return float_literal(ir_type<T>, static_cast<double>(h), where);
    } else if constexpr (std::is_signed_v<H>) {
      return signed_literal(ir_type<T>, h, where);
    } else {
      return unsigned_literal(ir_type<T>, h, where);
    }
  }
}

}  // namespace dsl

// What operators and functions of kernel code take: a value of type T, or a host value that is exact in T, and the source line.
template <Scalar T>
struct Use : dsl::Operand {
  using Where = dsl::Where;
  using kiln_takes_value = T;
  Use(const Val<T>& v, Where w = Where::current()) : Operand(dsl::use(v.handle(), w)) {}
  Use(const Var<T>& v, Where w = Where::current()) : Operand(dsl::get_slot(v.slot(), w)) {}
  template <ir::Access A>
  Use(Elem<T, A>&& e, Where w = Where::current()) : Operand(std::move(e).read(w)) {}
  template <dsl::Host H>
  Use(H h, Where w = Where::current()) : Operand{dsl::constant(ir_type<T>, dsl::literal<T>(h, w), w).id, w} {}
  template <ir::Access A>
  Use(Elem<T, A>& e) : Operand(trap(e)) {}
  template <ir::Access A>
  Use(const Elem<T, A>& e) : Operand(trap(e)) {}
  template <dsl::Dsl A>
  requires(std::same_as<T, bool> && !DslOf<A, bool>)
  Use(A&&, Where = {}) : Operand(no_bool<A>()) {}

 private:
  template <class A>
  static Operand no_bool() {
    static_assert(dsl::never<A>, "kiln: a bool is needed here; write x != 0 to test a number.");
    return {};
  }
  template <class E>
  static Operand trap(E&) {
    static_assert(dsl::never<E>, "kiln: `auto v = y[i]` names the element, not its value. Write Val<T> v = y[i] to read it once here.");
    return {};
  }
};

// The operators of every kernel value, found by argument-dependent lookup only.
template <Scalar T>
class Ops {
#define KILN_BINARY(OP, OPCODE, RESULT, REQUIRES, SENTENCE)    \
  friend auto operator OP(Use<T> a, Use<T> b) {                \
    KILN_NEEDS(T, REQUIRES, "kiln: " SENTENCE);                \
    return Val<RESULT>(dsl::binary(ir::Opcode::OPCODE, a, b)); \
  }
#define KILN_EQUALITY(OP, OPCODE)                                                                                               \
  [[nodiscard("a comparison gives a bool and changes nothing; y[i] = v stores")]] friend auto operator OP(Use<T> a, Use<T> b) { \
    KILN_COMPUTES(T);                                                                                                           \
    return Val<bool>(dsl::binary(ir::Opcode::OPCODE, a, b));                                                                    \
  }
#define KILN_NUMBERS "arithmetic and order need numbers, not bool; use && || ! ^ on bool, or cast<T>(x)."
#define KILN_BITS "bit operations need integers or bool; bit_cast<u32>(x) gives the bits of a float."
#define KILN_SHIFTS "shifts need integers; bit_cast<u32>(x) gives the bits of a float."
  KILN_BINARY(+, Add, T, Number<T>, KILN_NUMBERS)
  KILN_BINARY(-, Sub, T, Number<T>, KILN_NUMBERS)
  KILN_BINARY(*, Mul, T, Number<T>, KILN_NUMBERS)
  KILN_BINARY(/, Div, T, Number<T>, KILN_NUMBERS)
  KILN_BINARY(%, Rem, T, Number<T>, KILN_NUMBERS)
  KILN_BINARY(<, Lt, bool, Number<T>, KILN_NUMBERS)
  KILN_BINARY(<=, Le, bool, Number<T>, KILN_NUMBERS)
  KILN_BINARY(>, Gt, bool, Number<T>, KILN_NUMBERS)
  KILN_BINARY(>=, Ge, bool, Number<T>, KILN_NUMBERS)
  KILN_EQUALITY(==, Eq)
  KILN_EQUALITY(!=, Ne)
  KILN_BINARY(&, And, T, std::integral<T>, KILN_BITS)
  KILN_BINARY(|, Or, T, std::integral<T>, KILN_BITS)
  KILN_BINARY(^, Xor, T, std::integral<T>, KILN_BITS)
  KILN_BINARY(<<, Shl, T, Integer<T>, KILN_SHIFTS)
  KILN_BINARY(>>, Shr, T, Integer<T>, KILN_SHIFTS)
#undef KILN_BINARY
#undef KILN_EQUALITY
  friend auto operator+(Use<T> a) {
    KILN_NEEDS(T, Number<T>, "kiln: " KILN_NUMBERS);
    return Val<T>(dsl::Recorder::current(a.where).handle(a.id));
  }
  friend auto operator-(Use<T> a) {
    KILN_NEEDS(T, Number<T>, "kiln: " KILN_NUMBERS);
    return Val<T>(dsl::unary(ir::Opcode::Neg, a));
  }
  friend auto operator~(Use<T> a) {
    KILN_NEEDS(T, Integer<T>, "kiln: ~ needs an integer; use ! on a bool, or bit_cast<u32>(x) for the bits of a float.");
    return Val<T>(dsl::unary(ir::Opcode::Not, a));
  }
#undef KILN_NUMBERS
#undef KILN_BITS
#undef KILN_SHIFTS
};

// What a kernel value never does, each with the sentence that says what to write instead.
#define KILN_VALUE_TRAPS                                                                                                             \
  template <std::same_as<bool> B>                                                                                                    \
  explicit operator B() const {                                                                                                      \
    static_assert(dsl::never<B>,                                                                                                     \
                  "kiln: a kernel value is not known while the kernel is recorded. Use If (c) { }, While (c) { } and for (auto i : " \
                  "range(n)) { } instead of if, while and for, select(c, a, b) instead of c ? a : b.");                              \
    return false;                                                                                                                    \
  }                                                                                                                                  \
  template <class H>                                                                                                                 \
  requires(std::is_arithmetic_v<H> && !std::same_as<H, bool>)                                                                        \
  explicit operator H() const {                                                                                                      \
    static_assert(dsl::never<H>,                                                                                                     \
                  "kiln: a kernel value is not known while the kernel is recorded; cast<T>(x) converts within the kernel.");         \
    return H{};                                                                                                                      \
  }                                                                                                                                  \
  template <class U = T>                                                                                                             \
  void operator&() const {                                                                                                           \
    static_assert(dsl::never<U>, "kiln: a kernel value has no address; pass it by value, or a Var by reference.");                   \
  }

// An immutable value of the kernel. Copying is free and makes no operation. There is no default value and no assignment.
template <Scalar T>
class Val : public Ops<T> {
 public:
  using kiln_value = T;
  using value_type = T;
  using Where = dsl::Where;

  template <dsl::Host H>
  Val(H h, Where w = Where::current()) : handle_(dsl::constant(ir_type<T>, dsl::literal<T>(h, w), w)) {}
  Val(const Var<T>& v, Where w = Where::current()) : Val(Use<T>(v, w)) {}
  template <ir::Access A>
  Val(Elem<T, A>&& e, Where w = Where::current()) : Val(Use<T>(std::move(e), w)) {}
  template <ir::Access A>
  Val(Elem<T, A>& e) : Val(Use<T>(e)) {}
  template <class U>
  requires(!std::same_as<T, U>)
  Val(const Val<U>&) {
    static_assert(dsl::never<U>, "kiln: the value has another kernel type. There is no implicit conversion: write cast<T>(x).");
  }
  template <class U = T>
  Val() {
    static_assert(dsl::never<U>, "kiln: a Val<T> has a value from the start. Declare Var<T> x; for a local that is assigned later.");
  }
  Val(const Val&) = default;
  explicit Val(Use<T> u) : handle_(dsl::Recorder::current(u.where).handle(u.id)) {}
  explicit Val(dsl::Handle handle) : handle_(handle) {}

  Val& operator=(const Val&)
  requires(dsl::never<T>);
#define KILN_TRAP(OP)                                                                                                                     \
  template <class U>                                                                                                                      \
  void operator OP(const U&) & {                                                                                                          \
    static_assert(dsl::never<U>, "kiln: a Val<T> is an immutable value. Declare it Var<T> x = ... to assign to it inside a kernel.");     \
  }                                                                                                                                       \
  template <class U>                                                                                                                      \
  void operator OP(const U&) && {                                                                                                         \
    static_assert(dsl::never<U>, "kiln: this is a value, not a place: an In<T> is read-only. Declare the parameter InOut<T> or Out<T>."); \
  }
  // clang-format off
  KILN_TRAP(=) KILN_TRAP(+=) KILN_TRAP(-=) KILN_TRAP(*=) KILN_TRAP(/=) KILN_TRAP(%=)
  KILN_TRAP(&=) KILN_TRAP(|=) KILN_TRAP(^=) KILN_TRAP(<<=) KILN_TRAP(>>=)
  // clang-format on
#undef KILN_TRAP
#define KILN_TRAP(DECLARATION)                                                                                                         \
  template <class U = T>                                                                                                               \
  void DECLARATION {                                                                                                                   \
    static_assert(dsl::never<U>, "kiln: a Val<T> is an immutable value. Declare it Var<T> x = ... to count with it inside a kernel."); \
  }
  KILN_TRAP(operator++())
  KILN_TRAP(operator++(int))
  KILN_TRAP(operator--())
  KILN_TRAP(operator--(int))
#undef KILN_TRAP
  KILN_VALUE_TRAPS

  dsl::Handle handle() const { return handle_; }

 private:
  dsl::Handle handle_;
};

// The binary assignments of Var and Elem, as KILN_EACH(operator, opcode, condition on T).
#define KILN_EACH_ASSIGNMENT(KILN_EACH) \
  KILN_EACH(+=, Add, Number<T>)         \
  KILN_EACH(-=, Sub, Number<T>)         \
  KILN_EACH(*=, Mul, Number<T>)         \
  KILN_EACH(/=, Div, Number<T>)         \
  KILN_EACH(%=, Rem, Number<T>)         \
  KILN_EACH(&=, And, std::integral<T>)  \
  KILN_EACH(|=, Or, std::integral<T>)   \
  KILN_EACH(^=, Xor, std::integral<T>)  \
  KILN_EACH(<<=, Shl, Integer<T>)       \
  KILN_EACH(>>=, Shr, Integer<T>)
#define KILN_MIXED_TYPES "kiln: the operands have different kernel types. There is no implicit conversion: write cast<T>(x) on one side."
#define KILN_MIXED_ASSIGNMENT                                                                                                            \
  "kiln: the value has another kernel type than what it is assigned to. There is no implicit conversion: write cast<T>(x) on the right " \
  "side."

// A mutable local of the kernel, zero unless initialised. Copying and moving make a new local with the value of the old, as in C++.
template <Scalar T>
class Var : public Ops<T> {
 public:
  using kiln_value = T;
  using value_type = T;
  using Where = dsl::Where;

  Var(Where w = Where::current()) : Var(Use<T>(T{}, w)) {}
  template <dsl::Host H>
  Var(H h, Where w = Where::current()) : Var(Use<T>(h, w)) {}
  Var(const Val<T>& v, Where w = Where::current()) : Var(Use<T>(v, w)) {}
  template <ir::Access A>
  Var(Elem<T, A>&& e, Where w = Where::current()) : Var(Use<T>(std::move(e), w)) {}
  template <ir::Access A>
  Var(Elem<T, A>& e) : Var(Use<T>(e)) {}
  template <class U>
  requires(!std::same_as<T, U>)
  Var(const Val<U>&) {
    static_assert(dsl::never<U>, "kiln: the value has another kernel type. There is no implicit conversion: write cast<T>(x).");
  }
  Var(const Var& v, Where w = Where::current()) : Var(Use<T>(v, w)) {}
  explicit Var(Use<T> u) : slot_(dsl::new_slot(ir_type<T>, u)) {}

  Var& operator=(Use<T> u) {
    dsl::set_slot(slot_, u);
    return *this;
  }
  Var& operator=(const Var&)  // Use<T> takes a Var too, and knows the line
  requires(dsl::never<T>);
  template <dsl::Dsl U>
  requires(!DslOf<U, T>)
  Var& operator=(U&&) {
    static_assert(dsl::never<U>, KILN_MIXED_ASSIGNMENT);
    return *this;
  }
#define KILN_ASSIGN(OP, OPCODE, REQUIRES)                                        \
  Var& operator OP(Use<T> u) {                                                   \
    KILN_NEEDS(T, REQUIRES, "kiln: " #OP " has no meaning for this type.");      \
    const dsl::Operand old = dsl::get_slot(slot_, u.where);                      \
    dsl::set_slot(slot_, {dsl::binary(ir::Opcode::OPCODE, old, u).id, u.where}); \
    return *this;                                                                \
  }                                                                              \
  template <dsl::Dsl U>                                                          \
  requires(!DslOf<U, T>)                                                         \
  Var& operator OP(U&&) {                                                        \
    static_assert(dsl::never<U>, KILN_MIXED_ASSIGNMENT);                         \
    return *this;                                                                \
  }
  KILN_EACH_ASSIGNMENT(KILN_ASSIGN)
#undef KILN_ASSIGN
  Var& operator++() { return step(ir::Opcode::Add); }
  Var& operator--() { return step(ir::Opcode::Sub); }
  Val<T> operator++(int) { return step_after(ir::Opcode::Add); }
  Val<T> operator--(int) { return step_after(ir::Opcode::Sub); }
  KILN_VALUE_TRAPS

  dsl::Handle slot() const { return slot_; }

 private:
  Var& step(ir::Opcode code) {
    step_after(code);
    return *this;
  }
  Val<T> step_after(ir::Opcode code) {
    KILN_NEEDS(T, Integer<T>, "kiln: ++ and -- need an integer; write x += 1.");
    return Val<T>(dsl::step_slot(slot_, code));
  }
  dsl::Handle slot_;
};

// One element of writable memory. It lives only inside the expression that names it: `y[i] = v`, `y[i] + 1`, `y[i] += v`.
template <Scalar T, ir::Access A>
class Elem : public Ops<T> {
 public:
  using kiln_value = T;
  using value_type = T;

  explicit Elem(const dsl::Element& element) : element_(element) {}
  Elem(const Elem&) = delete;

  void operator=(Use<T> v) && { dsl::store(element_, v); }
  void operator=(const Elem&) &&  // Use<T> takes an element too
  requires(dsl::never<T>);
  template <dsl::Dsl U>
  requires(!DslOf<U, T>)
  void operator=(U&&) && {
    static_assert(dsl::never<U>, KILN_MIXED_ASSIGNMENT);
  }
  template <class U>
  void operator=(U&&) & {
    static_assert(dsl::never<U>,
                  "kiln: `auto v = y[i]` names the element, not its value. Write Val<T> v = y[i] to read it, y[i] = v to write it.");
  }
#define KILN_ASSIGN(OP, OPCODE, REQUIRES)                                        \
  void operator OP(Use<T> v) && {                                                \
    KILN_NEEDS(T, REQUIRES, "kiln: " #OP " has no meaning for this type.");      \
    const dsl::Operand old = std::move(*this).read(v.where);                     \
    dsl::store(element_, {dsl::binary(ir::Opcode::OPCODE, old, v).id, v.where}); \
  }                                                                              \
  template <dsl::Dsl U>                                                          \
  requires(!DslOf<U, T>)                                                         \
  void operator OP(U&&) && {                                                     \
    static_assert(dsl::never<U>, KILN_MIXED_ASSIGNMENT);                         \
  }
  KILN_EACH_ASSIGNMENT(KILN_ASSIGN)
#undef KILN_ASSIGN
  void operator++() && { std::move(*this) += Use<T>(T{1}, element_.where); }
  void operator--() && { std::move(*this) -= Use<T>(T{1}, element_.where); }
  void operator++(int) && { std::move(*this) += Use<T>(T{1}, element_.where); }
  void operator--(int) && { std::move(*this) -= Use<T>(T{1}, element_.where); }
  KILN_VALUE_TRAPS

  const dsl::Element& element() const { return element_; }
  dsl::Operand read(const dsl::Where& where) && {
    static_assert(A != ir::Access::Out, "kiln: an Out<T> is only written. Declare the parameter InOut<T> to read it too.");
    return {dsl::load(element_, where).id, where};
  }

 private:
  dsl::Element element_;
};

// Two kernel operands of different types: one sentence instead of a list of candidates.
#define KILN_MIXED(OP, RESULT)                              \
  template <dsl::Dsl A, dsl::Dsl B>                         \
  requires(!std::same_as<dsl::value_t<A>, dsl::value_t<B>>) \
  Val<RESULT> operator OP(A&&, B&&) {                       \
    static_assert(dsl::never<A>, KILN_MIXED_TYPES);         \
    return dsl::trapped<Val<RESULT>>();                     \
  }
#define KILN_MIXED_VALUE(OP) KILN_MIXED(OP, dsl::value_t<A>)
// clang-format off
KILN_MIXED_VALUE(+) KILN_MIXED_VALUE(-) KILN_MIXED_VALUE(*) KILN_MIXED_VALUE(/) KILN_MIXED_VALUE(%)
KILN_MIXED_VALUE(&) KILN_MIXED_VALUE(|) KILN_MIXED_VALUE(^) KILN_MIXED_VALUE(<<) KILN_MIXED_VALUE(>>)
KILN_MIXED(<, bool) KILN_MIXED(<=, bool) KILN_MIXED(>, bool) KILN_MIXED(>=, bool) KILN_MIXED(==, bool) KILN_MIXED(!=, bool)
// clang-format on
#undef KILN_MIXED_VALUE
#undef KILN_MIXED

// An operand that is no value at all.
#define KILN_NONE(OP, ...)                                                                                        \
  template <class A, class B>                                                                                     \
  requires((dsl::NoValue<A> && (dsl::DslOrHost<B> || dsl::NoValue<B>)) || (dsl::DslOrHost<A> && dsl::NoValue<B>)) \
  Val<__VA_ARGS__> operator OP(A&&, B&&) {                                                                        \
    dsl::explain_no_value<A, B>();                                                                                \
    return dsl::trapped<Val<__VA_ARGS__>>();                                                                      \
  }
#define KILN_NONE_VALUE(OP) KILN_NONE(OP, dsl::meant_t<A, B>)
// clang-format off
KILN_NONE_VALUE(+) KILN_NONE_VALUE(-) KILN_NONE_VALUE(*) KILN_NONE_VALUE(/) KILN_NONE_VALUE(%)
KILN_NONE_VALUE(&) KILN_NONE_VALUE(|) KILN_NONE_VALUE(^) KILN_NONE_VALUE(<<) KILN_NONE_VALUE(>>)
KILN_NONE(<, bool) KILN_NONE(<=, bool) KILN_NONE(>, bool) KILN_NONE(>=, bool) KILN_NONE(==, bool) KILN_NONE(!=, bool)
// clang-format on
#undef KILN_NONE_VALUE
#undef KILN_NONE

// Into a stream of the host.
template <class Char, class Traits, dsl::Dsl A>
std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out, A&&) {
  static_assert(
      dsl::never<A>,
      "kiln: a kernel value is not known while the kernel is recorded, and the host cannot print it. log(\"x = {}\", x) tells the "
      "host when the kernel runs.");
  return out;
}

// && and || short-circuit (see Recorder::logical). Exact matches on one side: the built-in operators are candidates too, by the
// conversion to bool that is there to explain itself.
namespace dsl {
Handle logical_named(bool is_and, Handle a, const Operand& b);      // left: a named Val
Handle logical_temporary(bool is_and, Handle a, const Operand& b);  // left: the value of an expression
Handle logical_slot(bool is_and, Handle slot, const Operand& b);    // left: a Var
Handle logical_element(bool is_and, const Element& a, const Operand& b);
Handle logical_host(bool is_and, bool a, Handle b);
Handle logical_host(bool is_and, const Operand& a, bool b);
Where last_where();  // of the operation before, for operators that cannot know their line
}  // namespace dsl
#define KILN_LOGICAL(OP, IS_AND)                                                                                                 \
  inline Val<bool> operator OP(Val<bool>&& a, Use<bool> b) { return Val<bool>(dsl::logical_temporary(IS_AND, a.handle(), b)); }  \
  inline Val<bool> operator OP(const Val<bool>& a, Use<bool> b) { return Val<bool>(dsl::logical_named(IS_AND, a.handle(), b)); } \
  inline Val<bool> operator OP(const Var<bool>& a, Use<bool> b) { return Val<bool>(dsl::logical_slot(IS_AND, a.slot(), b)); }    \
  template <ir::Access A>                                                                                                        \
  Val<bool> operator OP(Elem<bool, A>&& a, Use<bool> b) {                                                                        \
    static_assert(A != ir::Access::Out, "kiln: an Out<T> is only written. Declare the parameter InOut<T> to read it too.");      \
    return Val<bool>(dsl::logical_element(IS_AND, a.element(), b));                                                              \
  }                                                                                                                              \
  inline Val<bool> operator OP(bool a, const Val<bool>& b) { return Val<bool>(dsl::logical_host(IS_AND, a, b.handle())); }       \
  template <DslOf<bool> A>                                                                                                       \
  Val<bool> operator OP(A&& a, std::same_as<bool> auto b) {                                                                      \
    return Val<bool>(dsl::logical_host(IS_AND, Use<bool>(std::forward<A>(a), dsl::last_where()), b));                            \
  }                                                                                                                              \
  template <dsl::DslOrHost A, dsl::DslOrHost B>                                                                                  \
  requires((dsl::Dsl<A> || dsl::Dsl<B>) && !((DslOf<A, bool> || std::same_as<std::remove_cvref_t<A>, bool>) &&                   \
                                             (DslOf<B, bool> || std::same_as<std::remove_cvref_t<B>, bool>)))                    \
  Val<bool> operator OP(A&&, B&&) {                                                                                              \
    static_assert(dsl::never<A>, "kiln: " #OP " needs bool on both sides; write x != 0 to test a number.");                      \
    return dsl::trapped<Val<bool>>();                                                                                            \
  }
// Exact for the same reason.
template <dsl::Dsl A>
Val<bool> operator!(A&& a) {
  static_assert(DslOf<A, bool>, "kiln: ! needs a bool; write x == 0 to test a number.");
  using T = dsl::value_t<A>;
  return Val<bool>(dsl::unary(ir::Opcode::Not, Use<T>(std::forward<A>(a), dsl::last_where())));
}
KILN_LOGICAL(&&, true)
KILN_LOGICAL(||, false)
#undef KILN_LOGICAL

#undef KILN_VALUE_TRAPS
#undef KILN_EACH_ASSIGNMENT
#undef KILN_MIXED_TYPES
#undef KILN_MIXED_ASSIGNMENT

}  // namespace kiln
