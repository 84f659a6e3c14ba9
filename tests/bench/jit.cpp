#include <kiln/runtime/compiler.h>

#include <stdexcept>

#include "benches.h"
#include "cuda_sources.h"
#include "kernels.h"
#include "measure.h"
#include "nvrtc.h"

namespace kiln::bench {
namespace {

// From the C++ definition to PTX: records the body, runs the passes, compiles. Nothing is kept from one call to the next.
template <class K>
std::string to_ptx(const K& kernel) {
  const ir::Kernel recorded = kernel.record().value();
  const ir::Prepared prepared = ir::prepare(recorded, {.mode = ir::PrepareOptions::Mode::Unchecked});
  CompileOptions options;
  options.target = TargetKind::Ptx;
  options.arch = "sm_80";
  if (recorded.has_block_size()) options.block = recorded.block_size;
  options.block_multiple_of_32 = true;
  options.line_info = true;
  const CodegenHandle& generator = code_generator();
  if (generator.compiler == nullptr) throw std::runtime_error(generator.error);
  return generator.compiler->compile(prepared, options).code;
}

template <class K>
Row row(const char* name, const K& kernel, const char* cuda, const Nvrtc& nvrtc) {
  Row r;
  r.name = name;
  r.unit = "ms";
  if (to_ptx(kernel).find(".loc") == std::string::npos) throw std::runtime_error(std::string(name) + ": the PTX has no line information");
  std::function<void()> peer;
  if (nvrtc.usable()) {
    r.peer_name = nvrtc.name();
    peer = [&nvrtc, cuda] { nvrtc.compile(cuda, "compute_80"); };
  } else {
    r.why = nvrtc.why();
  }
  measure(r, 30, 1e3, 1, [&] { to_ptx(kernel); }, peer);
  return r;
}

}  // namespace

std::vector<Row> jit() {
  const Nvrtc nvrtc;
  return {row("saxpy", samples::saxpy, kCudaSaxpy, nvrtc), row("matmul", samples::matmul, kCudaMatmul, nvrtc),
          row("reduce", samples::block_sum, kCudaBlockSum, nvrtc)};
}

}  // namespace kiln::bench
