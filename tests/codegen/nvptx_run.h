// Runs a kernel as text on the interpreter and, as PTX, on the simulated driver's engine, and compares bits.
#pragma once
#include <cstring>

#include "interp/interp.h"
#include "nvptx_kernels.h"
#include "support/run_ptx.h"

namespace kiln::test {

struct PtxRun {
  std::uint32_t grid = 1, block[3] = {32, 1, 1}, dynamic_shared = 0;
  std::vector<std::vector<std::uint8_t>> buffers;   // in signature order; afterwards what the interpreter left
  std::vector<std::vector<std::uint64_t>> extents;  // empty: one dimension, all elements
  std::vector<std::uint64_t> scalars;               // in signature order
  std::optional<ir::FaultRecord> fault;             // of the interpreter
};

template <class T>
std::vector<std::uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> values_of(const std::vector<std::uint8_t>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Fails the test where PTX for sm_75 or sm_90, in several orders of the threads, differs from the interpreter or misbehaves. Without
// passes.
void run_both(const ir::Prepared& prepared, PtxRun& run);
inline void run_both(const std::string& lines, PtxRun& run) { run_both(as_written(kernel_text(lines)), run); }

}  // namespace kiln::test
