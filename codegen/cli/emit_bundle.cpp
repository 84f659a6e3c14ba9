#include "emit_bundle.h"

#include <algorithm>
#include <cstdio>

#include "kiln/ir/text.h"
#include "names.h"

namespace kiln::cli {
namespace {

// 128 bits of FNV-1a, as hexadecimal digits: so that an embedding source differs where its bundles do. The bundles have checksums of their
// own.
std::string signature_of(const std::string& bytes) {
  unsigned __int128 hash = (static_cast<unsigned __int128>(0x6c62272e07bb0142u) << 64) | 0x62b821756295c58du;
  const unsigned __int128 prime = (static_cast<unsigned __int128>(1) << 88) | 0x13b;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash >> 64), static_cast<unsigned long long>(hash));
  return text;
}

// How special code is: what is less so serves wherever the other does.
int special(const CompileOptions& o) { return (o.aligned16 ? 2 : 0) + (o.block_multiple_of_32 ? 1 : 0); }

}  // namespace

void BundlePlan::refuse_options(const Options& options) {
  for (const auto& [given, name] : {std::pair{!options.blocks.empty(), "--blocks"},
                                    {!options.modes.empty(), "--modes"},
                                    {!options.embed.empty(), "--embed"},
                                    {!options.embed_header.empty(), "--header"},
                                    {!options.embed_namespace.empty(), "--namespace"},
                                    {!options.depfile.empty(), "--depfile"}})
    if (given) usage(std::string(name) + " is about bundles: --emit bundle makes them");
}

BundlePlan BundlePlan::of(const Options& options, std::vector<Arch> archs) {
  BundlePlan plan;
  if (archs.empty()) usage("--emit bundle needs --arch, GPU architectures and CPU levels: sm_80,x86-64,x86-64-v3");
  plan.archs = std::move(archs);
  if (!options.block.empty())
    usage("a bundle holds code for any block; --blocks X,Y,Z adds code for one shape, --block is of the other kinds");
  for (const std::string& text : options.blocks) {
    const auto block = parse_extent(text, "--blocks");
    if (block[0] == 0 || block[1] == 0 || block[2] == 0) usage("--blocks " + text + ": a block has at least one thread each way");
    if (std::find(plan.blocks.begin(), plan.blocks.end(), block) == plan.blocks.end()) plan.blocks.push_back(block);
  }
  if (!options.modes.empty() && !options.mode.empty()) usage("--mode and --modes: give one of them");
  for (const std::string& text : options.modes) {
    const Mode mode = text == "own" ? Mode::AsKernel : parse_mode(text);
    if (std::find(plan.modes.begin(), plan.modes.end(), mode) == plan.modes.end()) plan.modes.push_back(mode);
  }
  if (plan.modes.empty()) plan.modes.push_back(parse_mode(options.mode));
  plan.embed = options.embed;
  plan.header = options.embed_header.empty() ? options.embed + ".h" : options.embed_header;
  plan.space = options.embed_namespace;
  plan.depfile = options.depfile;
  const auto word = [](const std::string& text) {
    return text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
  };
  if (!word(plan.embed)) usage("--embed " + plan.embed + ": a name of letters, digits and _ is needed");
  if (plan.embed.empty())
    for (const auto& [text, name] :
         {std::pair{&options.embed_header, "--header"}, {&options.embed_namespace, "--namespace"}, {&options.depfile, "--depfile"}})
      if (!text->empty()) usage(std::string(name) + " needs --embed");
  if (plan.header.find('/') != std::string::npos)
    usage("--header " + plan.header + ": a file's name is needed; it is written into --output");
  std::string colons = plan.space;
  std::erase(colons, ':');
  if (!word(colons) || plan.space.starts_with(":") || plan.space.ends_with(":"))
    usage("--namespace " + plan.space + ": a name as a::b is needed");
  return plan;
}

