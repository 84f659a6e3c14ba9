// The index of errors (docs/errors.md) has every code, every rule and every sentence that the sources have, and none that they do not have.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "house/page_text.h"
#include "kiln/runtime/error.h"
#include "support/process.h"

using namespace kiln::house;
using namespace kiln::test;

namespace {

namespace fs = std::filesystem;

const std::string kRoot = KILN_SOURCE_DIR;

std::string index() { return read_file(kRoot + "/docs/errors.md"); }

std::vector<std::string> sources_below(const std::vector<std::string>& folders) {
  std::vector<std::string> all;
  for (const std::string& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(kRoot + "/" + folder))
      if (entry.path().extension() == ".cpp" || entry.path().extension() == ".h") all.push_back(fs::relative(entry.path(), kRoot).string());
  std::sort(all.begin(), all.end());
  return all;
}
// Those of the product's host side, but for the command line, which prints what others say.
std::vector<std::string> sources() { return sources_below({"dsl", "runtime"}); }

// Sources whose sentences the index has one by one.
const std::vector<std::string> kSentences{"dsl/src/control.cpp",
                                          "dsl/src/embedded.cpp",
                                          "dsl/src/head.cpp",
                                          "dsl/src/kernel.cpp",
                                          "dsl/src/literal.cpp",
                                          "dsl/src/logical.cpp",
                                          "dsl/src/memory.cpp",
                                          "dsl/src/recorder.cpp",
                                          "dsl/src/registry.cpp",
                                          "dsl/src/space.cpp",
                                          "dsl/src/text.cpp",
                                          "dsl/include/kiln/dsl/kernel.h",
                                          "dsl/include/kiln/dsl/space.h",
                                          "ir/src/message.cpp",
                                          "ir/src/verify_barriers.cpp",
                                          "ir/src/verify_declarations.cpp",
                                          "ir/src/verify_operations.cpp",
                                          "ir/src/verify_structure.cpp",
                                          "runtime/src/adopted_memory.cpp",
                                          "runtime/src/background.cpp",
                                          "runtime/src/buffer.cpp",
                                          "runtime/src/call_order.cpp",
                                          "runtime/src/bundle/builds.cpp",
                                          "runtime/src/bundle/choose.cpp",
                                          "runtime/src/bundle/embedded.cpp",
                                          "runtime/src/bundle/format.cpp",
                                          "runtime/src/bundle/modules.cpp",
                                          "runtime/src/bundle/read.cpp",
                                          "runtime/src/bundle/search.cpp",
                                          "runtime/src/bundle/write.cpp",
                                          "runtime/src/capture/capture_state.cpp",
                                          "runtime/src/capture/captures.cpp",
                                          "runtime/src/capture/graph.cpp",
                                          "runtime/src/capture/instances.cpp",
                                          "runtime/src/capture/mapped_blocks.cpp",
                                          "runtime/src/capture/replay.cpp",
                                          "runtime/src/check_launch.cpp",
                                          "runtime/src/client.cpp",
                                          "runtime/src/codegen_loader.cpp",
                                          "runtime/src/collective/communicator.cpp",
                                          "runtime/src/collective/host_transport.cpp",
                                          "runtime/src/collective/transport.cpp",
                                          "runtime/src/config.cpp",
                                          "runtime/src/config_file.cpp",
                                          "runtime/src/device.cpp",
                                          "runtime/src/devices.cpp",
                                          "runtime/src/dynamic_grid.cpp",
                                          "runtime/src/environment/report.cpp",
                                          "runtime/src/fault_slots.cpp",
                                          "runtime/src/host_access.cpp",
                                          "runtime/src/host_transfer.cpp",
                                          "runtime/src/interop.cpp",
                                          "runtime/src/layout.cpp",
                                          "runtime/src/launch_config.cpp",
                                          "runtime/src/launch_logs.cpp",
                                          "runtime/src/launch_validation.cpp",
                                          "runtime/src/loaded_launch.cpp",
                                          "runtime/src/local_server.cpp",
                                          "runtime/src/memory/client_memory.cpp",
                                          "runtime/src/memory/memory_capture.cpp",
                                          "runtime/src/memory/memory_manager.cpp",
                                          "runtime/src/memory/memory_upkeep.cpp",
                                          "runtime/src/memory/pool_config.cpp",
                                          "runtime/src/modes.cpp",
                                          "runtime/src/operation.cpp",
                                          "runtime/src/prepared_launch.cpp",
                                          "runtime/src/programs.cpp",
                                          "runtime/src/requirements.cpp",
                                          "runtime/src/server.cpp",
                                          "runtime/src/server_entry.cpp",
                                          "runtime/src/strided.cpp",
                                          "runtime/src/strided_transfer.cpp",
                                          "runtime/src/variant.cpp",
                                          "runtime/src/profile/profiler.cpp",
                                          "runtime/src/profile/server_profile.cpp",
                                          "runtime/src/profile/time_marks.cpp",
                                          "runtime/src/failure/failure_store.cpp",
                                          "runtime/src/failure/launch_log.cpp",
                                          "runtime/src/failure/scope.cpp",
                                          "runtime/cpu/cpu_device.cpp",
                                          "runtime/cpu/scheduler.cpp",
                                          "runtime/cpu/storage.cpp",
                                          "runtime/cuda/adopt.cpp",
                                          "runtime/cuda/cuda_device.cpp",
                                          "runtime/cuda/driver.cpp",
                                          "runtime/cuda/program.cpp",
                                          "runtime/cuda/ptx_target.cpp",
                                          "runtime/cuda/device_blocks.cpp",
                                          "runtime/cuda/session.cpp"};

// Words with one blank between them; without what stands around them.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != '`' && c != '\\' && !(c == ' ' && (out.empty() || out.back() == ' '))) out += c == '\n' ? ' ' : c;
  const std::string around = " ':;,.(";
  const std::size_t first = out.find_first_not_of(around);
  return first == std::string::npos ? "" : out.substr(first, out.find_last_not_of(around) - first + 1);
}

