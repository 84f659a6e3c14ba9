#include "cuda/ptx_target.h"

#include <algorithm>
#include <cctype>

namespace kiln::cuda {
namespace {

// The code generator's architectures without suffix, and the first PTX version of each. A test holds them together.
struct Arch {
  unsigned sm;
  std::uint32_t ptx;
};
constexpr Arch kArchs[] = {{75, 63}, {80, 70},  {86, 71},  {87, 74},  {88, 90},  {89, 78},
                           {90, 78}, {100, 86}, {103, 88}, {110, 90}, {120, 87}, {121, 88}};

struct Release {
  int driver;
  std::uint32_t ptx;
};
constexpr Release kReleases[] = {{12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84}, {12050, 85},
                                 {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91}};

constexpr std::string_view kSpace = " \t\r\n";

// A reader of words that knows comments.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  void skip() {
    for (;;) {
      at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size());
      if (text_.substr(at_).starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_).starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }
  // A name or number with its dots, else one character; empty at the end.
  std::string_view next() {
    skip();
    const std::size_t from = at_;
    const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == '%'; };
    while (at_ < text_.size() && part(text_[at_])) ++at_;
    if (at_ == from && at_ < text_.size()) ++at_;
    return text_.substr(from, at_ - from);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<unsigned> number(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  unsigned n = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    n = n * 10 + static_cast<unsigned>(c - '0');
  }
  return n;
}

std::string capability_text(unsigned capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }
std::string target_text(const PtxHeader& ptx) {
  return "sm_" + std::to_string(ptx.sm) + (ptx.suffix != 0 ? std::string(1, ptx.suffix) : "");
}

std::uint32_t type_bytes(std::string_view type) {
  if (type.size() < 3 || type[0] != '.') return 0;
  const std::size_t digits = type.find_first_of("0123456789");
  if (digits == std::string_view::npos) return 0;
  const auto bits = number(type.substr(digits));
  return bits ? *bits / 8 : 0;
}

}  // namespace

std::uint32_t ptx_of_driver(int driver_version) {
  std::uint32_t ptx = 80;
  for (const Release& r : kReleases)
    if (driver_version >= r.driver) ptx = r.ptx;
  // Newer ones have so far had the minor number of their CUDA version.
  if (driver_version >= 13020 && driver_version < 14000) ptx = 90 + static_cast<std::uint32_t>(driver_version % 1000 / 10);
  return ptx;
}

std::string ptx_text(std::uint32_t version) { return std::to_string(version / 10) + "." + std::to_string(version % 10); }

std::string best_target(unsigned capability, std::uint32_t ptx_version) {
  unsigned best = 0;
  for (const Arch& arch : kArchs)
    if (arch.sm <= capability && arch.ptx <= ptx_version) best = std::max(best, arch.sm);
  return best != 0 ? "sm_" + std::to_string(best) : std::string();
}

std::optional<PtxHeader> read_ptx_header(std::string_view ptx) {
  Reader reader(ptx);
  if (reader.next() != ".version") return std::nullopt;
  PtxHeader header;
  const std::string_view version = reader.next();
  const std::size_t dot = version.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto major = number(version.substr(0, dot)), minor = number(version.substr(dot + 1));
  if (!major || !minor || reader.next() != ".target") return std::nullopt;
  header.version = *major * 10 + *minor;
  std::string_view target = reader.next();
  if (!target.starts_with("sm_")) return std::nullopt;
  target.remove_prefix(3);
  if (target.ends_with('a') || target.ends_with('f')) {
    header.suffix = target.back();
    target.remove_suffix(1);
  }
  const auto sm = number(target);
  if (!sm) return std::nullopt;
  header.sm = *sm;
  return header;
}

std::string why_not(const PtxHeader& ptx, unsigned capability, std::uint32_t ptx_version, const std::string& device) {
  const std::string needs = "the program needs PTX " + ptx_text(ptx.version) + " and " + target_text(ptx) + "; ";
  const std::string offer = device + " has compute capability " + capability_text(capability) + " (sm_" + std::to_string(capability) +
                            "), and its driver reads PTX up to " + ptx_text(ptx_version);
  if (ptx.sm > capability) return needs + offer + ": compile for sm_" + std::to_string(capability) + " or older";
  if (ptx.suffix == 'a' && ptx.sm != capability) {
    return needs + offer + ": code for " + target_text(ptx) + " runs on that architecture only; compile without the suffix";
  }
  if (ptx.suffix == 'f' && ptx.sm / 10 != capability / 10) {
    return needs + offer + ": code for " + target_text(ptx) + " runs on its own family only; compile without the suffix";
  }
  if (ptx.version > ptx_version) return needs + offer + ": update the NVIDIA driver, or compile with a lower PTX version";
  return {};
}

std::optional<std::vector<PtxParam>> read_ptx_params(std::string_view ptx, std::string_view entry) {
  Reader reader(ptx);
  for (std::string_view word = reader.next(); !word.empty(); word = reader.next()) {
    if (word != ".entry" || reader.next() != entry) continue;
    std::vector<PtxParam> params;
    if (reader.next() != "(") return params;  // an entry without a list
    bool pointer = false;                     // behind .ptr an .align is that of what it points to
    std::string_view before;
    for (word = reader.next(); !word.empty() && word != ")"; word = reader.next()) {
      if (word == ".param") {
        params.push_back({});
        pointer = false;
      } else if (params.empty()) {
        continue;
      } else if (word == ".ptr") {
        pointer = true;
      } else if (before == ".align") {
        if (const auto align = number(word); align && *align != 0 && !pointer) params.back().align = *align;
      } else if (before == "[") {
        if (const auto count = number(word)) params.back().size *= *count;
      } else if (const std::uint32_t size = type_bytes(word); size != 0 && params.back().size == 0) {
        params.back().size = size;
        params.back().align = std::max(params.back().align, size);
      }
      before = word;
    }
    return params;
  }
  return std::nullopt;
}

bool is_cubin(std::string_view image) {
  return image.starts_with(
             "\x7f"
             "ELF") ||
         image.starts_with("\x50\xed\x55\xba");
}

}  // namespace kiln::cuda
