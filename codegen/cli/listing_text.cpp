// A listing as text: each line of the source, and below it what belongs to it, side by side.
#include <algorithm>

#include "listing.h"

namespace kiln::cli {
namespace {

// Columns are of characters, so far as they are one place wide each; tabulators become spaces, and control characters dots.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\t') out += std::string(4 - out.size() % 4, ' ');
    else out += static_cast<unsigned char>(c) < 32 ? '.' : c;
  }
  return out;
}
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }  // of a character of several bytes
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

// In pieces of at most `width` characters; the later ones are indented.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> pieces;
  std::string rest = plain(text);
  while (width_of(rest) > width) {
    std::size_t bytes = 0, characters = 0;
    while (bytes < rest.size() && (characters < width || continues(rest[bytes]))) characters += continues(rest[bytes++]) ? 0 : 1;
    // At a space, where one is in the second half.
    const std::size_t space = rest.rfind(' ', bytes);
    if (space != std::string::npos && space > bytes / 2 && space != 0) bytes = space;
    pieces.push_back(rest.substr(0, bytes));
    rest = "  " + rest.substr(bytes + (bytes < rest.size() && rest[bytes] == ' ' ? 1 : 0));
  }
  pieces.push_back(rest);
  return pieces;
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t now = width_of(text);
  if (now < width) text.append(width - now, ' ');
  return text;
}

std::string trimmed(std::string line) {
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

std::string row(const std::vector<std::vector<std::string>>& cells, std::size_t width) {
  std::size_t height = 0;
  for (const auto& c : cells) height = std::max(height, c.size());
  std::string text;
  for (std::size_t i = 0; i < height; ++i) {
    std::string line = "    ";
    for (std::size_t c = 0; c < cells.size(); ++c)
      line += (c == 0 ? "" : " | ") + padded(i < cells[c].size() ? cells[c][i] : std::string(), width);
    text += trimmed(line);
  }
  return text;
}

std::string group(const Listing& listing, SourceLine of, std::size_t width) {
  std::vector<std::vector<std::string>> cells;
  bool any = false;
  for (const Form& form : listing.forms) {
    std::vector<std::string> cell;
    for (const FormLine& line : form.lines) {
      if (line.of != of) continue;
      std::string text = line.text;
      text.erase(0, text.find_first_not_of(" \t") == std::string::npos ? 0 : text.find_first_not_of(" \t"));
      for (std::string& piece : wrapped(text, width)) cell.push_back(std::move(piece));
    }
    any = any || !cell.empty();
    cells.push_back(std::move(cell));
  }
  return any ? row(cells, width) : "";
}

}  // namespace

std::string side_by_side(const Listing& listing, std::size_t width) {
  const std::size_t forms = std::max<std::size_t>(1, listing.forms.size());
  const std::size_t column = std::max<std::size_t>(20, (std::max<std::size_t>(width, 4) - 4) / forms - 3);
  std::string text = listing.kernel + ", " + listing.arch + "\n";
  for (const Form& form : listing.forms)
    if (!form.note.empty()) text += form.name + ": " + form.note + "\n";
  std::vector<std::vector<std::string>> names, rules;
  for (const Form& form : listing.forms) names.push_back({form.name}), rules.push_back({std::string(column, '-')});
  text += "\n" + row(names, column) + row(rules, column);
  int file = -1;
  for (const SourceLine& at : used_lines(listing)) {
    const SourceFile* source =
        static_cast<std::size_t>(at.file) < listing.files.size() ? &listing.files[static_cast<std::size_t>(at.file)] : nullptr;
    if (at.file != file) {
      file = at.file;
      text += "\n" + (source != nullptr ? plain(source->name) : std::string("?"));
      if (source == nullptr || source->path.empty()) text += ": the source was not found; --source-root names a folder to look in";
      else if (source->path != source->name) text += ": " + plain(source->path);
      text += "\n";
    }
    const bool there = source != nullptr && at.line >= 1 && at.line <= source->lines.size();
    text += trimmed(padded(std::to_string(at.line), 5) + (there ? " " + plain(source->lines[at.line - 1]) : ""));
    text += group(listing, at, column);
  }
  if (const std::string rest = group(listing, {}, column); !rest.empty()) text += "\nof no line\n" + rest;
  return text;
}

}  // namespace kiln::cli
