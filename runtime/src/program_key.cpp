#include "src/program_key.h"

#include <cstdint>
#include <string_view>

namespace kiln::rt {
namespace {

// Fields are written with their sizes, so that no two keys run into each other.
void put(std::string& out, std::uint64_t v) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(v >> (8 * i) & 0xff);
  out.append(bytes, sizeof bytes);
}
void put(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out.append(text);
}

}  // namespace

std::string serialise(const ProgramKey& key) {
  const CodegenIdentity& id = expected_codegen_identity();
  std::string out;
  out.reserve(key.kernel_text.size() + 256);
  put(out, std::uint64_t{1});  // version of this form
  put(out, std::uint64_t{id.interface_version});
  put(out, std::string_view(id.build_id));
  put(out, std::string_view(id.llvm_version));
  const CompileOptions& o = key.options;
  put(out, static_cast<std::uint64_t>(o.target));
  put(out, std::string_view(o.arch));
  put(out, std::uint64_t{o.ptx_version});
  for (const std::uint32_t axis : o.block) put(out, std::uint64_t{axis});
  put(out, std::uint64_t{o.block_multiple_of_32});
  put(out, std::uint64_t{o.aligned16});
  put(out, std::uint64_t{o.line_info});
  put(out, std::string_view(key.kernel_text));
  return out;
}

}  // namespace kiln::rt
