// The dependency rules of the design hold in every source file, and the scanner that says so finds what it must.
#include <doctest/doctest.h>

#include <filesystem>

#include "house/rules.h"
#include "support/process.h"

using kiln::house::find_violations;
using kiln::house::to_string;

TEST_CASE("no include and no name breaks the dependency rules") {
  CHECK_MESSAGE(to_string(find_violations(KILN_SOURCE_DIR)) == "", to_string(find_violations(KILN_SOURCE_DIR)));
}

TEST_CASE("a made-up violation of each rule is found, and what is allowed is not") {
  struct Row {
    const char* file;
    const char* line;
    bool bad;
  };
  const std::string outside = "std::ifstream in(\"../" + std::string("shared/x\");");
  const Row rows[] = {
      {"ir/src/a.cpp", "#include \"kiln/runtime/error.h\"", true},
      {"ir/src/a.cpp", "#include <kiln/dsl/dsl.h>", true},
      {"ir/src/a.cpp", "#include \"../../runtime/src/private.h\"", true},
      {"ir/src/a.cpp", "#include \"kiln/ir/type.h\"", false},
      {"ir/src/a.cpp", "#include <vector>", false},
      {"runtime/src/a.cpp", "#include \"kiln/dsl/dsl.h\"", true},
      {"runtime/src/a.cpp", "#include \"codegen/backend.h\"", true},
      {"runtime/src/a.cpp", "  #  include <llvm/IR/Module.h>", true},
      {"runtime/src/a.cpp", "#include <cuda.h>", true},
      {"runtime/cuda/a.cpp", "#include <cuda.h>", true},
      {"runtime/src/a.cpp", "CUdeviceptr p = 0;", true},
      {"runtime/src/a.cpp", "auto e = cuInit(0);", true},
      {"runtime/src/a.cpp", "// cuInit is called by the device", false},
      {"runtime/src/a.cpp", "const char* n = \"cuInit\";", false},
      {"runtime/cuda/a.cpp", "auto e = cuInit(0);", false},
      {"runtime/src/a.cpp", "#include \"src/private.h\"", false},
      {"runtime/src/a.cpp", "#include \"kiln/ir/passes.h\"", false},
      {"dsl/src/a.cpp", "#include \"kiln/autotune/search.h\"", true},
      {"dsl/src/a.cpp", "#include \"src/private.h\"", false},  // the dsl has none of that name: the compiler's business
      {"dsl/src/a.cpp", "#include \"runtime/src/private.h\"", true},
      {"dsl/include/kiln/dsl/a.h", "#include <llvm/IR/Module.h>", true},
      {"codegen/nvptx/a.cpp", "#include \"kiln/runtime/error.h\"", true},
      {"codegen/nvptx/a.cpp", "#include \"kiln/runtime/compiler.h\"", false},
      {"codegen/nvptx/a.cpp", "#include <llvm/IR/Module.h>", false},
      {"codegen/cli/a.cpp", "#include <llvm/IR/Module.h>", true},
      {"codegen/cli/a.cpp", "#include \"runtime/src/private.h\"", true},
      {"codegen/cli/a.cpp", "#include \"kiln/dsl/registry.h\"", false},
      {"codegen/cli/a.cpp", "#include <CLI/CLI.hpp>", false},
      {"codegen/cli/a.cpp", "#include \"interp/interp.h\"", false},
      {"runtime/src/a.cpp", "#include \"interp/interp.h\"", true},
      {"runtime/include/kiln/runtime/a.h", "#include <spdlog/spdlog.h>", true},
      {"runtime/include/kiln/runtime/a.h", "#include \"src/private.h\"", true},
      {"runtime/include/kiln/runtime/compiler.h", "#include \"kiln/runtime/error.h\"", true},
      {"samples/a.cpp", "#include \"runtime/src/private.h\"", true},
      {"samples/a.cpp", "#include <kiln/kiln.h>", false},
      {"samples/a.cpp", "#include <doctest/doctest.h>", true},
      {"dsl/src/a.cpp", "#include \"support/helper.h\"", true},
      {"tests/ir/a_test.cpp", "#include \"support/helper.h\"", false},
      {"tests/runtime/a_test.cpp", "#include <cuda.h>", false},
      {"tests/ir/a_test.cpp", outside.c_str(), true},
      {"dsl/src/a.cpp", outside.c_str(), true},
  };
  for (const Row& row : rows) {
    kiln::test::TempFolder root;
    for (const char* header : {"ir/include/kiln/ir/type.h", "ir/include/kiln/ir/passes.h", "runtime/include/kiln/runtime/error.h",
                               "runtime/include/kiln/runtime/compiler.h", "runtime/src/private.h", "dsl/include/kiln/dsl/dsl.h",
                               "dsl/include/kiln/dsl/registry.h", "include/kiln/kiln.h", "codegen/backend.h", "tests/support/helper.h",
                               "ir/interp/interp.h", row.file}) {
      std::filesystem::create_directories(std::filesystem::path(root.file(header)).parent_path());
      root.write(header, "");
    }
    root.write(row.file, std::string("#pragma once\n") + row.line + "\n");
    const auto found = find_violations(root.path());
    CAPTURE(row.file);
    CAPTURE(row.line);
    CHECK(found.size() == (row.bad ? 1u : 0u));
    if (row.bad && found.size() == 1) {
      CHECK(found[0].file == row.file);
      CHECK(found[0].line == 2);
    }
  }
}
