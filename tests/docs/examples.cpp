#include "docs/examples.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>

#include "house/documents.h"
#include "support/process.h"

namespace kiln::test {
namespace {

const std::string kFolder = KILN_SOURCE_DIR "/tests/docs/";

// "path/values_test.cpp:120" is "example.cpp:3" where line 120 is the third of an example.
std::string place_in_example(const std::string& file, int line) {
  static std::map<std::string, std::vector<house::Region>> files;
  if (!files.contains(file)) files[file] = house::regions(kFolder + file);
  for (const house::Region& r : files[file]) {
    const auto lines = std::count(r.text.begin(), r.text.end(), '\n');
    if (line >= r.first_line && line < r.first_line + lines) return "example.cpp:" + std::to_string(line - r.first_line + 1);
  }
  return file + ":" + std::to_string(line);
}

std::string shown_text(const std::string& text) {
  std::string out;
  const std::regex place(R"([^\s'"`(]*?(\w+_test\.cpp):(\d+))");
  std::size_t from = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), place), end; at != end; ++at) {
    out += text.substr(from, static_cast<std::size_t>(at->position()) - from) + place_in_example((*at)[1], std::stoi((*at)[2]));
    from = static_cast<std::size_t>(at->position() + at->length());
  }
  out += text.substr(from);
  out = std::regex_replace(out, std::regex(R"(failure #\d+)"), "failure #1");
  out = std::regex_replace(out, std::regex(R"(docs_\w+::)"), "");
  return std::regex_replace(out, std::regex(R"(\(memory \d+\))"), "(memory 1)") + "\n";
}

}  // namespace

void check_text(const std::string& name, const std::string& text) {
  const std::string file = kFolder + "texts/" + name + ".txt", is = shown_text(text);
  CAPTURE(name);
  CHECK_MESSAGE(is.find("_test.cpp") == std::string::npos, "a page shows only places in examples: " << is);
  if (std::getenv("KILN_WRITE_TEXTS") != nullptr) {
    std::ofstream(file, std::ios::binary) << is;
    return;
  }
  CHECK(read_file(file) == is);
}

}  // namespace kiln::test
