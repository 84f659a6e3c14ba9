#include "src/bundle/modules.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "src/bundle/format.h"
#include "src/process.h"

namespace kiln {

// What a module has, found when it is first looked into.
struct BundleIndex {
  struct Entry {
    std::string kernel;
    std::size_t at = 0;
  };
  std::vector<Entry> entries;  // sorted by name, of one name as they stand
  std::vector<std::string> problems;
};

struct BundleModule::State {
  std::string_view bytes;
  std::string path;  // of the file
  std::uint64_t number = 0;
  State *next = nullptr, *previous = nullptr;
  const unsigned process = rt::process_number();
  std::optional<BundleIndex> index;  // once somebody looked
};

namespace rt {

constinit std::atomic<std::uint32_t> bundle_modules{0};

namespace {

struct Modules {
  // Guards all of it. Held while tables are read and bytes are copied: nothing under it waits for anybody.
  std::mutex mutex;
  BundleModule::State *first = nullptr, *last = nullptr;
  std::uint32_t not_registered = 0;  // for want of memory
  std::atomic<std::uint64_t> generation{0};
};
constinit Modules modules;

std::string path_of(const void* address) {
  Dl_info info{};
  const std::string named = dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
  if (named.starts_with("/")) return named;
  // The loader has the program as it was called.
  char self[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  return size > 0 && static_cast<std::size_t>(size) < sizeof self ? std::string(self, static_cast<std::size_t>(size)) : named;
}

// Where there is something else than a bundle, what follows the next magic is tried: one damaged kernel does not take the others with it.
BundleIndex read_index(std::string_view bytes) {
  BundleIndex index;
  bool aligned = true;
  for (std::size_t at = next_bundle(bytes, 0, aligned); at < bytes.size(); at = next_bundle(bytes, at, aligned)) {
    BundleFront front;
    const std::string wrong = aligned ? read_front(bytes.substr(at), front) : "something else than zeros or a bundle stands there";
    if (wrong.empty()) {
      index.entries.push_back({std::move(front.kernel), at});
      at += static_cast<std::size_t>(front.size);
      continue;
    }
    index.problems.push_back("at byte " + std::to_string(at) + ": " + wrong);
    do { at = std::min(bytes.find(kBundleMagic, at + 1), bytes.size()); } while (at < bytes.size() && at % kBundleAlignment != 0);
  }
  std::stable_sort(index.entries.begin(), index.entries.end(), [](const auto& a, const auto& b) { return a.kernel < b.kernel; });
  return index;
}

// With the lock, each module with its index.
template <class Use>
void each_module(Use&& use) {
  const std::lock_guard lock(modules.mutex);
  for (BundleModule::State* module = modules.first; module != nullptr; module = module->next) {
    if (!module->index) module->index = read_index(module->bytes);
    use(*module, *module->index);
  }
}

std::span<const BundleIndex::Entry> entries_of(const BundleIndex& index, std::string_view kernel) {
  const auto first = std::lower_bound(index.entries.begin(), index.entries.end(), kernel,
                                      [](const BundleIndex::Entry& entry, std::string_view name) { return entry.kernel < name; });
  auto last = first;
  while (last != index.entries.end() && last->kernel == kernel) ++last;
  return {first, last};
}

}  // namespace

std::vector<std::string> each_embedded(std::string_view kernel,
                                       const std::function<void(const Bundle& bundle, const std::string& module, BundlePlace place)>& use) {
  std::vector<std::string> damaged;
  if (!any_bundles()) return damaged;
  each_module([&](const BundleModule::State& module, const BundleIndex& index) {
    for (const BundleIndex::Entry& entry : entries_of(index, kernel)) {
      const auto bundle = Bundle::read(module.bytes.substr(entry.at));
      if (bundle.has_value()) use(*bundle, module.path, {module.number, entry.at});
      else damaged.push_back("in '" + module.path + "' " + bundle.error().data().message);
    }
  });
  return damaged;
}

bool is_embedded(std::string_view kernel) {
  bool found = false;
  if (any_bundles()) each_module([&](const auto&, const BundleIndex& index) { found = found || !entries_of(index, kernel).empty(); });
  return found;
}

std::vector<std::string> embedded_kernels() {
  std::vector<std::string> names;
  each_module([&](const auto&, const BundleIndex& index) {
    for (const BundleIndex::Entry& entry : index.entries) names.push_back(entry.kernel);
  });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> embedded_problems() {
  std::vector<std::string> all;
  std::uint32_t not_registered = 0;
  each_module([&](const BundleModule::State& module, const BundleIndex& index) {
    for (const std::string& problem : index.problems) all.push_back("in '" + module.path + "' " + problem);
    not_registered = modules.not_registered;
  });
  if (not_registered != 0) all.push_back("the host had no memory to note the bundles of " + std::to_string(not_registered) + " modules");
  return all;
}

}  // namespace rt

BundleModule::BundleModule(const void* begin, const void* end) noexcept : state_(nullptr) {
  const auto* const from = static_cast<const char*>(begin);
  const auto* const to = static_cast<const char*>(end);
  if (from == nullptr || to <= from) return;
  std::unique_ptr<State> state;
  try {
    state = std::make_unique<State>();
    state->bytes = {from, static_cast<std::size_t>(to - from)};
    state->path = rt::path_of(begin);  // now: this takes the loader's lock, which whoever unloads a module holds when it takes ours
  } catch (const std::bad_alloc&) { state.reset(); }
  const std::lock_guard lock(rt::modules.mutex);
  if (state == nullptr) {
    ++rt::modules.not_registered;
    return;
  }
  state_ = state.release();
  state_->previous = rt::modules.last;
  (rt::modules.last != nullptr ? rt::modules.last->next : rt::modules.first) = state_;
  rt::modules.last = state_;
  state_->number = rt::modules.generation.fetch_add(1, std::memory_order_release);
  rt::bundle_modules.fetch_add(1, std::memory_order_release);
}

BundleModule::~BundleModule() {
  // In a child of fork() a thread that is gone may hold the lock: everything stays.
  if (state_ == nullptr || state_->process != rt::process_number()) return;
  {
    const std::lock_guard lock(rt::modules.mutex);
    (state_->previous != nullptr ? state_->previous->next : rt::modules.first) = state_->next;
    (state_->next != nullptr ? state_->next->previous : rt::modules.last) = state_->previous;
    rt::modules.generation.fetch_add(1, std::memory_order_release);
    rt::bundle_modules.fetch_sub(1, std::memory_order_release);
  }
  delete state_;
}

std::uint64_t embedded_generation() { return rt::modules.generation.load(std::memory_order_acquire); }

std::vector<EmbeddedModule> embedded_modules() {
  std::vector<EmbeddedModule> all;
  rt::each_module([&](const BundleModule::State& module, const BundleIndex& index) {
    EmbeddedModule& one = all.emplace_back();
    one.path = module.path;
    one.problems = index.problems;
    std::vector<std::size_t> places;
    for (const BundleIndex::Entry& entry : index.entries) places.push_back(entry.at);
    std::sort(places.begin(), places.end());
    for (const std::size_t at : places) {
      auto bundle = Bundle::read(module.bytes.substr(at));
      if (bundle.has_value()) one.bundles.push_back(bundle->info());
      else one.problems.push_back("at byte " + std::to_string(at) + ": " + bundle.error().data().message);
    }
  });
  return all;
}

}  // namespace kiln
