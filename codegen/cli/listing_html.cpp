// A listing as one page of HTML, with nothing outside of it: the forms in columns, each whole and in its own order. What belongs to the
// line under the pointer is marked by rules of CSS, one a line of the source; a script of a few lines only keeps a mark that was clicked,
// and brings what it marks into view.
#include <map>

#include "listing.h"

namespace kiln::cli {
namespace {

// Bytes as UTF-8 of HTML: markup as entities, what is no UTF-8 and no character of a text as U+FFFD.
std::string escaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    bool good = length != 0 && i + length <= text.size();
    for (std::size_t k = 1; good && k < length; ++k) good = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    if (good && length == 3) {  // no overlong form, no half of a surrogate
      const auto d = static_cast<unsigned char>(text[i + 1]);
      good = !(c == 0xe0 && d < 0xa0) && !(c == 0xed && d >= 0xa0);
    }
    if (good && length == 4) {
      const auto d = static_cast<unsigned char>(text[i + 1]);
      good = !(c == 0xf0 && d < 0x90) && !(c == 0xf4 && d >= 0x90);
    }
    if (!good || (c < 32 && c != '\t') || c == 127) {
      out += "\xef\xbf\xbd";
      ++i;
      continue;
    }
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else if (c == '\'') out += "&#39;";
    else out += text.substr(i, length);
    i += length;
  }
  return out;
}

std::string class_of(SourceLine of) { return "l" + std::to_string(of.file) + "-" + std::to_string(of.line); }

std::string line_html(const std::string& text, SourceLine of, bool used, const std::string& number) {
  std::string out = "<div class=\"line";
  if (used) out += " of " + class_of(of);
  out += "\"";
  if (used) out += " tabindex=\"0\"";
  out += ">";
  if (!number.empty()) out += "<span class=\"n\">" + number + "</span>";
  return out + "<code>" + (text.empty() ? " " : escaped(text)) + "</code></div>\n";
}

constexpr const char* kStyle = R"(
body { margin: 0; font: 14px/1.4 system-ui, sans-serif; color: #1b1f24; background: #fff; }
header { padding: 10px 14px; border-bottom: 1px solid #d0d7de; }
h1 { font-size: 16px; margin: 0; } h2 { font-size: 13px; margin: 0; padding: 6px 10px; background: #f2f4f7; border-bottom: 1px solid #d0d7de; position: sticky; top: 0; }
h3 { font-size: 12px; margin: 0; padding: 4px 10px; color: #57606a; font-weight: normal; }
p.note { margin: 0; padding: 6px 10px; color: #57606a; }
main { display: flex; align-items: stretch; height: calc(100vh - 62px); }
section { flex: 1 1 0; min-width: 0; overflow: auto; border-right: 1px solid #d0d7de; }
.line { white-space: pre; padding: 0 10px; min-width: max-content; }
.line code { font: 12px/1.5 ui-monospace, monospace; }
.n { display: inline-block; width: 4ch; margin-right: 1ch; color: #8c959f; text-align: right; font: 12px/1.5 ui-monospace, monospace; user-select: none; }
.of { background: #f6f8fa; cursor: pointer; } .of:focus { outline: none; }
.kept { box-shadow: inset 3px 0 #bf8700; background: #fff1c2; }
@media (prefers-color-scheme: dark) {
  body { color: #dfe4ea; background: #14181d; } h2 { background: #1e242b; } header, h2, section { border-color: #343c45; }
  .of { background: #1a2027; } .kept { background: #4a3a10; }
}
@media print { main { display: block; height: auto; } section { border: 0; } }
)";

constexpr const char* kScript = R"(
document.addEventListener('click', function (event) {
  var line = event.target.closest ? event.target.closest('.of') : null;
  var kept = document.querySelectorAll('.kept');
  for (var i = 0; i < kept.length; ++i) kept[i].classList.remove('kept');
  if (!line) return;
  var all = document.getElementsByClassName(line.classList[2]), seen = [line.parentNode];
  for (var j = 0; j < all.length; ++j) {
    all[j].classList.add('kept');
    if (seen.indexOf(all[j].parentNode) >= 0) continue;
    seen.push(all[j].parentNode);
    all[j].parentNode.scrollTop = all[j].offsetTop - all[j].parentNode.offsetTop - 80;
  }
});
)";

// The whole file where it is small, else what lies around the lines that are used.
std::string source_html(const Listing& listing, std::size_t number, const std::vector<SourceLine>& used) {
  constexpr std::size_t kWhole = 2000, kAround = 10;
  const SourceFile& file = listing.files[number];
  std::string out = "<h3>" + escaped(file.path.empty() ? file.name : file.path) + "</h3>\n";
  if (file.path.empty()) out += "<p class=\"note\">The source was not found; --source-root names a folder to look in.</p>\n";
  std::map<std::uint32_t, bool> shown;  // line -> used
  for (const SourceLine& u : used) {
    if (static_cast<std::size_t>(u.file) != number) continue;
    const std::size_t first = u.line > kAround ? u.line - kAround : 1;
    for (std::size_t l = first; l <= std::min<std::size_t>(u.line + kAround, file.lines.size()); ++l)
      shown.emplace(static_cast<std::uint32_t>(l), false);
    shown[u.line] = true;
  }
  if (file.lines.size() <= kWhole)
    for (std::size_t l = 1; l <= file.lines.size(); ++l) shown.emplace(static_cast<std::uint32_t>(l), false);
  std::uint32_t last = 0;
  for (const auto& [line, is_used] : shown) {
    if (last != 0 && line != last + 1) out += "<p class=\"note\">&hellip;</p>\n";
    last = line;
    const std::string text = line >= 1 && line <= file.lines.size() ? file.lines[line - 1] : "";
    out += line_html(text, {static_cast<int>(number), line}, is_used, std::to_string(line));
  }
  return out;
}

}  // namespace

std::string html_page(const Listing& listing) {
  const std::vector<SourceLine> used = used_lines(listing);
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" +
                    escaped(listing.kernel + ", " + listing.arch) + "</title>\n<style>" + kStyle;
  for (const SourceLine& u : used) {
    const std::string c = "." + class_of(u);
    out += "body:has(" + c + ":hover) " + c + ", body:has(" + c + ":focus) " + c + " { background: #ffe08a; color: #1b1f24; }\n";
  }
  out += "</style>\n</head>\n<body>\n<header><h1>" + escaped(listing.kernel) + ", " + escaped(listing.arch) + "</h1>\n</header>\n<main>\n";
  out += "<section>\n<h2>C++</h2>\n";
  if (listing.files.empty()) out += "<p class=\"note\">The kernel says nothing of where it was written.</p>\n";
  for (std::size_t f = 0; f < listing.files.size(); ++f) out += source_html(listing, f, used);
  out += "</section>\n";
  for (const Form& form : listing.forms) {
    out += "<section>\n<h2>" + escaped(form.name) + "</h2>\n";
    if (!form.note.empty()) out += "<p class=\"note\">" + escaped(form.note) + "</p>\n";
    for (const FormLine& line : form.lines) out += line_html(line.text, line.of, line.of.known(), "");
    out += "</section>\n";
  }
  return out + "</main>\n<script>" + kScript + "</script>\n</body>\n</html>\n";
}

}  // namespace kiln::cli
