// The concepts of kernel code, and the forward declarations that every header of the DSL starts from.
#pragma once
#include <concepts>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "kiln/ir/kernel.h"
#include "kiln/runtime/scalar.h"

namespace kiln {

// Element types of kernels: bool, the integers and the floats of runtime/scalar.h.
template <class T>
concept Scalar = IsElement<T>;
// Types of values that can be computed with.
template <class T>
concept Number = Scalar<T> && !std::same_as<T, bool> && !IsFloat8<T>;
template <class T>
concept Integer = Number<T> && std::integral<T>;
template <class T>
concept Floating = Number<T> && (std::floating_point<T> || IsHalf<T>);

template <Scalar T>
class Val;  // value.h: an immutable value
template <Scalar T>
class Var;  // value.h: a mutable local
template <Scalar T, ir::Access A>
class Elem;  // value.h: one element of memory, inside the expression that names it
template <Scalar T>
struct Use;  // value.h: an operand

namespace dsl {

using Where = std::source_location;

template <class...>
inline constexpr bool never = false;  // a static_assert condition that waits for instantiation

template <class T>
T trapped();  // never defined: the value of a function that only explains itself

// Val, Var and elements, of whatever type and value category.
template <class A>
concept Dsl = requires { typename std::remove_cvref_t<A>::kiln_value; };
template <class A>
using value_t = typename std::remove_cvref_t<A>::kiln_value;
template <class A>
concept Host = std::is_arithmetic_v<std::remove_cvref_t<A>> || IsHalf<std::remove_cvref_t<A>> || IsFloat8<std::remove_cvref_t<A>>;
template <class A>
concept DslOrHost = Dsl<A> || Host<A>;

// A condition on the type of an operand, with its sentence; of a float of 8 bits another one, of what holds for each operation but these.
#define KILN_COMPUTES(T)    \
  static_assert(            \
      !::kiln::IsFloat8<T>, \
      "kiln: e4m3 and e5m2 are stored, moved and converted only; write cast<f32>(x) first, and cast<e4m3>(y) to store the result.")
#define KILN_NEEDS(T, CONDITION, SENTENCE) \
  KILN_COMPUTES(T);                        \
  static_assert(::kiln::IsFloat8<T> || (CONDITION), SENTENCE)

// What is no value of the kernel, but is often written where one belongs.
struct ThreeNumbers;  // thread_id() and its like
struct WholeMemory;   // In, Out, InOut, Shared, DynamicShared, Local
template <class A>
concept NoValue = requires { typename std::remove_cvref_t<A>::kiln_no_value; };
template <class A, class Kind>
concept NoValueOf = NoValue<A> && std::same_as<typename std::remove_cvref_t<A>::kiln_no_value, Kind>;
// The types of values, and of parameters that take one.
template <class U>
concept TakesValue = Dsl<U> || requires { typename U::kiln_takes_value; };
template <class A, class... B>
constexpr void explain_no_value() {
  static_assert(!(NoValueOf<A, ThreeNumbers> || ... || NoValueOf<B, ThreeNumbers>),
                "kiln: thread_id(), global_id() and their like are three numbers, one per axis. Write .x, .y or .z for one of them.");
  static_assert(!(NoValueOf<A, WholeMemory> || ... || NoValueOf<B, WholeMemory>),
                "kiln: this is a whole memory, and a value is needed. Write x[i] for one element of it.");
}
// Makes a class explain itself where a value of the kernel is needed.
template <class Kind, class U>
struct NoValueTag {
  using kiln_no_value = Kind;
};
#define KILN_NO_VALUE(KIND, T)                                                      \
  using kiln_no_value = ::kiln::dsl::KIND;                                          \
  using kiln_element = T;                                                           \
  template <::kiln::dsl::TakesValue KilnU>                                          \
  operator KilnU() const {                                                          \
    ::kiln::dsl::explain_no_value<::kiln::dsl::NoValueTag<kiln_no_value, KilnU>>(); \
    return ::kiln::dsl::trapped<KilnU>();                                           \
  }

// The type that an operation on such a thing was probably to have, so that it brings no second complaint.
template <class A>
struct Meant {
  using type = void;
};
template <Dsl A>
struct Meant<A> {
  using type = value_t<A>;
};
template <NoValue A>
struct Meant<A> {
  using type = typename std::remove_cvref_t<A>::kiln_element;
};
template <class A, class B>
using meant_t = std::conditional_t<Dsl<B> || !(Dsl<A> || NoValue<A>), typename Meant<B>::type, typename Meant<A>::type>;

// The one kernel type of a list of operands, ignoring host values; void when two differ.
template <class... A>
struct Common {
  using type = void;
};
template <class A>
struct Common<A> {
  using type = void;
};
template <Dsl A>
struct Common<A> {
  using type = value_t<A>;
};
template <class A, class B, class... R>
struct Common<A, B, R...> {
  using first = typename Common<A>::type;
  using rest = typename Common<B, R...>::type;
  static constexpr bool a = Dsl<A>, b = (Dsl<B> || ... || Dsl<R>);
  using type = std::conditional_t<!a, rest, std::conditional_t<!b || std::is_same_v<first, rest>, first, void>>;
};
template <class... A>
using common_t = typename Common<A...>::type;
template <class... A>
concept OneKernelType = (DslOrHost<A> && ...) && (Dsl<A> || ...);

}  // namespace dsl

// A kernel value of element type T: Val<T>, Var<T> or an element of memory.
template <class A, class T>
concept DslOf = dsl::Dsl<A> && std::same_as<dsl::value_t<A>, T>;

}  // namespace kiln
