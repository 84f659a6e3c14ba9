// What the bounds prover proves of products and of fixed sizes: threads of a declared block against a required size, and the row-major
// index of a matrix in a buffer of one dimension. Every rule has rows that it must not reach: one too many, a product that may wrap, a
// sign.
#include "bounds_rows.h"

using namespace kiln::ir;
using namespace kiln::ir::test;

namespace {

struct Case {
  const char* title;
  std::string declarations, body;
};

void check_cases(const std::vector<Case>& cases, const std::string& common) {
  for (const Case& c : cases) {
    const Row one[] = {{c.title, c.declarations.c_str(), c.body.c_str()}};
    check_rows(one, common);
  }
}

}  // namespace

TEST_CASE("a thread of a declared block is inside a buffer of the block's size, and no further") {
  const auto required = [](const std::string& comparison, int size, const std::string& rest) {
    return "%n = size y\n%k = const " + std::to_string(size) + " : u32\n%p = " + comparison + " %n, %k\nrequire %p, \"\"\n" + rest;
  };
  const std::string own = "%t = thread_id.x\nstore y[%t], %k ",
                    next = "%t = thread_id.x\n%o = const 1 : u32\n%i = add %t, %o\nstore y[%i], %k ";
  const std::string block = "block_size 256, 1, 1\n";
  check_cases(
      {
          {"equal", block, required("eq", 256, own + "proven")},
          {"equal, one too few", block, required("eq", 255, own + "checked")},
          {"at least", block, required("ge", 256, own + "proven")},
          {"at least, one too few", block, required("ge", 255, own + "checked")},
          {"more than", block, required("gt", 255, own + "proven")},
          {"at most says nothing", block, required("le", 256, own + "checked")},
          {"unequal says nothing", block, required("ne", 256, own + "checked")},
          {"the next one", block, required("eq", 256, next + "checked")},
          {"the next one, where there is room", block, required("eq", 257, next + "proven")},
          {"no declared block", "", required("eq", 256, own + "checked")},
          {"at most so many threads", "max_threads 256\n", required("eq", 256, own + "proven")},
          {"at most so many threads, one too many", "max_threads 257\n", required("eq", 256, own + "checked")},
          {"another axis", "block_size 128, 2, 1\n", required("eq", 128, own + "proven\n%u = thread_id.y\nstore y[%u], %k proven")},
          {"a signed number of the thread", block, required("eq", 256, "%t = thread_id.x\n%s = cast %t : i32\nstore y[%s], %k proven")},
          {"one below it may be negative", block,
           required("eq", 256, "%t = thread_id.x\n%s = cast %t : i32\n%o = const 1 : i32\n%i = sub %s, %o\nstore y[%i], %k checked")},
          {"a linear number", "block_size 16, 16, 1\n",
           required("eq", 256,
                    "%x = thread_id.x\n%v = thread_id.y\n%w = const 16 : u32\n%m = mul %v, %w\n%i = add %m, %x\nstore y[%i], %k proven")},
          {"a linear number, one too many", "block_size 16, 16, 1\n",
           required("eq", 255,
                    "%x = thread_id.x\n%v = thread_id.y\n%w = const 16 : u32\n%m = mul %v, %w\n%i = add %m, %x\nstore y[%i], %k checked")},
          {"lanes", "", required("ge", 32, "%l = lane_id\nstore y[%l], %k proven")},
          {"lanes, one too few", "", required("ge", 31, "%l = lane_id\nstore y[%l], %k checked")},
          {"a value cut by a remainder", "",
           required("ge", 7, "%g = global_id.x\n%s = const 7 : u32\n%r = rem %g, %s\nstore y[%r], %k proven")},
          {"a value cut by a remainder, one too few", "",
           required("ge", 6, "%g = global_id.x\n%s = const 7 : u32\n%r = rem %g, %s\nstore y[%r], %k checked")},
      },
      "buffer y : u32[*] inout\n");
}

