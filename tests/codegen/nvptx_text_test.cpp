// What kernels tell the host while they run, and clocks, in PTX.
#include "nvptx_kernels.h"

using namespace kiln;
using namespace kiln::test;

namespace {

std::string ptx_of_text(const std::string& lines) { return ptx_of(ir::prepare(kernel_text(lines))); }

// In this order, each behind the one before.
void check_order(const std::string& ptx, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    at = ptx.find(part, at);
    CHECK_MESSAGE(at != std::string::npos, part, " in its place in ", ptx);
    if (at == std::string::npos) return;
    at += part.size();
  }
}

}  // namespace

TEST_CASE("clocks are read where they stand: stores between two of them stay between them, and all are read") {
  const std::pair<const char*, const char*> clocks[] = {{"clock", "%clock64"}, {"global_time", "%globaltimer"}};
  for (const auto& [name, special] : clocks) {
    const std::string clock(name);
    const std::string ptx = ptx_of_text(R"(
    options checked=false
    buffer y : u64[*] inout
    buffer z : u64[*] inout
    body {
      %i = thread_id.x
      %a = )" + clock + R"(
      store z[%i], %a
      %b = )" + clock + R"(
      %c = )" + clock + R"(
      %d = sub %b, %a
      store y[%i], %d
      %e = add %c, %d
      store z[%i], %e
    })");
    check_order(ptx, {special, "st.global.b64", special, special, "st.global.b64", "st.global.b64"});
    CHECK(count(ptx, special) == 3);
  }
}

TEST_CASE("a trap leaves word of itself before it stops the device, checked or not") {
  for (const char* checked : {"true", "false"}) {
    const std::string ptx = ptx_of_text("options checked=" + std::string(checked) + R"(
    buffer y : u32[*] inout
    body {
      %i = thread_id.x
      %z = const 7 : u32
      %c = eq %i, %z
      if %c {
        trap "the end"
        return
      }
      store y[%i], %i
    })");
    check_order(ptx, {".entry", "call.uni", "st.relaxed.sys.global.b32", "fence.sc.sys", "trap;"});
  }
}

TEST_CASE("a kernel without a log, a trap and checks has no parameter and no code for them") {
  const std::string ptx = ptx_of_text(R"(
    options checked=false
    buffer y : u32[*] inout
    body {
      %i = thread_id.x
      %c = lt %i, %i
      assume %c, "it"
      check %c, "it"
      store y[%i], %i
    })");
  CHECK(count(ptx, "\t.param") == 2);  // the address of y and its extent
  for (const char* part : {"call", "atom", "trap", "fence", "setp"}) CHECK_MESSAGE(!has(ptx, part), part);
}
