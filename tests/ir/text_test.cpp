#include "kiln/ir/text.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "kiln/ir/builder.h"

using namespace kiln::ir;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void check_equal(const Kernel& a, const Kernel& b) {
  CHECK(a.name == b.name);
  CHECK(a.loc == b.loc);
  CHECK(a.files == b.files);
  CHECK(a.texts == b.texts);
  REQUIRE(a.params.size() == b.params.size());
  for (std::size_t i = 0; i < a.params.size(); ++i) {
    CHECK(a.params[i].name == b.params[i].name);
    CHECK(a.params[i].is_buffer == b.params[i].is_buffer);
    CHECK(a.params[i].mem == b.params[i].mem);
    CHECK(a.params[i].type == b.params[i].type);
  }
  REQUIRE(a.mems.size() == b.mems.size());
  for (std::size_t i = 0; i < a.mems.size(); ++i) {
    const Mem &x = a.mems[i], &y = b.mems[i];
    CHECK(x.space == y.space);
    CHECK(x.name == y.name);
    CHECK(x.element == y.element);
    CHECK(x.rank == y.rank);
    CHECK(x.access == y.access);
    CHECK(x.strided == y.strided);
    CHECK(x.dynamic == y.dynamic);
    CHECK(x.extents == y.extents);
    CHECK(x.loc == y.loc);
  }
  REQUIRE(a.slots.size() == b.slots.size());
  for (std::size_t i = 0; i < a.slots.size(); ++i) {
    CHECK(a.slots[i].name == b.slots[i].name);
    CHECK(a.slots[i].type == b.slots[i].type);
  }
  REQUIRE(a.ops.size() == b.ops.size());
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    const Op &x = a.ops[i], &y = b.ops[i];
    CAPTURE(i);
    CHECK(x.code == y.code);
    CHECK(x.type == y.type);
    CHECK(x.attr == y.attr);
    CHECK(x.bounds == y.bounds);
    CHECK(x.index == y.index);
    CHECK(x.site == y.site);
    CHECK(x.imm == y.imm);
    CHECK(x.loc == y.loc);
    CHECK(x.operands == y.operands);
    CHECK(x.regions == y.regions);
    CHECK(x.cases == y.cases);
  }
  REQUIRE(a.regions.size() == b.regions.size());
  for (std::size_t i = 0; i < a.regions.size(); ++i) CHECK(a.regions[i].ops == b.regions[i].ops);
  CHECK(a.options == b.options);
  CHECK(a.block_size == b.block_size);
  CHECK(a.max_threads == b.max_threads);
  CHECK(a.in_place == b.in_place);
}

// The message of the refusal, with its place.
std::string refusal(std::string_view text) {
  try {
    parse(text);
  } catch (const IrError& e) { return e.what(); }
  return "";
}

std::string in_body(const std::string& lines) {
  return "kir 1\nkernel \"k\" {\n  buffer x : f32[*] in\n  slot s : i32\n  body {\n" + lines + "\n  }\n}\n";
}

}  // namespace

TEST_CASE("every field of a kernel survives printing and parsing") {
  Kernel k;
  k.name = "ns::k@\"quoted\"\n\\\x01\xff";
  Builder b(k);
  const auto file = b.file("dir/a b.cpp");
  b.loc = {file, 3};
  k.loc = {file, 2};
  k.options = {.checked = false, .contraction = false, .fast_math = true};
  k.block_size = {8, 4, 2};
  k.max_threads = 64;
  const auto tile = b.shared("tile", Type::F64, {3, 5});
  const auto x = b.buffer("x", Type::F32, 2, Access::In, true);
  const auto y = b.buffer("x", Type::F32, 2, Access::Out);  // a name may be used twice
  b.loc = {};
  const auto n = b.scalar("9 lives", Type::I64);
  const auto dyn = b.dynamic_shared("", Type::U8);
  const auto local = b.local("tile", Type::Bool, {1, 2, 3, 4});
  const auto s = b.slot("tile", Type::I64);
  k.in_place = {{0, 1}};
  b.loc = {b.file("b.h"), 4000000000u};
  b.set(s, b.param(n));
  b.const_f32(-0.0f);
  const ValueId c = b.const_bool(false);
  b.require(c, "same");
  b.require(c, "same");
  const OpId sw = b.switch_(b.const_i32(1), {0xffffffffu, 0x80000000u, 5});
  b.set_region(k.op(sw).regions[1]);
  const ValueId i = b.const_u32(0);
  b.store(y, {i, i}, b.load(x, {i, i}));
  k.ops.back().bounds = Bounds::Checked;
  k.ops.back().site = 17;
  b.load(tile, {i, i});
  k.ops.back().bounds = Bounds::Proven;
  b.load(dyn, {i});
  b.load(local, {i, i, i, i});
  compact(k);
  const std::string text = print(k);
  CAPTURE(text);
  const Kernel back = parse_kernel(text);
  check_equal(k, back);
  CHECK(print(back) == text);
}

