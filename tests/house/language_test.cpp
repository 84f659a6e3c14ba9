// Every word of the language is in its reference: what the headers of dsl/ declare for authors, and every operation of the IR.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "house/page_text.h"
#include "kiln/ir/ops.h"
#include "support/process.h"

using namespace kiln::house;
using namespace kiln::test;

namespace {

namespace fs = std::filesystem;

const std::string kRoot = KILN_SOURCE_DIR;

std::string reference() {
  std::string all = read_file(kRoot + "/docs/language.md");
  for (const auto& entry : fs::directory_iterator(kRoot + "/docs/language")) all += read_file(entry.path().string());
  return all;
}

// What a header of the DSL declares in the namespaces of authors (kiln and kiln::warp, not kiln::dsl): types, concepts, functions,
// constants, public members of classes; and macros that it leaves defined, if their name does not end in _.
std::set<std::string> declared(const std::string& header) {
  std::set<std::string> words;
  std::istringstream in(header);
  std::vector<std::string> spaces;  // open namespaces
  std::string in_class;
  int since_open = 0;
  bool is_public = false, body = false;  // of a class; in the lines of a macro
  static const std::regex space(R"(^namespace ([\w:]+) \{)"), type(R"(^(?:class|struct|enum class|concept) (\w+))"),
      alias(R"(^using (\w+) =)"), constant(R"(^inline constexpr [\w:<>]+ (\w+) =)"), function(R"((?:^| )(\w+)\()"),
      generated(R"(^\s*KILN_\w+\((\w+), )"), macro(R"(^#define (\w+))");
  for (std::string line; std::getline(in, line);) {
    std::smatch m;
    const bool continues = line.ends_with("\\");
    if (body || std::regex_search(line, m, macro)) {
      if (!body && header.find("#undef " + m[1].str() + "\n") == std::string::npos && !m[1].str().ends_with("_")) words.insert(m[1]);
      body = continues;
      continue;
    }
    if (std::regex_search(line, m, space)) {
      spaces.push_back(m[1]);
      since_open = 0;
      continue;
    }
    ++since_open;
    if (line.starts_with("}  // namespace") || (line == "}" && since_open == 2)) {  // of one line: without a comment
      if (!spaces.empty()) spaces.pop_back();
      continue;
    }
    const bool authors =
        !spaces.empty() && std::all_of(spaces.begin(), spaces.end(), [](const std::string& s) { return s == "kiln" || s == "kiln::warp"; });
    if (!authors) continue;
    if (std::regex_search(line, m, generated)) {
      words.insert(m[1]);
      if (line.find("KILN_COMBINE(") != std::string::npos) words.insert({"inclusive_" + m[1].str(), "exclusive_" + m[1].str()});
      continue;
    }
    if (line.starts_with("};")) in_class.clear();
    if (std::regex_search(line, m, type)) {
      words.insert(m[1]);
      if (line.ends_with("{")) in_class = m[1], is_public = line.starts_with("struct");
      continue;
    }
    if (std::regex_search(line, m, alias) || std::regex_search(line, m, constant)) words.insert(m[1]);
    if (line == " public:") is_public = true;
    if (line == " private:" || line == " protected:") is_public = false;
    const std::string code = line.substr(0, line.find("//"));
    if (in_class.empty() && !code.empty() && std::isalpha(static_cast<unsigned char>(code[0])) && !code.starts_with("template") &&
        !code.starts_with("requires"))
      if (std::regex_search(code, m, function)) words.insert(m[1]);
    if (!in_class.empty() && is_public && code.starts_with("  ") && code.size() > 2 && std::isalpha(static_cast<unsigned char>(code[2])))
      if (std::regex_search(code, m, std::regex(R"(^  (?:static |constexpr |virtual |explicit )*[\w:<>&.,\s]*?[ &>](\w+)\([^()]*)")))
        words.insert(m[1]);
  }
  return words;
}

// What the headers cannot keep to themselves although no author writes it.
const std::set<std::string> kMachinery{// how macros are made
                                       "KILN_COMPUTES", "KILN_CONCAT", "KILN_CONFIG_MEMBER", "KILN_EXPAND", "KILN_EXPAND2", "KILN_EXPAND3",
                                       "KILN_FOR_EACH", "KILN_FOR_EACH_AGAIN", "KILN_PARENS", "KILN_LOGICAL", "KILN_MIXED",
                                       "KILN_MIXED_VALUE", "KILN_NEEDS", "KILN_NONE", "KILN_NONE_VALUE", "KILN_NO_VALUE",
                                       // what classes are made of, and sentences for the wrong operand
                                       "Index", "NoConfig", "Ops", "Subscripts", "ThreeNumbers", "Use", "WholeMemory", "operator",
                                       // members by which the parts of the DSL talk to each other
                                       "begin", "element", "end", "erased", "fits", "handle", "in", "memory", "param", "slot", "target",
                                       "unfit"};

// Types of what functions give, which an author seldom writes; what tools use; and what the page of the host side shows.
const std::set<std::string> kOnlyNamed{"DynamicGrid", "Prepared",       "config",         "dynamic_grid", "on",        "rebind",
                                       "Axes",        "Bound",          "ConfigAxis",     "Elem",         "HostValue", "KernelOf",
                                       "Layout",      "Options",        "Range",          "Space",        "View",      "add",
                                       "remove",      "EmbeddedFamily", "EmbeddedKernel", "config_type"};

}  // namespace