namespace {

// Size against extents multiplied in 64 bits; r < h and c < w.
const std::string kWide =
    "%h = param h\n%w = param w\n%h64 = cast %h : u64\n%w64 = cast %w : u64\n%hw = mul %h64, %w64\n%n = size y\n%n64 = cast %n : u64\n";
const std::string kEqual = kWide + "%e = eq %n64, %hw\nrequire %e, \"\"\n";
const std::string kIds = "%r = global_id.y\n%c = global_id.x\n%v = const 1 : u32\n";
std::string guarded(const std::string& body, const std::string& row = "lt %r, %h", const std::string& column = "lt %c, %w") {
  return kIds + "%g1 = " + row + "\n%g2 = " + column + "\n%g = and %g1, %g2\nif %g {\n" + body + "\n}";
}
const std::string kIndex = "%m = mul %r, %w\n%i = add %m, %c\nstore y[%i], %v ";
const std::string kIndex64 = "%r64 = cast %r : u64\n%c64 = cast %c : u64\n%m = mul %r64, %w64\n%i = add %m, %c64\nstore y[%i], %v ";
// Extents multiplied in 32 bits, each at most so much.
std::string narrow(const std::string& h_max, const std::string& w_max) {
  return "%h = param h\n%w = param w\n%hm = const " + h_max + " : u32\n%wm = const " + w_max +
         " : u32\n%hb = le %h, %hm\n%wb = le %w, %wm\nrequire %hb, \"\"\nrequire %wb, \"\"\n%hw = mul %h, %w\n%n = size y\n%e = eq %n, "
         "%hw\nrequire %e, \"\"\n";
}

}  // namespace

