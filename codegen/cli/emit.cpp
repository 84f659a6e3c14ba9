// kiln emit: files of code for a launcher of one's own. All or nothing.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "command.h"
#include "compile.h"
#include "emission.h"
#include "explain.h"
#include "files.h"
#include "kiln/ir/text.h"
#include "limits.h"
#include "manifest.h"
#include "names.h"
#include "ptxas.h"
#include "sha256.h"

namespace kiln::cli {
namespace {

const std::vector<std::string> kKinds{"ptx", "cubin", "object", "llvm", "kir", "json", "bundle", "manifest"};
// No kernel's symbol has a '-'.
constexpr const char* kManifest = "kiln-manifest.json";

// What is asked for, as a whole: nothing asked for may stay without a file. Whether the architectures exist is for the workers to say.
EmitPlan make_plan(const Options& options) {
  EmitPlan plan{.source = options.source, .mode = options.mode, .kinds = {}, .archs = {}, .explain = options.explain};
  if (options.emit.empty() && !options.explain) usage("emit: --emit is required (or --explain)");
  if (options.out_dir.empty() && !options.emit.empty()) usage("--output names no folder");
  if (!options.out_dir.empty() && options.emit.empty()) usage("--output without --emit: nothing is there to write");
  for (const std::string& kind : options.emit) {
    if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) usage(unknown("kind of --emit", kind, kKinds));
    if (!plan.has(kind.c_str())) plan.kinds.push_back(kind);
  }
  for (const std::string& name : options.arch)
    if (std::find(plan.archs.begin(), plan.archs.end(), name) == plan.archs.end()) plan.archs.push_back(name);
  parse_mode(options.mode);
  if (!options.block.empty()) plan.block = parse_extent(options.block, "--block");
  return plan;
}

void check_plan(const EmitPlan& plan) {
  const auto any_of = [&](TargetKind kind) {
    return std::any_of(plan.archs.begin(), plan.archs.end(), [&](const std::string& arch) { return parse_kind(arch) == kind; });
  };
  const bool host = any_of(TargetKind::Host), gpu = any_of(TargetKind::Ptx);
  for (const char* kind : {"ptx", "cubin"})
    if (plan.has(kind) && !gpu) usage(std::string("--emit ") + kind + " needs a GPU architecture in --arch, for example sm_80");
  if (plan.has("object") && !host) usage("--emit object needs a CPU level in --arch: " + plain_list(host_levels()));
  if (plan.has("llvm") && plan.archs.empty()) usage("--emit llvm needs --arch");
  if (plan.explain && plan.archs.empty()) usage("--explain needs --arch");
  const bool any = plan.has("llvm") || plan.has("bundle") || plan.explain;
  if (gpu && !plan.has("ptx") && !plan.has("cubin") && !any)
    usage("nothing is made for the GPU architectures in --arch: --emit names neither ptx, cubin, llvm nor bundle");
  if (host && !plan.has("object") && !any)
    usage("nothing is made for the CPU levels in --arch: --emit names neither object, llvm nor bundle");
}

std::string json_text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

// The files of a kernel, in order; a row for each, for the manifest of all.
void add_files(const EmitPlan& plan, EmittedKernel& kernel, std::vector<OutputFile>& files, Json& rows) {
  Json targets = Json::array();
  const auto add = [&](const std::string& name, const char* kind, const Json& arch, std::string bytes) {
    rows.push_back({{"file", name}, {"bytes", bytes.size()}, {"kind", kind}, {"kernel", kernel.name}, {"arch", arch}});
    files.push_back({name, std::move(bytes)});
  };
  for (EmittedItem& item : kernel.items) {
    const std::string name = kernel.symbol + "." + item.options.arch + item.extension;
    if (item.kind != "llvm") targets.push_back(target_json({item.options.arch, item.kind, name, item.options, item.code}));
    add(name, item.kind.c_str(), item.options.arch, std::move(item.code.code));
  }
  if (plan.has("kir")) add(kernel.symbol + ".kir", "kir", nullptr, kernel.recorded);
  if (!plan.has("json")) return;
  kernel.manifest["targets"] = std::move(targets);
  add(kernel.symbol + ".json", "json", nullptr, json_text(kernel.manifest));
}

// The bundles, and what embeds them: of all kernels together. That a kernel was described means that its passes came to their end, so they
// can be run here, too.
void add_bundles(const BundlePlan& plan, Emitted& emitted, const std::string& folder, std::vector<OutputFile>& files, Json& rows) {
  BundleFiles bundles(plan);
  for (EmittedKernel& kernel : emitted.kernels) {
    const Variant variant(std::move(ir::parse(kernel.recorded).at(0)));
    for (const Mode mode : plan.modes) {
      std::vector<BundleItem> items;
      for (auto& [of, item] : kernel.bundle_items)
        if (of == mode) items.push_back(std::move(item));
      bundles.add(kernel.of, variant, mode, std::move(items));
    }
  }
  bundles.finish(folder, files);
  for (std::size_t i = rows.size(); i < files.size(); ++i) {
    const char* const kind = files[i].name.ends_with(".kilnb") ? "bundle" : "embedding";
    rows.push_back({{"file", files[i].name}, {"bytes", files[i].bytes.size()}, {"kind", kind}, {"kernel", nullptr}, {"arch", nullptr}});
  }
}

// Of the whole emission: what was made, of what, with what. The same wherever it is made.
Json manifest_of(const EmitPlan& plan, const Emitted& emitted, Json rows, const std::vector<OutputFile>& files) {
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["sha256"] = sha256(files[i].bytes);
  Json kernels = Json::array();
  for (const EmittedKernel& k : emitted.kernels) kernels.push_back({{"kernel", k.name}, {"symbol", k.symbol}, {"checked", k.checked}});
  return {{"format", 1},
          {"kiln", KILN_VERSION},
          {"build", expected_codegen_identity().build_id},
          {"llvm", emitted.llvm_version.empty() ? Json(nullptr) : Json(emitted.llvm_version)},
          {"ptxas", plan.has("cubin") ? Json(ptxas_version()) : Json(nullptr)},
          {"archs", plan.archs},
          {"kernels", std::move(kernels)},
          {"files", std::move(rows)}};
}

Pool::Setup pool_setup(const Options& options) {
  Pool::Setup setup;
  setup.program = options.program;
  setup.limits = parse_limits(options);
  setup.in_process = options.in_process;
  setup.workers = options.jobs.empty() ? std::max(1u, std::thread::hardware_concurrency()) : parse_count(options.jobs, "--jobs");
  if (setup.workers == 0 || setup.workers > 1024) usage("--jobs '" + options.jobs + "': expected a number from 1 to 1024");
  return setup;
}

}  // namespace

