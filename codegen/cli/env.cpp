// kiln env: the environment, where compiled kernels are kept; what is in it, whether it is whole, bounding and sharing it.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <limits>

#include "amounts.h"
#include "command.h"
#include "compile.h"
#include "kiln/runtime/environment.h"
#include "names.h"
#include "source.h"

namespace kiln::cli {
namespace {

template <class T>
T done(Result<T> result) {
  if (!result.has_value()) fail(one_line(result.error()));
  return std::move(*result);
}

EnvironmentReport report() {
  EnvironmentReport r = done(environment_report());
  if (r.layers.empty())
    fail(r.off ? "there is no environment: KILN_ENV is off" : "there is no environment: " + r.problem + "; KILN_ENV sets the folder");
  return r;
}

// Those that can be read. One that is there and cannot is an error: what it has would be missing without a word.
std::vector<EnvironmentLayer> readable() {
  std::vector<EnvironmentLayer> all;
  for (EnvironmentLayer& layer : report().layers) {
    if (!layer.exists && layer.writable && layer.problem.empty()) continue;  // nothing was kept yet
    if (!layer.problem.empty()) fail("the environment '" + layer.path + "': " + layer.problem);
    all.push_back(std::move(layer));
  }
  return all;
}

EnvironmentLayer writable() {
  for (EnvironmentLayer& layer : report().layers)
    if (layer.writable) return std::move(layer);
  fail("KILN_ENV names no environment that is written, only layers that are read");
}

// What is there of the one that is written; nothing was kept yet: null.
std::optional<EnvironmentFile> to_change() {
  const EnvironmentLayer layer = writable();
  if (!layer.exists) return std::nullopt;
  return done(EnvironmentFile::open(layer.path, EnvironmentFile::For::Changing));
}

EnvironmentFilter filter_of(const Options& options) { return {options.filter_kernels, options.arch}; }

std::string time_text(std::int64_t seconds) {
  const std::time_t at = seconds;
  std::tm parts{};
  char text[32] = "?";
  if (gmtime_r(&at, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%MZ", &parts);
  return text;
}

std::string block_text(const std::array<std::uint32_t, 3>& b) {
  return std::to_string(b[0]) + "," + std::to_string(b[1]) + "," + std::to_string(b[2]);
}

Json json_of(const EnvironmentEntry& e, const std::string& file) {
  Json j{{"id", e.id},
         {"kernel", e.kernel},
         {"arch", e.options.arch},
         {"target", e.options.target == TargetKind::Ptx ? "ptx" : "host"},
         {"block", e.options.block},
         {"block_multiple_of_32", e.options.block_multiple_of_32},
         {"aligned16", e.options.aligned16},
         {"ptx_version", e.options.ptx_version},
         {"line_info", e.options.line_info},
         {"build", e.build_id},
         {"llvm", e.llvm_version},
         {"of_this_kiln", e.of_this_kiln},
         {"bytes", e.bytes},
         {"code_bytes", e.code_bytes},
         {"created", e.created},
         {"used", e.used},
         {"file", file}};
  if (!e.wrong.empty()) j["wrong"] = e.wrong;
  return j;
}

void tell_count(const Options& options, const char* what, std::uint64_t count, const std::string& where) {
  if (options.json) print_json({{what, count}, {"file", where}});
  else std::printf("%llu entr%s %s: %s\n", static_cast<unsigned long long>(count), count == 1 ? "y" : "ies", what, where.c_str());
}

struct Found {
  std::string file;
  EnvironmentEntry entry;
};
std::vector<Found> found(const EnvironmentFilter& filter) {
  std::vector<Found> all;
  for (const EnvironmentLayer& layer : readable()) {
    const EnvironmentFile file = done(EnvironmentFile::open(layer.path));
    for (EnvironmentEntry& e : done(file.list(filter))) all.push_back({layer.file, std::move(e)});
  }
  return all;
}

}  // namespace

int env_path_command(const Options& options) {
  const EnvironmentReport r = done(environment_report());
  Json layers = Json::array();
  if (!options.json && r.off && r.layers.empty()) std::printf("off (KILN_ENV)\n");
  if (!options.json && !r.problem.empty()) std::printf("none: %s\n", r.problem.c_str());
  for (const EnvironmentLayer& l : r.layers) {
    layers.push_back({{"path", l.path},
                      {"file", l.file},
                      {"writable", l.writable},
                      {"exists", l.exists},
                      {"problem", l.problem},
                      {"entries", l.entries},
                      {"bytes", l.bytes}});
    if (options.json) continue;
    std::printf("%s (%s): ", l.path.c_str(), l.writable ? "written" : "only read");
    if (!l.problem.empty()) std::printf("cannot be used: %s\n", l.problem.c_str());
    else if (!l.exists) std::printf("nothing was kept yet\n");
    else std::printf("%llu kernels, %s\n", static_cast<unsigned long long>(l.entries), size_text(l.bytes).c_str());
  }
  if (options.json) print_json({{"off", r.off}, {"problem", r.problem}, {"max_bytes", r.most_bytes}, {"layers", layers}});
  return kDone;
}

int env_list_command(const Options& options) {
  const std::vector<Found> all = found(filter_of(options));
  if (options.json) {
    Json entries = Json::array();
    for (const Found& f : all) entries.push_back(json_of(f.entry, f.file));
    print_json({{"entries", entries}});
    return kDone;
  }
  for (const Found& f : all)
    std::printf("%.12s  %-10s %-12s %10s  used %s  %s%s\n", f.entry.id.c_str(), f.entry.options.arch.c_str(),
                block_text(f.entry.options.block).c_str(), size_text(f.entry.bytes).c_str(), time_text(f.entry.used).c_str(),
                f.entry.kernel.c_str(), f.entry.of_this_kiln ? "" : " (of another Kiln)");
  return kDone;
}

int env_show_command(const Options& options) {
  const std::string& wanted = options.paths.at(0);
  std::vector<Found> all = found({});
  const auto by = [&](auto&& is) {
    std::vector<Found> some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](const Found& f) { return is(f.entry); });
    return some;
  };
  std::vector<Found> some = by([&](const EnvironmentEntry& e) { return e.kernel == wanted || e.kernel.ends_with("::" + wanted); });
  if (some.empty() && wanted.size() >= 4) some = by([&](const EnvironmentEntry& e) { return e.id.starts_with(wanted); });
  if (some.empty()) {
    std::vector<std::string> names;
    for (const Found& f : all)
      if (std::find(names.begin(), names.end(), f.entry.kernel) == names.end()) names.push_back(f.entry.kernel);
    fail(unknown("entry or kernel", wanted, names));
  }
  if (options.json) {
    Json entries = Json::array();
    for (const Found& f : some) entries.push_back(json_of(f.entry, f.file));
    print_json({{"entries", entries}});
    return kDone;
  }
  for (const Found& f : some) {
    const EnvironmentEntry& e = f.entry;
    std::printf("%s\n  kernel   %s\n  for      %s, block %s, %sarguments aligned to 16 bytes\n", e.id.c_str(), e.kernel.c_str(),
                e.options.arch.c_str(), block_text(e.options.block).c_str(), e.options.aligned16 ? "" : "no ");
    std::printf("  by       %s, LLVM %s\n  size     %s, %s of code\n  made     %s\n  used     %s\n  in       %s\n",
                e.of_this_kiln ? "this Kiln" : ("another Kiln, " + e.build_id).c_str(), e.llvm_version.c_str(), size_text(e.bytes).c_str(),
                size_text(e.code_bytes).c_str(), time_text(e.created).c_str(), time_text(e.used).c_str(), f.file.c_str());
  }
  return kDone;
}

int env_verify_command(const Options& options) {
  Json wrong = Json::array();
  std::uint64_t entries = 0, dropped = 0;
  std::size_t bad_entries = 0;
  for (const EnvironmentLayer& layer : readable()) {
    const bool drop = options.drop && layer.writable;
    EnvironmentFile file = done(EnvironmentFile::open(layer.path, drop ? EnvironmentFile::For::Changing : EnvironmentFile::For::Reading));
    entries += layer.entries;
    for (const EnvironmentEntry& e : done(file.verify())) {
      wrong.push_back(json_of(e, layer.file));
      ++bad_entries;
      if (options.json) continue;
      if (e.id.empty()) std::printf("%s: %s\n", layer.file.c_str(), e.wrong.c_str());
      else std::printf("%s: the entry %s of kernel '%s': %s\n", layer.file.c_str(), e.id.c_str(), e.kernel.c_str(), e.wrong.c_str());
    }
    if (drop) dropped += done(file.drop_damaged());
  }
  const bool good = bad_entries == dropped;
  if (options.json) print_json({{"entries", entries}, {"wrong", wrong}, {"dropped", dropped}, {"ok", good}});
  else
    std::printf("%llu entries, %zu damaged%s\n", static_cast<unsigned long long>(entries), bad_entries,
                dropped > 0 ? (", " + std::to_string(dropped) + " dropped").c_str() : "");
  return good ? kDone : kFailed;
}

int env_prune_command(const Options& options) {
  if (options.most_bytes.empty() && options.unused.empty()) usage("env prune needs --max-bytes or --unused");
  const std::uint64_t most =
      options.most_bytes.empty() ? std::numeric_limits<std::uint64_t>::max() : size_amount(options.most_bytes, "--max-bytes");
  const std::int64_t unused =
      options.unused.empty()
          ? std::numeric_limits<std::int64_t>::max()
          : static_cast<std::int64_t>(amount(options.unused, "--unused", {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}));
  std::optional<EnvironmentFile> file = to_change();
  tell_count(options, "removed", file ? done(file->prune(most, unused)) : 0, writable().file);
  return kDone;
}

int env_clear_command(const Options& options) {
  std::optional<EnvironmentFile> file = to_change();
  tell_count(options, "removed", file ? done(file->clear()) : 0, writable().file);
  return kDone;
}

int env_export_command(const Options& options) {
  const std::vector<EnvironmentLayer> layers = readable();
  if (layers.empty()) fail("there is nothing to export: nothing was kept yet in '" + report().layers.front().path + "'");
  if (layers.size() > 1) fail("an export is made of one environment, and KILN_ENV names several; name the one");
  const EnvironmentFile file = done(EnvironmentFile::open(layers[0].path));
  const EnvironmentFilter filter = filter_of(options);
  if (done(file.list(filter)).empty() && (!filter.kernels.empty() || !filter.archs.empty()))
    fail("no entry of '" + file.path() + "' is of these kernels and architectures");
  tell_count(options, "exported", done(file.export_to(options.paths.at(0), filter)), options.paths.at(0));
  return kDone;
}

int env_import_command(const Options& options) {
  EnvironmentFile file = done(EnvironmentFile::make(writable().path));
  std::uint64_t count = 0;
  for (const std::string& path : options.paths) count += done(file.import_from(path));
  tell_count(options, "imported", count, file.path());
  return kDone;
}

int env_why_command(const Options& options) {
  if (options.arch.size() > 1) usage("env why takes one --arch");
  const std::unique_ptr<Source> source = Source::open(options.source, Source::Places::OfSource);
  const std::shared_ptr<const Variant> variant = source->variant(options.kernels.at(0));
  const Arch arch = options.arch.empty() ? Arch{host_level(), TargetKind::Host} : parse_arch(options.arch[0]);
  const auto block = options.block.empty() ? std::array<std::uint32_t, 3>{} : parse_extent(options.block, "--block");
  const ir::Prepared& kernel = prepared(*variant, parse_mode(options.mode));
  (void)report();
  EnvironmentQuestion question{.kernel = kernel, .options = compile_options(kernel, arch, block)};
  question.any_warps = arch.kind == TargetKind::Ptx && block[0] == 0 && !kernel.kernel.has_block_size();
  const EnvironmentAnswer answer = done(environment_why(question));
  if (options.json) {
    Json j{{"kernel", variant->name()},
           {"arch", arch.name},
           {"hit", answer.hit},
           {"entries_of_kernel", answer.of_kernel},
           {"reasons", answer.reasons}};
    if (answer.of_kernel > 0) j["nearest"] = json_of(answer.nearest, answer.file);
    print_json(j);
    return kDone;
  }
  std::printf("%s for %s: %s\n", variant->name().c_str(), arch.name.c_str(), answer.hit ? "hit" : "miss");
  for (const std::string& reason : answer.reasons) std::printf("  %s\n", reason.c_str());
  if (answer.of_kernel > 0)
    std::printf("  %s %s in %s (%s arguments)\n", answer.hit ? "entry" : "nearest entry", answer.nearest.id.substr(0, 12).c_str(),
                answer.file.c_str(), answer.nearest.options.aligned16 ? "aligned" : "unaligned");
  return kDone;
}

}  // namespace kiln::cli