std::vector<CompileOptions> bundle_targets(const ir::Prepared& kernel, const BundlePlan& plan) {
  const ir::Kernel& k = kernel.kernel;
  const bool buffers = std::any_of(k.params.begin(), k.params.end(), [](const ir::Param& p) { return p.is_buffer; });
  std::vector<CompileOptions> all;
  const auto add = [&](CompileOptions options) {
    options.aligned16 = false;
    all.push_back(options);
    if (!buffers) return;
    options.aligned16 = true;
    all.push_back(options);
  };
  for (const Arch& arch : plan.archs) {
    if (arch.kind == TargetKind::Ptx) {
      CompileOptions options = compile_options(kernel, arch, {});
      add(options);
      if (!k.has_block_size()) {
        options.block_multiple_of_32 = true;
        add(options);
      }
      continue;
    }
    CompileOptions options;
    options.target = TargetKind::Host;
    options.arch = arch.name;
    if (k.has_block_size()) {
      options.block = k.block_size;
      add(options);
      continue;
    }
    std::vector<std::array<std::uint32_t, 3>> blocks{{0, 1, 1}, {0, 0, 0}};
    for (const auto& block : plan.blocks) {
      const std::uint64_t threads = std::uint64_t{block[0]} * block[1] * block[2];
      if (threads <= 1024 && (k.max_threads == 0 || threads <= k.max_threads)) blocks.push_back(block);
    }
    for (const auto& block : blocks) {
      options.block = block;
      add(options);
    }
  }
  return all;
}

std::vector<BundleItem> without_equals(std::vector<BundleItem> items) {
  std::stable_sort(items.begin(), items.end(),
                   [](const BundleItem& a, const BundleItem& b) { return special(a.options) < special(b.options); });
  std::vector<BundleItem> kept;
  for (BundleItem& item : items) {
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const BundleItem& k) {
      return k.kind == item.kind && k.options.arch == item.options.arch && k.options.block == item.options.block &&
             (special(k.options) & special(item.options)) == special(k.options) && k.code.code == item.code.code;
    });
    if (!known) kept.push_back(std::move(item));
  }
  return kept;
}

void BundleFiles::add(const SourceKernel& kernel, const Variant& variant, Mode mode, std::vector<BundleItem> items) {
  Result<std::string> bytes = write_bundle(variant, mode, without_equals(std::move(items)));
  if (!bytes) throw Exception(bytes.error());
  const bool checked = prepared(variant, mode).kernel.options.checked;
  const std::string name = ir::symbol_name(variant.name()) + (checked ? ".checked" : ".unchecked") + ".kilnb";
  // Two modes may be the same one: the kernel's own and the one it is.
  if (std::any_of(bundles_.begin(), bundles_.end(), [&](const OutputFile& f) { return f.name == name; })) return;
  bundles_.push_back({name, std::move(bytes.value())});
  if (std::none_of(kernels_.begin(), kernels_.end(), [&](const SourceKernel& k) { return k.name == kernel.name; }))
    kernels_.push_back(kernel);
}

void BundleFiles::finish(const std::string& folder, std::vector<OutputFile>& files) const {
  if (plan_.embed.empty()) {
    files.insert(files.end(), bundles_.begin(), bundles_.end());
    return;
  }
  std::vector<const OutputFile*> sorted;
  for (const OutputFile& file : bundles_) sorted.push_back(&file);
  std::sort(sorted.begin(), sorted.end(), [](const OutputFile* a, const OutputFile* b) { return a->name < b->name; });
  std::string all;
  for (const OutputFile* file : sorted) all += file->bytes;  // each a multiple of 16 bytes
  const std::string path = folder + "/" + plan_.embed + ".kilnb";
  const EmbedNames names{plan_.embed, plan_.space, path, signature_of(all)};
  std::vector<SourceKernel> kernels = kernels_;
  std::sort(kernels.begin(), kernels.end(), [](const SourceKernel& a, const SourceKernel& b) { return a.name < b.name; });
  files.push_back({plan_.embed + ".kilnb", std::move(all)});
  files.push_back({plan_.embed + ".cpp", embedding_source(names), true});
  files.push_back({plan_.header, embedding_header(names, kernels), true});
  if (plan_.depfile.empty()) return;
  // What decides the bytes beside this program and its libraries, for a build system: it is opened by name. As a rule of make.
  std::string from;
  for (const char c : code_generator().path)
    from += c == ' ' || c == '\\' || c == '#' ? std::string("\\") + c : c == '$' ? "$$" : std::string(1, c);
  std::string made;
  for (const char c : path) made += c == ' ' || c == '\\' || c == '#' ? std::string("\\") + c : c == '$' ? "$$" : std::string(1, c);
  files.push_back({plan_.depfile, made + ": " + from + "\n"});
}

}  // namespace kiln::cli
