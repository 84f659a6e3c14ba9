// What list and show say of a .kir file.
#include <doctest/doctest.h>

#include "cli/cli.h"

using namespace kiln::test;

TEST_CASE("list names the kernels of a .kir file with their signatures") {
  const auto text = kiln_program({"list", kSaxpy});
  CHECK(text.status == 0);
  CHECK(text.out.find("saxpy(In<f32> x, InOut<f32> y, Val<f32> a)") != std::string::npos);
  auto json = json_of(kiln_program({"list", kSaxpy, "--json"}));
  REQUIRE(json["kernels"].size() == 1);
  auto& k = json["kernels"][0];
  CHECK(k["name"] == "saxpy");
  CHECK(k["params"][1]["name"] == "y");
  CHECK(k["params"][1]["type"] == "InOut<f32>");
  CHECK(k["axes"].empty());
}

TEST_CASE("show prints each form of a kernel") {
  const auto summary = kiln_program({"show", kSaxpy, "saxpy"});
  CHECK(summary.status == 0);
  for (const char* word : {"saxpy", "read-only", "read-write", "sm_75", "checked"}) CHECK(summary.out.find(word) != std::string::npos);

  auto io = json_of(kiln_program({"show", kSaxpy, "saxpy", "--io", "--json"}));
  CHECK(io["signature"][0]["declared"] == "in");
  CHECK(io["signature"][0]["proven"] == "read-only");
  CHECK(io["signature"][1]["declared"] == "inout");
  CHECK(io["signature"][1]["proven"] == "read-write");
  CHECK(io["signature"][2]["kind"] == "scalar");

  const auto ptx = kiln_program({"show", kSaxpy, "saxpy", "--ptx", "--arch", "sm_80"});
  CHECK(ptx.status == 0);
  CHECK(ptx.out.find(".target sm_80") != std::string::npos);
  CHECK(ptx.out.find(".entry saxpy") != std::string::npos);
  const auto oldest = kiln_program({"show", kSaxpy, "saxpy", "--ptx"});
  CHECK(oldest.out.find(".target sm_75") != std::string::npos);

  const auto llvm = kiln_program({"show", kSaxpy, "saxpy", "--llvm", "--arch", "sm_80"});
  CHECK(llvm.status == 0);
  CHECK(llvm.out.find("define") != std::string::npos);
  const auto host = kiln_program({"show", kSaxpy, "saxpy", "--llvm", "--arch", "x86-64-v3", "--block", "64"});
  CHECK(host.status == 0);
  CHECK(host.out.find("define") != std::string::npos);
}

TEST_CASE("show lists the accesses that are tested at run time, with line and memory") {
  TempFolder folder;
  const std::string path = folder.write("wild.kir", R"(kir 1
kernel "wild" {
  file "wild.cpp"
  buffer x : f32[*] in
  buffer y : f32[*] out
  body {
    %i = global_id.x
    %v = load x[%i] @0:7
    %n = size y
    %c = lt %i, %n
    if %c {
      store y[%i], %v
    }
    check %c, "in range" @0:13
  }
}
kernel "wilder" {
  file "wild.cpp"
  buffer y : f32[*] inout
  body {
    %i = global_id.x
    %v = load y[%i] @0:27
    %t = thread_id.x
    store y[%t], %v @0:29
  }
}
)");
  CHECK(kiln_program({"show", path, "wild"}).out.find("  1 access is tested at run time:\n    load of 'x' at wild.cpp:7\n") !=
        std::string::npos);
  CHECK(kiln_program({"show", path, "wilder"})
            .out.find("  2 accesses are tested at run time:\n    load of 'y' at wild.cpp:27\n    store of 'y' at wild.cpp:29\n") !=
        std::string::npos);
  CHECK(kiln_program({"show", path, "wild", "--mode", "unchecked"}).out.find("  0 accesses are tested at run time\n") != std::string::npos);
}

TEST_CASE("what show --ir prints is a .kir file of the same kernel") {
  TempFolder folder;
  const auto ir = kiln_program({"show", kSaxpy, "saxpy", "--ir"});
  REQUIRE(ir.status == 0);
  const std::string copy = folder.write("copy.kir", ir.out);
  const auto again = kiln_program({"show", copy, "saxpy", "--ir"});
  CHECK(again.status == 0);
  CHECK(again.out == ir.out);
}

TEST_CASE("a kernel that does not verify is refused by name and line, and its neighbours still work") {
  TempFolder folder;
  const std::string path = folder.write("two.kir", read_file(kSaxpy) + R"(
kernel "bad" {
  file "bad.cpp"
  buffer x : f32[*] in
  body {
    %0 = const 0 : u32 @0:7
    %v = const 1.0 : f32 @0:8
    store x[%0], %v @0:9
  }
}
)");
  const auto bad = kiln_program({"show", path, "bad"});
  CHECK(bad.status == 1);
  CHECK(bad.err.find("'bad'") != std::string::npos);
  CHECK(bad.err.find("bad.cpp:9") != std::string::npos);
  CHECK(kiln_program({"show", path, "saxpy"}).status == 0);
  CHECK(kiln_program({"list", path}).status == 0);
}
