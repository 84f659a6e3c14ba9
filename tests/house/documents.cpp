#include "house/documents.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

namespace kiln::house {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string file_text(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error(file + " cannot be read");
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

std::string trimmed(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos ? "" : line.substr(first, line.find_last_not_of(" \t") - first + 1);
}

// Without what all lines are indented by.
std::string dedented(const std::vector<std::string>& lines) {
  std::size_t indent = std::string::npos;
  for (const std::string& line : lines)
    if (const std::size_t first = line.find_first_not_of(' '); first != std::string::npos) indent = std::min(indent, first);
  std::string text;
  for (const std::string& line : lines) text += (line.size() > indent ? line.substr(indent) : "") + "\n";
  return text;
}

// A case of tests/misuse: `// expect: SENTENCE`, the include and the using-directive come first and are not shown.
std::string mistake(const std::string& file) {
  std::vector<std::string> kept;
  for (const std::string& line : lines_of(file_text(file))) {
    const bool opening = line.starts_with("// expect: ") || line.starts_with("#include <kiln/") || line == "using namespace kiln;";
    if (opening || (kept.empty() && line.empty())) continue;
    kept.push_back(line);
  }
  while (!kept.empty() && kept.back().empty()) kept.pop_back();
  return dedented(kept);
}

std::string sentence(const std::string& file) {
  const std::string first = lines_of(file_text(file)).at(0), opening = "// expect: ";
  if (!first.starts_with(opening)) throw std::runtime_error(file + " does not begin with '" + opening + "'");
  return first.substr(opening.size()) + "\n";
}

std::string content(const std::string& root, const Shown& block) {
  const std::string file = root + "/" + block.path;
  if (block.parts.empty()) return block.path.ends_with(".cpp") ? mistake(file) : file_text(file);
  std::string text;
  for (const std::string& part : block.parts) {
    if (part == "expect") {
      text += sentence(file);
      continue;
    }
    const std::vector<Region> all = regions(file);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Region& r) { return r.name == part; });
    if (found == all.end()) throw std::runtime_error(block.path + " has no example '" + part + "'");
    text += (text.empty() ? "" : "\n") + found->text;
  }
  return text;
}

// All cases of a folder of mistakes: each sentence, and which cases it is for.
std::string table_of_mistakes(const std::string& root, const std::string& folder) {
  std::map<std::string, std::vector<std::string>> sentences;
  for (const auto& entry : fs::directory_iterator(root + "/" + folder)) {
    std::string text = sentence(entry.path().string());
    text.pop_back();
    if (text != "ok") sentences[text].push_back(entry.path().filename().string());
  }
  std::string table = "| sentence | mistakes |\n|---|---|\n";
  for (auto& [text, files] : sentences) {
    std::sort(files.begin(), files.end());
    const std::string ticks = text.find('`') == std::string::npos ? "`" : "``";
    std::string cell;
    for (const char c : text) cell += c == '|' ? "\\|" : std::string(1, c);
    table += "| " + ticks + cell + ticks + " |";
    for (const std::string& file : files) table += " [" + file.substr(0, file.size() - 4) + "](../" + folder + "/" + file + ")";
    table += " |\n";
  }
  return table;
}

