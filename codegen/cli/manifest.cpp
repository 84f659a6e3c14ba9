#include "manifest.h"

#include "kiln/ir/param_layout.h"
#include "source.h"

namespace kiln::cli {
namespace {

Json extent_json(const std::array<std::uint32_t, 3>& extent) {
  if (extent[0] == 0) return nullptr;
  return Json::array({extent[0], extent[1], extent[2]});
}

const char* kind_name(ir::ParamField::Kind kind) {
  switch (kind) {
    case ir::ParamField::Kind::Pointer: return "pointer";
    case ir::ParamField::Kind::Extent: return "extent";
    case ir::ParamField::Kind::Stride: return "stride";
    case ir::ParamField::Kind::Scalar: return "scalar";
    case ir::ParamField::Kind::Fault: return "fault";
    case ir::ParamField::Kind::Log: return "log";
  }
  return "?";
}

Json layout_json(const ir::Kernel& k) {
  const ir::ParamLayout layout = ir::param_layout(k, k.options.checked);
  Json fields = Json::array();
  for (const ir::ParamField& f : layout.fields) {
    Json field{{"kind", kind_name(f.kind)}};
    if (f.param != ir::kNone) field["param"] = k.params[f.param].name;
    if (f.kind == ir::ParamField::Kind::Extent || f.kind == ir::ParamField::Kind::Stride) field["dimension"] = f.dimension;
    field["type"] = std::string(ir::name(f.type));
    field["offset"] = f.offset;
    field["size"] = f.size;
    fields.push_back(std::move(field));
  }
  return {{"bytes", layout.bytes}, {"fields", std::move(fields)}};
}

}  // namespace

std::string visibility_name(ir::Visibility v) {
  switch (v) {
    case ir::Visibility::Dead: return "unused";
    case ir::Visibility::ReadOnly: return "read-only";
    case ir::Visibility::WriteOnly: return "write-only";
    case ir::Visibility::ReadWrite: return "read-write";
  }
  return "?";
}

std::string access_name(ir::Access a) { return a == ir::Access::In ? "in" : a == ir::Access::Out ? "out" : "inout"; }

Json signature_json(const ir::Prepared& kernel) {
  const ir::Kernel& k = kernel.kernel;
  Json all = Json::array();
  std::size_t buffer = 0;
  for (const ir::Param& p : k.params) {
    Json one{{"name", p.name}, {"type", signature_type(k, p)}};
    if (p.is_buffer) {
      const ir::Mem& mem = k.mems[p.mem];
      one["kind"] = "buffer";
      one["element"] = std::string(ir::name(mem.element));
      one["rank"] = mem.rank;
      one["strided"] = mem.strided;
      one["declared"] = access_name(mem.access);
      one["proven"] = visibility_name(kernel.io.at(buffer++));
    } else {
      one["kind"] = "scalar";
      one["element"] = std::string(ir::name(p.type));
    }
    all.push_back(std::move(one));
  }
  return all;
}

Json target_json(const Target& t) {
  Json one{{"arch", t.arch}, {"kind", t.kind}, {"file", t.file}};
  if (t.options.target == TargetKind::Ptx) {
    one["ptx_version"] = std::to_string(t.code.ptx_version / 10) + "." + std::to_string(t.code.ptx_version % 10);
    one["block_multiple_of_32"] = t.options.block_multiple_of_32;
  } else {
    one["block"] = extent_json(t.options.block);
    one["context_bytes"] = t.code.context_bytes;
  }
  one["static_shared_bytes"] = t.code.static_shared_bytes;
  return one;
}

Json manifest(const Variant& variant, const ir::Prepared& kernel, const std::vector<Target>& targets) {
  const ir::Kernel& k = kernel.kernel;
  Json in_place = Json::array();
  for (const auto& [out, in] : k.in_place) in_place.push_back(Json::array({out, in}));
  Json sites = Json::array();
  for (const ir::FaultSite& s : kernel.sites)
    if (s.memory.empty()) sites.push_back({{"operation", s.operation}, {"place", s.place}, {"text", s.text}});
    else sites.push_back({{"memory", s.memory}, {"operation", s.operation}, {"place", s.place}, {"declared", s.declared}});
  Json logs = Json::array();
  for (const ir::LogSite& s : kernel.logs) {
    Json types = Json::array();
    for (const ir::Type t : s.values) types.push_back(std::string(ir::name(t)));
    logs.push_back({{"file", s.file}, {"line", s.line}, {"text", s.text}, {"values", std::move(types)}});
  }
  Json code = Json::array();
  for (const Target& t : targets) code.push_back(target_json(t));
  return {
      {"format", 1},
      {"kernel", variant.name()},
      {"symbol", ir::symbol_name(variant.name())},
      {"place", ir::to_string(k, k.loc)},
      {"checked", k.options.checked},
      {"contraction", k.options.contraction},
      {"fast_math", k.options.fast_math},
      {"signature", signature_json(kernel)},
      {"in_place", std::move(in_place)},
      {"parameters", layout_json(k)},
      {"block", {{"size", extent_json(k.block_size)}, {"max_threads", k.max_threads == 0 ? Json(nullptr) : Json(k.max_threads)}}},
      {"shared", {{"static_bytes", kernel.shared.static_bytes}, {"dynamic", kernel.shared.dynamic_mem != ir::kNone}}},
      {"requirement", {{"min_sm", kernel.requirement.min_sm}, {"reason", kernel.requirement.reason}}},
      {"fault_sites", std::move(sites)},
      {"log_sites", std::move(logs)},
      {"log_stride", kernel.logs.empty() ? Json(nullptr) : Json(ir::log_stride(k))},
      {"targets", std::move(code)},
  };
}

}  // namespace kiln::cli
