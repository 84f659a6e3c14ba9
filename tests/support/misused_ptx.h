// PTX whose entries do one thing each, to be launched rightly and wrongly. All take one parameter, an address.
#pragma once
#include <string>

namespace kiln::test {

inline std::string ptx_header(const std::string& version = "7.8", const std::string& target = "sm_90") {
  return ".version " + version + "\n.target " + target + "\n.address_size 64\n";
}

// add: adds one to a word. trapped: reaches a trap. wide: reads four words at once. shaped: takes blocks of (32, 4, 1) only. narrow: of 64
// threads at most. hungry: holds 160 registers at a time, of which 1024 threads have more than a multiprocessor. clustered: runs in
// clusters of two (with `clusters`, from sm_90 on).
inline std::string misused_ptx(const std::string& header = ptx_header(), bool clusters = true) {
  std::string text = header;
  const auto entry = [&](const std::string& name, const std::string& bounds, const std::string& body) {
    text += ".visible .entry " + name + "(.param .u64 " + name + "_y)\n" + bounds + "{\n  .reg .b64 %rd<3>;\n  .reg .b32 %r<5>;\n" +
            "  ld.param.u64 %rd1, [" + name + "_y];\n  cvta.to.global.u64 %rd2, %rd1;\n" + body + "  ret;\n}\n";
  };
  const std::string add = "  ld.global.u32 %r1, [%rd2];\n  add.s32 %r1, %r1, 1;\n  st.global.u32 [%rd2], %r1;\n";
  entry("add", "", add);
  entry("trapped", "", "  trap;\n");
  entry("wide", "", "  ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];\n  st.global.u32 [%rd2], %r4;\n");
  entry("shaped", ".reqntid 32, 4, 1\n", add);
  entry("narrow", ".maxntid 64, 1, 1\n", add);
  if (clusters) entry("clustered", ".reqnctapercluster 2, 1, 1\n", add);
  std::string many = "  .reg .b32 %q<160>;\n";
  for (int i = 0; i < 160; ++i) many += "  ld.volatile.global.u32 %q" + std::to_string(i) + ", [%rd2+" + std::to_string(4 * i) + "];\n";
  for (int i = 0; i < 160; ++i)
    many += "  st.volatile.global.u32 [%rd2+" + std::to_string(4 * i) + "], %q" + std::to_string(159 - i) + ";\n";
  entry("hungry", "", many);
  return text;
}

}  // namespace kiln::test
