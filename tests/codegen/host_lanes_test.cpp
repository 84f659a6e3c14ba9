// Values that are picked by the number of a lane. LLVM does so ahead of the branch that asks whether there is such a lane: found by random
// kernels (seed 9137751), where the number was whatever a register held, and the load ended the process.
#include <regex>

#include "codegen/host_agree.h"
#include "kiln/ir/passes.h"
#include "nvptx_kernels.h"

using namespace kiln;
using namespace kiln::host_test;

namespace {

struct Picked {
  const char *what, *declarations, *body;
};

// Each of one thread, which leaves early; what follows belongs to lanes that are not there.
const Picked kPicked[] = {
    {"what the last lane stores for all", "buffer out : u32[*] inout\nscalar s : i64", "store out[%t], %v"},
    {"what the last lane stores for all, checked", "options checked=true\nbuffer out : u32[*] inout\nscalar s : i64", "store out[%t], %v"},
    {"the values of a check", "options checked=true\nbuffer out : u32[*] inout\nscalar s : i64", R"(
      %c = lt %v, %n
      check %c, %v, %n, "{} below {}"
      store out[%t], %v)"},
};

std::string body_of(const Picked& p) {
  return std::string(R"(
    %t = global_id.x : u32
    %lane = lane_id : u32
    %wide = cast %lane : i64
    %s = param s : i64
    %x = add %wide, %s : i64
    %limit = const 4398046511104 : i64
    %leave = ge %limit, %x : bool
    if %leave { return
    }
    %n = cast %x : u32
    %three = const 3 : u32
    %v = mul %n, %three : u32
    )") + p.body;
}

// The counts of zeros in LLVM IR whose operand may be zero, which is no number of a lane: each must be of an `or` with a bit.
std::vector<std::string> counts_of_nothing(const std::string& ir) {
  std::vector<std::string> found;
  const std::regex count(R"(@llvm\.c[lt][tz]z\.i32\(i32 (%[\w.]+), i1 (true|false)\))");
  for (auto at = std::sregex_iterator(ir.begin(), ir.end(), count); at != std::sregex_iterator(); ++at) {
    const std::string operand = (*at)[1];
    if ((*at)[2] == "false") continue;  // has a value for zero, too
    const std::regex made(operand + R"( = or (disjoint )?i32 [^\n]*, (1|-2147483648)\n)");
    if (!std::regex_search(ir, made)) found.push_back(at->str());
  }
  return found;
}

}  // namespace

TEST_CASE("the number of a lane is one also where no lane is left, since LLVM picks values by it before it asks") {
  for (const Picked& p : kPicked) {
    CAPTURE(std::string(p.what));
    const std::string text = "file \"k.cpp\"\n" + std::string(p.declarations) + "\nbody {\n" + body_of(p) + "\n}\n";
    const ir::Prepared prepared = ir::prepare(test::kernel_text(text), {});
    for (const std::string& level : levels()) {
      CAPTURE(level);
      CompileOptions options;
      options.arch = level;
      options.block = {1, 1, 1};
      const std::string ir = compiler().llvm_ir(prepared, options);
      REQUIRE(ir.find(".i32(i32 ") != std::string::npos);
      for (const std::string& count : counts_of_nothing(ir)) FAIL_CHECK(count);
    }
  }
}
