#include "kiln/dsl/registry.h"

#include <algorithm>
#include <mutex>

#include "errors.h"

namespace kiln {
namespace {

// Edit distance of two short names.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

std::string last_part(const std::string& name) {
  const std::size_t at = name.rfind("::");
  return at == std::string::npos ? name : name.substr(at + 2);
}

Error refuse(std::string rule, std::string message) { return dsl::make_error(ErrorCode::Validation, std::move(rule), std::move(message)); }

}  // namespace

struct Registry::State {
  mutable std::mutex mutex;
  std::vector<const KernelEntry*> entries;
};

Registry::Registry() : state_(std::make_unique<State>()) {}

// Never destroyed: kernels of other libraries leave it while the process ends.
Registry& Registry::instance() {
  static Registry& registry = *new Registry;
  return registry;
}

void Registry::add(const KernelEntry* entry) {
  const std::lock_guard lock(state_->mutex);
  state_->entries.push_back(entry);
}

void Registry::remove(const KernelEntry* entry) {
  const std::lock_guard lock(state_->mutex);
  std::erase(state_->entries, entry);
}

std::vector<const KernelEntry*> Registry::kernels() const {
  std::vector<const KernelEntry*> sorted;
  {
    const std::lock_guard lock(state_->mutex);
    sorted = state_->entries;
  }
  std::sort(sorted.begin(), sorted.end(), [](const KernelEntry* a, const KernelEntry* b) {
    return a->name() != b->name() ? a->name() < b->name() : a->place() < b->place();
  });
  // A kernel defined in a header is one kernel, in however many files the header is included.
  const auto same = [](const KernelEntry* a, const KernelEntry* b) { return a->name() == b->name() && a->place() == b->place(); };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), same), sorted.end());
  return sorted;
}

Result<const KernelEntry*> Registry::find(const std::string& name) const {
  const std::vector<const KernelEntry*> all = kernels();
  std::vector<const KernelEntry*> exact, by_last_part;
  for (const KernelEntry* k : all) {
    if (k->name() == name) exact.push_back(k);
    if (last_part(k->name()) == name) by_last_part.push_back(k);
  }
  const std::vector<const KernelEntry*>& found = exact.empty() ? by_last_part : exact;
  if (found.size() == 1) return found[0];
  if (found.size() > 1) {
    std::string places;
    for (const KernelEntry* k : found)
      places += (places.empty() ? "" : " and ") + (exact.empty() ? k->name() + " (" + k->place() + ")" : k->place());
    if (!exact.empty())
      return refuse("DuplicateKernel",
                    "two kernels are named '" + name + "': at " + places + "; rename one, or put it into a named namespace");
    return refuse("AmbiguousKernel", "'" + name + "' may be " + places + "; give the qualified name");
  }
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const KernelEntry* k : all) {
    const std::size_t d = std::min(distance(name, k->name()), distance(name, last_part(k->name())));
    if (d <= std::max<std::size_t>(2, name.size() / 3)) near.emplace_back(d, k->name());
  }
  std::sort(near.begin(), near.end());
  std::string message = "there is no kernel '" + name + "'";
  if (all.empty()) message += "; no kernel is registered in this process";
  for (std::size_t i = 0; i < std::min<std::size_t>(near.size(), 3); ++i) message += (i == 0 ? "; did you mean " : ", ") + near[i].second;
  if (!near.empty()) message += "?";
  return refuse("UnknownKernel", message);
}

}  // namespace kiln
