// Which PTX goes where: what a driver's compiler reads, what a device runs, and what a text says it is.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cuda {

// The highest PTX ISA version that a driver of this CUDA version reads, as 10 * major + minor: 12040 -> 84.
std::uint32_t ptx_of_driver(int driver_version);
std::string ptx_text(std::uint32_t version);  // 84 -> "8.4"

// The architecture to compile for on a device of this compute capability (90 for 9.0) under a driver that reads this PTX: the newest that
// both take. Empty: the device or the driver is too old.
std::string best_target(unsigned capability, std::uint32_t ptx_version);

// What a PTX text declares at its head.
struct PtxHeader {
  std::uint32_t version = 0;  // 84
  unsigned sm = 0;            // 90 for sm_90a
  char suffix = 0;            // 'a', 'f' or 0
};
std::optional<PtxHeader> read_ptx_header(std::string_view ptx);  // none: it is not PTX
// Why the text cannot run there, as a sentence; empty where it can.
std::string why_not(const PtxHeader& ptx, unsigned capability, std::uint32_t ptx_version, const std::string& device);

// The parameters of an entry, from its text, in order. None: no such entry.
struct PtxParam {
  std::uint32_t size = 0, align = 1;
};
std::optional<std::vector<PtxParam>> read_ptx_params(std::string_view ptx, std::string_view entry);

bool is_cubin(std::string_view image);  // an ELF file, or the fat form of several

}  // namespace kiln::cuda
