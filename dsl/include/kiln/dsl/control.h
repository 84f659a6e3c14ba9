// Control flow of the kernel as scope objects, and the macros that use them: KILN_IF (c) { } KILN_ELSE { }, KILN_WHILE, KILN_SWITCH,
// KILN_CASE, KILN_DEFAULT; words.h has the short words. A body is recorded once. Leaving one by C++ break, return or goto is reported when
// the recording ends; C++ `continue` ends the recording of that body.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/dsl/value.h"

namespace kiln {

namespace dsl {

// A region being recorded. Its destructor never throws: a body that was not finished is reported at the end of the recording.
class Body {
 public:
  Body(const char* what, ir::RegionId region, ir::Loc loc, bool loop);
  ~Body();
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  void finish() { finished_ = true; }

 private:
  Recorder& recorder_;
  const char* what_;
  ir::Loc loc_;
  int exceptions_;
  bool loop_, finished_ = false;
};

// `for (IfScope s; s.first() ? s.begin(cond) : s.next();) if (s.then()) body`: the body of the for runs twice, for then and for else.
class IfScope {
 public:
  explicit IfScope(Where w = Where::current());
  ~IfScope();
  template <Dsl A>
  requires(!DslOf<A, bool>)
  bool begin(A&&) {
    static_assert(never<A>, "kiln: If needs a bool; write x != 0 to test a number.");
    return false;
  }
  IfScope(const IfScope&) = delete;
  bool first() const { return step_ == 0; }
  bool begin(Use<bool> condition);
  bool next();
  bool then() const { return step_ == 1; }

 private:
  Recorder& recorder_;
  std::size_t marks_;
  int step_ = 0;
  ir::OpId op_ = ir::kNone;
  ir::Loc loc_;
  std::optional<Body> body_;
};

// `for (WhileScope s; s.open() && s.begin(cond);) body`: the condition is recorded into the loop.
class WhileScope {
 public:
  explicit WhileScope(Where w = Where::current());
  ~WhileScope();
  template <Dsl A>
  requires(!DslOf<A, bool>)
  bool begin(A&&) {
    static_assert(never<A>, "kiln: While needs a bool; write x != 0 to test a number.");
    return false;
  }
  WhileScope(const WhileScope&) = delete;
  bool open();
  bool begin(Use<bool> condition);

 private:
  Recorder& recorder_;
  std::size_t marks_, depth_;
  int step_ = 0;
  ir::OpId op_ = ir::kNone;
  ir::Loc loc_;
  std::optional<Body> body_;
};

// A loop over a range of integers; Range<T> below is its typed face.
class ForScope {
 public:
  ForScope(ir::Type type, const Operand& lo, const Operand& hi, const Operand& step);
  ForScope(const ForScope&) = delete;
  Handle begin();
  void end();

 private:
  Operand lo_, hi_, step_;
  ir::Loc loc_;
  std::optional<Body> body_;
};

}  // namespace dsl

// `Switch (v) { Case (0) { } Case (1, 2) { } Default { } }`. Cases do not fall through; Break() leaves the loop around the switch.
namespace dsl {
class SwitchScope {
 public:
  template <Dsl A>
  explicit SwitchScope(A&& value, Where w = Where::current())
      : SwitchScope(ir_type<value_t<A>>, Use<value_t<A>>(std::forward<A>(value), w)) {
    static_assert(Integer<value_t<A>>, "kiln: Switch needs an integer; use If for conditions.");
  }
  ~SwitchScope();
  SwitchScope(const SwitchScope&) = delete;
  bool once();

 private:
  friend class CaseScope;
  SwitchScope(ir::Type type, const Operand& value);
  Recorder& recorder_;
  ir::Type type_;
  ir::OpId op_ = ir::kNone;
  ir::RegionId parent_ = 0, between_ = 0;
  ir::Loc loc_;
  int step_ = 0;
  bool default_seen_ = false;
  std::vector<std::uint64_t> seen_;
  std::optional<Body> body_;
};

// A label of Case: any host integer, checked against the type of the Switch.
struct CaseLabel {
  template <std::integral H>
  CaseLabel(H h) : value(static_cast<std::uint64_t>(h)), negative(std::cmp_less(h, 0)) {}
  template <Dsl A>
  CaseLabel(A&&) {
    static_assert(never<A>, "kiln: the labels of Case are host integers; use If to compare with a kernel value.");
  }
  std::uint64_t value = 0;
  bool negative = false;
};
class CaseScope {
 public:
  explicit CaseScope(std::initializer_list<CaseLabel> labels, Where w = Where::current());  // no label: the default
  CaseScope(const CaseScope&) = delete;
  bool once();

