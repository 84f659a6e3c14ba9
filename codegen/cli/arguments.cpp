#include "arguments.h"

#include <charconv>
#include <filesystem>
#include <stdexcept>

#include "files.h"
#include "kiln/ir/type.h"
#include "manifest.h"
#include "random_values.h"
#include "source.h"
#include "values.h"

namespace kiln::cli {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 30;

// Parts of one argument, front to back.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text), rest_(text) {}

  [[noreturn]] void refuse(const std::string& why) const { usage("argument '" + text_ + "': " + why); }

  // The text up to the next ':' (or all of it); a list or a file name is never cut.
  std::string next() {
    const std::size_t colon = rest_.starts_with('[') || rest_.starts_with('@') ? std::string::npos : rest_.find(':');
    const std::string part(rest_.substr(0, colon));
    rest_ = colon == std::string::npos ? std::string_view{} : rest_.substr(colon + 1);
    return part;
  }
  bool done() const { return rest_.empty(); }

  ir::Type type(const std::string& part) const {
    const std::optional<ir::Type> t = ir::parse_type(part);
    if (!t || *t == ir::Type::Void)
      refuse("'" + part + "' is no type; types are bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, e4m3, e5m2");
    return *t;
  }
  std::uint64_t number(const std::string& part, const char* what) const {
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (error != std::errc{} || end != part.data() + part.size())
      refuse(std::string(what) + " '" + part + "' is no whole number of 64 bits");
    return n;
  }
  std::uint64_t value(ir::Type type, std::string_view part) const {
    try {
      return parse_value(type, part);
    } catch (const std::invalid_argument& e) { refuse(e.what()); }
  }

 private:
  const std::string& text_;
  std::string_view rest_;
};

bool is_number(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos; }

// "32x32" or "1024"; nothing when `text` is no extents at all.
std::vector<std::uint64_t> parse_extents(const Reader& reader, const std::string& text) {
  std::vector<std::uint64_t> extents;
  std::string_view rest = text;
  while (true) {
    const std::size_t x = rest.find('x');
    const std::string_view part = rest.substr(0, x);
    if (!is_number(part)) return {};
    std::uint64_t extent = 0;
    if (std::from_chars(part.data(), part.data() + part.size(), extent).ec != std::errc{}) reader.refuse("an extent is too large");
    extents.push_back(extent);
    if (x == std::string_view::npos) break;
    rest = rest.substr(x + 1);
  }
  if (extents.size() > ir::kMaxRank) reader.refuse("at most " + std::to_string(ir::kMaxRank) + " extents");
  return extents;
}

// Elements of the extents, as long as their bytes stay within reason.
std::uint64_t count(const Reader& reader, const Argument& a) {
  std::uint64_t n = 1;
  for (const std::uint64_t e : a.extents)
    if (__builtin_mul_overflow(n, e, &n) || n > kMostBytes) reader.refuse("the buffer is larger than 8 GiB");
  if (n * byte_size(a.type) > kMostBytes) reader.refuse("the buffer is larger than 8 GiB");
  return n;
}

void resize(const Reader& reader, Argument& a) { a.bytes.resize(count(reader, a) * byte_size(a.type)); }

void fill_list(const Reader& reader, Argument& a, std::string_view list) {
  if (list.size() < 2 || !list.ends_with(']')) reader.refuse("the list has no ']'");
  list = list.substr(1, list.size() - 2);
  std::vector<std::uint64_t> values;
  while (list.find_first_not_of(" \t\n") != std::string_view::npos) {
    const std::size_t comma = list.find(',');
    std::string_view part = list.substr(0, comma);
    while (!part.empty() && std::isspace(static_cast<unsigned char>(part.front())) != 0) part.remove_prefix(1);
    while (!part.empty() && std::isspace(static_cast<unsigned char>(part.back())) != 0) part.remove_suffix(1);
    values.push_back(reader.value(a.type, part));
    if (comma == std::string_view::npos) break;
    list = list.substr(comma + 1);
    if (list.find_first_not_of(" \t\n") == std::string_view::npos) reader.refuse("the list ends with a comma");
  }
  if (a.extents.empty()) a.extents = {values.size()};
  if (count(reader, a) != values.size())
    reader.refuse("the list has " + std::to_string(values.size()) + " values, the extents need " + std::to_string(count(reader, a)));
  resize(reader, a);
  for (std::size_t i = 0; i < values.size(); ++i) store_bits(a.type, a.bytes.data() + i * byte_size(a.type), values[i]);
}

void fill_file(const Reader& reader, Argument& a, const std::string& path) {
  const bool has_extents = !a.extents.empty();
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  const bool device = std::filesystem::is_character_file(status) || std::filesystem::is_block_file(status);
  if (!has_extents && device)
    reader.refuse("a device has no number of bytes; give extents, for example in:" + std::string(ir::name(a.type)) + ":1024:@" + path);
  const std::uint64_t most = has_extents ? count(reader, a) * byte_size(a.type) : kMostBytes;
  const std::string bytes = read_start(path, device ? most : most + 1);  // a device has no end that could be too late
  if (bytes.size() > most) {
    const std::uintmax_t size = std::filesystem::is_regular_file(status) ? std::filesystem::file_size(path, ignored) : 0;
    reader.refuse("the file has " + (size > most ? std::to_string(size) : "more than " + std::to_string(most)) + " bytes, " +
                  (has_extents ? "the extents need " : "a buffer takes at most ") + std::to_string(most));
  }
  if (bytes.size() % byte_size(a.type) != 0)
    reader.refuse("the file has " + std::to_string(bytes.size()) + " bytes, no whole number of " + std::string(ir::name(a.type)) +
                  " elements");
  if (!has_extents) a.extents = {bytes.size() / byte_size(a.type)};
  if (count(reader, a) * byte_size(a.type) != bytes.size())
    reader.refuse("the file has " + std::to_string(bytes.size() / byte_size(a.type)) + " elements, the extents need " +
                  std::to_string(count(reader, a)));
  a.bytes.assign(bytes.begin(), bytes.end());
}

