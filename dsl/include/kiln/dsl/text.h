// What kernels say: checks, logs, traps; and what their authors assume.
#pragma once
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "kiln/dsl/value.h"
#include "kiln/ir/message.h"

namespace kiln {
namespace dsl {

// The element type of a value in a text: a value of the kernel, or a host number of an element type.
template <class A>
struct Said {
  static_assert(NoValue<A>, "kiln: a value in a text is a value of the kernel, or a host number or bool of an element type.");
  using type = f32;
};
template <class A>
requires Dsl<A> || Scalar<std::remove_cvref_t<A>>
struct Said<A> {
  using type = typename std::conditional_t<Dsl<A>, Meant<A>, std::type_identity<std::remove_cvref_t<A>>>::type;
};
template <class A>
using said_t = typename Said<A>::type;

// A text with a place for each value of these types (ir/message.h), tested by the compiler, and where it was written. What the compiler
// says of one that does not fit, which is no constant expression, names one of these functions:
template <class... A>
struct Message {
  const char* text;
  Where where;
  static void a_text_has_as_many_places_as_values_behind_it() {}
  static void a_lone_brace_in_a_text_is_written_twice() {}
  static void a_place_in_a_text_is_braces_with_nothing_or_a_format_spec_in_them() {}
  static void this_format_is_not_for_a_value_of_that_type() {}
  static void a_text_ends_at_its_first_NUL_and_this_one_goes_on_behind_it() {}
  template <class Text>
  requires std::is_convertible_v<const Text&, const char*>
  consteval Message(const Text& t, Where w = Where::current()) : text(t), where(w) {
    if constexpr (std::is_array_v<Text>)
      if (std::string_view(text).size() + 1 != std::extent_v<Text>) a_text_ends_at_its_first_NUL_and_this_one_goes_on_behind_it();
    const std::array<ir::Type, sizeof...(A)> types{ir_type<said_t<A>>...};
    switch (ir::find_problem(text, types)) {
      case ir::MessageProblem::None: break;
      case ir::MessageProblem::Brace: a_lone_brace_in_a_text_is_written_twice(); break;
      case ir::MessageProblem::Spec: a_place_in_a_text_is_braces_with_nothing_or_a_format_spec_in_them(); break;
      case ir::MessageProblem::Type: this_format_is_not_for_a_value_of_that_type(); break;
      case ir::MessageProblem::Count: a_text_has_as_many_places_as_values_behind_it(); break;
    }
  }
};
template <class... A>
using message_t = Message<std::type_identity_t<A>...>;

template <class A>
Operand said(A&& a, const Where& where) {
  if constexpr (NoValue<A>) explain_no_value<A>();
  return Use<said_t<A>>(std::forward<A>(a), where);
}
// A check shows no float of 8 bits.
template <class A>
constexpr void explain_shown() {
  KILN_COMPUTES(said_t<A>);
}
void check(const Operand& condition, const char* text, std::initializer_list<Operand> values);
void log_text(const char* text, std::initializer_list<Operand> values, const Where& where);

template <class T>
concept LateText = std::same_as<T, std::string> || std::same_as<T, std::string_view>;
#define KILN_LITERAL                                                                                                                      \
  "kiln: the text of a log or a check is a literal that the compiler reads, as in log(\"x = {}\", x), and this is a string of the host. " \
  "trap(text) takes one."

}  // namespace dsl

// What the author knows to hold. Where it does not, the kernel goes on, and the launch counts as failed with the text, in which each {} is
// the value behind it; of several that fail some first one is told. Only checked kernels look.
template <class... A>
void check(Use<bool> c, dsl::message_t<A...> text, A&&... values) {
  static_assert(sizeof...(A) <= ir::kCheckValues, "kiln: a check has at most 2 values.");
  (dsl::explain_shown<A>(), ...);
  dsl::check(c, text.text, {dsl::said(std::forward<A>(values), c.where)...});
}
template <dsl::DslOrHost C>
void check(C&&) {
  static_assert(dsl::never<C>,
                "kiln: a check says what is wrong: check(c, \"row {} of {}\", r, n); assume(c) takes its text from the condition.");
}

// A text that the compiler does not know.
template <class C, dsl::LateText T, class... A>
void check(C&&, const T&, A&&...) {
  static_assert(dsl::never<T>, KILN_LITERAL);
}

// Text for the host, a line for each thread that comes here, in the thread's own order: see Client::on_log. Checked or not. A launch has
// room for as many as its log holds; those beyond are counted.
template <class... A>
void log(dsl::message_t<A...> text, A&&... values) {
  static_assert(sizeof...(A) <= ir::kLogValues, "kiln: a log has at most 8 values.");
  dsl::log_text(text.text, {dsl::said(std::forward<A>(values), text.where)...}, text.where);
}
template <dsl::LateText T, class... A>
void log(const T&, A&&...) {
  static_assert(dsl::never<T>, KILN_LITERAL);
}
#undef KILN_LITERAL

// The thread ends here, the launch fails with the text, and the device is lost to this process. Checked or not. Other threads may stop
// anywhere.
void trap(std::string_view text = {}, dsl::Where w = dsl::Where::current());
template <class V, class... A>
requires(!std::same_as<std::remove_cvref_t<V>, dsl::Where>)
void trap(std::string_view, V&&, A&&...) {
  static_assert(dsl::never<V>, "kiln: the text of a trap has no values; log(\"x = {}\", x) before it.");
}

// The author's word that the condition holds. Checked kernels test it, as check does; unchecked ones build on it.
void assume(Use<bool> c);
template <class C, class T, class... A>
void assume(C&&, T&&, A&&...) {
  static_assert(dsl::never<C>, "kiln: assume takes its text from the condition; check(c, \"text\") has one of its own.");
}

}  // namespace kiln
