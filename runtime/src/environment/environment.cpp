#include "src/environment/environment.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <utility>

#include "src/config.h"
#include "src/logging.h"

namespace kiln::rt {

Environment::Environment(const Places& places, std::uint64_t most_bytes, const Warn& warn) {
  for (const LayerPlace& place : places.layers) layers_.push_back(std::make_unique<Layer>(place, most_bytes, warn));
}

void Environment::close_idle() noexcept {
  for (const auto& layer : layers_) layer->close_idle();
}

std::optional<CompiledCode> Environment::find(const std::string& key, const std::string& kernel) noexcept {
  for (const auto& layer : layers_)
    if (Looked looked = layer->find(key); looked.code) return std::move(looked.code);
  if (logs(LogArea::Environment, LogLevel::Debug)) try {
      tell_miss(key, kernel);
    } catch (...) {}  // of the host's memory
  return std::nullopt;
}

void Environment::tell_miss(const std::string& key, const std::string& kernel) {
  const std::optional<ProgramKey> wanted = read_program_key(key);
  if (!wanted) return;
  Nearest nearest;
  for (const auto& layer : layers_) layer->use([&](StoreFile& file) { look_for_nearest(file, *wanted, kernel, nearest); });
  std::string text = "kernel '" + kernel + "' for " + wanted->options.arch + " is not in the environment: ";
  if (nearest.of_kernel == 0) text += "there is no entry of that kernel";
  for (std::size_t i = 0; i < nearest.reasons.size(); ++i) text += (i == 0 ? "" : "; ") + nearest.reasons[i];
  say(LogArea::Environment, LogLevel::Debug, text);
}

bool Environment::store(const std::string& key, const std::string& kernel, const std::string& arch, const CompiledCode& code) noexcept try {
  for (const auto& layer : layers_)
    if (layer->place().writable && layer->usable()) return layer->put(make_entry(key, kernel, arch, code));
  return false;
} catch (...) {  // of the host's memory
  return false;
}

bool look_for_nearest(StoreFile& file, const ProgramKey& wanted, const std::string& kernel, Nearest& nearest,
                      const Overlooked& overlooked) {
  bool nearer = false;
  file.each(kernel, [&](const StoreRow& row) {
    const std::optional<std::string> bytes = unpack(row.entry.key);
    std::optional<ProgramKey> key = bytes ? read_program_key(*bytes) : std::nullopt;
    if (!key) return true;
    if (overlooked.alignment) key->options.aligned16 = wanted.options.aligned16;
    if (overlooked.ptx_version) key->options.ptx_version = wanted.options.ptx_version;
    if (overlooked.warps) key->options.block_multiple_of_32 = wanted.options.block_multiple_of_32;
    std::vector<std::string> reasons = differences(wanted, *key);
    if (nearest.of_kernel++ == 0 || reasons.size() < nearest.reasons.size()) {
      nearest.reasons = std::move(reasons);
      nearest.row = row;
      nearer = true;
    }
    return !nearest.reasons.empty();
  });
  return nearer;
}

Places process_places() {
  std::error_code none;
  return environment_places(configured_text(Setting::Environment), system_variable("XDG_CACHE_HOME"), system_variable("HOME"),
                            std::filesystem::current_path(none).string());
}

std::uint64_t process_environment_bytes() { return configured_number(Setting::EnvironmentBytes); }

namespace {

struct OfProcess {
  std::mutex mutex;
  Places places;
  std::uint64_t most_bytes = 0;
  bool known = false;
  std::shared_ptr<Environment> environment;
};
// Immortal: programs may still be compiled while static destructors run. What is open is closed at the end, so that the file is whole
// without what SQLite keeps beside it.
OfProcess& of_process() {
  static OfProcess& one = *[] {
    auto made = std::make_unique<OfProcess>();
    std::atexit([] {
      std::shared_ptr<Environment> open;
      {
        const std::lock_guard lock(of_process().mutex);
        open = of_process().environment;
      }
      if (open != nullptr) open->close_idle();
    });
    return made.release();
  }();
  return one;
}

}  // namespace

std::shared_ptr<Environment> process_environment() noexcept try {
  Places places = process_places();
  const std::uint64_t most = process_environment_bytes();
  OfProcess& of = of_process();
  std::string problem;
  std::shared_ptr<Environment> old;  // goes without the lock
  std::shared_ptr<Environment> now;
  {
    const std::lock_guard lock(of.mutex);
    if (!of.known || of.places != places || of.most_bytes != most) {
      old = std::move(of.environment);
      const Warn warn = [](const std::string& text) { say(LogArea::Environment, LogLevel::Warning, text); };
      of.environment = places.layers.empty() ? nullptr : std::make_shared<Environment>(places, most, warn);
      of.places = std::move(places);
      of.most_bytes = most;
      of.known = true;
      problem = of.places.problem;
    }
    now = of.environment;
  }
  if (!problem.empty() && logs(LogArea::Environment, LogLevel::Warning))
    say(LogArea::Environment, LogLevel::Warning,
        "there is no folder for the environment: " + problem +
            "; compiled kernels are kept in memory only. KILN_ENV sets the folder, or is off for none");
  return now;
} catch (...) {  // of the host's memory
  return nullptr;
}

}  // namespace kiln::rt
