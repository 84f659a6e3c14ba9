// kiln completions: a script for bash, zsh or fish, made of the table of commands.
#include "completions.h"

#include <cstdio>

#include "command_table.h"
#include "names.h"

namespace kiln::cli {

const std::vector<std::string>& shells() {
  static const std::vector<std::string> all{"bash", "zsh", "fish"};
  return all;
}

std::string completions(const std::string& shell) {
  if (shell == "bash") return bash_completions();
  if (shell == "zsh") return zsh_completions();
  if (shell == "fish") return fish_completions();
  usage(unknown("shell", shell, shells()));
}

int completions_command(const Options& options) {
  const std::string text = completions(options.shell);
  if (options.json) print_json({{"shell", options.shell}, {"text", text}});
  else std::fwrite(text.data(), 1, text.size(), stdout);
  return kDone;
}

std::string quoted_for_shell(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> words_below(const std::string& group) {
  std::vector<std::string> words;
  for (const CommandSpec& c : commands()) {
    const std::size_t space = c.name.find(' ');
    if (group.empty() && space == std::string::npos) words.push_back(c.name);
    if (!group.empty() && space != std::string::npos && c.name.substr(0, space) == group) words.push_back(c.name.substr(space + 1));
  }
  if (group.empty())
    for (const GroupSpec& g : groups()) words.push_back(g.name);
  return words;
}

}  // namespace kiln::cli
