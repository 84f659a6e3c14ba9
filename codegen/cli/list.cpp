// kiln list: the kernels of a library or a .kir file.
#include <cstdio>

#include "command.h"
#include "names.h"
#include "source.h"

namespace kiln::cli {

int list_command(const Options& options) {
  const std::vector<SourceKernel> kernels = Source::open(options.source, Source::Places::OfSource)->kernels();
  if (options.json) {
    Json all = Json::array();
    for (const SourceKernel& k : kernels) {
      Json params = Json::array(), axes = Json::array();
      for (const ParamInfo& p : k.params) params.push_back({{"name", p.name}, {"type", p.type}});
      for (const ConfigAxis& a : k.axes) axes.push_back({{"name", a.name}, {"values", a.values}, {"default", a.default_value}});
      all.push_back({{"name", k.name},
                     {"signature", signature(k.name, k.params)},
                     {"params", params},
                     {"place", k.place},
                     {"axes", axes},
                     {"configs", k.configs}});
    }
    print_json({{"source", options.source}, {"kernels", all}});
    return kDone;
  }
  for (const SourceKernel& k : kernels) {
    std::printf("%s\n    at %s\n", signature(k.name, k.params).c_str(), k.place.c_str());
    for (const ConfigAxis& a : k.axes) {
      std::printf("    %s = %s", a.name.c_str(), a.default_value.c_str());
      if (!a.values.empty()) std::printf(" (one of %s)", plain_list(a.values).c_str());
      std::printf("\n");
    }
    if (!k.axes.empty()) std::printf("    %zu configs\n", k.configs.size());
  }
  return kDone;
}

}  // namespace kiln::cli