TEST_CASE("every word that the headers of the DSL declare for authors is in the reference of the language, and in an example") {
  std::map<std::string, std::string> found;  // word: header
  for (const auto& entry : fs::directory_iterator(kRoot + "/dsl/include/kiln/dsl"))
    for (const std::string& word : declared(read_file(entry.path().string()))) found.emplace(word, entry.path().filename().string());
  const std::set<std::string> words = code_words(reference()), shown = example_words(reference());
  for (const auto& [word, header] : found)
    if (!kMachinery.contains(word)) {
      CHECK_MESSAGE(words.contains(word), word << " of " << header);
      CHECK_MESSAGE((shown.contains(word) || kOnlyNamed.contains(word)), "no example has " << word << " of " << header);
    }
  for (const auto* list : {&kMachinery, &kOnlyNamed})
    for (const std::string& word : *list) CHECK_MESSAGE(found.contains(word), word << " is declared no more");
  // The scanner sees each kind of declaration.
  for (const char* word : {"If", "KILN_KERNEL", "sqrt", "rotate_left", "exclusive_and_", "shfl_up", "atomic_cas", "Val", "Axes", "Integer",
                           "In", "barrier", "barrier_any", "block_uniform", "size64", "launch_for", "unchecked", "local_kernel", "size"})
    CHECK_MESSAGE(found.contains(word), std::string(word));
}

TEST_CASE("every operation of the IR is in the table of what operations mean, and each row names tests that are there") {
  const auto rows = table_rows(read_file(kRoot + "/docs/language/meaning.md"));
  std::set<std::string> mnemonics;
  for (const auto& row : rows) {
    REQUIRE(row.size() == 4);
    CAPTURE(row[0]);
    for (const std::string& word : code_words(row[1])) mnemonics.insert(word);
    std::size_t tests = 0;
    const std::regex file("`([a-z]+/[a-z0-9_]+)`");
    for (std::sregex_iterator at(row[3].begin(), row[3].end(), file), end; at != end; ++at, ++tests) {
      const std::string path = "/tests/" + (*at)[1].str() + ".cpp";
      CHECK_MESSAGE(fs::exists(kRoot + path), path);
    }
    CHECK(tests > 0);
  }
  std::set<std::string> all;
  for (std::size_t code = 0; code < kiln::ir::kOpcodeCount; ++code)
    all.insert(std::string(kiln::ir::info(static_cast<kiln::ir::Opcode>(code)).mnemonic));
  for (const std::string& op : all) CHECK_MESSAGE(mnemonics.contains(op), op);
  for (const std::string& word : mnemonics) CHECK_MESSAGE(all.contains(word), word << " is no operation");
}

TEST_CASE("every element type is on the page of types") {
  const std::set<std::string> words = code_words(read_file(kRoot + "/docs/language/types.md"));
  for (int type = 1; type < kiln::ir::kTypeCount; ++type) {
    const std::string name(kiln::ir::name(static_cast<kiln::ir::Type>(type)));
    CHECK_MESSAGE(words.contains(name), name);
  }
}
