// A launch's log for tests that run a kernel's code themselves.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "interp/interp.h"
#include "kiln/ir/passes.h"

namespace kiln::test {

class LogMemory {
 public:
  // With room for so many records of the kernel.
  explicit LogMemory(const ir::Prepared& kernel, std::size_t capacity = 1 << 16);
  std::byte* data() { return at_; }
  std::size_t bytes() const { return bytes_; }
  // What is in it, and in `wrong` what may not be: records that are not whole, or of no site; records that did not fit.
  std::vector<interp::Logged> lines(std::string& wrong) const;

 private:
  const ir::Prepared& kernel_;
  std::size_t stride_, bytes_;
  std::vector<std::byte> memory_;
  std::byte* at_;  // aligned
};

}  // namespace kiln::test
