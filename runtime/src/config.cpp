#include "src/config.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>

#include "src/logging.h"
#include "src/make_error.h"
#include "src/server.h"

namespace kiln::rt {
namespace {

Error wrong_variable(const SettingRow& row, const std::string& value) {
  return make_error(ErrorCode::Validation, "Configuration",
                    std::string("the variable ") + row.variable + " is '" + value + "', and it takes " + allowed(row));
}

std::optional<std::uint64_t> number(const SettingRow& row, std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < row.least || value > row.most) return std::nullopt;
  return value;
}

bool fits(const SettingRow& row, const std::string& value) {
  switch (row.kind) {
    case SettingKind::Number: return number(row, value).has_value();
    case SettingKind::Choice: return is_word(row, value);
    case SettingKind::Levels: return parse_log_levels(value).has_value();
    case SettingKind::Text:
    case SettingKind::Path: break;
  }
  return true;
}

const char* variable_of(const SettingRow& row, const Variables& variable) {
  const char* value = *row.variable != 0 ? variable(row.variable) : nullptr;
  return value != nullptr && *value != 0 ? value : nullptr;
}

const char* process_variable(const char* name) { return std::getenv(name); }

// Read once: a process has one file. An exception (no host memory) leaves it for the next call.
const Result<ConfigFile>& process_file() {
  static const Result<ConfigFile>& file = *new Result<ConfigFile>([] {
    const char* named = std::getenv(row(Setting::Config).variable);
    std::error_code none;
    return find_config(named != nullptr ? named : "", std::filesystem::current_path(none).string());
  }());
  return file;
}

struct Set {
  std::string text;
  std::uint64_t number = 0;
  std::string by = "default";
};
Set configured(Setting setting) {
  const SettingRow& what = row(setting);
  const auto from_text = [&](const char* text, const char* by) {
    return Set{text, what.kind == SettingKind::Number ? number(what, text).value_or(0) : 0, by};
  };
  if (const char* value = variable_of(what, process_variable); value != nullptr && fits(what, value))
    return from_text(value, what.variable);
  if (*what.key != 0 && process_file().has_value()) {
    const ConfigFile& file = *process_file();
    if (const auto& given = file.values[static_cast<std::size_t>(setting)])
      return {given->text, given->number, file.path + ":" + std::to_string(given->line)};
  }
  return from_text(what.fallback, "default");
}

}  // namespace

Result<Configuration> read_configuration(const ConfigFile& file, const Variables& variable) {
  Configuration all;
  all.file = file.path;
  for (const SettingRow& what : settings()) {
    ConfiguredSetting one{what.key, what.variable, what.fallback, "default", allowed(what), what.meaning};
    if (const auto& given = file.values[static_cast<std::size_t>(what.setting)]) {
      one.value = given->text;
      one.from = file.path + ":" + std::to_string(given->line);
    }
    if (const char* value = variable_of(what, variable)) {
      if (!fits(what, value)) return wrong_variable(what, value);
      one.value = value;
      one.from = what.variable;
    }
    all.settings.push_back(std::move(one));
  }
  return all;
}

Result<void> check_configuration() {
  const Result<ConfigFile>& file = process_file();
  if (!file.has_value()) return file.error();
  for (const SettingRow& what : settings())
    if (const char* value = variable_of(what, process_variable); value != nullptr && !fits(what, value)) return wrong_variable(what, value);
  return set_up_logging(configured_text(Setting::Levels), configured_text(Setting::Sink));
}

std::string system_variable(const char* name) {
  const char* value = process_variable(name);
  return value != nullptr ? value : "";
}

std::string configured_text(Setting setting) { return configured(setting).text; }
std::string configured_by(Setting setting) { return configured(setting).by; }
std::uint64_t configured_number(Setting setting) { return configured(setting).number; }
std::uint64_t configured_number_or_threads(Setting setting) {
  const std::uint64_t set = configured_number(setting);
  return set != 0 ? set : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace kiln::rt

namespace kiln {

Result<Configuration> configuration() try {
  const Result<rt::ConfigFile>& file = rt::process_file();
  if (!file.has_value()) return file.error();
  return rt::read_configuration(*file, rt::process_variable);
} catch (const std::bad_alloc&) { return rt::no_host_memory(); }

}  // namespace kiln
