#include "jobs.h"

#include <new>

#include "compile.h"
#include "emit_bundle.h"
#include "explain.h"
#include "kiln/ir/diagnostic.h"
#include "kiln/ir/text.h"
#include "limits.h"
#include "ptxas.h"

namespace kiln::cli {
namespace {

Message failed(int exit_code, const std::string& text) { return {{{"error", text}, {"exit", exit_code}}, {}}; }

Arch arch_of(const Json& j) { return {j.at("name"), j.at("gpu").get<bool>() ? TargetKind::Ptx : TargetKind::Host}; }

bool contains(const Json& list, const char* word) {
  for (const Json& one : list)
    if (one == word) return true;
  return false;
}

}  // namespace

Json to_json(const SourceKernel& k) {
  Json params = Json::array(), axes = Json::array();
  for (const ParamInfo& p : k.params) params.push_back({p.name, p.type});
  for (const ConfigAxis& a : k.axes)
    axes.push_back({a.name, a.values, a.default_value, a.type, a.enum_name, a.enum_base, a.enum_scoped, a.offset});
  return {{"name", k.name},          {"place", k.place},     {"params", std::move(params)},
          {"axes", std::move(axes)}, {"configs", k.configs}, {"config_type", k.config_type}};
}

SourceKernel source_kernel_of(const Json& j) {
  SourceKernel k{j.at("name"), j.at("place"), {}, {}, j.at("configs"), j.at("config_type")};
  for (const Json& p : j.at("params")) k.params.push_back({p.at(0), p.at(1)});
  for (const Json& a : j.at("axes")) k.axes.push_back({a.at(0), a.at(1), a.at(2), a.at(3), a.at(4), a.at(5), a.at(6), a.at(7)});
  return k;
}

Json to_json(const CompileOptions& o) {
  return {{"gpu", o.target == TargetKind::Ptx},
          {"arch", o.arch},
          {"ptx_version", o.ptx_version},
          {"block", o.block},
          {"block_multiple_of_32", o.block_multiple_of_32},
          {"aligned16", o.aligned16},
          {"line_info", o.line_info}};
}

Json to_json(const CompiledCode& c) {
  return {{"symbol", c.symbol},
          {"ptx_version", c.ptx_version},
          {"static_shared_bytes", c.static_shared_bytes},
          {"context_bytes", c.context_bytes},
          {"context_bytes_per_warp", c.context_bytes_per_warp}};
}

CompileOptions options_of(const Json& j) {
  CompileOptions o;
  o.target = j.at("gpu").get<bool>() ? TargetKind::Ptx : TargetKind::Host;
  o.arch = j.at("arch");
  o.ptx_version = j.at("ptx_version");
  o.block = j.at("block");
  o.block_multiple_of_32 = j.at("block_multiple_of_32");
  o.aligned16 = j.at("aligned16");
  o.line_info = j.at("line_info");
  return o;
}

CompiledCode code_of(const Json& j) {
  CompiledCode c;
  c.symbol = j.at("symbol");
  c.ptx_version = j.at("ptx_version");
  c.static_shared_bytes = j.at("static_shared_bytes");
  c.context_bytes = j.at("context_bytes");
  c.context_bytes_per_warp = j.at("context_bytes_per_warp");
  return c;
}

Message Jobs::answer(const Json& question) {
  try {
    const std::string what = question.at("do");
    if (what == "open") return open(question);
    if (what == "describe") return describe(question);
    return what == "make" ? make(question) : code(question);
  } catch (const Failed& e) { return failed(e.exit_code(), e.what()); } catch (const Exception& e) {
    return failed(kFailed, one_line(e.error()));
  } catch (const ir::IrError& e) {
    return failed(kFailed, (path_.ends_with(".kir") ? path_ + ": " : "") + e.what());
  } catch (const std::bad_alloc&) { return failed(kFailed, out_of_memory()); } catch (const std::exception& e) {
    return failed(kFailed, e.what());
  } catch (...) { return failed(kFailed, "something was thrown that is no exception of C++"); }
}

const Source& Jobs::source(const std::string& path) {
  if (source_ == nullptr) {
    path_ = path;
    source_ = Source::open(path);
  }
  return *source_;
}

const Variant& Jobs::variant(const Json& question) {
  const Source& from = source(question.at("source"));
  const std::string spec = question.at("spec");
  auto it = variants_.find(spec);
  if (it == variants_.end()) it = variants_.emplace(spec, from.variant(spec)).first;
  return *it->second;
}

Message Jobs::open(const Json& question) {
  Json archs = Json::array(), kernels = Json::array();
  for (const Json& name : question.at("archs")) {
    const Arch arch = parse_arch(name);
    archs.push_back({{"name", arch.name}, {"gpu", arch.kind == TargetKind::Ptx}});
  }
  for (const SourceKernel& k : source(question.at("source")).kernels()) kernels.push_back(to_json(k));
  return {{{"kernels", std::move(kernels)},
           {"llvm", archs.empty() ? Json(nullptr) : Json(compiler().llvm_version())},
           {"archs", std::move(archs)}},
          {}};
}

Message Jobs::describe(const Json& question) {
  const Variant& v = variant(question);
  const ir::Prepared& kernel = prepared(v, parse_mode(question.at("mode")));
  Json bundle = Json::array();
  if (const Json& asked = question.at("bundle"); !asked.is_null()) {
    BundlePlan plan;
    for (const Json& a : asked.at("archs")) plan.archs.push_back(arch_of(a));
    plan.blocks = asked.at("blocks").get<decltype(plan.blocks)>();
    for (const Json& mode : asked.at("modes"))
      for (const CompileOptions& options : bundle_targets(prepared(v, static_cast<Mode>(mode.get<int>())), plan))
        bundle.push_back({{"mode", mode}, {"options", to_json(options)}});
  }
  return {{{"name", v.name()},
           {"symbol", ir::symbol_name(v.name())},
           {"checked", kernel.kernel.options.checked},
           {"manifest", manifest(v, kernel, {})},
           {"bundle", std::move(bundle)}},
          {ir::print(std::vector<ir::Kernel>{v.recorded()})}};
}

Message Jobs::code(const Json& question) {
  const Variant& v = variant(question);
  const ir::Prepared& kernel = prepared(v, parse_mode(question.at("mode")));
  const Arch arch = arch_of(question.at("arch"));
  const CompileOptions options = compile_options(kernel, arch, question.at("block"));
  const Json& kinds = question.at("kinds");
  const bool explain = question.at("explain");
  Message answer{{{"items", Json::array()}}, {}};
  CompiledCode code;
  const auto add = [&](const char* kind, const char* extension, std::string bytes) {
    answer.head["items"].push_back({{"kind", kind}, {"extension", extension}, {"options", to_json(options)}, {"code", to_json(code)}});
    answer.blobs.push_back(std::move(bytes));
  };
  if (contains(kinds, "llvm")) add("llvm", ".ll", llvm_ir(kernel, options));
  const bool gpu = arch.kind == TargetKind::Ptx;
  const bool ptx = contains(kinds, "ptx") && gpu, cubin = contains(kinds, "cubin") && gpu, object = contains(kinds, "object") && !gpu;
  if (!ptx && !cubin && !object && !explain) return answer;
  code = compile(kernel, options);
  const std::string bytes = std::move(code.code);
  std::optional<Assembled> assembled;
  if (cubin || (explain && gpu && !find_ptxas().empty())) assembled = assemble(bytes, arch.name);
  if (cubin) add("cubin", ".cubin", std::move(assembled->cubin));
  if (ptx) add("ptx", ".ptx", bytes);
  if (object) add("object", ".o", bytes);
  if (explain) answer.head["explanation"] = explanation(kernel, options, code, reasons(kernel, options), assembled);
  return answer;
}

Message Jobs::make(const Json& question) {
  const Variant& v = variant(question);
  const CompileOptions options = options_of(question.at("options"));
  CompiledCode code = compile(prepared(v, static_cast<Mode>(question.at("mode").get<int>())), options);
  std::string bytes = std::move(code.code);
  return {{{"items", {{{"kind", "bundle"}, {"extension", ""}, {"options", to_json(options)}, {"code", to_json(code)}}}}},
          {std::move(bytes)}};
}

}  // namespace kiln::cli
