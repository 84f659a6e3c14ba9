// How many instructions each f32 function is in PTX, beside libdevice's, as NVRTC puts them in line; and in SASS, where ptxas is installed.
//
// Both sides compile y[i] = f(x[i]), unchecked, for the same architecture, and the instructions of y[i] = x[i] are taken off. What is
// counted is what the text has: every instruction once, those of loops and of rare branches too. Directives, labels and declarations are
// none.
#include <kiln/ir/text.h>
#include <kiln/runtime/compiler.h>

#include <sstream>
#include <stdexcept>

#include "benches.h"
#include "count_instructions.h"
#include "nvrtc.h"

namespace kiln::bench {
namespace {

struct Function {
  const char* kiln;  // an operation on %a and %b
  const char* cuda;  // of a and b
};
const Function kFunctions[] = {
    {"exp %a", "expf(a)"},
    {"exp2 %a", "exp2f(a)"},
    {"exp10 %a", "exp10f(a)"},
    {"expm1 %a", "expm1f(a)"},
    {"log %a", "logf(a)"},
    {"log2 %a", "log2f(a)"},
    {"log10 %a", "log10f(a)"},
    {"log1p %a", "log1pf(a)"},
    {"sin %a", "sinf(a)"},
    {"cos %a", "cosf(a)"},
    {"tan %a", "tanf(a)"},
    {"asin %a", "asinf(a)"},
    {"acos %a", "acosf(a)"},
    {"atan %a", "atanf(a)"},
    {"atan2 %a, %b", "atan2f(a, b)"},
    {"sinh %a", "sinhf(a)"},
    {"cosh %a", "coshf(a)"},
    {"tanh %a", "tanhf(a)"},
    {"asinh %a", "asinhf(a)"},
    {"acosh %a", "acoshf(a)"},
    {"atanh %a", "atanhf(a)"},
    {"erf %a", "erff(a)"},
    {"erfc %a", "erfcf(a)"},
    {"cbrt %a", "cbrtf(a)"},
    {"rsqrt %a", "rsqrtf(a)"},
    {"hypot %a, %b", "hypotf(a, b)"},
    {"rhypot %a, %b", "rhypotf(a, b)"},
    {"pow %a, %b", "powf(a, b)"},
    {"powi %a, %n", "__nv_powif(a, __float_as_int(b))"},
    {"rem %a, %b", "fmodf(a, b)"},
};
std::string ours(const char* operation) {
  const std::string text =
      std::string("kir 1\nkernel \"f\" {\n  options checked=false\n  buffer x : f32[*] in\n  buffer y : f32[*] out\n") +
      "  body {\n    %i = thread_id.x\n    %j = block_id.x\n    %a = load x[%i]\n    %b = load x[%j]\n" +
      "    %n = bit_cast %b : i32\n    %r = " + operation + "\n    store y[%i], %r\n  }\n}\n";
  CompileOptions options;
  options.target = TargetKind::Ptx;
  options.arch = "sm_80";
  options.block_multiple_of_32 = true;
  options.line_info = false;
  const CodegenHandle& generator = code_generator();
  if (generator.compiler == nullptr) throw std::runtime_error(generator.error);
  return generator.compiler->compile(ir::prepare(ir::parse_kernel(text), {.mode = ir::PrepareOptions::Mode::Unchecked}), options).code;
}

std::string theirs(const Nvrtc& nvrtc, const char* expression) {
  const std::string text = std::string(
                               "extern \"C\" __device__ float __nv_powif(float, int);\nextern \"C\" __global__ void f(const float* "
                               "__restrict__ x, float* __restrict__ y) {\n") +
                           "  float a = x[threadIdx.x], b = x[blockIdx.x];\n  y[threadIdx.x] = " + expression + ";\n}\n";
  return nvrtc.compile(text, "compute_80");
}

}  // namespace

std::vector<Row> math_in_ptx() {
  const Nvrtc nvrtc;
  std::vector<Row> rows, sass;
  const Function one{"neg %a", "-a"}, two{"add %a, %b", "a + b"};
  const auto count = [&](const Function& f, auto counter) -> std::pair<std::optional<int>, std::optional<int>> {
    const auto side = [&](auto compile, const char* what, const char* of_one, const char* of_two) -> std::optional<int> {
      const std::optional<int> all = counter(compile(what));
      const bool takes_two = std::string(f.kiln).find(',') != std::string::npos;
      const std::optional<int> base = counter(compile(takes_two ? of_two : of_one));
      if (!all || !base) return std::nullopt;
      return *all - *base + 1;
    };
    const auto kiln = side(ours, f.kiln, one.kiln, two.kiln);
    if (!nvrtc.usable()) return {kiln, std::nullopt};
    return {kiln, side([&](const char* e) { return theirs(nvrtc, e); }, f.cuda, one.cuda, two.cuda)};
  };
  for (const Function& f : kFunctions) {
    const std::string name = std::string(f.kiln).substr(0, std::string(f.kiln).find(' '));
    for (const bool assembled : {false, true}) {
      const auto [mine, peer] = assembled ? count(f, sass_instructions) : count(f, ptx_instructions);
      if (assembled && !mine) continue;  // no ptxas
      Row r;
      r.name = name + (assembled ? " (SASS)" : "");
      r.unit = assembled ? "SASS" : "PTX";
      if (mine) r.ours = *mine;
      if (peer) {
        r.peer = *peer;
        r.ratio = *r.ours / *r.peer;
        r.peer_name = "libdevice by " + nvrtc.name();
      } else {
        r.why = nvrtc.why();
      }
      (assembled ? sass : rows).push_back(r);
    }
  }
  for (Row& r : sass) rows.push_back(std::move(r));
  return rows;
}

}  // namespace kiln::bench
