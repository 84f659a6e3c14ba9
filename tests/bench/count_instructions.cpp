#include "count_instructions.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "support/process.h"
#include "support/ptxas.h"

namespace kiln::bench {

std::optional<int> ptx_instructions(const std::string& ptx) {
  std::istringstream lines(ptx);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    line.erase(std::min(line.find("//"), line.size()));
    const std::size_t first = line.find_first_not_of(" \t{");
    if (first == std::string::npos || line.find(';') == std::string::npos) continue;
    if (line[first] != '.') ++count;  // .reg, .loc, .param and so on
  }
  return count;
}

// An instruction of Volta and later has 16 bytes; the padding at the end of a section is NOPs.
std::optional<int> sass_instructions(const std::string& ptx) {
  if (test::no_ptxas()) return std::nullopt;
  const test::TempFolder folder;
  const std::string out = folder.file("k.cubin");
  const test::ProcessResult done = test::run_process({test::ptxas_path(), "-arch", "sm_80", "-o", out, folder.write("k.ptx", ptx)});
  if (done.status != 0) throw std::runtime_error("ptxas: " + done.out + done.err);
  const std::string elf = test::read_file(out);
  if (elf.size() < sizeof(Elf64_Ehdr)) throw std::runtime_error("ptxas made no ELF file");
  Elf64_Ehdr header;
  std::memcpy(&header, elf.data(), sizeof header);
  const auto section = [&](unsigned i) {
    Elf64_Shdr s;
    std::memcpy(&s, elf.data() + header.e_shoff + std::size_t{i} * header.e_shentsize, sizeof s);
    return s;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  constexpr std::uint64_t kNop = 0x918;  // the low 12 bits
  int count = 0;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (std::strncmp(elf.data() + names.sh_offset + s.sh_name, ".text.", 6) != 0) continue;
    std::size_t size = s.sh_size;
    for (; size >= 16; size -= 16) {
      std::uint64_t word;
      std::memcpy(&word, elf.data() + s.sh_offset + size - 16, sizeof word);
      if ((word & 0xfff) != kNop) break;
    }
    count += static_cast<int>(size / 16);
  }
  return count;
}

}  // namespace kiln::bench
