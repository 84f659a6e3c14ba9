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
template <class T> concept Scalar = IsElement<T>;
template <class T> concept Number = Scalar<T> && !std::same_as<T, bool>;
template <class T> concept Integer = Number<T> && std::integral<T>;
template <class T> concept Floating = Number<T> && std::floating_point<T>;

template <Scalar T> class Val;                          // value.h: an immutable value
template <Scalar T> class Var;                          // value.h: a mutable local
template <Scalar T, ir::Access A> class Elem;           // value.h: one element of memory, inside the expression that names it
template <Scalar T> struct Use;                         // value.h: an operand

namespace dsl {

using Where = std::source_location;

template <class...> inline constexpr bool never = false;  // a static_assert condition that waits for instantiation

template <class T> T trapped();                             // never defined: the value of a function that only explains itself

// Val, Var and elements, of whatever type and value category.
template <class A> concept Dsl = requires { typename std::remove_cvref_t<A>::kiln_value; };
template <class A> using value_t = typename std::remove_cvref_t<A>::kiln_value;
template <class A> concept Host = std::is_arithmetic_v<std::remove_cvref_t<A>>;
template <class A> concept DslOrHost = Dsl<A> || Host<A>;

// The one kernel type of a list of operands, ignoring host values; void when two differ.
template <class... A> struct Common { using type = void; };
template <class A> struct Common<A> { using type = void; };
template <Dsl A> struct Common<A> { using type = value_t<A>; };
template <class A, class B, class... R> struct Common<A, B, R...> {
  using first = typename Common<A>::type;
  using rest = typename Common<B, R...>::type;
  static constexpr bool a = Dsl<A>, b = (Dsl<B> || ... || Dsl<R>);
  using type = std::conditional_t<!a, rest, std::conditional_t<!b || std::is_same_v<first, rest>, first, void>>;
};
template <class... A> using common_t = typename Common<A...>::type;
template <class... A> concept OneKernelType = (DslOrHost<A> && ...) && (Dsl<A> || ...);

}  // namespace dsl

// A kernel value of element type T: Val<T>, Var<T> or an element of memory.
template <class A, class T> concept DslOf = dsl::Dsl<A> && std::same_as<dsl::value_t<A>, T>;

}  // namespace kiln