Argument parse_buffer(Reader& reader, Argument a, const std::string& word) {
  a.is_buffer = true;
  a.type = reader.type(reader.next());
  if (reader.done()) reader.refuse("extents or contents are missing");
  std::string part = reader.next();
  a.extents = parse_extents(reader, part);
  if (!a.extents.empty()) {
    if (reader.done()) {
      if (a.access != ir::Access::Out) reader.refuse("contents are missing: [1,2,3], @file, iota, zero or random:SEED");
      resize(reader, a);
      return a;
    }
    part = reader.next();
  }
  if (a.access == ir::Access::Out) reader.refuse("an out buffer has extents and no contents");
  if (part == "random") {
    if (a.extents.empty())
      reader.refuse("extents are missing, for example " + word + ":" + std::string(ir::name(a.type)) + ":1024:random:7");
    if (reader.done()) reader.refuse("a seed is missing: random:7, or random:7:64 for values below 64");
    const std::uint64_t seed = reader.number(reader.next(), "the seed");
    const bool limited = !reader.done();
    const std::uint64_t limit = limited ? reader.number(reader.next(), "the limit") : 0;
    if (limited && limit == 0) reader.refuse("the limit is 0, and no value is below it");
    resize(reader, a);
    fill_random(a.type, a.bytes, seed, limit);
  } else if (part.starts_with('[')) {
    fill_list(reader, a, part);
  } else if (part.starts_with('@')) {
    fill_file(reader, a, part.substr(1));
  } else if (part == "iota" || part == "zero") {
    if (a.extents.empty()) {
      if (reader.done())
        reader.refuse("extents are missing, for example " + word + ":" + std::string(ir::name(a.type)) + ":" + part + ":1024");
      a.extents = parse_extents(reader, reader.next());
      if (a.extents.empty()) reader.refuse("extents are numbers with x between them, for example 32x32");
    }
    resize(reader, a);
    if (part == "iota")
      for (std::uint64_t i = 0; i < a.bytes.size() / byte_size(a.type); ++i)
        store_bits(a.type, a.bytes.data() + i * byte_size(a.type), value_of_index(a.type, i));
  } else {
    reader.refuse("'" + part + "' is neither extents nor contents: [1,2,3], @file, iota, zero or random:SEED");
  }
  if (!reader.done()) reader.refuse("something is left over at its end");
  return a;
}

}  // namespace

Argument parse_argument(const std::string& text) {
  Reader reader(text);
  Argument a;
  a.text = text;
  const std::string word = reader.next();
  if (word == "in" || word == "out" || word == "inout") {
    a.access = word == "in" ? ir::Access::In : word == "out" ? ir::Access::Out : ir::Access::InOut;
    if (reader.done()) reader.refuse("a type is missing");
    return parse_buffer(reader, std::move(a), word);
  }
  if (!ir::parse_type(word)) reader.refuse("it begins with neither in, out, inout nor a scalar's type");
  a.type = reader.type(word);
  if (reader.done()) reader.refuse("a value is missing, for example " + word + ":1");
  a.bits = reader.value(a.type, reader.next());
  if (!reader.done()) reader.refuse("something is left over at its end");
  return a;
}

void match_arguments(const ir::Kernel& kernel, const std::vector<Argument>& arguments) {
  std::vector<ParamInfo> params;
  for (const ir::Param& p : kernel.params) params.push_back({p.name, signature_type(kernel, p)});
  const std::string whole = signature(kernel.name, params);
  if (arguments.size() != kernel.params.size())
    usage(std::to_string(arguments.size()) + (arguments.size() == 1 ? " argument was" : " arguments were") + " given, the kernel takes " +
          std::to_string(kernel.params.size()) + ": " + whole);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    const ir::Param& p = kernel.params[i];
    const std::string where =
        "argument " + std::to_string(i + 1) + " '" + a.text + "' does not fit '" + p.name + "', " + params[i].type + ": ";
    if (a.is_buffer != p.is_buffer) usage(where + (p.is_buffer ? "it is a buffer" : "it is a scalar"));
    const ir::Type type = p.is_buffer ? kernel.mems[p.mem].element : p.type;
    if (a.type != type) usage(where + "its type is " + std::string(ir::name(type)));
    if (!p.is_buffer) continue;
    const ir::Mem& mem = kernel.mems[p.mem];
    if (a.access != mem.access) usage(where + "write it as " + access_name(mem.access) + ":...");
    if (a.extents.size() != mem.rank)
      usage(where + "it has " + std::to_string(mem.rank) + " extents, not " + std::to_string(a.extents.size()));
  }
}

}  // namespace kiln::cli