TEST_CASE("the row-major index of a matrix is inside a buffer that is required to hold all of it") {
  check_cases(
      {
          {"in 32 bits, since the buffer has no more elements", "", kEqual + guarded(kIndex + "proven")},
          {"in 64 bits", "", kEqual + guarded(kIndex64 + "proven")},
          {"in 32 bits of a buffer that may have more elements: what wraps is smaller still", "",
           "%h = param h\n%w = param w\n%h64 = cast %h : u64\n%w64 = cast %w : u64\n%hw = mul %h64, %w64\n%n = size y : u64\n%e = eq %n, "
           "%hw\nrequire %e, \"\"\n" +
               guarded(kIndex + "proven")},
          {"the terms the other way round", "", kEqual + guarded("%m = mul %w, %r\n%i = add %c, %m\nstore y[%i], %v proven")},
          {"the product the other way round", "",
           "%h = param h\n%w = param w\n%h64 = cast %h : u64\n%w64 = cast %w : u64\n%hw = mul %w64, %h64\n%n = size y\n%n64 = cast %n : "
           "u64\n%e = eq %n64, %hw\nrequire %e, \"\"\n" +
               guarded(kIndex + "proven")},
          {"more than enough", "", kWide + "%e = ge %n64, %hw\nrequire %e, \"\"\n" + guarded(kIndex + "proven")},
          {"at most", "", kWide + "%e = le %n64, %hw\nrequire %e, \"\"\n" + guarded(kIndex + "checked")},
          {"no require", "", kWide + guarded(kIndex + "checked")},
          {"a row too many", "", kEqual + guarded(kIndex + "checked", "le %r, %h")},
          {"a column too many", "", kEqual + guarded(kIndex + "checked", "lt %r, %h", "le %c, %w")},
          {"a column more, and an element more", "",
           kWide + "%e = gt %n64, %hw\nrequire %e, \"\"\n" + guarded(kIndex + "proven", "lt %r, %h", "le %c, %w")},
          {"rows and columns exchanged", "", kEqual + guarded(kIndex + "checked", "lt %r, %w", "lt %c, %h")},
          {"the height as width", "", kEqual + guarded("%m = mul %r, %h\n%i = add %m, %c\nstore y[%i], %v checked")},
          {"only the row is guarded", "", kEqual + guarded(kIndex + "checked", "lt %r, %h", "lt %r, %w")},
          {"only the column is guarded", "", kEqual + guarded(kIndex + "checked", "lt %c, %h")},
          {"the element after", "",
           kEqual + guarded("%m = mul %r, %w\n%i = add %m, %c\n%o = const 1 : u32\n%j = add %i, %o\nstore y[%j], %v checked")},
          {"the next column, where there is one", "",
           kEqual +
               guarded("%o = const 1 : u32\n%d = add %c, %o\n%g3 = lt %d, %w\nif %g3 {\n%m = mul %r, %w\n%i = add %m, %d\nstore y[%i], "
                       "%v proven\n}\n%m2 = mul %r, %w\n%i2 = add %m2, %d\nstore y[%i2], %v checked")},
          {"the next row, where there is one", "",
           kEqual +
               guarded("%o = const 1 : u32\n%d = add %r, %o\n%g3 = lt %d, %h\nif %g3 {\n%m = mul %d, %w\n%i = add %m, %c\nstore y[%i], "
                       "%v proven\n}\n%m2 = mul %d, %w\n%i2 = add %m2, %c\nstore y[%i2], %v checked")},
          {"the row before, which may be none", "",
           kEqual + guarded("%o = const 1 : u32\n%d = sub %r, %o\n%m = mul %d, %w\n%i = add %m, %c\nstore y[%i], %v checked")},
          {"the first of a row, in a matrix with columns", "", kEqual + guarded("%m = mul %r, %w\nstore y[%m], %v proven")},
          {"the first of a row, in one that may have none", "",
           kEqual + guarded("%m = mul %r, %w\nstore y[%m], %v checked", "lt %r, %h", "lt %r, %h")},
          {"loops instead of guards", "",
           kEqual + "%v = const 1 : u32\n%z = const 0 : u32\nfor %r = %z, %h, %v : u32 {\nfor %c = %z, %w, %v : u32 {\n" + kIndex +
               "proven\n}\n}"},
          {"rows of a width of which a part is used", "scalar s : u32\n",
           "%h = param h\n%w = param w\n%s = param s\n%f = le %w, %s\nrequire %f, \"\"\n%h64 = cast %h : u64\n%s64 = cast %s : u64\n%hs = "
           "mul "
           "%h64, %s64\n%n = size y\n%n64 = cast %n : u64\n%e = eq %n64, %hs\nrequire %e, \"\"\n" +
               guarded("%m = mul %r, %s\n%i = add %m, %c\nstore y[%i], %v proven")},
          {"rows that overlap", "scalar s : u32\n",
           "%h = param h\n%w = param w\n%s = param s\n%f = ge %w, %s\nrequire %f, \"\"\n%h64 = cast %h : u64\n%s64 = cast %s : u64\n%hs = "
           "mul "
           "%h64, %s64\n%n = size y\n%n64 = cast %n : u64\n%e = eq %n64, %hs\nrequire %e, \"\"\n" +
               guarded("%m = mul %r, %s\n%i = add %m, %c\nstore y[%i], %v checked")},
          {"the extents of a matrix for a buffer beside it", "buffer a : f32[*, *] in\n",
           "%h = extent a.0\n%w = extent a.1\n%h64 = cast %h : u64\n%w64 = cast %w : u64\n%hw = mul %h64, %w64\n%n = size y\n%n64 = cast "
           "%n : "
           "u64\n%e = eq %n64, %hw\nrequire %e, \"\"\n" +
               guarded(kIndex + "proven\n%f = load a[%r, %c] proven")},
          {"a width known while recording", "",
           "%h = param h\n%w = const 12 : u32\n%h64 = cast %h : u64\n%w64 = const 12 : u64\n%hw = mul %h64, %w64\n%n = size y\n%n64 = cast "
           "%n : "
           "u64\n%e = eq %n64, %hw\nrequire %e, \"\"\n" +
               guarded(kIndex + "proven\n%o = const 12 : u32\n%j = add %m, %o\nstore y[%j], %v checked\n%l = const 11 : u32\n%q = add %m, "
                                "%l\nstore y[%q], %v proven")},
      },
      "buffer y : u32[*] inout\nscalar h : u32\nscalar w : u32\n");
}

