// Control flow: what the scopes record, and what leaving them wrongly reports.
#include "recording.h"

using namespace kiln;
using recording::count;
using recording::refused;
using recording::text;
using recording::verified;

TEST_CASE("If and Else record both branches, and Else binds to the nearest If") {
  CHECK(text([](Out<u32> a, Val<u32> n) {
          If (n > 1) {
            If (n > 2) { a[n] = n; }
            Else { a[n] = 1; }
          }
        }) ==
        "%0 = param b : u32\n"
        "%1 = const 1 : u32\n"
        "%2 = gt %0, %1 : bool\n"
        "if %2 {\n"
        "  %3 = const 2 : u32\n"
        "  %4 = gt %0, %3 : bool\n"
        "  if %4 {\n"
        "    store a[%0], %0\n"
        "  } else {\n"
        "    %5 = const 1 : u32\n"
        "    store a[%0], %5\n"
        "  }\n"
        "}\n");
}

TEST_CASE("Else If chains nest") {
  const std::string s = text([](Out<u32> a, Val<u32> n) {
    If (n == 0) { a[0] = 10; }
    Else If (n == 1) { a[0] = 11; }
    Else If (n == 2) { a[0] = 12; }
    Else { a[0] = 13; }
  });
  CHECK(count(s, "if ") == 3);
  CHECK(count(s, "} else {") == 3);
}

TEST_CASE("statements without braces are bodies too, under host control flow as well") {
  const std::string s = text([](Out<u32> a, Val<u32> n) {
    for (u32 i = 0; i < 3; ++i)
      If (n == i) a[i] = 1;
    if (n.handle().id != ir::kNone) {
      If (n > 7) a[7] = 1;
      Else a[7] = 2;
    }
    While (a.size() > 9) Break();
    for (auto i : range(3)) a[i] = 5;
  });
  CHECK(count(s, "if ") == 4);
  CHECK(count(s, "} else {") == 1);
  CHECK(count(s, "while") == 1);
  CHECK(count(s, "for ") == 1);
}

TEST_CASE("While records its condition once, inside the loop") {
  const std::string s = text([](InOut<u32> a) {
    Var<u32> i = 0;
    While (i < a.size()) {
      i += a[i];
    }
  });
  const std::size_t loop = s.find("while");
  REQUIRE(loop != std::string::npos);
  CHECK(s.find("size a") > loop);
  CHECK(count(s, "size a") == 1);
  CHECK(count(s, "yield") == 1);
  CHECK(verified([](InOut<u32> a) {
    Var<u32> i = 0;
    While (i < a.size()) { i += a[i]; }
  }) == "");
}

TEST_CASE("range takes the type of its kernel operands, u32 when all are host values") {
  HAS(text([](Out<u32> a) { for (auto i : range(10)) { a[i] = 1; } }), "const 10 : u32");
  HAS(text([](Out<u32> a, Val<i64> n) { for (auto i : range(n)) { a[i] = 1; } }), "= const 0 : i64");
  HAS(text([](Out<u32> a, Val<i64> n) { for (auto i : range(0, n, 2)) { a[i] = 1; } }), "= const 2 : i64");
  HAS(text([](Out<u32> a, Val<u64> n) { for (auto i : range(n, 100)) { a[i] = 1; } }), "= const 100 : u64");
  HAS(text([](Out<i32> a) { for (auto i : range<i32>(-3, 4)) { a[i + 3] = i; } }), "= const -3 : i32");
  HAS(text([](Out<i32> a) { for (auto i : range<i32>(4)) { a[i] = i; } }), "= const 4 : i32");
  HAS(text([](Out<i64> a) { for (auto i : range<i64>(0, 4, 2)) { a[i] = i; } }), "= const 2 : i64");
  HAS(text([](InOut<u32> a) { Var<u32> n = 3; for (auto i : range(n, a[0], a[1])) { a[i] = 1; } }), "for ");
}

TEST_CASE("range refuses host bounds that do not fit and steps that are not above 0") {
  CHECK(refused([](Out<u32> a) { for (auto i : range(-3, 3)) { a[0] = i; } }, __LINE__) == "the constant -3 does not fit u32");
  HAS(refused([](Out<u32> a) { for (auto i : range(0, 3, 0)) { a[0] = i; } }, __LINE__), "the step of range must be above 0");
  HAS(refused([](Out<i32> a) { for (auto i : range<i32>(0, 3, -1)) { a[0] = i; } }, __LINE__), "the step of range must be above 0");
}

TEST_CASE("Switch records a region per label, several labels share one, and the default is the rest") {
  const std::string s = text([](Out<u32> a, Val<u32> n) {
    Switch (n) {
      Case (0) { a[0] = 100; }
      Case (1, 2, 7) { a[0] = 101; }
      Default { a[0] = 102; }
    }
  });
  CHECK(count(s, "case ") == 2);
  CHECK(count(s, "const 101 : u32") == 1);
  CHECK(count(s, "select") == 2);
  CHECK(verified([](Out<u32> a, Val<u32> n) {
    Switch (n) {
      Case (0) { a[0] = 100; }
      Case (1, 2, 7) { a[0] = 101; }
      Default { a[0] = 102; }
    }
  }) == "");
  CHECK(verified([](Out<u32> a, Val<i64> n) {
    for (auto i : range(5)) {
      Switch (n) {
        Case (-1) { Break(); }
        Case (1) { Continue(); }
      }
      a[i] = 1;
    }
  }) == "");
  CHECK(verified([](Out<u32> a, Val<u32> n) {
    Switch (n + 1) {
      Default { Return(); }
      Case (4) {
        Switch (n) { Case (2) { a[0] = 1; } }
      }
    }
  }) == "");
}

