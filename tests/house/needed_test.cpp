// What our libraries and programs need at load time: no driver, and no LLVM but in the code generator.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/process.h"

namespace {

std::vector<std::string> needed(const std::string& file) {
  const auto r = kiln::test::run_process({"readelf", "-d", "-W", file});
  REQUIRE(r.status == 0);
  std::vector<std::string> names;
  for (std::size_t at = 0; (at = r.out.find("(NEEDED)", at)) != std::string::npos; ++at) {
    const std::size_t open = r.out.find('[', at), close = r.out.find(']', at);
    names.push_back(r.out.substr(open + 1, close - open - 1));
  }
  return names;
}

bool any_starts_with(const std::vector<std::string>& names, const std::string& beginning) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return n.starts_with(beginning); });
}

}  // namespace

TEST_CASE("no library or program that is built needs the driver, and only the code generator needs LLVM") {
  int looked_at = 0;
  for (const char* folder : {"lib", "bin"}) {
    const std::filesystem::path dir = std::filesystem::path(KILN_BINARY_DIR) / folder;
    if (!std::filesystem::is_directory(dir)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      const std::string name = entry.path().filename().string();
      if (std::string(folder) == "lib" && name.find(".so") == std::string::npos) continue;  // archives
      const std::vector<std::string> names = needed(entry.path().string());
      CAPTURE(name);
      CHECK((!names.empty() || name == "libkiln_test_cli_empty.so"));  // which is one of nothing
      for (const char* driver : {"libcuda.", "libcudart", "libnvrtc", "libnvptxcompiler", "libnvidia"})
        CHECK(!any_starts_with(names, driver));
      CHECK(any_starts_with(names, "libLLVM") == name.starts_with("libkiln_codegen."));
      ++looked_at;
    }
  }
  CHECK(looked_at > 0);
}