 private:
  int step_ = 0;
  std::optional<Body> body_;
};
}  // namespace dsl

// `for (auto i : range(n))`: i runs from lo (0) in steps (1) up to but without hi, like a C++ for loop over T. The range's type is that of
// its kernel operands; u32 when all are host values, or range<i32>(-3, 4). Bounds and step are read once. A step must be above 0.
template <Integer T>
class Range {
 public:
  Range(Use<T> lo, Use<T> hi, Use<T> step) : scope_(ir_type<T>, lo, hi, step) {}
  struct End {};
  class Iterator {
   public:
    explicit Iterator(Range& range) : range_(&range), value_(range.scope_.begin()) {}
    Val<T> operator*() const { return Val<T>(value_); }
    bool operator!=(End) const { return live_; }
    void operator++() {
      range_->scope_.end();
      live_ = false;
    }

   private:
    Range* range_;
    dsl::Handle value_;
    bool live_ = true;
  };
  Iterator begin() { return Iterator(*this); }
  End end() { return {}; }

 private:
  dsl::ForScope scope_;
};

namespace dsl {
template <class... A>
struct RangeType {
  using type = u32;
};
template <class... A>
requires(Dsl<A> || ...)
struct RangeType<A...> {
  using type = common_t<A...>;
};
template <class... A>
constexpr void check_range() {
  using T = typename RangeType<A...>::type;
  static_assert(!std::is_void_v<T>,
                "kiln: the operands of range have different kernel types. There is no implicit conversion: write cast<T>(x).");
  static_assert(std::is_void_v<T> || Integer<T>, "kiln: range counts in integers; write cast<u32>(x).");
}
template <class... A>
using range_t = std::conditional_t<Integer<typename RangeType<A...>::type>, typename RangeType<A...>::type, u32>;
}  // namespace dsl

// The unused first parameter keeps range<i32>(...) from naming these.
template <auto = 0, dsl::DslOrHost A>
auto range(A&& hi, dsl::Where w = dsl::Where::current()) {
  dsl::check_range<A>();
  using T = dsl::range_t<A>;
  return Range<T>(Use<T>(T{0}, w), Use<T>(std::forward<A>(hi), w), Use<T>(T{1}, w));
}
template <auto = 0, dsl::DslOrHost A, dsl::DslOrHost B>
auto range(A&& lo, B&& hi, dsl::Where w = dsl::Where::current()) {
  dsl::check_range<A, B>();
  using T = dsl::range_t<A, B>;
  return Range<T>(Use<T>(std::forward<A>(lo), w), Use<T>(std::forward<B>(hi), w), Use<T>(T{1}, w));
}
template <auto = 0, dsl::DslOrHost A, dsl::DslOrHost B, dsl::DslOrHost C>
auto range(A&& lo, B&& hi, C&& step, dsl::Where w = dsl::Where::current()) {
  dsl::check_range<A, B, C>();
  using T = dsl::range_t<A, B, C>;
  return Range<T>(Use<T>(std::forward<A>(lo), w), Use<T>(std::forward<B>(hi), w), Use<T>(std::forward<C>(step), w));
}
template <Integer T>
Range<T> range(Use<T> hi) {
  return Range<T>(Use<T>(T{0}, hi.where), hi, Use<T>(T{1}, hi.where));
}
template <Integer T>
Range<T> range(Use<T> lo, Use<T> hi) {
  return Range<T>(lo, hi, Use<T>(T{1}, hi.where));
}
template <Integer T>
Range<T> range(Use<T> lo, Use<T> hi, Use<T> step) {
  return Range<T>(lo, hi, step);
}

// Leave the innermost kernel loop, go on with its next iteration, end the thread. What follows in the same C++ block is not recorded.
void Break(dsl::Where w = dsl::Where::current());
void Continue(dsl::Where w = dsl::Where::current());
void Return(dsl::Where w = dsl::Where::current());

}  // namespace kiln

#define KILN_CONCAT_(a, b) a##b
#define KILN_CONCAT(a, b) KILN_CONCAT_(a, b)
#define KILN_IF_(scope, ...)                                                                 \
  for (::kiln::dsl::IfScope scope; scope.first() ? scope.begin(__VA_ARGS__) : scope.next();) \
    if (scope.then())
#define KILN_IF(...) KILN_IF_(KILN_CONCAT(kiln_if_, __COUNTER__), __VA_ARGS__)
#define KILN_ELSE else
#define KILN_WHILE_(scope, ...) for (::kiln::dsl::WhileScope scope; scope.open() && scope.begin(__VA_ARGS__);)
#define KILN_WHILE(...) KILN_WHILE_(KILN_CONCAT(kiln_while_, __COUNTER__), __VA_ARGS__)
#define KILN_SWITCH_(scope, ...) for (::kiln::dsl::SwitchScope scope{__VA_ARGS__}; scope.once();)
#define KILN_SWITCH(...) KILN_SWITCH_(KILN_CONCAT(kiln_switch_, __COUNTER__), __VA_ARGS__)
#define KILN_CASE_(scope, ...) for (::kiln::dsl::CaseScope scope{{__VA_ARGS__}}; scope.once();)
#define KILN_CASE(...) KILN_CASE_(KILN_CONCAT(kiln_case_, __COUNTER__), __VA_ARGS__)
#define KILN_DEFAULT KILN_CASE_(KILN_CONCAT(kiln_case_, __COUNTER__))
