#include "listing.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>

#include "files.h"
#include "kiln/ir/text.h"
#include "kiln/runtime/variant.h"
#include "tools.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostSource = std::uint64_t{16} << 20;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

// The number that begins at `at` (npos: nothing does), which then is behind it; -1 where there is none.
std::int64_t number_at(std::string_view text, std::size_t& at) {
  std::uint32_t n = 0;
  if (at >= text.size()) return -1;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), n);
  if (error != std::errc{}) return -1;
  at = static_cast<std::size_t>(end - text.data());
  return n;
}

int file_of(const std::string& name, std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  // The same file by another path: what a debugger's table has may be longer.
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty() && (name.ends_with("/" + names[i]) || names[i].ends_with("/" + name))) return static_cast<int>(i);
  names.push_back(name);
  return static_cast<int>(names.size() - 1);
}

SourceFile find_source(const std::string& name, const SourcePlaces& allowed) {
  SourceFile file{name, "", {}};
  std::vector<fs::path> places;
  if (allowed.as_named) places.emplace_back(name);
  const fs::path below = fs::path(name).relative_path().lexically_normal();
  for (const std::string& folder : allowed.folders) {
    if (!below.empty() && *below.begin() != "..") places.push_back(fs::path(folder) / below);
    if (below.filename() != "..") places.push_back(fs::path(folder) / below.filename());
  }
  std::error_code ignored;
  for (const fs::path& place : places) {
    if (!fs::is_regular_file(place, ignored)) continue;
    file.path = place.string();
    try {
      file.lines = split(read_file(file.path, kMostSource));
    } catch (const Failed&) { file.path.clear(); }
    if (!file.path.empty()) break;
  }
  return file;
}

