// Naming things in errors: what was meant, and what there is.
#pragma once
#include <string>
#include <vector>

namespace kiln::cli {

// "'a', 'b' and 'c'", with `last` before the last; "nothing" when empty; at most `most`, then how many more.
std::string quoted_list(const std::vector<std::string>& names, std::size_t most = 20, const std::string& last = "and");
std::string plain_list(const std::vector<std::string>& names);  // "a, b, c"
// The names within a few edits of `wanted`, nearest first, at most three.
std::vector<std::string> near_names(const std::string& wanted, const std::vector<std::string>& names);
// "unknown THING 'wanted'; did you mean 'x'? there are: ...".
std::string unknown(const std::string& thing, const std::string& wanted, const std::vector<std::string>& names);

}  // namespace kiln::cli
