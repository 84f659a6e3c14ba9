// What the shells make of `kiln completions`, and man of `kiln man`.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "cli/cli.h"

using namespace kiln::test;

namespace {

bool has_program(const std::string& name) { return run_process({"/bin/sh", "-c", "command -v " + name}).status == 0; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// A folder with a script, with `kiln` on PATH and with two sources.
struct Shell {
  TempFolder folder;
  std::string path = std::string(KILN_BINARY_DIR "/bin") + ":/usr/bin:/bin";
  explicit Shell(const std::string& name) {
    folder.write("completions", kiln_program({"completions", name}).out);
    std::filesystem::copy(kSaxpy, folder.file("saxpy.kir"));
    folder.write("libother.so", "");
  }
  ProcessResult run(const std::vector<std::string>& argv) const {
    return run_process(argv, {"PATH=" + path, "HOME=" + folder.path(), "XDG_CONFIG_HOME=" + folder.path()}, 60, folder.path());
  }
};

// What bash would offer at the end of the line.
std::vector<std::string> in_bash(const Shell& shell, const std::string& line) {
  const ProcessResult result = shell.run(
      {"/bin/bash", "--norc", "-c",
       "compopt() { :; }; . ./completions && COMP_LINE=$1 COMP_POINT=${#1} && _kiln && printf '%s\\n' \"${COMPREPLY[@]}\"", "bash", line});
  CAPTURE(line);
  CHECK(result.status == 0);
  CHECK(result.err == "");
  std::vector<std::string> lines = lines_of(result.out);
  std::sort(lines.begin(), lines.end());
  return lines;
}

bool holds(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("bash completes commands, options, values, kernels of a text and sources") {
  const Shell shell("bash");
  CHECK(in_bash(shell, "kiln de") == Strings{"devices"});
  CHECK(holds(in_bash(shell, "kiln "), "run"));
  CHECK(in_bash(shell, "kiln env ver") == Strings{"verify"});
  CHECK(in_bash(shell, "kiln help env ver") == Strings{"verify"});
  CHECK(in_bash(shell, "kiln run --gr") == Strings{"--grid"});
  CHECK(in_bash(shell, "kiln show saxpy.kir ") == Strings{"saxpy"});
  CHECK(in_bash(shell, "kiln show saxpy.kir saxpy --mode unc") == Strings{"unchecked"});
  CHECK(in_bash(shell, "kiln show --mode checked saxpy.kir ") == Strings{"saxpy"});
  CHECK(in_bash(shell, "kiln show --mode=unc") == Strings{"unchecked"});  // bash has "--mode=" as a word of its own
  CHECK(in_bash(shell, "kiln emit saxpy.kir --arch sm_80,sm_90") == Strings{"sm_80,sm_90", "sm_80,sm_90a"});
  CHECK(in_bash(shell, "kiln emit saxpy.kir --emit pt") == Strings{"ptx"});
  CHECK(in_bash(shell, "kiln run saxpy.kir saxpy --device cuda:0") == Strings{"0"});  // and "cuda", ":"
  CHECK(in_bash(shell, "kiln completions f") == Strings{"fish"});
  CHECK(in_bash(shell, "kiln list s") == Strings{"saxpy.kir"});
  CHECK(in_bash(shell, "kiln list ") == Strings{"libother.so", "saxpy.kir"});
  CHECK(in_bash(shell, "kiln show libother.so ") == Strings{""});  // not loaded
}

TEST_CASE("fish reads its script and completes from it, where there is a fish") {
  if (!has_program("fish")) return;
  const Shell shell("fish");
  const auto in_fish = [&](const std::string& line) {
    const ProcessResult result = shell.run({"fish", "--no-config", "-c", "source ./completions; complete -C '" + line + "'"});
    CAPTURE(line);
    CHECK(result.status == 0);
    CHECK(result.err == "");
    Strings words;
    for (const std::string& l : lines_of(result.out)) words.push_back(l.substr(0, l.find('\t')));
    return words;
  };
  CHECK(in_fish("kiln de") == Strings{"devices"});
  CHECK(in_fish("kiln env ver") == Strings{"verify"});
  CHECK(in_fish("kiln run --gr") == Strings{"--grid"});
  CHECK(in_fish("kiln show saxpy.kir ") == Strings{"saxpy"});
  CHECK(in_fish("kiln show saxpy.kir saxpy --mode unc") == Strings{"unchecked"});
  CHECK(in_fish("kiln emit saxpy.kir --arch sm_80,sm_90") == Strings{"sm_80,sm_90", "sm_80,sm_90a"});
  CHECK(in_fish("kiln completions z") == Strings{"zsh"});
  CHECK(holds(in_fish("kiln list s"), "saxpy.kir"));
}

TEST_CASE("zsh reads its script and completes from it, where there is a zsh") {
  if (!has_program("zsh")) return;
  const Shell shell("zsh");
  shell.folder.write("_kiln", read_file(shell.folder.file("completions")));
  // A terminal of zsh's own, in which a key tells what the tabulator made of the line.
  shell.folder.write("drive.zsh", R"(zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PROMPT=; fpath=($PWD $fpath); autoload -U compinit; compinit -u -D'
zpty -w shell 'report() { print -r -- "<$BUFFER>" }; zle -N report; bindkey "^T" report; print rea""dy'
zpty -r shell out '*ready*'
zpty -w -n shell "$1"$'\t\x14'
zpty -r shell out '*<*>*'
print -r -- $out
)");
  const auto in_zsh = [&](const std::string& line) {
    const ProcessResult result = shell.run({"env", "TERM=dumb", "zsh", "-f", "drive.zsh", line});
    CAPTURE(line);
    CHECK(result.status == 0);
    CHECK(result.err == "");
    return result.out;
  };
  CHECK(in_zsh("kiln de").find("<kiln devices >") != std::string::npos);
  CHECK(in_zsh("kiln env ver").find("<kiln env verify >") != std::string::npos);
  CHECK(in_zsh("kiln run --gr").find("<kiln run --grid=>") != std::string::npos);
  CHECK(in_zsh("kiln show saxpy.kir sa").find("<kiln show saxpy.kir saxpy >") != std::string::npos);
  CHECK(in_zsh("kiln show saxpy.kir saxpy --mode unc").find("<kiln show saxpy.kir saxpy --mode unchecked >") != std::string::npos);
  CHECK(in_zsh("kiln emit saxpy.kir --arch sm_75,x86-64-v").find("<kiln emit saxpy.kir --arch sm_75,x86-64-v>") != std::string::npos);
  CHECK(in_zsh("kiln completions f").find("<kiln completions fish >") != std::string::npos);
}

TEST_CASE("a shell that there is not is refused with those that there are") {
  check_refused(kiln_program({"completions", "bsh"}), 2, {"unknown shell 'bsh'", "did you mean 'bash'", "fish"});
  check_refused(kiln_program({"completions", "tcsh"}), 2, {"unknown shell 'tcsh'", "bash, zsh, fish"});
}

TEST_CASE("the manual page has each command with its options and examples, and nothing that the formatter complains of") {
  const ProcessResult page = kiln_program({"man"});
  CHECK(page.status == 0);
  const TempFolder folder;
  const std::string file = folder.write("kiln.1", page.out);
  for (const auto& command : json_of(kiln_program({"man", "--json"}))["commands"]) {
    std::string name = command["usage"];
    for (std::size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2) name.insert(at, "\\");
    CHECK(page.out.find(".SS " + name + "\n") != std::string::npos);
  }
  CHECK(page.out.find("KILN_ENV") != std::string::npos);
  if (!has_program("groff")) return;
  const ProcessResult formatted = run_process({"groff", "-man", "-Tascii", "-ww", file});
  CHECK(formatted.status == 0);
  CHECK(formatted.err == "");
  CHECK(formatted.out.find("kiln run") != std::string::npos);
}
