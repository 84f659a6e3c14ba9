#include "src/object_loader.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "src/make_error.h"

namespace kiln::rt {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;  // of all loaded sections together; far below what 32-bit relocations reach
constexpr std::uint64_t kStubBytes = 16;                     // jmp *[rip]; address

std::uint64_t round_up(std::uint64_t v, std::uint64_t to) { return (v + to - 1) / to * to; }

struct Import {
  std::string_view name;
  std::uint64_t address;
};
// All that an object may ask for: the calls that LLVM makes by itself.
const Import kImports[] = {
    {"memcpy", reinterpret_cast<std::uint64_t>(static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memcpy))},
    {"memmove", reinterpret_cast<std::uint64_t>(static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memmove))},
    {"memset", reinterpret_cast<std::uint64_t>(static_cast<void* (*)(void*, int, std::size_t)>(&std::memset))}};

// Thrown inside this file only; load() turns it into an error.
struct Bad {
  std::string why;
};
[[noreturn]] void bad(std::string why) { throw Bad{std::move(why)}; }

template <class T>
T read_at(std::string_view bytes, std::uint64_t offset, const char* what) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) bad(std::string(what) + " lies beyond the end of the object");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::string_view slice(std::string_view bytes, std::uint64_t offset, std::uint64_t size, const char* what) {
  if (offset > bytes.size() || bytes.size() - offset < size) bad(std::string(what) + " lies beyond the end of the object");
  return bytes.substr(offset, size);
}

std::string_view text_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) bad("a name lies beyond its string table");
  const std::size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) bad("a string table does not end in a zero");
  return table.substr(offset, end - offset);
}

}  // namespace

// One load: reads the sections, lays them out, relocates, protects.
class ObjectLinker {
 public:
  explicit ObjectLinker(std::string_view object) : object_(object) {}

  std::shared_ptr<const LoadedObject> link(const std::string& symbol) {
    read_sections();
    read_symbols();
    place();
    map();
    copy();
    for (std::size_t s = 0; s < sections_.size(); ++s) {
      if (sections_[s].header.sh_type == SHT_RELA) relocate(s);
      if (sections_[s].header.sh_type == SHT_REL && loaded(sections_[s].header.sh_info))
        bad("relocations without addends are not of this machine");
    }
    loaded_->entry_ = reinterpret_cast<const void*>(find_entry(symbol));
    protect();
    return loaded_;
  }

 private:
  struct Section {
    Elf64_Shdr header;
    std::string_view name;
    bool placed = false;       // has a place in memory
    std::uint64_t offset = 0;  // in the mapping
  };
  struct SymbolPlace {
    Elf64_Sym symbol;
    std::uint64_t slot = 0, stub = 0;  // offsets in the mapping of what was made for it; 0: nothing yet
  };

  bool loaded(std::uint32_t section) const { return section < sections_.size() && sections_[section].placed; }

