// The pages of docs/ and the code they show. A block below a line `<!-- shows: PATH -->` is a copy of that file, or of a part of it:
//
//   <!-- shows: tests/docs/values_test.cpp#best -->      the lines between `// example: best` and `// end` in it
//   <!-- shows: tests/docs/values_test.cpp#best,use -->  two of them, one below the other
//   <!-- shows: tests/package/project/CMakeLists.txt#embed -->  the same of a list file of CMake, between `# example: embed` and `# end`
//   <!-- shows: tests/misuse/cases/mix_value.cpp -->     a mistake that must not compile, without its first lines
//   <!-- shows: tests/misuse/cases/mix_value.cpp#expect -->  the sentence that the compiler prints for it
//   <!-- shows: tests/docs/texts/bounds.txt -->          a text that tests/docs compares with what the program prints
//
// Below `<!-- lists: tests/misuse/cases -->` stands a table of all those mistakes and their sentences, below
// `<!-- lists: runtime/cuda/errors.cpp -->` one of the results of the CUDA driver that its table explains.
// What the block or table holds is written by ./dev docs, never by hand.
#pragma once
#include <string>
#include <vector>

namespace kiln::house {

struct Region {
  std::string name;
  int first_line = 0;  // of the file, from 1: the first line shown
  std::string text;    // without what all its lines are indented by; ends with a newline
};

// The regions of a source file. Throws std::runtime_error, naming the file and line, where one does not end, begins inside another, is
// empty or has the name of another.
std::vector<Region> regions(const std::string& file);

// One `<!-- shows: ... -->` of a page.
struct Shown {
  std::string path;                // relative to the root
  std::vector<std::string> parts;  // regions; empty: the whole file
  int line = 0;
};
std::vector<Shown> shown(const std::string& page_text);

// The page with each block as its source has it. Throws std::runtime_error, naming the line, where a source or a region is not there.
std::string rendered(const std::string& root, const std::string& page_text);

// The Markdown pages that hold such blocks or may: README.md and everything below docs/, relative to the root, sorted.
std::vector<std::string> pages(const std::string& root);

}  // namespace kiln::house
