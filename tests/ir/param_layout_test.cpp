#include "kiln/ir/param_layout.h"

#include <doctest/doctest.h>

#include "kiln/ir/builder.h"

using namespace kiln::ir;
using Kind = ParamField::Kind;

TEST_CASE("parameters lie in signature order, naturally aligned, the fault record last") {
  Kernel k;
  k.name = "k";
  Builder b(k);
  b.scalar("flag", Type::Bool);
  b.buffer("x", Type::F32, 2, Access::In);
  b.scalar("a", Type::F32);
  b.buffer("y", Type::F64, 1, Access::Out, true);
  b.scalar("h", Type::U16);
  const struct {
    Kind kind;
    std::uint32_t param;
    int dimension;
    Type type;
    std::uint32_t offset, size;
  } expected[] = {
      {Kind::Scalar, 0, 0, Type::Bool, 0, 1},    {Kind::Pointer, 1, 0, Type::U64, 8, 8}, {Kind::Extent, 1, 0, Type::U64, 16, 8},
      {Kind::Extent, 1, 1, Type::U64, 24, 8},    {Kind::Scalar, 2, 0, Type::F32, 32, 4}, {Kind::Pointer, 3, 0, Type::U64, 40, 8},
      {Kind::Extent, 3, 0, Type::U64, 48, 8},    {Kind::Stride, 3, 0, Type::U64, 56, 8}, {Kind::Scalar, 4, 0, Type::U16, 64, 2},
      {Kind::Fault, kNone, 0, Type::U64, 72, 8},
  };
  const ParamLayout layout = param_layout(k, true);
  REQUIRE(layout.fields.size() == std::size(expected));
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const ParamField& f = layout.fields[i];
    CAPTURE(i);
    CHECK(f.kind == expected[i].kind);
    CHECK(f.param == expected[i].param);
    CHECK(f.dimension == expected[i].dimension);
    CHECK(f.type == expected[i].type);
    CHECK(f.offset == expected[i].offset);
    CHECK(f.size == expected[i].size);
  }
  CHECK(layout.bytes == 80);
  CHECK(param_layout(k, false).fields.size() == layout.fields.size() - 1);
  CHECK(param_layout(k, false).bytes == 72);
  CHECK(param_layout(Kernel{}, false).bytes == 0);
}

TEST_CASE("a kernel that traps has the fault record unchecked too, and one that logs has the log last") {
  Kernel k;
  k.name = "k";
  Builder b(k);
  b.scalar("n", Type::U32);
  const auto kinds = [&](bool checked) {
    std::vector<Kind> all;
    for (const ParamField& f : param_layout(k, checked).fields) all.push_back(f.kind);
    return all;
  };
  CHECK(kinds(false) == std::vector<Kind>{Kind::Scalar});
  b.log_text("{} {}", {b.const_u32(1), b.const_u32(2)});
  b.log_text("{}", {b.const_u32(3)});
  CHECK(kinds(false) == std::vector<Kind>{Kind::Scalar, Kind::Log});
  CHECK(kinds(true) == std::vector<Kind>{Kind::Scalar, Kind::Fault, Kind::Log});
  CHECK(log_stride(k) == 32 + 2 * 8);
  b.trap("end");
  CHECK(kinds(false) == std::vector<Kind>{Kind::Scalar, Kind::Fault, Kind::Log});
  CHECK(param_layout(k, true).fields.back().offset == 16);
}
