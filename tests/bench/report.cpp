#include "report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace kiln::bench {

void print(const std::string& bench, const std::vector<Row>& rows, bool json) {
  if (json) {
    using Json = nlohmann::ordered_json;
    const auto number = [](const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); };
    const auto text = [](const std::string& v) { return v.empty() ? Json(nullptr) : Json(v); };
    Json all = Json::array();
    for (const Row& r : rows) {
      Json row{{"name", r.name}, {"ours", number(r.ours)},   {"peer", number(r.peer)}, {"peer_name", text(r.peer_name)},
               {"unit", r.unit}, {"ratio", number(r.ratio)}, {"spread", r.spread}};
      if (!r.why.empty()) row["why"] = r.why;
      all.push_back(std::move(row));
    }
    std::printf("%s\n", Json{{"bench", bench}, {"rows", all}}.dump().c_str());
    return;
  }
  std::printf("%s\n", bench.c_str());
  for (const Row& r : rows) {
    const auto number = [](const std::optional<double>& v) {
      char buffer[32] = "-";
      if (v) std::snprintf(buffer, sizeof buffer, "%.4g", *v);
      return std::string(buffer);
    };
    std::printf("  %-22s ours %10s   peer %10s %-10s ratio %8s  +-%.0f%%  %s\n", r.name.c_str(), number(r.ours).c_str(),
                number(r.peer).c_str(), r.unit.c_str(), number(r.ratio).c_str(), r.spread * 100,
                (r.why.empty() ? r.peer_name : r.why).c_str());
  }
}

}  // namespace kiln::bench
