// && and ||: what only the right side computed is recorded under the left.
#include "recording.h"

using namespace kiln;
using recording::count;
using recording::refused;
using recording::text;
using recording::verified;

namespace {

// The load of `a` stands inside the first `if` of the text.
bool load_is_guarded(const std::string& s, const char* load = "load a") {
  const std::size_t branch = s.find("if "), at = s.find(load);
  if (branch == std::string::npos || at == std::string::npos) return false;
  return branch < at && at < s.find("}", branch);
}

}  // namespace

TEST_CASE("a cheap right side without loads is a plain and / or") {
  CHECK(text([](Out<u32> b, Val<u32> n) { If (n > 1 && n < 5) { b[n] = n; } }) ==
        "%0 = param b : u32\n"
        "%1 = const 1 : u32\n"
        "%2 = gt %0, %1 : bool\n"
        "%3 = const 5 : u32\n"
        "%4 = lt %0, %3 : bool\n"
        "%5 = and %2, %4 : bool\n"
        "if %5 {\n"
        "  store a[%0], %0\n"
        "}\n");
  HAS(text([](Out<u32> b, Val<u32> n) { If (n > 1 || n == 0) { b[0] = 1; } }), "= or ");
}

TEST_CASE("a load of the right side happens under the left side only") {
  // One operation each: where C++ leaves the order of operands open, compilers record them in different orders.
  const auto body = [](In<bool> a, Out<u32> b, Val<u32> n) { If (n < a.size() && a[n]) { b[n] = n; } };
  CHECK(text(body) ==
        "%0 = param c : u32\n"
        "%1 = size a : u32\n"
        "%2 = lt %0, %1 : bool\n"
        "if %2 {\n"
        "  %3 = load a[%0] : bool\n"
        "  set and, %3\n"
        "}\n"
        "%4 = get and : bool\n"
        "%5 = and %2, %4 : bool\n"
        "if %5 {\n"
        "  store b[%0], %0\n"
        "}\n");
  CHECK(verified(body) == "");
  const auto either = [](In<f32> a, Out<u32> b, Val<u32> n) { If (n >= a.size() || a[n] > 0) { b[0] = 1; } };
  CHECK(load_is_guarded(text(either)));
  HAS(text(either), "= not %");
  CHECK(verified(either) == "");
}

TEST_CASE("every kind of left side guards") {
  // Outside of a macro: the arguments of one all have its line.
  const std::string with_var = text([](In<f32> a, Out<u32> b, Val<u32> n) {
    Var<bool> c = n < a.size();
    auto ok = c && a[n] > 0;
    b[0] = cast<u32>(ok);
  });
  CHECK(load_is_guarded(with_var));
  // A named value, a Var, an element, in If and outside of it.
  CHECK(load_is_guarded(text([](In<f32> a, Out<u32> b, Val<u32> n) { auto c = n < a.size(); If (c && a[n] > 0) { b[0] = 1; } })));
  CHECK(load_is_guarded(text([](In<f32> a, Out<u32> b, Val<u32> n) { auto c = n < a.size(); auto ok = c && a[n] > 0; b[0] = cast<u32>(ok); })));
  CHECK(load_is_guarded(text([](In<f32> a, Out<u32> b, Val<u32> n) { Var<bool> c = n < a.size(); If (c && a[n] > 0) { b[0] = 1; } })));
  CHECK(load_is_guarded(text([](In<f32> a, InOut<bool> b, Val<u32> n) { If (b[n] && a[n] > 0) { b[0] = true; } })));
  CHECK(load_is_guarded(text([](In<bool> a, InOut<bool> b, Val<u32> n) { If (b[n] && a[n]) { b[0] = true; } })));
  CHECK(load_is_guarded(text([](InOut<bool> a, In<bool> b, Val<u32> n) { If (b[n] && a[n]) { a[0] = true; } })));
  CHECK(load_is_guarded(text([](In<f32> a, Out<u32> b, Val<u32> n) { Var<u32> i = n; While (i < a.size() && a[i] > 0) { i += 1; } b[0] = i; }), "load a") );
  CHECK(load_is_guarded(text([](In<f32> a, Out<u32> b, Val<u32> n) { b[0] = cast<u32>(n < a.size() && a[n] > 0); })));
}