TEST_CASE("a product of extents that may wrap proves nothing") {
  check_cases(
      {
          {"32 bits of any numbers", "",
           "%h = param h\n%w = param w\n%hw = mul %h, %w\n%n = size y\n%e = eq %n, %hw\nrequire %e, \"\"\n" + guarded(kIndex + "checked")},
          {"32 bits of any numbers, index in 64 bits", "",
           "%h = param h\n%w = param w\n%h64 = cast %h : u64\n%w64 = cast %w : u64\n%hw = mul %h, %w\n%n = size y\n%e = eq %n, "
           "%hw\nrequire "
           "%e, \"\"\n" +
               guarded(kIndex64 + "checked")},
          {"the 64-bit product cut to 32 bits", "",
           kWide + "%cut = cast %hw : u32\n%e = eq %n, %cut\nrequire %e, \"\"\n" + guarded(kIndex + "checked")},
          {"small numbers", "", narrow("4096", "4096") + guarded(kIndex + "proven")},
          {"the largest product that fits", "", narrow("65535", "65537") + guarded(kIndex + "proven")},
          {"one more than that", "", narrow("65536", "65536") + guarded(kIndex + "checked")},
          {"64 bits of 64-bit numbers", "scalar a : u64\nscalar b : u64\n",
           "%h = param a\n%w = param b\n%hw = mul %h, %w\n%n = size y : u64\n%e = eq %n, %hw\nrequire %e, \"\"\n%r = global_id.y : u64\n%c "
           "= "
           "global_id.x : u64\n%v = const 1 : u32\n%g1 = lt %r, %h\n%g2 = lt %c, %w\n%g = and %g1, %g2\nif %g {\n" +
               kIndex + "checked\n}"},
          {"a signed product of non-negative numbers that may wrap", "scalar a : i32\nscalar b : i32\n",
           "%h = param a\n%w = param b\n%hw = mul %h, %w\n%u = cast %hw : u32\n%n = size y\n%e = eq %n, %u\nrequire %e, \"\"\n%r0 = "
           "global_id.y\n%c0 "
           "= global_id.x\n%r = cast %r0 : i32\n%c = cast %c0 : i32\n%v = const 1 : u32\n%z = const 0 : i32\n%g1 = lt %r, %h\n%g2 = lt %c, "
           "%w\n%g3 = "
           "ge %r, %z\n%g4 = ge %c, %z\n%g5 = and %g1, %g2\n%g6 = and %g3, %g4\n%g = and %g5, %g6\nif %g {\n" +
               kIndex + "checked\n}"},
          {"planes of rows of columns, whose product may wrap in 64 bits", "scalar d : u32\n",
           "%d = param d\n%d64 = cast %d : u64\n" + kWide +
               "%all = mul %d64, %hw\n%e = eq %n64, %all\nrequire %e, \"\"\n%p = global_id.z\n%g0 = lt %p, %d\nif %g0 {\n" +
               guarded("%m1 = mul %p, %h\n%i1 = add %m1, %r\n%m2 = mul %i1, %w\n%i = add %m2, %c\nstore y[%i], %v checked") + "\n}"},
          {"planes of rows of columns, each at most 1024", "scalar d : u32\n",
           "%d = param d\n%dm = const 1024 : u32\n%db = le %d, %dm\nrequire %db, \"\"\n%h = param h\n%w = param w\n%hb = le %h, "
           "%dm\nrequire %hb, "
           "\"\"\n%wb = le %w, %dm\nrequire %wb, \"\"\n%dh = mul %d, %h\n%all = mul %dh, %w\n%n = size y\n%e = eq %n, %all\nrequire %e, "
           "\"\"\n%p = "
           "global_id.z\n%g0 = lt %p, %d\nif %g0 {\n" +
               guarded("%m1 = mul %p, %h\n%i1 = add %m1, %r\n%m2 = mul %i1, %w\n%i = add %m2, %c\nstore y[%i], %v proven\n%m3 = mul %i1, "
                       "%h\n%j = "
                       "add %m3, %c\nstore y[%j], %v checked") +
               "\n}"},
      },
      "buffer y : u32[*] inout\nscalar h : u32\nscalar w : u32\n");
}

