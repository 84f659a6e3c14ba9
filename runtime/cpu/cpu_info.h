// The processor's level and name, by itself and without LLVM.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::rt {

// What the cpuid instruction and the operating system say, as far as the levels ask.
struct CpuidWords {
  std::uint32_t leaf1_ecx = 0, leaf1_edx = 0, leaf7_ebx = 0, ext1_ecx = 0;
  std::uint64_t xcr0 = 0;  // which register state the system saves
};
CpuidWords read_cpuid();

// "x86-64-v4", "x86-64-v3", "x86-64-v2" or "x86-64": the highest level whose every feature is there and usable.
std::string cpu_level(const CpuidWords& words);
const std::array<std::string_view, 4>& cpu_levels();  // all of them, the lowest first; each has what those before it have

// The brand string, trimmed; "x86-64 processor" where there is none.
std::string cpu_name();

}  // namespace kiln::rt
