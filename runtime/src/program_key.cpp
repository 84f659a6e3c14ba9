#include "src/program_key.h"

#include <algorithm>

#include "src/fields.h"

namespace kiln::rt {
namespace {

constexpr std::uint64_t kForm = 1;  // of the bytes; another one is another key

// The one list of fields: who adds one to CompileOptions adds it here.
template <class Key, class Visit>
void each_field(Key& key, Visit& visit) {
  visit("interface version", key.interface_version);
  visit("build", key.build_id);
  visit("LLVM", key.llvm_version);
  auto& o = key.options;
  visit("target", o.target);
  visit("arch", o.arch);
  visit("PTX version at most", o.ptx_version);
  visit("block", o.block);
  visit("block a multiple of 32", o.block_multiple_of_32);
  visit("arguments aligned to 16 bytes", o.aligned16);
  visit("lines", o.line_info);
  visit("text", key.kernel_text);
}

// What each_field visits, as words.
struct Named {
  const char* name;
  std::string value;
};
class Words {
 public:
  std::vector<Named> all;
  void operator()(const char* name, const std::string& text) { all.push_back({name, text}); }
  void operator()(const char* name, const bool& b) { all.push_back({name, b ? "yes" : "no"}); }
  void operator()(const char* name, const TargetKind& t) { all.push_back({name, t == TargetKind::Ptx ? "PTX" : "host"}); }
  void operator()(const char* name, const std::uint32_t& n) { all.push_back({name, n == 0 ? "any" : std::to_string(n)}); }
  void operator()(const char* name, const std::array<std::uint32_t, 3>& b) {
    const bool at_launch = b[0] == 0;  // CompileOptions::block
    all.push_back({name, at_launch ? b[1] == 0 ? "any shape" : "any row"
                                   : std::to_string(b[0]) + "," + std::to_string(b[1]) + "," + std::to_string(b[2])});
  }
};

std::string shortened(std::string_view line) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  line.remove_prefix(first);
  constexpr std::size_t most = 60;
  return "`" + std::string(line.substr(0, most)) + (line.size() > most ? "...`" : "`");
}

// The first line of two texts that differs.
std::string text_difference(std::string_view a, std::string_view b) {
  for (std::size_t line = 1;; ++line) {
    const std::size_t end_a = std::min(a.find('\n'), a.size()), end_b = std::min(b.find('\n'), b.size());
    const std::string_view of_a = a.substr(0, end_a), of_b = b.substr(0, end_b);
    if (of_a != of_b || end_a == a.size() || end_b == b.size())
      return "the kernel's text from line " + std::to_string(line) + " on: " + shortened(of_a) + " against " + shortened(of_b);
    a.remove_prefix(end_a + 1);
    b.remove_prefix(end_b + 1);
  }
}

}  // namespace

std::string serialise(const ProgramKey& key) {
  std::string out;
  out.reserve(key.kernel_text.size() + 256);
  FieldWriter write(out);
  write("form", kForm);
  each_field(key, write);
  return out;
}

std::optional<ProgramKey> read_program_key(std::string_view bytes) {
  FieldReader read(bytes);
  std::uint64_t form = 0;
  read("form", form);
  if (!read.good() || form != kForm) return std::nullopt;
  ProgramKey key;
  each_field(key, read);
  if (!read.whole()) return std::nullopt;
  return key;
}

std::vector<std::string> differences(const ProgramKey& wanted, const ProgramKey& there) {
  Words a, b;
  each_field(wanted, a);
  each_field(there, b);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < a.all.size(); ++i) {
    const Named &w = a.all[i], &t = b.all[i];
    if (w.value == t.value) continue;
    const std::string_view name = w.name;
    if (name == "build") all.push_back("built by another Kiln");
    else if (name == "text") all.push_back(text_difference(w.value, t.value));
    else all.push_back(std::string(name) + " " + w.value + " against " + t.value);
  }
  return all;
}

}  // namespace kiln::rt