// The rows KILN_ROW(NAME, kind, "cause", "remedy") of a source; a remedy may be a constant of it.
std::string table_of_results(const std::string& file) {
  const std::string source = file_text(file);
  std::map<std::string, std::string> constants;
  const std::regex constant(R"re(constexpr const char\* (k\w+) = "([^"]*)";)re"),
      row(R"re(KILN_ROW\((\w+), (\w+), "([^"]*)", (?:"([^"]*)"|(k\w+))\))re");
  for (std::sregex_iterator at(source.begin(), source.end(), constant), end; at != end; ++at) constants[(*at)[1]] = (*at)[2];
  std::string table = "| result | what it means | what to do | loses the device |\n|---|---|---|---|\n";
  std::size_t rows = 0;
  for (std::sregex_iterator at(source.begin(), source.end(), row), end; at != end; ++at, ++rows)
    table += "| `" + (*at)[1].str() + "` | " + (*at)[3].str() + " | " + ((*at)[4].matched ? (*at)[4].str() : constants.at((*at)[5])) +
             " | " + ((*at)[2] == "Poison" ? "yes" : "") + " |\n";
  if (rows == 0) throw std::runtime_error(file + " has no rows to list");
  return table;
}

const std::string kOpening = "<!-- shows: ", kListing = "<!-- lists: ", kClosing = " -->";

Shown parsed(const std::string& line, int number) {
  Shown s;
  s.line = number;
  const std::string what = line.substr(kOpening.size(), line.size() - kOpening.size() - kClosing.size());
  const std::size_t hash = what.find('#');
  s.path = what.substr(0, hash);
  if (hash == std::string::npos) return s;
  std::istringstream parts(what.substr(hash + 1));
  for (std::string part; std::getline(parts, part, ',');) s.parts.push_back(part);
  return s;
}

bool shows(const std::string& line) { return line.starts_with(kOpening) && line.ends_with(kClosing); }

}  // namespace

std::vector<Region> regions(const std::string& file) {
  std::vector<Region> all;
  std::set<std::string> names;
  std::vector<std::string> lines, inside;
  lines = lines_of(file_text(file));
  bool open = false;
  const std::string comment = fs::path(file).filename() == "CMakeLists.txt" ? "# " : "// ";
  const auto wrong = [&](std::size_t i, const std::string& what) {
    return std::runtime_error(file + ":" + std::to_string(i + 1) + ": " + what);
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string line = trimmed(lines[i]), opening = comment + "example: ";
    if (line.starts_with(opening)) {
      if (open) throw wrong(i, "an example begins inside another");
      open = true;
      inside.clear();
      all.push_back({line.substr(opening.size()), static_cast<int>(i) + 2, ""});
      if (!names.insert(all.back().name).second) throw wrong(i, "a second example '" + all.back().name + "'");
    } else if (line == comment + "end") {
      if (!open) throw wrong(i, "no example ends here");
      if (inside.empty()) throw wrong(i, "the example is empty");
      open = false;
      all.back().text = dedented(inside);
    } else if (open) {
      inside.push_back(lines[i]);
    }
  }
  if (open) throw wrong(lines.size() - 1, "the example '" + all.back().name + "' does not end");
  return all;
}

std::vector<Shown> shown(const std::string& page_text) {
  std::vector<Shown> all;
  const std::vector<std::string> lines = lines_of(page_text);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (shows(lines[i])) all.push_back(parsed(lines[i], static_cast<int>(i) + 1));
  return all;
}

std::string rendered(const std::string& root, const std::string& page_text) {
  const std::vector<std::string> lines = lines_of(page_text);
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += lines[i] + "\n";
    if (lines[i].starts_with(kListing) && lines[i].ends_with(kClosing)) {
      const std::string what = lines[i].substr(kListing.size(), lines[i].size() - kListing.size() - kClosing.size());
      text += what.ends_with(".cpp") ? table_of_results(root + "/" + what) : table_of_mistakes(root, what);
      while (i + 1 < lines.size() && lines[i + 1].starts_with("|")) ++i;
    }
    if (!shows(lines[i])) continue;
    const Shown block = parsed(lines[i], static_cast<int>(i) + 1);
    try {
      const bool code = block.path.ends_with(".cpp") && (block.parts.empty() || block.parts.front() != "expect");
      const bool lists = block.path.ends_with("CMakeLists.txt") && !block.parts.empty();
      text += (code ? "```cpp\n" : lists ? "```cmake\n" : "```text\n") + content(root, block) + "```\n";
    } catch (const std::runtime_error& e) { throw std::runtime_error("line " + std::to_string(block.line) + ": " + e.what()); }
    // The block that is there, if one is.
    if (i + 1 < lines.size() && lines[i + 1].starts_with("```")) {
      for (i += 2; i < lines.size() && lines[i] != "```";) ++i;
      if (i == lines.size()) throw std::runtime_error("line " + std::to_string(block.line) + ": the block below it does not end");
    }
  }
  return text;
}

std::vector<std::string> pages(const std::string& root) {
  std::vector<std::string> all{"README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(root + "/docs"))
    if (entry.path().extension() == ".md") all.push_back(fs::relative(entry.path(), root).string());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace kiln::house