std::string all_literals(const std::vector<std::string>& files) {
  std::string all;
  for (const std::string& file : files)
    for (const std::string& text : literals(read_file(kRoot + "/" + file))) all += plain(text) + "\n";
  return all;
}

constexpr std::size_t kWords = 4;  // what has fewer is a part of a sentence, not one to look up

}  // namespace

TEST_CASE("every code of an error is in the index, with what to do; a code that nothing gives is marked so") {
  std::map<std::string, std::vector<std::string>> rows;
  std::string page = index();
  page = page.substr(page.find("\n## Codes"));
  for (const auto& row : table_rows(page.substr(0, page.find("\n## ", 1)))) {
    REQUIRE(row.size() == 3);
    CHECK(quoted(row[0]).size() == 1);
    rows[quoted(row[0]).at(0)] = row;
  }
  std::string used;
  for (const std::string& file : sources())
    if (!file.ends_with("/error.cpp")) used += read_file(kRoot + "/" + file);
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(kiln::ErrorCode::Generic); ++code) {
    const std::string name = kiln::name(static_cast<kiln::ErrorCode>(code));
    CAPTURE(name);
    names.insert(name);
    REQUIRE(rows.contains(name));
    const bool given = std::regex_search(used, std::regex("ErrorCode::" + name + "\\b"));
    CHECK(given == (rows[name][1].find("nothing gives it yet") == std::string::npos));
    CHECK((!given || word_count(rows[name][2]) > 1));
  }
  for (const auto& [name, row] : rows) CHECK_MESSAGE(names.contains(name), name << " is no code");
}

TEST_CASE("every rule that an error can name is in the index, and no other") {
  const std::set<std::string> no_rules{"InitializeInjectionNvtx2",
                                       "While",
                                       "Switch",
                                       "If",
                                       "Else",
                                       "Case",
                                       "Default",  // words of the language in sentences
                                       "Execute",
                                       "CompileOnly",
                                       "CompileAndAutotune",
                                       "Discard",
                                       "Compile",
                                       "Queue"};  // modes
  std::set<std::string> codes, rules, indexed;
  for (int code = 0; code <= static_cast<int>(kiln::ErrorCode::Generic); ++code)
    codes.insert(kiln::name(static_cast<kiln::ErrorCode>(code)));
  const std::regex name("[A-Z][a-z]+[A-Za-z0-9]*");
  for (const std::string& file : sources())
    for (const std::string& text : literals(read_file(kRoot + "/" + file)))
      if (std::regex_match(text, name) && !codes.contains(text)) rules.insert(text);
  const std::string page = index();
  for (const auto& row : table_rows(page))
    for (const std::string& word : quoted(row[0]))
      if (std::regex_match(word, name) && !codes.contains(word)) indexed.insert(word);
  for (const char* other : {"Recording", "InvalidKernel", "RequirementNotEvaluable"})  // of a whole section
    if (page.find("ule `" + std::string(other) + "`") != std::string::npos) indexed.insert(other);
  for (const std::string& rule : rules) CHECK_MESSAGE((indexed.contains(rule) || no_rules.contains(rule)), rule);
  for (const std::string& rule : indexed) CHECK_MESSAGE(rules.contains(rule), rule << " is no rule");
  CHECK(rules.size() > 50);
}

TEST_CASE("errors of the runtime are made in one place, but for the facts that one source alone has") {
  const std::set<std::string> own{"runtime/src/error.cpp",                  // the place
                                  "runtime/src/fault_slots.cpp",            // an access out of range
                                  "runtime/src/failure/failure_store.cpp",  // the failure's number and the chain
                                  "runtime/src/failure/scope.cpp"};         // the failure's number
  const std::regex by_hand("Error::Data [a-z]+;");
  for (const std::string& file : sources()) {
    if (!file.starts_with("runtime/")) continue;
    CHECK_MESSAGE(std::regex_search(read_file(kRoot + "/" + file), by_hand) == own.contains(file), file);
  }
}

