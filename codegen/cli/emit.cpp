// kiln emit: files of code for a launcher of one's own. All or nothing.
#include <algorithm>
#include <cstdio>

#include "command.h"
#include "compile.h"
#include "emit_bundle.h"
#include "files.h"
#include "kiln/ir/text.h"
#include "manifest.h"
#include "names.h"
#include "source.h"

namespace kiln::cli {
namespace {

const std::vector<std::string> kKinds{"ptx", "cubin", "object", "llvm", "kir", "json", "bundle"};

struct Plan {
  std::vector<std::string> kinds;
  std::vector<Arch> archs;
  BundlePlan bundles;  // where they are asked for
  bool has(const char* kind) const { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }
  bool any(TargetKind target) const {
    return std::any_of(archs.begin(), archs.end(), [&](const Arch& a) { return a.kind == target; });
  }
};

// What is asked for, as a whole: nothing asked for may stay without a file.
Plan make_plan(const Options& options) {
  if (options.out_dir.empty()) usage("--output names no folder");
  Plan plan;
  for (const std::string& kind : options.emit) {
    if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) usage(unknown("kind of --emit", kind, kKinds));
    if (!plan.has(kind.c_str())) plan.kinds.push_back(kind);
  }
  for (const std::string& name : options.arch)
    if (std::none_of(plan.archs.begin(), plan.archs.end(), [&](const Arch& a) { return a.name == name; }))
      plan.archs.push_back(parse_arch(name));
  const bool gpu = plan.any(TargetKind::Ptx), host = plan.any(TargetKind::Host);
  for (const char* kind : {"ptx", "cubin"})
    if (plan.has(kind) && !gpu) usage(std::string("--emit ") + kind + " needs a GPU architecture in --arch, for example sm_80");
  if (plan.has("object") && !host) usage("--emit object needs a CPU level in --arch: " + plain_list(host_levels()));
  if (plan.has("bundle")) plan.bundles = BundlePlan::of(options, plan.archs);
  else BundlePlan::refuse_options(options);
  if (plan.has("llvm") && plan.archs.empty()) usage("--emit llvm needs --arch");
  const bool llvm = plan.has("llvm") || plan.has("bundle");
  if (gpu && !plan.has("ptx") && !plan.has("cubin") && !llvm)
    usage("nothing is made for the GPU architectures in --arch: --emit names neither ptx, cubin, llvm nor bundle");
  if (host && !plan.has("object") && !llvm)
    usage("nothing is made for the CPU levels in --arch: --emit names neither object, llvm nor bundle");
  return plan;
}

void emit_kernel(const Variant& variant, const Plan& plan, Mode mode, const std::array<std::uint32_t, 3>& block,
                 std::vector<OutputFile>& files) {
  const ir::Prepared& kernel = prepared(variant, mode);
  const std::string symbol = ir::symbol_name(variant.name());
  std::vector<Target> targets;
  for (const Arch& arch : plan.archs) {
    const bool ptx = plan.has("ptx") && arch.kind == TargetKind::Ptx, cubin = plan.has("cubin") && arch.kind == TargetKind::Ptx;
    const bool object = plan.has("object") && arch.kind == TargetKind::Host;
    if (!ptx && !cubin && !object && !plan.has("llvm")) continue;  // of bundles alone
    const CompileOptions options = compile_options(kernel, arch, block);
    const std::string stem = symbol + "." + arch.name;
    if (plan.has("llvm")) files.push_back({stem + ".ll", llvm_ir(kernel, options)});
    if (!ptx && !cubin && !object) continue;
    CompiledCode code = compile(kernel, options);
    const auto add = [&](const char* kind, const char* extension, std::string bytes) {
      Target target{arch.name, kind, stem + extension, options, code};
      target.code.code.clear();
      targets.push_back(std::move(target));
      files.push_back({stem + extension, std::move(bytes)});
    };
    if (cubin) add("cubin", ".cubin", assemble(code.code, arch.name));
    if (ptx) add("ptx", ".ptx", code.code);
    if (object) add("object", ".o", code.code);
  }
  if (plan.has("kir")) files.push_back({symbol + ".kir", ir::print(std::vector<ir::Kernel>{variant.recorded()})});
  if (plan.has("json"))
    files.push_back({symbol + ".json", manifest(variant, kernel, targets).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"});
}

void emit_bundles(const SourceKernel& family, const Variant& variant, const BundlePlan& plan, BundleFiles& bundles) {
  for (const Mode mode : plan.modes) {
    std::vector<BundleItem> items;
    for (const CompileOptions& options : bundle_targets(prepared(variant, mode), plan)) {
      const auto kind = options.target == TargetKind::Ptx ? BundleItem::Kind::Ptx : BundleItem::Kind::Object;
      items.push_back({kind, options, compile(prepared(variant, mode), options)});
    }
    bundles.add(family, variant, mode, std::move(items));
  }
}

// What is wrong with each kernel, all in one error.
class Findings {
 public:
  void add(const std::string& text) { all_ += (count_++ == 0 ? "" : "\n") + text; }
  void report(std::size_t kernels) const {
    if (count_ == 0) return;
    if (count_ == 1) fail(all_);
    fail(std::to_string(count_) + " of " + std::to_string(kernels) + " kernels cannot be made, so nothing is written:\n" + all_);
  }

 private:
  std::string all_;
  std::size_t count_ = 0;
};

}  // namespace

int emit_command(const Options& options) {
  const Plan plan = make_plan(options);
  const Mode mode = parse_mode(options.mode);
  const auto block = options.block.empty() ? std::array<std::uint32_t, 3>{} : parse_extent(options.block, "--block");
  const std::unique_ptr<Source> source = Source::open(options.source);
  std::vector<std::string> specs = source->expanded(options.kernels);
  for (const std::string& spec : options.variants.empty() ? options.variants : source->expanded(options.variants)) specs.push_back(spec);
  const std::vector<SourceKernel> families = source->kernels();
  BundleFiles bundles(plan.bundles);

  std::vector<std::shared_ptr<const Variant>> variants;
  std::vector<OutputFile> files;
  Findings findings;
  for (const std::string& spec : specs) {
    try {
      std::shared_ptr<const Variant> variant = source->variant(spec);
      // The same variant may be named twice, with its defaults spelled out or not.
      if (std::any_of(variants.begin(), variants.end(), [&](const auto& v) { return v->name() == variant->name(); })) continue;
      variants.push_back(variant);
      emit_kernel(*variant, plan, mode, block, files);
      if (!plan.has("bundle")) continue;
      const std::string family = variant->name().substr(0, variant->name().find('@'));
      const auto of = std::find_if(families.begin(), families.end(),
                                   [&](const SourceKernel& k) { return k.name == family || k.name == variant->name(); });
      emit_bundles(*of, *variant, plan.bundles, bundles);
    } catch (const Failed& e) {
      if (e.exit_code() != kFailed) throw;
      findings.add(e.what());
    } catch (const Exception& e) { findings.add(one_line(e.error())); }
  }
  findings.report(specs.size());
  bundles.finish(options.out_dir, files);
  write_all(options.out_dir, files);

  if (options.json) {
    Json names = Json::array();
    for (const OutputFile& f : files) names.push_back({{"file", f.name}, {"bytes", f.bytes.size()}});
    print_json({{"folder", options.out_dir}, {"files", names}});
  } else {
    for (const OutputFile& f : files) std::printf("%s/%s\n", options.out_dir.c_str(), f.name.c_str());
  }
  return kDone;
}

}  // namespace kiln::cli