TEST_CASE("chains and nesting guard each part by what stands before it") {
  const auto chain = [](In<f32> a, In<f32> b, Out<u32> c, Val<u32> n) { If (n < a.size() && a[n] > 0 && n < b.size() && b[n] > 0) { c[0] = 1; } };
  CHECK(verified(chain) == "");
  CHECK(count(text(chain), "if ") == 3);
  const auto nested = [](In<f32> a, In<f32> b, Out<u32> c, Val<u32> n) { If (n < a.size() && (a[n] > 0 || (n < b.size() && b[n] > 0))) { c[0] = 1; } };
  const std::string s = text(nested);
  CHECK(verified(nested) == "");
  HAS(s, "\n  if ");        // the inner conditions stand inside
  HAS(s, "\n    if ");
  CHECK(s.find("\n%5 = load") == std::string::npos);
  const auto grouped = [](In<f32> a, In<f32> b, Out<u32> c, Val<u32> n) {
    auto first = n < 7;
    If (first && (n < a.size() && a[n] > 0) && (n < b.size() && b[n] > 0)) { c[0] = 1; }
  };
  CHECK(verified(grouped) == "");
}

TEST_CASE("what was computed before the expression stays where it is") {
  // The load is the author's own, before the condition: it is not moved, and its value can be used everywhere.
  for (const auto& s : {text([](In<f32> a, Out<f32> b, Val<u32> n) {
                          auto v = a[n];
                          If (n < a.size() && v > 0) { b[n] = v; }
                        }),
                        text([](In<f32> a, Out<f32> b, Val<u32> n) {
                          auto c = n < a.size();
                          auto v = a[n];
                          If (c && v > 0) { b[n] = v; }
                        }),
                        text([](In<f32> a, Out<f32> b, Val<u32> n) {
                          auto c = n < a.size();
                          auto v = a[n];
                          auto ok = c && v > 0;
                          b[0] = cast<f32>(ok);
                          b[n] = v;
                        })}) {
    INFO(s);
    CHECK(s.find("= load a") < s.find("if "));
  }
}

TEST_CASE("a named value that was moved comes back when it is used again") {
  const auto body = [](In<f32> a, Out<f32> b, Val<u32> n) {
    auto c = n < a.size();
    auto v = a[n];
    auto w = v * 2;
    auto ok = c && w > a[n + 1];
    b[0] = cast<f32>(ok);
    b[1] = w;
  };
  const std::string s = text(body);
  INFO(s);
  CHECK(verified(body) == "");
  const std::size_t branch = s.find("if ");
  CHECK(s.find("mul") < branch);
  CHECK(count(s, "load a") == 2);
  CHECK(s.find("load a", branch) != std::string::npos);
  // Out of two levels.
  const auto deep = [](In<f32> a, Out<f32> b, Val<u32> n) {
    auto c = n < a.size();
    auto d = n < b.size();
    auto v = a[n];
    auto ok = d && (c && v > 0);
    If (ok) { b[n] = v; }
  };
  CHECK(verified(deep) == "");
}

TEST_CASE("values that both sides share stay with the left") {
  const auto body = [](InOut<u32> a, Val<u32> n) {
    auto i = n + 1;
    Var<u32> k = n;
    auto j = k * 3;
    If (a[j] > i && a[i + j] > a[j + 1]) { a[0] = j; }
  };
  CHECK(verified(body) == "");
  const auto element = [](InOut<bool> a, InOut<u32> b, Val<u32> n) {
    Var<u32> k = n;
    auto j = k * 3;
    auto ok = a[j] && b[j] > 1;
    a[0] = ok;
  };
  CHECK(verified(element) == "");
}

