#include "names.h"

#include <algorithm>
#include <utility>

namespace kiln::cli {
namespace {

// Edits (insert, remove, replace, swap of neighbours) from a to b.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string plain_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string quoted_list(const std::vector<std::string>& names, std::size_t most, const std::string& last) {
  if (names.empty()) return "nothing";
  std::string text;
  const std::size_t shown = std::min(names.size(), most);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i != 0) text += i + 1 == names.size() ? " " + last + " " : ", ";
    text += "'" + names[i] + "'";
  }
  if (shown < names.size()) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

std::vector<std::string> near_names(const std::string& wanted, const std::vector<std::string>& names) {
  if (wanted.size() > 256) return {};  // quadratic, and no typing error
  const std::size_t allowed = std::max<std::size_t>(1, wanted.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& name : names) {
    if (name.size() > 256) continue;
    const std::size_t scope = name.rfind("::");  // the last part of a qualified name counts too
    std::size_t edits = distance(wanted, name);
    if (scope != std::string::npos) edits = std::min(edits, distance(wanted, name.substr(scope + 2)));
    if (edits <= allowed && edits < wanted.size()) found.emplace_back(edits, name);  // and something of it is left
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> near;
  for (std::size_t i = 0; i < found.size() && i < 3; ++i) near.push_back(found[i].second);
  return near;
}

std::string unknown(const std::string& thing, const std::string& wanted, const std::vector<std::string>& names) {
  std::string text = "unknown " + thing + " '" + wanted + "'";
  const std::vector<std::string> near = near_names(wanted, names);
  if (!near.empty()) text += "; did you mean " + quoted_list(near, near.size(), "or") + "?";
  text += near.empty() ? "; there are: " : " There are: ";
  return text + (names.empty() ? "none" : plain_list(names));
}

}  // namespace kiln::cli
