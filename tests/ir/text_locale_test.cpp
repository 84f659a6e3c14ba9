// The text form is the same in every locale.
#include <doctest/doctest.h>

#include "kiln/ir/builder.h"
#include "kiln/ir/decimal.h"
#include "kiln/ir/text.h"
#include "support/comma_locale.h"

using namespace kiln::ir;

namespace {

std::string constant(const std::string& number, const std::string& type) {
  return "kir 1\nkernel \"k\" {\n  buffer y : " + type + "[*] out\n  body {\n    %0 = const 0 : u32\n    %1 = const " + number + " : " +
         type + "\n    store y[%0], %1\n  }\n}\n";
}

std::string printed(const std::string& number, const std::string& type) { return print(parse_kernel(constant(number, type))); }

}  // namespace

TEST_CASE("a constant in a kernel's text is the same number where the process's decimal separator is a comma") {
  const std::string types[] = {"f32", "f64"};
  const std::string numbers[] = {"1.5", "-2.25e-3", "1.5e-42", "-2.5e-46", "1.5e-320", "1.5e-400"};
  for (const std::string& type : types) {
    for (const std::string& number : numbers) {
      CAPTURE(type);
      CAPTURE(number);
      const std::string before = printed(number, type);
      const kiln::test::CommaLocale comma;
      CHECK(printed(number, type) == before);
    }
    const kiln::test::CommaLocale comma;
    CHECK_THROWS(parse_kernel(constant("1.75e400", type)));
  }
}

TEST_CASE("a number that is too small rounds to the nearest subnormal or zero whatever the decimal separator is") {
  const kiln::test::CommaLocale comma;
  CHECK(to_f32("1.5e-42") == 1.5e-42f);
  CHECK(to_f32("1.5e-46") == 0.0f);
  CHECK(to_f64("2.5e-320") == 2.5e-320);
  CHECK(to_f64("0x1.8p-1060") == 0x1.8p-1060);
}
