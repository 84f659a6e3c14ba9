// What someone who launches a kernel with nothing but its code and the Driver API must know, as JSON.
#pragma once
#include <vector>

#include "command.h"
#include "kiln/runtime/compiler.h"
#include "kiln/runtime/variant.h"

namespace kiln::cli {

// One file of code that goes with a manifest.
struct Target {
  std::string arch, kind, file;  // "sm_80", "ptx", "saxpy.sm_80.ptx"
  CompileOptions options;
  CompiledCode code;  // without the text
};

Json target_json(const Target& target);  // its row in the manifest
Json manifest(const Variant& variant, const ir::Prepared& kernel, const std::vector<Target>& targets);

Json signature_json(const ir::Prepared& kernel);  // declared and proven IO per parameter
std::string visibility_name(ir::Visibility v);    // "read-only"
std::string access_name(ir::Access a);            // "in"

}  // namespace kiln::cli
