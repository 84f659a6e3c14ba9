// The assembler of an installed CUDA toolkit, which Kiln itself never needs: cubins, and what they take of a GPU.
#pragma once
#include <cstdint>
#include <string>

namespace kiln::cli {

// Its path; empty when there is none on PATH.
std::string find_ptxas();
std::string ptxas_version();  // "13.0.88"; empty when there is none or it does not say

struct Assembled {
  std::string cubin;
  // What it says of the entry; of registers the most that any function needs.
  std::uint64_t registers = 0, stack_bytes = 0, spill_stores = 0, spill_loads = 0, static_shared_bytes = 0, constant_bytes = 0,
                barriers = 0;
};
// The cubin of a PTX text. Throws Failed when there is no ptxas, or it refuses or crashes, with its first words.
Assembled assemble(const std::string& ptx, const std::string& arch);

}  // namespace kiln::cli
