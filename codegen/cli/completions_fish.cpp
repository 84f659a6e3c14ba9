// For fish.
#include "command_table.h"
#include "completions.h"

namespace kiln::cli {
namespace {

std::string in_quotes(const std::string& text) {  // fish knows two escapes within quotes
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

std::string in_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : " ") + w;
  return text;
}

// " -f -a '...'": what is offered in the word's place.
std::string offered(const OptionSpec& o) {
  switch (o.words) {
    case Words::Any: return " -f";
    case Words::Source: return " -f -a '(__kiln_sources)'";
    case Words::Kernel: return " -f -a '(__kiln_kernels)'";
    case Words::File: return " -F";
    case Words::Folder: return " -f -a '(__fish_complete_directories)'";
    case Words::Choice:
      return o.takes == Takes::List ? " -f -a '(__kiln_list " + in_words(o.choices) + ")'" : " -f -a " + in_quotes(in_words(o.choices));
  }
  return "";
}

}  // namespace

std::string fish_completions() {
  std::string text = R"sh(# fish completion of kiln; made by 'kiln completions fish'

# The command of the line: its words, without those behind it.
function __kiln_command
    set -l words (commandline -opc)[2..-1]
    test "$words[1]" = help; and set -e words[1]
    set -l groups)sh";
  for (const GroupSpec& g : groups()) text += " " + g.name;
  text += R"sh(
    if contains -- "$words[1]" $groups
        echo (string join ' ' -- $words[1..2])
    else
        echo $words[1]
    end
end
function __kiln_is
    test (string join ' ' -- (__kiln_command)) = "$argv"
end
# The words behind the command that are neither options nor their values.
function __kiln_positionals
    set -l words (commandline -opc)[2..-1]
    set -l command (string split ' ' -- (__kiln_command))
    set -l value
    for word in $words[(math (count $command) + 1)..-1]
        if test -n "$value"
            set value
        else if string match -q -- '-*' $word
            set -l takes (__kiln_takes "$command")
            contains -- $word (string split ' ' -- $takes); and set value $word
        else
            echo $word
        end
    end
end
function __kiln_at # COMMAND POSITION [more]
    __kiln_is $argv[1]; or return 1
    set -l there (count (__kiln_positionals))
    test $there -eq $argv[2]; and return 0
    test (count $argv) -gt 2; and test $there -gt $argv[2]
end
function __kiln_sources
    __fish_complete_suffix .kir
    __fish_complete_suffix .so
end
# The names of a text; a library would have to be loaded.
function __kiln_kernels
    set -l source (__kiln_positionals)[1]
    string match -q -- '*.kir' "$source"; and kiln list (string replace -r '^~/' "$HOME/" -- $source) 2>/dev/null | string match -rg '^([^ (]+)\('
end
# Names behind commas.
function __kiln_list
    set -l before (string match -r '^.*,' -- (commandline -ct))
    for name in $argv
        echo $before$name
    end
end
# The options of a command that a value stands behind.
function __kiln_takes
    switch "$argv"
)sh";
  for (const CommandSpec& c : commands()) {
    std::string takes;
    for (const OptionSpec& o : c.options)
      if (!o.positional() && o.takes != Takes::Nothing) takes += (takes.empty() ? "" : " ") + in_words(o.spellings());
    if (!takes.empty()) text += "        case " + in_quotes(c.name) + "\n            echo " + in_quotes(takes) + "\n";
  }
  text += "    end\nend\n\ncomplete -c kiln -f\n";
  text += "complete -c kiln -n '__kiln_is \"\"' -l version -d 'The version'\n";
  text += "complete -c kiln -l help -s h -d 'Options and examples'\n";
  text += "complete -c kiln -n '__kiln_is \"\"' -a help -d 'The help of a command'\n";
  for (const GroupSpec& g : groups()) text += "complete -c kiln -n '__kiln_is \"\"' -a " + g.name + " -d " + in_quotes(g.summary) + "\n";
  for (const CommandSpec& c : commands()) {
    const std::size_t space = c.name.find(' ');
    const std::string above = space == std::string::npos ? "" : c.name.substr(0, space);
    text += "complete -c kiln -n " + in_quotes("__kiln_is \"" + above + "\"") + " -a " +
            (space == std::string::npos ? c.name : c.name.substr(space + 1)) + " -d " + in_quotes(c.summary) + "\n";
    const std::string here = " -n " + in_quotes("__kiln_is \"" + c.name + "\"");
    text += "complete -c kiln" + here + " -l json -d " + in_quotes(json_option().what) + "\n";
    std::size_t position = 0;
    for (const OptionSpec& o : c.options) {
      if (o.positional()) {
        const std::string at = "__kiln_at \"" + c.name + "\" " + std::to_string(position++) + (o.takes == Takes::Several ? " more" : "");
        text += "complete -c kiln -n " + in_quotes(at) + offered(o) + "\n";
        continue;
      }
      text += "complete -c kiln" + here;
      for (const std::string& s : o.spellings()) text += s.starts_with("--") ? " -l " + s.substr(2) : " -s " + s.substr(1);
      text += " -d " + in_quotes(o.what);
      if (o.takes != Takes::Nothing) text += " -r" + offered(o);
      text += "\n";
    }
  }
  return text;
}

}  // namespace kiln::cli
