// Which variants of a source the words KERNEL of `kiln emit` mean.
#pragma once
#include <string>
#include <vector>

#include "source.h"

namespace kiln::cli {

// The specs, each once, in order of the words and of the source. No word: every kernel and family, with its defaults. A word is
//   KERNEL                 the name, or its last part; a family with its defaults
//   KERNEL@tile=8,...      what is not named takes its default
//   KERNEL@*               every config of the family's space
//   KERNEL@tile=8,*        every config with tile=8
//   KERNEL@tile=*          every config where what is not named has its default
// and in KERNEL, `*` stands for any characters and `?` for one, unless a kernel has just that name. Patterns are resolved here; words
// without are passed on as they are, for the source to find or refuse. Throws a usage error for a pattern that means nothing.
std::vector<std::string> select(const std::vector<std::string>& words, const std::vector<SourceKernel>& kernels, const std::string& source);

// Whether `text` is as `pattern` says, `*` and `?` as above.
bool matches(const std::string& pattern, const std::string& text);

}  // namespace kiln::cli
