// What it takes to a first launch: of a program with embedded kernels, from its exec on; of a kernel from the environment.
#include <time.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "benches.h"
#include "measure.h"
#include "support/process.h"

namespace kiln::bench {
namespace {

constexpr int kRuns = 41;
const std::string kFolder = KILN_START_FOLDER;

long long now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

using Figures = std::map<std::string, std::vector<double>>;  // nanoseconds

Figures run(const std::vector<std::string>& argv, const std::vector<std::string>& environment) {
  const test::ProcessResult r = test::run_process(argv, environment);
  if (r.status != 0) throw std::runtime_error(argv[0] + ": " + r.out + r.err);
  Figures figures;
  std::istringstream lines(r.out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.rfind(' ');
    figures[line.substr(0, space)].push_back(std::stod(line.substr(space + 1)));
  }
  return figures;
}

// Milliseconds from before the process is made to the time that it says.
double until(const std::vector<std::string>& argv, const std::vector<std::string>& environment) {
  const long long begin = now();
  return (run(argv, environment).at("at").front() - static_cast<double>(begin)) / 1e6;
}

Row figure(const std::string& name, const std::vector<double>& values, double scale, const std::string& unit, const std::string& why) {
  Row row;
  row.name = name;
  row.unit = unit;
  row.ours = median(values) * scale;
  row.spread = spread(values);
  row.why = why;
  return row;
}

}  // namespace

std::vector<Row> start() {
  const std::vector<std::string> alone{"KILN_ENV=off", "KILN_CODEGEN=/nowhere/libnone.so", "KILN_LOG", "KILN_DEVICE"};
  const std::string program = kFolder + "/kiln_bench_start", empty = kFolder + "/kiln_bench_empty";
  std::vector<Row> rows;
  std::vector<double> ours, peer, ratio;
  for (int i = 0; i < kRuns + 2; ++i) {
    const double a = until({program, "launch"}, alone), b = until({empty}, alone);
    if (i < 2) continue;
    ours.push_back(a);
    peer.push_back(b);
    ratio.push_back(a / b);
  }
  Row first;
  first.name = "first launch, 20 embedded kernels";
  first.unit = "ms from exec";
  first.peer_name = "main() of a program that links the runtime";
  first.ours = median(ours);
  first.peer = median(peer);
  first.ratio = median(ratio);
  first.spread = spread(ratio);
  rows.push_back(first);

  Figures parts;
  for (int i = 0; i < kRuns; ++i)
    for (const auto& [name, values] : run({program, "parts"}, alone)) parts[name].push_back(values.front());
  for (const auto& [name, values] : parts) rows.push_back(figure("  " + name, values, 1e-3, "us", "a part of the row above"));

  const test::TempFolder folder;
  std::vector<std::string> kept{"KILN_ENV=" + folder.path(), "KILN_CODEGEN", "KILN_LOG", "KILN_DEVICE"};
  run({program, "environment"}, kept);
  kept[1] = alone[1];
  Figures loaded;
  for (int i = 0; i < kRuns; ++i)
    for (const auto& [name, values] : run({program, "environment"}, kept))
      loaded[name].insert(loaded[name].end(), values.begin(), values.end());
  rows.push_back(figure("kernel from an open environment", loaded.at("kernel"), 1e-3, "us", "the target is 100 us"));
  rows.push_back(figure("  preparing its IR before", loaded.at("prepare"), 1e-3, "us", "not in the row above"));
  return rows;
}

}  // namespace kiln::bench
