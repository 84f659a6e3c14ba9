#include "pass_fixture.h"

using namespace kiln::ir;
using namespace kiln::ir::test;

namespace {

void contract_and_clean(Kernel& k) {
  contract(k);
  eliminate_dead(k);
}

constexpr const char* kDecls = R"(
  buffer x : f32[*] inout
  buffer d : f64[*] inout
  scalar a : f32
  scalar b : f32
  scalar c : f32
  slot s : f32
)";

std::string expression(const std::string& text) {
  return "%a = param a\n%b = param b\n%c = param c\n%i = const 0 : u32\n" + text + "\nstore x[%i], %r\n";
}

}  // namespace

TEST_CASE("an add or sub fuses with the product on its left, else on its right, through at most one neg") {
  struct Row {
    const char *title, *before, *after;
  };
  const Row rows[] = {
      {"a*b + c", "%m = mul %a, %b\n%r = add %m, %c", "%r = fma %a, %b, %c"},
      {"c + a*b", "%m = mul %a, %b\n%r = add %c, %m", "%r = fma %a, %b, %c"},
      {"a*b - c", "%m = mul %a, %b\n%r = sub %m, %c", "%n = neg %c\n%r = fma %a, %b, %n"},
      {"c - a*b", "%m = mul %a, %b\n%r = sub %c, %m", "%n = neg %a\n%r = fma %n, %b, %c"},
      {"-(a*b) + c", "%m = mul %a, %b\n%n = neg %m\n%r = add %n, %c", "%n = neg %a\n%r = fma %n, %b, %c"},
      {"-(a*b) - c", "%m = mul %a, %b\n%n = neg %m\n%r = sub %n, %c", "%n = neg %a\n%o = neg %c\n%r = fma %n, %b, %o"},
      {"c + -(a*b)", "%m = mul %a, %b\n%n = neg %m\n%r = add %c, %n", "%n = neg %a\n%r = fma %n, %b, %c"},
      {"c - -(a*b)", "%m = mul %a, %b\n%n = neg %m\n%r = sub %c, %n", "%r = fma %a, %b, %c"},
      {"a*b + a*c: the left one", "%m = mul %a, %b\n%n = mul %a, %c\n%r = add %m, %n", "%n = mul %a, %c\n%r = fma %a, %b, %n"},
      {"a*b - a*c: the left one", "%m = mul %a, %b\n%n = mul %a, %c\n%r = sub %m, %n", "%n = mul %a, %c\n%o = neg %n\n%r = fma %a, %b, %o"},
      {"a sum of products nests", "%m = mul %a, %b\n%n = mul %a, %c\n%s = add %m, %n\n%o = mul %b, %c\n%r = add %s, %o",
       "%n = mul %a, %c\n%s = fma %a, %b, %n\n%r = fma %b, %c, %s"},
      {"a neg with two uses, over a product with one", "%m = mul %a, %b\n%n = neg %m\n%s = add %n, %c\n%r = sub %s, %n",
       "%m = mul %a, %b\n%n = neg %m\n%p = neg %a\n%s = fma %p, %b, %c\n%r = fma %a, %b, %s"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.title));
    Kernel k = kernel_of(kDecls, expression(row.before));
    contract_and_clean(k);
    Kernel expected = kernel_of(kDecls, expression(row.after));
    eliminate_dead(expected);
    CHECK(canonical(k) == canonical(expected));
    contract_and_clean(k);
    CHECK(canonical(k) == canonical(expected));
  }
}

TEST_CASE("what must not fuse stays as it is") {
  struct Row {
    const char *title, *text;
  };
  const Row rows[] = {
      {"a product used twice", "%m = mul %a, %b\n%n = add %m, %c\n%r = div %n, %m"},
      {"a product added to itself", "%m = mul %a, %b\n%r = add %m, %m"},
      {"two negs", "%m = mul %a, %b\n%n = neg %m\n%o = neg %n\n%r = add %o, %c"},
      {"a product that went through a local", "%m = mul %a, %b\nset s, %m\n%g = get s\n%r = add %g, %c"},
      {"a product of another region", "%m = mul %a, %b\n%k = lt %a, %b\nif %k {\n%q = add %m, %c\nstore x[%i], %q\n}\n%r = div %a, %b"},
      {"a quotient", "%m = div %a, %b\n%r = add %m, %c"},
      {"an fma already", "%m = fma %a, %b, %c\n%r = add %m, %c"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.title));
    Kernel k = kernel_of(kDecls, expression(row.text));
    const std::string before = canonical(k);
    contract(k);
    CHECK(canonical(k) == before);
  }
}

TEST_CASE("integers never fuse, f64 does, and options.contraction turns it off") {
  const std::string integers = "%i = const 3 : u32\n%m = mul %i, %i\n%r = add %m, %i\nset s, %r\n";
  Kernel k = kernel_of("slot s : u32", integers);
  const std::string before = canonical(k);
  contract(k);
  CHECK(canonical(k) == before);

  const std::string doubles = "%i = const 0 : u32\n%v = load d[%i]\n%m = mul %v, %v\n%r = add %v, %m\nstore d[%i], %r\n";
  k = kernel_of(kDecls, doubles);
  contract_and_clean(k);
  CHECK(canonical(k).find("fma") != std::string::npos);

  k = kernel_of(std::string("options contraction=false\n") + kDecls, doubles);
  contract_and_clean(k);
  CHECK(canonical(k).find("fma") == std::string::npos);
}

TEST_CASE("products inside control flow fuse within their own region") {
  Kernel k = kernel_of(kDecls, R"(
    %a = param a
    %b = param b
    %i = const 0 : u32
    %c = lt %a, %b
    if %c {
      %m = mul %a, %b
      %r = add %m, %a
      store x[%i], %r
    } else {
      %m2 = mul %a, %a
      %r2 = sub %b, %m2
      store x[%i], %r2
    })");
  contract_and_clean(k);
  CHECK(canonical(k) == canonical(kernel_of(kDecls, R"(
    %a = param a
    %b = param b
    %i = const 0 : u32
    %c = lt %a, %b
    if %c {
      %r = fma %a, %b, %a
      store x[%i], %r
    } else {
      %n = neg %a
      %r2 = fma %n, %a, %b
      store x[%i], %r2
    })")));
}