  void read_sections() {
    const auto header = read_at<Elf64_Ehdr>(object_, 0, "the ELF header");
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) bad("it does not start like an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64) {
      bad("it is not for this machine (64-bit little-endian x86-64 is)");
    }
    if (header.e_type != ET_REL) bad("it is not a relocatable object");
    if (header.e_shentsize != sizeof(Elf64_Shdr)) bad("its section headers have an unknown size");
    if (header.e_shnum == 0) bad("it has no sections");
    sections_.resize(header.e_shnum);
    for (std::size_t s = 0; s < sections_.size(); ++s) {
      if (header.e_shoff > object_.size()) bad("the section headers lie beyond the end of the object");
      sections_[s].header = read_at<Elf64_Shdr>(object_, header.e_shoff + s * sizeof(Elf64_Shdr), "a section header");
    }
    if (header.e_shstrndx >= sections_.size()) bad("its section names are missing");
    const Elf64_Shdr& names = sections_[header.e_shstrndx].header;
    const std::string_view table = slice(object_, names.sh_offset, names.sh_size, "the table of section names");
    for (Section& s : sections_) {
      s.name = text_at(table, s.header.sh_name);
      if (s.header.sh_type != SHT_NOBITS && s.header.sh_type != SHT_NULL) slice(object_, s.header.sh_offset, s.header.sh_size, "a section");
    }
  }

  void read_symbols() {
    for (const Section& s : sections_) {
      if (s.header.sh_type != SHT_SYMTAB) continue;
      if (symtab_ != nullptr) bad("it has two symbol tables");
      if (s.header.sh_entsize != sizeof(Elf64_Sym) || s.header.sh_link >= sections_.size()) bad("its symbol table is malformed");
      symtab_ = &s;
      const Elf64_Shdr& strings = sections_[s.header.sh_link].header;
      if (strings.sh_type != SHT_STRTAB) bad("its symbol table has no names");
      strings_ = slice(object_, strings.sh_offset, strings.sh_size, "the table of symbol names");
      symbols_.resize(s.header.sh_size / sizeof(Elf64_Sym));
      for (std::size_t i = 0; i < symbols_.size(); ++i) {
        symbols_[i].symbol = read_at<Elf64_Sym>(object_, s.header.sh_offset + i * sizeof(Elf64_Sym), "a symbol");
      }
    }
    if (symtab_ == nullptr) bad("it has no symbol table");
  }

  // Text first, then on pages of their own constants, tables of addresses (GOT) and stubs. Unwind tables are not loaded: nothing unwinds
  // through a kernel.
  void place() {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::uint64_t at = 0;
    const auto lay = [&](bool executable) {
      for (Section& s : sections_) {
        if ((s.header.sh_flags & SHF_ALLOC) == 0 || s.header.sh_size == 0) continue;
        if (s.header.sh_type == SHT_NOTE || s.header.sh_type == SHT_X86_64_UNWIND || s.name == ".eh_frame") continue;
        if (((s.header.sh_flags & SHF_EXECINSTR) != 0) != executable) continue;
        if ((s.header.sh_flags & SHF_TLS) != 0) bad("section " + std::string(s.name) + " is thread-local data");
        if (s.header.sh_type != SHT_PROGBITS)
          bad("section " + std::string(s.name) + " has type " + std::to_string(s.header.sh_type) + ", which a kernel object may not have");
        if ((s.header.sh_flags & SHF_WRITE) != 0 && !s.name.starts_with(".data.rel.ro"))
          bad("section " + std::string(s.name) + " is mutable data");
        const std::uint64_t align = s.header.sh_addralign == 0 ? 1 : s.header.sh_addralign;
        if ((align & (align - 1)) != 0 || align > page)
          bad("section " + std::string(s.name) + " asks for an alignment of " + std::to_string(align));
        at = round_up(at, align);
        s.offset = at;
        s.placed = true;
        if (s.header.sh_size > kMaxBytes || at + s.header.sh_size > kMaxBytes) bad("it is larger than 1 GiB");
        at += s.header.sh_size;
      }
    };
    lay(true);
    at = round_up(at, 16);
    stubs_ = at;
    at += symbols_.size() * kStubBytes;  // an upper bound; small beside the code
    text_bytes_ = round_up(at, page);
    at = text_bytes_;
    lay(false);
    at = round_up(at, 8);
    slots_ = at;
    at += symbols_.size() * 8;
    bytes_ = round_up(at, page);
    if (bytes_ > 2 * kMaxBytes) bad("it is larger than 1 GiB");
  }

  void map() {
    void* base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) bad(std::string("its ") + std::to_string(bytes_) + " bytes cannot be mapped: " + std::strerror(errno));
    loaded_.reset(new LoadedObject(base, bytes_));
    base_ = static_cast<std::uint8_t*>(base);
    std::memset(base_, 0xcc, text_bytes_);  // int3 between functions
  }

  void copy() {
    for (const Section& s : sections_) {
      if (s.placed) std::memcpy(base_ + s.offset, object_.data() + s.header.sh_offset, s.header.sh_size);
    }
  }

  std::uint64_t address(std::uint64_t offset) const { return reinterpret_cast<std::uint64_t>(base_) + offset; }

  std::string symbol_name(const Elf64_Sym& symbol) const {
    if (ELF64_ST_TYPE(symbol.st_info) == STT_SECTION && symbol.st_shndx < sections_.size())
      return std::string(sections_[symbol.st_shndx].name);
    return std::string(text_at(strings_, symbol.st_name));
  }

  // The address a symbol stands for. `imported` says that it lies anywhere in the address space.
  std::uint64_t resolve(std::uint32_t index, bool& imported) {
    imported = false;
    if (index >= symbols_.size()) bad("a relocation names a symbol that is not there");
    const Elf64_Sym& symbol = symbols_[index].symbol;
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (type == STT_TLS || type == STT_GNU_IFUNC)
      bad("symbol '" + symbol_name(symbol) + "' is of a kind that a kernel object may not have");
    if (symbol.st_shndx == SHN_UNDEF) {
      const std::string name = symbol_name(symbol);
      for (const Import& import : kImports) {
        if (import.name == name) {
          imported = true;
          return import.address;
        }
      }
      bad("it needs '" + name + "', and a kernel object may import memcpy, memmove and memset only");
    }
    if (symbol.st_shndx == SHN_ABS) {
      imported = true;
      return symbol.st_value;
    }
    if (symbol.st_shndx >= sections_.size()) bad("symbol '" + symbol_name(symbol) + "' lies in no section");
    const Section& section = sections_[symbol.st_shndx];
    if (!section.placed) bad("symbol '" + symbol_name(symbol) + "' lies in section " + std::string(section.name) + ", which is not loaded");
    if (symbol.st_value > section.header.sh_size) bad("symbol '" + symbol_name(symbol) + "' lies beyond its section");
    return address(section.offset + symbol.st_value);
  }

  // A word of the mapping that holds the symbol's address.
  std::uint64_t slot(std::uint32_t index, std::uint64_t target) {
    SymbolPlace& place = symbols_[index];
    if (place.slot == 0) {
      place.slot = slots_ + std::uint64_t{index} * 8;
      std::memcpy(base_ + place.slot, &target, 8);
    }
    return address(place.slot);
  }

  // A jump to the symbol within reach of the code.
  std::uint64_t stub(std::uint32_t index, std::uint64_t target) {
    SymbolPlace& place = symbols_[index];
    if (place.stub == 0) {
      place.stub = stubs_ + std::uint64_t{index} * kStubBytes;
      const std::uint8_t jump[6] = {0xff, 0x25, 0, 0, 0, 0};
      std::memcpy(base_ + place.stub, jump, sizeof jump);
      std::memcpy(base_ + place.stub + sizeof jump, &target, 8);
    }
    return address(place.stub);
  }

  static bool fits_signed32(std::uint64_t v) {
    const auto s = static_cast<std::int64_t>(v);
    return s >= std::numeric_limits<std::int32_t>::min() && s <= std::numeric_limits<std::int32_t>::max();
  }

  void relocate(std::size_t index) {
    const Elf64_Shdr& header = sections_[index].header;
    if (!loaded(header.sh_info)) return;  // of a section that is not loaded
    const Section& target = sections_[header.sh_info];
    if (header.sh_entsize != sizeof(Elf64_Rela)) bad("a table of relocations is malformed");
    if (header.sh_link >= sections_.size() || &sections_[header.sh_link] != symtab_) bad("a table of relocations names no symbol table");
    for (std::uint64_t i = 0; i < header.sh_size / sizeof(Elf64_Rela); ++i) {
      apply(target, read_at<Elf64_Rela>(object_, header.sh_offset + i * sizeof(Elf64_Rela), "a relocation"));
    }
  }

  void apply(const Section& target, const Elf64_Rela& rela) {
    const std::uint32_t type = ELF64_R_TYPE(rela.r_info), index = ELF64_R_SYM(rela.r_info);
    if (type == R_X86_64_NONE) return;
    const std::uint64_t size = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
    if (rela.r_offset > target.header.sh_size || target.header.sh_size - rela.r_offset < size)
      bad("a relocation lies beyond section " + std::string(target.name));
    bool imported = false;
    const std::uint64_t s = resolve(index, imported), addend = static_cast<std::uint64_t>(rela.r_addend);
    const std::uint64_t place = address(target.offset + rela.r_offset);
    std::uint64_t value = 0;
    switch (type) {
      case R_X86_64_64: value = s + addend; break;
      case R_X86_64_PC64: value = s + addend - place; break;
      case R_X86_64_PC32: value = s + addend - place; break;
      case R_X86_64_PLT32: value = (imported ? stub(index, s) : s) + addend - place; break;
      case R_X86_64_32:
      case R_X86_64_32S: value = s + addend; break;
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX: value = slot(index, s) + addend - place; break;
      default: bad("it uses relocation type " + std::to_string(type) + ", which a kernel object may not use");
    }
    const bool fits = size == 8 || (type == R_X86_64_32 ? value <= 0xffffffffu : fits_signed32(value));
    if (!fits) bad("the relocation of '" + symbol_name(symbols_[index].symbol) + "' (type " + std::to_string(type) + ") is out of range");
    std::memcpy(base_ + target.offset + rela.r_offset, &value, size);
  }

  std::uint64_t find_entry(const std::string& name) {
    for (std::uint32_t i = 0; i < symbols_.size(); ++i) {
      const Elf64_Sym& symbol = symbols_[i].symbol;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= sections_.size() || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
      if (text_at(strings_, symbol.st_name) != name) continue;
      const Section& section = sections_[symbol.st_shndx];
      const bool code = section.placed && (section.header.sh_flags & SHF_EXECINSTR) != 0 && symbol.st_value < section.header.sh_size;
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !code) bad("symbol '" + name + "' is not a function");
      return address(section.offset + symbol.st_value);
    }
    bad("it has no function '" + name + "'");
  }

  void protect() {
    if ((text_bytes_ != 0 && mprotect(base_, text_bytes_, PROT_READ | PROT_EXEC) != 0) ||
        (bytes_ != text_bytes_ && mprotect(base_ + text_bytes_, bytes_ - text_bytes_, PROT_READ) != 0)) {
      bad(std::string("its memory cannot be made executable: ") + std::strerror(errno));
    }
  }

  std::string_view object_, strings_;
  std::vector<Section> sections_;
  std::vector<SymbolPlace> symbols_;
  const Section* symtab_ = nullptr;
  std::uint64_t stubs_ = 0, slots_ = 0, text_bytes_ = 0, bytes_ = 0;
  std::shared_ptr<LoadedObject> loaded_;
  std::uint8_t* base_ = nullptr;
};

LoadedObject::~LoadedObject() { munmap(base_, bytes_); }

Result<std::shared_ptr<const LoadedObject>> LoadedObject::load(std::string_view object, const std::string& symbol) {
  std::string why;
  try {
    return ObjectLinker(object).link(symbol);
  } catch (const Bad& e) { why = e.why; } catch (const std::exception& e) {
    why = e.what();
  }
  return make_error(ErrorCode::CompileGeneric, "BadObject", "the host object cannot be loaded: " + why, {.kernel = symbol});
}

}  // namespace kiln::rt
