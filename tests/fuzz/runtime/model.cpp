#include "fuzz/runtime/model.h"

#include <algorithm>
#include <map>
#include <utility>

namespace kiln::fuzz {
namespace {

constexpr std::string_view kInjected = "injected: ";

// Elements by memory.
class Elements {
 public:
  void add(const Part& p) {
    std::vector<bool>& all = marks(p);
    for (std::uint64_t i = 0; i < p.count; ++i) all[p.first + i * p.step] = true;
  }
  bool has(const Part& p, std::uint64_t i) { return marks(p)[p.first + i * p.step]; }

 private:
  std::vector<bool>& marks(const Part& p) {
    std::vector<bool>& all = of_[p.of.get()];
    if (all.empty()) all.resize(p.of->cells.size());
    return all;
  }
  std::map<const Tracked*, std::vector<bool>> of_;
};

Elements covered_by(std::span<const Action> actions) {
  Elements covered;
  for (const Action& a : actions)
    for (const Part& c : a.covers) covered.add(c);
  return covered;
}

// By an operation that ends no claims: an older one may be what is known by then.
void claim_late(Cell& cell, const Roots& roots) {
  Roots older = std::move(cell.older);
  older.merge(cell.roots);
  cell = {false, 0, roots, std::move(older)};
}

}  // namespace

std::string root_name(const Error& error) {
  const Error& root = error.root();
  if (error.is_device_poisoned() || root.is_device_poisoned() || root.code() == ErrorCode::Trapped || root.rule().starts_with("CUDA_") ||
      root.code() == ErrorCode::OutOfMemory)
    return std::string(kInjected) + root.text();
  if (root.data().bounds)
    return (root.code() == ErrorCode::CheckFailed ? "check " : "outside ") + std::to_string(root.data().bounds->index);
  if (root.rule() == "BufferSize") return "size " + std::to_string(root.data().requested.value_or(0));
  if (root.kernel().ends_with("never")) return "never";
  if (!root.rule().empty() && root.data().requested) return "refused " + std::to_string(*root.data().requested);
  return root.rule().empty() ? root.text() : root.rule();
}

bool is_injected(const std::string& root) { return root.starts_with(kInjected); }
bool all_injected(const Roots& roots) { return !roots.empty() && std::ranges::all_of(roots, is_injected); }

Roots roots_named(const Error& error) {
  Roots all;
  if (error.code() != ErrorCode::Several) return {root_name(error)};
  for (const Error& cause : error.causes()) all.insert(root_name(cause));
  return all;
}

std::string Part::text() const {
  return std::to_string(of->name) + "[" + std::to_string(first) + ", +" + std::to_string(count) +
         (step != 1 ? " by " + std::to_string(step) : "") + "]";
}

bool written(const Part& p) {
  for (std::uint64_t i = 0; i < p.count; ++i)
    if (!p.cell(i).known && p.cell(i).roots.empty()) return false;
  return true;
}

Roots roots_of(const Part& p) {
  Roots all;
  for (std::uint64_t i = 0; i < p.count; ++i) all.insert(p.cell(i).roots.begin(), p.cell(i).roots.end());
  return all;
}

Roots older_of(const Part& p) {
  Roots all;
  for (std::uint64_t i = 0; i < p.count; ++i) all.insert(p.cell(i).older.begin(), p.cell(i).older.end());
  return all;
}

Part picture(const Part& p) {
  auto copy = std::make_shared<Tracked>();
  copy->name = p.of->name;
  for (std::uint64_t i = 0; i < p.count; ++i) copy->cells.push_back(p.cell(i));
  return {std::move(copy), 0, p.count};
}

Roots met_in(std::span<const Action> actions, std::span<const Action> before) {
  Elements covered = covered_by(before);
  Roots all;
  for (const Action& a : actions) {
    for (const Part& r : a.reads) {
      for (std::uint64_t i = 0; i < r.count; ++i) {
        if (covered.has(r, i)) continue;
        all.insert(r.cell(i).roots.begin(), r.cell(i).roots.end());
        all.insert(r.cell(i).older.begin(), r.cell(i).older.end());
      }
    }
    for (const Part& c : a.covers) covered.add(c);
  }
  return all;
}

bool may_run(std::span<const Action> actions) {
  Elements covered;
  for (const Action& a : actions) {
    for (const auto* parts : {&a.reads, &a.writes})
      for (const Part& p : *parts)
        for (std::uint64_t i = 0; i < p.count; ++i)
          if (!covered.has(p, i) && !p.cell(i).known && p.cell(i).roots.empty()) return false;
    for (const Part& c : a.covers) covered.add(c);
  }
  return true;
}

void run(std::span<const Action> actions) {
  Roots carried = met_in(actions);
  for (const Action& a : actions)
    if (carried.empty() && !a.fails.empty()) carried.insert(a.fails);
  if (carried.empty()) {
    for (const Action& a : actions) a.values();
    return;
  }
  Elements covered = covered_by(actions);
  for (const Action& a : actions) {
    for (const auto* parts : {&a.covers, &a.writes}) {
      for (const Part& p : *parts) {
        for (std::uint64_t i = 0; i < p.count; ++i) {
          Cell& cell = p.cell(i);
          if (covered.has(p, i)) cell = {false, 0, carried, {}};
          else if (cell.known || cell.roots != carried) claim_late(cell, carried);
        }
      }
    }
  }
}

void claim(const Part& p, const Roots& roots) {
  for (std::uint64_t i = 0; i < p.count; ++i) p.cell(i) = {false, 0, roots, {}};
}

void claim_all(std::span<const Action> actions, const Roots& roots) {
  for (const Action& a : actions)
    for (const auto* parts : {&a.covers, &a.writes})
      for (const Part& p : *parts) claim(p, roots);
}

}  // namespace kiln::fuzz
