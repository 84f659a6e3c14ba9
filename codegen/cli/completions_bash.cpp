// For bash. The words of the line are taken from the line itself: bash cuts them at ':' and '=', which names of devices and of variants
// hold.
#include "command_table.h"
#include "completions.h"

namespace kiln::cli {
namespace {

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : " ") + w;
  return text;
}

// What may stand in a word's place, as the script's helper reads it: a class, then the choices.
std::string class_of(const OptionSpec& o) {
  switch (o.words) {
    case Words::Any: return "any";
    case Words::Source: return "source";
    case Words::Kernel: return "kernel";
    case Words::File: return "file";
    case Words::Folder: return "folder";
    case Words::Choice: return (o.takes == Takes::List ? "list " : "choice ") + joined_words(o.choices);
  }
  return "any";
}

}  // namespace

std::string bash_completions() {
  std::string text = R"sh(# bash completion of kiln; made by 'kiln completions bash'

# Names after 'kiln' or after a word that only leads to commands.
_kiln_below() {
  case $1 in
)sh";
  text += "    '') echo " + quoted_for_shell(joined_words(words_below("")) + " help --help --version") + " ;;\n";
  for (const GroupSpec& g : groups())
    text += "    " + g.name + ") echo " + quoted_for_shell(joined_words(words_below(g.name)) + " --help") + " ;;\n";
  text += R"sh(    *) return 1 ;;
  esac
}

# The options of a command.
_kiln_options() {
  case $1 in
)sh";
  for (const CommandSpec& c : commands()) {
    std::string options = "--help --json";
    for (const OptionSpec& o : c.options)
      if (!o.positional()) options += " " + joined_words(o.spellings());
    text += "    " + quoted_for_shell(c.name) + ") echo " + quoted_for_shell(options) + " ;;\n";
  }
  text += R"sh(  esac
}

# What an option takes, or the positional of a number ("run 0"); nothing for a flag. The last positional may be there several times.
_kiln_takes() {
  case $1 in
)sh";
  for (const CommandSpec& c : commands()) {
    std::size_t position = 0;
    for (const OptionSpec& o : c.options) {
      if (o.takes == Takes::Nothing) continue;
      std::string pattern;
      if (o.positional()) {
        pattern = quoted_for_shell(c.name + " " + std::to_string(position++)) +
                  (o.takes == Takes::Several ? "|" + quoted_for_shell(c.name + " ") + "[0-9]*" : "");
      } else {
        for (const std::string& s : o.spellings()) pattern += (pattern.empty() ? "" : "|") + quoted_for_shell(c.name + " " + s);
      }
      text += "    " + pattern + ") echo " + quoted_for_shell(class_of(o)) + " ;;\n";
    }
  }
  text += R"sh(  esac
}

_kiln() {
  local line=${COMP_LINE:0:COMP_POINT} cur command='' takes='' expecting='' source='' word i
  local -a words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  cur=${words[${#words[@]}-1]}
  local positional=0
  for ((i = 1; i < ${#words[@]} - 1; ++i)); do
    word=${words[i]}
    if [[ $expecting ]]; then
      expecting=''
    elif [[ -z $(_kiln_options "$command") ]]; then
      [[ $word == help ]] || command="${command:+$command }$word"
    elif [[ $word == -* ]]; then
      [[ $word != *=* && -n $(_kiln_takes "$command $word") ]] && expecting=$word
    else
      [[ $positional == 0 ]] && source=$word
      ((++positional))
    fi
  done

  local offered='' prefix='' from=$cur
  COMPREPLY=()
  if [[ $expecting ]]; then
    takes=$(_kiln_takes "$command $expecting")
  elif [[ $cur == --*=* ]]; then
    takes=$(_kiln_takes "$command ${cur%%=*}")
    prefix=${cur%%=*}= from=${cur#*=}
  elif [[ -z $(_kiln_options "$command") ]]; then
    takes="choice $(_kiln_below "$command")"
  elif [[ $cur == -* ]]; then
    takes="choice $(_kiln_options "$command")"
  else
    takes=$(_kiln_takes "$command $positional")
  fi
  case $takes in
    choice\ *) offered=${takes#choice } ;;
    list\ *)
      offered=${takes#list }
      if [[ $from == *,* ]]; then
        prefix+=${from%,*}, from=${from##*,}
      fi
      ;;
    kernel)
      # The names of a text; a library would have to be loaded.
      [[ ${source/#\~\//$HOME/} == *.kir ]] && offered=$(kiln list "${source/#\~\//$HOME/}" 2>/dev/null | sed -n 's/^\([^ (]*\)(.*/\1/p')
      ;;
    source)
      compopt -o filenames 2>/dev/null
      local IFS=$'\n'
      COMPREPLY=($(compgen -d -- "$from") $(compgen -f -X '!*.@(kir|so)' -- "$from"))
      return
      ;;
    file) compopt -o default 2>/dev/null; return ;;
    folder) compopt -o dirnames 2>/dev/null; return ;;
    *) return ;;
  esac
  local IFS=$' \t\n'
  COMPREPLY=($(compgen -W "$offered" -- "$from"))
  COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
  # Bash puts the answer in the place of what stands behind the last of its separators.
  local breaks
  for breaks in : =; do
    if [[ $cur == *"$breaks"* && $COMP_WORDBREAKS == *"$breaks"* ]]; then
      local before=${cur%"${cur##*"$breaks"}"}
      COMPREPLY=("${COMPREPLY[@]#"$before"}")
    fi
  done
}
shopt -s extglob
complete -F _kiln kiln
)sh";
  return text;
}

}  // namespace kiln::cli
