// What one kernel of an environment is made of, as bytes: packed where that pays, with a checksum over all.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kiln/runtime/compiler.h"

namespace kiln::rt {

using Digest = std::array<char, 16>;
Digest digest(std::string_view bytes);  // XXH3-128, the same on every machine
inline std::string_view view(const Digest& d) { return {d.data(), d.size()}; }
std::string hex(std::string_view bytes);

// Bytes behind one that says how they are packed, and their size. Nothing larger than kMostUnpacked is taken.
inline constexpr std::uint64_t kMostUnpacked = std::uint64_t{1} << 30;
std::string pack(std::string_view bytes);
std::optional<std::string> unpack(std::string_view packed);         // none: it is not what pack() gives
std::optional<std::uint64_t> packed_size(std::string_view packed);  // of what unpack() would give

std::string serialise(const CompiledCode& code);
std::optional<CompiledCode> read_compiled_code(std::string_view bytes);

// As it stands in the file, but for when it was made and used.
struct Entry {
  std::string hash, kernel, arch, checksum;
  std::string key, code;  // packed
  std::uint64_t bytes() const { return hash.size() + kernel.size() + arch.size() + checksum.size() + key.size() + code.size(); }
};
// `key` is a serialised ProgramKey.
Entry make_entry(std::string_view key, std::string kernel, std::string arch, const CompiledCode& code);
// The checksum that belongs to the rest.
std::string checksum(std::string_view hash, std::string_view kernel, std::string_view arch, std::string_view key, std::string_view code);
// Empty: all of it is what make_entry() gives. Else what is wrong.
std::string wrong_in(const Entry& entry);

}  // namespace kiln::rt
