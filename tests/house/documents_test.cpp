// What the pages of docs/ show is what the tests compile and run.
#include "house/documents.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "support/process.h"

using namespace kiln::house;
using namespace kiln::test;

namespace {

namespace fs = std::filesystem;

const std::string kRoot = KILN_SOURCE_DIR;

std::vector<std::string> files(const std::string& folder, const std::string& extension) {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(kRoot + "/" + folder))
    if (entry.path().extension() == extension) all.push_back(folder + "/" + entry.path().filename().string());
  std::sort(all.begin(), all.end());
  return all;
}

// Every block of every page: "path#part", or "path" of a whole file.
std::set<std::string> everything_shown() {
  std::set<std::string> all;
  for (const std::string& page : pages(kRoot))
    for (const Shown& block : shown(read_file(kRoot + "/" + page))) {
      if (block.parts.empty()) all.insert(block.path);
      for (const std::string& part : block.parts) all.insert(block.path + "#" + part);
    }
  return all;
}

// What a link can lead to in a page: its headings, as a browser shows them, and its anchors.
std::set<std::string> anchors(const std::string& text) {
  std::set<std::string> all;
  std::istringstream in(text);
  const std::regex anchor("<a id=\"([^\"]+)\">");
  bool block = false;  // a line of code may begin with # too
  for (std::string line; std::getline(in, line);) {
    for (std::sregex_iterator at(line.begin(), line.end(), anchor), end; at != end; ++at) all.insert((*at)[1]);
    if (line.starts_with("```")) block = !block;
    if (block || !line.starts_with("#")) continue;
    std::string slug;
    for (const char c : line.substr(std::min(line.find(' ') + 1, line.size()))) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
        slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c == ' ') slug += '-';
    }
    all.insert(slug);
  }
  return all;
}

}  // namespace

TEST_CASE("the pages show their code and texts as the sources have them; ./dev docs writes them") {
  for (const std::string& page : pages(kRoot)) {
    CAPTURE(page);
    const std::string text = read_file(kRoot + "/" + page);
    std::string wanted;
    try {
      wanted = rendered(kRoot, text);
    } catch (const std::exception& e) { FAIL_CHECK(std::string(e.what())); }
    std::istringstream is(text), want(wanted);
    for (std::string a, b; std::getline(is, a) && std::getline(want, b) && !wanted.empty();)
      if (a != b) {
        FAIL_CHECK("the page has '" << a << "' where its source has '" << b << "'; ./dev docs writes it anew");
        break;
      }
  }
}

TEST_CASE("all code of the language's pages, of the CUDA device's and of those that teach comes from sources that tests compile") {
  std::vector<std::string> all = files("docs/language", ".md");
  all.push_back("docs/language.md");
  all.push_back("docs/errors.md");
  all.push_back("docs/cuda.md");
  all.push_back("docs/porting.md");
  all.push_back("docs/tutorial.md");
  all.push_back("docs/runtime-model.md");
  for (const std::string& page : all) {
    CAPTURE(page);
    std::istringstream in(read_file(kRoot + "/" + page));
    bool block = false;
    std::string before;
    for (std::string line; std::getline(in, line); before = line) {
      if (line.starts_with("```")) {
        if (!block) CHECK_MESSAGE(before.starts_with("<!-- shows: "), "a block of its own below '" << before << "'");
        block = !block;
      } else if (!block) {
        CHECK_MESSAGE(!(before.empty() && line.starts_with("    ")), "code that no test compiles: " << line);
      }
    }
  }
  for (const std::string& what : everything_shown()) {
    CAPTURE(what);
    CHECK((what.starts_with("tests/docs/") || what.starts_with("tests/misuse/cases/") || what.starts_with("samples/") ||
           what.starts_with("tests/package/project/")));
  }
}

TEST_CASE("no page of docs/ has C++ that no test compiles: blocks come from sources, and what is indented is what one types in a shell") {
  for (const std::string& page : pages(kRoot)) {
    if (!page.starts_with("docs/")) continue;  // package_test builds what the README shows
    CAPTURE(page);
    std::istringstream in(read_file(kRoot + "/" + page));
    bool block = false;
    std::string before;
    for (std::string line; std::getline(in, line); before = line) {
      if (line.starts_with("```")) {
        if (!block) CHECK_MESSAGE(before.starts_with("<!-- shows: "), "a block of its own below '" << before << "'");
        block = !block;
      } else if (!block && line.starts_with("    ") && page.find("/language/") == std::string::npos) {
        const std::string code = line.substr(0, line.find("  //"));
        CHECK_MESSAGE(std::string(";{}").find(code.substr(code.find_last_not_of(' ')).front()) == std::string::npos, line);
      }
    }
  }
}

