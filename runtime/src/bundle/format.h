// The bytes of a bundle: a head, a table of fields, then the packed text of the kernel and the packed code of each item, one right behind
// the other, and zeros up to a multiple of 16. The table says sizes and no offsets, so nothing can overlap or lie outside.
//
//   0   "KILNBNDL"
//   8   u64  the format, kFormat
//   16  u64  all of it, a multiple of 16
//   24  u64  the table
//   32  XXH3-128 of the 32 bytes before and the table
//   48  the table
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/runtime/bundle.h"
#include "src/environment/entry.h"

namespace kiln::rt {

inline constexpr std::string_view kBundleMagic = "KILNBNDL";
inline constexpr std::uint64_t kBundleFormat = 1;
inline constexpr std::uint64_t kBundleHead = 48, kBundleAlignment = 16;
inline constexpr std::uint64_t kMostInBundle = std::uint64_t{64} << 20;  // of a text or an item, unpacked

// A text or an item, as the table tells of it.
struct BundlePiece {
  std::uint64_t size = 0;   // packed, as it stands in the bundle
  std::uint64_t plain = 0;  // unpacked
  Digest digest{};          // of what stands in the bundle
};
struct BundleTable {
  BundleInfo info;
  Digest recorded_digest{};  // of the plain text
  BundlePiece recorded;
  std::vector<BundlePiece> items;  // as many as info.items
};

std::string serialise(const BundleTable& table);

// What stands at the front of a table, which is enough to find a kernel.
struct BundleFront {
  std::string kernel;
  bool checked = false;
  Digest recorded_digest{};
  std::uint32_t interface_version = 0;
  std::string build_id, llvm_version;
  std::uint64_t size = 0;  // of the bundle
};
// Each gives what is wrong as a sentence, empty where nothing is. Any bytes may be given; those behind the bundle are left alone.
std::string read_front(std::string_view bytes, BundleFront& front);
// `packed`: where the pieces begin.
std::string read_table(std::string_view bytes, BundleTable& table, std::uint64_t& size, std::uint64_t& packed);

// The position after zeros up to the next multiple of 16 with anything but zeros, or the end. `good` false: something else stands there.
std::size_t next_bundle(std::string_view bytes, std::size_t at, bool& good);

Error damaged_bundle(const std::string& where, const std::string& what);

}  // namespace kiln::rt
