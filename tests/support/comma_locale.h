// A locale that writes 1,5 for 1.5.
#pragma once
#include "support/process.h"

namespace kiln::test {

// The process's numbers are in such a locale until the end of the scope. It is made with localedef, which every glibc has. Throws
// std::runtime_error where that fails.
class CommaLocale {
 public:
  CommaLocale();
  ~CommaLocale();
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

 private:
  TempFolder folder_;
};

}  // namespace kiln::test