TEST_CASE("each example and each text of tests/docs is on a page, and each text is one that a test compares") {
  const std::set<std::string> all = everything_shown();
  std::string sources;
  for (const std::string& file : files("tests/docs", ".cpp")) {
    sources += read_file(kRoot + "/" + file);
    for (const Region& region : regions(kRoot + "/" + file))
      CHECK_MESSAGE(all.contains(file + "#" + region.name), file << "#" << region.name);
  }
  for (const std::string& file : files("tests/docs/texts", ".txt")) {
    CHECK_MESSAGE(all.contains(file), file);
    CHECK_MESSAGE(sources.find("\"" + fs::path(file).stem().string() + "\"") != std::string::npos, file << " is compared by no test");
  }
}

TEST_CASE("every link of a page leads to a file that is there, and to a heading or an anchor in it") {
  std::size_t links = 0;
  for (const std::string& page : pages(kRoot)) {
    const std::string text = read_file(kRoot + "/" + page);
    const std::regex link(R"(\]\(([^)#: ]*)(#[^) ]+)?\))");
    bool block = false;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("```")) block = !block;
      if (block || line.starts_with("    ")) continue;
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at, ++links) {
        const fs::path target = fs::path(kRoot + "/" + page).parent_path() / (*at)[1].str();
        const std::string file = (*at)[1].length() == 0 ? kRoot + "/" + page : target.lexically_normal().string();
        CHECK_MESSAGE(fs::exists(file), page << " links to " << (*at)[0].str());
        if (fs::is_regular_file(file) && (*at)[2].matched)
          CHECK_MESSAGE(anchors(read_file(file)).contains((*at)[2].str().substr(1)), page << " links to " << (*at)[0].str());
      }
    }
  }
  CHECK(links > 100);
}

TEST_CASE("every page of docs/ is in the navigation of the site, once, and a link from the contents or the language's page leads to it") {
  std::vector<std::string> wanted, listed;
  for (const std::string& page : pages(kRoot))
    if (page.starts_with("docs/")) wanted.push_back(page.substr(5));
  const std::string file = read_file(kRoot + "/docs/site/mkdocs.yml");
  const std::regex entry(R"(\n *- [^#\n]*: ([^ \n]+\.md)(?=\n))");  // what is commented out has no page yet
  const std::string navigation = file.substr(file.find("\nnav:"));
  for (std::sregex_iterator at(navigation.begin(), navigation.end(), entry), end; at != end; ++at) listed.push_back((*at)[1]);
  for (const std::string& page : wanted)
    CHECK_MESSAGE(std::count(listed.begin(), listed.end(), page) == 1, "docs/" << page << ": once in nav: of docs/site/mkdocs.yml");
  for (const std::string& page : listed)
    CHECK_MESSAGE(std::count(wanted.begin(), wanted.end(), page) == 1, "docs/site/mkdocs.yml names docs/" << page);
  const std::string contents = read_file(kRoot + "/docs/README.md") + read_file(kRoot + "/docs/language.md");
  for (const std::string& page : wanted)
    CHECK_MESSAGE((page == "README.md" || contents.find("](" + page + ")") != std::string::npos), "docs/README.md links to " << page);
  CHECK(listed.size() > 30);
}

TEST_CASE("every test that a page names is there") {
  std::size_t named = 0;
  for (const std::string& page : pages(kRoot)) {
    const std::string text = read_file(kRoot + "/" + page);
    const std::regex name("`(?:([a-z]+)/)?([a-z0-9_]+_test)`");
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at, ++named) {
      const std::string folder = (*at)[1], file = (*at)[2].str() + ".cpp";
      bool there = false;
      for (const char* in : {"conformance", "runtime"})
        there = there || (folder.empty() && fs::exists(kRoot + "/tests/" + in + "/" + file));
      CHECK_MESSAGE((there || fs::exists(kRoot + "/tests/" + folder + "/" + file)), page << " names " << at->str());
    }
  }
  CHECK(named > 100);
}

