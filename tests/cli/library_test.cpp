// The command line on a library of kernels: names, families, configs.
#include <doctest/doctest.h>

#include "cli/cli.h"

using namespace kiln::test;
using nlohmann::json;

TEST_CASE("list tells the kernels of a library with place, axes and configs") {
  auto result = json_of(kiln_program({"list", kKernelLibrary, "--json"}));
  REQUIRE(result["kernels"].size() == 2);
  auto &repeat = result["kernels"][0], &scale = result["kernels"][1];
  CHECK(scale["name"] == "cli_test::scale");
  CHECK(scale["signature"] == "cli_test::scale(In<f32> x, Out<f32> y, Val<f32> a)");
  CHECK(scale["place"].get<std::string>().find("kernels.cpp:7") != std::string::npos);
  CHECK(scale["axes"].empty());
  CHECK(scale["configs"] == json::array({""}));
  CHECK(repeat["axes"][0]["name"] == "times");
  CHECK(repeat["axes"][0]["default"] == "2");
  CHECK(repeat["axes"][1]["name"] == "negate");
  CHECK(repeat["configs"].size() == 5);
  const auto text = kiln_program({"list", kKernelLibrary});
  CHECK(text.out.find("times = 2") != std::string::npos);
}

TEST_CASE("a kernel is found by its qualified name and by its last part, with a config in any order") {
  for (const char* kernel : {"cli_test::repeat@times=4", "repeat@times=4,negate=false", "repeat@negate=false,times=4"}) {
    CAPTURE(kernel);
    const auto result =
        kiln_program({"run", kKernelLibrary, kernel, "--grid", "1", "--block", "32", "--arg", "in:i32:[1,-2,3]", "--arg", "out:i32:3"});
    CAPTURE(result.err);
    CHECK(result.status == 0);
    CHECK(json_of(result)["outputs"][0]["values"] == json::array({4, -8, 12}));
  }
  const auto negated = kiln_program(
      {"run", kKernelLibrary, "repeat@negate=true", "--grid", "1", "--block", "32", "--arg", "in:i32:[1,-2,3]", "--arg", "out:i32:3"});
  CHECK(json_of(negated)["outputs"][0]["values"] == json::array({-2, 4, -6}));
}

TEST_CASE("an unknown kernel, parameter or value, and a config outside the space, are refused by name") {
  TempFolder folder;
  struct Row {
    const char* kernel;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {"scael", {"scael", "scale"}},          {"cli_test::nothing", {"cli_test::nothing"}}, {"repeat@tims=2", {"tims", "times"}},
      {"repeat@times=two", {"times", "two"}}, {"repeat@times=3", {"times", "3"}},           {"repeat@times=4,negate=true", {"never both"}},
      {"scale@times=2", {"times"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.kernel);
    check_refused(kiln_program({"emit", kKernelLibrary, row.kernel, "--arch", "sm_80", "--emit", "ptx", "-o", folder.file("out")}), 2,
                  row.words);
  }
  CHECK(files_in(folder.file("out")).empty());
}

TEST_CASE("emit without kernels takes all of a library with their defaults, and each variant has a symbol of its own") {
  TempFolder folder;
  REQUIRE(kiln_program({"emit", kKernelLibrary, "--emit", "json", "-o", folder.path()}).status == 0);
  CHECK(files_in(folder.path()).size() == 2);
  REQUIRE(
      kiln_program({"emit", kKernelLibrary, "repeat", "repeat@times=2", "repeat@times=1", "--emit", "json", "-o", folder.file("variants")})
          .status == 0);
  CHECK(files_in(folder.file("variants")).size() == 2);  // the default is times=2
}
