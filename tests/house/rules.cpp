#include "rules.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <string_view>

namespace kiln::house {
namespace {
namespace fs = std::filesystem;

// What the files below `folder` may include. The longest folder that matches counts. An entry of `may` is the beginning of a path: of the
// name as written for headers outside the tree, of the path below the root for headers inside it. The standard library and the system are
// free.
struct Rule {
  std::string_view folder;
  std::vector<std::string_view> may;
};
const std::vector<Rule>& rules() {
  static const std::vector<Rule> table{
      {"ir/", {"ir/"}},
      {"runtime/", {"runtime/", "ir/include/", "nlohmann/", "spdlog/"}},
      {"runtime/src/environment/", {"runtime/", "ir/include/", "sqlite3", "xxhash", "zstd"}},
      {"runtime/include/", {"runtime/include/", "ir/include/"}},
      {"runtime/include/kiln/runtime/compiler.h", {"ir/include/"}},
      {"runtime/cuda/", {"runtime/", "ir/include/"}},
      {"dsl/", {"dsl/", "runtime/include/", "ir/include/"}},
      {"autotune/", {"autotune/", "dsl/include/", "runtime/include/", "ir/include/"}},
      {"include/", {"include/", "dsl/include/", "runtime/include/", "autotune/include/", "ir/include/"}},
      {"codegen/", {"codegen/", "ir/include/", "runtime/include/kiln/runtime/compiler.h", "llvm/", "llvm-c/"}},
      {"codegen/cli/",
       {"codegen/cli/", "dsl/include/", "runtime/include/", "autotune/include/", "ir/include/", "ir/interp/", "include/", "CLI/",
        "nlohmann/", "spdlog/", "fmt/"}},
      {"samples/", {"samples/", "include/", "dsl/include/", "runtime/include/", "autotune/include/", "ir/include/", "png.h"}},
      {"tests/", {"", "cuda.h"}},  // tests see everything; nobody sees tests
  };
  return table;
}

// Libraries outside the tree that are no part of the system: each needs a rule that lets it in.
const std::vector<std::string_view>& guarded() {
  static const std::vector<std::string_view> names{"llvm/",    "llvm-c/",
                                                   "clang/",   "lld/",
                                                   "CLI/",     "nlohmann/",
                                                   "spdlog/",  "fmt/",
                                                   "doctest/", "cuda",
                                                   "nvrtc",    "nvvm",
                                                   "nvml",     "cupti",
                                                   "mpfr",     "sleef",
                                                   "png.h",    "sqlite3",
                                                   "xxhash",   "zstd",
                                                   "gtest/",   "boost/",
                                                   "nvPTX",    "cublas",
                                                   "nccl",     "device_launch_parameters"};
  return names;
}

bool starts_with_any(std::string_view text, const std::vector<std::string_view>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view b) { return text.starts_with(b); });
}

const Rule* rule_of(std::string_view file) {
  const Rule* best = nullptr;
  for (const Rule& r : rules())
    if (file.starts_with(r.folder) && (best == nullptr || r.folder.size() > best->folder.size())) best = &r;
  return best;
}

// The path below the root of the header that `name`, written in `file`, means; nothing when it is not of this tree.
std::optional<std::string> resolve(const fs::path& root, const std::string& file, const std::string& name, bool quoted) {
  std::vector<fs::path> places;
  if (quoted) {
    places.push_back(root / fs::path(file).parent_path());
    places.push_back(root / file.substr(0, file.find('/')));  // the area's own folder
  }
  for (const char* dir : {"ir/include", "runtime/include", "dsl/include", "autotune/include", "include", "tests", "ir", ""})
    places.push_back(root / dir);
  for (const fs::path& place : places) {
    const fs::path found = place / name;
    if (fs::is_regular_file(found)) return fs::relative(fs::canonical(found), fs::canonical(root)).generic_string();
  }
  if (name.starts_with("kiln/")) {  // ours by name, but missing: checked by its area all the same
    const std::string area = name.substr(5, name.find('/', 5) - 5);
    return area + "/include/" + name;
  }
  return std::nullopt;
}

// `line` without string literals and // comments, and without /* */ comments as far as they are on one line or `in_comment` says.
std::string code_of(const std::string& line, bool& in_comment) {
  std::string code;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (in_comment) {
      if (line.compare(i, 2, "*/") == 0) in_comment = false, ++i;
    } else if (line.compare(i, 2, "/*") == 0) {
      in_comment = true, ++i;
    } else if (line.compare(i, 2, "//") == 0) {
      break;
    } else if (line[i] == '"') {
      while (++i < line.size() && line[i] != '"')
        if (line[i] == '\\') ++i;
    } else {
      code += line[i];
    }
  }
  return code;
}

void check_file(const fs::path& root, const std::string& file, std::vector<Violation>& found) {
  static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  static const std::regex cuda_name(R"(\b(CU[a-z]\w*|cu[A-Z]\w*|CUDA_\w+|nvrtc[A-Z]\w*)\b)");
  // Split so that this file does not find itself.
  static const std::string outside = std::string("../") + "shared";
  const Rule* rule = rule_of(file);
  const bool test = file.starts_with("tests/");
  std::ifstream in(root / file);
  std::string line;
  bool in_comment = false;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.find(outside) != std::string::npos) found.push_back({file, number, "reads a folder outside the repository"});
    std::smatch m;
    if (std::regex_search(line, m, include)) {
      const std::string name = m[2];
      const std::optional<std::string> ours = resolve(root, file, name, m[1] == "\"");
      if (test) continue;
      if (ours && ours->starts_with("tests/")) {
        found.push_back({file, number, "includes a test's header: " + name});
      } else if (ours ? !starts_with_any(*ours, rule->may) : starts_with_any(name, guarded()) && !starts_with_any(name, rule->may)) {
        found.push_back({file, number, "may not include " + name});
      }
      continue;
    }
    const std::string code = code_of(line, in_comment);
    if (!test && !file.starts_with("runtime/cuda/") && std::regex_search(code, m, cuda_name))
      found.push_back({file, number, "uses a CUDA name outside runtime/cuda/: " + m[0].str()});
  }
}

}  // namespace

std::vector<Violation> find_violations(const std::string& root_text) {
  const fs::path root = root_text;
  std::vector<std::string> files;
  for (const char* area : {"ir", "runtime", "dsl", "autotune", "include", "codegen", "samples", "tests"}) {
    if (!fs::is_directory(root / area)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / area)) {
      const std::string extension = entry.path().extension().string();
      static const std::vector<std::string_view> sources{".h", ".hpp", ".cpp", ".cc", ".c", ".def", ".inc", ".in"};
      if (entry.is_regular_file() && std::find(sources.begin(), sources.end(), extension) != sources.end())
        files.push_back(fs::relative(entry.path(), root).generic_string());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<Violation> found;
  for (const std::string& file : files) check_file(root, file, found);
  return found;
}

std::string to_string(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& v : violations) text += v.file + ":" + std::to_string(v.line) + ": " + v.what + "\n";
  return text;
}

}  // namespace kiln::house
