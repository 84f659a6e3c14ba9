// What holds for every command, whichever there are: `kiln man --json` lists them.
#include <doctest/doctest.h>

#include <filesystem>

#include "cli/cli.h"

using namespace kiln::test;
using nlohmann::json;

namespace {

json description() {
  const ProcessResult result = kiln_program({"man", "--json"});
  REQUIRE(result.status == 0);
  return json_of(result);
}

std::vector<std::string> words_of(const std::string& name) {
  const std::size_t space = name.find(' ');
  if (space == std::string::npos) return {name};
  return {name.substr(0, space), name.substr(space + 1)};
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A command line as a shell reads it, in a folder where the files of the examples lie.
ProcessResult shell_line(const std::string& line, const std::string& folder) {
  const std::string kiln = "kiln() { '" KILN_BINARY_DIR "/bin/kiln' \"$@\"; }; ";
  return run_process({"/bin/sh", "-c", kiln + line}, {"KILN_DEVICE=cpu", "KILN_CODEGEN", "KILN_ENV=" + folder + "/env", "KILN_LOG"}, 240,
                     folder);
}

}  // namespace

TEST_CASE("every command has a line in the help, a help of its own with each of its options, examples and exit codes") {
  const json all = description();
  const std::string above = kiln_program({"--help"}).out;
  CHECK(all["commands"].size() >= 16);
  for (const json& command : all["commands"]) {
    const std::string name = command["name"];
    CAPTURE(name);
    const std::vector<std::string> words = words_of(name);
    const std::string list = words.size() == 1 ? above : kiln_program({words[0], "--help"}).out;
    CHECK(list.find("\n  " + words.back() + " ") != std::string::npos);
    CHECK(list.find(command["summary"].get<std::string>()) != std::string::npos);
    const ProcessResult help = kiln_program(with(words, {"--help"}));
    CHECK(help.status == 0);
    CHECK(help.err == "");
    CHECK(help.out.find(command["summary"].get<std::string>()) != std::string::npos);
    bool has_json = false;
    for (const json& option : command["options"]) {
      has_json = has_json || option["name"] == "--json";
      CHECK(help.out.find("  " + option["name"].get<std::string>()) != std::string::npos);
      CHECK(help.out.find(option["what"].get<std::string>()) != std::string::npos);
    }
    CHECK(has_json);
    CHECK(!command["examples"].empty());
    for (const json& example : command["examples"]) {
      CHECK(example["line"].get<std::string>().starts_with("kiln " + name));
      CHECK(help.out.find(example["line"].get<std::string>()) != std::string::npos);
    }
    for (const json& code : all["exit_codes"]) CHECK(help.out.find(code.get<std::string>()) != std::string::npos);
    std::vector<std::string> asked{"help"};
    CHECK(kiln_program(with(asked, words)).out == help.out);
  }
}

TEST_CASE("the examples of every command do what they say") {
  const TempFolder folder;
  std::filesystem::copy(kSaxpy, folder.file("saxpy.kir"));
  std::filesystem::create_symlink(kSamplesLibrary, folder.file("libkernels.so"));
  // What the examples about the environment find there.
  const std::string kept = folder.file("other"),
                    launch = "kiln run saxpy.kir saxpy --grid 1 --block 32 --arg in:f32:[1] --arg inout:f32:[5] --arg f32:1";
  REQUIRE(shell_line(launch, folder.path()).status == 0);
  REQUIRE(shell_line("KILN_ENV='" + kept + "'; export KILN_ENV; " + launch, folder.path()).status == 0);
  const json all = description();
  std::size_t run = 0;
  for (const json& command : all["commands"]) {
    for (const json& example : command["examples"]) {
      const std::string line = example["line"];
      CAPTURE(line);
      if (line.starts_with("kiln env clear")) shell_line("cp -r env cleared", folder.path());
      const ProcessResult result = shell_line(line, folder.path());
      CAPTURE(result.out);
      CAPTURE(result.err);
      CHECK(result.status == 0);
      CHECK(result.err == "");
      if (line.find('>') == std::string::npos) CHECK(result.out != "");
      if (line.starts_with("kiln env clear")) shell_line("rm -r env; mv cleared env", folder.path());
      ++run;
    }
  }
  CHECK(run >= all["commands"].size());
  for (const char* file : {"kiln.bash", "_kiln", "kiln.fish", "kiln.1", "out/saxpy.json"}) {
    CAPTURE(file);
    CHECK(std::filesystem::file_size(folder.file(file)) > 100);
  }
}

TEST_CASE("every command refuses an option that it has not, and names those near it, as a line and as a document") {
  const json all = description();
  for (const json& command : all["commands"]) {
    const std::vector<std::string> words = words_of(command["name"]);
    CAPTURE(command["name"].get<std::string>());
    check_refused(kiln_program(with(words, {"--jsom"})), 2, {"unknown option '--jsom'", "did you mean '--json'?"});
    const ProcessResult document = kiln_program(with(words, {"--nonsense-option", "--json"}));
    CHECK(document.status == 2);
    const json said = json_of(document);
    CHECK(said["exit"] == 2);
    CHECK(said["error"].get<std::string>().find("'--nonsense-option'") != std::string::npos);
    CHECK(document.err == "kiln: error: " + said["error"].get<std::string>() + "\n");
    // One letter of its name forgotten.
    std::vector<std::string> misspelt = words;
    misspelt.back().erase(1, 1);
    check_refused(kiln_program(misspelt), 2, {"'" + misspelt.back() + "'", "did you mean", "'" + words.back() + "'"});
  }
}

TEST_CASE("every command says which of its words are missing") {
  const json all = description();
  for (const json& command : all["commands"]) {
    bool needs = false;
    for (const json& option : command["options"]) needs = needs || option["required"].get<bool>();
    if (!needs) continue;
    CAPTURE(command["name"].get<std::string>());
    const ProcessResult result = kiln_program(words_of(command["name"]));
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK(result.err.starts_with("kiln: error: "));
    CHECK(result.err.find("required") != std::string::npos);
  }
}

TEST_CASE("what a shell offers as an architecture is what the code generator has") {
  const std::string refusal = kiln_program({"emit", kSaxpy, "--arch", "nothing_like_it", "--emit", "ptx", "-o", "/nonexistent"}).err;
  std::string names = refusal.substr(refusal.find("there are: ") + 11);
  names.pop_back();
  for (std::size_t at = 0; (at = names.find(", ", at)) != std::string::npos;) names.replace(at, 2, " ");
  CHECK(kiln_program({"completions", "bash"}).out.find("'list " + names + "'") != std::string::npos);
}
