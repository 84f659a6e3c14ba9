#include "cli/cli.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

namespace kiln::test {

ProcessResult kiln_program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::vector<std::string> argv{KILN_BINARY_DIR "/bin/kiln"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> changes{"KILN_DEVICE=cpu", "KILN_CODEGEN", "KILN_ENV=off", "KILN_LOG"};
  changes.insert(changes.end(), environment.begin(), environment.end());
  return run_process(argv, changes);
}

nlohmann::json json_of(const ProcessResult& result) {
  const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  CHECK_MESSAGE(!json.is_discarded(), "not JSON: " << result.out << result.err);
  return json;
}

void check_refused(const ProcessResult& result, int exit_code, const std::vector<std::string>& words) {
  CAPTURE(result.err);
  CHECK(result.status == exit_code);
  CHECK(result.out == "");
  CHECK(result.err.starts_with("kiln: error: "));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(result.err.find(word) != std::string::npos);
  }
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace kiln::test