int emit_command(const Options& options) {
  EmitPlan plan = make_plan(options);
  check_plan(plan);
  std::optional<BundlePlan> bundles;
  if (plan.has("bundle")) {
    std::vector<Arch> archs;
    for (const std::string& name : plan.archs) archs.push_back({name, parse_kind(name)});
    plan.bundles = &bundles.emplace(BundlePlan::of(options, std::move(archs)));
  } else {
    BundlePlan::refuse_options(options);
  }
  Pool pool(pool_setup(options));
  Emitted emitted = emit_all(plan, options.kernels, options.variants, pool, !options.json);

  std::vector<OutputFile> files;
  Json rows = Json::array();
  for (EmittedKernel& kernel : emitted.kernels) add_files(plan, kernel, files, rows);
  if (bundles) add_bundles(*bundles, emitted, options.out_dir, files, rows);
  Json whole;
  if (plan.has("manifest") || options.json) whole = manifest_of(plan, emitted, std::move(rows), files);
  if (plan.has("manifest")) files.push_back({kManifest, json_text(whole)});
  if (!files.empty()) write_all(options.out_dir, files);

  if (options.json) {
    whole["folder"] = options.out_dir.empty() ? Json(nullptr) : Json(options.out_dir);
    if (plan.has("manifest")) whole["files"].push_back({{"file", kManifest}, {"bytes", files.back().bytes.size()}, {"kind", "manifest"}});
    if (plan.explain) whole["explanations"] = Json::array();
    for (const EmittedKernel& k : emitted.kernels)
      for (const Json& e : k.explanations) whole["explanations"].push_back(e);
    print_json(whole);
    return kDone;
  }
  for (const OutputFile& f : files) std::printf("%s/%s\n", options.out_dir.c_str(), f.name.c_str());
  for (const EmittedKernel& k : emitted.kernels)
    for (const Json& e : k.explanations) std::fputs(explanation_text(e).c_str(), stdout);
  return kDone;
}

}  // namespace kiln::cli