TEST_CASE("effects on the right side are refused, with the operation and the line") {
  CHECK(refused([](InOut<u32> a, Val<u32> n) { If (n < a.size() && a.atomic_add(n, 1) == 0) { a[0] = 1; } }, __LINE__) ==
        "the right side of && does 'atomic_add', an effect that cannot happen under the left side only; use If");
  HAS(refused([](InOut<u32> a, Val<u32> n) { If (n < a.size() || warp::any(n > 3)) { a[0] = 1; } }, __LINE__), "the right side of || does 'vote_any'");
  HAS(refused([](InOut<u32> a, Val<u32> n) {
        auto hit = [&] {
          a[n] = 1;
          return a[n] > 0;
        };
        If (n < a.size() && hit()) { a[0] = 1; }
      }, __LINE__ - 6), "the right side of && does 'store'");
  HAS(refused([](InOut<u32> a, Val<u32> n) { If (n < a.size() && (log("it"), n > 1)) { a[0] = 1; } }, __LINE__), "the right side of && does 'log_text'");
  HAS(refused([](InOut<u32> a, Val<u32> n) { If (n < a.size() || (assume(n > 2), n > 1)) { a[0] = 1; } }, __LINE__), "the right side of || does 'assume'");
  HAS(refused([](InOut<u32> a, Val<u32> n) { If (n < a.size() && (check(n > 2, "it"), n > 1)) { a[0] = 1; } }, __LINE__), "the right side of && does 'check'");
  HAS(refused([](InOut<u32> a, Val<u32> n) { If (n < a.size() && clock_cycles() > 7) { a[0] = 1; } }, __LINE__), "the right side of && does 'clock'");
  // The left side is named and no If tells where the expression begins: the effect is refused, not guessed about.
  HAS(refused([](InOut<u32> a, Val<u32> n) { auto c = n < a.size(); auto ok = c && a.atomic_add(n, 1) == 0; a[0] = cast<u32>(ok); }, __LINE__), "may do the 'atomic_add'");
  HAS(refused([](InOut<u32> a, Val<u32> n) { Var<u32> v = n; auto c = n < a.size(); auto ok = c && v++ > 0; a[0] = cast<u32>(ok); }, __LINE__), "may do the 'set'");
}

TEST_CASE("effects of earlier statements are none of the right side's") {
  const auto body = [](InOut<u32> a, Val<u32> n) {
    auto c = n < a.size();
    auto old = a.atomic_add(0, 1);
    If (c && old == 0) { a[1] = 1; }
    auto d = n > 3;
    a[2] = 7;
    auto ok = d && a[2] > 1;
    a[3] = cast<u32>(ok);
  };
  const std::string s = text(body);
  INFO(s);
  CHECK(verified(body) == "");
  CHECK(s.find("= atomic_add") < s.find("if "));
  CHECK(s.find("  %", s.find("if ")) != std::string::npos);
}

TEST_CASE("a host bool on the left decides while recording") {
  const auto with = [](bool flag) {
    static bool on;
    on = flag;
    return text([](In<f32> a, Out<u32> b, Val<u32> n) { If (on && a[n] > 0) { b[0] = 1; } });
  };
  CHECK(with(true).find("and") == std::string::npos);
  CHECK(load_is_guarded(with(false)));
  HAS(refused([](InOut<u32> a, Val<u32> n) { If (false && a.atomic_add(n, 1) == 0) { a[0] = 1; } }, __LINE__), "'atomic_add'");
  CHECK(count(text([](In<f32> a, Out<u32> b, Val<u32> n) { If (a[n] > 0 && true) { b[0] = 1; } }), "and") == 0);
  HAS(text([](In<f32> a, Out<u32> b, Val<u32> n) { If (a[n] > 0 || true) { b[0] = 1; } }), "const true");
}
