#include "src/bundle/search.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "src/bundle/builds.h"
#include "src/environment/entry.h"
#include "src/logging.h"
#include "src/program_key.h"

namespace kiln::rt {
namespace {

// Whether nobody was told yet.
bool first_time(const std::string& module, const std::string& kernel) {
  static std::mutex& mutex = *new std::mutex;
  static auto& told = *new std::set<std::pair<std::string, std::string>>;
  const std::lock_guard lock(mutex);
  return told.emplace(module, kernel).second;
}

std::string other_text(const std::string& module, const std::string& place, const std::string& recorded, const std::string& embedded) {
  ProgramKey ours, theirs;
  ours.kernel_text = recorded;
  theirs.kernel_text = embedded;
  const std::vector<std::string> differs = differences(ours, theirs);
  return "the kernel in '" + module + "' is not the one that this program recorded" + (place.empty() ? "" : " at " + place) +
         (differs.empty() ? "" : ": " + differs.front());
}

std::string not_fitting(const BundleInfo& info, const std::string& module, const BundleTarget& target, const std::string& device) {
  std::string text = "none of what '" + module + "' has runs on " + device + ": ";
  bool first = true;
  for (const BundleInfo::Item& item : info.items) {
    text += (first ? "" : "; ") + to_string(item) + ", " + why_not(item, target);
    first = false;
  }
  return text;
}

bool any_fits(const BundleInfo& info, const BundleTarget& target) {
  return std::any_of(info.items.begin(), info.items.end(), [&](const auto& item) { return why_not(item, target).empty(); });
}

}  // namespace

void BundleSearch::reject(const std::string& module, std::string sentence, bool warn) {
  if (std::find(why_not_.begin(), why_not_.end(), sentence) != why_not_.end()) return;
  if (warn && logs(LogArea::Compile, LogLevel::Warning) && first_time(module, question_.kernel))
    say(LogArea::Compile, LogLevel::Warning, "kernel '" + question_.kernel + "': what is embedded is not used: " + sentence);
  why_not_.push_back(std::move(sentence));
}

// What is not taken yet, out of all modules that are there now. A copy: from here on they may go.
std::optional<BundleSearch::Copy> BundleSearch::copy_best() {
  const Digest recorded = digest(question_.recorded);
  std::vector<std::pair<Bundle, std::string>> usable, others;
  std::optional<Copy> best;
  std::array<unsigned, 7> best_rank{};
  for (std::string& damaged : each_embedded(question_.kernel, [&](const Bundle& bundle, const std::string& module, BundlePlace place) {
         const BundleInfo& info = bundle.info();
         if (!info.of_this_kiln() || info.checked != question_.checked || bundle.recorded_digest() != recorded) {
           others.emplace_back(bundle.held(), module);
           return;
         }
         std::vector<const BundleInfo::Item*> items;
         for (const BundleInfo::Item& item : info.items) items.push_back(&item);
         for (const std::size_t i : choose(items, question_.target)) {
           if (std::find(given_.begin(), given_.end(), std::pair(place, i)) != given_.end()) continue;
           if (const auto its = rank(info.items[i]); !best || its > best_rank) {
             best_rank = its;
             best = Copy{bundle.held(i), module, place, i};
           }
           break;
         }
         if (!any_fits(info, question_.target)) usable.emplace_back(bundle.held(), module);
       }))
    reject(damaged, damaged, true);
  for (const auto& [bundle, module] : usable) reject(module, not_fitting(bundle.info(), module, question_.target, question_.device), false);
  for (const auto& [bundle, module] : others) reject_other(bundle, module);
  return best;
}

void BundleSearch::reject_other(const Bundle& bundle, const std::string& module) {
  const BundleInfo& info = bundle.info();
  if (!info.of_this_kiln()) return reject(module, foreign_text(info, module), true);
  if (info.checked != question_.checked) {
    return reject(
        module,
        "in '" + module + "' it is " + (info.checked ? "checked, and the launch is unchecked" : "unchecked, and the launch is checked"),
        false);
  }
  const auto recorded = bundle.recorded();
  reject(module,
         recorded.has_value() ? other_text(module, question_.place, question_.recorded, *recorded)
                              : "in '" + module + "' " + recorded.error().data().message,
         true);
}

std::optional<BundleSearch::Item> BundleSearch::next() {
  while (std::optional<Copy> copy = copy_best()) {
    given_.emplace_back(copy->place, copy->item);
    const auto damaged = [&](const Error& error) { reject(copy->module, "in '" + copy->module + "' " + error.data().message, true); };
    // Text against text: equal sums are not enough.
    if (const auto recorded = copy->bundle.recorded(); !recorded.has_value()) {
      damaged(recorded.error());
    } else if (*recorded != question_.recorded) {
      reject(copy->module, other_text(copy->module, question_.place, question_.recorded, *recorded), true);
    } else if (auto item = copy->bundle.item(copy->item); !item.has_value()) {
      damaged(item.error());
    } else {
      return Item{item->kind, std::move(item->code),
                  "the " + to_string(copy->bundle.info().items[copy->item]) + " in '" + copy->module + "'"};
    }
  }
  return std::nullopt;
}

}  // namespace kiln::rt