TEST_CASE("parameters and memories in any order survive") {
  Kernel k;
  k.name = "k";
  Builder b(k);
  b.buffer("x", Type::F32, 1, Access::In);
  b.shared("s", Type::F32, {4});
  b.buffer("y", Type::F32, 1, Access::Out);
  SUBCASE("swapped") { std::swap(k.params[0], k.params[1]); }
  SUBCASE("another name") { k.params[0].name = "other"; }
  SUBCASE("a global memory without a parameter") { k.params.pop_back(); }
  SUBCASE("one memory for two parameters") { k.params[1].mem = 0; }
  const std::string text = print(k);
  CAPTURE(text);
  check_equal(k, parse_kernel(text));
}

TEST_CASE("the text of every form prints, parses and prints to the same bytes") {
  const std::string text = read_file(KILN_SOURCE_DIR "/tests/ir/forms.kir");
  const std::vector<Kernel> kernels = parse(text);
  REQUIRE(kernels.size() == 2);
  const std::string printed = print(kernels);
  const std::vector<Kernel> again = parse(printed);
  REQUIRE(again.size() == 2);
  for (int i = 0; i < 2; ++i) check_equal(kernels[i], again[i]);
  CHECK(print(again) == printed);
  CHECK(parse_kernel(read_file(KILN_SOURCE_DIR "/samples/kir/saxpy.kir")).name == "saxpy");
}

TEST_CASE("every constant keeps its bits") {
  const std::uint64_t patterns[] = {0,
                                    1,
                                    0x7f,
                                    0x80,
                                    0xff,
                                    0x7fff,
                                    0x8000,
                                    0xffff,
                                    0x3f800000,
                                    0x7f800000,
                                    0x7f800001,
                                    0x7fc00000,
                                    0xffc12345,
                                    0x80000000,
                                    0x7fffffff,
                                    0x3ff0000000000000,
                                    0x7ff0000000000001,
                                    0xfff8000000000000,
                                    0x8000000000000000,
                                    0x7fffffffffffffff,
                                    0xffffffffffffffff,
                                    0x0123456789abcdef};
  Kernel k;
  k.name = "k";
  Builder b(k);
  for (int t = 1; t < kTypeCount; ++t) {
    for (const std::uint64_t bits : patterns) b.constant(static_cast<Type>(t), bits);
  }
  check_equal(k, parse_kernel(print(k)));
}

TEST_CASE("constants may be written as people write them") {
  const struct {
    const char* text;
    Type type;
    std::uint64_t bits;
  } table[] = {
      {"1.5 : f32", Type::F32, 0x3fc00000},
      {"1 : f32", Type::F32, 0x3f800000},
      {"-0.0 : f32", Type::F32, 0x80000000},
      {"1e-3 : f64", Type::F64, 0x3f50624dd2f1a9fc},
      {"inf : f32", Type::F32, 0x7f800000},
      {"-inf : f64", Type::F64, 0xfff0000000000000},
      {"nan : f32", Type::F32, 0x7fc00000},
      {"1e+20 : f32", Type::F32, 0x60ad78ec},
      {"-1e-46 : f32", Type::F32, 0x80000000},
      {"1e-999 : f64", Type::F64, 0},
      {"0xFF : u8", Type::U8, 0xff},
      {"-1 : i8", Type::I8, 0xff},
      {"-128 : i8", Type::I8, 0x80},
      {"false : bool", Type::Bool, 0},
      {"0xffffffff : i32", Type::I32, 0xffffffff},
      {"0x3c00 : f16", Type::F16, 0x3c00},
      {"-1.5 : f16", Type::F16, 0xbe00},
      {"0.1 : f16", Type::F16, 0x2e66},
      {"0.1 : bf16", Type::BF16, 0x3dcd},
      {"inf : f16", Type::F16, 0x7c00},
      {"-inf : bf16", Type::BF16, 0xff80},
      {"0x2d : e4m3", Type::E4M3, 0x2d},
      {"0.4 : e4m3", Type::E4M3, 0x2d},
      {"-464 : e4m3", Type::E4M3, 0xfe},
      {"-nan : e4m3", Type::E4M3, 0xff},
      {"inf : e5m2", Type::E5M2, 0x7c},
      {"-1e-9 : e5m2", Type::E5M2, 0x80},
      {"nan : bf16", Type::BF16, 0x7fc0},
      {"-nan : f16", Type::F16, 0xfe00},
      {"65519.99 : f16", Type::F16, 0x7bff},
      {"-2.9802322387695312e-8 : f16", Type::F16, 0x8000},  // half of the least: a tie
      {"2.9802322387695313e-8 : f16", Type::F16, 0x0001},   // a little more
      {"1e-50 : bf16", Type::BF16, 0},
      {"1.00048828125 : f16", Type::F16, 0x3c00},                             // a tie
      {"1.000488281250000000000000000000000001 : f16", Type::F16, 0x3c01},    // above it by less than a double can tell
      {"1.00146484374999999999999999999999999999 : f16", Type::F16, 0x3c01},  // and below one
      {"-0 : u32", Type::U32, 0},
  };
  for (const auto& row : table) {
    CAPTURE(row.text);
    const Kernel k = parse_kernel(in_body(std::string("    %c = const ") + row.text));
    CHECK(k.ops[0].type == row.type);
    CHECK(k.ops[0].imm == row.bits);
  }
}

