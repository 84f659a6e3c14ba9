// Which registers of a function are alive where, so that registers which never live at once share a slot, and how many a device would need.
#pragma once
#include <cstdint>
#include <vector>

#include "simcuda/ptx_ast.h"

namespace kiln::simcuda::ptx {

struct Liveness {
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};
  // By register: the first and the last instruction at which it is alive, written or read; kNever when it is not used.
  std::vector<std::uint32_t> first, last;
  std::vector<std::uint32_t> undefined;  // registers that may be read before they are written
  std::uint32_t words = 0;               // 32-bit registers alive at once, at most
};
Liveness liveness(const FunctionDecl& f);

}  // namespace kiln::simcuda::ptx
