// Kernels of hundreds of branches and thousands of operations: other ways through LLVM's code generation, the same bits.
#include <algorithm>
#include <sstream>

#include "codegen/host_agree.h"
#include "nvptx_kernels.h"
#include "support/ptxas.h"

using namespace kiln;
using namespace kiln::host_test;

namespace {

const std::string kBuffers = "buffer x : u32[*] in\nbuffer y : u32[*] inout\n";

// Each branch reads a neighbour and changes an element of the thread's own; nothing is proven, and what is out of range depends on the
// lane.
std::string guarded_ifs(unsigned n) {
  std::ostringstream body;
  body << "%i = thread_id.x\n%b = block_id.x\n%w = block_dim.x\n%bw = mul %b, %w\n%g = add %bw, %i\n";
  for (unsigned k = 0; k < n; ++k) {
    const std::string s = std::to_string(k);
    body << "%c" << s << " = const " << s << " : u32\n%at" << s << " = add %g, %c" << s << "\n%v" << s << " = load x[%at" << s << "]\n";
    body << "%o" << s << " = const " << 128 * k << " : u32\n%own" << s << " = add %g, %o" << s << "\n%odd" << s << " = gt %v" << s
         << ", %g\n";
    body << "if %odd" << s << " {\n%z" << s << " = load y[%own" << s << "]\n%t" << s << " = add %z" << s << ", %v" << s << "\nstore y[%own"
         << s << "], %t" << s << "\n}\n";
  }
  return body.str();
}

// One block of operations, each on the one before.
std::string straight_operations(unsigned n) {
  std::ostringstream body;
  body << "%i = thread_id.x\n%v0 = load x[%i]\n";
  for (unsigned s = 0; s < n; ++s) {
    body << "%c" << s << " = const " << 2 * s + 3 << " : u32\n%m" << s << " = mul %v" << s << ", %c" << s << "\n%v" << s + 1 << " = xor %m"
         << s << ", %i\n";
  }
  body << "store y[%i], %v" << n << "\n";
  return body.str();
}

std::vector<std::uint32_t> ramp(std::size_t n) {
  std::vector<std::uint32_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::uint32_t>(i * 2654435761u >> 20) % 90;
  return values;
}

std::string host_ir(const std::string& text, const std::string& level) {
  const ir::Prepared prepared = ir::prepare(test::kernel_text(text), {});
  CompileOptions options;
  options.arch = level;
  options.block = {64, 1, 1};
  return compiler().llvm_ir(prepared, options);
}

}  // namespace

TEST_CASE("a kernel of many branches gives the interpreter's bits on the CPU") {
  Agree a(kBuffers, guarded_ifs(40));
  a.grid = {2, 1, 1};
  a.faults = true;
  a.buffer(ramp(130)).buffer(std::vector<std::uint32_t>(128 * 35, 3));
  a.at({{64, 1, 1}, {45, 1, 1}});
}

TEST_CASE("a kernel of thousands of operations in one block gives the interpreter's bits on the CPU") {
  Agree a(kBuffers, straight_operations(2500));
  a.buffer(ramp(64)).buffer(std::vector<std::uint32_t>(64, 3));
  a.at({{64, 1, 1}});
}

TEST_CASE("the code for the CPU has as many lane arrays for many checked accesses as for a few") {
  for (const std::string& level : levels()) {
    const auto arrays = [&](unsigned ifs) {
      const std::string text = host_ir(kBuffers + "body {\n" + guarded_ifs(ifs) + "\n}", level);
      int n = 0;
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) n += test::has(line, "%lanes") && test::has(line, "= alloca");
      return n;
    };
    CAPTURE(level);
    CHECK(arrays(2) > 0);
    CHECK(arrays(12) == arrays(2));
    CHECK(arrays(40) == arrays(2));
  }
}

TEST_CASE("in a large kernel no value is live through the branches in a register of the CPU") {
  // The base of the index is used by all of them: it is loaded where it is needed.
  const std::string text = host_ir(kBuffers + "body {\n" + guarded_ifs(40) + "\n}", "x86-64-v3");
  CHECK(test::count(text, "%kept") > 40);
  CHECK(test::count(host_ir(kBuffers + "body {\n" + guarded_ifs(2) + "\n}", "x86-64-v3"), "%kept") == 0);
}

TEST_CASE("the PTX of a kernel of many branches keeps local addresses local and assembles") {
  std::string text = "options checked=false\n" + kBuffers + "local l : u32[16]\nbody {\n%mask = const 15 : u32\n%i = thread_id.x\n";
  for (int s = 0; s < 400; ++s) {
    const std::string n = std::to_string(s);
    text += "%v" + n + " = load x[%i]\n%c" + n + " = const " + n + " : u32\n%w" + n + " = add %v" + n + ", %c" + n + "\n%k" + n +
            " = and %w" + n + ", %mask\n%odd" + n + " = gt %k" + n + ", %c" + n + "\nif %odd" + n + " {\nstore l[%k" + n + "], %w" + n +
            "\n%r" + n + " = load l[%c" + n + "]\nstore y[%w" + n + "], %r" + n + "\n}\n";
  }
  for (int s = 15; s < 400; ++s) {  // indices of an array of 16
    const std::string from = "%r" + std::to_string(s) + " = load l[%c" + std::to_string(s) + "]",
                      to = "%r" + std::to_string(s) + " = load l[%k" + std::to_string(s) + "]";
    text.replace(text.find(from), from.size(), to);
  }
  text += "}";
  const std::string ptx = test::ptx_of(text);
  CHECK(!test::has(ptx, "cvta.local"));
  CHECK(!test::has(ptx, "cvta.to.local"));
  if (test::no_ptxas()) return;
  const test::Assembled assembled = test::assemble_ptx(ptx, "sm_80");
  CHECK_MESSAGE(assembled.ok, assembled.messages);
}
