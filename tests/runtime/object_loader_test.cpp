#include "src/object_loader.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace kiln;

namespace {

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
    const auto add = [&](const std::string& name, std::uint32_t kind, std::uint64_t flags, const std::string& content, std::uint32_t link, std::uint32_t info,
                         std::uint64_t entry, std::uint64_t align) {
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
    add(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text, 0, 0, 0, text_align);                    // 1
    add(rodata_name, SHT_PROGBITS, rodata_flags, rodata, 0, 0, 0, 8);                                    // 2
    add(".symtab", SHT_SYMTAB, 0, table, 4, 1, sizeof(Elf64_Sym), 8);                                    // 3
    add(".strtab", SHT_STRTAB, 0, strings, 0, 0, 0, 1);                                                  // 4
    add(".rela.text", SHT_RELA, SHF_INFO_LINK, relocs(text_relocs), 3, 1, sizeof(Elf64_Rela), 8);        // 5
    add(".rela.rodata", SHT_RELA, SHF_INFO_LINK, relocs(rodata_relocs), 3, 2, sizeof(Elf64_Rela), 8);    // 6
    add(".shstrtab", SHT_STRTAB, 0, names + std::string(".shstrtab", 10), 0, 0, 0, 1);                   // 7
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

constexpr unsigned char kFunction = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), kImport = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE),
                        kObject = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);

// int f(): mov eax, 42; ret
ObjectWriter answer() {
  ObjectWriter w;
  w.text = std::string("\xb8\x2a\x00\x00\x00\xc3", 6);
  w.symbols.push_back({"f", kFunction, 1});
  return w;
}

// void f(void* to, const void* from, size_t n): jmp memcpy
ObjectWriter copier(const std::string& import = "memcpy") {
  ObjectWriter w;
  w.text = std::string("\xe9\x00\x00\x00\x00", 5);
  w.symbols.push_back({"f", kFunction, 1});
  w.symbols.push_back({import, kImport, SHN_UNDEF});
  w.text_relocs.push_back({1, 2, R_X86_64_PLT32, -4});
  return w;
}

template <class F>
F* entry_of(const Result<std::shared_ptr<const rt::LoadedObject>>& object) {
  return reinterpret_cast<F*>(reinterpret_cast<std::uintptr_t>(object.value()->entry()));
}

std::string error_of(const std::string& bytes, const std::string& symbol = "f") {
  const auto loaded = rt::LoadedObject::load(bytes, symbol);
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().code() == ErrorCode::CompileGeneric);
  CHECK(loaded.error().rule() == "BadObject");
  return loaded.error().data().message;
}

bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a loaded function runs after the bytes it came from are gone") {
  std::string bytes = answer().bytes();
  const auto object = rt::LoadedObject::load(bytes, "f");
  std::fill(bytes.begin(), bytes.end(), '\0');
  CHECK(entry_of<int()>(object)() == 42);
}

TEST_CASE("an object may call memcpy, however far away it is") {
  const auto object = rt::LoadedObject::load(copier().bytes(), "f");
  std::uint64_t to = 0;
  const std::uint64_t from = 0x123456789abcdef0u;
  entry_of<void(void*, const void*, std::size_t)>(object)(&to, &from, sizeof to);
  CHECK(to == from);
}

