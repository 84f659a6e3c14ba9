// The configuration file: JSON, an object of sections, read strictly. Compiled with hidden symbols, so that a program may use another
// version of the JSON library.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/config.h"
#include "src/logging.h"
#include "src/make_error.h"

namespace kiln::rt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "kiln.json";
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

Error wrong_file(std::string message, std::string place, ErrorCode code = ErrorCode::Validation) {
  return make_error(code, "Configuration", std::move(message), {.place = std::move(place)});
}

// Gives characters to the parser and counts the lines it has taken.
class Counting {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  Counting(const char* at, unsigned* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  Counting& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  Counting operator++(int) {
    const Counting old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Counting& o) const { return at_ == o.at_; }

 private:
  const char* at_;
  unsigned* line_;
};

const SettingRow* row_of_key(const std::string& key) {
  for (const SettingRow& row : settings())
    if (*row.key != 0 && key == row.key) return &row;
  return nullptr;
}

// The sections, or the names in one, in the order of the table.
std::string names(const std::string& section) {
  std::string all, last;
  for (const SettingRow& row : settings()) {
    const std::string key = row.key;
    const std::size_t dot = key.find('.');
    if (dot == std::string::npos || (!section.empty() && key.substr(0, dot) != section)) continue;
    const std::string name = section.empty() ? key.substr(0, dot) : key.substr(dot + 1);
    if (name != last) all += (all.empty() ? "" : ", ") + name;
    last = name;
  }
  return all;
}

// What the parser finds, held against the table. The first thing that is wrong ends it.
class Reader {
 public:
  using Json = nlohmann::json;
  Reader(ConfigFile& file, const unsigned& line) : file_(file), line_(line) {}
  std::optional<Error> error;

  bool null() { return value(Form::Other, "null", 0); }
  bool boolean(bool b) { return value(Form::Other, b ? "true" : "false", 0); }
  bool number_integer(Json::number_integer_t n) { return value(Form::Other, std::to_string(n), 0); }  // below 0
  bool number_unsigned(Json::number_unsigned_t n) { return value(Form::Number, std::to_string(n), n); }
  bool number_float(Json::number_float_t, const std::string& text) { return value(Form::Other, text, 0); }
  bool string(std::string& text) { return value(Form::Text, text, 0); }
  bool binary(Json::binary_t&) { return value(Form::Other, "binary data", 0); }
  bool start_array(std::size_t) { return value(Form::Other, "a list", 0); }
  bool end_array() { return true; }
  bool start_object(std::size_t) {
    if (depth_ == 2) return value(Form::Other, "an object", 0);
    ++depth_;
    return true;
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool key(std::string& name) {
    key_line_ = line_;
    if (depth_ == 1) {
      section_ = name;
      if (names(section_).empty()) return wrong("'" + name + "' is no section of the configuration; there are " + names(""));
      return first(name);
    }
    key_ = section_ + "." + name;
    row_ = row_of_key(key_);
    if (row_ == nullptr) return wrong("'" + key_ + "' is no setting; the section '" + section_ + "' has " + names(section_));
    return first(key_);
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) {
    key_line_ = line_;
    const std::string text = e.what();
    const std::size_t colon = text.find(": ");
    return wrong("the configuration file is no JSON: " + (colon == std::string::npos ? text : text.substr(colon + 2)));
  }

 private:
  enum class Form { Text, Number, Other };
  bool wrong(std::string message) {
    error = wrong_file(std::move(message), file_.path + ":" + std::to_string(key_line_));
    return false;
  }
  bool first(const std::string& name) {
    if (std::find(seen_.begin(), seen_.end(), name) != seen_.end()) return wrong("'" + name + "' is set twice in the configuration file");
    seen_.push_back(name);
    return true;
  }
  bool value(Form form, const std::string& told, std::uint64_t number) {
    if (depth_ == 0) return wrong("the configuration file has to be one object of sections");
    if (depth_ == 1) return wrong("the section '" + section_ + "' has to be an object of settings");
    const bool of_form = row_->kind == SettingKind::Number ? form == Form::Number && number >= row_->least && number <= row_->most
                                                           : form == Form::Text && !told.empty();
    const bool word = is_word(*row_, told);
    if (!of_form || (row_->kind == SettingKind::Choice && !word) ||
        (row_->kind == SettingKind::Levels && !parse_log_levels(told).has_value()))
      return wrong("'" + key_ + "' is " + (form == Form::Text ? "\"" + told + "\"" : told) + ", and it takes " + allowed(*row_));
    FileValue value{told, number, key_line_};
    if (row_->kind == SettingKind::Path && !word) value.text = (fs::path(file_.path).parent_path() / told).lexically_normal().string();
    file_.values[static_cast<std::size_t>(row_->setting)] = std::move(value);
    return true;
  }

  ConfigFile& file_;
  const unsigned& line_;
  unsigned key_line_ = 1;
  int depth_ = 0;
  std::string section_, key_;
  const SettingRow* row_ = nullptr;
  std::vector<std::string> seen_;
};

Error unreadable(const std::string& path, const std::string& why) {
  return wrong_file("the configuration file '" + path + "' cannot be read: " + why, "", ErrorCode::NotFound);
}

Error too_large(const std::string& path) { return wrong_file("the configuration file has more than 1048576 bytes", path); }

Result<ConfigFile> read_file(const std::string& path) {
  std::error_code why;
  const fs::file_status status = fs::status(path, why);
  if (!fs::is_regular_file(status)) return unreadable(path, why ? why.message() : "it is no regular file");
  if (const std::uintmax_t bytes = fs::file_size(path, why); !why && bytes > kMostBytes) return too_large(path);  // before it is read
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    if (!in) return unreadable(path, std::strerror(errno));
    text.clear();  // an empty file: no JSON
  }
  return parse_config(text.str(), path);
}

}  // namespace

Result<ConfigFile> parse_config(const std::string& text, const std::string& path) {
  ConfigFile file;
  file.path = path;
  if (text.size() > kMostBytes) return too_large(path);
  unsigned line = 1;
  Reader reader(file, line);
  const Counting begin(text.data(), &line), end(text.data() + text.size(), &line);
  const bool good = nlohmann::json::sax_parse(begin, end, &reader, nlohmann::json::input_format_t::json, true, true);
  if (reader.error) return *reader.error;
  if (!good) return wrong_file("the configuration file is no JSON", path);
  return file;
}

Result<ConfigFile> find_config(const std::string& named, const std::string& directory) {
  if (named == "off") return ConfigFile{};
  if (!named.empty()) {
    std::error_code why;  // a relative path where the working directory is gone
    const fs::path path = fs::absolute(named, why);
    auto file = why ? Result<ConfigFile>(unreadable(named, why.message())) : read_file(path.string());
    if (file.has_value() || file.error().code() != ErrorCode::NotFound) return file;
    Error::Data data = file.error().data();
    data.message += "; KILN_CONFIG takes the path of a file, or off";
    return Error(std::move(data));
  }
  for (fs::path folder = directory; !folder.empty(); folder = folder.parent_path()) {
    std::error_code none;
    const fs::path path = folder / kName;
    if (fs::exists(fs::symlink_status(path, none))) return read_file(path.string());  // a link that leads nowhere or in circles, too
    if (folder == folder.parent_path()) break;
  }
  return ConfigFile{};
}

}  // namespace kiln::rt
