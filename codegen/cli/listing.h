// A kernel in all its forms, with the line of the source that each line of a form belongs to.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compile.h"

namespace kiln::cli {

// A line of a source file: which file of Listing::files, and which line (from 1). file -1: it belongs to none.
struct SourceLine {
  int file = -1;
  std::uint32_t line = 0;
  auto operator<=>(const SourceLine&) const = default;
  bool known() const { return file >= 0; }
};

struct FormLine {
  std::string text;
  SourceLine of;
};
struct Form {
  std::string name;  // "IR", "PTX", "sm_90"
  std::string note;  // why it is not there, or what it lacks; may be empty
  std::vector<FormLine> lines;
};

struct SourceFile {
  std::string name;                // as the compiler of the library was given it
  std::string path;                // where it was found; empty: nowhere
  std::vector<std::string> lines;  // the first is line 1
};

struct Listing {
  std::string kernel, arch;
  std::vector<SourceFile> files;
  std::vector<Form> forms;
};

// Where the sources of a kernel are looked for: in each of `folders`, which no name leads out of, and before that as they are named. That
// is not for a kernel that may be anybody's, who would name what is to be shown.
struct SourcePlaces {
  std::vector<std::string> folders;
  bool as_named = true;
};
Listing make_listing(const Variant& variant, const ir::Prepared& kernel, const CompileOptions& options, const SourcePlaces& places);

// The parts of it that need no compiler; each text as its program prints it.
std::vector<FormLine> lines_of_ir(const std::string& text);
// `names`: of the files, in the order of SourceLine::file; one that is not among them is added.
std::vector<FormLine> lines_of_ptx(const std::string& text, std::vector<std::string>& names);
std::vector<FormLine> lines_of_nvdisasm(const std::string& text, std::vector<std::string>& names);

// Side by side as text of that width, grouped by the lines of the source; and as a page of HTML with nothing outside of it.
std::string side_by_side(const Listing& listing, std::size_t width);
std::string html_page(const Listing& listing);
// Every line of the source that something belongs to, in the order of files and lines.
std::vector<SourceLine> used_lines(const Listing& listing);

}  // namespace kiln::cli
