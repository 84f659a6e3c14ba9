#include "selection.h"

#include <algorithm>
#include <map>
#include <set>

#include "command.h"
#include "names.h"

namespace kiln::cli {
namespace {

using Config = std::map<std::string, std::string>;

// "tile=8,unroll=2"; a part without '=' has itself as its name.
Config parts_of(const std::string& text) {
  Config config;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const std::size_t equal = part.find('=');
    config[part.substr(0, equal)] = equal == std::string::npos ? "" : part.substr(equal + 1);
    at = end + 1;
  }
  return config;
}

bool is_pattern(const std::string& text) { return text.find_first_of("*?") != std::string::npos; }

std::string last_part(const std::string& name) {
  const std::size_t scope = name.rfind("::");
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

// What a pattern for configs chooses of a family.
std::vector<std::string> chosen(const SourceKernel& offer, const std::string& pattern) {
  Config wanted = parts_of(pattern);
  const bool rest_is_free = wanted.erase("*") != 0;
  Config defaults;
  std::vector<std::string> axes;
  for (const ConfigAxis& axis : offer.axes) defaults[axis.name] = axis.default_value, axes.push_back(axis.name);
  for (const auto& [name, value] : wanted)
    if (!defaults.contains(name)) usage(unknown("parameter", name, axes) + " (of '" + offer.name + "')");
  std::vector<std::string> configs;
  for (const std::string& config : offer.configs) {
    bool good = true;
    for (const auto& [name, value] : parts_of(config)) {
      const auto it = wanted.find(name);
      if (it != wanted.end()) good = good && matches(it->second, value);
      else if (!rest_is_free) good = good && defaults.contains(name) && defaults.at(name) == value;
    }
    if (good) configs.push_back(config);
  }
  return configs;
}

// The kernels and families of a word, and of each what the pattern for configs chooses; how many that are.
template <class Take>
std::size_t take_configs(const std::string& name, bool has_config, const std::string& config, const std::string& word,
                         const std::vector<SourceKernel>& offers, Take&& take) {
  std::vector<std::string> names;
  std::vector<const SourceKernel*> meant;
  for (const SourceKernel& offer : offers) {
    names.push_back(offer.name);
    if (matches(name, offer.name) || matches(name, last_part(offer.name))) meant.push_back(&offer);
  }
  if (!is_pattern(name)) {
    // One family, as without a pattern for its configs.
    if (meant.empty()) usage(unknown("kernel", name, names));
    const auto whole = std::find_if(meant.begin(), meant.end(), [&](const SourceKernel* k) { return k->name == name; });
    if (whole != meant.end()) meant = {*whole};
    if (meant.size() > 1) usage("'" + word + "' may be of " + plain_list({meant[0]->name, meant[1]->name}) + "; give the qualified name");
    if (meant[0]->axes.empty()) usage("'" + word + "': kernel '" + meant[0]->name + "' has no config, so there are no variants of it");
  }
  std::size_t found = 0;
  for (const SourceKernel* offer : meant) {
    if (!has_config || (offer->axes.empty() && config == "*")) {  // the one that it has
      take(offer->name);
      ++found;
    } else if (!offer->axes.empty()) {
      for (const std::string& one : chosen(*offer, config)) {
        take(offer->name + "@" + one);
        ++found;
      }
    }
  }
  return found;
}

}  // namespace

bool matches(const std::string& pattern, const std::string& text) {
  std::size_t p = 0, t = 0, star = std::string::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

std::vector<std::string> select(const std::vector<std::string>& words, const std::vector<SourceKernel>& offers, const std::string& source) {
  std::vector<std::string> specs;
  std::set<std::string> seen;
  const auto take = [&](const std::string& spec) {
    if (seen.insert(spec).second) specs.push_back(spec);
  };
  if (words.empty())
    for (const SourceKernel& offer : offers) take(offer.name);
  for (const std::string& word : words) {
    const bool named = std::any_of(offers.begin(), offers.end(), [&](const SourceKernel& o) { return o.name == word; });
    if (named || !is_pattern(word)) {
      take(word);
      continue;
    }
    std::size_t found = 0;
    // A .kir file's kernels have their configs in their names: there the whole word is one pattern.
    for (const SourceKernel& offer : offers) {
      if (!offer.axes.empty() || !(matches(word, offer.name) || matches(word, last_part(offer.name)))) continue;
      take(offer.name);
      ++found;
    }
    const std::size_t at = word.find('@');
    const std::string name = word.substr(0, at), config = at == std::string::npos ? "" : word.substr(at + 1);
    if (found == 0 || is_pattern(name)) found += take_configs(name, at != std::string::npos, config, word, offers, take);
    if (found == 0) {
      std::vector<std::string> names;
      for (const SourceKernel& offer : offers) names.push_back(offer.name);
      usage("'" + word + "' means no kernel and no config of '" + source + "'; there are: " + (names.empty() ? "none" : plain_list(names)));
    }
  }
  return specs;
}

}  // namespace kiln::cli
