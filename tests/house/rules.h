// The dependency rules of the tree as a table, and a scanner that finds what breaks them.
#pragma once
#include <string>
#include <vector>

namespace kiln::house {

struct Violation {
  std::string file;  // relative to the root
  int line = 0;
  std::string what;
};

// Every source file below `root` (product, samples and tests), against the rules. `root` needs the layout of the repository, parts may be
// missing.
std::vector<Violation> find_violations(const std::string& root);

std::string to_string(const std::vector<Violation>& violations);

}  // namespace kiln::house
