#include "src/bundle/modules.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
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
  const char* path = nullptr;  // of the file, as the loader has it; null: not known
  State *next = nullptr, *previous = nullptr;
  std::uint32_t readers = 0;  // guarded by the lock of the modules, as the list is
  const unsigned process = rt::process_number();
  std::once_flag once;
  std::optional<BundleIndex> index;

  ~State() { std::free(const_cast<char*>(path)); }
};

namespace rt {

constinit std::atomic<std::uint32_t> bundle_modules{0};

namespace {

struct Modules {
  std::mutex mutex;  // held for a moment
  BundleModule::State *first = nullptr, *last = nullptr;
  std::uint32_t not_registered = 0;  // for want of memory
  std::atomic<std::uint64_t> generation{0};
  std::atomic<std::uint32_t> released{0};  // goes up when a pin goes
};
constinit Modules modules;

std::string path_of(const BundleModule::State& module) {
  const std::string named = module.path != nullptr ? module.path : "";
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

const BundleIndex& index_of(BundleModule::State& module) {
  std::call_once(module.once, [&] { module.index = read_index(module.bytes); });
  return *module.index;
}

std::vector<ModulePin> pin_all() {
  std::vector<ModulePin> pins;
  const std::lock_guard lock(modules.mutex);
  for (BundleModule::State* at = modules.first; at != nullptr; at = at->next) {
    pins.reserve(pins.size() + 1);
    ++at->readers;
    pins.emplace_back(at);
  }
  return pins;
}

std::span<const BundleIndex::Entry> entries_of(const BundleIndex& index, std::string_view kernel) {
  const auto first = std::lower_bound(index.entries.begin(), index.entries.end(), kernel,
                                      [](const BundleIndex::Entry& entry, std::string_view name) { return entry.kernel < name; });
  auto last = first;
  while (last != index.entries.end() && last->kernel == kernel) ++last;
  return {first, last};
}

std::string problem_text(const BundleModule::State& module, const std::string& problem) {
  return "'" + path_of(module) + "', bundles " + problem;
}

}  // namespace

ModulePin::~ModulePin() {
  if (state_ == nullptr) return;
  {
    const std::lock_guard lock(modules.mutex);
    --state_->readers;
  }
  modules.released.fetch_add(1, std::memory_order_release);
  modules.released.notify_all();
}

Embedded find_embedded(std::string_view kernel) {
  Embedded found;
  found.pins = pin_all();
  for (const ModulePin& pin : found.pins) {
    BundleModule::State& module = *pin;
    for (const BundleIndex::Entry& entry : entries_of(index_of(module), kernel)) {
      auto bundle = Bundle::read(module.bytes.substr(entry.at));
      if (bundle.has_value()) found.bundles.push_back({std::move(*bundle), path_of(module)});
      else found.problems.push_back(problem_text(module, bundle.error().data().message));
    }
  }
  return found;
}

bool is_embedded(std::string_view kernel) {
  if (!any_bundles()) return false;
  for (const ModulePin& pin : pin_all())
    if (!entries_of(index_of(*pin), kernel).empty()) return true;
  return false;
}

std::vector<std::string> embedded_kernels() {
  std::vector<std::string> names;
  for (const ModulePin& pin : pin_all())
    for (const BundleIndex::Entry& entry : index_of(*pin).entries) names.push_back(entry.kernel);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> embedded_problems() {
  std::vector<std::string> all;
  for (const ModulePin& pin : pin_all())
    for (const std::string& problem : index_of(*pin).problems) all.push_back(problem_text(*pin, problem));
  const std::lock_guard lock(modules.mutex);
  if (modules.not_registered != 0)
    all.push_back("the host had no memory to note the bundles of " + std::to_string(modules.not_registered) + " modules");
  return all;
}

}  // namespace rt

BundleModule::BundleModule(const void* begin, const void* end) noexcept : state_(nullptr) {
  const auto* const from = static_cast<const char*>(begin);
  const auto* const to = static_cast<const char*>(end);
  if (from == nullptr || to <= from) return;
  auto* const state = new (std::nothrow) State;
  Dl_info info{};
  if (state != nullptr) {
    state->bytes = {from, static_cast<std::size_t>(to - from)};
    // Now: this takes the loader's lock, which whoever unloads a module holds while it waits for readers.
    if (dladdr(begin, &info) != 0 && info.dli_fname != nullptr) state->path = strdup(info.dli_fname);
  }
  const std::lock_guard lock(rt::modules.mutex);
  if (state == nullptr) {
    ++rt::modules.not_registered;
    return;
  }
  state->previous = rt::modules.last;
  (rt::modules.last != nullptr ? rt::modules.last->next : rt::modules.first) = state;
  rt::modules.last = state;
  rt::modules.generation.fetch_add(1, std::memory_order_release);
  rt::bundle_modules.fetch_add(1, std::memory_order_release);
  state_ = state;
}

BundleModule::~BundleModule() {
  // In a child of fork() those who read are gone, and they count for ever: everything stays.
  if (state_ == nullptr || state_->process != rt::process_number()) return;
  {
    const std::lock_guard lock(rt::modules.mutex);
    (state_->previous != nullptr ? state_->previous->next : rt::modules.first) = state_->next;
    (state_->next != nullptr ? state_->next->previous : rt::modules.last) = state_->previous;
    rt::modules.generation.fetch_add(1, std::memory_order_release);
    rt::bundle_modules.fetch_sub(1, std::memory_order_release);
  }
  for (;;) {
    const std::uint32_t released = rt::modules.released.load(std::memory_order_acquire);
    {
      const std::lock_guard lock(rt::modules.mutex);
      if (state_->readers == 0) break;
    }
    rt::modules.released.wait(released, std::memory_order_acquire);
  }
  delete state_;
}

std::uint64_t embedded_generation() { return rt::modules.generation.load(std::memory_order_acquire); }

std::vector<EmbeddedModule> embedded_modules() {
  std::vector<EmbeddedModule> all;
  for (const rt::ModulePin& pin : rt::pin_all()) {
    BundleModule::State& module = *pin;
    EmbeddedModule& one = all.emplace_back();
    one.path = rt::path_of(module);
    const BundleIndex& index = rt::index_of(module);
    one.problems = index.problems;
    std::vector<std::size_t> places;
    for (const BundleIndex::Entry& entry : index.entries) places.push_back(entry.at);
    std::sort(places.begin(), places.end());
    for (const std::size_t at : places) {
      auto bundle = Bundle::read(module.bytes.substr(at));
      if (bundle.has_value()) one.bundles.push_back(bundle->info());
      else one.problems.push_back("at byte " + std::to_string(at) + ": " + bundle.error().data().message);
    }
  }
  return all;
}

}  // namespace kiln
