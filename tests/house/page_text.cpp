#include "house/page_text.h"

#include <cctype>
#include <regex>
#include <sstream>

namespace kiln::house {

namespace {

void add_words(std::set<std::string>& words, const std::string& code) {
  static const std::regex word("[A-Za-z_][A-Za-z0-9_]*");
  for (std::sregex_iterator at(code.begin(), code.end(), word), end; at != end; ++at) words.insert(at->str());
}

}  // namespace

std::set<std::string> code_words(const std::string& page) {
  std::set<std::string> words;
  std::istringstream in(page);
  bool block = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) block = !block;
    else if (block) add_words(words, line);
    else
      for (const std::string& code : quoted(line)) add_words(words, code);
  }
  return words;
}

std::set<std::string> example_words(const std::string& page) {
  std::set<std::string> words;
  std::istringstream in(page);
  bool block = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) block = line == "```cpp";
    else if (block) add_words(words, line.substr(0, line.find("//")));
  }
  return words;
}

std::vector<std::vector<std::string>> table_rows(const std::string& page) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream in(page);
  std::string before;
  for (std::string line; std::getline(in, line); before = line) {
    if (!line.starts_with("|") || line.starts_with("|---")) {
      if (line.starts_with("|---")) rows.pop_back();
      continue;
    }
    std::vector<std::string> cells(1);
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (line[i] == '|' && line[i - 1] != '\\') cells.emplace_back();
      else cells.back() += line[i];
    }
    cells.pop_back();  // behind the last |
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::vector<std::string> quoted(const std::string& cell) {
  std::vector<std::string> all;
  const std::regex part("``(.+?)``|`([^`]+)`");
  for (std::sregex_iterator at(cell.begin(), cell.end(), part), end; at != end; ++at) all.push_back((*at)[1].matched ? (*at)[1] : (*at)[2]);
  return all;
}

std::vector<std::string> literals(const std::string& source) {
  std::vector<std::string> all;
  bool adjacent = false;  // nothing but blanks since the last one
  for (std::size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    const bool line_start = i == 0 || source[i - 1] == '\n';
    if ((c == '/' && source.compare(i, 2, "//") == 0) || (line_start && source.compare(i, 8, "#include") == 0)) {
      i = std::min(source.find('\n', i), source.size() - 1);
    } else if (c == '\'' && i + 2 < source.size() && (i == 0 || std::isalnum(static_cast<unsigned char>(source[i - 1])) == 0)) {
      // A character: it may be a quote. Behind a digit it stands between the digits of a number.
      i = source.find('\'', source[i + 1] == '\\' ? i + 3 : i + 2);
      adjacent = false;
    } else if (c == '"') {
      std::string text;
      for (++i; i < source.size() && source[i] != '"'; ++i) {
        if (source[i] == '\\') text += source[++i] == 'n' ? '\n' : source[i];
        else text += source[i];
      }
      if (adjacent) all.back() += text;
      else all.push_back(std::move(text));
      adjacent = true;
    } else if (c != ' ' && c != '\n') {
      adjacent = false;
    }
  }
  return all;
}

std::size_t word_count(const std::string& text) {
  const std::regex word("[A-Za-z_]+");
  return static_cast<std::size_t>(std::distance(std::sregex_iterator(text.begin(), text.end(), word), std::sregex_iterator()));
}

}  // namespace kiln::house