TEST_CASE("a page takes the place of its blocks, and says which line shows what is not there") {
  TempFolder root;
  fs::create_directories(root.file("t"));
  root.write("t/a_test.cpp", "int before;\n  // example: one\n  int x;\n\n    int y;\n  // end\n// example: two\nint z;\n// end\n");
  root.write("t/m.cpp", "// expect: kiln: no\n#include <kiln/kiln.h>\n\nusing namespace kiln;\n\nint bad;\n\n");
  root.write("t/w.txt", "what\n  it says\n");
  fs::create_directories(root.file("t/m"));
  for (const char* name : {"t/m/y.cpp", "t/m/x.cpp"}) root.write(name, "// expect: kiln: a | b\nint bad;\n");
  root.write("t/r.cpp",
             "constexpr const char* kThat = \"do that\";\n  KILN_ROW(E_ONE, Poison, \"one\", \"do this\")\n  KILN_ROW(E_TWO, Other, "
             "\"two\", kThat)\n");
  root.write("t/m/z.cpp", "// expect: ok\nint good;\n");
  struct Row {
    const char *page, *wanted;
  };
  const Row rows[] = {
      {"a\n<!-- shows: t/a_test.cpp#one -->\n```cpp\nold\n```\nb\n",
       "a\n<!-- shows: t/a_test.cpp#one -->\n```cpp\nint x;\n\n  int y;\n```\nb\n"},
      {"<!-- shows: t/a_test.cpp#two,one -->\nb\n", "<!-- shows: t/a_test.cpp#two,one -->\n```cpp\nint z;\n\nint x;\n\n  int y;\n```\nb\n"},
      {"<!-- shows: t/m.cpp -->\n", "<!-- shows: t/m.cpp -->\n```cpp\nint bad;\n```\n"},
      {"<!-- shows: t/m.cpp#expect -->\n", "<!-- shows: t/m.cpp#expect -->\n```text\nkiln: no\n```\n"},
      {"<!-- shows: t/w.txt -->\n", "<!-- shows: t/w.txt -->\n```text\nwhat\n  it says\n```\n"},
      {"<!-- lists: t/m -->\n| old |\n\nb\n",
       "<!-- lists: t/m -->\n| sentence | mistakes |\n|---|---|\n| `kiln: a \\| b` | [x](../t/m/x.cpp) [y](../t/m/y.cpp) |\n\nb\n"},
      {"<!-- lists: t/r.cpp -->\n",
       "<!-- lists: t/r.cpp -->\n| result | what it means | what to do | loses the device |\n|---|---|---|---|\n"
       "| `E_ONE` | one | do this | yes |\n| `E_TWO` | two | do that |  |\n"},
      {"nothing\n", "nothing\n"},
  };
  for (const Row& row : rows) {
    CHECK(rendered(root.path(), row.page) == row.wanted);
    CHECK(rendered(root.path(), row.wanted) == row.wanted);
  }
  for (const char* page : {"a\n<!-- shows: t/a_test.cpp#three -->\n", "a\n<!-- shows: t/none.txt -->\n",
                           "a\n<!-- shows: t/w.txt -->\n```text\nnever ends\n", "a\n<!-- shows: t/a_test.cpp#expect -->\n"}) {
    CAPTURE(page);
    try {
      rendered(root.path(), page);
      FAIL_CHECK("nothing was said");
    } catch (const std::runtime_error& e) { CHECK(std::string(e.what()).starts_with("line 2: ")); }
  }
}

TEST_CASE("an example that does not end, holds nothing or has the name of another is told with its line") {
  TempFolder root;
  const std::pair<const char*, const char*> rows[] = {
      {"// example: a\nint x;\n", "a.cpp:2: the example 'a' does not end"},
      {"// example: a\n// end\n", "a.cpp:2: the example is empty"},
      {"// example: a\nint x;\n// example: b\n", "a.cpp:3: an example begins inside another"},
      {"// example: a\nint x;\n// end\n// example: a\n", "a.cpp:4: a second example 'a'"},
      {"int x;\n// end\n", "a.cpp:2: no example ends here"},
  };
  for (const auto& [source, wanted] : rows) {
    const std::string file = root.write("a.cpp", source);
    try {
      regions(file);
      FAIL_CHECK("nothing was said");
    } catch (const std::runtime_error& e) { CHECK(std::string(e.what()) == root.path() + "/" + wanted); }
  }
}
