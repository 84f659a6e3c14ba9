#include "cpu/cpu_info.h"

#include <cpuid.h>

#include <cstring>

namespace kiln::rt {
namespace {

constexpr std::uint32_t bit(unsigned n) { return std::uint32_t{1} << n; }
bool has(std::uint32_t word, std::uint32_t bits) { return (word & bits) == bits; }

}  // namespace

CpuidWords read_cpuid() {
  CpuidWords words;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) words.leaf1_ecx = c, words.leaf1_edx = d;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) words.leaf7_ebx = b;
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d) != 0) words.ext1_ecx = c;
  if (has(words.leaf1_ecx, bit(27))) {  // OSXSAVE: xgetbv may be used
    unsigned low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.xcr0 = std::uint64_t{high} << 32 | low;
  }
  return words;
}

std::string cpu_level(const CpuidWords& w) {
  // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
  const bool v2 = has(w.leaf1_ecx, bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23)) && has(w.ext1_ecx, bit(0));
  // FMA, MOVBE, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT; xmm and ymm saved
  const bool v3 = v2 && has(w.leaf1_ecx, bit(12) | bit(22) | bit(27) | bit(28) | bit(29)) && has(w.leaf7_ebx, bit(3) | bit(5) | bit(8)) &&
                  has(w.ext1_ecx, bit(5)) && (w.xcr0 & 0x6) == 0x6;
  // AVX512 F, DQ, CD, BW, VL; opmask and zmm saved
  const bool v4 = v3 && has(w.leaf7_ebx, bit(16) | bit(17) | bit(28) | bit(30) | bit(31)) && (w.xcr0 & 0xe6) == 0xe6;
  return v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : v2 ? "x86-64-v2" : "x86-64";
}

const std::array<std::string_view, 4>& cpu_levels() {
  static constexpr std::array<std::string_view, 4> all{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  return all;
}

std::string cpu_name() {
  unsigned words[12] = {};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* w = words + 4 * i;
    if (__get_cpuid(0x80000002u + i, w, w + 1, w + 2, w + 3) == 0) return "x86-64 processor";
  }
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  std::string name = text;
  const std::size_t first = name.find_first_not_of(' '), last = name.find_last_not_of(' ');
  return first == std::string::npos ? "x86-64 processor" : name.substr(first, last - first + 1);
}

}  // namespace kiln::rt
