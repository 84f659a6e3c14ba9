#include "src/object_loader.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/object_writer.h"

using namespace kiln;
using namespace kiln::test;

namespace {

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
