// The C++ that puts bundles into a program: the source that embeds them, and the header that launches from them.
#pragma once
#include <string>
#include <vector>

#include "source.h"

namespace kiln::cli {

struct EmbedNames {
  std::string id;         // of what is embedded: letters, digits and _; of the inline namespace and the symbol that both files share
  std::string space;      // the namespace of all kernels in the header; empty: each in its own
  std::string bundles;    // the path of the file of bundles, as the compiler finds it
  std::string signature;  // of the bytes of that file: the source changes when they do
};

// Text is a function of its arguments. Throws Failed where the path cannot stand in a source.
std::string embedding_source(const EmbedNames& names);

// One `inline const` kernel or family each, with the parameters' names in a comment, and the structs of the families' configs. Throws
// Failed for a kernel whose name or config C++ cannot declare again, and for two that would get one name.
std::string embedding_header(const EmbedNames& names, const std::vector<SourceKernel>& kernels);

}  // namespace kiln::cli
