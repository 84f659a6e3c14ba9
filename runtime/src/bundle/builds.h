// Which build of Kiln made a bundle, and which one this is.
#pragma once
#include <string>

#include "kiln/runtime/bundle.h"

namespace kiln::rt {

std::string own_kiln_version();
// What is said of a bundle that another build made: both sides.
std::string foreign_text(const BundleInfo& info, const std::string& module);

}  // namespace kiln::rt