TEST_CASE("signed rows and columns are inside once neither is negative") {
  const std::string head =
      "%h = param h\n%w = param w\n%h64 = cast %h : i64\n%w64 = cast %w : i64\n%hw = mul %h64, %w64\n%n = size y\n%n64 = cast %n : i64\n%e "
      "= eq "
      "%n64, %hw\nrequire %e, \"\"\n%r = param r\n%c = param c\n%r64 = cast %r : i64\n%c64 = cast %c : i64\n%v = const 1 : u32\n%z = const "
      "0 : "
      "i32\n%g1 = lt %r, %h\n%g2 = lt %c, %w\n%g3 = ge %r, %z\n%g4 = ge %c, %z\n%inside = and %g1, %g2\nif %inside {\n";
  const std::string index = "%m = mul %r64, %w64\n%i = add %m, %c64\nstore y[%i], %v ";
  check_cases({{"both signs known", "", head + "if %g3 {\nif %g4 {\n" + index + "proven\n}\n}\n}"},
               {"the sign of the row unknown", "", head + "if %g4 {\n" + index + "checked\n}\n}"},
               {"the sign of the column unknown", "", head + "if %g3 {\n" + index + "checked\n}\n}"},
               {"no sign known", "", head + index + "checked\n}"}},
              "buffer y : u32[*] inout\nscalar h : i32\nscalar w : i32\nscalar r : i32\nscalar c : i32\n");

  // With small extents the product of the extents fits 32 bits. A row below zero makes one that wraps, to anywhere.
  const std::string small =
      "%h = param h\n%w = param w\n%m0 = const 4096 : i32\n%hb = le %h, %m0\n%wb = le %w, %m0\nrequire %hb, \"\"\nrequire %wb, \"\"\n%z = "
      "const 0 : i32\n%hp = ge %h, %z\n%wp = ge %w, %z\nrequire %hp, \"\"\nrequire %wp, \"\"\n%hw = mul %h, %w\n%n = size y\n%u = cast %hw "
      ": "
      "u32\n%e = eq %n, %u\nrequire %e, \"\"\n%r = param r\n%c = param c\n%v = const 1 : u32\n%g1 = lt %r, %h\n%g2 = lt %c, %w\n%g3 = ge "
      "%r, "
      "%z\n%g4 = ge %c, %z\n%inside = and %g1, %g2\nif %inside {\n%m = mul %r, %w\n%i = add %m, %c\n%g5 = ge %i, %z\nif %g5 {\n";
  const std::string store = "store y[%i], %v ";
  check_cases(
      {{"in 32 bits, both signs known", "", small + "if %g3 {\nif %g4 {\n" + store + "proven\n}\n}\n}\n}"},
       {"in 32 bits, the sign of the row unknown, that of the index known", "", small + "if %g4 {\n" + store + "checked\n}\n}\n}"},
       {"in 32 bits, the sign of the column unknown, that of the index known", "", small + "if %g3 {\n" + store + "checked\n}\n}\n}"}},
      "buffer y : u32[*] inout\nscalar h : i32\nscalar w : i32\nscalar r : i32\nscalar c : i32\n");
}