TEST_CASE("every source that makes an error has its sentences looked up in the index, but for those whose sentences come from elsewhere") {
  const std::set<std::string> own{"dsl/src/errors.h",
                                  "runtime/src/make_error.h",
                                  "runtime/src/error.cpp",               // the place
                                  "runtime/cuda/errors.cpp",             // the table of results, which the index lists
                                  "runtime/src/logging.cpp",             // the form of a line of the log is no sentence
                                  "runtime/src/object_loader.cpp",       // BadObject: what is wrong with the code generator's object
                                  "runtime/src/profile/timelines.cpp"};  // most of its sentences are the log's
  for (const std::string& file : sources())
    if (read_file(kRoot + "/" + file).find("make_error(") != std::string::npos)
      CHECK_MESSAGE((own.contains(file) || std::count(kSentences.begin(), kSentences.end(), file) == 1),
                    file << " belongs into kSentences");
}

TEST_CASE("every sentence of the sources is in the index of errors") {
  const std::string page = plain(index());
  for (const std::string& file : kSentences)
    for (const std::string& text : literals(read_file(kRoot + "/" + file))) {
      const std::string sentence = plain(text);
      if (word_count(sentence) < kWords || sentence.starts_with("kiln: ")) continue;  // those of the C++ compiler are listed as mistakes
      CHECK_MESSAGE(page.find(sentence) != std::string::npos, file << ": " << sentence);
    }
}

TEST_CASE("every sentence in the index of errors is one of the sources") {
  std::vector<std::string> all = sources();
  all.insert(all.end(), kSentences.begin(), kSentences.end());
  const std::vector<std::string> compiling = sources_below({"codegen"});  // of which the index has what a user may meet
  all.insert(all.end(), compiling.begin(), compiling.end());
  const std::string known = all_literals(all);
  std::string page = index();
  page = page.substr(0, page.find("\n## The C++ compiler"));
  for (const auto& row : table_rows(page.substr(page.find("\n## Launches")))) {
    const std::size_t column = row.size() > 2 && word_count(row[0]) < 8 ? 1 : 0;
    for (const std::size_t at : {std::size_t{0}, column})
      for (const std::string& sentence : quoted(row[at])) {
        std::size_t from = 0;
        for (std::size_t end; from <= sentence.size(); from = end + std::string("…").size()) {
          end = std::min(sentence.find("…", from), sentence.size());
          const std::string part = plain(sentence.substr(from, end - from));
          if (word_count(part) >= kWords) CHECK_MESSAGE(known.find(part) != std::string::npos, "'" << part << "' of: " << sentence);
        }
      }
  }
}

TEST_CASE("every row of the index says what happened and what to do; where it leaves that to the sentence, the sentence says it") {
  std::string page = index();
  page = page.substr(0, page.find("\n## The C++ compiler"));
  std::istringstream in(page);
  std::size_t rows = 0;
  std::ptrdiff_t remedy = -1;
  std::vector<std::string> header;
  for (std::string line, before; std::getline(in, line); before = line) {
    CAPTURE(line);
    if (line.starts_with("|---")) {
      header = table_rows(before + "\n").at(0);
      remedy = std::find(header.begin(), header.end(), " what to do ") - header.begin();
      CHECK_MESSAGE(remedy < std::ssize(header), "a table without the column 'what to do': " << before);
    }
    if (!line.starts_with("| ") || line.find(" what to do ") != std::string::npos) continue;
    const std::vector<std::string> cells = table_rows(line + "\n").at(0);
    REQUIRE(cells.size() == header.size());
    ++rows;
    CHECK(word_count(cells[1]) > 0);
    const std::string says = std::regex_replace(cells.at(static_cast<std::size_t>(remedy)), std::regex("^ `[A-Za-z]+`: "), " ");
    if (says == " that ") CHECK(std::regex_search(cells[0] + cells[1], std::regex("[;:] ")));
    else CHECK(word_count(says) > 1);
  }
  CHECK(rows > 250);
}

TEST_CASE("every sentence that the C++ compiler can print has a mistake that brings it") {
  std::string expected;
  for (const auto& entry : fs::directory_iterator(kRoot + "/tests/misuse/cases")) {
    const std::string text = read_file(entry.path().string());
    expected += text.substr(0, text.find('\n') + 1);
  }
  std::size_t sentences = 0;
  for (const auto& entry : fs::directory_iterator(kRoot + "/dsl/include/kiln/dsl"))
    for (const std::string& text : literals(read_file(entry.path().string())))
      if (text.starts_with("kiln: ") && text.ends_with(".")) {
        CHECK_MESSAGE(expected.find("// expect: " + text + "\n") != std::string::npos, entry.path().filename().string() << ": " << text);
        ++sentences;
      }
  CHECK(sentences > 40);
}
