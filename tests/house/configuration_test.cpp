// docs/configuration.md has every setting of the table, word for word, and none that is not there; and every area of the log.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "house/page_text.h"
#include "src/logging.h"
#include "src/settings.h"
#include "support/process.h"

using namespace kiln;
using namespace kiln::house;

namespace {

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

}  // namespace

TEST_CASE("the page of the configuration has the table of settings as it is") {
  const std::string page = test::read_file(std::string(KILN_SOURCE_DIR) + "/docs/configuration.md");
  const std::size_t from = page.find("| key | variable |"), to = page.find("\n\n", from);
  REQUIRE(from != std::string::npos);
  std::string expected = "| key | variable | takes | default | what it sets |\n|---|---|---|---|---|";
  for (const rt::SettingRow& row : rt::settings()) {
    expected += "\n|";
    for (const std::string& cell :
         {code(row.key), code(row.variable), rt::allowed(row), std::string(row.fallback), std::string(row.meaning)})
      expected += (cell.empty() ? "" : " " + cell) + " |";
  }
  CHECK(page.substr(from, to - from) == expected);
}

TEST_CASE("the page of the configuration says what each area of the log says") {
  const std::string page = test::read_file(std::string(KILN_SOURCE_DIR) + "/docs/configuration.md");
  const std::string allowed = rt::log_levels_allowed();
  const std::size_t from = allowed.rfind('(') + 1;
  std::string area;
  for (const char c : allowed.substr(from, allowed.rfind(')') - from) + ",") {
    if (c != ',') {
      if (c != ' ') area += c;
      continue;
    }
    CAPTURE(area);
    CHECK(page.find("\n| " + area + " | ") != std::string::npos);
    area.clear();
  }
}

TEST_CASE("no source of the product reads a variable of Kiln's but through the table of settings") {
  for (const char* area : {"runtime", "dsl", "autotune", "ir", "codegen"}) {
    const auto found = test::run_process({"grep", "-rnl", "getenv", std::string(KILN_SOURCE_DIR) + "/" + area});
    std::string files = found.out;
    for (const char* known : {"/runtime/src/config.cpp\n",         // the one place
                              "/runtime/cuda/nvtx.cpp\n",          // NVTX_INJECTION64_PATH: NVIDIA's
                              "/codegen/host/compile_host.cpp\n",  // KILN_VERIFY_LLVM: no part of the runtime
                              "/codegen/cli/progress.cpp\n",       // TERM
                              "/codegen/cli/ptxas.cpp\n",          // PATH
                              "/codegen/cli/tools.cpp\n"})         // PATH
      if (const std::size_t at = files.find(known); at != std::string::npos) {
        const std::size_t line = files.rfind('\n', at) == std::string::npos ? 0 : files.rfind('\n', at) + 1;
        files.erase(line, at + std::string(known).size() - line);
      }
    CHECK_MESSAGE(files.empty(), files);
  }
}
