#include "explain.h"

#include "kiln/ir/param_layout.h"

namespace kiln::cli {
namespace {

std::string version_text(std::uint32_t version) { return std::to_string(version / 10) + "." + std::to_string(version % 10); }

Json block_json(const std::array<std::uint32_t, 3>& block) {
  if (block[0] == 0 && block[1] == 0) return nullptr;
  return block;
}

std::string number(const Json& j, const char* what) { return std::to_string(j.at(what).get<std::uint64_t>()); }

std::string plural(const Json& j, const char* field, const std::string& thing) {
  const std::uint64_t n = j.at(field).get<std::uint64_t>();
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

}  // namespace

Json explanation(const ir::Prepared& kernel, const CompileOptions& options, const CompiledCode& code, const TargetReasons& reasons,
                 const std::optional<Assembled>& assembled) {
  const ir::Kernel& k = kernel.kernel;
  const bool gpu = options.target == TargetKind::Ptx;
  Json choices = Json::array();
  for (const TargetReasons::Choice& c : reasons.choices)
    choices.push_back({{"operation", c.operation}, {"place", c.place}, {"instruction", c.instruction}, {"since", c.since}});
  Json j{{"kernel", k.name},
         {"arch", options.arch},
         {"lowest_arch", reasons.lowest_arch},
         {"lowest_arch_reason", reasons.lowest_arch_reason},
         {"ptx_version", gpu ? Json(version_text(reasons.ptx_version)) : Json(nullptr)},
         {"ptx_version_reason", gpu ? Json(reasons.ptx_version_reason) : Json(nullptr)},
         {"instructions", std::move(choices)},
         {"parameter_bytes", ir::param_layout(k, k.options.checked).bytes},
         {"static_shared_bytes", code.static_shared_bytes},
         {"dynamic_shared", kernel.shared.dynamic_mem != ir::kNone}};
  if (!gpu) {
    j["block"] = block_json(options.block);
    j["context_bytes"] = code.context_bytes;
    return j;
  }
  j["ptxas"] = nullptr;
  if (assembled) {
    j["ptxas"] = {{"version", ptxas_version()},
                  {"registers", assembled->registers},
                  {"stack_bytes", assembled->stack_bytes},
                  {"spill_store_bytes", assembled->spill_stores},
                  {"spill_load_bytes", assembled->spill_loads},
                  {"static_shared_bytes", assembled->static_shared_bytes},
                  {"constant_bytes", assembled->constant_bytes},
                  {"barriers", assembled->barriers}};
  } else {
    j["ptxas_missing"] = "there is no ptxas on PATH (it comes with the CUDA toolkit), so registers and spills are not known";
  }
  return j;
}

std::string explanation_text(const Json& j) {
  const auto line = [](const std::string& name, const std::string& what) {
    return "  " + name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') + what + "\n";
  };
  std::string text = j.at("kernel").get<std::string>() + " for " + j.at("arch").get<std::string>() + "\n";
  text += line("lowest", j.at("lowest_arch").get<std::string>() + ": " + j.at("lowest_arch_reason").get<std::string>());
  if (!j.at("ptx_version").is_null())
    text += line("PTX version", j.at("ptx_version").get<std::string>() + ": " + j.at("ptx_version_reason").get<std::string>());
  for (const Json& c : j.at("instructions"))
    text += line("instruction", c.at("instruction").get<std::string>() + ", there since " + c.at("since").get<std::string>() + ": " +
                                    c.at("operation").get<std::string>() + " at " + c.at("place").get<std::string>());
  text += line("parameters", plural(j, "parameter_bytes", "byte"));
  text += line("shared", number(j, "static_shared_bytes") + " bytes static" + (j.at("dynamic_shared").get<bool>() ? ", and dynamic" : ""));
  if (j.contains("context_bytes"))
    text += line("context", plural(j, "context_bytes", "byte") + " of one block, for what lives over barriers");
  if (j.contains("ptxas_missing")) text += line("registers", j.at("ptxas_missing").get<std::string>());
  if (j.contains("ptxas") && !j.at("ptxas").is_null()) {
    const Json& p = j.at("ptxas");
    text += line("registers", number(p, "registers") + " of a thread (ptxas " + p.at("version").get<std::string>() + ")");
    text += line("spills", plural(p, "spill_store_bytes", "byte") + " stored, " + number(p, "spill_load_bytes") + " loaded; stack of " +
                               plural(p, "stack_bytes", "byte"));
    text += line("constants", plural(p, "constant_bytes", "byte"));
  }
  return text;
}

}  // namespace kiln::cli