TEST_CASE("locations can be left out, and the same program then has the same text") {
  const auto make = [](const char* file, std::uint32_t line) {
    Kernel k;
    k.name = "k";
    Builder b(k);
    b.loc = {b.file(file), line};
    b.barrier();
    return k;
  };
  CHECK(print(make("a", 1)) != print(make("b", 2)));
  CHECK(print(make("a", 1), false) == print(make("b", 2), false));
  Kernel k = make("a", 1);
  k.files.push_back("never used");
  Builder(k).new_region();
  CHECK(print(k) == print(make("a", 1)));
}

TEST_CASE("what has no place gets its line of the text, where the text has a name") {
  const char* text = R"(kir 1
kernel "k" {
  shared s : u32[4]
  file "a.cpp"
  slot n : u32
  body {
    %0 = const 0 : u32 @0:7
    %c = lt %0, %0
    if %c {
      store s[%0], %0
    }
    for %i = %0, %0, %0 {
    }
    while {
      yield %c
    } do {
    }
  }
}
)";
  const Kernel k = parse(text, "own.kir").front();
  CHECK(to_string(k, k.loc) == "own.kir:2");
  CHECK(to_string(k, k.mems[0].loc) == "own.kir:3");
  std::string places;
  for (const Op& op : k.ops) places += std::string(info(op.code).mnemonic) + "=" + to_string(k, op.loc) + " ";
  CAPTURE(places);
  for (const char* one : {"const=a.cpp:7 ", "lt=own.kir:8 ", "if=own.kir:9 ", "store=own.kir:10 ", "for=own.kir:12 ", "while=own.kir:14 ",
                          "yield=own.kir:15 "})
    CHECK(places.find(one) != std::string::npos);
  CHECK(to_string(parse(text).front(), parse(text).front().loc) == "?");
}

