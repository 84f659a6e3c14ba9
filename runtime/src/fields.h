// Bytes of named fields, one after the other, each with its size, so that no two texts run into each other. A type lists its fields once,
// in a function `each_field(self, visit)` that calls visit(NAME, FIELD), and so has one writer and one reader that cannot differ.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace kiln::rt {

template <class T>
concept NumberField = std::is_integral_v<T> || std::is_enum_v<T>;

class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}
  template <NumberField T>
  void operator()(const char*, const T& v) {
    put(static_cast<std::uint64_t>(v));
  }
  void operator()(const char*, const std::string& text) {
    put(text.size());
    out_.append(text);
  }
  template <class T, std::size_t N>
  void operator()(const char* name, const std::array<T, N>& all) {
    for (const T& one : all) (*this)(name, one);
  }

 private:
  void put(std::uint64_t v) {
    char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(v >> (8 * i) & 0xff);
    out_.append(bytes, sizeof bytes);
  }
  std::string& out_;
};

// Any bytes may be given. What does not fit the fields leaves good() false, and the fields from there on as they were.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : left_(bytes) {}
  bool good() const { return good_; }
  bool whole() const { return good_ && left_.empty(); }  // and nothing was left over
  void fail() { good_ = false; }                         // what was read fits its field, and not its meaning

  template <NumberField T>
  void operator()(const char*, T& v) {
    const std::optional<std::uint64_t> n = take();
    if (!n) return;
    if (static_cast<std::uint64_t>(static_cast<T>(*n)) != *n) good_ = false;
    else v = static_cast<T>(*n);
  }
  void operator()(const char*, std::string& text) {
    const std::optional<std::uint64_t> size = take();
    if (!size) return;
    if (*size > left_.size()) {
      good_ = false;
      return;
    }
    text.assign(left_.substr(0, static_cast<std::size_t>(*size)));
    left_.remove_prefix(static_cast<std::size_t>(*size));
  }
  template <class T, std::size_t N>
  void operator()(const char* name, std::array<T, N>& all) {
    for (T& one : all) (*this)(name, one);
  }

 private:
  std::optional<std::uint64_t> take() {
    if (!good_ || left_.size() < 8) {
      good_ = false;
      return std::nullopt;
    }
    std::uint64_t v = 0;
    for (int i = 0; i < 8; ++i) v |= std::uint64_t{static_cast<unsigned char>(left_[static_cast<std::size_t>(i)])} << (8 * i);
    left_.remove_prefix(8);
    return v;
  }
  std::string_view left_;
  bool good_ = true;
};

}  // namespace kiln::rt
