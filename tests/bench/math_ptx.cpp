// How many instructions each f32 function is in PTX, beside libdevice's, as NVRTC puts them in line; and in SASS, where ptxas is installed.
//
// Both sides compile y[i] = f(x[i]), unchecked, for the same architecture, and the instructions of y[i] = x[i] are taken off. What is
// counted is what the text has: every instruction once, those of loops and of rare branches too. Directives, labels and declarations are
// none.
#include <kiln/ir/text.h>
#include <kiln/runtime/compiler.h>

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

// With fast_math, beside NVRTC's --use_fast_math.
const Function kFast[] = {
    {"exp %a", "expf(a)"},     {"exp2 %a", "exp2f(a)"},   {"exp10 %a", "exp10f(a)"},    {"log %a", "logf(a)"},
    {"log2 %a", "log2f(a)"},   {"log10 %a", "log10f(a)"}, {"sin %a", "sinf(a)"},        {"cos %a", "cosf(a)"},
    {"tan %a", "tanf(a)"},     {"tanh %a", "tanhf(a)"},   {"pow %a, %b", "powf(a, b)"}, {"powi %a, %n", "__nv_powif(a, __float_as_int(b))"},
    {"rsqrt %a", "rsqrtf(a)"}, {"div %a, %b", "a / b"},
};
// One instruction each: what they leave over is around any function of one argument, or of two.
const Function kOne{"neg %a", "-a"}, kTwo{"add %a, %b", "a + b"};

std::string ours(const char* operation, bool fast) {
  const std::string text = std::string(R"(kir 1
    kernel "f" {
      options checked=false fast_math=)") +
                           (fast ? "true" : "false") + R"(
      buffer x : f32[*] in
      buffer y : f32[*] out
      body {
        %i = thread_id.x
        %j = block_id.x
        %a = load x[%i]
        %b = load x[%j]
        %n = bit_cast %b : i32
        %r = )" + operation +
                           R"(
        store y[%i], %r
      }
    })";
  CompileOptions options;
  options.target = TargetKind::Ptx;
  options.arch = "sm_80";
  options.block_multiple_of_32 = true;
  options.line_info = false;
  const CodegenHandle& generator = code_generator();
  if (generator.compiler == nullptr) throw std::runtime_error(generator.error);
  return generator.compiler->compile(ir::prepare(ir::parse_kernel(text), {.mode = ir::PrepareOptions::Mode::Unchecked}), options).code;
}

std::string theirs(const Nvrtc& nvrtc, const char* expression, bool fast) {
  const std::string text = std::string(R"(
    extern "C" __device__ float __nv_powif(float, int);
    extern "C" __global__ void f(const float* __restrict__ x, float* __restrict__ y) {
      float a = x[threadIdx.x], b = x[blockIdx.x];
      y[threadIdx.x] = )") +
                           expression + "; }";
  return nvrtc.compile(text, "compute_80", fast);
}

using Counter = std::optional<int> (*)(const std::string& code);

Row row(const Nvrtc& nvrtc, const Function& f, bool fast, bool assembled) {
  const Counter counter = assembled ? sass_instructions : ptx_instructions;
  const std::string operation = f.kiln;
  const Function& around = operation.find(',') == std::string::npos ? kOne : kTwo;
  Row r;
  r.name = operation.substr(0, operation.find(' ')) + (fast ? ", fast_math" : "") + (assembled ? " (SASS)" : "");
  r.unit = assembled ? "SASS" : "PTX";
  const auto without = [](std::optional<int> all, std::optional<int> outside) -> std::optional<double> {
    if (!all || !outside) return std::nullopt;
    return *all - *outside + 1;
  };
  r.ours = without(counter(ours(f.kiln, fast)), counter(ours(around.kiln, fast)));
  if (!nvrtc.usable()) {
    r.why = nvrtc.why();
    return r;
  }
  r.peer = without(counter(theirs(nvrtc, f.cuda, fast)), counter(theirs(nvrtc, around.cuda, fast)));
  r.peer_name = nvrtc.name() + (fast ? " --use_fast_math" : ", libdevice");
  if (r.ours && r.peer) r.ratio = *r.ours / *r.peer;
  return r;
}

}  // namespace

std::vector<Row> math_in_ptx() {
  const Nvrtc nvrtc;
  std::vector<Row> rows;
  for (const bool assembled : {false, true}) {
    for (const Function& f : kFunctions) rows.push_back(row(nvrtc, f, false, assembled));
    for (const Function& f : kFast) rows.push_back(row(nvrtc, f, true, assembled));
  }
  std::erase_if(rows, [](const Row& r) { return !r.ours; });  // no ptxas
  return rows;
}

}  // namespace kiln::bench
