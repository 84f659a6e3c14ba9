// What stands in a page, and in the sources that it is about.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace kiln::house {

// The words inside `code` and blocks of a page.
std::set<std::string> code_words(const std::string& page);

// The words of the C++ blocks alone, without their comments.
std::set<std::string> example_words(const std::string& page);

// The rows of the tables of a page, as their cells; header rows and rulers left out.
std::vector<std::vector<std::string>> table_rows(const std::string& page);

// The parts of a cell between backticks (one or two of them).
std::vector<std::string> quoted(const std::string& cell);

// The string literals of a C++ source, adjacent ones as one; not those of includes and comments.
std::vector<std::string> literals(const std::string& source);

std::size_t word_count(const std::string& text);

}  // namespace kiln::house
