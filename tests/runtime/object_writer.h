// Writes small relocatable objects, field by field, for tests of the loader and as code of invented kernels.
#pragma once
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace kiln::test {

inline constexpr unsigned char kFunction = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), kImport = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE),
                               kObject = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);

// A small relocatable object, written field by field: sections .text, .rodata, their relocations and one symbol table.
struct ObjectWriter {
  struct Symbol {
    std::string name;
    unsigned char info;
    std::uint16_t section;  // 1 .text, 2 .rodata
    std::uint64_t value = 0;
  };
  struct Reloc {
    std::uint64_t offset;
    std::uint32_t symbol, type;
    std::int64_t addend = 0;
  };
  std::string text, rodata = std::string(8, '\0');
  std::vector<Symbol> symbols{{"", 0, 0}};
  std::vector<Reloc> text_relocs, rodata_relocs;
  std::uint64_t rodata_flags = SHF_ALLOC, text_align = 16;
  std::string rodata_name = ".rodata";
  std::uint16_t machine = EM_X86_64, type = ET_REL;

  std::string bytes() const {
    std::string out(sizeof(Elf64_Ehdr), '\0'), names(1, '\0'), strings(1, '\0');
    std::vector<Elf64_Shdr> headers(1, Elf64_Shdr{});
    const auto add = [&](const std::string& name, std::uint32_t kind, std::uint64_t flags, const std::string& content, std::uint32_t link,
                         std::uint32_t info, std::uint64_t entry, std::uint64_t align) {
      out.resize((out.size() + 15) / 16 * 16);
      Elf64_Shdr h{};
      h.sh_name = static_cast<Elf64_Word>(names.size());
      names += name + '\0';
      h.sh_type = kind, h.sh_flags = flags, h.sh_offset = out.size(), h.sh_size = content.size();
      h.sh_link = link, h.sh_info = info, h.sh_entsize = entry, h.sh_addralign = align;
      headers.push_back(h);
      out += content;
    };
    const auto relocs = [](const std::vector<Reloc>& list) {
      std::string s;
      for (const Reloc& r : list) {
        const Elf64_Rela rela{r.offset, ELF64_R_INFO(std::uint64_t{r.symbol}, r.type), r.addend};
        s.append(reinterpret_cast<const char*>(&rela), sizeof rela);
      }
      return s;
    };
    std::string table;
    for (const Symbol& s : symbols) {
      Elf64_Sym sym{};
      sym.st_name = s.name.empty() ? 0 : static_cast<Elf64_Word>(strings.size());
      if (!s.name.empty()) strings += s.name + '\0';
      sym.st_info = s.info, sym.st_shndx = s.section, sym.st_value = s.value;
      table.append(reinterpret_cast<const char*>(&sym), sizeof sym);
    }
    add(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text, 0, 0, 0, text_align);                  // 1
    add(rodata_name, SHT_PROGBITS, rodata_flags, rodata, 0, 0, 0, 8);                                  // 2
    add(".symtab", SHT_SYMTAB, 0, table, 4, 1, sizeof(Elf64_Sym), 8);                                  // 3
    add(".strtab", SHT_STRTAB, 0, strings, 0, 0, 0, 1);                                                // 4
    add(".rela.text", SHT_RELA, SHF_INFO_LINK, relocs(text_relocs), 3, 1, sizeof(Elf64_Rela), 8);      // 5
    add(".rela.rodata", SHT_RELA, SHF_INFO_LINK, relocs(rodata_relocs), 3, 2, sizeof(Elf64_Rela), 8);  // 6
    add(".shstrtab", SHT_STRTAB, 0, names + std::string(".shstrtab", 10), 0, 0, 0, 1);                 // 7
    headers.back().sh_size = names.size();
    out.resize((out.size() + 15) / 16 * 16);
    Elf64_Ehdr e{};
    std::memcpy(e.e_ident, ELFMAG, SELFMAG);
    e.e_ident[EI_CLASS] = ELFCLASS64, e.e_ident[EI_DATA] = ELFDATA2LSB, e.e_ident[EI_VERSION] = EV_CURRENT;
    e.e_type = type, e.e_machine = machine, e.e_version = EV_CURRENT, e.e_shoff = out.size(), e.e_ehsize = sizeof e;
    e.e_shentsize = sizeof(Elf64_Shdr), e.e_shnum = static_cast<std::uint16_t>(headers.size()), e.e_shstrndx = 7;
    std::memcpy(out.data(), &e, sizeof e);
    out.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof(Elf64_Shdr));
    return out;
  }
};

}  // namespace kiln::test
