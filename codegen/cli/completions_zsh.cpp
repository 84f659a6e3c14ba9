// For zsh.
#include "command_table.h"
#include "completions.h"

namespace kiln::cli {
namespace {

// Within a specification of _arguments ':' ends a part and '[' ']' hold the description.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// ":message:action"
std::string action(const OptionSpec& o) {
  const std::string message = ":" + plain(o.value.empty() ? o.name : o.value) + ":";
  switch (o.words) {
    case Words::Any: return message + " ";
    case Words::Source: return message + "_files -g \"*.(kir|so)(-.)\"";
    case Words::Kernel: return message + "_kiln_kernels";
    case Words::File: return message + "_files";
    case Words::Folder: return message + "_files -/";
    case Words::Choice: break;
  }
  std::string choices;
  for (const std::string& c : o.choices) choices += (choices.empty() ? "" : " ") + plain(c);
  return message + (o.takes == Takes::List ? "_sequence _values -s , " + plain(o.value) + " " + choices : "(" + choices + ")");
}

std::string function_of(const std::string& command) {
  std::string name = "_kiln_" + command;
  for (char& c : name)
    if (c == ' ') c = '_';
  return name;
}

std::string described(const std::string& name, const std::string& what) {
  std::string plain_what;
  for (const char c : what) plain_what += c == ':' ? std::string("\\:") : std::string(1, c);
  return "    " + quoted_for_shell(name + ":" + plain_what) + "\n";
}

// A function that offers the commands below a word and goes on with the one that is there.
std::string dispatcher(const std::string& group) {
  const std::string name = group.empty() ? "_kiln" : function_of(group);
  std::string text = name + "() {\n  local context state state_descr line\n  typeset -A opt_args\n  local -a names\n  names=(\n";
  if (group.empty())
    for (const GroupSpec& g : groups()) text += described(g.name, g.summary);
  for (const CommandSpec& c : commands()) {
    const std::size_t space = c.name.find(' ');
    if ((space == std::string::npos ? "" : c.name.substr(0, space)) != group) continue;
    text += described(space == std::string::npos ? c.name : c.name.substr(space + 1), c.summary);
  }
  if (group.empty()) text += described("help", "The help of a command");
  text += "  )\n  _arguments -C '--help[Options and examples]' ";
  if (group.empty()) text += "'--version[The version]' ";
  text += "'1: :->name' '*:: :->rest'\n  case $state in\n    name) _describe command names ;;\n    rest)\n";
  if (group.empty()) text += "      if [[ $line[1] == help ]]; then _describe command names; return; fi\n";
  text += "      (( $+functions[" + name + "_${line[1]}] )) && " + name + "_${line[1]}\n      ;;\n  esac\n}\n";
  return text;
}

}  // namespace

std::string zsh_completions() {
  std::string text = R"sh(#compdef kiln
# zsh completion of kiln; made by 'kiln completions zsh'

# The names of a text; a library would have to be loaded.
_kiln_kernels() {
  local source=${(Q)line[1]/#\~\//$HOME/}
  local -a names
  [[ $source == *.kir ]] && names=(${(f)"$(kiln list $source 2>/dev/null | sed -n 's/^\([^ (]*\)(.*/\1/p')"})
  compadd -a names
}
)sh";
  for (const CommandSpec& c : commands()) {
    text += function_of(c.name) +
            "() {\n  local line state\n  typeset -A opt_args\n  _arguments -S \\\n    '--help[Options and examples]' \\\n    " +
            quoted_for_shell("--json[" + plain(json_option().what) + "]");
    std::size_t position = 0;
    for (const OptionSpec& o : c.options) {
      if (o.positional()) {
        const std::string at = o.takes == Takes::Several ? "*" : std::to_string(++position);
        text += " \\\n    " + quoted_for_shell(at + action(o));
        continue;
      }
      const std::string again = o.takes == Takes::Each || o.takes == Takes::List ? "*" : "";
      for (const std::string& s : o.spellings()) {
        const std::string equals = o.takes != Takes::Nothing && s.starts_with("--") ? "=" : "";
        text +=
            " \\\n    " + quoted_for_shell(again + s + equals + "[" + plain(o.what) + "]" + (o.takes == Takes::Nothing ? "" : action(o)));
      }
    }
    text += "\n}\n";
  }
  for (const GroupSpec& g : groups()) text += dispatcher(g.name);
  text += dispatcher("");
  text += "\nif [[ $funcstack[1] == _kiln ]]; then\n  _kiln \"$@\"\nelse\n  compdef _kiln kiln\nfi\n";
  return text;
}

}  // namespace kiln::cli