// A file of a temporary folder, gone with this.
class Temporary {
 public:
  explicit Temporary(const std::string& bytes) {
    std::string pattern = (fs::temp_directory_path() / "kiln-XXXXXX").string();
    const int made = mkstemp(pattern.data());
    if (made < 0) fail(std::string("no temporary file: ") + std::strerror(errno));
    path_ = pattern;
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = ::write(made, bytes.data() + done, bytes.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    ::close(made);
    if (done != bytes.size()) {
      ::unlink(path_.c_str());
      fail("cannot write '" + path_ + "': " + std::strerror(errno));
    }
  }
  ~Temporary() { ::unlink(path_.c_str()); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Form gpu_code(const std::string& ptx, const std::string& arch, std::vector<std::string>& names) {
  Form form{arch, "", {}};
  const std::string assembler = find_program({"ptxas"}), disassembler = find_program({"nvdisasm"});
  if (assembler.empty() || disassembler.empty()) {
    form.note = "no machine code: it needs ptxas and nvdisasm of a CUDA toolkit, and " +
                std::string(assembler.empty() ? disassembler.empty() ? "neither is" : "ptxas is not" : "nvdisasm is not") + " on PATH";
    return form;
  }
  const Temporary source(ptx), cubin("");
  const ProgramResult made = run_program({assembler, "-arch=" + arch, "--generate-line-info", "-o", cubin.path(), source.path()});
  if (made.status != 0) {
    form.note = "no machine code: ptxas refused the PTX for " + arch + ": " + made.out.substr(0, made.out.find('\n'));
    return form;
  }
  const ProgramResult said = run_program({disassembler, "--print-line-info", "--print-code", cubin.path()});
  if (said.status != 0) form.note = "no machine code: nvdisasm failed: " + said.out.substr(0, said.out.find('\n'));
  else form.lines = lines_of_nvdisasm(said.out, names);
  return form;
}

Form host_code(const std::string& object, const std::string& arch) {
  Form form{arch, "", {}};
  const std::string disassembler = find_program({"llvm-objdump", "objdump"});
  if (disassembler.empty()) {
    form.note = "no machine code: it needs llvm-objdump or objdump, and neither is on PATH";
    return form;
  }
  const Temporary file(object);
  const ProgramResult said = run_program({disassembler, "-d", "--no-show-raw-insn", file.path()});
  if (said.status != 0) {
    form.note = "no machine code: " + disassembler + " failed: " + said.out.substr(0, said.out.find('\n'));
    return form;
  }
  form.note = "code for CPUs does not say which lines it is of";
  for (std::string& line : split(said.out))
    if (!line.empty() && line.find(file.path()) == std::string::npos) form.lines.push_back({std::move(line), {}});
  return form;
}

}  // namespace

std::vector<FormLine> lines_of_ir(const std::string& text) {
  std::vector<FormLine> lines;
  for (const std::string& line : split(text)) {
    SourceLine of;
    const std::size_t quote = line.rfind('"');
    std::size_t at = line.rfind(" @");
    if (at != std::string::npos && (quote == std::string::npos || at > quote)) {
      at += 2;
      const std::int64_t file = number_at(line, at);
      if (file >= 0 && at < line.size() && line[at] == ':') {
        ++at;
        if (const std::int64_t number = number_at(line, at); number >= 0) of = {static_cast<int>(file), static_cast<std::uint32_t>(number)};
      }
    }
    lines.push_back({line, of});
  }
  return lines;
}

std::vector<FormLine> lines_of_ptx(const std::string& text, std::vector<std::string>& names) {
  const std::vector<std::string> all = split(text);
  // .file 1 "saxpy.cpp": anywhere, mostly at the end.
  std::vector<std::pair<std::int64_t, int>> files;
  const auto word = [](const std::string& line, const char* directive) {
    const std::size_t from = line.find_first_not_of(" \t");
    const std::size_t length = std::strlen(directive);
    return from != std::string::npos && line.compare(from, length, directive) == 0 && from + length < line.size() &&
                   (line[from + length] == ' ' || line[from + length] == '\t')
               ? from + length
               : std::string::npos;
  };
  for (const std::string& line : all) {
    std::size_t at = word(line, ".file");
    if (at == std::string::npos) continue;
    at = line.find_first_not_of(" \t", at);
    const std::int64_t number = number_at(line, at);
    const std::size_t open = line.find('"'), close = open == std::string::npos ? open : line.find('"', open + 1);
    if (number >= 0 && close != std::string::npos) files.emplace_back(number, file_of(line.substr(open + 1, close - open - 1), names));
  }
  std::vector<FormLine> lines;
  SourceLine now;
  for (const std::string& line : all) {
    if (std::size_t at = word(line, ".loc"); at != std::string::npos) {
      at = line.find_first_not_of(" \t", at);
      const std::int64_t file = number_at(line, at);
      if (file >= 0) at = line.find_first_not_of(" \t", at);
      const std::int64_t number = file >= 0 ? number_at(line, at) : -1;
      now = {};
      for (const auto& [n, index] : files)
        if (number > 0 && n == file) now = {index, static_cast<std::uint32_t>(number)};
      continue;
    }
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    if (line[first] == '}' && first == 0) now = {};  // the end of the entry
    const bool outside = line.starts_with(".") || line.starts_with("//");
    lines.push_back({line, outside ? SourceLine{} : now});
  }
  return lines;
}

std::vector<FormLine> lines_of_nvdisasm(const std::string& text, std::vector<std::string>& names) {
  std::vector<FormLine> lines;
  SourceLine now;
  for (const std::string& line : split(text)) {
    // //## File "/a/saxpy.cpp", line 12
    const std::size_t mark = line.find("//## File \"");
    if (mark != std::string::npos) {
      const std::size_t from = mark + 11, close = line.find('"', from);
      std::size_t at = close == std::string::npos ? close : line.find("line ", close);
      now = {};
      if (at == std::string::npos) continue;
      at += 5;
      if (const std::int64_t number = number_at(line, at); number > 0)
        now = {file_of(line.substr(from, close - from), names), static_cast<std::uint32_t>(number)};
      continue;
    }
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    if (line.compare(first, 8, ".section") == 0) now = {};
    const bool instruction = line.compare(first, 2, "/*") == 0;
    lines.push_back({line, instruction ? now : SourceLine{}});
  }
  return lines;
}

Listing make_listing(const Variant& variant, const ir::Prepared& kernel, const CompileOptions& options, const SourcePlaces& places) {
  Listing listing{variant.name(), options.arch, {}, {}};
  std::vector<std::string> names = variant.recorded().files;
  listing.forms.push_back({"IR, as recorded", "", lines_of_ir(ir::print(variant.recorded()))});
  const CompiledCode code = compile(kernel, options);
  if (options.target == TargetKind::Ptx) {
    listing.forms.push_back({"PTX", "", lines_of_ptx(code.code, names)});
    listing.forms.push_back(gpu_code(code.code, options.arch, names));
  } else {
    listing.forms.push_back(host_code(code.code, options.arch));
  }
  for (const std::string& name : names) listing.files.push_back(find_source(name, places));
  return listing;
}

std::vector<SourceLine> used_lines(const Listing& listing) {
  std::set<SourceLine> all;
  for (const Form& form : listing.forms)
    for (const FormLine& line : form.lines)
      if (line.of.known()) all.insert(line.of);
  return {all.begin(), all.end()};
}

}  // namespace kiln::cli