TEST_CASE("types that follow from operands may be left out") {
  const Kernel k = parse_kernel(in_body(R"(
    %i = global_id.x
    %v = load x[%i]
    %w = add %v, %v
    %c = lt %w, %v
    %s = get s
    %b = ballot %c
    if %c { return })"));
  CHECK(k.ops[0].type == Type::U32);
  CHECK(k.ops[2].type == Type::F32);
  CHECK(k.ops[3].type == Type::Bool);
  CHECK(k.ops[4].type == Type::I32);
  CHECK(k.ops[5].type == Type::U32);
  CHECK(k.ops[6].regions.size() == 2);
}

TEST_CASE("what is not well-formed is refused with its place and what was expected") {
  const struct {
    std::string text, message;
  } table[] = {
      {"", "line 1, column 1: expected the header 'kir 1', found the end of the text"},
      {"kir 2", "line 1, column 5: this text is of version '2'; version 1 is read here"},
      {"kir 1\nkernel {", "line 2, column 8: expected a string in double quotes, found '{'"},
      {"kir 1\nkernel \"\" {", "line 2, column 8: a kernel needs a name"},
      {"kir 1\nkernel \"k\" {\n  colour red\n", "line 3, column 3: kernel 'k': there is no declaration 'colour'"},
      {"kir 1\nkernel \"k\" {\n  file \"a",
       "line 3, column 8: kernel 'k': expected a string in double quotes, found '\"a': the string has no closing quote"},
      {"kir 1\nkernel \"k\" {\n  file \"\\q\"", "line 3, column 8: kernel 'k': a backslash in a string"},
      {"kir 1\nkernel \"k\" {\n  slot s : f33", "line 3, column 12: kernel 'k': there is no type 'f33'"},
      {"kir 1\nkernel \"k\" {\n  slot s : f32\n  scalar s : f32", "line 4, column 10: kernel 'k': 's' is declared twice"},
      {"kir 1\nkernel \"k\" {\n  buffer b : f32[*,*,*,*,*] in", "kernel 'k': a memory has at most 4 dimensions"},
      {"kir 1\nkernel \"k\" {\n  max_threads 0\n",
       "line 3, column 3: kernel 'k': a block has threads, so max_threads is not 0; leave it out"},
      {"kir 1\nkernel \"k\" {\n  block_size 0, 0, 0\n",
       "line 3, column 3: kernel 'k': a block has threads, so block_size is not 0; leave it out"},
      {"kir 1\nkernel \"k\" {\n  loc @0:1", "kernel 'k': there is no file 0; 0 are declared before this line"},
      {in_body("    %a = frobnicate %b"), "line 6, column 10: kernel 'k': there is no operation 'frobnicate'"},
      {in_body("    %a = neg %b"), "line 6, column 14: kernel 'k': there is no value '%b' above this line"},
      {in_body("    %a = lane_id\n    %a = lane_id"), "line 7, column 5: kernel 'k': '%a' is defined twice"},
      {in_body("    %a = barrier"), "'barrier' has no result"},
      {in_body("    %a = const 256 : u8"), "line 6, column 16: kernel 'k': '256' is out of the range of u8"},
      {in_body("    %a = const -1 : u8"), "'-1' is out of the range of u8"},
      {in_body("    %a = const 0x100 : u8"), "'0x100' does not fit in the 8 bits of u8"},
      {in_body("    %a = const 1e99 : f32"), "expected a number that f32 can hold, found '1e99'"},
      {in_body("    %a = const 65520 : f16"), "expected a number that f16 can hold, found '65520'"},
      {in_body("    %a = const 3.4e38 : bf16"), "expected a number that bf16 can hold, found '3.4e38'"},
      {in_body("    %a = const one : f16"), "expected a number that f16 can hold, found 'one'"},
      {in_body("    %a = const 1.0"), "expected ':', found the end of the line before '}'"},
      {in_body("    %a = lane_id\n    %b = add %a,\n"),
       "line 9, column 3: kernel 'k': expected a value such as %0, found the end of the line before '}'"},
      {in_body("    barrier barrier"), "line 6, column 13: kernel 'k': expected the end of the line, found 'barrier'"},
      {in_body("    %a = get x"), "'x' is not a slot"},
      {in_body("    %a = load y[%a]"), "'y' is not declared; expected the name of a buffer, shared or local memory"},
      {in_body("    %a = thread_id.w"), "expected x, y or z, found 'w'"},
      {in_body("    %a = extent x.4"), "a dimension is at most 3"},
      {in_body("    %a = lane_id\n    %b = cast %a"), "'cast' needs its result type"},
      {in_body("    %a = lane_id\n    switch %a {\n default {\n}\n case 1 {\n}\n}"), "default is the last part of a switch"},
      {in_body("    while {\n }"), "expected 'do'"},
      {"kir 1\nkernel \"k\" {\n  body {\n", "line 4, column 1: kernel 'k': expected an operation or '}', found the end of the text"},
      {"kir 1\nkernel \"k\" {\n  body {\n  \x80", "this byte has no meaning here"},
  };
  for (const auto& row : table) {
    CAPTURE(row.text);
    const std::string message = refusal(row.text);
    CAPTURE(message);
    CHECK(message.find(row.message) != std::string::npos);
  }
}

TEST_CASE("the limits of the text are refused, not crashed into") {
  std::string deep = "    %c = const true : bool\n";
  for (int i = 0; i < 300; ++i) deep += "if %c {\n";
  CHECK(refusal(in_body(deep)).find("more than 200 blocks inside each other") != std::string::npos);
  std::string many = in_body([] {
    std::string lines;
    for (int i = 0; i < 1'000'001; ++i) lines += "barrier\n";
    return lines;
  }());
  CHECK(refusal(many).find("more than 1000000 operations") != std::string::npos);
  CHECK(refusal(std::string((64u << 20) + 1, ' ')).find("at most 64 MiB") != std::string::npos);
  CHECK_THROWS_AS(parse_kernel("kir 1\n"), IrError);
}