TEST_CASE("Switch refuses a label given twice, labels that do not fit, a second Default and code beside the cases") {
  HAS(refused([](Out<u32> a, Val<u32> n) { Switch (n) { Case (0) { a[0] = 1; } Case (2, 0) { a[0] = 2; } } }, __LINE__), "the label 0 already");
  CHECK(refused([](Out<u32> a, Val<u32> n) { Switch (n) { Case (-1) { a[0] = 1; } } }, __LINE__) == "the constant -1 does not fit u32");
  HAS(refused([](Out<u32> a, Val<u32> n) { Switch (n) { Default { a[0] = 1; } Default { a[0] = 2; } } }, __LINE__), "one Default");
  HAS(refused([](Out<u32> a, Val<u32> n) { Switch (n) { a[0] = 1; } }, __LINE__), "outside of its cases");
  HAS(refused([](Out<u32> a) { Case (1) { a[0] = 1; } }, __LINE__), "belong directly into a Switch");
  HAS(refused([](Out<u32> a, Val<u32> n) { Switch (n) { Case (0) { Case (1) { a[0] = 1; } } } }, __LINE__), "belong directly into a Switch");
}

TEST_CASE("Break and Continue need a loop of the kernel; a C++ loop is none") {
  HAS(refused([](Out<u32>) { Break(); }, __LINE__), "Break() outside of a loop of the kernel");
  HAS(refused([](Out<u32> a) { for (u32 i = 0; i < 4; ++i) { If (a.size() > i) { Continue(); } } }, __LINE__), "Continue() outside of a loop");
}

TEST_CASE("what follows Break, Continue or Return in the same block goes nowhere") {
  const std::string s = text([](Out<u32> a) {
    for (auto i : range(4)) {
      If (i > 2) {
        Break();
        a[i] = 77;
      }
      If (i > 1) {
        Continue();
        for (auto j : range(i)) a[j] = 78;
      }
      a[i] = 1;
    }
    Return();
    a[0] = 79;
  });
  for (const char* gone : {"const 77", "const 78", "const 79"}) CHECK(s.find(gone) == std::string::npos);
  HAS(s, "break\n");
  HAS(s, "continue\n");
  HAS(s, "return\n");
  CHECK(verified([](Out<u32> a) {
    If (a.size() > 2) {
      Return();
      a[0] = 1;
    }
    Else { Return(); }
    a[0] = 79;
  }) == "");
}

TEST_CASE("leaving a body by C++ break, return or goto is reported with the line of the statement") {
  const char* advice = "; use Break(), Continue() or Return()";
  CHECK(refused([](Out<u32> a) { for (auto i : range(4)) { a[i] = 1; break; } }, __LINE__) ==
        std::string("C++ break, return or goto left the body of for (... : range(...))") + advice);
  CHECK(refused([](Out<u32> a) { If (a.size() > 1) { a[0] = 1; return; } }, __LINE__) == std::string("C++ break, return or goto left the body of If") + advice);
  CHECK(refused([](Out<u32> a) { If (a.size() > 1) { a[0] = 1; } Else { return; } }, __LINE__) == std::string("C++ break, return or goto left the body of Else") + advice);
  CHECK(refused([](Out<u32> a) { for (u32 i = 0; i < 3; ++i) { If (a.size() > i) { break; } } }, __LINE__) == std::string("C++ break, return or goto left the body of If") + advice);
  CHECK(refused([](Out<u32> a) { While (a.size() > 1) { break; } }, __LINE__) == std::string("C++ break, return or goto left the body of While") + advice);
  CHECK(refused([](Out<u32> a) { If (a.size() > 1) { goto out; } out: a[0] = 1; }, __LINE__) == std::string("C++ break, return or goto left the body of If") + advice);
  CHECK(refused([](Out<u32>, Val<u32> n) { Switch (n) { Case (1) { break; } } }, __LINE__) == std::string("C++ break, return or goto left the body of Case") + advice);
  CHECK(refused([](Out<u32>, Val<u32> n) { Switch (n) { Case (1) { return; } } }, __LINE__).find("left the body of Case") != std::string::npos);
}

TEST_CASE("an exception in a body leaves the recorder as it was, and the next kernel records") {
  auto thrown = record("k", [](Out<u32> a) {
    If (a.size() > 1) {
      for (auto i : range(3)) {
        a[i] = 1;
        throw std::runtime_error("from the body");
      }
    }
  });
  REQUIRE(!thrown.has_value());
  CHECK(thrown.error().data().message == "the body of the kernel threw: from the body");
  CHECK(verified([](Out<u32> a) { a[0] = 1; }) == "");
}

TEST_CASE("a recording error that the body catches is reported all the same") {
  auto kernel = record("k", [](Out<u32> a) {
    try {
      a[0] = -1;
    } catch (...) {
    }
  });
  REQUIRE(!kernel.has_value());
  CHECK(kernel.error().data().message == "the constant -1 does not fit u32");
}

TEST_CASE("C++ control flow runs while recording") {
  const std::string s = text([](Out<u32> a) {
    for (u32 i = 0; i < 3; ++i) {
      if (i != 1) a[i] = 10 + i;
    }
  });
  CHECK(count(s, "store") == 2);
  CHECK(count(s, "for ") + count(s, "if ") == 0);
}

TEST_CASE("a body that nests too deep is refused") {
  auto kernel = record("k", [](Out<u32> a) {
    auto nest = [&](auto&& self, int depth) -> void {
      If (a.size() > 1) {
        if (depth > 0) self(self, depth - 1);
      }
    };
    nest(nest, 300);
  });
  REQUIRE(!kernel.has_value());
  HAS(kernel.error().data().message, "nested deeper than");
}
