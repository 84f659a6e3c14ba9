#include "kiln/ir/message.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <vector>

using namespace kiln::ir;

TEST_CASE("a place in a text is written as std::format would") {
  const auto f32 = [](float v) { return std::uint64_t{std::bit_cast<std::uint32_t>(v)}; };
  const auto f64 = [](double v) { return std::bit_cast<std::uint64_t>(v); };
  const struct {
    const char* text;
    Type type;
    std::uint64_t bits;
    const char* wanted;
  } table[] = {
      {"{}", Type::U32, 42, "42"},
      {"a{}b", Type::I8, 0xff, "a-1b"},
      {"{{{}}}", Type::U8, 7, "{7}"},
      {"}}{{{}", Type::U8, 7, "}{7"},
      {"{:d}", Type::I64, 0x8000000000000000, "-9223372036854775808"},
      {"{:x}", Type::I64, 0x8000000000000000, "-8000000000000000"},
      {"{:x}", Type::U64, ~std::uint64_t{0}, "ffffffffffffffff"},
      {"{:X}", Type::U16, 0xbeef, "BEEF"},
      {"{:o}", Type::U8, 8, "10"},
      {"{:b}", Type::U64, ~std::uint64_t{0}, "1111111111111111111111111111111111111111111111111111111111111111"},
      {"{:5}", Type::I32, 42, "   42"},
      {"{:05}", Type::I32, 0xffffffd6, "-0042"},
      {"{:2}", Type::I32, 12345, "12345"},
      {"{:08x}", Type::U32, 0xbeef, "0000beef"},
      {"{}", Type::Bool, 1, "true"},
      {"{:7}|", Type::Bool, 0, "false  |"},
      {"{}", Type::F32, 0x3dcccccd, "0.1"},
      {"{}", Type::F64, 0x3fb999999999999a, "0.1"},
      {"{:f}", Type::F64, 0x3fb999999999999a, "0.100000"},
      {"{:.0f}", Type::F64, 0x4004000000000000, "2"},
      {"{:.3e}", Type::F64, 0x40c81cd6e631f8a1, "1.235e+04"},
      {"{:g}", Type::F64, 0x40c81cd6e631f8a1, "12345.7"},
      {"{:.2}", Type::F32, 0x4048f5c3, "3.1"},
      {"{:08.2f}", Type::F32, 0xc048f5c3, "-0003.14"},
      {"{:6}", Type::F32, 0x3f800000, "     1"},
      {"{:06}", Type::F32, 0x7f800000, "   inf"},
      {"{:.1f}", Type::F16, 0x3c00, "1.0"},
      {"{}", Type::BF16, 0x3fc0, "1.5"},
      {"{}", Type::F64, 0x7ff8000000000000, "nan"},
      {"{}", Type::F64, 0xfff8000000000000, "nan"},
      {"{}", Type::F32, 0x80000000, "-0"},
      {"{:.1f}", Type::F64, 0x7fefffffffffffff, nullptr},
  };
  for (const auto& row : table) {
    CAPTURE(row.text);
    CHECK(describe_problem(row.text, {&row.type, 1}) == "");
    const std::string said = format_message(row.text, {&row.type, 1}, {&row.bits, 1});
    if (row.wanted != nullptr) CHECK(said == row.wanted);
    else CHECK(said.size() == 311);  // the largest there is
  }
  const std::array types{Type::F32, Type::Bool, Type::F64};
  const std::array bits{f32(0.5f), std::uint64_t{0}, f64(-2)};
  CHECK(format_message("{} and {} or {:.1f}", types, bits) == "0.5 and false or -2.0");
  CHECK(format_message("", {}, {}) == "");
}

TEST_CASE("what does not fit is found") {
  using Problem = MessageProblem;
  const struct {
    const char* text;
    std::vector<Type> types;
    Problem wanted;
  } table[] = {
      {"{}", {}, Problem::Count},
      {"", {Type::U8}, Problem::Count},
      {"{} {}", {Type::U8}, Problem::Count},
      {"{", {}, Problem::Brace},
      {"}", {}, Problem::Brace},
      {"{}}", {Type::U8}, Problem::Brace},
      {"{{}", {}, Problem::Brace},
      {"{0}", {Type::U8}, Problem::Spec},
      {"{:}", {Type::U8}, Problem::None},
      {"{:q}", {Type::U8}, Problem::Spec},
      {"{:xx}", {Type::U8}, Problem::Spec},
      {"{: }", {Type::U8}, Problem::Spec},
      {"{:.}", {Type::F32}, Problem::Spec},
      {"{:65}", {Type::U8}, Problem::Spec},
      {"{:64}", {Type::U8}, Problem::None},
      {"{:.33f}", {Type::F32}, Problem::Spec},
      {"{:99999999999}", {Type::U8}, Problem::Spec},
      {"{:x}", {Type::F32}, Problem::Type},
      {"{:x}", {Type::Bool}, Problem::Type},
      {"{:f}", {Type::U8}, Problem::Type},
      {"{:.2}", {Type::U8}, Problem::Type},
      {"{:05}", {Type::Bool}, Problem::Type},
      {"{:x} {:f}", {Type::U8, Type::U8}, Problem::Type},
  };
  for (const auto& row : table) {
    CAPTURE(row.text);
    CHECK(find_problem(row.text, row.types) == row.wanted);
    CHECK(describe_problem(row.text, row.types).empty() == (row.wanted == Problem::None));
  }
}
