#include <kiln/runtime/compiler.h>

#include <ctime>
#include <stdexcept>

#include "benches.h"
#include "kernels.h"
#include "measure.h"

namespace kiln::bench {
namespace {

// Of all threads of the process: this measures growth, and growth must not hang on what else the machine does.
double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Milliseconds for each 100 statements: near linear growth is a column that does not grow.
Row row(const char* shape, const ir::Kernel& recorded, u32 count, bool host) {
  CompileOptions options;
  options.target = host ? TargetKind::Host : TargetKind::Ptx;
  options.arch = host ? "x86-64-v3" : "sm_80";
  if (host) options.block = {256, 1, 1};
  options.block_multiple_of_32 = true;
  const CodegenHandle& generator = code_generator();
  if (generator.compiler == nullptr) throw std::runtime_error(generator.error);
  Row r;
  r.name = std::string(host ? "host " : "ptx ") + std::to_string(count) + shape;
  r.unit = "ms/100";
  const int runs = count > 400 ? 1 : 3;
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    const double start = cpu_seconds();
    generator.compiler->compile(ir::prepare(recorded), options);
    times.push_back((cpu_seconds() - start) * 1e3 / count * 100);
  }
  r.ours = median(times);
  r.spread = spread(times);
  r.why = "checked; CPU time of passes and code generation";
  return r;
}

}  // namespace

std::vector<Row> compile() {
  std::vector<Row> rows;
  for (const bool host : {true, false}) {
    for (const u32 n : {100u, 200u, 400u, 800u}) rows.push_back(row(" guarded ifs", guarded_ifs.record({.count = n}).value(), n, host));
    for (const u32 n : {1000u, 10000u}) rows.push_back(row(" statements", statements.record({.count = n}).value(), n, host));
  }
  return rows;
}

}  // namespace kiln::bench