TEST_CASE("constants are reached by distance, by a table of addresses and by whole addresses") {
  SUBCASE("PC32: mov rax, [rip + constant]; ret") {
    ObjectWriter w;
    w.text = std::string("\x48\x8b\x05\x00\x00\x00\x00\xc3", 8);
    w.rodata = std::string("\x11\x22\x33\x44\x55\x66\x77\x08", 8);
    w.symbols.push_back({"constant", kObject, 2});
    w.symbols.push_back({"f", kFunction, 1});
    w.text_relocs.push_back({3, 1, R_X86_64_PC32, -4});
    CHECK(entry_of<std::uint64_t()>(rt::LoadedObject::load(w.bytes(), "f"))() == 0x0877665544332211u);
  }
  SUBCASE("GOTPCREL: mov rax, [rip + slot]; mov rax, [rax]; ret") {
    ObjectWriter w;
    w.text = std::string("\x48\x8b\x05\x00\x00\x00\x00\x48\x8b\x00\xc3", 11);
    w.rodata = std::string("\x07\x00\x00\x00\x00\x00\x00\x00", 8);
    w.symbols.push_back({"constant", kObject, 2});
    w.symbols.push_back({"f", kFunction, 1});
    w.text_relocs.push_back({3, 1, R_X86_64_REX_GOTPCRELX, -4});
    CHECK(entry_of<std::uint64_t()>(rt::LoadedObject::load(w.bytes(), "f"))() == 7);
  }
  SUBCASE("64: a table that holds the address of the function") {
    ObjectWriter w;
    w.text = std::string("\x48\x8b\x05\x00\x00\x00\x00\xc3", 8);
    w.rodata_name = ".data.rel.ro";
    w.rodata_flags = SHF_ALLOC | SHF_WRITE;
    w.symbols.push_back({"table", kObject, 2});
    w.symbols.push_back({"f", kFunction, 1});
    w.text_relocs.push_back({3, 1, R_X86_64_PC32, -4});
    w.rodata_relocs.push_back({0, 2, R_X86_64_64, 3});
    const auto object = rt::LoadedObject::load(w.bytes(), "f");
    CHECK(entry_of<std::uint64_t()>(object)() == reinterpret_cast<std::uint64_t>(object.value()->entry()) + 3);
  }
}

TEST_CASE("what a kernel object may not have is refused by name") {
  CHECK(says(error_of(copier("malloc").bytes()), "'malloc'"));
  CHECK(says(error_of(answer().bytes(), "g"), "no function 'g'"));
  ObjectWriter w = answer();
  w.machine = EM_AARCH64;
  CHECK(says(error_of(w.bytes()), "x86-64"));
  w = answer();
  w.type = ET_DYN;
  CHECK(says(error_of(w.bytes()), "relocatable"));
  w = answer();
  w.rodata_flags = SHF_ALLOC | SHF_WRITE, w.rodata_name = ".data";
  CHECK(says(error_of(w.bytes()), ".data is mutable"));
  w = answer();
  w.rodata_flags = SHF_ALLOC | SHF_TLS;
  CHECK(says(error_of(w.bytes()), "thread-local"));
  w = answer();
  w.text_align = 1 << 20;
  CHECK(says(error_of(w.bytes()), "alignment"));
  w = answer();
  w.text_relocs.push_back({1, 1, R_X86_64_32S});  // a mapping lies above 2 GiB
  CHECK(says(error_of(w.bytes()), "out of range"));
  w = answer();
  w.text_relocs.push_back({1, 1, R_X86_64_TPOFF32});
  CHECK(says(error_of(w.bytes()), "relocation type 23"));
  w = answer();
  w.text_relocs.push_back({3, 1, R_X86_64_PC32});  // 3 + 4 > 6
  CHECK(says(error_of(w.bytes()), "beyond section .text"));
  w = answer();
  w.text_relocs.push_back({1, 9, R_X86_64_PC32});
  CHECK(says(error_of(w.bytes()), "symbol that is not there"));
  CHECK(says(error_of(""), "beyond the end"));
  CHECK(says(error_of(std::string(64, 'x')), "ELF"));
}

TEST_CASE("an object cut at any byte or with any bytes changed gives an error or a mapping, never a crash") {
  ObjectWriter w = copier();
  w.rodata_name = ".data.rel.ro";
  w.rodata_flags = SHF_ALLOC | SHF_WRITE;
  w.rodata_relocs.push_back({0, 1, R_X86_64_64, 0});
  const std::string good = w.bytes();
  REQUIRE(rt::LoadedObject::load(good, "f").has_value());
  for (std::size_t n = 0; n < good.size(); ++n) {
    const auto loaded = rt::LoadedObject::load(std::string_view(good).substr(0, n), "f");
    CHECK_FALSE(loaded.has_value());  // the section headers come last
  }
  std::mt19937 random(20240611);
  std::size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    const unsigned edits = 1 + random() % 4;
    for (unsigned e = 0; e < edits; ++e) bytes[random() % bytes.size()] = static_cast<char>(random());
    refused += !rt::LoadedObject::load(bytes, "f").has_value();
  }
  CHECK(refused > 1000);
}
