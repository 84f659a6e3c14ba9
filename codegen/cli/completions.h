// Scripts that complete command lines of kiln, one function a shell.
#pragma once
#include <string>
#include <vector>

namespace kiln::cli {

const std::vector<std::string>& shells();
std::string completions(const std::string& shell);  // throws a usage error for a shell that there is not

std::string bash_completions();
std::string zsh_completions();
std::string fish_completions();

// For all three: a word that the shell takes literally, and the words that may stand after "kiln" or after "kiln GROUP".
std::string quoted_for_shell(const std::string& text);
std::vector<std::string> words_below(const std::string& group);

}  // namespace kiln::cli
