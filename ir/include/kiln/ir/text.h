// The text form of the IR (.kir). print and parse are inverse: parse(print(k)) prints to the same bytes, and carries every
// field of a compacted kernel. Grammar: docs/kir.md.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kiln/ir/diagnostic.h"
#include "kiln/ir/kernel.h"

namespace kiln::ir {

// Canonical: the same program gives the same bytes on every machine and in every run. `locations` false leaves out files and
// lines (for comparing programs). O(size).
std::string print(const Kernel& kernel, bool locations = true);
// The header line and several kernels, as a .kir file holds them.
std::string print(const std::vector<Kernel>& kernels);

// Throws IrError with line and column of the text on anything that is not well-formed. Never crashes, whatever the bytes:
// nesting deeper than 200, over 1,000,000 operations or a 64 MiB file are refused. Does not verify types: call verify.
// With `own_name`, the name of the text, what has no place in it gets its line there: "own_name:12".
std::vector<Kernel> parse(std::string_view text, std::string_view own_name = {});
// Exactly one kernel, else IrError.
Kernel parse_kernel(std::string_view text);

}  // namespace kiln::ir
