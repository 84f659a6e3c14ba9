// What identifies a compiled program: named fields, with the one serialiser and the one reader of them, shared by the programs in memory
// and by the environment store.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/runtime/compiler.h"

namespace kiln::rt {

struct ProgramKey {
  std::string kernel_text;  // canonical text of the prepared kernel, locations included
  CompileOptions options;
  // What made the code; this Kiln unless the key was read.
  std::uint32_t interface_version = expected_codegen_identity().interface_version;
  std::string build_id = expected_codegen_identity().build_id;
  std::string llvm_version = expected_codegen_identity().llvm_version;
};

// Equal bytes if and only if the code generator of this build makes equal bytes for both: the key holds the build id, the LLVM version, the
// kernel's text and every option. O(size of the text).
std::string serialise(const ProgramKey& key);
// The key of such bytes; none of any others, those of another form among them. Never crashes.
std::optional<ProgramKey> read_program_key(std::string_view bytes);

// One sentence for each field that differs, for people: "arch sm_90 against sm_80", "built by another Kiln", "the kernel's text from line
// 12 on: `...` against `...`". The first is of `wanted`. Empty: the keys are equal.
std::vector<std::string> differences(const ProgramKey& wanted, const ProgramKey& there);

}  // namespace kiln::rt
